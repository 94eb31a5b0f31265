#!/usr/bin/env python3
"""As much of an API server as `helm template --dry-run=server` asks for: one CustomResourceDefinition, for templates that look it up.

Usage: api_server.py KUBECONFIG NAME ANNOTATIONS-AS-JSON     Writes the kubeconfig once it listens; ends with its parent.
"""
import ctypes
import http.server
import json
import os
import signal
import sys

kubeconfig, name, annotations = sys.argv[1:]
ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG

group = {"groupVersion": "apiextensions.k8s.io/v1", "version": "v1"}
answers = {
    "/version": {"major": "1", "minor": "34", "gitVersion": "v1.34.0"},
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/api/v1": {"kind": "APIResourceList", "groupVersion": "v1", "resources": []},
    "/apis": {
        "kind": "APIGroupList",
        "apiVersion": "v1",
        "groups": [{"name": "apiextensions.k8s.io", "versions": [group], "preferredVersion": group}],
    },
    "/apis/apiextensions.k8s.io/v1": {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": "apiextensions.k8s.io/v1",
        "resources": [
            {
                "name": "customresourcedefinitions",
                "singularName": "customresourcedefinition",
                "namespaced": False,
                "kind": "CustomResourceDefinition",
                "verbs": ["get"],
            }
        ],
    },
    f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}": {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": name, "annotations": json.loads(annotations)},
    },
}


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        answer = answers.get(self.path.split("?")[0])
        missing = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}
        body = json.dumps(answer or missing).encode()
        self.send_response(200 if answer else 404)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
with open(kubeconfig + ".temp", "w") as file:
    json.dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "fake", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}],
            "contexts": [{"name": "fake", "context": {"cluster": "fake", "user": "fake"}}],
            "users": [{"name": "fake", "user": {}}],
            "current-context": "fake",
        },
        file,
    )
os.rename(kubeconfig + ".temp", kubeconfig)
server.serve_forever()

#!/usr/bin/env python3
"""The part of an API server that `helm template --dry-run=server` needs: objects that templates look up.

Usage: api_server.py KUBECONFIG OBJECTS-AS-JSON     Writes the kubeconfig once it listens. Ends with its parent process.
"""
import ctypes
import http.server
import json
import os
import signal
import sys

kubeconfig, objects = sys.argv[1:]
ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG

RESOURCES = {  # by group and version: kind, plural, whether it has a namespace
    "v1": [("Secret", "secrets", True)],
    "apiextensions.k8s.io/v1": [("CustomResourceDefinition", "customresourcedefinitions", False)],
    "slinky.slurm.net/v1beta1": [("Controller", "controllers", True), ("LoginSet", "loginsets", True), ("Accounting", "accountings", True)],
}


def root(version):
    return f"/apis/{version}" if "/" in version else f"/api/{version}"


groups = [
    {"name": v.split("/")[0], "versions": [{"groupVersion": v, "version": v.split("/")[1]}]} for v in RESOURCES if "/" in v
]
answers = {
    "/version": {"major": "1", "minor": "34", "gitVersion": "v1.34.0"},
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups},
}
given = json.loads(objects)
for version, kinds in RESOURCES.items():
    if version.startswith("slinky") and not any(item["apiVersion"] == version for item in given):
        continue  # nobody has installed the definitions
    resources = [
        {"name": plural, "singularName": "", "namespaced": namespaced, "kind": kind, "verbs": ["get", "list"]}
        for kind, plural, namespaced in kinds
    ]
    answers[root(version)] = {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": version,
        "resources": resources,
    }
for item in given:
    meta = item["metadata"]
    plural = next(plural for kind, plural, _ in RESOURCES[item["apiVersion"]] if kind == item["kind"])
    path = root(item["apiVersion"]) + (f"/namespaces/{meta['namespace']}" if "namespace" in meta else "") + "/" + plural
    answers[f"{path}/{meta['name']}"] = item
    some = {"apiVersion": item["apiVersion"], "kind": item["kind"] + "List", "metadata": {}, "items": []}
    answers.setdefault(path, some)["items"].append(item)


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

#!/usr/bin/env python3
"""Times a NodeSet from 10 to 1,000 workers and back on the local cluster. Kubernetes nodes and workers are simulated (kwok),
and so is the Slurm behind the RestApi's Service. The API server, the scheduler and the operator are real. Prints the times and
the operator's use of CPU and memory. At the end, prints the median and the worst of --runs (about two minutes each), with the
floor: how long kubectl alone takes to create or delete as many pods.
Needs .local/bin/kwok, and the image local/sim-slurmrestd:dev in the nodes (dev/bench.sh provides both).
Usage: scale.py [--runs 1] [--workers 1000] [--nodes 100] [--slurm 26.05]"""

import argparse
import base64
import collections
import http.client
import json
import os
import pathlib
import secrets
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests/e2e"))
from cluster import ENV, TOP, AuditLog, Failed, Namespace, figures_table, kubectl, slurm_releases, wait  # noqa: E402

NODESET = "nodesets.slinky.slurm.net"
KWOK_LABEL = "type=kwok"
WORKER = "app.kubernetes.io/name=slurmd"
FEW = 10
TICKS = os.sysconf("SC_CLK_TCK")


def manifest(workers):
    """Returns the usual manifest of Controller and RestApi with the image of the simulated slurmrestd, and workers that
    tolerate the nodes of kwok."""
    group = "slinky.slurm.net/v1beta1"
    return [
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "bench-keys"},
         "data": {key: base64.b64encode(secrets.token_bytes(1024)).decode() for key in ("slurm.key", "jwt.key")}},
        {"apiVersion": group, "kind": "Controller", "metadata": {"name": "demo"},
         "spec": {"slurmctld": {"image": "local/slurmctld:${TAG}", "imagePullPolicy": "IfNotPresent"},
                  "slurmKeyRef": {"name": "bench-keys", "key": "slurm.key"}, "jwtKeyRef": {"name": "bench-keys", "key": "jwt.key"},
                  "persistence": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "100Mi"}}},
                  "extraConf": "ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\n"}},
        {"apiVersion": group, "kind": "RestApi", "metadata": {"name": "demo"},
         "spec": {"controllerRef": {"name": "demo"},
                  "slurmrestd": {"image": "local/sim-slurmrestd:dev", "imagePullPolicy": "IfNotPresent",
                                 "args": ["--jwt-key", "/etc/sim/jwt.key"],
                                 "volumeMounts": [{"name": "sim-keys", "mountPath": "/etc/sim", "readOnly": True}]},
                  "template": {"spec": {"volumes": [{"name": "sim-keys", "secret": {
                      "secretName": "bench-keys", "items": [{"key": "jwt.key", "path": "jwt.key"}]}}]}}}},
        {"apiVersion": group, "kind": "NodeSet", "metadata": {"name": "cpu"},
         "spec": {"controllerRef": {"name": "demo"}, "replicas": workers, "oversubscribeNode": True,
                  "slurmd": {"image": "local/slurmd:${TAG}", "imagePullPolicy": "IfNotPresent"},
                  "extraConf": "CPUs=2 RealMemory=1000", "partition": {"enabled": True, "config": "Default=YES State=UP"},
                  "template": {"spec": {"nodeSelector": {"type": "kwok"},
                                        "tolerations": [{"key": "type", "operator": "Equal", "value": "kwok", "effect": "NoSchedule"}]}}}},
    ]


class Kwok:
    """The program kwok and the nodes that it simulates."""

    PID = TOP / ".local/kwok.pid"

    def __init__(self, nodes):
        self.nodes = nodes

    def __enter__(self):
        self._end()
        try:
            self._begin()
        except BaseException:
            self._end()
            raise
        return self

    def _begin(self):
        resources = {"cpu": "64", "memory": "256Gi", "pods": "110"}
        items = [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"kwok-{i}", "labels": {"type": "kwok"}},
                  "spec": {"taints": [{"key": "type", "value": "kwok", "effect": "NoSchedule"}]},
                  "status": {"capacity": resources, "allocatable": resources}} for i in range(self.nodes)]
        kubectl("apply", "-f", "-", text=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
        with (TOP / ".local/logs/kwok.log").open("w") as log:
            process = subprocess.Popen(["kwok", "--kubeconfig", ENV["KUBECONFIG"], "--config", str(TOP / "bench/kwok.yaml"),
                                        "--manage-nodes-with-label-selector", KWOK_LABEL, "--node-ip", "10.217.255.1", "--cidr", "10.217.0.0/16"],
                                       env=ENV, stdout=log, stderr=subprocess.STDOUT)
        self.PID.write_text(str(process.pid))
        ready = '{range .items[*]}{.status.conditions[?(@.type=="Ready")].status}{"\\n"}{end}'
        wait("the nodes of kwok are ready", lambda: kubectl("get", "nodes", "-l", KWOK_LABEL, "-o", f"jsonpath={ready}").stdout.split()
             == ["True"] * self.nodes, 60, 1)

    def __exit__(self, *_):
        self._end()

    def _end(self):
        """Ends kwok, including one that an aborted run has left."""
        if self.PID.exists():
            pid = int(self.PID.read_text())
            comm = pathlib.Path(f"/proc/{pid}/comm")
            if comm.exists() and comm.read_text().strip() == "kwok":
                os.kill(pid, signal.SIGTERM)
                try:
                    os.waitpid(pid, 0)
                except ChildProcessError:
                    pass
            self.PID.unlink()
        kubectl("delete", "nodes", "-l", KWOK_LABEL, "--ignore-not-found", "--wait=true")


class Watch:
    """Calls on_event(type, object) for each event of a path, on a thread of its own, beginning with the existing objects. The
    API server ends the watch of a slow client. Then this class lists again, and reports objects that are gone as DELETED."""

    def __init__(self, path, on_event):
        self.path, self.on_event, self.known, self.process, self.closed = path, on_event, {}, None, False
        self.thread = threading.Thread(target=self._follow, daemon=True)
        self.thread.start()

    def _follow(self):
        while not self.closed:
            done = kubectl("get", "--raw", self.path, check=False)
            if done.returncode != 0:
                time.sleep(0.2)
                continue
            document = json.loads(done.stdout)
            listed = {item["metadata"]["uid"]: item for item in document["items"]}
            for uid in self.known.keys() - listed.keys():
                self.on_event("DELETED", self.known[uid])
            for item in listed.values():
                self.on_event("ADDED", item)
            self.known = {uid: {"metadata": {"name": item["metadata"]["name"]}} for uid, item in listed.items()}
            self._watch(document["metadata"]["resourceVersion"])

    def _watch(self, version):
        path = f"{self.path}{'&' if '?' in self.path else '?'}watch=true&timeoutSeconds=3600&resourceVersion={version}"
        self.process = subprocess.Popen(["kubectl", "get", "--raw", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=ENV)
        for line in self.process.stdout:
            event = json.loads(line)
            kind, thing = event["type"], event["object"]
            if kind == "ERROR":
                break
            if kind == "DELETED":
                self.known.pop(thing["metadata"]["uid"], None)
            else:
                self.known[thing["metadata"]["uid"]] = {"metadata": {"name": thing["metadata"]["name"]}}
            self.on_event(kind, thing)
        self.process.kill()
        self.process.wait()

    def close(self):
        self.closed = True
        if self.process:
            self.process.kill()


def condition_of(thing, name):
    return next((c["status"] for c in thing.get("status", {}).get("conditions", []) if c["type"] == name), "")


class Sim:
    """The control interface of the simulated Slurm, through which it learns which slurmds start and end."""

    def __init__(self, ns):
        self.ns, self.host = ns, ""

    def find(self):
        pods = [p for p in self.ns.get("pods") if p["metadata"]["labels"].get("app.kubernetes.io/name") == "slurmrestd"]
        self.host = next((p["status"]["podIP"] for p in pods if condition_of(p, "Ready") == "True"), "")
        return self.host

    def call(self, method, path, body=None):
        connection = http.client.HTTPConnection(self.host, 6820, timeout=30)
        connection.request(method, f"/admin/{path}", body)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        if answer.status != 200:
            raise Failed(f"sim-slurmrestd {path}: {answer.status} {text}")
        return json.loads(text)

    def state(self):
        return self.call("GET", "state")


class Pods:
    """Follows the state of the pods. If a simulated Slurm is given, tells it which slurmds would run in ready pods."""

    def __init__(self, ns, selector, sim=None):
        self.sim, self.closed, self.lock, self.moves = sim, False, threading.Lock(), {}
        self.names = {what: set() for what in ("created", "scheduled", "ready")}
        self.changed = dict.fromkeys(self.names, 0.0)
        self.watch = Watch(f"/api/v1/namespaces/{ns.name}/pods?labelSelector={selector}", self._pod)
        self.feeder = threading.Thread(target=self._feed, daemon=True)
        self.feeder.start()

    def _pod(self, kind, pod):
        name, exists = pod["metadata"]["name"], kind != "DELETED"
        stays = exists and "deletionTimestamp" not in pod["metadata"]
        with self.lock:
            is_ready = stays and (name in self.names["ready"] or condition_of(pod, "Ready") == "True")
            self._set("created", name, exists)
            self._set("scheduled", name, exists and "nodeName" in pod["spec"])
            if self._set("ready", name, is_ready):
                self.moves[name] = is_ready

    def _set(self, what, name, member):
        names = self.names[what]
        if (name in names) == member:
            return False
        (names.add if member else names.discard)(name)
        self.changed[what] = time.monotonic()
        return True

    def _feed(self):
        while not self.closed:
            time.sleep(0.1)
            with self.lock:
                moves, self.moves = self.moves, {}
            if moves and self.sim:
                self.sim.call("POST", "workers", json.dumps({"conf": "Features=cpu CPUs=2 RealMemory=1000",
                                                             "start": [name for name, up in moves.items() if up],
                                                             "stop": [name for name, up in moves.items() if not up]}))

    def when(self, what, count):
        """Returns since when there are so many. None: there are not."""
        with self.lock:
            return self.changed[what] if len(self.names[what]) == count else None

    def close(self):
        self.closed = True
        self.watch.close()
        self.feeder.join()


class Status:
    """Follows the status of the NodeSet."""

    def __init__(self, ns):
        self.last, self.at = {}, 0.0
        self.watch = Watch(f"/apis/slinky.slurm.net/v1beta1/namespaces/{ns.name}/nodesets?fieldSelector=metadata.name%3Dcpu", self._see)

    def _see(self, _, nodeset):
        status = nodeset.get("status", {})
        picture = {key: status.get(key, 0) for key in ("replicas", "readyReplicas", "desired")}
        picture["Ready"] = condition_of(nodeset, "Ready")
        if picture != self.last:
            self.last, self.at = picture, time.monotonic()

    def when(self, count):
        wanted = {"replicas": count, "readyReplicas": count, "desired": count, "Ready": "True"}
        return self.at if self.last == wanted else None


class Operator:
    """Measures the CPU time and memory of the operator's process, and its writes to a namespace."""

    def __init__(self, namespace):
        self.namespace, self.pid = namespace, self._find()
        self.audit = AuditLog()
        self.cpu_before, self.memory_before = 0.0, self._memory()
        self.cpu_before = self.cpu()
        self.peak, self.closed = self.memory_before, False
        threading.Thread(target=self._look, daemon=True).start()

    @staticmethod
    def _find():
        """Finds the process of the leader. Other processes may wait for the Lease."""
        holder = kubectl("-n", "slurm-operator", "get", "lease", "slurm-operator", "-o", "jsonpath={.spec.holderIdentity}").stdout.split("_")[0]
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if (process / "comm").read_text().strip() == "slurm-operator" and f"HOSTNAME={holder}" in (process / "environ").read_text().split("\0"):
                    return process
            except OSError:
                continue  # it has ended meanwhile
        raise Failed("the operator's process was not found on this machine")

    def cpu(self):
        """Returns the CPU seconds since this object was created."""
        fields = (self.pid / "stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICKS - self.cpu_before

    def _memory(self):
        line = next(line for line in (self.pid / "status").read_text().splitlines() if line.startswith("VmRSS"))
        return int(line.split()[1]) / 1024

    def _look(self):
        while not self.closed:
            self.peak = max(self.peak, self._memory())
            time.sleep(0.1)

    def report(self):
        """Returns (CPU seconds, largest memory in MiB, present memory in MiB, writes by verb and resource) since this object
        was created."""
        self.closed = True
        time.sleep(1)
        writes = collections.Counter()
        for event in self.audit.writes():
            subject = event.get("objectRef", {})
            if event.get("userAgent", "").startswith("slurm-operator/") and subject.get("namespace") == self.namespace:
                name = "/".join(filter(None, (subject.get("resource"), subject.get("subresource"))))
                refused = event.get("responseStatus", {}).get("code", 0)
                writes[f"{event['verb']} {name}" + (f" ({refused})" if refused >= 400 else "")] += 1
        return self.cpu(), self.peak, self._memory(), writes


def wait_quiet(operator):
    """Waits until the operator has almost nothing left to do: reports on pods and comments in Slurm are written last."""
    before = -1.0
    while operator.cpu() - before > 0.1:
        before = operator.cpu()
        time.sleep(5)


def until(what, condition, timeout):
    return wait(what, condition, timeout, 0.05)


def measure(ns, sim, workers, status, before, count, timeout):
    """Scales and prints when each state was reached. Returns these times by the name of the state."""
    operator, asked = Operator(ns.name), collections.Counter(sim.state()["requests"])
    start = time.monotonic()
    ns.scale("cpu", count)
    rows = []
    for what in ("created", "scheduled", "ready") if count > before else ("created",):
        words = {"created": "all pods created" if count > before else "pods gone", "scheduled": "all scheduled", "ready": "all pods Ready"}
        rows.append((words[what], until(words[what], lambda what=what: workers.when(what, count), timeout) - start))
        print(f"    {rows[-1][0]}: {rows[-1][1]:.1f} s", flush=True)
    rows.append(("ready in status", until("ready in status", lambda: status.when(count), timeout) - start))
    print(f"    {rows[-1][0]}: {rows[-1][1]:.1f} s", flush=True)
    wait("Slurm's records", lambda: sim.state()["usable"] == sim.state()["nodes"] == count, timeout)
    settled = operator.cpu()
    wait_quiet(operator)
    cpu, peak, after, writes = operator.report()
    asked = collections.Counter(sim.state()["requests"]) - asked
    print(f"\n{before} to {count} workers" + " " * 30 + "seconds")
    for name, seconds in rows:
        print(f"  {name:42} {seconds:8.1f}")
    print(f"  {'operator: CPU until then / at rest':42} {settled:8.2f} {cpu:8.2f}")
    print(f"  {'operator: VmRSS before / peak / after, MiB':42} {operator.memory_before:8.1f} {peak:8.1f} {after:8.1f}")
    print(f"  {'operator: writes to Kubernetes':42} {sum(writes.values()):8}   {', '.join(f'{n} {w}' for w, n in writes.most_common())}")
    print(f"  {'operator: requests to Slurm':42} {sum(asked.values()):8}   {', '.join(f'{n} {w}' for w, n in asked.most_common())}\n", flush=True)
    rows += [("operator's CPU", settled), ("operator's VmRSS at most, MiB", peak)]
    return {f"{before} to {count}: {name}": value for name, value in rows}


def floor(ns, count, timeout):
    """Times the same pods with kubectl alone, which shows what the API server, scheduler, kwok and this machine need. Returns
    the times until all are created, Ready, and gone."""
    pod = ns.get("pod", "cpu-0")
    spec = {key: value for key, value in pod["spec"].items() if key not in ("nodeName", "hostname", "subdomain", "serviceAccount", "serviceAccountName")}
    items = [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"floor-{i}", "labels": {"bench": "floor"}}, "spec": spec} for i in range(count)]
    pods = Pods(ns, "bench=floor")
    start = time.monotonic()
    ns.kubectl("create", "-f", "-", text=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}), timeout=timeout)
    created = until("all created", lambda: pods.when("created", count), timeout) - start
    ready = until("all Ready", lambda: pods.when("ready", count), timeout) - start
    start = time.monotonic()
    ns.kubectl("delete", "pod", "-l", "bench=floor", "--wait=false", timeout=timeout)
    gone = until("all gone", lambda: pods.when("created", 0), timeout) - start
    pods.close()
    print(f"floor, {count} pods by kubectl alone: created {created:.1f} s, Ready {ready:.1f} s; gone {gone:.1f} s\n", flush=True)
    return created, ready, gone


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--workers", type=int, default=1000)
    parser.add_argument("--nodes", type=int, default=100, help="nodes of kwok")
    parser.add_argument("--slurm", help="Slurm release of the local images")
    parser.add_argument("--timeout", type=int, default=180, help="seconds for each step")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # removes what was created
    figures, floors = collections.defaultdict(list), collections.defaultdict(list)
    with Kwok(arguments.nodes), Namespace("bench-scale", arguments.slurm or slurm_releases()[0]) as ns:
        try:
            ns.apply(json.dumps({"apiVersion": "v1", "kind": "List", "items": manifest(FEW)}))
            sim = Sim(ns)
            wait("sim-slurmrestd is ready", sim.find, 90)
            # The kubelet may have projected an older slurm.conf than the one for which the operator waits, so the ConfigMap is
            # read.
            configuration = lambda: ns.get("configmap", "demo-config")["data"]["slurm.conf"]
            wait("the NodeSet is in slurm.conf", lambda: "NodeSet=cpu" in configuration(), 60)
            sim.call("PUT", "conf", configuration())
            workers, status = Pods(ns, WORKER, sim), Status(ns)
            until(f"{FEW} workers are ready", lambda: status.when(FEW), 120)
            many, up, down = arguments.workers, f"{FEW} to {arguments.workers}", f"{arguments.workers} to {FEW}"
            for run in range(arguments.runs):
                print(f"run {run + 1} of {arguments.runs}", flush=True)
                time.sleep(5)
                for before, count in ((FEW, many), (many, FEW)):
                    for name, seconds in measure(ns, sim, workers, status, before, count, arguments.timeout).items():
                        figures[name].append(seconds)
                created, ready, gone = floor(ns, many - FEW, arguments.timeout)
                for name, seconds in ((f"{up}: all pods created", created), (f"{up}: all pods Ready", ready), (f"{up}: ready in status", ready),
                                      (f"{down}: pods gone", gone), (f"{down}: ready in status", gone)):
                    floors[name].append(seconds)
            workers.close()
            status.watch.close()
            print("\n".join(figures_table(figures, floors, arguments.runs)))
        finally:
            # kwok must run until the pods have ended, so it is stopped last.
            kubectl("delete", "namespace", ns.name, "--wait=true", check=False, timeout=300)


if __name__ == "__main__":
    main()

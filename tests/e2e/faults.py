"""End-to-end tests of faults of Slurm, Kubernetes or the operator while jobs run. Each job leaves a proof of its end on the
machine, so the result does not depend on what Slurm remembers. run.py runs them."""

import contextlib
import http.server
import json
import os
import re
import shutil
import signal
import threading
import time
import urllib.parse

from cluster import TOP, AuditLog, Failed, Namespace, kubectl, process, standing_still, wait
from suite import (alone, demo_manifest, ends_well, expect, long, once, own_clusters, runs, serves, slurmctld_identity, state_is_written,
                   wait_for_partition, with_a_backup)

PROOFS = TOP / ".local/faults"
CONTROLLER, NODESET = "controllers.slinky.slurm.net", "nodesets.slinky.slurm.net"
BACKUP = "demo-controller-backup-0"


class Proofs:
    """The folder on this machine where the jobs of a cluster record that they began and ended, and where they find the request
    to end."""

    def __init__(self, ns):
        self.ns, self.path = ns, PROOFS / ns.name
        shutil.rmtree(self.path, ignore_errors=True)
        self.path.mkdir(parents=True)
        self.path.chmod(0o777)

    def added_to(self, manifest):
        """Mounts the folder at /proofs in the workers."""
        image = "    image: local/slurmd:${TAG}\n"
        return manifest.replace(image, f"{image}    volumeMounts: [{{name: proofs, mountPath: /proofs}}]\n") + (
            f"  template: {{spec: {{volumes: [{{name: proofs, hostPath: {{path: {self.path}}}}}]}}}}\n")

    @staticmethod
    def script(name, body):
        return f"echo begun >>/proofs/{name}; {body}; echo done >>/proofs/{name}"

    def submit(self, name, *options):
        """Submits a job that runs until end(name)."""
        return self.ns.submit(self.script(name, f"until test -e /proofs/{name}.told; do sleep 0.2; done"), "--no-requeue", *options)

    def end(self, name):
        (self.path / f"{name}.told").touch()

    def of(self, name):
        """Returns what the job has recorded, one word for each line."""
        file = self.path / name
        return file.read_text().split() if file.exists() else []

    def ends_well(self, name, job):
        """Tells the job to end, and expects that it ran once and that slurmctld knows its end."""
        expect(self.of(name) == ["begun"], f"{name} said {self.of(name)} before it was told to end")
        self.end(name)
        wait(f"{name} ends", lambda: self.of(name) == ["begun", "done"])
        ends_well(self.ns, job)


@contextlib.contextmanager
def a_cluster(name, tag, plugin, replicas=2, change=lambda manifest: manifest):
    """Creates a cluster like the demo's, waits until it is Ready, and yields it with the proofs of its jobs."""
    with Namespace(f"e2e-{name}-{tag.replace('.', '-')}", tag, plugin) as ns:
        proofs = Proofs(ns)
        ns.apply(proofs.added_to(change(demo_manifest())).replace("replicas: 3", f"replicas: {replicas}"))
        serves(ns, replicas)
        yield ns, proofs


def process_of(pod, name):
    """Returns the pid, on this machine, of the program of this name in a pod."""
    found = []
    for number in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{number}/comm", encoding="utf-8") as comm, open(f"/proc/{number}/cgroup", encoding="utf-8") as cgroup:
                if comm.read().strip() == name and pod["metadata"]["uid"] in cgroup.read():
                    found.append(int(number))
        except OSError:  # it has just ended
            continue
    if len(found) != 1:
        raise Failed(f"{len(found)} processes {name} are in {pod['metadata']['name']}")
    return found[0]


def uids(ns):
    """Returns the uids of all pods, which show whether a pod was created anew."""
    return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in ns.get("pods")}


def who_writes_the_heartbeat(ns, pod):
    """Returns the number of the slurmctld that serves. 0 is the primary."""
    state = ns.kubectl("exec", pod, "-c", "slurmctld", "--", "sh", "-c", "od -An -v -tx1 $(sed -n 's/^StateSaveLocation=//p' "
                       "/etc/slurm/slurm.conf)/heartbeat | tr -d ' \\n'", timeout=30).stdout
    return int(state[16:], 16)


@own_clusters
@long
def a_primary_that_stood_still_forgets_no_running_job(tag, plugin):
    """slurmctld's process is stopped until the backup has launched a job, and then continues with its old state. That job is
    ended, and other news of the backup is lost, which nobody can prevent: docs/reference/limits.md."""
    with a_cluster("still", tag, plugin, 2, with_a_backup) as (ns, proofs):
        ns.wait_condition(CONTROLLER, "demo", "BackupsReady", saying="demo-controller-0 is primary")
        job = runs(ns, proofs.submit("long", "-w", "cpu-0", "-n1", "--mem=10"))
        wait("its script runs", lambda: proofs.of("long") == ["begun"])
        # Clients of Slurm wait for the primary in the meantime, so the backup starts a job that was submitted before.
        late = proofs.submit("late", "-w", "cpu-1", "-n1", "--mem=10", "--begin=now+120")
        state_is_written(ns, late)
        expect(ns.jobs()[late]["job_state"] == ["PENDING"], "the primary has started what the backup is to start")
        before, began = uids(ns), time.monotonic()
        with standing_still(process_of(ns.get("pod", "demo-controller-0"), "slurmctld")):
            wait("the backup serves", lambda: who_writes_the_heartbeat(ns, BACKUP) == 1)
            print(f"        {tag}: the backup had taken over after {time.monotonic() - began:.1f} s", flush=True)
            # Waits only for the launch: the script may not run, because slurmd asks the stopped primary first.
            wait("the backup starts a job", lambda: f"Launching batch JobId={late} " in ns.kubectl("logs", "cpu-1", "-c", "slurmd").stdout, every=1)
            expect(proofs.of("long") == ["begun"], "the job that ran was ended")
        wait("the primary alone serves", lambda: all(
            who_writes_the_heartbeat(ns, BACKUP) == 0 and not time.sleep(1) for _ in range(5)), every=1)
        ns.wait_condition(CONTROLLER, "demo", "BackupsReady", saying="demo-controller-0 is primary")
        wait("Slurm knows its workers", lambda: set(ns.nodes()) == {"cpu-0", "cpu-1"})
        proofs.end("late")
        proofs.ends_well("long", job)
        print(f"        {tag}: the job of the backup is {dict(ns.fates([late]))}, and said {proofs.of('late')}", flush=True)
        ns.slurm("scancel", str(late), check=False)
        wait("2 idle", lambda: len(ns.idle()) == 2)
        after = ns.submit(proofs.script("after", "sleep 1"), "-n1", "--mem=10")
        wait("a job runs", lambda: proofs.of("after") == ["begun", "done"] and ns.completed(after))
        expect(uids(ns) == before, f"a pod was made anew: {uids(ns)}, not {before}")


def two_jobs(ns, proofs):
    """Starts a job on each of two workers, exclusively. Returns the job numbers by the names of the workers."""
    numbers = {worker: runs(ns, proofs.submit(worker, "-w", worker, "-N1", "--exclusive")) for worker in ("cpu-0", "cpu-1")}
    for worker in numbers:
        wait("its script runs", lambda worker=worker: proofs.of(worker) == ["begun"])
    return numbers


def all_end_well(ns, proofs, numbers):
    for worker, number in numbers.items():
        if proofs.of(worker) == ["begun"]:
            proofs.ends_well(worker, number)
        else:
            expect(proofs.of(worker) == ["begun", "done"], f"the job on {worker} said {proofs.of(worker)}")
            ends_well(ns, number)


def draining(ns):
    return {name for name, (states, _) in ns.nodes().items() if "DRAIN" in states}


def one_drains(ns):
    """Returns the name of the worker that drains, and of the one that stays."""
    (goes,) = wait("one worker drains", lambda: len(draining(ns)) == 1 and draining(ns))
    (stays,) = {"cpu-0", "cpu-1"} - {goes}
    return goes, stays


@own_clusters
@once
@alone
@long
def slurmctld_moves_to_another_kubernetes_node_under_jobs(tag, plugin):
    """The volume works on every Kubernetes node here, like a network volume. A volume on one machine would keep slurmctld on
    that machine."""
    with a_cluster("moves", tag, plugin) as (ns, proofs):
        numbers = {"cpu-0": runs(ns, proofs.submit("cpu-0", "-w", "cpu-0", "-N1", "--exclusive"))}
        waits = ns.submit(proofs.script("waits", "sleep 1"), "-w", "cpu-0", "-N1", "--exclusive")
        busy, idle = ns.get("pod", "cpu-0"), ns.get("pod", "cpu-1")
        home = lambda: ns.get("pod", "demo-controller-0")["spec"]["nodeName"]
        former = home()
        kubectl("cordon", former)
        try:
            ns.kubectl("delete", "pod", "demo-controller-0", "--wait=true")
            # The new worker cannot register, because there is no slurmctld.
            ns.kubectl("delete", "pod", "cpu-1", "--wait=false")
            wait("slurmctld is elsewhere", lambda: home() != former)
            ns.wait_condition(CONTROLLER, "demo")
        finally:
            kubectl("uncordon", former)
        wait("slurmctld knows the jobs", lambda: ns.fates([numbers["cpu-0"], waits]) == {("RUNNING", 0): 1, ("PENDING", 0): 1})
        wait("a worker registers there", lambda: ns.idle() == ["cpu-1"] and ns.get("pod", "cpu-1")["metadata"]["uid"] != idle["metadata"]["uid"])
        wait_for_partition(ns, "cpu", "cpu-1")
        expect(ns.slurm("srun", "-w", "cpu-1", "hostname").stdout.split() == ["cpu-1"], "no job runs on it")
        all_end_well(ns, proofs, numbers)
        wait("the job that waited runs to its end", lambda: proofs.of("waits") == ["begun", "done"])
        expect(ns.get("pod", "cpu-0")["metadata"]["uid"] == busy["metadata"]["uid"], "the busy worker was made anew under its job")
        wait("2 idle", lambda: len(ns.idle()) == 2)


@own_clusters
@long
def a_slurmctld_that_lost_its_volume_ends_no_script(tag, plugin):
    """slurmctld returns without its state and knows neither workers nor jobs, just when workers are to be scaled in."""
    with a_cluster("lost", tag, plugin) as (ns, proofs):
        two_jobs(ns, proofs)
        wait("it is seen that they are busy", lambda: all(
            "nodeset.slinky.slurm.net/pod-busy" in pod["metadata"]["labels"] for pod in ns.workers().values()))
        before, (_, restarts) = ns.workers(), slurmctld_identity(ns)
        # A killed slurmctld writes nothing. The shell ends with its container.
        ns.slurm("bash", "-c", "pkill -STOP -x slurmctld; find $(sed -n 's/^StateSaveLocation=//p' /etc/slurm/slurm.conf) -mindepth 1 -delete; "
                 "pkill -KILL -x slurmctld", check=False)
        wait("slurmctld has begun anew", lambda: slurmctld_identity(ns)[1] > restarts and not ns.jobs())
        ns.wait_condition(NODESET, "cpu", "DeletionsStopped", saying="SlurmInDoubt")
        ns.scale("cpu", 1)
        ns.wait_condition(NODESET, "cpu", "Degraded", saying="SlurmStateLost", timeout=900)
        alike = lambda: {name: pod["metadata"]["uid"] for name, pod in ns.workers().items()} == {
            name: pod["metadata"]["uid"] for name, pod in before.items()}
        expect(alike(), "a worker was deleted that a slurmctld without state does not know")
        for worker in before:
            expect(proofs.of(worker) == ["begun"], f"the script on {worker} was ended: {proofs.of(worker)}")
            proofs.end(worker)
        for worker in before:
            wait("the script runs to its end", lambda worker=worker: proofs.of(worker) == ["begun", "done"])
        expect(alike(), "a worker was deleted that a slurmctld without state does not know")
        ns.scale("cpu", 2)
        # The second worker may be reported as missing a second later.
        told = ns.wait_condition(NODESET, "cpu", "Degraded", saying="SlurmStateLost")
        at = re.search(r"confirm-state-loss[=: ]+\"?([0-9TZ:.+-]+[0-9Z])", told["message"])
        expect(at, f"the message names no time: {told['message']}")
        ns.kubectl("annotate", NODESET, "cpu", f"nodeset.slinky.slurm.net/confirm-state-loss={at[1]}")
        wait("its workers are replaced, and idle", lambda: len(ns.idle()) == 2 and not set(
            pod["metadata"]["uid"] for pod in ns.workers().values()) & {pod["metadata"]["uid"] for pod in before.values()})
        ns.wait_condition(NODESET, "cpu")
        ns.wait_condition(NODESET, "cpu", "Degraded", "False")
        wait("a job runs", lambda: ns.slurm("srun", "hostname").stdout.startswith("cpu-"))


OPERATOR = ("-n", "slurm-operator")


def leader():
    """Returns the name of the operator's pod that has the Lease."""
    return kubectl(*OPERATOR, "get", "lease", "slurm-operator", "-o", "jsonpath={.spec.holderIdentity}").stdout.split("_")[0]


@own_clusters
@once
@alone
@long
def an_operator_that_stood_still_writes_nothing_more(tag, plugin):
    """There are two operators. The leader is stopped while it drains a worker under a job, and continues after the other one
    has become the leader."""
    scale = lambda replicas: kubectl(*OPERATOR, "scale", "deployment/slurm-operator", f"--replicas={replicas}")
    rolled_out = lambda: kubectl(*OPERATOR, "rollout", "status", "deployment/slurm-operator", "--timeout=300s")
    with a_cluster("leaders", tag, plugin) as (ns, proofs):
        numbers = two_jobs(ns, proofs)
        scale(2)
        try:
            rolled_out()
            first, written = leader(), AuditLog()
            pod = json.loads(kubectl(*OPERATOR, "get", "pod", first, "-o", "json").stdout)
            ns.scale("cpu", 1)
            goes, stays = one_drains(ns)
            with standing_still(process_of(pod, "slurm-operator")):
                wait("the other one leads", lambda: leader() not in ("", first))
                since = kubectl(*OPERATOR, "get", "lease", "slurm-operator", "-o", "jsonpath={.spec.acquireTime}").stdout
            expect(draining(ns) == {goes}, f"these drain: {draining(ns)}, not {goes}")
            time.sleep(15)
            expect(len(ns.workers()) == 2, "a worker went under its job")
            proofs.ends_well(goes, numbers.pop(goes))
            wait("the worker goes after its job", lambda: list(ns.workers()) == [stays])
            ns.scale("cpu", 2)
            wait("another one comes", lambda: ns.idle() == [goes])
            all_end_well(ns, proofs, numbers)
            wait("2 idle", lambda: len(ns.idle()) == 2)
            by = lambda event: event["user"].get("extra", {}).get("authentication.kubernetes.io/pod-name", [""])[0]
            its = [event for event in written.writes() if by(event) == first]
            # Compares the times that the API server recorded: both are in microseconds.
            late = [(event["verb"], event["objectRef"]["resource"], event["objectRef"].get("name")) for event in its
                    if event["requestReceivedTimestamp"] > since and event["objectRef"]["resource"] != "leases"]
            expect(any(event["requestReceivedTimestamp"] < since for event in its), "the audit log does not tell who wrote")
            expect(not late, f"the operator that had lost the Lease wrote {late}")
        finally:
            scale(1)
            rolled_out()


class Answers(http.server.ThreadingHTTPServer):
    """Takes the place of slurmrestd at the Service of that name, and answers every request in the same way."""

    def __init__(self, ns):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):  # pylint: disable=invalid-name
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                if self.server.answer is None:
                    # Without this, clients that keep their connection would still get answers.
                    self.close_connection = True
                    return
                code, text = self.server.answer
                self.server.asked += 1
                self.send_response(code)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text.encode())

            do_POST = do_DELETE = do_GET

            def log_message(self, *_):
                pass

        self.answer, self.asked = (500, ""), 0
        address = urllib.parse.urlparse(json.loads(
            kubectl("config", "view", "--raw", "-o", "json").stdout)["clusters"][0]["cluster"]["server"]).hostname
        super().__init__((address, 0), Handler)
        self.slice = f"""
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{name: answers, labels: {{kubernetes.io/service-name: demo-restapi}}}}
addressType: IPv4
ports: [{{name: slurmrestd, port: {self.server_address[1]}, protocol: TCP}}]
endpoints: [{{addresses: [{address}], conditions: {{ready: true}}}}]
"""
        self.ns = ns

    def __enter__(self):
        threading.Thread(target=self.serve_forever, daemon=True).start()
        self.ns.apply(self.slice)
        return self

    def __exit__(self, kind, error, trace):
        self.ns.kubectl("delete", "endpointslice", "answers", check=False)
        self.answer = None
        self.shutdown()
        self.server_close()


NO_ANSWERS = {
    "garbage": (200, '{"nodes": [{"name": "cpu-0", "state": [\x00'),
    "errors": (200, '{"jobs": [], "nodes": [], "last_update": {"set": true, "infinite": false, "number": 1}, "meta": {}, "warnings": [], '
                    '"errors": [{"error_number": 1007, "error": "Protocol authentication error", "description": "test", "source": "test"}]}'),
    "a page of a proxy": (200, "<html><body>Please log in</body></html>"),
    "no error's text": (500, ""),
}


@own_clusters
@long
def answers_that_are_none_delete_nothing(tag, plugin):
    """slurmrestd is stopped, and then another program answers in its place, while a NodeSet is scaled in and jobs run."""
    with a_cluster("answers", tag, plugin) as (ns, proofs):
        numbers = two_jobs(ns, proofs)
        before = {name: pod["metadata"]["uid"] for name, pod in ns.workers().items()}
        alike = lambda: {name: pod["metadata"]["uid"] for name, pod in ns.workers().items()} == before
        (rest,) = ns.get("pods", labelSelector="app.kubernetes.io/name=slurmrestd")
        with standing_still(process_of(rest, "slurmrestd")):
            ns.scale("cpu", 0)
            ns.wait_condition(NODESET, "cpu", "Progressing", saying="waiting for Slurm")
            time.sleep(40)
            expect(alike() and not draining(ns), "a worker was drained or deleted while Slurm did not answer")
        wait("it goes on, and drains", lambda: draining(ns) == {"cpu-0", "cpu-1"})
        ns.scale("cpu", 2)
        wait("none drains", lambda: not draining(ns))
        ns.patch("restapis.slinky.slurm.net", "demo", {"spec": {"replicas": 0}})
        wait("no slurmrestd is left", lambda: not ns.get("pods", labelSelector="app.kubernetes.io/name=slurmrestd"))
        with Answers(ns) as answers:
            for what, answer in NO_ANSWERS.items():
                answers.answer, asked = answer, answers.asked
                wait(f"the operator was answered {what}", lambda asked=asked: answers.asked > asked + 3)
                ns.scale("cpu", 0)
                ns.wait_condition(NODESET, "cpu", "Progressing", saying="waiting for Slurm: /openapi/v3")
                ns.wait_condition(NODESET, "cpu", "Degraded", saying="SlurmUnreadable")
                time.sleep(10)
                expect(alike() and not draining(ns), f"a worker was drained or deleted on {what}")
                ns.scale("cpu", 2)
            ns.scale("cpu", 1)
        ns.patch("restapis.slinky.slurm.net", "demo", {"spec": {"replicas": 1}})
        goes, stays = one_drains(ns)
        expect(alike(), "a worker went under its job")
        proofs.ends_well(goes, numbers.pop(goes))
        wait("it goes after its job", lambda: list(ns.workers()) == [stays])
        all_end_well(ns, proofs, numbers)
        ns.wait_condition(NODESET, "cpu")
        ns.wait_condition(NODESET, "cpu", "Degraded", "False")


@own_clusters
@once
@alone
@long
def a_kubelet_that_is_killed_costs_no_job(tag, plugin):
    """The kubelet is stopped for ten minutes and then killed. The cluster's scripts start another one at once, so it cannot
    stay dead for long."""
    with a_cluster("kubelet", tag, plugin) as (ns, proofs):
        numbers = two_jobs(ns, proofs)
        taken = {pod["spec"]["nodeName"] for pod in ns.get("pods") if not pod["metadata"]["name"].startswith("cpu-")} | {
            pod["spec"]["nodeName"] for pod in json.loads(kubectl(*OPERATOR, "get", "pods", "-o", "json").stdout)["items"]}
        worker = next((name for name, pod in ns.workers().items() if pod["spec"]["nodeName"] not in taken), "cpu-1")
        before, pod = uids(ns), ns.get("pod", worker)
        node = pod["spec"]["nodeName"]
        ready = lambda: next(c["status"] for c in json.loads(kubectl("get", "node", node, "-o", "json").stdout)["status"]["conditions"]
                             if c["type"] == "Ready")
        pid = process("kubelet", node)
        os.kill(pid, signal.SIGSTOP)
        try:
            wait("its node is given up", lambda: ready() == "Unknown")
            time.sleep(600)
            expect(proofs.of(worker) == ["begun"] and ns.fates(numbers.values()) == {("RUNNING", 0): 2}, "a job did not go on")
        finally:
            os.kill(pid, signal.SIGKILL)
        wait("another kubelet reports", lambda: process("kubelet", node) != pid and ready() == "True")
        expect(ns.fates(numbers.values()) == {("RUNNING", 0): 2}, f"the jobs are {ns.fates(numbers.values())}")
        all_end_well(ns, proofs, numbers)
        expect(uids(ns)[worker] == before[worker], "the worker was made anew")
        wait("2 idle", lambda: len(ns.idle()) == 2)


@own_clusters
@once
@alone
@long
def an_api_server_that_stands_still_costs_no_job(tag, plugin):
    """The watches of the API server stall for 40 s while a worker is scaled in and its job ends. They are cut when the API
    server is killed in the next scale-in."""
    with a_cluster("stalls", tag, plugin) as (ns, proofs):
        numbers = two_jobs(ns, proofs)
        ns.scale("cpu", 1)
        goes, stays = one_drains(ns)
        with standing_still(process("kube-apiserver")):
            time.sleep(20)
            expect(proofs.of(goes) == ["begun"], "its job was ended")
            proofs.end(goes)
            wait("its job ends", lambda: proofs.of(goes) == ["begun", "done"])
            time.sleep(20)
        wait("the worker goes after its job", lambda: list(ns.workers()) == [stays])
        expect(ns.fates(numbers.values()) == {("RUNNING", 0): 1, ("COMPLETED", 0): 1}, f"the jobs are {ns.fates(numbers.values())}")
        ns.scale("cpu", 2)
        wait("another one comes", lambda: ns.idle() == [goes])
        numbers.pop(goes)
        numbers["again"] = runs(ns, proofs.submit("again", "-w", goes, "-N1", "--exclusive"))
        wait("its script runs", lambda: proofs.of("again") == ["begun"])
        ns.scale("cpu", 1)
        goes, stays = one_drains(ns)
        os.kill(process("kube-apiserver"), signal.SIGKILL)
        wait("the API server is back", lambda: list(ns.workers()))
        expect(len(ns.workers()) == 2, "the worker went under its job")
        time.sleep(10)
        expect(len(ns.workers()) == 2, "the worker went under its job")
        all_end_well(ns, proofs, numbers)
        wait("it goes after its job", lambda: list(ns.workers()) == [stays])
        ns.wait_condition(NODESET, "cpu")

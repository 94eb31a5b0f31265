#!/usr/bin/env python3
"""Times what users wait for, on the local cluster with the operator installed. Prints the median and the worst of --runs, and
the median of the floor: how long kubectl alone takes to make the same pods Ready, or to delete them (see bare_copy and
whole_copy). Each run measures its floor as well. The benchmarks update, node, config and evict look only at pods and at
Slurm, so they can time any installed operator of slinky.slurm.net/v1beta1.
Usage: cluster.py [--runs 5] [--rest 600] [--away 300] [--slurm 26.05] [NAME...]"""

import argparse
import base64
import collections
import concurrent.futures
import contextlib
import http.client
import itertools
import json
import math
import pathlib
import random
import re
import secrets
import socket
import ssl
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request

BENCH = pathlib.Path(__file__).resolve().parent
# A module named cluster is in both folders, and the one of tests/e2e is meant.
sys.path[:0] = [str(BENCH.parent / "tests/e2e"), str(BENCH)]
import accounting  # noqa: E402
import bridge  # noqa: E402
import governance  # noqa: E402
import scale  # noqa: E402
import suite  # noqa: E402
from measure import Stream, note, note_floor, print_figures  # noqa: E402
from cluster import (ENV, TOP, AuditLog, Failed, Namespace, api, cgroup_plugin, condition_of, demo_manifest,  # noqa: E402
                     kubectl, run as run_command, slurm_releases, wait)

NODESET = "nodesets.slinky.slurm.net"
CONTROLLER = "controllers.slinky.slurm.net"
ACCOUNTING = "accountings.slinky.slurm.net"
RESTAPI = "restapis.slinky.slurm.net"
WORKERS = "app.kubernetes.io/name=slurmd"


class MetadataWatch(Stream):
    """Watches the metadata of the pods of a namespace: lines "TYPE,NAME,DELETIONTIMESTAMP". kubectl would take a third of a core
    while hundreds of pods change, in which the API server could serve."""

    def __init__(self, namespace):
        self.lines, self.connection = [], http.client.HTTPConnection("127.0.0.1", api().port)
        version = api().get(f"/api/v1/namespaces/{namespace}/pods?limit=1")[1]["metadata"]["resourceVersion"]
        self.connection.request("GET", f"/api/v1/namespaces/{namespace}/pods?watch=1&resourceVersion={version}",
                                headers={"Accept": "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"})
        self.answer = self.connection.getresponse()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _ended(self):
        return not self.reader.is_alive()

    def _read(self):
        for line in self.answer:
            if not line.endswith(b"\n"):
                return  # __exit__ has cut the connection within a line.
            at, event = time.monotonic(), json.loads(line)
            metadata = event["object"]["metadata"]
            self.lines.append((at, f"{event['type']},{metadata['name']},{metadata.get('deletionTimestamp', '')}"))

    def __exit__(self, *_):
        self.connection.sock.shutdown(socket.SHUT_RDWR)


def in_slurmctld(ns, script):
    """Returns a stream of what a script prints in slurmctld's container."""
    return Stream("kubectl", "-n", ns.name, "exec", "demo-controller-0", "-c", "slurmctld", "--", "bash", "-c", script)


def sinfo(ns):
    """Returns a stream of the number of idle, usable nodes of the NodeSet cpu, as sinfo shows it ten times a second."""
    count = "sinfo -h -p cpu -t idle -o '%D %T' 2>/dev/null | awk '$2==\"idle\"{n=$1} END{print n+0}'"
    return in_slurmctld(ns, f"while :; do {count}; sleep 0.1; done")


def first_sinfo(ns, wanted, since):
    """Returns what sinfo().first returns, even if slurmctld does not run yet."""
    while time.monotonic() < since + 120:
        with sinfo(ns) as stream:
            at = stream.first(lambda line: line == str(wanted), since)
            if at:
                return at
        time.sleep(0.05)
    raise Failed(f"{wanted} nodes were not idle in time")


def watch_ready(ns):
    path = "{.status.readyReplicas}/{.status.replicas}/{.status.desired} {.status.conditions[?(@.type==\"Ready\")].status}{\"\\n\"}"
    return Stream("kubectl", "-n", ns.name, "get", NODESET, "cpu", "-w", "-o", f"jsonpath={path}")


def is_ready(count):
    return lambda line: line == f"{count}/{count}/{count} True"


class Gone:
    """Watches the worker pods and measures when only some are left. Uses one watch, because polling with kubectl would take a
    CPU core from the kubelets."""

    def __init__(self, ns, count):
        names = ns.kubectl("get", "pods", "-l", WORKERS, "-o", "name").stdout.split()
        self.excess = len(names) - count
        self.watch = Stream("kubectl", "-n", ns.name, "get", "pods", "-l", WORKERS, "--watch-only", "--output-watch-events", "-o",
                            "jsonpath={.type} {.object.metadata.name}{\"\\n\"}")
        time.sleep(0.5)

    def after(self, since):
        """Returns the seconds from `since` until the last of them was gone."""
        names = set()
        self.watch.first(lambda line: line.startswith("DELETED") and not names.add(line) and len(names) == self.excess, 0)
        return max(at for at, line in self.watch.lines if line in names) - since

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.watch.__exit__()


def bare_copy(pod, name):
    """Returns a copy of the worker's pod, with init container, probes and preStop hook. The init container waits for slurmctld,
    and the preStop hook uses the name of its own host. The copy lacks the owner and the labels, because the operator would take
    it for one of its workers. So the workers' Service does not know its name, and slurmctld uses the address from which the
    slurmd registers. It also lacks the host name and Kubernetes node of the original."""
    spec = {key: value for key, value in pod["spec"].items() if key not in ("nodeName", "hostname")}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"bench": "floor"}}, "spec": spec}


def floor(ns, count):
    """Returns the times that kubectl alone needs to make `count` such pods Ready and to delete them, in a namespace with a
    Ready cluster."""
    pod = ns.get("pod", "cpu-0")
    items = [bare_copy(pod, f"floor-{i}") for i in range(count)]
    start = time.monotonic()
    ns.kubectl("create", "-f", "-", text=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    ns.kubectl("wait", "--for=condition=Ready", "pod", "-l", "bench=floor", "--timeout=120s")
    made = time.monotonic() - start
    start = time.monotonic()
    ns.kubectl("delete", "pod", "-l", "bench=floor", "--wait=true")
    deleted = time.monotonic() - start
    # The slurmds of these pods registered, and the operator does not delete the records.
    ns.slurm("scontrol", "delete", f"nodename=floor-[0-{count - 1}]", check=False)
    wait("the floor's records are gone", lambda: not any(name.startswith("floor-") for name in ns.nodes()), 30)
    return made, deleted


# Objects that the operator did not make: Kubernetes made them, or both namespaces have them before the cluster.
FOREIGN = ("kube-root-ca.crt", "mariadb", "mariadb-password", "ldap")


def whole_copy(ns, to):
    """Returns all objects that the operator made for a Ready cluster, so that kubectl alone can apply them in the namespace
    `to`: keys, configuration, Services, the StatefulSets of slurmctld and slurmdbd, slurmrestd's Deployment and the workers'
    pods. Owners are left out, and the workers' labels as in bare_copy."""
    items = []
    for kind in ("secrets", "configmaps", "services", "statefulsets", "deployments"):
        items += [item for item in ns.get(kind) if item["metadata"]["name"] not in FOREIGN]
    for item in items:
        item["metadata"] = {key: item["metadata"][key] for key in ("name", "labels") if key in item["metadata"]}
        item.pop("status", None)
        if item["kind"] == "Service" and item["spec"].get("clusterIP") != "None":
            item["spec"] = {key: value for key, value in item["spec"].items() if key not in ("clusterIP", "clusterIPs")}
    for name, pod in ns.workers().items():
        spec = {key: value for key, value in pod["spec"].items() if key != "nodeName"}
        items.append({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"bench": "floor"}}, "spec": spec})
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items}).replace(ns.name, to)


def floor_of_all(ns, prepare=lambda ns: None):
    """Returns the times that kubectl alone needs until as many workers are idle in sinfo, and until all pods are Ready.
    `prepare` creates what must exist before."""
    count = len(ns.workers())
    with Namespace(f"floor-{ns.name}", ns.tag) as bare:
        prepare(bare)
        everything = whole_copy(ns, bare.name)
        start = time.monotonic()
        bare.kubectl("apply", "-f", "-", text=everything)
        idle = first_sinfo(bare, count, start) - start
        bare.kubectl("wait", "--for=condition=Ready", "pod", "--all", "--timeout=120s")
        return idle, time.monotonic() - start


def settle(ns, count):
    wait(f"{count} idle", lambda: len(ns.idle()) == count, 120)
    ns.wait_condition(NODESET, "cpu")


def bench_apply(tag, plugin, runs):
    for run in range(runs):
        with Namespace(f"bench-apply-{run}", tag, plugin) as ns:
            with Stream("kubectl", "-n", ns.name, "get", NODESET, "-w", "-o",
                        "jsonpath={.status.readyReplicas} {.status.conditions[?(@.type==\"Ready\")].status}{\"\\n\"}") as status:
                start = time.monotonic()
                ns.apply(demo_manifest())
                note("apply to 3 idle in sinfo", first_sinfo(ns, 3, start) - start)
                note("apply to NodeSet ready in its status", status.first(lambda line: line == "3 True", start) - start)
            settle(ns, 3)
            idle, ready = floor_of_all(ns)
            note_floor(idle, "apply to 3 idle in sinfo")
            note_floor(ready, "apply to NodeSet ready in its status")
        wait("the namespace is gone", lambda ns=ns: kubectl("get", "ns", ns.name, check=False).returncode != 0, 120)


def with_database(ns):
    """Creates a MariaDB for the Accounting of the demo, and waits until it is available."""
    accounting.secret(ns, accounting.PASSWORD)
    ns.apply(accounting.manifests()[0])
    ns.kubectl("wait", "--for=condition=Available", "deployment/mariadb", "--timeout=120s")


def operator_memory():
    return memory_of("slurm-operator")


def memory_of(program):
    """Returns the memory of each process of the program, in MiB."""
    out = []
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # It has just ended.
            if (path / "comm").read_text().strip() == program:
                out += [int(kib) / 1024 for kib in re.findall(r"^VmRSS:\s*(\d+)", (path / "status").read_text(), re.M)]
    return out


@contextlib.contextmanager
def watch_each(ns, *kinds):
    """Yields a stream for each kind: whether the only object of the kind is Ready. For KIND/NAME: whether that object is."""
    def selected(kind):
        kind, _, name = kind.partition("/")
        return [kind, *([f"--field-selector=metadata.name={name}"] if name else [])]

    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(Stream("kubectl", "-n", ns.name, "get", *selected(kind), "-w", "-o",
                                          "jsonpath={.status.conditions[?(@.type==\"Ready\")].status}{\"\\n\"}")) for kind in kinds]


def ready_since(stream):
    """Returns since when the object has been Ready. LookupError: it is not."""
    lines = list(stream.lines)
    began = next((i for i in range(len(lines), 0, -1) if lines[i - 1][1] != "True"), 0)
    return lines[began][0]


def all_ready(streams, timeout=300):
    """Waits until all are Ready, and returns when the last of them became Ready."""
    return wait("all are Ready", lambda: max(map(ready_since, streams)), timeout, every=0.02)


def bench_accounting(tag, plugin, runs):
    """Times a cluster with accounting whose MariaDB runs, and a cluster that joins and leaves accounting while jobs run."""
    accounting.database_image()
    what = "apply with accounting to"
    both = accounting.manifest_with_accounting("demo", 3) + "---\n" + accounting.manifests()[1]
    for run in range(runs):
        with Namespace(f"bench-accounting-{run}", tag, plugin) as ns:
            with_database(ns)
            with watch_each(ns, ACCOUNTING, CONTROLLER, RESTAPI, NODESET) as streams:
                start = time.monotonic()
                ns.apply(both)
                note(f"{what} 3 idle in sinfo", first_sinfo(ns, 3, start) - start)
                note(f"{what} all Ready in their status", all_ready(streams) - start)
            settle(ns, 3)
            accounting.joined(ns)
            time.sleep(10)
            note("the operator with this cluster, MiB", max(operator_memory()))
            idle, ready = floor_of_all(ns, with_database)
            note_floor(idle, f"{what} 3 idle in sinfo")
            note_floor(ready, f"{what} all Ready in their status")
        wait("the namespace is gone", lambda ns=ns: kubectl("get", "ns", ns.name, check=False).returncode != 0, 300)
    with Namespace("bench-joins", tag, plugin) as ns:
        with_database(ns)
        ns.apply(suite.demo_manifest())
        settle(ns, 3)
        for _ in range(runs):
            bench_joins(ns)


def bench_joins(ns):
    """Times adding and removing accounting while jobs begin, run, end and wait."""
    jobs = [ns.submit_until_told(*accounting.SMALL)]
    held = ns.submit("true", "--hold", *accounting.SMALL)
    some = lambda: jobs.extend(ns.submit_many(60, "sleep 2", *accounting.SMALL))
    some()
    before = suite.slurmctld_identity(ns)
    start = time.monotonic()
    ns.apply(accounting.manifests()[1])
    ns.patch(CONTROLLER, "demo", {"spec": {"accountingRef": {"name": "demo"}}})
    ns.wait_condition(CONTROLLER, "demo", "AccountingJoined")
    note("accounting added to a running cluster: slurmctld is with it", time.monotonic() - start)
    accounting.joined(ns)
    some()
    start, with_it = time.monotonic(), suite.slurmctld_identity(ns)
    ns.patch(CONTROLLER, "demo", {"spec": {"accountingRef": None}})
    wait("slurmctld is another", lambda: suite.slurmctld_identity(ns)[0] != with_it[0])
    ns.wait_condition(CONTROLLER, "demo", "Reconfigured")
    ns.wait_condition(CONTROLLER, "demo")
    note("accounting taken away: slurmctld is without it", time.monotonic() - start)
    ns.kubectl("delete", ACCOUNTING, "demo", "--wait=true")
    ns.slurm("scontrol", "release", str(held))
    jobs.append(held)
    well = lambda: ns.fates(jobs)[("COMPLETED", 0)]
    try:
        ns.told(jobs[0])
        wait("all jobs end well", lambda: well() == len(jobs))
    except Failed:
        print(f"    {ns.fates(jobs)}", flush=True)
    note(f"number of jobs lost while accounting joins and leaves, of {len(jobs)}", len(jobs) - well())
    restarts = len({before[0], with_it[0], suite.slurmctld_identity(ns)[0]}) - 1
    note("number of slurmctld's restarts for both", restarts + with_it[1] + suite.slurmctld_identity(ns)[1])


def bench_records(tag, plugin, seconds, count=200):
    """Stops slurmdbd for so many seconds while ten batches of short jobs begin and end. A record counts as lost if it is
    missing once slurmdbd is back, or if it differs from what slurmctld says about the end of the job."""
    accounting.database_image()
    what, batches = f"slurmdbd away for {seconds} s", 10
    with Namespace("bench-records", tag, plugin) as ns:
        # slurmctld must know the ends of all jobs when it is asked at the end.
        ns.apply(accounting.manifest_with_accounting("demo", 3).replace("MinJobAge=900", f"MinJobAge={seconds + 1800}"))
        ns.kubectl("apply", "-f", "-", text=json.dumps(accounting.managed("demo", tag)))
        accounting.joined(ns)
        settle(ns, 3)
        accounting.keep_away(ns, True)
        ns.wait_condition(CONTROLLER, "demo", "AccountingJoined", "False", saying="AccountingAway")
        gone, jobs = time.monotonic(), []
        for batch in range(1, batches + 1):
            jobs += ns.submit_many(count // batches, "sleep 1", *accounting.SMALL)
            time.sleep(max(0, gone + batch * seconds / batches - time.monotonic()))
        ended = wait("all have ended", lambda: accounting.fates(ns, jobs))
        back, found = time.monotonic(), []
        accounting.keep_away(ns, False)
        accounting.joined(ns)
        note(f"{what}: Ready again after its return", time.monotonic() - back)

        def all_there():
            found[:] = accounting.records(ns, jobs)
            return found == ended

        try:
            wait("all records are there", all_there)
            note(f"{what}: all records there after its return", time.monotonic() - back)
        except Failed:
            print(f"    slurmctld and slurmdbd differ: {sorted(set(ended) ^ set(found))[:6]}", flush=True)
        note(f"number of records lost of {len(jobs)} jobs, {what}", len(set(ended) - set(found)))
        note(f"number of records too many, {what}", len(found) - len(set(found) & set(ended)))
        accounting.no_runaway_jobs(ns)


# The number of QOS, of accounts and of users, and the number of changes that the operator must revert.
ENTITIES, DRIFTS = 200, 100
KINDS = (governance.QOS, governance.ACCOUNT, governance.USER)

# The same entities created by sacctmgr, with names that begin with s, and their deletion.
BY_SACCTMGR = """
for ((i = 0; i < {count}; i++)); do
  sacctmgr --immediate --quiet add qos s-q-$i Priority=10 MaxJobsPerUser=3
  sacctmgr --immediate --quiet add account s-a-$i Fairshare=10 QOS=s-q-$i DefaultQOS=s-q-$i GrpJobs=20
  sacctmgr --immediate --quiet add user s-u-$i account=s-a-$i MaxJobs=4
done
"""
DELETED_BY_SACCTMGR = """
names() {{ seq -s, -f "s-$1-%.0f" 0 $(({count} - 1)); }}
for one in user:u account:a qos:q; do sacctmgr --immediate --quiet delete "${{one%:*}}" "$(names "${{one#*:}}")"; done
"""

# Changes a value of a QOS, an account and a user in turn. Prints the milliseconds until sacctmgr shows the declared value
# again, or "never".
DRIFT = """
shows() { sacctmgr --noheader --parsable2 show "$@" 2>/dev/null; }
for ((n = 0; n < COUNT; n++)); do
  sleep 0.$((RANDOM % 10))$((RANDOM % 10))
  i=$((n / 3))
  case $((n % 3)) in
    0) sacctmgr --immediate --quiet modify qos d-q-$i set MaxJobsPerUser=99; what="qos d-q-$i format=name,maxjobspu" wanted="d-q-$i|3" ;;
    1) sacctmgr --immediate --quiet modify account d-a-$i set GrpJobs=99; what="association account=d-a-$i format=user,grpjobs" wanted="|20" ;;
    2) sacctmgr --immediate --quiet modify user d-u-$i set MaxJobs=99; what="association account=d-a-$i format=user,maxjobs" wanted="d-u-$i|4" ;;
  esac >/dev/null
  began=${EPOCHREALTIME/./} took=never
  while ((${EPOCHREALTIME/./} - began < 60000000)); do
    if grep -qxF "$wanted" <<<"$(shows $what)"; then
      took=$(((${EPOCHREALTIME/./} - began) / 1000))
      break
    fi
  done
  echo $took
done
"""


def entities():
    """Returns all manifests in the wrong order: the users come first, although Slurm needs them last."""
    out = []
    for i in range(ENTITIES):
        qos, account, user = f"d-q-{i}", f"d-a-{i}", f"d-u-{i}"
        out.append(governance.user(user, {"account": account, "limits": {"maxJobs": 4}}))
        out.append(governance.account(account, fairShare=10, qos=[qos], defaultQOS=qos, limits={"grpJobs": 20}))
        out.append(governance.qos(qos, priority=10, limits={"maxJobsPerUser": 3}))
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": sorted(out, key=lambda item: item["kind"], reverse=True)})


def percentile(values, percent):
    """Returns the smallest value that is not exceeded by this percentage of the values."""
    return sorted(values)[max(0, math.ceil(len(values) * percent / 100) - 1)]


def steps_of_governance():
    """Returns how many steps the governance controller has carried out in all operators, according to their metrics."""
    total = 0
    pods = kubectl("-n", "slurm-operator", "get", "pods", "-l", "app.kubernetes.io/name=slurm-operator", "-o", "json").stdout
    for pod in json.loads(pods)["items"]:
        with urllib.request.urlopen(f"http://{pod['status']['podIP']}:8080/metrics", timeout=30) as answer:
            text = answer.read().decode()
        total += sum(float(value) for value in re.findall(r'^slurm_operator_steps_total{controller="governance",[^}]*} (\S+)', text, re.M))
    return int(total)


def requests_to_slurmrestd(ns, seconds):
    """Returns the requests of the last seconds in slurmrestd's log: (method, path) -> number."""
    out = ns.kubectl("logs", "-l", "app.kubernetes.io/name=slurmrestd", "-c", "slurmrestd", "--tail=-1", f"--since={seconds}s").stdout
    found = collections.Counter(re.findall(r"\] (GET|POST|PUT|PATCH|DELETE) (/[^\s?]*)", out))
    if not found:
        raise Failed(f"slurmrestd's log has no requests of the last {seconds} s")
    return found


def all_are_ready(ns):
    return all(len(items) == ENTITIES and all((condition_of(item, "Ready") or {}).get("status") == "True" for item in items)
               for items in map(ns.get, KINDS))


def bench_governance(tag, plugin, runs, rest):
    """Times QOS, accounts and users: declared, and created by a script of sacctmgr calls in the same cluster. Also times the
    repair of drift and a changed limit, and counts requests at rest."""
    accounting.database_image()
    what = f"{3 * ENTITIES} QOS, accounts and users"
    with Namespace("bench-governance", tag, plugin) as ns:
        ns.apply(accounting.manifest_with_accounting("demo", 1))
        ns.kubectl("apply", "-f", "-", text=json.dumps(accounting.managed("demo", tag)))
        accounting.joined(ns)
        suite.serves(ns, 1)
        for run in range(runs):
            start = time.monotonic()
            ns.kubectl("apply", "-f", "-", text=entities())
            print(f"      of which kubectl took {time.monotonic() - start:.1f} s", flush=True)
            wait("all are Ready", lambda: all_are_ready(ns), 600)
            note(f"{what}: kubectl apply until all are Ready", time.monotonic() - start)
            start = time.monotonic()
            ns.slurm("bash", "-c", BY_SACCTMGR.format(count=ENTITIES), timeout=600)
            note(f"{what}: a script of as many sacctmgr calls", time.monotonic() - start)
            made = [int(ns.slurm("bash", "-c", f"sacctmgr --noheader --parsable2 show {entity} format={field} | grep -c '^s-'").stdout)
                    for entity, field in (("qos", "name"), ("account", "account"), ("user", "user"))]
            suite.expect(made == [ENTITIES] * 3, f"the script has made {made}")
            ns.slurm("bash", "-c", DELETED_BY_SACCTMGR.format(count=ENTITIES), timeout=600)
            if run < runs - 1:
                start = time.monotonic()
                ns.kubectl("delete", ",".join(KINDS), "--all", "--wait=true", timeout=600)
                note(f"{what}: kubectl delete until all are gone", time.monotonic() - start)
        wait("all are Ready", lambda: all_are_ready(ns))
        bench_drift(ns)
        bench_changed_limit(ns, 20)
        # slurmrestd does not log requests with the operator's default.
        ns.patch(RESTAPI, "demo", {"spec": {"slurmrestd": {"env": [{"name": "SLURMRESTD_DEBUG", "value": "info"}]}}})
        ns.wait_condition(RESTAPI, "demo")
        wait("the slurmrestd before is gone", lambda: len(ns.get("pods", labelSelector="app.kubernetes.io/name=slurmrestd")) == 1)
        wait("all are Ready", lambda: all_are_ready(ns))
        time.sleep(10)
        before = steps_of_governance()
        time.sleep(rest)
        found = requests_to_slurmrestd(ns, rest)
        count = lambda reads, of="/": sum(n for (method, path), n in found.items() if (method == "GET") == reads and path.startswith(of))
        note(f"number of reads of slurmdbd in a minute at rest, {what}", count(True, "/slurmdb/") * 60 / rest)
        note("number of reads of slurmctld in a minute at rest", count(True, "/slurm/") * 60 / rest)
        note(f"number of writes to slurmrestd in {rest} s at rest", count(False))
        note(f"number of steps of the controller in {rest} s at rest", steps_of_governance() - before)
        for (method, path), n in found.most_common():
            print(f"      {method} {path}: {n * 60 / rest:.1f} a minute", flush=True)
        note(f"the operator with {what}, MiB", max(operator_memory()))


def bench_drift(ns):
    out = ns.slurm("bash", "-c", f"COUNT={DRIFTS}{DRIFT}", timeout=3600).stdout.split()
    took = [int(line) if line != "never" else math.inf for line in out]
    suite.expect(len(took) == DRIFTS, f"{len(took)} of {DRIFTS} changes were made")
    for percent in (50, 99):
        note(f"{DRIFTS} changes with sacctmgr, until they are mended: p{percent}, ms", percentile(took, percent))
    note(f"number of changes of {DRIFTS} that were not mended", took.count(math.inf))


def bench_changed_limit(ns, runs):
    """Times a changed limit from the start and from the end of kubectl until sacctmgr shows it."""
    what = "kubectl apply of a changed limit until sacctmgr shows it"
    show = "while :; do sacctmgr --noheader --parsable2 show qos d-q-0 format=maxjobspu; done"
    with in_slurmctld(ns, show) as limit:
        for run in range(runs):
            changed = json.dumps(governance.qos("d-q-0", priority=10, limits={"maxJobsPerUser": 100 + run}))
            time.sleep(Pause.uniform(1, 2))
            start = time.monotonic()
            ns.kubectl("apply", "-f", "-", text=changed)
            applied = time.monotonic()
            shown = limit.first(lambda line, run=run: line == str(100 + run), start)
            note(f"{what}, ms", (shown - start) * 1000)
            note(f"{what}, after kubectl has ended, ms", max(0, shown - applied) * 1000)


def post(path, body):
    """Reports whether the API server has created what the body says."""
    connection = http.client.HTTPConnection("127.0.0.1", api().port, timeout=30)
    connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
    return connection.getresponse().status == 201


# The nodes of kwok that Slurm has as external nodes, the pods for which they have room, and the pods that wait then.
BRIDGED_NODES, RUNNING, WAITING = 10, 300, 1000


def bench_bridge(tag, plugin, runs, rest):
    """Times slurm-bridge with a real Slurm, and nodes and pods that kwok simulates. Also counts requests to slurmrestd at rest."""
    manifest = bridge.bridged(suite.demo_manifest()).replace("replicas: 3", "replicas: 1")
    # slurmrestd does not log requests with the operator's default.
    image = "    image: local/slurmrestd:${TAG}\n"
    manifest = manifest.replace(image, f"{image}    env: [{{name: SLURMRESTD_DEBUG, value: info}}]\n")
    with scale.Kwok(BRIDGED_NODES), bridge.Bridged("bench", tag, plugin) as ns:
        ns.apply(manifest)
        suite.serves(ns, 1)
        ns.slurm("bash", "-ec", f"for ((i = 0; i < {BRIDGED_NODES}; i++)); do scontrol create NodeName=kwok-$i NodeAddr=10.217.255.$i "
                 f"State=EXTERNAL CPUs={RUNNING // BRIDGED_NODES} RealMemory=100000 Feature=bridge; done")
        wait("the nodes are idle", lambda: sum(name.startswith("kwok-") for name in ns.idle()) == BRIDGED_NODES)
        ns.install(**{"nodes.enabled": "false", "schedulerConfig.sharedNodes": "true"})
        wait("the bridge leads", ns.bridge_pod)
        with Stream("kubectl", "-n", ns.pods.name, "get", "pods", "--watch-only", "--output-watch-events", "-o",
                    "jsonpath={.type},{.object.metadata.name},{.object.spec.nodeName},{.object.metadata.deletionTimestamp}{\"\\n\"}") as pods:
            time.sleep(0.5)
            bench_one_pod(ns, pods, 20)
        for run in range(runs):
            create_bridged(ns, f"run-{run}", RUNNING)
            running = lambda: sum(pod["status"]["phase"] == "Running" for pod in ns.pods.get("pods"))
            wait(f"{RUNNING} pods run", lambda running=running: running() == RUNNING, every=1)
            if run == 0:
                bench_waiting(ns, rest)
            bench_scancel(ns)


def bridged_pod(ns, name):
    pod = ns.plain_pod(name)
    pod["spec"] |= {"schedulingGates": [{"name": bridge.GATE}], "tolerations": [{"key": "type", "value": "kwok", "effect": "NoSchedule"}]}
    return pod


def create_bridged(ns, prefix, count):
    items = [bridged_pod(ns, f"{prefix}-{i}") for i in range(count)]
    ns.pods.kubectl("create", "-f", "-", text=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))


def jobs_of_pods(ns):
    """Returns the number of jobs of pods that wait or run."""
    return len(ns.slurm("squeue", "--noheader", "--partition=bridge").stdout.splitlines())


def bench_one_pod(ns, pods, count):
    """Times pods that are created one after another, each when nothing runs."""
    took = []
    for i in range(count):
        name = f"one-{i}"
        time.sleep(Pause.uniform(1, 2))
        suite.expect(post(f"/api/v1/namespaces/{ns.pods.name}/pods", bridged_pod(ns, name)), f"pod {name} was not created")
        created = time.monotonic()
        bound = pods.first(lambda line, name=name: line.split(",")[1] == name and line.split(",")[2], 0)
        took.append((bound - created) * 1000)
        ns.pods.kubectl("delete", "pod", name)
        wait("its job has ended", lambda: jobs_of_pods(ns) == 0)
    for percent in (50, 99):
        note(f"{count} pods one after another, from create until bound: p{percent}, ms", percentile(took, percent))


def bench_waiting(ns, seconds):
    """Counts the requests to slurmrestd at rest, of the operator and the bridge together, without and with pods that wait."""
    for waiting in (0, WAITING):
        if waiting:
            create_bridged(ns, "waits", waiting)
        wait("all have jobs", lambda waiting=waiting: jobs_of_pods(ns) == RUNNING + waiting, every=1)
        time.sleep(30 + seconds)
        found = requests_to_slurmrestd(ns, seconds)
        others = sum(n for (method, path), n in found.items()
                     if method != "GET" or not path.strip("/").endswith(("/nodes", "/jobs", "/partitions")))
        what = f"of requests to slurmrestd in a minute at rest, {RUNNING} pods run and {waiting} wait"
        note(f"number {what}: polls", (sum(found.values()) - others) * 60 / seconds)
        note(f"number {what}: others", others * 60 / seconds)
        for (method, path), n in found.most_common(10):
            print(f"      {method} {path}: {n * 60 / seconds:.1f} a minute", flush=True)
        note(f"the bridge with {RUNNING + waiting} pods, MiB", max(memory_of("slurm-bridge")))
    ns.pods.kubectl("delete", "pods", "--field-selector=status.phase=Pending", "--wait=false")
    wait("their jobs have ended", lambda: jobs_of_pods(ns) == RUNNING, every=1)


def all_evicted():
    """Returns a condition for lines of MetadataWatch: all running pods are being deleted."""
    ended = set()

    def last(line):
        kind, name, deleted = line.split(",")
        if kind == "DELETED" or deleted:
            ended.add(name)
        return len(ended) == RUNNING

    return last


def bench_scancel(ns):
    """Times the end of all running pods, from the start of one scancel of their jobs."""
    what = f"scancel of {RUNNING} running pods, until the last is evicted"
    with MetadataWatch(ns.pods.name) as pods, in_slurmctld(ns, "echo begins; scancel --partition=bridge") as scancel:
        began = scancel.first(bool, 0)
        note(what, pods.first(all_evicted(), began) - began)
    wait("the pods are gone", lambda: not ns.pods.get("pods"))
    note_floor(time_plain_evictions(ns), what)


def time_plain_evictions(ns):
    """Times how long a client that knows nothing of Slurm takes to give as many running pods a condition and to evict them, with
    24 requests at a time."""
    names = [f"plain-{i}" for i in range(RUNNING)]
    items = [bridged_pod(ns, name) for name in names]
    for pod in items:
        del pod["spec"]["schedulingGates"]
        pod["spec"]["nodeSelector"] = {"type": "kwok"}
    with Namespace("bench-plain", ns.tag) as plain:
        plain.kubectl("create", "-f", "-", text=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
        wait("plain pods run", lambda: sum(pod["status"]["phase"] == "Running" for pod in plain.get("pods")) == RUNNING, every=1)
        client = Evictions(plain.name)
        with MetadataWatch(plain.name) as pods, concurrent.futures.ThreadPoolExecutor(24) as pool:
            began = time.monotonic()
            suite.expect(all(pool.map(client.evict, names)), "a pod was not evicted")
            return pods.first(all_evicted(), began) - began


class Evictions:
    """Evicts pods of a namespace. Each thread has a connection to the API server of its own."""

    def __init__(self, namespace):
        config = json.loads(kubectl("config", "view", "--raw", "--flatten", "-o", "json").stdout)
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self.server = urllib.parse.urlsplit(cluster["server"]).netloc
        self.context = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
        with tempfile.NamedTemporaryFile() as file:
            file.write(b"".join(base64.b64decode(user[f"client-{part}-data"]) for part in ("certificate", "key")))
            file.flush()
            self.context.load_cert_chain(file.name)
        self.path, self.mine = f"/api/v1/namespaces/{namespace}/pods/", threading.local()

    def send(self, method, path, body, kind="application/json"):
        if not hasattr(self.mine, "connection"):
            self.mine.connection = http.client.HTTPSConnection(self.server, context=self.context)
        self.mine.connection.request(method, self.path + path, json.dumps(body), {"Content-Type": kind})
        answer = self.mine.connection.getresponse()
        answer.read()
        return answer.status < 300

    def evict(self, name):
        condition = {"type": "SlurmEnded", "status": "True", "reason": "Cancelled", "message": "the job was cancelled"}
        return (self.send("PATCH", f"{name}/status", {"status": {"conditions": [condition]}}, "application/strategic-merge-patch+json")
                and self.send("POST", f"{name}/eviction", {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}))


# The resources that the values of `make demo-site` create.
SITE = (CONTROLLER, ACCOUNTING, RESTAPI, f"{NODESET}/slurm-worker-cpu", f"{NODESET}/slurm-worker-host", "loginsets.slinky.slurm.net",
        "tokens.slinky.slurm.net")


def of_a_site(ns):
    """Creates what `make demo-site` has beside Slurm (a database, a directory, homes), and waits until all of it is ready."""
    with_database(ns)
    ns.apply((TOP / "dev/demo/site.yaml").read_text())
    ns.kubectl("wait", "--for=condition=Ready", "pod/ldap", "pod/client", "--timeout=120s")


def ready_pods(ns):
    return sum((condition_of(pod, "Ready") or {}).get("status") == "True" for pod in ns.get("pods"))


def bench_site(tag, plugin, runs):
    """Times the site of `make demo-site` from kubectl apply of the rendered chart until everything is Ready. Also notes the
    operator's memory."""
    accounting.database_image()
    what = "apply of a site, 5 workers: all Ready"
    values = (TOP / "dev/demo/site-values.yaml").read_text()
    for run in range(runs):
        with Namespace(f"bench-site-{run}", tag, plugin) as ns:
            of_a_site(ns)
            rendered = run_command("helm", "template", "slurm", str(TOP / "charts/slurm"), "-n", ns.name, "-f", "-", text=ns.fill(values)).stdout
            with watch_each(ns, *SITE) as streams:
                start = time.monotonic()
                ns.apply(rendered)
                note(what, all_ready(streams) - start)
                each = {kind.replace(".slinky.slurm.net", ""): f"{ready_since(stream) - start:.1f}" for kind, stream in zip(SITE, streams)}
                print(f"      of these: {each}", flush=True)
            count = ready_pods(ns)
            with Namespace(f"floor-{ns.name}", tag) as bare:
                of_a_site(bare)
                everything = whole_copy(ns, bare.name)
                start = time.monotonic()
                bare.kubectl("apply", "-f", "-", text=everything)
                wait(f"{count} pods are Ready", lambda bare=bare, count=count: ready_pods(bare) == count, every=0.05)
                note_floor(time.monotonic() - start, what)
            time.sleep(10)
            note("the operator with a site of 5 workers, MiB", max(operator_memory()))
            if run == runs - 1:
                bench_memory_anew(ns)
        wait("the namespace is gone", lambda ns=ns: kubectl("get", "ns", ns.name, check=False).returncode != 0, 300)


def bench_memory_anew(ns):
    """Notes the memory of a new operator that has seen only this site, with 3 workers."""
    ns.scale("slurm-worker-cpu", 0)
    wait("3 workers are left", lambda: len(ns.workers()) == 3)
    kubectl("-n", "slurm-operator", "rollout", "restart", "deployment/slurm-operator")
    kubectl("-n", "slurm-operator", "rollout", "status", "deployment/slurm-operator", "--timeout=120s")
    wait("there is one operator", lambda: len(operator_memory()) == 1)
    time.sleep(60)
    note("the operator, just started, with a site of 3 workers, MiB", max(operator_memory()))


def bench_scale(ns, runs):
    for _ in range(runs):
        with sinfo(ns) as idle, watch_ready(ns) as status:
            time.sleep(1)
            start = time.monotonic()
            ns.scale("cpu", 12)
            note("scale 3 to 12: all idle in sinfo", idle.first(lambda line: line == "12", start) - start)
            note("scale 3 to 12: ready in status", status.first(is_ready(12), start) - start)
        settle(ns, 12)
        time.sleep(3)
        with Gone(ns, 3) as gone:
            start = time.monotonic()
            ns.scale("cpu", 3)
            note("scale 12 to 3, idle: pods gone", gone.after(start))
        settle(ns, 3)
        made, deleted = floor(ns, 9)
        note_floor(made, "scale 3 to 12: all idle in sinfo", "scale 3 to 12: ready in status")
        note_floor(deleted, "scale 12 to 3, idle: pods gone")


def cancel(ns, job):
    """Cancels a job and waits for its end. Returns the time of the last look that still saw the job. The job ended later, so a
    duration from there is at most one round trip too long, and never too short."""
    seen = time.monotonic()
    ns.slurm("scancel", str(job))

    def over():
        nonlocal seen
        asked = time.monotonic()
        if ns.jobs().get(job, {}).get("job_state") in (None, ["CANCELLED"]):
            return True
        seen = asked
        return False

    wait("the job has ended", over, every=0.01)
    return seen


def bench_busy(ns, runs):
    for _ in range(runs):
        job = ns.submit("sleep 600", "-N3", "--exclusive")
        wait("the job runs", lambda job=job: ns.jobs()[job]["job_state"] == ["RUNNING"])
        ns.scale("cpu", 1)
        wait("two drain", lambda: sum("DRAIN" in states for states, _ in ns.nodes().values()) == 2)
        time.sleep(2)
        with Stream("kubectl", "-n", ns.name, "get", "pods", "-l", WORKERS, "-w", "-o",
                    "jsonpath={.metadata.name} {.metadata.deletionTimestamp}{\"\\n\"}") as pods, Gone(ns, 1) as gone:
            start = cancel(ns, job)
            note("scale 3 to 1, both busy: pod deleted after its job ended", pods.first(lambda line: len(line.split()) == 2, start) - start)
            note("scale 3 to 1, both busy: gone", gone.after(start))
        with sinfo(ns) as idle:
            time.sleep(1)
            start = time.monotonic()
            ns.scale("cpu", 3)
            note("scale 3 to 1 to 3: workers idle again", idle.first(lambda line: line == "3", start) - start)
        settle(ns, 3)
        made, deleted = floor(ns, 2)
        note_floor(deleted, "scale 3 to 1, both busy: gone")
        note_floor(made, "scale 3 to 1 to 3: workers idle again")


def bench_drain(ns, runs):
    for run in range(runs):
        with Stream("kubectl", "-n", ns.name, "get", "pod", "cpu-1", "-w", "-o",
                    "jsonpath={.status.conditions[?(@.type==\"SlurmNodeStateDrain\")].message}{\"\\n\"}") as pod:
            time.sleep(0.5)
            start = time.monotonic()
            ns.slurm("scontrol", "update", "nodename=cpu-1", "state=drain", f"reason=bench-{run}")
            note("a drain set with scontrol shows on the pod", pod.first(lambda line, run=run: f"bench-{run}" in line, start) - start)
        ns.slurm("scontrol", "update", "nodename=cpu-1", "state=resume")
        settle(ns, 3)


def watch_workers(ns):
    return Stream("kubectl", "-n", ns.name, "get", "pods", "-l", WORKERS, "-w", "-o",
                  "jsonpath={.metadata.name} {.metadata.uid} {.status.conditions[?(@.type==\"Ready\")].status}{\"\\n\"}")


def floor_one_by_one(ns, count):
    """Returns the time that kubectl alone needs to delete such pods and make them Ready again, one after the other."""
    pod, name = ns.get("pod", "cpu-0"), "floor-0"
    create = lambda: ns.kubectl("create", "-f", "-", text=json.dumps(bare_copy(pod, name)))
    ready = lambda: ns.kubectl("wait", "--for=condition=Ready", "pod", name, "--timeout=120s")
    create()
    ready()
    start = time.monotonic()
    for _ in range(count):
        ns.kubectl("delete", "pod", name, "--wait=true")
        create()
        ready()
    took = time.monotonic() - start
    ns.kubectl("delete", "pod", name, "--wait=true")
    ns.slurm("scontrol", "delete", f"nodename={name}", check=False)
    wait("the floor's record is gone", lambda: name not in ns.nodes(), 30)
    return took


def bench_roll(ns, runs):
    """Times a changed template of 3 workers with maxUnavailable 1: first all are idle, then one runs a job. In the second case
    the template changes twice: the worker that was drained for the first change must not delay the second."""
    what = "update of 3 idle workers, one at a time"
    busy = ("update of 2 idle workers beside a busy one", "the same, when the template changes again")

    def roll(template, names):
        old = {pod["metadata"]["uid"] for pod in ns.workers().values()}
        renewed = set()

        def done(line):
            name, uid, *ready = line.split()
            if uid not in old and ready == ["True"]:
                renewed.add(name)
            return renewed >= names

        with watch_workers(ns) as pods:
            time.sleep(0.5)
            start = time.monotonic()
            ns.patch(NODESET, "cpu", {"spec": {"updateStrategy": {"rollingUpdate": {"maxUnavailable": 1}},
                                               "template": {"metadata": {"annotations": {"bench": template}}}}})
            return pods.first(done, start, 300) - start

    audit = AuditLog()
    for run in range(runs):
        note(what, roll(f"idle-{run}", {"cpu-0", "cpu-1", "cpu-2"}))
        settle(ns, 3)
        job = ns.submit("sleep 3600", "-w", "cpu-1", "--exclusive")
        wait("the job runs", lambda job=job: ns.jobs()[job]["job_state"] == ["RUNNING"])
        for name in busy:
            note(name, roll(f"{name}-{run}".replace(" ", "-").replace(",", ""), {"cpu-0", "cpu-2"}))
        cancel(ns, job)
        settle(ns, 3)
        wait("all are of the last template", lambda: ns.get(NODESET, "cpu")["status"].get("updatedReplicas") == 3, 120)
        settle(ns, 3)
        note_floor(floor_one_by_one(ns, 3), what)
        note_floor(floor_one_by_one(ns, 2), *busy)
    # Dry runs do not count as writes. They conflict because the pod that is to be replaced still has the name.
    conflicts = [event["objectRef"] for event in audit.writes() if event.get("responseStatus", {}).get("code") == 409
                 and event.get("userAgent", "").startswith("slurm-operator") and "dryRun" not in event["requestURI"]]
    print(f"    writes of the operator that ended with Conflict: {len(conflicts)} {conflicts or ''}", flush=True)


# Some operators poll every 30 seconds, so runs begin at random times.
Pause = random.Random(1)
COUNT = 6
NEVER = 60


def pause():
    time.sleep(Pause.uniform(0, 30))


def settle_plain(ns):
    wait(f"{COUNT} idle", lambda: len([name for name in ns.idle() if name.startswith("cpu-")]) == COUNT, 300)
    ns.kubectl("wait", "--for=condition=Ready", "pod", "-l", WORKERS, "--timeout=120s")


def bench_update(ns, runs):
    """Times a changed template of idle workers with maxUnavailable 2."""
    what = f"update of {COUNT} idle workers, maxUnavailable 2: "
    for run in range(runs):
        settle_plain(ns)
        pods = lambda: {name: pod for name, pod in ns.workers().items() if name.startswith("cpu-")}
        old = {pod["metadata"]["uid"] for pod in pods().values()}
        pause()
        with sinfo(ns) as idle:
            start = time.monotonic()
            ns.patch(NODESET, "cpu", {"spec": {"template": {"metadata": {"annotations": {"bench": f"run-{run}"}}}}})
            new = lambda: [pod for pod in pods().values() if pod["metadata"]["uid"] not in old]
            wait("all are replaced", lambda: sum(pod["status"]["phase"] == "Running" for pod in new()) == COUNT, 420)
            replaced = time.monotonic()
            note(what + "all replaced", replaced - start)
            try:
                note(what + "all idle in sinfo", idle.first(lambda line: line == str(COUNT), replaced, NEVER) - start)
            except Failed:
                states = {name: node for name, node in ns.nodes().items() if name not in ns.idle()}
                print(f"    not idle {NEVER} s later: {states}", flush=True)
                note(what + "all idle in sinfo", math.inf)
                ns.slurm("scontrol", "update", f"nodename={','.join(states)}", "state=resume")


def bench_node(ns, runs):
    """Times Kubernetes nodes that begin to match a NodeSet with one worker for each node."""
    nodes = [line.removeprefix("node/") for line in kubectl("get", "nodes", "-o", "name").stdout.split()]
    try:
        for run in range(runs):
            if run and run % len(nodes) == 0:
                kubectl("label", "node", "--all", "bench-")
                wait("their workers go", lambda: not any(name.startswith("each-") for name in ns.workers()), 180)
            pause()
            with Stream("kubectl", "-n", ns.name, "get", "pods", "-l", WORKERS, "--watch-only", "--output-watch-events", "-o",
                        "jsonpath={.type} {.object.metadata.name}{\"\\n\"}") as pods:
                time.sleep(0.5)
                start = time.monotonic()
                kubectl("label", "node", nodes[run % len(nodes)], "bench=each")
                created = pods.first(lambda line: line.startswith("ADDED each-"), start)
                note("a Kubernetes node more: its worker's pod created", created - start)
            ns.kubectl("wait", "--for=condition=Ready", "pod", "-l", WORKERS, "--timeout=120s")
    finally:
        kubectl("label", "node", "--all", "bench-", check=False)


def bench_config(ns, runs):
    """Times a changed line of extraConf until slurmctld reports it."""
    before = ns.get(CONTROLLER, "demo")["spec"]["extraConf"]
    look = "while :; do scontrol show config 2>/dev/null | awk '$1==\"KillWait\"{print $3}'; sleep 0.1; done"
    for run in range(runs):
        settle_plain(ns)
        pause()
        start, loaded = time.monotonic(), None
        ns.patch(CONTROLLER, "demo", {"spec": {"extraConf": f"{before}KillWait={31 + run}\n"}})
        while not loaded:
            with in_slurmctld(ns, look) as config:
                loaded = config.first(lambda line, run=run: line == str(31 + run), start, 240)
        note("a changed slurm.conf: loaded", loaded - start)


def may_be_evicted(ns, pod):
    """Reports whether the API server would evict the worker, by a dry run."""
    return post(f"/api/v1/namespaces/{ns.name}/pods/{pod}/eviction",
                {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": ns.name},
                 "deleteOptions": {"dryRun": ["All"]}})


def bench_evict(ns, runs, what):
    """Times how long a worker can still be evicted although a job runs there. Each job uses another worker, because the
    protection ends some time after the job."""
    settle_plain(ns)
    for run, pod in zip(range(runs), itertools.cycle(f"cpu-{i}" for i in range(COUNT))):
        if run and run % COUNT == 0:
            ns.slurm("scancel", "--name=bench")
            settle_plain(ns)
            time.sleep(60)
        pause()
        print(f"    may be evicted while idle: {may_be_evicted(ns, pod)}", flush=True)
        with in_slurmctld(ns, f"srun -J bench -N1 -w {pod} sh -c 'date +%s.%N; sleep 600'") as job:
            job.first(bool, 0)
            began, seconds = float(job.lines[0][1]), 0
            while may_be_evicted(ns, pod):
                seconds = time.time() - began
                if seconds > NEVER:
                    seconds = math.inf
                    break
                time.sleep(0.1)
            note(what, seconds)
    ns.slurm("scancel", "--name=bench")
    settle_plain(ns)


def bench_plain(tag, plugin, names, runs):
    """Runs the benchmarks of these names that work with every operator."""
    manifest = (pathlib.Path(__file__).parent / "operators.yaml").read_text()
    with Namespace("bench-plain", tag, plugin) as ns:
        start = time.monotonic()
        # The key is encoded in base64 twice: the inner text is a valid key, and every operator can write it into any file.
        ns.apply(manifest.replace("${KEY}", base64.b64encode(base64.b64encode(secrets.token_bytes(768))).decode()))
        settle_plain(ns)
        print(f"    {COUNT} idle {time.monotonic() - start:.1f} s after apply", flush=True)
        if "update" in names:
            bench_update(ns, runs)
        if "config" in names:
            bench_config(ns, runs)
        if "node" in names:
            bench_node(ns, runs)
        if "evict" in names:
            what = "a job runs, and its worker may be evicted"
            bench_evict(ns, runs, what)
            ns.patch(NODESET, "cpu", {"spec": {"workloadDisruptionPolicy": "WhenBusy"}})
            if "workloadDisruptionPolicy" in ns.get(NODESET, "cpu")["spec"]: # not every operator knows it
                bench_evict(ns, runs, f"{what} (WhenBusy)")


def bench_rest(seconds):
    """Counts writes at rest by user agent and kind, and notes the operator's memory."""
    audit = AuditLog()
    time.sleep(seconds)
    writes = collections.defaultdict(collections.Counter, {"slurm-operator": collections.Counter()})
    for event in audit.writes():
        writes[event.get("userAgent", "").split("/")[0]][event.get("objectRef", {}).get("resource", "")] += 1
    minutes = seconds / 60
    print(f"writes at rest in {minutes:.1f} min, by user agent:")
    for agent, kinds in writes.items():
        print(f"  {agent:30} without Lease {sum(n for kind, n in kinds.items() if kind != 'leases') / minutes:6.2f} a minute; {dict(kinds)}")
    for memory in operator_memory():
        print(f"VmRSS of the operator: {memory:.1f} MiB")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--rest", type=int, default=600, help="seconds at rest for memory, writes and requests to slurmrestd")
    parser.add_argument("--away", type=int, default=300, help="seconds for which slurmdbd is away, with `records`")
    parser.add_argument("--slurm", help="Slurm release of the local images")
    parser.add_argument("names", nargs="*", help="apply scale busy drain roll rest accounting governance bridge site records update node config evict")
    arguments = parser.parse_args()
    wanted = lambda name: not arguments.names or name in arguments.names
    plugin = cgroup_plugin()
    tag = arguments.slurm or slurm_releases()[0]
    print(f"Slurm {tag}", flush=True)
    if wanted("apply"):
        bench_apply(tag, plugin, arguments.runs)
    if any(wanted(name) for name in ("scale", "busy", "drain", "roll", "rest")):
        with Namespace("bench", tag, plugin) as ns:
            ns.apply(demo_manifest())
            settle(ns, 3)
            if wanted("scale"):
                bench_scale(ns, arguments.runs)
            if wanted("busy"):
                bench_busy(ns, arguments.runs)
            if wanted("drain"):
                bench_drain(ns, arguments.runs)
            if wanted("roll"):
                bench_roll(ns, arguments.runs)
            if wanted("rest"):
                bench_rest(arguments.rest)
    if wanted("accounting"):
        bench_accounting(tag, plugin, arguments.runs)
    if wanted("governance"):
        bench_governance(tag, plugin, arguments.runs, arguments.rest)
    if wanted("bridge"):
        bench_bridge(tag, plugin, arguments.runs, min(arguments.rest, 120))
    if wanted("site"):
        bench_site(tag, plugin, arguments.runs)
    if wanted("records"):
        bench_records(tag, plugin, arguments.away)
    plain = [name for name in ("update", "node", "config", "evict") if wanted(name)]
    if plain:
        bench_plain(tag, plugin, plain, arguments.runs)
    print_figures(arguments.runs)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""End-to-end tests on the local cluster, as a user sees it: they use kubectl and Slurm's own commands, and no internals of the
operator.

Usage: run.py [--slurm 26.05] [--long] [NAME...]     tests whose names contain one of NAME; default: all, for each Slurm release with images
A test that does the same with every release runs with the first one only, unless --long is given.
KEEP=1 keeps the namespaces of failed tests for inspection.
"""

import argparse
import base64
import collections
import concurrent.futures
import contextlib
import dataclasses
import datetime
import fcntl
import functools
import http.server
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tarfile
import tempfile
import textwrap
import threading
import time
import traceback
import typing
import urllib.parse
import urllib.request

import accounting
import bridge  # pylint: disable=unused-import  # Its tests register themselves.
import faults  # pylint: disable=unused-import  # Its tests register themselves.
import governance  # pylint: disable=unused-import
import metrics_of
import site_of_directory  # pylint: disable=unused-import  # Likewise.
import values_of_users  # pylint: disable=unused-import  # Likewise.
import workers_of_nodes  # pylint: disable=unused-import  # Likewise.
from cluster import ENV, KEEP, LIMIT, TOP, AuditLog, Failed, Namespace, api, cgroup_plugin, kubectl, kubelet_away, process, run, slurm_releases, wait
from logins import client, have_client, made_key, ssh, ssh_command
from suite import (ALONE, FROM_OLDER, LONG, ONCE, OWN_CLUSTERS, SINCE, TESTS, UNTIL, alone, demo_manifest, ends_well, expect, from_older, long, once,
                   own_clusters, ready_cluster, reconfigure, running_on, runs, serves, slurm_plugin, slurmctld_identity, slurmd_start, state_is_written,
                   test, wait_for_partition, with_a_backup)


def documented(page, beginning):
    """Returns the manifest in a how-to page that begins with this text."""
    return textwrap.dedent(re.search(rf"```yaml\n( *{re.escape(beginning)}.*?)```", (TOP / "docs/how-to" / page).read_text(), re.S)[1])


def at_rest(ns):
    """Returns what is in force. None: something that no condition shows is under way: a pass that the operator has yet to make,
    a rollout, or the second reconfigure for workers that were starting."""
    its, config = "slinky.slurm.net/", ns.get("configmap", "demo-config")
    notes, told = config["metadata"]["annotations"], ns.condition("controllers.slinky.slurm.net", "demo", "Reconfigured")
    named = set(re.findall(r"^NodeSet=(\S+)", config["data"]["slurm.conf"], re.M))
    ours, rest, pod = ns.get("statefulset", "demo-controller"), ns.get("deployment", "demo-restapi"), ns.get("pod", "demo-controller-0")
    counts = [rest["status"].get(field) for field in ("replicas", "updatedReplicas", "readyReplicas")]
    done = (
        named == {nodeset["metadata"]["name"] for nodeset in ns.get("nodesets.slinky.slurm.net")}
        and told["status"] == "True" and notes[its + "slurm-config-hash"] in told["message"] and its + "starting-at" not in notes
        and all(owner["status"]["observedGeneration"] == owner["metadata"]["generation"] for owner in (ours, rest))
        and pod["metadata"]["labels"]["controller-revision-hash"] == ours["status"]["updateRevision"]
        and ours["status"].get("readyReplicas") == 1 and counts == [1, 1, 1]
        and not any("nodeset.slinky.slurm.net/pod-busy" in worker["metadata"]["labels"] for worker in ns.workers().values()))
    return (notes, pod["metadata"]["uid"], rest["metadata"]["generation"]) if done else None


def rests(ns):
    before = at_rest(ns)
    time.sleep(2)
    return before is not None and at_rest(ns) == before


def kubernetes_is_whole():
    """Fails while the Kubernetes nodes or the operator are not yet as they were before a test that ran alone."""
    get = lambda path: api().get(path)[1]
    for node in get("/api/v1/nodes")["items"]:
        taints = [taint["key"] for taint in node["spec"].get("taints", [])]
        ready = any(c["type"] == "Ready" and c["status"] == "True" for c in node["status"].get("conditions", []))
        expect(ready and not node["spec"].get("unschedulable") and not any(key.startswith(("node.kubernetes.io/", "ToBeDeleted")) for key in taints),
               f"the Kubernetes node {node['metadata']['name']} is not Ready, or is cordoned or tainted: {taints}")
    there = "namespaces/slurm-operator"
    operator = get(f"/apis/apps/v1/{there}/deployments/slurm-operator")
    holder = get(f"/apis/coordination.k8s.io/v1/{there}/leases/slurm-operator")["spec"].get("holderIdentity") or ""
    wanted, status = operator["spec"]["replicas"], operator["status"]
    expect(wanted and [status.get(of) for of in ("replicas", "updatedReplicas", "readyReplicas")] == [wanted] * 3
           and status["observedGeneration"] == operator["metadata"]["generation"], f"the operator is not as it was: {status}")
    pods = {pod["metadata"]["name"] for pod in get(f"/api/v1/{there}/pods?labelSelector=app.kubernetes.io/name=slurm-operator")["items"]
            if pod["status"]["phase"] not in ("Succeeded", "Failed")}
    expect(len(pods) == wanted and holder.split("_")[0] in pods, f"of the operator's pods {sorted(pods)} none leads, or one has yet to go: {holder}")
    return True


def as_each_test_finds_it(ns):
    """Waits until what the previous test has restored is in force and none of its jobs is left."""
    for kind, name in (("controllers", "demo"), ("restapis", "demo"), ("nodesets", "cpu")):
        ns.wait_condition(f"{kind}.slinky.slurm.net", name)
        ns.wait_condition(f"{kind}.slinky.slurm.net", name, "Degraded", "False")
    ns.wait_condition("controllers.slinky.slurm.net", "demo", "Reconfigured")
    ns.wait_condition("controllers.slinky.slurm.net", "demo", "Progressing", "False")
    wait("nothing is under way", lambda: rests(ns), every=0)
    serves(ns, 3)
    ready = lambda: {name for name in ns.workers() if (ns.condition("pod", name, "Ready") or {}).get("status") == "True"}
    wait("the workers are Ready", lambda: set(ns.workers()) == ready() == set(ns.nodes()) == {"cpu-0", "cpu-1", "cpu-2"})
    # Before 26.05 the reasons of others stay after their drains.
    wait("no reason of the operator's is left", lambda: not any(reason.startswith("slurm-operator: ") for _, reason in ns.nodes().values()))
    under_way = {"PENDING", "CONFIGURING", "RUNNING", "SUSPENDED", "COMPLETING"}
    wait("no job is left", lambda: not any(set(job["job_state"]) & under_way for job in ns.jobs().values()))


def again_the_three(ns):
    """Scales to 0 and back to 3 workers after a test that leaves other ones, because the other tests name these three."""
    ns.scale("cpu", 0)
    wait("no worker", lambda: not ns.nodes() and not ns.workers())
    ns.scale("cpu", 3)
    wait("3 idle", lambda: len(ns.idle()) == 3)


def moved(ns, name, taken):
    """Replaces an idle worker if its Kubernetes node is one of `taken`. Other tests must tolerate that these nodes are cordoned
    for a while."""
    if ns.workers()[name]["spec"]["nodeName"] not in taken:
        return
    try:
        for node in taken:
            kubectl("cordon", node)
        wait("it is deleted", lambda: ns.kubectl("delete", "pod", name, "--wait=true"))
        wait("it is elsewhere", lambda: ns.workers()[name]["spec"]["nodeName"] not in taken)
    finally:
        for node in taken:
            kubectl("uncordon", node)
    wait("3 idle", lambda: len(ns.idle()) == 3)


def seconds(stamp):
    """Converts a time of Kubernetes to the form of time.time()."""
    return datetime.datetime.fromisoformat(stamp.replace("Z", "+00:00")).timestamp()


def drained_at(ns, node):
    """Returns when the reason of the node's drain was set, as Slurm recorded it."""
    return json.loads(ns.slurm("scontrol", "show", "node", node, "--json").stdout)["nodes"][0]["reason_changed_at"]["number"]


def evict(ns, name):
    """Tries to evict a worker. Returns "" or the refusal."""
    eviction = json.dumps({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": ns.name}})
    out = ns.kubectl("create", "--raw", f"/api/v1/namespaces/{ns.name}/pods/{name}/eviction", "-f", "-", text=eviction, check=False)
    return "" if out.returncode == 0 else out.stderr


@test
def a_cluster_runs_jobs(ns):
    out = ns.slurm("srun", "-N3", "hostname").stdout.split()
    expect(sorted(out) == ["cpu-0", "cpu-1", "cpu-2"], f"srun -N3 hostname printed {out}")
    # The counts may be written half a second later than the readiness.
    for field in ("replicas", "readyReplicas", "availableReplicas", "desired"):
        wait(f"status.{field} is 3", lambda field=field: ns.get("nodesets.slinky.slurm.net", "cpu")["status"].get(field) == 3)


@test
@once
def generated_keys_have_no_owner(ns):
    for name in ("demo-slurm-key", "demo-jwt-key"):
        secret = ns.get("secret", name)
        expect(secret, f"there is no Secret {name}")
        expect(not secret["metadata"].get("ownerReferences"), f"Secret {name} has an owner")


@test
def slurm_states_show_on_pods(ns):
    ns.slurm("scontrol", "update", "nodename=cpu-1", "state=drain", "reason=admin: looking at it")

    def shown():
        conditions = ns.get("pod", "cpu-1")["status"]["conditions"]
        return any(c["type"] == "SlurmNodeStateDrain" and c["status"] == "True" and "looking at it" in c.get("message", "")
                   for c in conditions)

    wait("the drain shows on the pod", shown)
    ns.slurm("scontrol", "update", "nodename=cpu-1", "state=resume")
    wait("the condition goes", lambda: not shown())


@test
def scales_out_and_in(ns):
    ns.scale("cpu", 5)
    wait("5 idle", lambda: ns.idle() == [f"cpu-{i}" for i in range(5)])
    ns.wait_condition("nodesets.slinky.slurm.net", "cpu")  # a worker that is not ready would be deleted first, whatever its name
    ns.scale("cpu", 2)
    wait("2 workers", lambda: len(ns.workers()) == 2)
    wait("no records of the others", lambda: len(ns.nodes()) == 2)
    ns.scale("cpu", 3)
    wait("3 idle again", lambda: len(ns.idle()) == 3)
    if set(ns.workers()) != {"cpu-0", "cpu-1", "cpu-2"}:
        again_the_three(ns)


@test
def scale_in_waits_for_jobs(ns):
    job = runs(ns, ns.submit_until_told("-N3", "--exclusive"))
    ns.scale("cpu", 1)
    wait("two drain", lambda: sum("DRAIN" in states for states, _ in ns.nodes().values()) == 2)
    time.sleep(5)
    expect(len(ns.workers()) == 3, "a busy worker was deleted")
    ends_well(ns, job)
    wait("1 worker is left", lambda: len(ns.workers()) == 1)
    ns.scale("cpu", 3)
    wait("3 idle again", lambda: len(ns.idle()) == 3)
    # A worker is idle before the last reason of a drain is removed.
    wait("no reason is left", lambda: not any(reason for _, reason in ns.nodes().values()))


@test
def no_job_is_lost_when_replicas_flap(ns):
    jobs = ns.submit_many(60, "sleep 3", "-n1")
    for replicas in (9, 1, 6, 1, 9, 1, 5, 3):
        ns.scale("cpu", replicas)
        time.sleep(2)
    done = {("COMPLETED", 0): len(jobs)}
    wait("all jobs have ended", lambda: not any(
        name.startswith(("PENDING", "RUNNING", "CONFIGURING")) or "COMPLETING" in name for name, _ in ns.fates(jobs)), 600, every=1)
    expect(ns.fates(jobs) == done, f"jobs by state and restarts: {dict(ns.fates(jobs))}")
    wait("3 idle", lambda: len(ns.idle()) == 3)
    again_the_three(ns)


@test
def a_new_template_reaches_the_workers_under_jobs(ns):
    uids = lambda: {name: pod["metadata"]["uid"] for name, pod in ns.workers().items()}
    before = uids()
    replaced = lambda: {name for name, uid in uids().items() if uid != before.get(name)}
    site = lambda value: ns.patch("nodesets.slinky.slurm.net", "cpu", {"spec": {"template": {"metadata": {"annotations": {"site": value}}}}})
    job = running_on(ns, "cpu-1")
    later = ns.submit("true", "-N1", "-w", "cpu-0", "--begin=now+1hour")
    ns.slurm("scontrol", "update", "nodename=cpu-2", "state=drain", "reason=admin: bad disk")
    site("one")
    wait("the idle workers are replaced", lambda: replaced() == {"cpu-0", "cpu-2"})
    wait("the busy one is drained", lambda: "being updated" in ns.nodes()["cpu-1"][1])
    wait("cpu-0 serves", lambda: ns.idle() == ["cpu-0"])
    wait("cpu-2 is back", lambda: "IDLE" in ns.nodes()["cpu-2"][0] and "NOT_RESPONDING" not in ns.nodes()["cpu-2"][0])
    expect(ns.nodes()["cpu-2"][1] == "admin: bad disk", f"the administrator's drain of cpu-2 became {ns.nodes()['cpu-2']}")
    expect(ns.jobs()[later]["job_state"] == ["PENDING"], "the job that waits for cpu-0 by its name is gone")
    expect("cpu-1" not in replaced(), "the busy worker was replaced")
    ends_well(ns, job)
    wait("it is replaced after its job", lambda: len(replaced()) == 3)
    ns.slurm("scancel", str(later))
    ns.slurm("scontrol", "update", "nodename=cpu-2", "state=resume")
    wait("3 idle", lambda: len(ns.idle()) == 3)
    wait("all workers count as updated", lambda: ns.get("nodesets.slinky.slurm.net", "cpu")["status"]["updatedReplicas"] == 3)
    before = uids()
    site(None)
    wait("all workers have the former template again", lambda: len(replaced()) == 3 and len(ns.idle()) == 3)


@test
def a_canary_goes_first(ns):
    workers = lambda: {name: pod["metadata"]["uid"] for name, pod in ns.workers().items() if name.startswith("cpu-")}
    new = lambda name, before: workers().get(name) not in (None, before[name]) and name in ns.idle()
    before = workers()
    put = lambda partition, value: ns.patch("nodesets.slinky.slurm.net", "cpu", {"spec": {
        "updateStrategy": {"rollingUpdate": {"partition": partition}}, "template": {"metadata": {"annotations": {"canary": value}}}}})
    job = running_on(ns, "cpu-1")
    put(2, "one")
    wait("the canary is replaced", lambda: new("cpu-2", before))
    wait("nothing else is to come", lambda: ns.condition("nodesets.slinky.slurm.net", "cpu", "Progressing")["reason"] == "UpdatePartitioned")
    expect(all(workers()[name] == before[name] for name in ("cpu-0", "cpu-1")), "a worker below the partition was replaced")
    ns.kubectl("delete", "pod", "cpu-0", "--wait=false")
    wait("cpu-0 comes back", lambda: new("cpu-0", before))
    expect("canary" not in ns.workers()["cpu-0"]["metadata"].get("annotations", {}), "a worker below the partition got the new template")
    ends_well(ns, job)
    put(None, None)
    wait("3 idle workers as before", lambda: ns.get("nodesets.slinky.slurm.net", "cpu")["status"].get("updatedReplicas") == 3
         and len(ns.idle()) == 3)


@test
def a_template_does_not_wait_for_the_job_of_the_one_before(ns):
    kind = "nodesets.slinky.slurm.net"
    workers = lambda: {pod: its["metadata"]["uid"] for pod, its in ns.workers().items() if pod.startswith("cpu-")}
    drained = lambda: {name for name, (_, reason) in ns.nodes().items() if "being updated" in reason}
    put = lambda metadata, spec: ns.patch(kind, "cpu", {"spec": {
        "updateStrategy": {"rollingUpdate": {"maxUnavailable": 1}}, "template": {"metadata": metadata, "spec": spec}}})
    first = workers()
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"labelSelector": {"matchLabels": {"a": "b"}}}]}}
    put({}, {"affinity": affinity})
    wait("the template is refused", lambda: ns.condition(kind, "cpu", "Degraded")["reason"] == "PodsRefused")
    message = ns.condition(kind, "cpu", "Degraded")["message"]
    expect("topologyKey" in message, f"it does not quote the API server: {message}")
    expect(workers() == first and not drained(), f"{workers()}, drained: {drained()}")
    job = running_on(ns, "cpu-1")
    for template in ("one", "two"):
        before = workers()
        put({"annotations": {"template": template}}, {"affinity": None})
        wait(f"the idle workers are of template {template}",
             lambda: {pod for pod, uid in workers().items() if uid != before.get(pod)} == {"cpu-0", "cpu-2"}
             and len(workers()) == 3 and drained() == {"cpu-1"}, 120 + LIMIT)
        expect(workers()["cpu-1"] == first["cpu-1"], "the busy worker was replaced")
    ends_well(ns, job)
    wait("it is replaced after its job", lambda: workers().get("cpu-1", first["cpu-1"]) != first["cpu-1"])
    ns.patch(kind, "cpu", {"spec": {"updateStrategy": None, "template": {"metadata": None}}})
    wait("3 idle workers as before", lambda: ns.get(kind, "cpu")["status"].get("updatedReplicas") == 3 and len(ns.idle()) == 3, 120 + LIMIT)


@test
def workers_are_updated_in_a_window(ns):
    kind, name = "nodesets.slinky.slurm.net", "SlurmOperatorMaint-cpu"
    workers = lambda: {pod: its["metadata"]["uid"] for pod, its in ns.workers().items() if pod.startswith("cpu-")}
    before = workers()
    replaced = lambda: {pod for pod, uid in workers().items() if uid != before.get(pod)}
    reservations = lambda: ns.slurm("scontrol", "show", "reservation", "-o").stdout
    put = lambda strategy, value: ns.patch(kind, "cpu", {"spec": {
        "updateStrategy": strategy, "template": {"metadata": {"annotations": {"window": value}}}}})
    job = running_on(ns, "cpu-1")
    # Enough time to check before the window opens. The window is open as long as the update may take.
    opens = int(time.time()) + 120
    start = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(opens))
    put({"type": "ScheduledUpdate", "rollingUpdate": {"maxUnavailable": "100%"},
         "scheduledUpdate": {"startTime": start, "duration": "30m"}}, "one")
    if ns.tag < "25.05":
        wait("it is refused by name", lambda: ns.condition(kind, "cpu", "Degraded")["reason"] == "ReservationsUnsupported")
        wait("the NodeSet is Ready all the same", lambda: ns.condition(kind, "cpu", "Ready")["status"] == "True")
        expect(not replaced(), f"{replaced()} were replaced")
    else:
        wait("the reservation is there", lambda: ns.condition(kind, "cpu", "ReservationCreated")["status"] == "True")
        expect(f"ReservationName={name}" in reservations() and "Nodes=cpu-[0-2]" in reservations(), reservations())
        wait("the update waits for the window", lambda: ns.condition(kind, "cpu", "Progressing")["reason"] == "UpdateScheduled")
        begun = replaced() or [name for name, (_, reason) in ns.nodes().items() if "updated" in reason]
        expect(not begun or time.time() >= opens, f"it begins before the window: {begun}")
        wait("the idle workers are replaced in the window", lambda: replaced() == {"cpu-0", "cpu-2"}, 120 + LIMIT)
        wait("the busy one is drained", lambda: "being updated" in ns.nodes()["cpu-1"][1])
        expect("cpu-1" not in replaced(), "the busy worker was replaced")
        # Compares what Kubernetes and Slurm have recorded, because a poll may come late.
        made = [ns.get("pod", name)["metadata"]["creationTimestamp"] for name in ("cpu-0", "cpu-2")]
        drained = drained_at(ns, "cpu-1")
        expect(min(made) >= start and drained >= opens, f"the window opens at {start} ({opens}), workers were made at {made}, one was drained at {drained}")
    ends_well(ns, job)
    if ns.tag >= "25.05":
        wait("it is replaced after its job", lambda: len(replaced()) == 3)
        wait("all are updated", lambda: ns.get(kind, "cpu")["status"].get("updatedReplicas") == 3)
        expect("Nodes=cpu-[0-2]" in reservations(), f"the reservation has lost nodes: {reservations()}")
    put(None, None)
    wait("the reservation is gone", lambda: name not in reservations())
    if ns.tag < "25.05":
        ns.wait_condition(kind, "cpu", "Degraded", "False")
    wait("3 idle workers as before", lambda: ns.get(kind, "cpu")["status"].get("updatedReplicas") == 3 and len(ns.idle()) == 3)
    wait("the finalizer is gone", lambda: "nodeset.slinky.slurm.net/reservation" not in ns.get(kind, "cpu")["metadata"]["finalizers"])


@test
def features_of_extra_conf_reach_running_workers(ns):
    workers = lambda: {name: pod["metadata"]["uid"] for name, pod in ns.workers().items() if name.startswith("cpu-")}
    before = workers()
    nodeset = lambda: ns.get("nodesets.slinky.slurm.net", "cpu")
    conf = nodeset()["spec"].get("extraConf", "")
    put = lambda text: ns.patch("nodesets.slinky.slurm.net", "cpu", {"spec": {"extraConf": text}})
    features = lambda name: set(ns.slurm("sinfo", "-h", "-N", "-n", name, "-o", "%b").stdout.split()[0].split(","))
    updated = lambda: (lambda of: of["status"].get("updatedReplicas") == 3
                       and of["status"]["observedGeneration"] == of["metadata"]["generation"])(nodeset())
    job = running_on(ns, "cpu-1")
    put((conf + " Features=e2e").strip())
    wait("all workers have the feature", lambda: all(features(name) == {"cpu", "e2e"} for name in before))
    wait("they count as updated", updated)
    runs_well(ns, "true", "-N1", "-C", "e2e")
    reconfigure(ns, *before)
    expect(features("cpu-0") == {"cpu", "e2e"}, f"a reconfigure leaves {features('cpu-0')}")
    put(conf or None)
    wait("the feature is gone", lambda: all(features(name) == {"cpu"} for name in before))
    wait("they count as updated", updated)
    expect(workers() == before, "a worker was replaced for its features")
    ends_well(ns, job)


@test
def weights_of_extra_conf_reach_running_workers(ns):
    uids = lambda: {name: pod["metadata"]["uid"] for name, pod in ns.workers().items() if name.startswith("cpu-")}
    before = uids()
    nodeset = lambda: ns.get("nodesets.slinky.slurm.net", "cpu")
    conf = nodeset()["spec"].get("extraConf", "")
    put = lambda text: ns.patch("nodesets.slinky.slurm.net", "cpu", {"spec": {"extraConf": text}})
    weights = lambda: {name: int(ns.slurm("sinfo", "-h", "-N", "-n", name, "-o", "%w").stdout.split()[0]) for name in before}
    updated = lambda: (lambda of: of["status"].get("updatedReplicas") == 3
                       and of["status"]["observedGeneration"] == of["metadata"]["generation"])(nodeset())
    job = running_on(ns, "cpu-1")
    put((conf + " Weight=7").strip())
    wait("all workers have the weight", lambda: set(weights().values()) == {7})
    wait("they count as updated", updated)
    reconfigure(ns, *before)
    wait("they have it again after a reconfigure", lambda: set(weights().values()) == {7})
    put((conf + " Weight=1").strip())
    wait("they have the next one", lambda: set(weights().values()) == {1} and updated())
    expect(uids() == before, "a worker was replaced for its weight")
    ends_well(ns, job)
    put(conf or None)
    wait("they are as they were", lambda: updated() and len(ns.idle()) == 3)


@test
def a_drain_outlives_its_record(ns):
    """A changed extraConf takes effect only with a new node record. The new worker registers drained, with the old reason. A
    node that a waiting job requires keeps its record, and the job stays."""
    nodeset = lambda: ns.get("nodesets.slinky.slurm.net", "cpu")
    conf = nodeset()["spec"].get("extraConf", "")
    put = lambda text: ns.patch("nodesets.slinky.slurm.net", "cpu", {"spec": {"extraConf": text}})
    updated = lambda count: (lambda of: of["status"].get("updatedReplicas") == count
                             and of["status"]["observedGeneration"] == of["metadata"]["generation"])(nodeset())
    show = lambda: ns.slurm("scontrol", "-o", "show", "node", "cpu-1").stdout
    uid = lambda: ns.get("pod", "cpu-1")["metadata"]["uid"]
    reason, before = """bad "disk"; it's $HOME""", uid()
    ns.slurm("scontrol", "update", "nodename=cpu-1", "state=drain", f"reason={reason}")
    waiting = ns.submit_until_told("--hold", "-N1", "-w", "cpu-2")
    job = running_on(ns, "cpu-0")
    put((conf + " TmpDisk=7").strip())
    wait("the new record is drained as the old one was",
         lambda: "TmpDisk=7 " in show() and "+DRAIN" in show() and f"Reason={reason} [" in show())
    expect(uid() != before, "the pod is the old one")
    wait("it is not noted any more", lambda: not nodeset()["status"].get("drainsToRestore"))
    wait("slurmd does not say it again",
         lambda: "nodeset.slinky.slurm.net/first-conf" not in ns.get("pod", "cpu-1")["metadata"]["annotations"])
    ends_well(ns, job)
    wait("all that can be updated is", lambda: updated(2))
    ns.wait_condition("nodesets.slinky.slurm.net", "cpu", "Progressing", "False", saying=f"cpu-2 is required by pending jobs ({waiting})")
    ns.slurm("scontrol", "update", "nodename=cpu-1", "state=undrain")
    ns.slurm("scontrol", "reconfigure")
    wait("3 idle", lambda: len(ns.idle()) == 3)
    expect(ns.jobs()[waiting]["job_state"] == ["PENDING"], "the job that names cpu-2 is gone")
    ns.slurm("scontrol", "release", str(waiting))
    ends_well(ns, runs(ns, waiting))
    wait("the last one is updated", lambda: updated(3) and len(ns.idle()) == 3)
    put(conf or None)
    wait("they are as they were", lambda: updated(3) and len(ns.idle()) == 3)


@test
def scale_in_spares_busy_workers(ns):
    job = runs(ns, ns.submit_until_told("-w", "cpu-2", "-N1", "--exclusive"))
    wait("the deadline or state shows", lambda: any(
        c["type"] in ("SlurmNodeStateAllocated", "SlurmNodeStateMixed") and c["status"] == "True"
        for c in ns.get("pod", "cpu-2")["status"]["conditions"]))
    wait("the busy worker is protected", lambda: ns.get("pod", "cpu-2")["metadata"]["labels"].get(
        "nodeset.slinky.slurm.net/pod-protect") == "true")
    before = ns.get("pod", "cpu-0")["metadata"]["uid"]
    ns.kubectl("delete", "--wait=false", "pod", "cpu-0")
    wait("cpu-0 is usable again", lambda: ns.get("pod", "cpu-0")["metadata"]["uid"] != before and len(ns.idle()) == 2 and "cpu-0" in ns.idle())
    ends_well(ns, job)
    wait("3 idle", lambda: len(ns.idle()) == 3)


@test
@once
def busy_workers_are_not_evicted_while_scaled_in(ns):
    job = runs(ns, ns.submit("sleep 3600", "-N3", "--exclusive"))
    wait("the workers are protected", lambda: all(
        pod["metadata"]["labels"].get("nodeset.slinky.slurm.net/pod-protect") == "true" for pod in ns.workers().values()))
    ns.scale("cpu", 1)
    wait("workers drain", lambda: sum("DRAIN" in states for states, _ in ns.nodes().values()) == 2)
    # The budget is recalculated when a pod changes, so this makes a meaningless change.
    ns.kubectl("annotate", "pod", "cpu-0", "e2e.test/look=again")
    time.sleep(3)
    for name in ("cpu-0", "cpu-1", "cpu-2"):
        expect("disruption budget" in evict(ns, name), f"the eviction of {name} was let through")
    expect(len(ns.workers()) == 3, "a busy worker was evicted")
    expect(ns.jobs()[job]["job_state"] == ["RUNNING"], "the job was killed")
    ns.scale("cpu", 3)
    ns.slurm("scancel", str(job))
    wait("3 idle", lambda: len(ns.idle()) == 3)


@test
@alone
def an_eviction_waits_for_a_job_that_has_just_started(ns):
    before = ns.get("pod", "cpu-1")
    for _ in range(3):
        job = running_on(ns, "cpu-1")
        expect("disruption budget" in evict(ns, "cpu-1"), "a worker with a job that has just started was evicted")
        ends_well(ns, job)
    job, node = running_on(ns, "cpu-1"), before["spec"]["nodeName"]
    try:
        kubectl("cordon", node)
        wait("it is drained", lambda: "DRAIN" in ns.nodes()["cpu-1"][0])
        time.sleep(3)
        expect("disruption budget" in evict(ns, "cpu-1"), "a worker that runs a job was evicted")
        ends_well(ns, job)
        wait("the eviction goes through", lambda: not evict(ns, "cpu-1"))
        wait("the pod is gone", lambda: (ns.get("pod", "cpu-1") or before)["metadata"]["uid"] != before["metadata"]["uid"])
    finally:
        kubectl("uncordon", node)
    wait("3 idle", lambda: len(ns.idle()) == 3)


@test
@once
@alone
def an_idle_worker_leaves_a_cordoned_node_at_once(ns):
    before = ns.get("pod", "cpu-0")
    node = before["spec"]["nodeName"]
    expect("disruption budget" in evict(ns, "cpu-0"), "a worker that may get a job at any moment was evicted")
    try:
        kubectl("cordon", node)
        wait("the eviction goes through", lambda: not evict(ns, "cpu-0"))
    finally:
        kubectl("uncordon", node)
    wait("another pod", lambda: ns.get("pod", "cpu-0")["metadata"]["uid"] != before["metadata"]["uid"])
    wait("3 idle", lambda: len(ns.idle()) == 3)


@test
@alone
def a_daemonset_follows_the_kubernetes_nodes(ns):
    label = "e2e.slurm.test/pool"
    kube = [name for name in sorted(item["metadata"]["name"] for item in json.loads(kubectl("get", "nodes", "-o", "json").stdout)["items"])][:2]
    hosts = [name.split(".")[0] for name in kube]
    mode = lambda name, selector: ns.patch("nodesets.slinky.slurm.net", "cpu", {"spec": {
        "scalingMode": name, "template": {"spec": {"nodeSelector": selector}}}})
    try:
        kubectl("label", "node", "--overwrite", *kube, f"{label}={ns.name}")
        old = running_on(ns, "cpu-1")
        mode("DaemonSet", {label: ns.name})
        wait("a worker on each node", lambda: set(hosts) <= set(ns.idle()))
        wait("the idle workers have gone", lambda: set(ns.nodes()) == {"cpu-1", *hosts})
        ends_well(ns, old)
        wait("the last one has gone", lambda: set(ns.nodes()) == set(hosts) and len(ns.workers()) == len(hosts))
        wait("desired is the number of nodes", lambda: ns.get("nodesets.slinky.slurm.net", "cpu")["status"]["desired"] == len(hosts))

        job = running_on(ns, hosts[0])
        kubectl("label", "node", kube[0], f"{label}-")
        wait("its worker is drained", lambda: "DRAIN" in ns.nodes()[hosts[0]][0])
        time.sleep(3)
        expect(len(ns.workers()) == len(hosts), "a busy worker was deleted")
        ends_well(ns, job)
        wait("its worker has gone", lambda: hosts[0] not in ns.nodes() and len(ns.workers()) == len(hosts) - 1)

        kubectl("cordon", kube[0])
        try:
            kubectl("label", "node", kube[0], f"{label}={ns.name}")
            wait("a worker is made on a cordoned node", lambda: len(ns.workers()) == len(hosts), every=0.1)
            wait("it takes no jobs", lambda: "DRAIN" in ns.nodes().get(hosts[0], ([],))[0])
        finally:
            kubectl("uncordon", kube[0])
        wait("it is idle", lambda: set(ns.idle()) == set(hosts))
        mode("StatefulSet", None)
        wait("the workers with numbers are back", lambda: ns.idle() == [f"cpu-{i}" for i in range(3)] and len(ns.nodes()) == 3)
    finally:
        kubectl("label", "node", *kube, f"{label}-")


@test
@once
@alone
def a_worker_leaves_a_node_that_an_autoscaler_removes_when_its_job_has_ended(ns):
    before = ns.get("pod", "cpu-1")
    job, node = running_on(ns, "cpu-1"), before["spec"]["nodeName"]
    taint = "ToBeDeletedByClusterAutoscaler=1:NoSchedule"
    try:
        kubectl("taint", "node", node, taint)
        wait("it is drained", lambda: "has the taint ToBeDeletedByClusterAutoscaler" in ns.nodes()["cpu-1"][1])
        kubectl("taint", "node", node, taint + "-")
        wait("it is given back", lambda: "DRAIN" not in ns.nodes()["cpu-1"][0])
        kubectl("taint", "node", node, taint)
        wait("it is drained again", lambda: "DRAIN" in ns.nodes()["cpu-1"][0])
        time.sleep(3)
        expect("disruption budget" in evict(ns, "cpu-1"), "a worker that runs a job was evicted")
        ends_well(ns, job)
        kubectl("drain", node, "--pod-selector=app.kubernetes.io/name=slurmd", "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=300s")
        wait("the pod is gone", lambda: (ns.get("pod", "cpu-1") or before)["metadata"]["uid"] != before["metadata"]["uid"])
    finally:
        kubectl("taint", "node", node, taint + "-", check=False)
        kubectl("uncordon", node)
    wait("3 idle", lambda: len(ns.idle()) == 3)


@test
@once
def users_do_not_delete_busy_workers_by_mistake(ns):
    job = running_on(ns, "cpu-2")
    wait("it is known to be busy", lambda: ns.get("pod", "cpu-2")["metadata"]["labels"].get("nodeset.slinky.slurm.net/pod-busy"))
    out = ns.kubectl("delete", "pod", "cpu-2", "--wait=false", check=False)
    expect(out.returncode != 0 and "runs jobs" in out.stderr, f"the deletion is answered: {out.stdout}{out.stderr}")
    ends_well(ns, job)
    job = running_on(ns, "cpu-2")
    ns.kubectl("annotate", "pod", "cpu-2", "nodeset.slinky.slurm.net/pod-release=true")
    wait("it may be deleted", lambda: ns.kubectl("delete", "pod", "cpu-2", "--wait=false"))
    wait("3 idle", lambda: len(ns.idle()) == 3)


@test
@once
@alone
def a_busy_worker_is_not_preempted(ns):
    job = running_on(ns, "cpu-2")
    # Preemption depends on this label, which is set a second or two after the job has started.
    wait("the worker is marked as busy", lambda: ns.get("pod", "cpu-2")["metadata"]["labels"].get(
        "nodeset.slinky.slurm.net/pod-busy") == "true")
    worker = ns.get("pod", "cpu-2")
    node = worker["spec"]["nodeName"]
    millis = lambda text: int(text[:-1]) if text.endswith("m") else int(float(text) * 1000)
    requests = lambda pod: sum(millis(c.get("resources", {}).get("requests", {}).get("cpu", "0")) for c in pod["spec"]["containers"])
    pods = json.loads(kubectl("get", "pods", "-A", "--field-selector", f"spec.nodeName={node}", "-o", "json").stdout)["items"]
    namespaces = json.loads(kubectl("get", "namespaces", "-o", "json").stdout)["items"]
    stay = {item["metadata"]["name"] for item in namespaces if "deletionTimestamp" not in item["metadata"]}
    # Pods that are being deleted would make room without preemption.
    others = sum(requests(pod) for pod in pods if pod["metadata"]["uid"] != worker["metadata"]["uid"] and pod["metadata"]["namespace"] in stay
                 and "deletionTimestamp" not in pod["metadata"] and pod["status"]["phase"] not in ("Succeeded", "Failed"))
    room = millis(json.loads(kubectl("get", "node", node, "-o", "json").stdout)["status"]["allocatable"]["cpu"]) - others
    expect(0 < requests(worker) <= room, f"the worker requests {requests(worker)}m of {room}m")
    ns.apply(f"""
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {{name: {ns.name}-first}}
value: 900000000
---
apiVersion: v1
kind: Pod
metadata: {{name: preemptor}}
spec:
  priorityClassName: {ns.name}-first
  nodeSelector: {{kubernetes.io/hostname: {node}}}
  terminationGracePeriodSeconds: 0
  containers: [{{name: c, image: "local/slurmd:${{TAG}}", command: [sleep, "3600"], resources: {{requests: {{cpu: {room}m}}}}}}]
""")
    try:
        wait("the scheduler finds no room but by preemption", lambda: ns.events("preemptor", "FailedScheduling"))
        time.sleep(10)
        expect(ns.get("pod", "cpu-2")["metadata"]["uid"] == worker["metadata"]["uid"], "the worker was preempted")
        expect(ns.jobs()[job]["job_state"] == ["RUNNING"], "its job was lost")
        ends_well(ns, job)
    finally:
        ns.kubectl("delete", "pod", "preemptor", "--wait=true")
        kubectl("delete", "priorityclass", f"{ns.name}-first")
    wait("3 idle", lambda: len(ns.idle()) == 3)


@test
@once
@alone
def a_kubelet_that_is_away_costs_no_job(ns):
    home = ns.get("pod", "demo-controller-0")["spec"]["nodeName"]
    name = next((n for n, p in sorted(ns.workers().items()) if p["spec"]["nodeName"] != home), "cpu-2")
    moved(ns, name, {home})
    worker = ns.get("pod", name)
    node, away = worker["spec"]["nodeName"], ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
    limits = lambda: [t["tolerationSeconds"] for t in ns.get("pod", name)["spec"]["tolerations"] if "tolerationSeconds" in t]
    expect(not limits(), "the worker would leave a node whose kubelet is away")
    # Like the tolerations of an adopted worker, but shorter.
    hasty = [{**t, "tolerationSeconds": 5} if t.get("key") in away else t for t in worker["spec"]["tolerations"]]
    ns.patch("pod", name, {"spec": {"tolerations": hasty}})
    wait("a running worker is made patient", lambda: not limits())
    job = running_on(ns, name)
    with kubelet_away(node):
        taints = lambda: json.loads(kubectl("get", "node", node, "-o", "json").stdout)["spec"].get("taints", [])
        wait("its node is given up", lambda: any(t["effect"] == "NoExecute" for t in taints()), every=1)
        time.sleep(15)
        found = ns.get("pod", name)["metadata"]
        expect("deletionTimestamp" not in found, "the worker was deleted")
        ends_well(ns, job)
    wait("its node is back", lambda: not any(t["effect"] == "NoExecute" for t in taints()))
    expect(ns.get("pod", name)["metadata"]["uid"] == worker["metadata"]["uid"], "the worker was replaced")
    wait("3 idle", lambda: len(ns.idle()) == 3)


# The part of the Prometheus operator that the operator needs.
SERVICE_MONITORS = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: servicemonitors.monitoring.coreos.com}
spec:
  group: monitoring.coreos.com
  names: {kind: ServiceMonitor, listKind: ServiceMonitorList, plural: servicemonitors, singular: servicemonitor}
  scope: Namespaced
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""


class Prometheus:
    """A Prometheus on this machine that scrapes the slurmctld of this namespace, as its ServiceMonitor says, and the
    operator."""

    def __init__(self, ns, monitor):
        self.directory = tempfile.TemporaryDirectory()
        pods = json.loads(kubectl("-n", "slurm-operator", "get", "pods", "-l", "app.kubernetes.io/name=slurm-operator", "-o", "json").stdout)["items"]
        operators = [{"targets": [f"{pod['status']['podIP']}:8080"], "labels": {"namespace": "slurm-operator", "service": "slurm-operator", "pod": pod["metadata"]["name"], "endpoint": "metrics"}}
                     for pod in pods if "deletionTimestamp" not in pod["metadata"]]
        slurmctld = {"targets": [f"{ns.get('pod', 'demo-controller-0')['status']['podIP']}:6817"],
                     "labels": {"namespace": ns.name, "service": "demo-controller", "pod": "demo-controller-0", "endpoint": "slurmctld"}}
        jobs = [{"job_name": "operator", "static_configs": operators}]
        jobs += [{"job_name": endpoint["path"], "metrics_path": endpoint["path"], "static_configs": [slurmctld]} for endpoint in monitor["spec"]["endpoints"]]
        config = {"global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
                  "rule_files": [str(metrics_of.FILES / "alerts.yaml")], "scrape_configs": jobs}
        path = pathlib.Path(self.directory.name, "prometheus.json")
        path.write_text(json.dumps(config))
        (self.port,) = free_ports(1)
        self.process = subprocess.Popen(["prometheus", f"--config.file={path}", f"--storage.tsdb.path={self.directory.name}/data",
                                         f"--web.listen-address=127.0.0.1:{self.port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        self.process.kill()
        self.process.wait()
        self.directory.cleanup()

    def get(self, path, **arguments):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/api/v1/{path}?{urllib.parse.urlencode(arguments)}", timeout=10) as answer:
                return json.loads(answer.read())["data"]
        except OSError as error:
            raise Failed(f"Prometheus, {path}, {arguments}: {error} {error.read() if hasattr(error, 'read') else ''}")


def dashboards_and_alerts_have_data(ns, monitor):
    with Prometheus(ns, monitor) as prometheus:
        def scraped():
            targets = prometheus.get("targets")["activeTargets"]
            return len(targets) >= 5 and all(target["health"] == "up" for target in targets)

        wait("Prometheus scrapes all targets", scraped)
        time.sleep(8)
        for where, query in metrics_of.queries().items():
            # A target that is scraped slowly has fewer samples by then.
            wait(f"there are the metrics of {where}: {query}", lambda query=query: metrics_of.metrics(query) <= set(prometheus.get("metadata")) | {"up"})
            own = {"namespace": "slurm-operator"} if where.startswith("slurm-operator.json") else {"namespace": ns.name, "service": "demo-controller"}
            found = lambda: prometheus.get("query", query=metrics_of.filled(query, {**own, "__rate_interval": "10s"}))["result"]
            # Series about failures and withheld steps only exist after such an event.
            wait(f"data of {where}", lambda: found() or where.startswith("alerts.yaml") or "failed" in query)

        def evaluated():
            rules = [rule for group in prometheus.get("rules")["groups"] for rule in group["rules"]]
            expect(rules and all(rule["health"] == "ok" for rule in rules), f"a rule cannot be evaluated: {[r for r in rules if r['health'] != 'ok']}")
            return rules

        rules = wait("all rules are evaluated", evaluated)
        expect(not any(rule["state"] == "firing" for rule in rules), "an alert fires although all is well")


@test
@alone  # another lane may replace the operator, which is scraped here
def metrics_are_served_where_slurm_has_them(ns):
    metrics = lambda enabled: ns.patch("controllers.slinky.slurm.net", "demo", {"spec": {"metrics": {
        "enabled": enabled, "serviceMonitor": {"enabled": enabled, "labels": {"release": "prometheus"}, "interval": "5s"}}}})
    monitor = lambda: json.loads(ns.kubectl("get", "servicemonitors.monitoring.coreos.com", "-o", "json").stdout)["items"]
    told = lambda status, saying: ns.wait_condition("controllers.slinky.slurm.net", "demo", "MetricsServed", status, saying=saying)
    metrics(True)
    if ns.tag.startswith("24.11"):
        told("False", "has no metrics")
        metrics(False)
        return
    told("False", "NoServiceMonitors")
    try:
        kubectl("apply", "-f", "-", text=SERVICE_MONITORS)
        told("True", "Served")
        [made] = monitor()
        expect(made["metadata"]["name"] == "demo-controller" and made["metadata"]["labels"]["release"] == "prometheus",
               f"the ServiceMonitor is {made['metadata']}")
        pod = ns.get("pod", "demo-controller-0")["status"]["podIP"]
        for endpoint in made["spec"]["endpoints"]:
            wait(f"metrics under {endpoint['path']}", lambda endpoint=endpoint: "# TYPE slurm_" in run(
                "curl", "-fsS", "-m", "10", f"http://{pod}:6817{endpoint['path']}").stdout)
        dashboards_and_alerts_have_data(ns, made)
        ns.kubectl("delete", "servicemonitors.monitoring.coreos.com", "demo-controller")
        wait("the ServiceMonitor is made again", monitor)
        metrics(False)
        wait("there is none", lambda: not monitor())
        wait("nothing is told of metrics", lambda: not ns.condition("controllers.slinky.slurm.net", "demo", "MetricsServed"))
    finally:
        kubectl("delete", "crd", "servicemonitors.monitoring.coreos.com", check=False)


KUBECONFIG = TOP / ".local/kubeconfig"


def aggregated(ns, name, served, port):
    """Returns the objects with which the API server uses a process of this machine for an API (`served`: VERSION.GROUP): an
    APIService and a Service of this namespace."""
    server = json.loads(kubectl("config", "view", "--raw", "-o", "json").stdout)["clusters"][0]["cluster"]["server"]
    version, group = served.split(".", 1)
    return f"""
apiVersion: v1
kind: Service
metadata: {{name: {name}, namespace: {ns.name}}}
spec: {{ports: [{{port: 443, targetPort: {port}}}]}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{name: {name}, namespace: {ns.name}, labels: {{kubernetes.io/service-name: {name}}}}}
addressType: IPv4
ports: [{{port: {port}, protocol: TCP}}]
endpoints: [{{addresses: [{urllib.parse.urlparse(server).hostname}], conditions: {{ready: true}}}}]
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {{name: {served}}}
spec:
  group: {group}
  version: {version}
  insecureSkipTLSVerify: true
  groupPriorityMinimum: 100
  versionPriority: 100
  service: {{name: {name}, namespace: {ns.name}}}
"""


class MetricsServer:
    """A metrics server on this machine. The API server reaches it through a Service of this namespace."""

    def __init__(self, ns):
        self.directory = tempfile.TemporaryDirectory()
        (port,) = free_ports(1)
        self.objects = aggregated(ns, "metrics-server", "v1beta1.metrics.k8s.io", port)
        self.process = subprocess.Popen(
            [TOP / ".local/bin/metrics-server", f"--secure-port={port}", f"--cert-dir={self.directory.name}", "--metric-resolution=10s", "--kubelet-request-timeout=5s",
             "--kubelet-insecure-tls", "--kubelet-preferred-address-types=InternalIP",
             *(f"--{what}={KUBECONFIG}" for what in ("kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig"))],
            stdout=subprocess.DEVNULL, stderr=open(pathlib.Path(self.directory.name, "log"), "w"))

    def __enter__(self):
        # While it does not answer, no namespace can be deleted.
        wait("the metrics server listens", lambda: "Serving securely" in pathlib.Path(self.directory.name, "log").read_text())
        kubectl("apply", "-f", "-", text=self.objects)
        return self

    def __exit__(self, kind, error, trace):
        kubectl("delete", "-f", "-", "--ignore-not-found", text=self.objects, check=False)
        self.process.kill()
        self.process.wait()
        self.directory.cleanup()


@test
@once
@alone  # its API exists once in a cluster, and while that does not answer, no namespace can be deleted
def an_autoscaler_scales_by_real_metrics(ns):
    """The metric is memory: each worker and each login node uses more than a megabyte, and less than 100 GB."""
    autoscaler = lambda kind, name, target: ns.apply(f"""
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {{name: {name}}}
spec:
  scaleTargetRef: {{apiVersion: slinky.slurm.net/v1beta1, kind: {kind}, name: {name}}}
  minReplicas: 1
  maxReplicas: 4
  metrics: [{{type: Resource, resource: {{name: memory, target: {{type: AverageValue, averageValue: {target}}}}}}}]
  behavior: {{scaleDown: {{stabilizationWindowSeconds: 0}}}}
""")
    ns.apply(LOGINSET)
    with MetricsServer(ns):
        for name, count in (("slurmd", 3), ("login", 1)):
            wait("pods have metrics", lambda name=name, count=count: len(kubectl(
                "top", "pods", "-n", ns.name, "--no-headers", "-l", f"app.kubernetes.io/name={name}", check=False).stdout.split("\n")) > count)
        job = running_on(ns, "cpu-2")
        autoscaler("NodeSet", "cpu", "100G")
        autoscaler("LoginSet", "login", "1M")
        # The autoscaler checks every 15 s, and its numbers may be as old.
        wait("idle workers go, and the busy one stays", lambda: set(ns.workers()) == {"cpu-2"}, 900)
        wait("there are as many login nodes as may be", lambda: len(login_pods(ns)) == 4, 900)
        ns.wait_condition("loginsets.slinky.slurm.net", "login")
        ends_well(ns, job)
        autoscaler("NodeSet", "cpu", "1M")
        autoscaler("LoginSet", "login", "100G")
        wait("there are as many as may be", lambda: len(ns.idle()) == 4, 900)
        wait("one login node is left", lambda: len(login_pods(ns)) == 1, 900)
    ns.kubectl("delete", "horizontalpodautoscalers", "cpu", "login")
    no_login_nodes(ns)
    # Of four workers, one that is not ready yet would be deleted first, whatever its name.
    again_the_three(ns)


def free_ports(count):
    """Returns free ports of this machine."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("", 0))
        return [one.getsockname()[1] for one in sockets]


@contextlib.contextmanager
def keda(ns):
    """Runs KEDA for this namespace on this machine: its operator, which scales between 0 and 1, and its adapter, which provides
    the metrics for a HorizontalPodAutoscaler. dev/build.sh keda builds them."""
    definitions = TOP / ".local/bin/keda-crds.yaml"
    expect(definitions.exists(), "KEDA is not built: dev/build.sh keda")
    service, health, secure, metrics = free_ports(4)
    objects = aggregated(ns, "keda", "v1beta1.external.metrics.k8s.io", secure)
    env = ENV | {"KUBECONFIG": str(KUBECONFIG), "WATCH_NAMESPACE": ns.name, "POD_NAMESPACE": ns.name, "KEDA_CLUSTER_OBJECT_NAMESPACE": ns.name}
    processes = []
    with tempfile.TemporaryDirectory() as files:
        # The two authenticate each other with one certificate.
        run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=keda",
            "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", f"{files}/tls.key", "-out", f"{files}/tls.crt")
        shutil.copy(f"{files}/tls.crt", f"{files}/ca.crt")
        programs = {
            "operator": [f"--metrics-service-bind-address=127.0.0.1:{service}", f"--health-probe-bind-address=127.0.0.1:{health}",
                         "--enable-prometheus-metrics=false", f"--cert-dir={files}"],
            "adapter": [f"--metrics-service-address=127.0.0.1:{service}", f"--secure-port={secure}", f"--port={metrics}", f"--cert-dir={files}",
                        f"--tls-cert-file={files}/tls.crt", f"--tls-private-key-file={files}/tls.key",
                        *(f"--{what}-kubeconfig={KUBECONFIG}" for what in ("lister", "authentication", "authorization"))]}
        try:
            kubectl("apply", "--server-side", "-f", str(definitions))
            kubectl("wait", "--for=condition=Established", "-f", str(definitions), "--timeout=300s")
            for name, arguments in programs.items():
                with open(f"{files}/{name}.log", "w", encoding="utf-8") as log:
                    processes.append(subprocess.Popen([TOP / f".local/bin/keda-{name}", *arguments], env=env, stdout=log, stderr=log))
            # While it does not answer, no namespace can be deleted.
            wait("KEDA's adapter listens", lambda: "Serving securely" in pathlib.Path(files, "adapter.log").read_text())
            kubectl("apply", "-f", "-", text=objects)
            yield
        finally:
            # Only a running KEDA removes its finalizer.
            ns.kubectl("delete", "scaledobjects.keda.sh", "--all", "--timeout=300s", check=False)
            kubectl("delete", "-f", "-", "--ignore-not-found", text=objects, check=False)
            for process in processes:
                process.kill()
                process.wait()
            kubectl("delete", "-f", str(definitions), "--ignore-not-found", "--timeout=300s", check=False)


class Wanted:
    """An HTTP server on this machine that returns the number of wanted workers."""

    def __init__(self):
        self.workers = 0

        class Answer(http.server.BaseHTTPRequestHandler):
            def do_GET(answer):  # pylint: disable=no-self-argument,invalid-name
                answer.send_response(200)
                answer.end_headers()
                answer.wfile.write(json.dumps({"workers": self.workers}).encode())

            def log_message(answer, *_):  # pylint: disable=no-self-argument
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
        self.url = f"http://127.0.0.1:{self.server.server_port}/"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, kind, error, trace):
        self.server.shutdown()
        self.server.server_close()


@test
@once
@alone  # its definitions and its API exist once in a cluster
@long
def keda_scales_to_nothing_and_back(ns):
    """Uses the ScaledObject of the documentation, with shorter times and a number that the test sets."""
    scaled = documented("scale.md", "apiVersion: keda.sh")
    named = lambda: set(ns.workers())
    with Wanted() as wanted, keda(ns):
        job = running_on(ns, "cpu-2")
        scaled = scaled.replace("http://queue.example.com/workers", wanted.url)
        ns.apply(re.sub(r"(pollingInterval|cooldownPeriod): \d+", r"\1: 2", scaled))
        wait("idle workers go, and the busy one stays", lambda: named() == {"cpu-2"}
             and not ns.get("nodesets.slinky.slurm.net", "cpu")["spec"]["replicas"], 900)
        ends_well(ns, job)
        wait("no worker", lambda: not ns.nodes() and not named(), 900)

        submit = lambda: ns.submit_until_told("-N1", "--exclusive", "--no-requeue")
        if ns.tag == "24.11":
            refusal = ns.slurm("sbatch", "--wrap=true", check=False).stderr
            expect("Requested node configuration is not available" in refusal, f"a job for a partition without nodes is not refused: {refusal}")
        else:
            job = submit()
        wanted.workers = 1
        if ns.tag == "24.11":
            job = wait("a job is taken", submit, 900)
        runs(ns, job)
        first = ns.jobs()[job]["nodes"]
        wanted.workers = 3
        wait("three workers", lambda: len(ns.idle()) == 2 and len(named()) == 3, 900)
        wanted.workers = 0
        wait("only the busy one is left", lambda: named() == {first}, 900)
        ends_well(ns, job)
        wait("no worker again", lambda: not ns.nodes() and not named(), 900)
    again_the_three(ns)


@test
def a_configuration_waits_for_prologs(ns):
    """Otherwise slurmctld would lose the scripts of batch jobs that wait for a prolog."""
    conf = ns.get("controllers.slinky.slurm.net", "demo")["spec"].get("extraConf", "")
    spec = lambda **fields: ns.patch("controllers.slinky.slurm.net", "demo", {"spec": fields})
    flags = f"{conf}\nPrologFlags=Alloc,DeferBatch\n"
    reconfigured = lambda status="True", saying="Loaded": ns.wait_condition("controllers.slinky.slurm.net", "demo", "Reconfigured", status, saying=saying)
    script = "until [ -e /tmp/prolog-may-end ]; do sleep 0.2; done"
    ns.kubectl("create", "configmap", "slow-prolog", f"--from-literal=slow.sh=#!/bin/sh\n{script}\n")
    may_end = lambda worker: ns.kubectl("exec", worker, "-c", "slurmd", "--", "touch", "/tmp/prolog-may-end")
    try:
        spec(extraConf=flags, prologScriptRefs=[{"name": "slow-prolog"}])
        wait("it is loaded", lambda: "slow.sh" in ns.slurm("scontrol", "show", "config").stdout)
        reconfigured()
        wait("slurmds have it", lambda: ns.kubectl("exec", "cpu-1", "-c", "slurmd", "--", "sh", "-c", "ls /run/slurm/conf /var/spool/slurmd/conf-cache 2>/dev/null | grep slow.sh"))
        timeout = lambda: int(re.search(r"MessageTimeout\s*= (\d+) sec", ns.slurm("scontrol", "show", "config").stdout)[1])
        spec(extraConf=f"{flags}MessageTimeout=76\n")
        wait("it is loaded", lambda: timeout() == 76)
        reconfigured()
        job = ns.submit("sleep 1", "-N1", "-w", "cpu-1")
        wait("its prolog runs", lambda: ns.jobs()[job]["state_reason"] == "Prolog")
        spec(extraConf=f"{flags}MessageTimeout=77\n")
        reconfigured("Unknown", "WaitingForProlog")
        time.sleep(4)
        expect(timeout() == 76, "slurmctld was reconfigured under a prolog")
        may_end("cpu-1")
        reconfigured()
        wait("the job completes", lambda: ns.completed(job))
        expect(not ns.condition("controllers.slinky.slurm.net", "demo", "JobsInDoubt"), "a job counts as cut short")
        expect(not ns.events("demo", "PrologCutShort"), f"it was loaded although a prolog ran: {ns.events('demo', 'PrologCutShort')}")
        if ns.tag.startswith("26.05"):
            # The operator waits at most a minute.
            job = ns.submit("sleep 1", "-N1", "-w", "cpu-0")
            wait("its prolog runs", lambda: ns.jobs()[job]["state_reason"] == "Prolog")
            spec(extraConf=f"{flags}MessageTimeout=78\n")
            ns.wait_condition("controllers.slinky.slurm.net", "demo", "JobsInDoubt", saying=f": {job}. ", timeout=600)
            reconfigured()
            wait("an event names the job", lambda: str(job) in ns.events("demo", "PrologCutShort"))
            may_end("cpu-0")
            print(f"  after its prolog the job is {dict(ns.fates([job]))}")
            ns.slurm("scancel", str(job))
            wait("nothing is told of it any more", lambda: not ns.condition("controllers.slinky.slurm.net", "demo", "JobsInDoubt"))
    finally:
        for worker in ("cpu-0", "cpu-1"):
            wait("its prologs may end", lambda worker=worker: may_end(worker))
        spec(extraConf=conf, prologScriptRefs=None)
    reconfigured()
    wait("3 idle", lambda: len(ns.idle()) == 3)


@test
def workers_that_start_get_the_new_configuration(ns):
    """slurmctld sends changes only to slurmds that have registered, so a slurmd that has fetched the previous configuration
    would keep it."""
    conf = ns.get("controllers.slinky.slurm.net", "demo")["spec"].get("extraConf", "")
    workers = ("cpu-0", "cpu-1", "cpu-2")
    paths = "/run/slurm/conf/slurm.conf /var/spool/slurmd/conf-cache/slurm.conf"
    has = lambda worker, line: line in ns.kubectl("exec", worker, "-c", "slurmd", "--", "sh", "-c", f"cat {paths} 2>/dev/null; true", check=False).stdout
    try:
        for round in range(4):
            line = f"MessageTimeout={61 + round}"
            for worker in workers:
                wait("it is deleted", lambda worker=worker: ns.kubectl("delete", "pod", worker, "--wait=false"))
            wait("others are made", lambda: len(ns.workers()) == 3)
            # In each round the change comes at another moment of their start.
            time.sleep(0.4 + 0.4 * round)
            ns.patch("controllers.slinky.slurm.net", "demo", {"spec": {"extraConf": f"{conf}\n{line}\n"}})
            wait(f"all slurmds have {line}", lambda: all(has(worker, line) for worker in workers))
    finally:
        ns.patch("controllers.slinky.slurm.net", "demo", {"spec": {"extraConf": conf}})
    ns.wait_condition("controllers.slinky.slurm.net", "demo", "Reconfigured", "True", saying="Loaded")
    wait("3 idle", lambda: len(ns.idle()) == 3)


@test
@once
def the_stop_switch_keeps_workers(ns):
    switch = "controller.slinky.slurm.net/stop-deletions"
    ns.kubectl("annotate", "controllers.slinky.slurm.net", "demo", f"{switch}=true")
    for kind, name in (("controllers", "demo"), ("nodesets", "cpu")):
        ns.wait_condition(f"{kind}.slinky.slurm.net", name, "DeletionsStopped")
    ns.scale("cpu", 1)
    time.sleep(5)
    expect(len(ns.workers()) == 3 and not any("DRAIN" in states for states, _ in ns.nodes().values()), "a worker was drained or deleted")
    ns.kubectl("annotate", "controllers.slinky.slurm.net", "demo", f"{switch}-")
    wait("1 worker is left", lambda: len(ns.workers()) == 1)
    wait("it says no more that it is stopped", lambda: ns.condition("nodesets.slinky.slurm.net", "cpu", "DeletionsStopped") is None)
    ns.scale("cpu", 3)
    wait("3 idle again", lambda: len(ns.idle()) == 3)


@test
@once
def a_slurm_that_lost_its_nodes_is_not_believed(ns):
    job = runs(ns, ns.submit_until_told("-w", "cpu-0", "-N1", "--exclusive"))
    for name in ("cpu-1", "cpu-2"):
        wait("its state shows", lambda name=name: any(
            c["type"] == "SlurmNodeStateIdle" for c in ns.get("pod", name)["status"]["conditions"]))
    # Deletes both records at once, because a single worker that Slurm does not know counts as forgotten.
    ns.slurm("scontrol", "delete", "nodename=cpu-[1-2]")
    ns.wait_condition("nodesets.slinky.slurm.net", "cpu", "DeletionsStopped", saying="does not know 2 of 3 workers")
    ns.scale("cpu", 1)
    time.sleep(5)
    expect(len(ns.workers()) == 3 and "DRAIN" not in ns.nodes()["cpu-0"][0], "Slurm was believed")
    ns.scale("cpu", 3)
    ns.kubectl("delete", "pod", "cpu-1", "cpu-2", "--wait=true")
    wait("its nodes are back", lambda: len(ns.idle()) == 2)
    wait("it goes on", lambda: ns.condition("nodesets.slinky.slurm.net", "cpu", "DeletionsStopped") is None)
    ends_well(ns, job)
    wait("3 idle", lambda: len(ns.idle()) == 3)


@test
@once
@alone
def another_version_of_a_kind_harms_nothing(ns):
    """Follows docs/how-to/version-a-resource.md, with a version that differs only in its name."""
    kind = "nodesets.slinky.slurm.net"
    definition = lambda: json.loads(kubectl("get", "crd", kind, "-o", "json").stdout)
    in_version = lambda version: json.loads(ns.kubectl("get", f"nodesets.{version}.slinky.slurm.net", "cpu", "-o", "json").stdout)
    operator = lambda: kubectl("get", "pods", "-n", "slurm-operator", "-o=jsonpath={..restartCount}").stdout
    (first,) = definition()["spec"]["versions"]
    second = first | {"name": "v1beta2", "storage": False}

    def have(*versions):
        kubectl("patch", "crd", kind, "--type=json", "-p", json.dumps([{"op": "replace", "path": "/spec/versions", "value": versions}]))

    def written_anew(meta):
        """Makes the API server store an object anew, by an empty patch. Also true if the object is gone: its namespace may be
        terminating."""
        done = kubectl("patch", kind, meta["name"], "-n", meta["namespace"], "--type=merge", "-p", "{}", check=False)
        return done.returncode == 0 or "not found" in done.stderr

    def migrate(version):
        # The API server learns of the definition a moment after it was written, and nothing shows when.
        time.sleep(5)
        for item in json.loads(kubectl("get", kind, "-A", "-o", "json").stdout)["items"]:
            wait("it is written anew", lambda item=item: written_anew(item["metadata"]))
        kubectl("patch", "crd", kind, "--subresource=status", "--type=merge", "-p", json.dumps({"status": {"storedVersions": [version]}}))

    def same():
        one, other = in_version("v1beta1"), in_version("v1beta2")
        for found in (one, other):
            found["metadata"].pop("managedFields", None)
        return other["apiVersion"].endswith("v1beta2") and one["metadata"] == other["metadata"] and one["spec"] == other["spec"]

    job, slurmctld, restarts = running_on(ns, "cpu-0"), slurmctld_identity(ns), operator()
    worker = ns.get("pod", "cpu-0")["metadata"]["uid"]
    try:
        have(first, second)
        wait("both versions show the same object", same)
        # Written in the new version, while the operator reads the old one.
        ns.kubectl("patch", "nodesets.v1beta2.slinky.slurm.net", "cpu", "--type=merge", "-p", '{"spec":{"replicas":2}}')
        wait("a worker goes", lambda: len(ns.workers()) == 2)
        have(first | {"storage": False}, second | {"storage": True})
        wait("it is stored", lambda: "v1beta2" in definition()["status"]["storedVersions"])
        migrate("v1beta2")
        # The API server may serve the changed definition a moment later.
        wait("it is scaled out", lambda: ns.scale("cpu", 3) is None)
        wait("it comes back", lambda: len(ns.idle()) == 2 and len(ns.workers()) == 3)
        wait("both versions show the same object", same)
    finally:
        have(first, second)
        wait("the old version is stored", lambda: "v1beta1" in definition()["status"]["storedVersions"])
        migrate("v1beta1")
        have(first)
    expect(definition()["spec"]["versions"] == [first], "the definition is not what it was")
    wait("the object is read in the version that is left", lambda: in_version("v1beta1")["spec"]["replicas"] == 3)
    wait("it is scaled in", lambda: ns.scale("cpu", 2) is None)
    wait("the operator goes on", lambda: len(ns.workers()) == 2)
    wait("it is scaled out", lambda: ns.scale("cpu", 3) is None)
    ends_well(ns, job)
    wait("3 idle", lambda: len(ns.idle()) == 3)
    expect(ns.get("pod", "cpu-0")["metadata"]["uid"] == worker, "the busy worker was replaced")
    expect(slurmctld_identity(ns) == slurmctld, "slurmctld was restarted")
    expect(operator() == restarts, "the operator was restarted")


@test
def a_deleted_pod_comes_back_usable(ns):
    before = ns.get("pod", "cpu-1")["metadata"]["uid"]
    ns.kubectl("delete", "pod", "cpu-1", "--wait=true")
    wait("a new pod", lambda: (ns.get("pod", "cpu-1") or {"metadata": {"uid": before}})["metadata"]["uid"] != before)
    wait("3 idle", lambda: len(ns.idle()) == 3)


@test
def a_foreign_drain_survives_everything(ns):
    ns.slurm("scontrol", "update", "nodename=cpu-0", "state=drain", "reason=admin: bad memory")
    before = slurmd_start(ns, "cpu-0")
    ns.kubectl("delete", "pod", "cpu-0", "--wait=true")
    wait("the pod is ready again", lambda: ns.condition("pod", "cpu-0", "Ready")["status"] == "True")
    wait("it has registered", lambda: slurmd_start(ns, "cpu-0") not in (0, before))
    time.sleep(5)
    states, reason = ns.nodes()["cpu-0"]
    expect("DRAIN" in states and "bad memory" in reason, f"the admin's drain is gone: {states} {reason}")
    ns.slurm("scontrol", "update", "nodename=cpu-0", "state=resume")
    wait("3 idle", lambda: len(ns.idle()) == 3)


@test
def cordoning_a_pod_drains_it(ns):
    ns.kubectl("annotate", "pod", "cpu-2", "nodeset.slinky.slurm.net/pod-cordon=true")
    wait("drained", lambda: "DRAIN" in ns.nodes()["cpu-2"][0])
    time.sleep(3)
    expect("DRAIN" in ns.nodes()["cpu-2"][0], "the drain was undone")
    ns.kubectl("annotate", "pod", "cpu-2", "nodeset.slinky.slurm.net/pod-cordon-")
    wait("3 idle", lambda: len(ns.idle()) == 3)


@test
def a_new_partition_needs_no_restart(ns):
    before = slurmctld_identity(ns)
    job = runs(ns, ns.submit_until_told("-N1", "-p", "cpu"))
    ns.apply("""
apiVersion: slinky.slurm.net/v1beta1
kind: NodeSet
metadata: {name: gpu}
spec:
  controllerRef: {name: demo}
  replicas: 1
  oversubscribeNode: true
  slurmd: {image: "local/slurmd:${TAG}", imagePullPolicy: IfNotPresent}
  extraConf: CPUs=1 RealMemory=500
  partition: {enabled: true, config: State=UP}
""")
    ns.wait_condition("nodesets.slinky.slurm.net", "gpu")
    wait("its worker is idle", lambda: "gpu-0" in ns.idle())
    wait_for_partition(ns, "gpu", "gpu-0")
    wait("srun on the new partition", lambda: ns.slurm("srun", "-p", "gpu", "hostname", timeout=60).stdout.strip() == "gpu-0")
    ns.kubectl("delete", "nodesets.slinky.slurm.net", "gpu", "--wait=true")
    wait("the partition goes", lambda: "gpu" not in ns.slurm("sinfo", "-h", "-o", "%R").stdout.split())
    expect(slurmctld_identity(ns) == before, "slurmctld was restarted")
    ends_well(ns, job)
    wait("3 idle", lambda: len(ns.idle()) == 3)


# A NodeSet whose workers have their own volumes.
WITH_VOLUMES = """
apiVersion: slinky.slurm.net/v1beta1
kind: NodeSet
metadata: {name: vol}
spec:
  controllerRef: {name: demo}
  replicas: 2
  oversubscribeNode: true
  slurmd: {image: "local/slurmd:${TAG}", imagePullPolicy: IfNotPresent, volumeMounts: [{name: scratch, mountPath: /scratch}]}
  partition: {enabled: true, config: State=UP}
  extraConf: CPUs=1 RealMemory=500
  volumeClaimTemplates:
  - metadata: {name: scratch}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 10Mi}}}
"""


def runs_well(ns, script, *options):
    """Runs a job with this script and waits until it has completed."""
    job = ns.submit(script, *options)
    wait("the job completes", lambda: ns.completed(job))


@test
@once
def volumes_outlast_workers(ns):
    claims = lambda: {claim["metadata"]["name"]: claim["metadata"]["uid"] for claim in ns.get("persistentvolumeclaims")
                      if claim["metadata"]["name"].startswith("scratch-")}
    serves = lambda count: lambda: [name for name in ns.idle() if name.startswith("vol-")] == [f"vol-{i}" for i in range(count)]
    there = ("-p", "vol", "-N1")
    ns.apply(WITH_VOLUMES)
    wait("2 workers with volumes", serves(2))
    wait_for_partition(ns, "vol", "vol-0", "vol-1")
    made = claims()
    expect(sorted(made) == ["scratch-vol-0", "scratch-vol-1"], made)
    for i in range(2):
        runs_well(ns, f"echo was here {i} >/scratch/mark", *there, "-w", f"vol-{i}")
    before = {name: pod["metadata"]["uid"] for name, pod in ns.workers().items() if name.startswith("vol-")}
    ns.patch("nodesets.slinky.slurm.net", "vol", {"spec": {"template": {"metadata": {"annotations": {"site": "new"}}}}})
    wait("an update replaces both", lambda: all(ns.workers()[name]["metadata"]["uid"] != uid for name, uid in before.items())
         and serves(2)())
    ns.scale("vol", 0)
    wait("no worker is left", lambda: not any(name.startswith("vol-") for name in [*ns.nodes(), *ns.workers()]))
    ns.scale("vol", 2)
    wait("2 workers again", serves(2))
    wait_for_partition(ns, "vol", "vol-0", "vol-1")
    expect(claims() == made, f"the claims {made} became {claims()}")
    for i in range(2):
        runs_well(ns, f"grep -x 'was here {i}' /scratch/mark", *there, "-w", f"vol-{i}")
    policy = lambda **when: ns.patch("nodesets.slinky.slurm.net", "vol", {"spec": {"persistentVolumeClaimRetentionPolicy": when}})
    policy(whenScaled="Delete")
    busy = lambda: [name for name in ("vol-0", "vol-1") if "nodeset.slinky.slurm.net/pod-busy" in ns.get("pod", name)["metadata"]["labels"]]
    wait("the operator knows that the jobs before have ended", lambda: not busy())
    job = runs(ns, ns.submit_until_told(*there, "-w", "vol-1", "--no-requeue"))
    wait("the operator knows who is busy", lambda: busy() == ["vol-1"])
    ns.patch("nodesets.slinky.slurm.net", "vol", {"spec": {"replicas": 1}})
    wait("the idle one goes, with its claim", lambda: list(claims()) == ["scratch-vol-1"])
    ends_well(ns, job)
    runs_well(ns, "grep -x 'was here 1' /scratch/mark", *there, "-w", "vol-1")
    policy(whenScaled="Retain", whenDeleted="Delete")
    ns.kubectl("delete", "nodesets.slinky.slurm.net", "vol", "--wait=true")
    wait("the claims go with their NodeSet", lambda: not claims())


@test
@once
def a_worker_whose_claim_gets_no_volume_is_told(ns):
    ns.apply(WITH_VOLUMES.replace("ReadWriteOnce]", "ReadWriteOnce], storageClassName: nosuch"))
    ns.wait_condition("nodesets.slinky.slurm.net", "vol", "Degraded", saying='"nosuch" not found')
    ns.kubectl("delete", "nodesets.slinky.slurm.net", "vol", "--wait=true")
    ns.kubectl("delete", "pvc", "scratch-vol-0", "scratch-vol-1", "--ignore-not-found")
    wait("3 idle", lambda: len(ns.idle()) == 3)


# A NodeSet whose workers are pinned.
PINNED = """
apiVersion: slinky.slurm.net/v1beta1
kind: NodeSet
metadata: {name: pin}
spec:
  controllerRef: {name: demo}
  replicas: 2
  oversubscribeNode: true
  pinToNode: true
  nodeFeatureLabels: [kubernetes.io/hostname]
  slurmd: {image: "local/slurmd:${TAG}", imagePullPolicy: IfNotPresent}
  partition: {enabled: true, config: State=UP}
  extraConf: CPUs=1 RealMemory=500
"""


@test
def workers_know_their_kubernetes_nodes(ns):
    pins = lambda: ns.get("nodesets.slinky.slurm.net", "pin")["status"].get("ordinalToNode")
    hosts = lambda: {name[4:]: pod["spec"]["nodeName"] for name, pod in ns.workers().items() if name.startswith("pin-")}
    serves = lambda: [name for name in ns.idle() if name.startswith("pin-")] == ["pin-0", "pin-1"]
    features = lambda name: set(ns.slurm("sinfo", "-h", "-N", "-n", name, "-o", "%b").stdout.strip().split(","))
    ns.apply(PINNED)
    wait("2 workers", serves)
    wait_for_partition(ns, "pin", "pin-0", "pin-1")
    before = hosts()
    wait("their Kubernetes nodes are remembered", lambda: pins() == before)
    for i, host in before.items():
        wait("the label is a feature", lambda: features(f"pin-{i}") == {"pin", f"k8s/{host}"})
        runs_well(ns, "true", "-p", "pin", "-N1", "-w", f"pin-{i}", f"--constraint=pin&k8s/{host}")
    ns.scale("pin", 0)
    wait("no worker is left", lambda: not hosts())
    ns.scale("pin", 2)
    wait("2 workers again", serves)
    expect(hosts() == before, f"workers of {before} came to {hosts()}")
    ns.kubectl("delete", "nodesets.slinky.slurm.net", "pin", "--wait=true")


@test
@alone
def annotations_of_kubernetes_nodes_reach_slurm(ns):
    host = ns.get("pod", "cpu-0")["spec"]["nodeName"]
    there = sorted(name for name, pod in ns.workers().items() if pod["spec"]["nodeName"] == host)
    spec = "features.slinky.slurm.net/spec"
    nodes = lambda: {n["name"]: n for n in json.loads(ns.slurm("scontrol", "show", "nodes", "--json").stdout)["nodes"]}
    try:
        kubectl("annotate", "node", host, f"{spec}=rack-7,fast")
        wait("the features are there", lambda: all(set(nodes()[name]["features"]) == {"cpu", "k8s/rack-7", "k8s/fast"} for name in there))
        runs_well(ns, "true", "-N1", "-w", there[0], "--constraint=k8s/rack-7&cpu")
        reconfigure(ns, *there)
        expect("k8s/fast" in nodes()[there[0]]["features"], "a reconfigure drops the features")
    finally:
        kubectl("annotate", "node", host, f"{spec}-")
    wait("the features are gone", lambda: all(nodes()[name]["features"] == ["cpu"] for name in there))
    wait("3 idle", lambda: len(ns.idle()) == 3)


@test
@alone
def labels_of_kubernetes_nodes_make_the_topology(ns):
    kind = "controllers.slinky.slurm.net"
    host = lambda name: ns.get("pod", name)["spec"]["nodeName"]
    leaf = lambda name, value: kubectl("label", "--overwrite", "node", host(name), "e2e.example/zone=a", f"e2e.example/leaf={value}")
    places = lambda: {n["name"]: n.get("topology", "") for n in json.loads(ns.slurm("scontrol", "show", "nodes", "--json").stdout)["nodes"]}
    way = lambda value: f"default:k8s:k8s/a:k8s/a/{value}"
    # cpu-1 must be the only worker below the other leaf switch.
    for name in ("cpu-0", "cpu-2"):
        moved(ns, name, {host("cpu-1")})
    hosts = [host(name) for name in ("cpu-0", "cpu-1", "cpu-2")]
    job = running_on(ns, "cpu-1")
    try:
        leaf("cpu-0", "one"), leaf("cpu-1", "two"), leaf("cpu-2", "one")
        ns.patch(kind, "demo", {"spec": {"topology": {"nodeLabels": ["e2e.example/zone", "e2e.example/leaf"]}}})
        if ns.tag < "25.05":
            wait("it is refused by name", lambda: ns.condition(kind, "demo", "Degraded")["reason"] == "TopologyNotSupported")
        else:
            wait("each node has its place", lambda: places() == {"cpu-0": way("one"), "cpu-1": way("two"), "cpu-2": way("one")})
            shown = lambda: ns.slurm("scontrol", "show", "topology").stdout
            wait("its switch has both", lambda: re.search(r"SwitchName=k8s/a/one .*Nodes=cpu-\[0,2\]", shown()))
            ends_well(ns, job)
            together = ns.slurm("srun", "-N2", "--exclusive", "--switches=1", "hostname").stdout.split()
            expect(sorted(together) == ["cpu-0", "cpu-2"], f"a job of one leaf ran on {together}")
            job, before = running_on(ns, "cpu-1"), slurmctld_identity(ns)
            leaf("cpu-1", "three")
            wait("its node has another place", lambda: places()["cpu-1"] == way("three"))
            wait("its switch is there", lambda: "k8s/a/three" in shown())
            wait("a switch that nobody names goes", lambda: "k8s/a/two" not in shown())
            expect(slurmctld_identity(ns) == before, "slurmctld was restarted for another label")
            wait("each has its place", lambda: places() == {"cpu-0": way("one"), "cpu-1": way("three"), "cpu-2": way("one")})
            wait("nothing is left to do", lambda: ns.condition(kind, "demo", "Degraded")["status"] == "False")
    finally:
        ns.patch(kind, "demo", {"spec": {"topology": None}})
        for name in hosts:
            kubectl("label", "node", name, "e2e.example/zone-", "e2e.example/leaf-")
    wait("no node has a place", lambda: not any(places().values()))
    ends_well(ns, job)
    wait("slurmctld has no topology.yaml any more", lambda: not ns.slurm("ls", "/etc/slurm/topology.yaml", check=False).stdout)
    ns.wait_condition(kind, "demo", "Progressing", "False")
    ns.wait_condition(kind, "demo")
    wait("3 idle workers as before", lambda: len(ns.idle()) == 3)


@test
def workers_get_the_places_that_a_file_names(ns):
    kind, spec = "controllers.slinky.slurm.net", ns.get("controllers.slinky.slurm.net", "demo")["spec"]
    placed = lambda status, saying: ns.wait_condition(kind, "demo", "WorkersPlaced", status, saying=saying)
    old = ns.tag < "25.05"
    conf = lambda leaf: f"SwitchName=s1 Nodes=cpu-[0-2]\nSwitchName=s2 Nodes={leaf}\nSwitchName=top Switches=s[1-2]\n"
    yaml = lambda leaf: textwrap.dedent(f"""\
        - topology: default
          cluster_default: true
          tree:
            switches:
              - {{switch: s1, nodes: "cpu-[0-2]"}}
              - {{switch: s2, nodes: "{leaf}"}}
              - {{switch: top, children: "s[1-2]"}}
        """)
    files = lambda leaf: {"topology.conf": conf(leaf)} if old else {"topology.yaml": yaml(leaf)}
    put = lambda leaf: ns.apply(json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "network"}, "data": files(leaf)}))
    together = lambda count: ns.slurm("srun", f"-N{count}", "-p", "net", "hostname", timeout=60).stdout.split()
    put("net-[0-4]")
    try:
        ns.patch(kind, "demo", {"spec": {"configFileRefs": spec.get("configFileRefs", []) + [{"name": "network"}],
                                         "extraConf": spec.get("extraConf", "") + ("TopologyPlugin=topology/tree\n" if old else "")}})
        placed("True", "Placed")
        ns.apply("""
apiVersion: slinky.slurm.net/v1beta1
kind: NodeSet
metadata: {name: net}
spec:
  controllerRef: {name: demo}
  replicas: 2
  oversubscribeNode: true
  slurmd: {image: "local/slurmd:${TAG}", imagePullPolicy: IfNotPresent}
  extraConf: CPUs=1 RealMemory=500
  partition: {enabled: true, config: State=UP}
""")
        ns.wait_condition("nodesets.slinky.slurm.net", "net")
        expect(sorted(together(2)) == ["net-0", "net-1"], "a NodeSet is ready, and Slurm refuses a job of its workers")
        before = slurmctld_identity(ns)
        ns.scale("net", 3)
        ns.wait_condition("nodesets.slinky.slurm.net", "net")
        expect(sorted(together(3)) == ["net-0", "net-1", "net-2"], "it was scaled out, and Slurm refuses a job of its workers")
        shown = ns.slurm("scontrol", "show", "topology").stdout
        expect(re.search(r"SwitchName=top .*Nodes=cpu-\[0-2\],net-\[0-2\]", shown), f"net-2 is below no switch: {shown}")
        placed("True", "Placed")
        expect(slurmctld_identity(ns) == before, "slurmctld was restarted")
        put("net-[0-1]")
        placed("False", "net-2")
    finally:
        ns.kubectl("delete", "nodesets.slinky.slurm.net", "net", "--ignore-not-found", "--wait=true")
        ns.patch(kind, "demo", {"spec": {"configFileRefs": spec.get("configFileRefs"), "extraConf": spec.get("extraConf")}})
    wait("nothing is told of places", lambda: not ns.condition(kind, "demo", "WorkersPlaced"))
    ns.wait_condition(kind, "demo", "Reconfigured", "True", saying="Loaded")
    wait("3 idle", lambda: len(ns.idle()) == 3)


@test
def a_refused_configuration_is_rolled_back_and_mended(ns):
    before = slurmctld_identity(ns)
    good = ns.get("controllers.slinky.slurm.net", "demo")["spec"]["extraConf"]
    ns.patch("controllers.slinky.slurm.net", "demo", {"spec": {"extraConf": good + "SchedulerType=sched/nonesuch\n"}})
    ns.wait_condition("controllers.slinky.slurm.net", "demo", "Degraded", saying="ConfigRefused")
    wait("slurmctld answers", lambda: "UP" in ns.slurm("scontrol", "ping").stdout)
    ns.patch("controllers.slinky.slurm.net", "demo", {"spec": {"extraConf": good + "MessageTimeout=15\n"}})
    ns.wait_condition("controllers.slinky.slurm.net", "demo", "Degraded", "False")
    wait("the new value is loaded", lambda: "MessageTimeout          = 15" in ns.slurm("scontrol", "show", "config").stdout)
    expect(slurmctld_identity(ns) == before, "slurmctld was restarted")
    ns.patch("controllers.slinky.slurm.net", "demo", {"spec": {"extraConf": good}})


# A job_submit plugin with which slurmctld marks each job.
MARKS = """
function slurm_job_submit(job_desc, part_list, submit_uid)
  job_desc.admin_comment = "WORD"
  return slurm.SUCCESS
end

function slurm_job_modify(job_desc, job_rec, part_list, modify_uid)
  return slurm.SUCCESS
end

return slurm.SUCCESS
"""


@test
def a_refused_file_does_not_come_back_with_slurmctlds_pod(ns):
    kind, spec = "controllers.slinky.slurm.net", ns.get("controllers.slinky.slurm.net", "demo")["spec"]
    put = lambda text: ns.apply(json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "marks"},
                                            "data": {"job_submit.lua": text}}))
    told = lambda status, saying: ns.wait_condition(kind, "demo", "Reconfigured", status, saying=saying)

    def mark():
        """Returns the mark of a job that is submitted now and never starts."""
        job = ns.submit("true", "--hold")
        shown = ns.slurm("scontrol", "show", "job", str(job)).stdout
        ns.slurm("scancel", str(job))
        return (re.findall(r"AdminComment=(\S+)", shown) or [""])[0]

    put(MARKS.replace("WORD", "first"))
    try:
        ns.patch(kind, "demo", {"spec": {"configFileRefs": spec.get("configFileRefs", []) + [{"name": "marks"}],
                                         "extraConf": spec.get("extraConf", "") + "JobSubmitPlugins=lua\n"}})
        told("True", "Loaded")
        wait("slurmctld has the file", lambda: mark() == "first")
        job = runs(ns, ns.submit_until_told("-N1"))
        put("function slurm_job_submit(\n")
        told("False", "ConfigRefused")
        for _ in range(2):
            before = slurmctld_identity(ns)
            ns.kubectl("delete", "pod", "demo-controller-0", "--wait=true")
            wait("another slurmctld answers", lambda: slurmctld_identity(ns) != before and "UP" in ns.slurm("scontrol", "ping").stdout)
            ns.wait_condition(kind, "demo")
            expect(mark() == "first", "slurmctld has another file than the one that it took")
            expect(slurmctld_identity(ns)[1] == 0, "slurmctld did not start at once")
        before = slurmctld_identity(ns)
        put(MARKS.replace("WORD", "mended"))
        told("True", "Loaded")
        wait("slurmctld has what was mended", lambda: mark() == "mended")
        expect(slurmctld_identity(ns) == before, "slurmctld was restarted for it")
        ends_well(ns, job)
    finally:
        ns.patch(kind, "demo", {"spec": {"configFileRefs": spec.get("configFileRefs"), "extraConf": spec.get("extraConf")}})
    told("True", "Loaded")
    wait("no job is marked", lambda: mark() == "")
    wait("3 idle", lambda: len(ns.idle()) == 3)


@test
@once
def malformed_extra_conf_names_its_line(ns):
    good = ns.get("controllers.slinky.slurm.net", "demo")["spec"]["extraConf"]
    ns.patch("controllers.slinky.slurm.net", "demo", {"spec": {"extraConf": good + "ScedulerType=sched/backfill\n"}})
    ns.wait_condition("controllers.slinky.slurm.net", "demo", "Degraded", saying="ScedulerType")
    ns.patch("controllers.slinky.slurm.net", "demo", {"spec": {"extraConf": good}})
    ns.wait_condition("controllers.slinky.slurm.net", "demo", "Degraded", "False")


# A NodeSet of one worker, with placeholders for an image and a pod template.
ODD = """
apiVersion: slinky.slurm.net/v1beta1
kind: NodeSet
metadata: {name: odd}
spec:
  controllerRef: {name: demo}
  replicas: 1
  oversubscribeNode: true
  slurmd: {image: "IMAGE", imagePullPolicy: IfNotPresent}
  extraConf: CPUs=1 RealMemory=500
  template: {spec: TEMPLATE}
"""


@test
@once
def bad_worker_templates_are_told_and_mend(ns):
    good = "local/slurmd:" + ns.tag
    ns.apply(ODD.replace("IMAGE", good).replace("TEMPLATE", "{nodeSelectr: {a: b}}"))
    ns.wait_condition("nodesets.slinky.slurm.net", "odd", "Degraded", saying="nodeSelectr")
    ns.apply(ODD.replace("IMAGE", "local/nonesuch:1").replace("TEMPLATE", "{}"))
    ns.wait_condition("nodesets.slinky.slurm.net", "odd", "Degraded", saying="nonesuch")
    ns.apply(ODD.replace("IMAGE", good).replace("TEMPLATE", "{}"))
    ns.wait_condition("nodesets.slinky.slurm.net", "odd")
    ns.kubectl("delete", "nodesets.slinky.slurm.net", "odd", "--wait=true")


@test
@once
def a_missing_secret_is_told_and_mends(ns):
    volumes = "{volumes: [{name: tmp, emptyDir: {}}, {name: site, secret: {secretName: site}}]}"
    ns.apply(ODD.replace("IMAGE", "local/slurmd:" + ns.tag).replace("TEMPLATE", volumes))
    wanted = f"spec.template.spec.volumes[1].secret.secretName: Secret {ns.name}/site does not exist"
    ns.wait_condition("nodesets.slinky.slurm.net", "odd", "Degraded", saying=wanted)
    wait("an event says the same", lambda: wanted in ns.events("odd", "SecretMissing"))
    ns.kubectl("create", "secret", "generic", "site", "--from-literal=a=b")
    ns.wait_condition("nodesets.slinky.slurm.net", "odd", "Degraded", "False")
    ns.wait_condition("nodesets.slinky.slurm.net", "odd")
    ns.kubectl("delete", "nodesets.slinky.slurm.net", "odd", "--wait=true")
    ns.kubectl("delete", "secret", "site")


@test
def the_state_of_slurmctld_survives_its_pod(ns):
    uid = lambda: (ns.get("pod", "demo-controller-0") or {"metadata": {"uid": None}})["metadata"]["uid"]
    before = uid()
    running = runs(ns, ns.submit("sleep 3600", "-N3", "--exclusive"))
    queued = ns.submit("true", "-N3", "--exclusive")
    ns.kubectl("delete", "pod", "demo-controller-0", "--wait=true")
    jobs = wait("slurmctld answers again", lambda: uid() not in (None, before) and ns.jobs())
    states = {job: jobs[job]["job_state"] for job in (running, queued) if job in jobs}
    expect(states == {running: ["RUNNING"], queued: ["PENDING"]}, f"the jobs are now: {states}")
    after = ns.submit("true", "-N1")
    expect(after == queued + 1, f"job {after} follows on job {queued}")
    ns.slurm("scancel", str(running))
    wait("the queued job completes", lambda: ns.completed(queued))
    wait("3 idle", lambda: len(ns.idle()) == 3)


@test
def a_token_opens_the_rest_api(ns):
    ns.apply("""
apiVersion: slinky.slurm.net/v1beta1
kind: Token
metadata: {name: alice}
spec:
  username: slurm
  jwtKeyRef: {name: demo-jwt-key, key: jwt.key}
""")
    ns.wait_condition("tokens.slinky.slurm.net", "alice")
    secret = ns.get("secret", "alice-jwt-slurm")
    token = base64.b64decode(secret["data"]["SLURM_JWT"]).decode()
    service = ns.get("service", "demo-restapi")["spec"]["clusterIP"]

    def ask(path):
        script = (f"exec 3<>/dev/tcp/{service}/6820; printf 'GET {path} HTTP/1.1\\r\\nHost: a\\r\\nConnection: close\\r\\n"
                  "X-SLURM-USER-NAME: slurm\\r\\nX-SLURM-USER-TOKEN: %s\\r\\n\\r\\n' \"$(cat)\" >&3; cat <&3")
        return ns.kubectl("exec", "-i", "demo-controller-0", "-c", "slurmctld", "--", "bash", "-c", script, text=token).stdout

    # slurmrestd writes / as \/.
    versions = wait("slurmrestd tells versions of its API", lambda: re.findall(r"slurm\\?/v0\.0\.(\d+)\\?/nodes", ask("/openapi/v3")))

    def tells_nodes():
        answer = ask(f"/slurm/v0.0.{max(map(int, versions))}/nodes/")
        expect('"cpu-0"' in answer, f"slurmrestd answered: {answer[:300]}")
        return True

    wait("it tells the nodes", tells_nodes)


LOGINSET = """
apiVersion: slinky.slurm.net/v1beta1
kind: LoginSet
metadata: {name: login}
spec:
  controllerRef: {name: demo}
  login: {image: "local/login:${TAG}", imagePullPolicy: IfNotPresent}
"""


def login_pods(ns):
    return {p["metadata"]["uid"]: p for p in ns.get("pods", labelSelector="app.kubernetes.io/name=login")}


def no_login_nodes(ns):
    ns.kubectl("delete", "loginsets.slinky.slurm.net", "login", "--ignore-not-found")
    wait("the login nodes are gone", lambda: not login_pods(ns))


def an_srun_is_told_that_it_is_cancelled(ns, key):
    """slurmctld notifies srun at the name of its host. The task ends only after a delay, so that there is time for that."""
    (pod,) = login_pods(ns).values()
    name, address = pod["metadata"]["name"], pod["status"]["podIP"]
    wait("slurmctld finds the login pod by its name", lambda: ns.slurm("getent", "hosts", name, check=False).stdout.split()[:1] == [address])
    on_worker = lambda *command, **options: ns.kubectl("exec", "cpu-1", "-c", "slurmd", "--", *command, **options)
    srun = subprocess.Popen(["kubectl", "-n", ns.name, "exec", "client", "--", *ssh_command(
        key, "root", "srun", "-w", "cpu-1", "sh", "-c", "'trap \"sleep 5; exit\" TERM; touch /tmp/begun; sleep 3600 & wait'")],
        stderr=subprocess.PIPE, text=True, env=ENV)
    try:
        wait("the task runs", lambda: srun.poll() is not None or on_worker("test", "-e", "/tmp/begun", check=False).returncode == 0)
        expect(srun.poll() is None, f"srun ended with {srun.poll()}")
        ns.slurm("scancel", *map(str, ns.jobs()))
        said = srun.communicate(timeout=LIMIT)[1]
        expect("Job step aborted" in said, f"srun was not told that its step is cancelled: {said}")
    finally:
        srun.kill()
    on_worker("rm", "/tmp/begun")
    wait("its worker is free again", lambda: len(ns.idle()) == 3)


@test
@once
def users_log_in_and_run_jobs(ns):
    have_client(ns)
    first, second = made_key(ns, "first"), made_key(ns, "second")
    # sshd would penalize the client for keys that are not valid yet, or no longer.
    patient = "PerSourcePenalties no\n"
    ns.apply(LOGINSET + f"  rootSshAuthorizedKeys: {json.dumps(first)}\n  extraSshdConfig: {json.dumps(patient)}\n")
    ns.wait_condition("loginsets.slinky.slurm.net", "login")
    wait("one login node", lambda: len(login_pods(ns)) == 1)
    # kube-proxy follows the ready endpoints with a delay.
    wait("the Service leads to it", lambda: ssh(ns, "first", "root", "true", check=False).returncode == 0)
    out = ssh(ns, "first", "root", "srun", "hostname").stdout.strip()
    expect(out.startswith("cpu-"), f"srun hostname printed {out}")
    wait("its worker is free again", lambda: len(ns.idle()) == 3)
    an_srun_is_told_that_it_is_cancelled(ns, "first")
    pods = set(login_pods(ns))

    ns.patch("loginsets.slinky.slurm.net", "login", {"spec": {"rootSshAuthorizedKeys": second}})
    wait("the other key opens", lambda: ssh(ns, "second", "root", "true", check=False).returncode == 0)
    expect(ssh(ns, "first", "root", "true", check=False).returncode == 255, "the key that was taken away opens still")
    expect(set(login_pods(ns)) == pods, "the pod was replaced for its keys")

    # A terminating pod waits for its sessions, and for the jobs that end with it. New sessions reach the next pod.
    session = subprocess.Popen(["kubectl", "-n", ns.name, "exec", "client", "--", *ssh_command(
        "second", "root", "srun", "-w", "cpu-1", "sh", "-c", "'until test -e /tmp/told; do sleep 0.2; done; echo done on $(hostname)'")],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENV)
    try:
        wait("the job runs", lambda: session.poll() is not None or [job["job_state"] for job in ns.jobs().values()] == [["RUNNING"]])
        expect(session.poll() is None, f"the session ended with {session.returncode}: {session.poll() is not None and session.stderr.read()}")
        ns.patch("loginsets.slinky.slurm.net", "login", {"spec": {"extraSshdConfig": patient + "MaxSessions 7"}})
        wait("the next pod serves alone", lambda: [p["metadata"]["uid"] in pods for p in login_pods(ns).values()
                                                   if "deletionTimestamp" not in p["metadata"]] == [False])
        ns.wait_condition("loginsets.slinky.slurm.net", "login")
        wait("new sessions reach the new sshd", lambda: "MaxSessions 7" in ssh(ns, "second", "root", "cat", "/etc/ssh/sshd_config").stdout)
        expect(pods < set(login_pods(ns)), "the pod did not wait for its session")
        expect(session.poll() is None, "the session was ended")
        ns.kubectl("exec", "cpu-1", "-c", "slurmd", "--", "touch", "/tmp/told")
        expect(session.communicate(timeout=LIMIT)[0].strip() == "done on cpu-1", "the job that ran from the session did not end well")
    finally:
        session.kill()
    wait("the former pod is gone", lambda: not pods & set(login_pods(ns)))
    ns.kubectl("exec", "cpu-1", "-c", "slurmd", "--", "rm", "/tmp/told")

    def host_keys():
        """Returns the host keys of each login node, as its sshd shows them."""
        addresses = [pod["status"]["podIP"] for pod in login_pods(ns).values()]
        scanned = lambda at: {line.split(" ", 1)[1] for line in client(ns, "ssh-keyscan", at).stdout.splitlines() if not line.startswith("#")}
        return [scanned(at) for at in addresses]

    (before,) = wait("its host keys", lambda: len(host_keys()) == 1 and host_keys())
    expect(before, "sshd shows no host keys")
    for count in (0, 2):
        ns.kubectl("scale", "loginsets.slinky.slurm.net", "login", f"--replicas={count}")
        wait("so many are there", lambda count=count: len(login_pods(ns)) == count)
        wait("the status tells of them", lambda count=count: ns.get("loginsets.slinky.slurm.net", "login")["status"]["replicas"] == count)
        ns.wait_condition("loginsets.slinky.slurm.net", "login")
    after = host_keys()
    expect(after == [before, before], f"the host keys {before} became {after}")
    no_login_nodes(ns)
    ns.kubectl("delete", "pod", "client")
    wait("3 idle", lambda: len(ns.idle()) == 3)


@test
def sshd_takes_what_users_write(ns):
    """The users' lines take precedence, and sshd accepts the file."""
    have_client(ns)
    client(ns, "bash", "-c", "mkdir -p /run/sshd && ssh-keygen -A")
    ns.apply(LOGINSET + "  replicas: 0\n")
    lines = {"usepam yes", "x11forwarding yes", "subsystem sftp internal-sftp"}
    for number, (extra, wanted) in enumerate((
            ("", lines),
            ("UsePAM no\nX11Forwarding no", {"usepam no", "x11forwarding no"}),
            ("Subsystem sftp /usr/lib/openssh/sftp-server -e", {"subsystem sftp /usr/lib/openssh/sftp-server -e", "usepam yes"}),
            ("MaxSessions 7\nMatch User nobody\n  X11Forwarding no\n  MaxSessions 1", {*lines, "maxsessions 7"}),
            ("Match User nobody\n  Banner none\nMatch all\nX11Forwarding no\nUsePAM no", {"usepam no", "x11forwarding no"}),
            ("HostKey /etc/ssh/ssh_host_rsa_key", {"hostkey /etc/ssh/ssh_host_rsa_key", *lines}),
    )):
        # The operator's own lines may stay the same, so the user's lines contain this mark.
        mark = f"# lines {number}"
        ns.patch("loginsets.slinky.slurm.net", "login", {"spec": {"extraSshdConfig": f"{mark}\n{extra}"}})
        file = lambda: ns.get("configmap", "login-ssh-config")["data"]["sshd_config"]
        wait("the file has the lines", lambda: mark in file() and "HostKey" in file())
        checked = ns.kubectl("exec", "-i", "client", "--", "bash", "-c", "cat >/tmp/sshd_config && /usr/sbin/sshd -t -f /tmp/sshd_config",
                             text=file(), check=False)
        expect(checked.returncode == 0 and not checked.stderr, f"sshd says of {extra!r}: {checked.stderr}")
        # Reads the configuration as sshd evaluates it for a user. Later releases of sshd spell keywords as in the manual.
        told = set(client(ns, "/usr/sbin/sshd", "-T", "-f", "/tmp/sshd_config", "-C", "user=root,host=a,addr=10.0.0.1").stdout.lower().split("\n"))
        expect(wanted <= told, f"of {extra!r} sshd does not take {wanted - told}")
        if extra.startswith("HostKey"):
            expect(len([line for line in told if line.startswith("hostkey ")]) == 1, "there are host keys that the user does not name")
    no_login_nodes(ns)
    ns.kubectl("delete", "pod", "client")


@test
@once
def what_sshd_and_sssd_refuse_is_told(ns):
    ns.apply("""
apiVersion: v1
kind: Secret
metadata: {name: broken}
stringData: {sssd.conf: "no equal sign"}
""")
    told = lambda: next(c for c in ns.get("loginsets.slinky.slurm.net", "login").get("status", {}).get("conditions", [{"type": "Degraded", "message": ""}])
                        if c["type"] == "Degraded")["message"]
    rest = lambda: {c["type"]: c for c in ns.get("restapis.slinky.slurm.net", "demo")["status"]["conditions"]}
    try:
        ns.apply(LOGINSET + "  sssdConfRef: {name: broken, key: sssd.conf}\n  extraSshdConfig: Nonsense yes\n")
        wait("sshd's words", lambda: "Bad configuration option: Nonsense" in told())
        wait("SSSD's words", lambda: "Equal sign is missing" in told())
        ns.kubectl("delete", "loginsets.slinky.slurm.net", "login")
        wait("the login nodes are gone", lambda: not login_pods(ns))
        # The RestApi is used for this because it belongs to slurmctld's cluster, which keeps running.
        ns.patch("restapis.slinky.slurm.net", "demo", {"spec": {"sssdConfRef": {"name": "broken", "key": "sssd.conf"}}})
        wait("the RestApi tells of it and serves", lambda: rest()["Degraded"]["reason"] == "SssdRefuses" and rest()["Ready"]["status"] == "True")
    finally:
        no_login_nodes(ns)
        ns.patch("restapis.slinky.slurm.net", "demo", {"spec": {"sssdConfRef": None}})
        wait("the RestApi is as it was", lambda: rest()["Degraded"]["status"] == "False" and rest()["Ready"]["status"] == "True")
        ns.kubectl("delete", "secret", "broken")


@test
@once
def login_pods_without_sessions_go_first(ns):
    have_client(ns)
    public = made_key(ns, "first")
    ns.apply(LOGINSET + f"  replicas: 2\n  rootSshAuthorizedKeys: {json.dumps(public)}\n")
    ns.wait_condition("loginsets.slinky.slurm.net", "login")
    wait("the Service leads to them", lambda: ssh(ns, "first", "root", "true", check=False).returncode == 0)

    session = subprocess.Popen(["kubectl", "-n", ns.name, "exec", "client", "--", *ssh_command(
        "first", "root", "touch /tmp/here; until test -e /tmp/told; do sleep 0.2; done; echo well")], stdout=subprocess.PIPE, text=True, env=ENV)
    try:
        has = lambda pod: ns.kubectl("exec", pod, "-c", "login", "--", "test", "-e", "/tmp/here", check=False).returncode == 0
        busy = wait("the session is on one of them", lambda: [p["metadata"]["name"] for p in login_pods(ns).values() if has(p["metadata"]["name"])])[0]
        told = lambda pod: ns.kubectl("logs", pod, "-c", "sessions", "--tail=1").stdout.strip()
        wait("its pod tells of it", lambda: told(busy) == "sessions=1")

        # The values that an autoscaler uses.
        scale = json.loads(ns.kubectl("get", "loginsets.slinky.slurm.net", "login", "--subresource=scale", "-o", "json").stdout)["status"]
        selected = {p["metadata"]["uid"] for p in ns.get("pods", labelSelector=scale["selector"])}
        expect(scale["replicas"] == 2 and selected == set(login_pods(ns)), f"the subresource scale says {scale}")
        ns.kubectl("scale", "loginsets.slinky.slurm.net", "login", "--replicas=1")
        wait("the other pod is gone", lambda: [p["metadata"]["name"] for p in login_pods(ns).values()] == [busy])
        expect("deletionTimestamp" not in next(iter(login_pods(ns).values()))["metadata"], "the pod with the session goes")

        ns.patch("loginsets.slinky.slurm.net", "login", {"spec": {"extraSshdConfig": "MaxSessions 7"}})
        wait("another one serves", lambda: len([p for p in login_pods(ns).values() if "deletionTimestamp" not in p["metadata"]
                                                and p["metadata"]["name"] != busy]) == 1)
        ns.wait_condition("loginsets.slinky.slurm.net", "login")
        progressing = lambda: next(c for c in ns.get("loginsets.slinky.slurm.net", "login")["status"]["conditions"] if c["type"] == "Progressing")
        wait("the status says what is waited for", lambda: progressing()["reason"] == "WaitingForSessions"
             and f"pod {busy} waits for 1 session, until " in progressing()["message"])
        ns.kubectl("exec", busy, "-c", "login", "--", "touch", "/tmp/told")
        expect(session.communicate(timeout=LIMIT)[0].strip() == "well", "the session did not end well")
    finally:
        session.kill()
    wait("the former pod is gone", lambda: busy not in [p["metadata"]["name"] for p in login_pods(ns).values()])
    wait("nothing is waited for", lambda: progressing()["reason"] == "Done")
    no_login_nodes(ns)
    ns.kubectl("delete", "pod", "client")


@contextlib.contextmanager
def directory(ns):
    """Creates an LDAP server that knows alice, the Secret sssd for it, and the ConfigMap people with the key that the client
    has for her."""
    have_client(ns)
    # The pod of a previous test may still be terminating.
    ns.kubectl("delete", "pod", "ldap", "--ignore-not-found")
    public = made_key(ns, "alice")
    ns.apply("""
apiVersion: v1
kind: Pod
metadata: {name: ldap, labels: {app: ldap}}
spec:
  containers: [{name: ldap, image: "local/ldap:${TAG}", imagePullPolicy: IfNotPresent, readinessProbe: {tcpSocket: {port: 389}, periodSeconds: 1}}]
---
apiVersion: v1
kind: Service
metadata: {name: ldap}
spec: {selector: {app: ldap}, ports: [{port: 389}]}
---
apiVersion: v1
kind: Secret
metadata: {name: sssd}
stringData:
  sssd.conf: |
    [sssd]
    services = nss,pam
    domains = example
    [domain/example]
    id_provider = ldap
    ldap_uri = ldap://ldap
    ldap_search_base = dc=example,dc=com
    ldap_id_use_start_tls = false
""")
    ns.kubectl("create", "configmap", "people", f"--from-literal=alice={public}")
    try:
        ns.kubectl("wait", "--for=condition=Ready", "pod/ldap", "--timeout=300s")
        yield
    finally:
        ns.kubectl("delete", "pod/ldap", "pod/client", "service/ldap", "secret/sssd", "configmap/people", "--wait=false")


@test
def users_of_a_directory_log_in(ns):
    with directory(ns):
        try:
            ns.apply(LOGINSET + "  sssdConfRef: {name: sssd, key: sssd.conf}\n  authorizedKeysRefs: [{name: people}]\n"
                     "  extraSshdConfig: PerSourcePenalties no\n")
            ns.wait_condition("loginsets.slinky.slurm.net", "login")
            who = wait("alice logs in", lambda: ssh(ns, "alice", "alice", "id").stdout.strip())
            expect(who.startswith("uid=5001(alice) gid=5001(alice)") and "5002(lab)" in who, f"id printed {who}")
            out = ssh(ns, "alice", "alice", "srun", "sh", "-c", "'id -u; id -G'").stdout.split()
            expect(out[0] == "5001" and set(out[1:]) == {"5001", "5002"}, f"in a job id printed {out}")
            job = int(ssh(ns, "alice", "alice", "sbatch", "--parsable", "--output=/dev/null", "--wrap=true").stdout)
            wait("her batch job completes", lambda: ns.completed(job))
            # alice may not read these files.
            for path in ("/etc/slurm/slurm.key", "/etc/ssh/ssh_host_ed25519_key", "/etc/sssd/sssd.conf", "/run/slurm-sessions/now"):
                read = ssh(ns, "alice", "alice", "cat", path, check=False)
                expect(read.returncode == 1 and "Permission denied" in read.stderr, f"she reads {path}: {read.returncode} {read.stderr}")
            out = ssh(ns, "alice", "alice", "ls", "/var/run/secrets/kubernetes.io", check=False)
            expect("No such file" in out.stderr, "the pod has a token of a service account")
        finally:
            no_login_nodes(ns)
    wait("3 idle", lambda: len(ns.idle()) == 3)


@test
def daemons_know_users_of_a_directory(ns):
    conf = ns.get("controllers.slinky.slurm.net", "demo")["spec"]["extraConf"]

    def submit_as(uid):
        """Submits a job from a pod that knows neither the user nor the group."""
        return int(ns.kubectl("exec", "cpu-0", "-c", "slurmd", "--", "setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "sbatch",
                              "--parsable", "--partition=lab", "--output=/dev/null", "--wrap=true").stdout)

    def shown(job):
        return ns.slurm("scontrol", "show", "job", str(job)).stdout

    def daemons(ref, more=""):
        before = slurmctld_identity(ns)
        for kind in ("controllers", "restapis"):
            ns.patch(f"{kind}.slinky.slurm.net", "demo", {"spec": {"sssdConfRef": ref}})
        ns.patch("controllers.slinky.slurm.net", "demo", {"spec": {"extraConf": conf + more}})
        wait("another slurmctld", lambda: slurmctld_identity(ns)[0] != before[0])
        for kind in ("controllers", "restapis"):
            ns.wait_condition(f"{kind}.slinky.slurm.net", "demo", "Progressing", "False")
            ns.wait_condition(f"{kind}.slinky.slurm.net", "demo")

    with directory(ns):
        long = running_on(ns, "cpu-1")
        try:
            daemons({"name": "sssd", "key": "sssd.conf"}, "PartitionName=lab Nodes=cpu AllowGroups=lab\n")
            wait_for_partition(ns, "lab", "cpu-0", "cpu-1", "cpu-2")
            job, others = submit_as(5001), submit_as(5003)
            wait("her job completes", lambda: ns.completed(job))
            expect("UserId=alice(5001)" in shown(job), "her name is not shown")
            wait("another user's waits", lambda: "not in group permitted" in shown(others).replace("_", " "))
            ns.slurm("scancel", str(others))
            ends_well(ns, long)
        finally:
            ns.slurm("scancel", "--partition=lab", check=False)
            daemons(None)
    wait("3 idle", lambda: len(ns.idle()) == 3)


@test
def users_log_in_where_their_jobs_run(ns):
    conf = ns.get("controllers.slinky.slurm.net", "demo")["spec"]["extraConf"]
    reach = functools.partial(ssh, ns, "alice", "alice", host="shell-0.slurm-workers-demo", check=False)

    def refused():
        told = reach("true")
        expect(told.returncode == 255 and "Access denied by pam_slurm_adopt" in told.stderr, f"{told.returncode}: {told.stderr}")
        return True

    def job_of_alice():
        out = ns.kubectl("exec", "shell-0", "-c", "slurmd", "--", "setpriv", "--reuid=alice", "--regid=alice", "--init-groups", "sbatch",
                         "--parsable", "--partition=shell", "--output=/dev/null", "--wrap=sleep 3600").stdout
        return runs(ns, int(out))

    with directory(ns):
        try:
            ns.apply("""
apiVersion: slinky.slurm.net/v1beta1
kind: NodeSet
metadata: {name: shell}
spec:
  controllerRef: {name: demo}
  oversubscribeNode: true
  slurmd: {image: "local/slurmd:${TAG}", imagePullPolicy: IfNotPresent, volumeMounts: [{name: people, mountPath: /people}]}
  template: {spec: {volumes: [{name: people, configMap: {name: people}}]}}
  extraConf: CPUs=2 RealMemory=1000
  partition: {enabled: true}
  ssh:
    enabled: true
    sssdConfRef: {name: sssd, key: sssd.conf}
    extraSshdConfig: |
      AuthorizedKeysCommand /usr/bin/cat /people/%u
      AuthorizedKeysCommandUser root
      PerSourcePenalties no
""")
            ns.wait_condition("nodesets.slinky.slurm.net", "shell", "Degraded", saying="PrologFlags=Contain")
            wait("its slurmd has registered", lambda: "shell-0" in ns.idle())
            before = slurmd_start(ns, "shell-0")
            ns.patch("controllers.slinky.slurm.net", "demo", {"spec": {"extraConf": conf + "PrologFlags=Contain\n"}})
            ns.wait_condition("nodesets.slinky.slurm.net", "shell", "Degraded", "False")
            ns.wait_condition("nodesets.slinky.slurm.net", "shell")
            # A job that starts earlier has no step that sessions could join.
            wait("slurmd has got it", lambda: "Contain" in ns.kubectl("exec", "shell-0", "-c", "slurmd", "--", "cat", "/run/slurm/conf/slurm.conf").stdout)
            wait("it has registered with it", lambda: slurmd_start(ns, "shell-0") not in (0, before))
            ns.wait_condition("controllers.slinky.slurm.net", "demo", "Progressing", "False")
            wait("its node is idle", lambda: "shell-0" in ns.idle())
            wait_for_partition(ns, "shell", "shell-0")
            wait("who has no job there is refused", refused)
            job = job_of_alice()
            who = wait("alice logs in where her job runs", lambda: reach("id").stdout.strip())
            expect(who.startswith("uid=5001(alice) gid=5001(alice)"), f"id printed {who}")
            expect(ssh(ns, "alice", "alice", "true", host="cpu-0.slurm-workers-demo", check=False).returncode == 255, "a worker without ssh answers")
            ns.slurm("scancel", str(job))
            wait("the job is over", lambda: "shell-0" in ns.idle())
            wait("she is refused again", refused)
            # The client would refuse another host key with another message.
            pod = ns.get("pod", "shell-0")["metadata"]["uid"]
            wait("it runs no job any more, as its label says",
                 lambda: "nodeset.slinky.slurm.net/pod-busy" not in ns.get("pod", "shell-0")["metadata"]["labels"])
            ns.kubectl("delete", "pod", "shell-0")
            wait("another pod", lambda: ns.get("pod", "shell-0")["metadata"]["uid"] != pod)
            ns.kubectl("wait", "--for=condition=Ready", "pod/shell-0", "--timeout=300s")
            wait("it has the same host keys", refused)
        finally:
            ns.slurm("scancel", "--partition=shell", check=False)
            ns.kubectl("delete", "nodesets.slinky.slurm.net", "shell", "--ignore-not-found")
            ns.patch("controllers.slinky.slurm.net", "demo", {"spec": {"extraConf": conf}})
    ns.wait_condition("controllers.slinky.slurm.net", "demo", "Progressing", "False")
    wait("3 idle", lambda: len(ns.idle()) == 3)


@test
@once
@alone
def the_operator_may_restart_while_a_worker_drains(ns):
    slurmctld = slurmctld_identity(ns)
    job = runs(ns, ns.submit_until_told("-N3", "--exclusive"))
    ns.scale("cpu", 1)
    wait("a worker drains", lambda: any("DRAIN" in states for states, _ in ns.nodes().values()))
    kubectl("-n", "slurm-operator", "delete", "pod", "-l", "app.kubernetes.io/name=slurm-operator", "--wait=true")
    ends_well(ns, job)
    wait("1 worker is left", lambda: len(ns.workers()) == 1)
    ns.scale("cpu", 3)
    wait("3 idle", lambda: len(ns.idle()) == 3)
    expect(slurmctld_identity(ns) == slurmctld, "slurmctld was restarted with the operator")


@test
@once
def the_garbage_collector_may_not_kill_busy_workers(ns):
    job = runs(ns, ns.submit_until_told("-N1", "-w", "cpu-0", "--exclusive"))
    ns.kubectl("delete", "nodesets.slinky.slurm.net", "cpu", "--cascade=foreground", "--wait=false")
    wait("only the busy one is left", lambda: list(ns.workers()) == ["cpu-0"])
    expect(ns.jobs()[job]["job_state"] == ["RUNNING"], "the job was killed")
    ns.told(job)
    wait("the NodeSet goes when its job has ended", lambda: ns.get("nodesets.slinky.slurm.net", "cpu") is None)
    expect(not ns.nodes(), f"records were left: {ns.nodes()}")
    ready_cluster(ns)


# --- Ending workers, and administrators' holds ------------------------------------------------------------------------

def queue_while(ns, what):
    """Runs eighteen short jobs, which may not be requeued, on one CPU each, while `what` happens to cpu-1. Only jobs that run
    there may be lost. Each other job leaves a line on the worker where it ended."""
    jobs = ns.submit_many(18, "sleep 3; echo $SLURM_JOB_ID >>/tmp/ended", "--no-requeue", "--exclusive", "-N1")
    wait("a job runs on cpu-1", lambda: any(job["nodes"] == "cpu-1" for job in ns.jobs().values() if job["job_id"] in jobs))
    before, begun_at = ns.get("pod", "cpu-1")["metadata"]["uid"], time.time()
    what()
    told_at = time.time()

    def takes_no_more():
        """Returns since when the node takes no more jobs, as Slurm has recorded it. If nobody looked in time, the successor may
        already be ready."""
        node, pod = ns.nodes().get("cpu-1"), ns.get("pod", "cpu-1")
        if node and node[0] & {"DRAIN", "DOWN"}:
            # Before 26.05 the reason of an earlier drain may still be there.
            at = drained_at(ns, "cpu-1")
            return at if at >= int(begun_at) else time.time()
        gone = node is None or pod["metadata"]["uid"] != before and ns.condition("pod", "cpu-1", "Ready")["status"] == "True"
        return gone and time.time()

    # A deletion is confirmed before the kubelet and the operator see it. The limit also holds if the poll came late.
    ended_at = min(wait("it takes no more jobs", takes_no_more), told_at + 45)
    wait("the queue is empty", lambda: not any(job["job_state"][0] in ("PENDING", "RUNNING", "COMPLETING")
                                               for number, job in ns.jobs().items() if number in jobs), 600)
    wait("3 idle", lambda: len(ns.idle()) == 3)
    ended = "".join(wait("their lines", lambda: [
        ns.kubectl("exec", pod, "-c", "slurmd", "--", "sh", "-c", "cat /tmp/ended 2>/dev/null || true").stdout for pod in ns.workers()])).split()
    for number in jobs:
        job = json.loads(ns.slurm("scontrol", "show", "job", str(number), "--json").stdout)["jobs"][0]
        if job["nodes"] == "cpu-1" and (job["job_state"] == ["COMPLETED"] or job["start_time"]["number"] <= ended_at + 1):
            continue  # the job was on that worker when it ended, or its line was lost with a worker
        expect(job["job_state"] == ["COMPLETED"] and job["restart_cnt"] == 0, f"job {number} is {job['job_state']} on {job['nodes']}")
        expect(str(number) in ended, f"job {number} left no line")


def delete_though_busy(ns, pod, *options):
    ns.kubectl("annotate", "pod", pod, "nodeset.slinky.slurm.net/pod-release=true")
    ns.kubectl("delete", "pod", pod, *options)


@test
def a_worker_that_ends_gets_no_further_jobs(ns):
    queue_while(ns, lambda: delete_though_busy(ns, "cpu-1", "--wait=false"))


@test
def a_worker_that_is_removed_by_force_gets_no_further_jobs(ns):
    queue_while(ns, lambda: delete_though_busy(ns, "cpu-1", "--force", "--grace-period=0"))


@test
def a_resume_leaves_no_reason_of_ours(ns):
    job = runs(ns, ns.submit_until_told("-w", "cpu-2", "-N1", "--exclusive"))
    ns.kubectl("annotate", "pod", "cpu-2", "nodeset.slinky.slurm.net/pod-cordon=true")
    wait("drained", lambda: "DRAIN" in ns.nodes()["cpu-2"][0])
    ns.kubectl("annotate", "pod", "cpu-2", "nodeset.slinky.slurm.net/pod-cordon-")
    wait("resumed", lambda: "DRAIN" not in ns.nodes()["cpu-2"][0])
    reason = ns.nodes()["cpu-2"][1]
    expect(not reason.startswith("slurm-operator: "), f"Slurm's next drain would keep this and be taken for ours: {reason}")
    ends_well(ns, job)
    wait("3 idle", lambda: len(ns.idle()) == 3)


@test
def an_admins_drain_and_down_outlive_their_workers(ns):
    ns.slurm("scontrol", "update", "nodename=cpu-1", "state=drain", "reason=admin: bad disk")
    ns.slurm("scontrol", "update", "nodename=cpu-2", "state=down", "reason=admin: power supply")

    def held(when):
        nodes = ns.nodes()
        expect("DRAIN" in nodes["cpu-1"][0] and "bad disk" in nodes["cpu-1"][1], f"{when}: the drain is gone: {nodes['cpu-1']}")
        expect("DOWN" in nodes["cpu-2"][0] and "power supply" in nodes["cpu-2"][1], f"{when}: the down is gone: {nodes['cpu-2']}")
        return True

    def stays(when):
        wait(f"{when}: the drain and the down are there", lambda: held(when))
        time.sleep(5)
        held(when)

    reconfigure(ns, "cpu-0")
    stays("after a reconfigure")
    ns.scale("cpu", 0)
    wait("no worker", lambda: not ns.workers())
    ns.scale("cpu", 3)
    wait("cpu-0 is idle", lambda: ns.idle() == ["cpu-0"])
    wait("all are ready", lambda: ns.get("nodesets.slinky.slurm.net", "cpu")["status"].get("readyReplicas") == 3)
    stays("after scaling in and out")
    for name in ("cpu-1", "cpu-2"):
        ns.slurm("scontrol", "update", f"nodename={name}", "state=resume")
    wait("3 idle", lambda: len(ns.idle()) == 3)


# --- Drain policies --------------------------------------------------------------------------------------------------------

def drain_policy(ns, policy):
    ns.patch("nodesets.slinky.slurm.net", "cpu", {"spec": {"drainPolicy": policy}})


def goes_first(ns, worker):
    ns.kubectl("annotate", "pod", worker, "nodeset.slinky.slurm.net/pod-deletion-cost=-1000")


@test
def jobs_of_a_worker_that_goes_are_requeued_where_the_user_says_so(ns):
    drain_policy(ns, {"timeout": "60s", "onTimeout": "Requeue"})
    job = a_job_that_may_run_elsewhere(ns, "cpu-2")
    worker = ns.jobs()[job]["nodes"]
    goes_first(ns, worker)
    ns.scale("cpu", 2)
    progress = lambda: ns.condition("nodesets.slinky.slurm.net", "cpu", "Progressing")["message"]
    wait("people read when", lambda: f"{worker} runs 1 job" in progress() and "requeued at" in progress())
    drained = drained_at(ns, worker)
    if ns.tag < "26.05":
        ns.wait_condition("nodesets.slinky.slurm.net", "cpu", "Degraded", saying="cannot requeue")
        expect(ns.jobs()[job]["job_state"] == ["RUNNING"], "the job does not run any more")
        ends_well(ns, job)
    else:
        runs_elsewhere(ns, job, worker)
        wait("an event names the job", lambda: ns.events("cpu", "RequeueingJobs"))
        # The event comes before the requeue that it reports. Both times are in whole seconds.
        told = min(seconds(event["metadata"]["creationTimestamp"])
                   for event in ns.get("events", fieldSelector="involvedObject.name=cpu,reason=RequeueingJobs"))
        expect(told >= drained + 58, f"the job was requeued before its time: {told - drained} s after its worker was drained")
    wait("2 workers", lambda: len(ns.workers()) == 2 and worker not in ns.workers())
    drain_policy(ns, None)
    ns.scale("cpu", 3)
    wait("3 idle again", lambda: len(ns.idle()) == 3)


@test
def jobs_of_a_worker_that_goes_are_cancelled_where_the_user_says_so(ns):
    drain_policy(ns, {"timeout": "3s", "onTimeout": "Cancel"})
    # A worker that is idle and not ready for a moment would be deleted first, whatever the costs.
    ended, *others = (running_on(ns, name) for name in ("cpu-2", "cpu-0", "cpu-1"))
    goes_first(ns, "cpu-2")
    ns.scale("cpu", 2)
    wait("the job is cancelled", lambda: ns.fates([ended]) == {("CANCELLED", 0): 1})
    wait("2 workers", lambda: sorted(ns.workers()) == ["cpu-0", "cpu-1"])
    wait("an event names the job", lambda: ns.events("cpu", "CancellingJobs"))
    for other in others:
        ends_well(ns, other)
    drain_policy(ns, None)
    ns.scale("cpu", 3)
    wait("3 idle again", lambda: len(ns.idle()) == 3)


# --- Workers whose end nobody reported to Slurm ---------------------------------------------------------------------------

def a_job_that_may_run_elsewhere(ns, worker):
    """Starts a job on this worker that may be requeued, while the other workers are idle."""
    others = ",".join(name for name in ns.workers() if name != worker)
    ns.slurm("scontrol", "update", f"nodename={others}", "state=drain", "reason=test: elsewhere")
    job = ns.submit_until_told("-N1", "--exclusive", "--requeue")
    wait("the job runs", lambda: ns.jobs()[job]["job_state"] == ["RUNNING"])
    ns.slurm("scontrol", "update", f"nodename={others}", "state=resume")
    return job


def runs_elsewhere(ns, job, worker):
    """Waits until the job has been requeued and runs on another worker, and then ends it."""
    # A worker that is lost with its Kubernetes node is noticed after a minute or more.
    wait("the job is requeued", lambda: ns.jobs()[job]["restart_cnt"] == 1, 900, every=1)

    def elsewhere():
        """Reports whether the job runs on another worker. slurmctld delays the next start by two minutes, so this moves the
        start forward. slurmctld refuses that while it does not have the excluded node."""
        found = ns.jobs()[job]
        if found["job_state"] == ["PENDING"]:
            ns.slurm("scontrol", "update", f"jobid={job}", "starttime=now", "excnodelist=" + worker, check=False)
        return found["job_state"] == ["RUNNING"] and found["nodes"] != worker

    wait("the job runs again", elsewhere, every=1)
    ns.told(job)


@test
@once
@alone
def a_job_on_a_kubernetes_node_that_is_deleted_starts_anew(ns):
    pods = json.loads(kubectl("get", "pods", "-A", "-o", "json").stdout)["items"]
    # These pods must survive: their old processes do not end before their kubelet is back.
    needed = [pod["spec"].get("nodeName") for pod in pods if pod["metadata"]["name"].startswith("slurm-operator-")
              or "demo-controller-0" == pod["metadata"]["name"]]
    mine = {ns.get("pod", "demo-controller-0")["spec"]["nodeName"], next(
        pod["spec"]["nodeName"] for pod in pods if pod["metadata"]["name"].startswith("slurm-operator-"))}
    where = lambda: {name: pod["spec"]["nodeName"] for name, pod in sorted(ns.workers().items())}
    home = where()
    if set(home.values()) <= mine:
        moved(ns, "cpu-2", mine)
        home = where()
    worker = next((w for w in home if home[w] not in needed), None) or next(w for w in home if home[w] not in mine)
    node = json.loads(kubectl("get", "node", home[worker], "-o", "json").stdout)
    job = a_job_that_may_run_elsewhere(ns, worker)
    # A kubelet writes its node's state, but creates the node only when it starts. kube-proxy ends without addresses.
    again = {"apiVersion": "v1", "kind": "Node", "spec": {},
             "metadata": {key: node["metadata"][key] for key in ("name", "labels", "annotations")},
             "status": {key: node["status"][key] for key in ("addresses", "capacity", "allocatable", "nodeInfo")}}
    with kubelet_away(home[worker]):
        kubectl("delete", "node", home[worker])
        try:
            # The pod garbage collector runs every 20 s, and waits for 40.
            runs_elsewhere(ns, job, worker)
        finally:
            kubectl("create", "-f", "-", text=json.dumps(again))
    wait("its Kubernetes node is back", lambda: any(
        c["type"] == "Ready" and c["status"] == "True"
        for c in json.loads(kubectl("get", "node", home[worker], "-o", "json").stdout)["status"].get("conditions", [])), every=1)
    wait("3 idle", lambda: len(ns.idle()) == 3)


@test
def a_job_of_a_worker_that_is_removed_by_force_starts_anew(ns):
    job = a_job_that_may_run_elsewhere(ns, "cpu-1")
    delete_though_busy(ns, "cpu-1", "--force", "--grace-period=0")
    runs_elsewhere(ns, job, "cpu-1")
    wait("3 idle", lambda: len(ns.idle()) == 3)


# --- Names, configuration and clients -----------------------------------------------------------------------------------

@test
@once
def a_cluster_whose_name_slurm_refuses_is_refused(ns):
    def create(name, spec):
        text = f"{{apiVersion: slinky.slurm.net/v1beta1, kind: Controller, metadata: {{name: {name}}}, spec: {{{spec}}}}}"
        return kubectl("apply", "--dry-run=server", "-n", ns.name, "-f", "-", text=text, check=False)

    long = "c" * 38
    done = create(long, "")
    expect(done.returncode != 0 and "set spec.clusterName" in done.stderr, f"it said {done.stdout}{done.stderr}")
    done = create(long, "clusterName: short")
    expect(done.returncode == 0, f"it said {done.stderr}")


@test
def srun_in_slurmctlds_pod_may_have_to_wait(ns):
    # The job ends once another job is pending.
    runs(ns, ns.submit("until squeue -h -t PENDING | grep -q .; do sleep 1; done; sleep 2", "-N3", "--exclusive"))
    done = ns.slurm("srun", "-N3", "--exclusive", "hostname")
    expect("queued and waiting" in done.stderr, f"srun did not have to wait: {done.stderr}")
    expect(sorted(done.stdout.split()) == ["cpu-0", "cpu-1", "cpu-2"], f"srun printed {done.stdout}")


@test
@once
def a_younger_nodeset_takes_no_name(ns):
    job = runs(ns, ns.submit_until_told("-N1", "-w", "cpu-0", "--exclusive"))
    twin = """
apiVersion: slinky.slurm.net/v1beta1
kind: NodeSet
metadata: {name: NAME}
spec:
  controllerRef: {name: demo}
  replicas: 1
  oversubscribeNode: true
  slurmd: {image: "local/slurmd:${TAG}", imagePullPolicy: IfNotPresent}
  template: {spec: {hostname: "HOST"}}
"""
    # One NodeSet with the same name in Slurm and no partition, and one whose worker would have the name cpu-0.
    for name, host in (("a", "cpu"), ("b", "cpu-")):
        ns.apply(twin.replace("NAME", name).replace("HOST", host))
        ns.wait_condition("nodesets.slinky.slurm.net", name, "Degraded", saying="HostnameConflict: ")
        ns.wait_condition("nodesets.slinky.slurm.net", name, "Ready", "False")
    ns.wait_condition("controllers.slinky.slurm.net", "demo", "Degraded", saying="NodeSet a: NodeSet cpu already uses the name")
    time.sleep(3)
    expect(sorted(ns.workers()) == ["cpu-0", "cpu-1", "cpu-2"], f"there are {sorted(ns.workers())}")
    expect(ns.jobs()[job]["partition"] == "cpu" and ns.jobs()[job]["job_state"] == ["RUNNING"], "the partition or its job is gone")
    for name in ("a", "b"):
        ns.kubectl("delete", "nodesets.slinky.slurm.net", name, "--wait=true")
    expect(sorted(ns.nodes()) == ["cpu-0", "cpu-1", "cpu-2"], "records went with the NodeSets that had none")
    ends_well(ns, job)
    ns.wait_condition("controllers.slinky.slurm.net", "demo", "Degraded", "False")


@test
def a_job_needs_the_nodes_that_it_names(ns):
    """-w may name more nodes than -N uses. A reconfigure of slurmctld fails a running job if one of the named nodes is gone."""
    job = ns.submit_until_told("-N1", "-n1", "-w", "cpu-[0-2]")
    wait("the job runs", lambda: ns.jobs()[job]["job_state"] == ["RUNNING"])
    ns.scale("cpu", 2)
    (goes,) = wait("a worker is drained", lambda: [name for name, (states, _) in ns.nodes().items() if "DRAIN" in states])
    conf = ns.get("controllers.slinky.slurm.net", "demo")["spec"]["extraConf"]
    ns.patch("controllers.slinky.slurm.net", "demo", {"spec": {"extraConf": conf.rstrip() + "\nKillWait=31\n"}})
    wait("slurmctld reconfigures", lambda: "31 sec" in ns.slurm("scontrol", "show", "config").stdout)
    expect(goes in ns.nodes(), "the node that the job names is gone")
    ends_well(ns, job)
    wait("the worker goes", lambda: len(ns.workers()) == 2)
    ns.patch("controllers.slinky.slurm.net", "demo", {"spec": {"extraConf": conf}})
    ns.scale("cpu", 3)
    wait("3 idle again", lambda: len(ns.idle()) == 3)


def deletions(ns, pod, written):
    """Returns when the deletion of the pod was first requested and when the kubelet removed the pod, as recorded in the audit
    log."""
    wanted = {"resource": "pods", "namespace": ns.name, "name": pod}
    times = [seconds(event["requestReceivedTimestamp"]) for event in written.writes()
             if event["verb"] == "delete" and wanted.items() <= event["objectRef"].items()]
    expect(len(times) > 1, f"the audit log tells of {len(times)} deletions of {pod}")
    return min(times), max(times)


@test
@once
def a_logfile_does_not_keep_slurmctld_down(ns):
    job = runs(ns, ns.submit_until_told("-N1", "--exclusive"))
    before = slurmctld_identity(ns)
    ns.patch("controllers.slinky.slurm.net", "demo", {"spec": {"logfile": {"imagePullPolicy": "IfNotPresent"}}})
    wait("slurmctld runs with it", lambda: slurmctld_identity(ns)[0] != before[0] and ns.idle())
    before = slurmctld_identity(ns)
    grace, written = ns.get("pod", "demo-controller-0")["spec"]["terminationGracePeriodSeconds"], AuditLog()
    ns.kubectl("delete", "pod", "demo-controller-0", "--wait=false")
    wait("another slurmctld answers", lambda: slurmctld_identity(ns)[0] != before[0] and ns.idle())
    asked, gone = deletions(ns, "demo-controller-0", written)
    expect(gone - asked < grace, f"it was killed at the end of its grace of {grace} s: it was gone after {gone - asked:.1f} s")
    printed = lambda: ns.kubectl("logs", "demo-controller-0", "-c", "logfile").stdout
    wait("the sidecar prints the log", lambda: "Running as primary controller" in printed())
    ends_well(ns, job)
    before = slurmctld_identity(ns)
    ns.patch("controllers.slinky.slurm.net", "demo", {"spec": {"logfile": None}})
    wait("slurmctld runs without it", lambda: slurmctld_identity(ns)[0] != before[0] and ns.idle())


@test
def a_job_with_an_odd_name_hinders_nothing(ns):
    """The job's name is a byte that is not UTF-8. Output that contains it cannot be decoded here, so the state is read
    alone."""
    script = "sbatch --parsable --output=/dev/null -N1 --exclusive -J $'\\xe9' --wrap=\"trap 'exit 0' URG; sleep 3600 & wait\""
    job = int(ns.slurm("bash", "-c", script).stdout.strip().split(";")[0])
    fields = lambda: ns.slurm("bash", "-c", f"scontrol show job {job} | grep -aoE '(JobState|Restarts)=[A-Z0-9_]+'").stdout.split()
    wait("the job runs", lambda: "JobState=RUNNING" in fields())
    busy = lambda: [p for p in ns.workers().values() if p["metadata"]["labels"].get("nodeset.slinky.slurm.net/pod-busy") == "true"]
    wait("its worker is known to be busy", busy)
    ns.scale("cpu", 1)
    wait("the other workers go, it stays", lambda: len(ns.workers()) == 1)
    for kind, name in (("controllers.slinky.slurm.net", "demo"), ("nodesets.slinky.slurm.net", "cpu")):
        expect(ns.condition(kind, name, "Degraded")["status"] == "False", f"{name} is Degraded")
    wait("the job completes", lambda: "JobState=COMPLETED" in fields() or ns.tell(job, "URG"))
    expect("Restarts=0" in fields(), f"the job was requeued: {fields()}")
    ns.scale("cpu", 3)
    wait("3 idle again", lambda: len(ns.idle()) == 3)


# --- Removals from the configuration ---


def batch_file(ns, job, path):
    """Reports whether the job has written the file on its worker: a proof of its end that does not come from slurmctld."""
    return ns.kubectl("exec", "cpu-0", "-c", "slurmd", "--", "cat", path, check=False).stdout.strip() == str(job)


@test
@alone  # it replaces the operator
def a_partition_goes_when_its_last_job_has_ended(ns):
    proof = "/tmp/withheld"
    script = f"trap 'echo $SLURM_JOB_ID > {proof}; exit 0' URG; sleep 3600 & wait"
    running = runs(ns, ns.submit(script, "-p", "cpu", "-w", "cpu-0", "--exclusive", "--no-requeue", "--time=60"))
    waiting = ns.submit_until_told("-p", "cpu", "-w", "cpu-0", "--exclusive", "--no-requeue", "--time=60")
    ns.patch("nodesets.slinky.slurm.net", "cpu", {"spec": {"partition": {"enabled": False}}})
    # The operator may learn of the pending job one poll later.
    for job in (running, waiting):
        ns.wait_condition("controllers.slinky.slurm.net", "demo", "ChangesWithheld", saying=str(job))
    wait("it takes no more jobs", lambda: "State=DRAIN" in ns.slurm("scontrol", "show", "partition", "cpu").stdout)
    expect(ns.slurm("sbatch", "-p", "cpu", "--wrap=true", check=False).returncode != 0, "a drained partition took a job")
    kubectl("-n", "slurm-operator", "delete", "pod", "-l", "app.kubernetes.io/name=slurm-operator", "--wait=true")
    time.sleep(10)
    expect(ns.jobs()[running]["job_state"] == ["RUNNING"], "the job ended with its partition")
    ns.told(running)
    wait("the job has left a proof of its end", lambda: batch_file(ns, running, proof))
    wait("the one that waited runs", lambda: ns.jobs()[waiting]["job_state"] == ["RUNNING"])
    ns.told(waiting)
    wait("the partition goes", lambda: ns.slurm("scontrol", "show", "partition", "cpu", check=False).returncode != 0)
    wait("and is not told any more", lambda: ns.condition("controllers.slinky.slurm.net", "demo", "ChangesWithheld") is None)
    ready_cluster(ns)


@test
def a_refused_file_reaches_no_new_slurmd(ns):
    """A slurmctld of 26.05 sends refused files to new slurmds until it reads other files."""
    good = ns.get("controllers.slinky.slurm.net", "demo")["spec"]["extraConf"]
    ns.patch("controllers.slinky.slurm.net", "demo", {"spec": {"extraConf": good + "JobContainerType=job_container/tmpfs\n"}})
    ns.wait_condition("controllers.slinky.slurm.net", "demo", "Degraded", "True")
    time.sleep(5)
    before = ns.get("pod", "cpu-2")["metadata"]["uid"]
    wait("it is deleted", lambda: ns.kubectl("delete", "pod", "cpu-2", "--wait=false"))
    wait("its successor is idle", lambda: ns.get("pod", "cpu-2")["metadata"]["uid"] != before
         and ns.condition("pod", "cpu-2", "Ready")["status"] == "True" and len(ns.idle()) == 3)
    restarts = [status["restartCount"] for status in ns.get("pod", "cpu-2")["status"]["containerStatuses"]]
    expect(sum(restarts) == 0, f"its containers were restarted: {restarts}")
    ns.patch("controllers.slinky.slurm.net", "demo", {"spec": {"extraConf": good}})
    ns.wait_condition("controllers.slinky.slurm.net", "demo", "Degraded", "False")


@test
def a_table_is_not_made_too_small_for_what_is_in_it(ns):
    good = ns.get("controllers.slinky.slurm.net", "demo")["spec"]["extraConf"]
    jobs = [running_on(ns, f"cpu-{i}") for i in range(3)]
    ns.patch("controllers.slinky.slurm.net", "demo", {"spec": {"extraConf": good + "MaxNodeCount=2\nMaxJobCount=2\n"}})
    ns.wait_condition("controllers.slinky.slurm.net", "demo", "Degraded", saying="TableTooSmall: ")
    time.sleep(5)
    for job in jobs:
        ends_well(ns, job)
    ns.patch("controllers.slinky.slurm.net", "demo", {"spec": {"extraConf": good}})
    ns.wait_condition("controllers.slinky.slurm.net", "demo", "Degraded", "False")


@test
def without_a_restapi_a_withheld_partition_outlives_its_configmap(ns):
    job = running_on(ns, "cpu-0")
    ns.kubectl("delete", "restapis.slinky.slurm.net", "demo")
    ns.patch("nodesets.slinky.slurm.net", "cpu", {"spec": {"partition": {"enabled": False}}})
    ns.wait_condition("controllers.slinky.slurm.net", "demo", "ChangesWithheld", saying="partition/cpu")
    ns.kubectl("delete", "configmap", "demo-config")
    wait("it is made again", lambda: "PartitionName=cpu" in ns.get("configmap", "demo-config")["data"]["slurm.conf"])
    ns.kubectl("delete", "pod", "demo-controller-0")
    wait("slurmctld is back", lambda: "UP" in ns.slurm("scontrol", "ping", check=False).stdout)
    ends_well(ns, job)
    ready_cluster(ns)
    wait("the partition is back", lambda: "State=UP" in ns.slurm("scontrol", "show", "partition", "cpu").stdout)


@test
@once
def slurmctld_is_not_replaced_under_a_claim_that_was_deleted(ns):
    job = running_on(ns, "cpu-0")
    before = slurmctld_identity(ns)
    ns.kubectl("delete", "pvc", "statesave-demo-controller-0", "--wait=false")
    ns.wait_condition("controllers.slinky.slurm.net", "demo", "Degraded", "True", saying="ClaimDeleted")
    ns.kubectl("label", "controllers.slinky.slurm.net", "demo", "site=x")
    ns.patch("controllers.slinky.slurm.net", "demo", {"spec": {"template": {"metadata": {"labels": {"site": "x"}}}}})
    ns.wait_condition("controllers.slinky.slurm.net", "demo", "Degraded", "True", saying="has to be replaced")
    expect(slurmctld_identity(ns) == before, "slurmctld was replaced under a running job")
    ends_well(ns, job)
    renew(ns)


def put_key(ns, name, data):
    ns.apply(json.dumps({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name},
                         "data": {key: base64.b64encode(value).decode() for key, value in data.items()}}))


class Session:
    """A user who has logged in and waits for a job, until the session is told to end."""

    def __init__(self, ns, name, worker):
        self.ns, self.name, self.worker = ns, name, worker
        script = f"'touch /tmp/{name}.runs; until test -e /tmp/{name}.told; do sleep 0.2; done; echo done on $(hostname)'"
        self.process = subprocess.Popen(["kubectl", "-n", ns.name, "exec", "client", "--", *ssh_command(
            "mine", "root", "srun", "-w", worker, "-n1", "--overlap", "--mem=100", "sh", "-c", script)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENV)
        wait("its job runs", lambda: self.ended() or ns.kubectl("exec", worker, "-c", "slurmd", "--", "ls", f"/tmp/{name}.runs"))
        expect(not self.ended(), f"the session ended: {self.ended() and self.process.stderr.read()}")

    def ended(self):
        return self.process.poll() is not None

    def ends_well(self):
        expect(not self.ended(), f"the session has ended: {self.ended() and self.process.stderr.read()}")
        self.ns.kubectl("exec", self.worker, "-c", "slurmd", "--", "touch", f"/tmp/{self.name}.told")
        out, error = self.process.communicate(timeout=LIMIT)
        expect(out.strip() == f"done on {self.worker}", f"the job of the session said {out} {error}")


def key_rotates(ns, manifest, logins=False):
    """The Secret of slurmKeyRef gets new data. Meanwhile a job keeps running and starts steps, other jobs start, a worker
    joins, and users log in and stay. Every receiver can verify every message."""
    keys = {"slurm": os.urandom(1024), "jwt": os.urandom(32)}
    put_key(ns, "site", keys)
    # More jobs than the two CPUs can run.
    ns.apply(manifest.replace("replicas: 3", "replicas: 1").replace("State=UP", "State=UP OverSubscribe=FORCE:8").replace(
        "  extraConf: |\n", '  slurmKeyRef: {name: site, key: slurm}\n  jwtKeyRef: {name: site, key: jwt}\n  extraConf: |\n', 1))
    serves(ns, 1)
    restarts = lambda pod: [status["restartCount"] for status in ns.get("pod", pod)["status"]["containerStatuses"]]
    identity = lambda: (ns.get("pod", "cpu-0")["metadata"]["uid"], restarts("cpu-0"), slurmctld_identity(ns),
                        ns.get("pod", "demo-controller-0")["metadata"]["labels"]["controller-revision-hash"])
    before = identity()
    steps = "trap told=1 USR1; until [ $told ]; do srun --overlap -n1 echo well || echo ill; sleep 1; done; echo end"
    job = runs(ns, ns.submit(steps, "-w", "cpu-0", "-n1", "--mem=100", "--no-requeue", "--output=/tmp/steps.out"))
    told = lambda: (lambda found: found and f"{found['reason']}: {found['message']}")(
        ns.condition("controllers.slinky.slurm.net", "demo", "KeyChanged")) or ""
    key = lambda name="slurm.key": base64.b64decode(ns.get("secret", "demo-keyring")["data"].get(name, ""))
    sessions = []
    if logins:
        have_client(ns)
        ns.apply(LOGINSET + f"  rootSshAuthorizedKeys: {json.dumps(made_key(ns, 'mine'))}\n")
        ns.wait_condition("loginsets.slinky.slurm.net", "login")
        # kube-proxy follows the ready endpoints with a delay.
        wait("the Service leads to it", lambda: ssh(ns, "mine", "root", "true", check=False).returncode == 0)
        (former,) = login_pods(ns)
        sessions.append(Session(ns, "first", "cpu-0"))

    def others():
        expect(ns.slurm("srun", "-w", "cpu-0", "-n1", "--overlap", "--mem=100", "hostname").stdout.split() == ["cpu-0"], "no other job runs")
        if logins:
            out = ssh(ns, "mine", "root", "srun", "-w", "cpu-0", "-n1", "--overlap", "--mem=100", "hostname").stdout.split()
            expect(out == ["cpu-0"], f"srun on a login node said {out}")

    others()
    keys["slurm"] = os.urandom(1024)
    put_key(ns, "site", keys)
    wait("it rotates", lambda: told().startswith("Rotating: ") and "Secret site" in told())
    others()
    if logins:
        wait("a login pod with a session is waited for", lambda: "step 2 of 4" in told() and "login pods with the previous key" in told(), 900)
        wait("the next pod serves", lambda: [uid for uid, p in login_pods(ns).items() if "deletionTimestamp" not in p["metadata"]] != [former])
        ns.wait_condition("loginsets.slinky.slurm.net", "login")
        wait("new sessions reach it", lambda: ssh(ns, "mine", "root", "test", "-e", "/etc/slurm/slurm.jwks", check=False).returncode == 0)
        others()
        sessions.append(Session(ns, "second", "cpu-0"))
        sessions.pop(0).ends_well()
    wait("all sign with the new key", lambda: "step 3 of 4" in told() and "Until " in told(), 1800)
    expect(key() == keys["slurm"], "slurm.key is not the new key")
    others()
    ns.scale("cpu", 2)
    wait("a worker joins", lambda: "cpu-1" in ns.nodes() and "IDLE" in ns.nodes()["cpu-1"][0])
    wait("it goes on to the last step", lambda: "step 4 of 4" in told(), 1800)
    others()
    wait("it is over", lambda: not told(), 900)
    others()
    expect(key() == keys["slurm"] and not key("other.key") and not key("slurm.jwks") and not key("login.jwks"),
           "the keyring is not that of the new key alone")
    for session in sessions:
        session.ends_well()
    if logins:
        expect(len(login_pods(ns)) == 1, "login pods were replaced more than once")
        ns.kubectl("delete", "loginsets.slinky.slurm.net", "login")
    ns.tell(job)
    wait("the job completes, in its first start", lambda: ns.fates([job]) == {("COMPLETED", 0): 1})
    said = ns.kubectl("exec", "cpu-0", "-c", "slurmd", "--", "cat", "/tmp/steps.out").stdout.splitlines()
    expect(len(said) > 20 and said[-1] == "end" and set(said[:-1]) == {"well"}, f"its steps said {collections.Counter(said)}")
    expect(identity() == before, f"a pod was replaced or restarted: {identity()}, not {before}")
    refused = re.compile("could not find kid|jwt_decode|Protocol authentication error|Invalid authentication credential", re.I)
    for pod in ns.get("pods"):
        for container in ("slurmctld", "slurmd", "logfile"):
            log = ns.kubectl("logs", pod["metadata"]["name"], "-c", container, check=False).stdout
            expect(not refused.search(log),
                   f"{pod['metadata']['name']} refused a message: {[line for line in log.splitlines() if refused.search(line)][:3]}")


@own_clusters
@once
def a_key_rotates_under_jobs(tag, plugin):
    with Namespace(f"e2e-key-{tag.replace('.', '-')}", tag, plugin) as ns:
        key_rotates(ns, demo_manifest(), logins=True)


@own_clusters
@once
@long
def a_key_rotates_with_a_backup(tag, plugin):
    """The backup is replaced in each step of the rotation, and may take over in any step."""
    with Namespace(f"e2e-key-ha-{tag.replace('.', '-')}", tag, plugin) as ns:
        key_rotates(ns, with_a_backup(demo_manifest()))


def plugin_worker(ns, name):
    """Returns a worker from the output of `kubectl slurm status`."""
    (found,) = json.loads(slurm_plugin(ns, "status", "-o", "json")[0])["items"]
    expect(found["slurm"]["answers"], found["slurm"]["message"])
    return next((w for w in found["nodeSets"][0]["workers"] if w["pod"] == name), None)


@test
def kubectl_slurm_drains_without_loss(ns):
    job = running_on(ns, "cpu-1")
    wait("status shows the job", lambda: plugin_worker(ns, "cpu-1")["jobs"] == [job])
    with concurrent.futures.ThreadPoolExecutor() as pool:
        drain = pool.submit(slurm_plugin, ns, "drain", "cpu-1", "--reason", "bad disk", "--wait")
        wait("it is drained in Slurm", lambda: drain.done() or "DRAIN" in ns.nodes()["cpu-1"][0])
        expect(not drain.done(), f"it ended: {drain.done() and (drain.exception() or drain.result())}")
        reason = ns.nodes()["cpu-1"][1]
        expect(re.fullmatch("slurm-operator: drained by .+: bad disk", reason), f"the reason is {reason}")
        wait("status shows it", lambda: "bad disk" in plugin_worker(ns, "cpu-1")["drain"]["reason"])
        time.sleep(5)
        expect(not drain.done(), "it did not wait for the job")
        ends_well(ns, job)
        expect("cpu-1: drained" in drain.result(LIMIT)[1], "it does not say that the worker is drained")
    slurm_plugin(ns, "resume", "cpu-1")
    wait("3 idle", lambda: len(ns.idle()) == 3)
    ns.slurm("scontrol", "update", "nodename=cpu-1", "state=drain", "reason=admin: mine")
    wait("its pod tells", lambda: "admin: mine" in slurm_plugin(ns, "resume", "cpu-1", code=4)[1])
    expect("DRAIN" in ns.nodes()["cpu-1"][0], "an administrator's drain was undone")
    ns.slurm("scontrol", "update", "nodename=cpu-1", "state=resume")
    wait("3 idle again", lambda: len(ns.idle()) == 3)


@test
@once
def kubectl_slurm_undoes_an_update(ns):
    ns.patch("nodesets.slinky.slurm.net", "cpu", {"spec": {"revisionHistoryLimit": 5}})
    before = {name: pod["metadata"]["uid"] for name, pod in ns.workers().items()}
    image = ns.get("nodesets.slinky.slurm.net", "cpu")["spec"]["slurmd"]["image"]
    job = running_on(ns, "cpu-0")
    slurm_plugin(ns, "rollout", "pause", "cpu")
    ns.patch("nodesets.slinky.slurm.net", "cpu", {"spec": {"slurmd": {"image": "local/none:at-all"}}})
    wait("it says that it is paused", lambda: "paused" in slurm_plugin(ns, "rollout", "status", "cpu", "--once", code=3)[0])
    slurm_plugin(ns, "rollout", "resume", "cpu")
    # Images that cannot be pulled stop the update at the first worker.
    wait("a worker is replaced", lambda: any(pod["metadata"]["uid"] not in before.values() for pod in ns.workers().values()))
    slurm_plugin(ns, "rollout", "undo", "cpu")
    expect(ns.get("nodesets.slinky.slurm.net", "cpu")["spec"]["slurmd"]["image"] == image, "the image is not what it was")
    wait("the job runs on", lambda: ns.jobs()[job]["job_state"] == ["RUNNING"])
    expect(ns.workers()["cpu-0"]["metadata"]["uid"] == before["cpu-0"], "the busy worker was replaced")
    ends_well(ns, job)
    out = slurm_plugin(ns, "rollout", "status", "cpu", "--timeout", "300s")[0]
    expect("is up to date: 3 workers" in out, out)
    (row,) = [r for r in json.loads(slurm_plugin(ns, "rollout", "history", "cpu", "-o", "json")[0])["items"] if r["inForce"]]
    expect(row["image"] == image and row["workers"] == 3, f"the history says {row}")
    wait("3 idle", lambda: len(ns.idle()) == 3)


@test
@once
@alone
def kubectl_slurm_gives_a_cluster_back(ns):
    objects = (("controllers.slinky.slurm.net", "demo"), ("restapis.slinky.slurm.net", "demo"), ("nodesets.slinky.slurm.net", "cpu"))
    finalizers = lambda: [ns.get(kind, name)["metadata"].get("finalizers", []) for kind, name in objects]
    before = {name: pod["metadata"]["uid"] for name, pod in ns.workers().items()}
    job = running_on(ns, "cpu-0")
    slurm_plugin(ns, "release", "demo", "--yes", code=4)
    expect(all(finalizers()), "it was given back although the operator runs")
    scale = lambda replicas: kubectl("-n", "slurm-operator", "scale", "deployment/slurm-operator", f"--replicas={replicas}")
    scale(0)
    try:
        wait("it is given back", lambda: slurm_plugin(ns, "release", "demo", "--yes"), every=2)
        expect(not any(finalizers()), f"finalizers are left: {finalizers()}")
        expect(not any("nodeset.slinky.slurm.net/registered" in pod["metadata"]["annotations"] for pod in ns.workers().values()), "stamps are left")
    finally:
        scale(1)
        kubectl("-n", "slurm-operator", "rollout", "status", "deployment/slurm-operator", "--timeout=300s")
    wait("the operator takes it over again", lambda: all(finalizers()))
    expect({name: pod["metadata"]["uid"] for name, pod in ns.workers().items()} == before, "a worker was replaced")
    ends_well(ns, job)
    wait("3 idle", lambda: len(ns.idle()) == 3)


@test
@once
def kubectl_slurm_bundles_no_secret(ns):
    planted = "Pl4nted-in-a-Secret"
    ns.apply(f"""
apiVersion: v1
kind: Secret
metadata: {{name: planted}}
stringData: {{password: {planted}}}
""")
    ns.slurm("scontrol", "update", "nodename=cpu-1", "state=drain", f"reason=admin: {planted}")
    ns.slurm("scontrol", "update", "nodename=cpu-1", "state=resume")
    secrets = [base64.b64decode(value) for secret in ns.get("secrets") for value in secret.get("data", {}).values()]

    def whole():
        """Returns the files of a complete support bundle. Fails if a part is missing: the bundle leaves out what cannot be read
        at the moment."""
        with tempfile.TemporaryDirectory() as directory:
            slurm_plugin(ns, "support-bundle", "-o", f"{directory}/bundle.tar.gz")
            with tarfile.open(f"{directory}/bundle.tar.gz") as archive:
                found = {entry.name: archive.extractfile(entry).read() for entry in archive}
        for part in ("controller/demo.yaml", "nodeset/cpu.yaml", "secret/planted.yaml", "slurmctld.log", "/nodes.json", "status.txt", "pod/cpu-0.yaml"):
            expect(any(name.endswith(part) for name in found), f"no {part} among {sorted(found)}")
        return found

    files = wait("the bundle is whole", whole)
    for name, content in files.items():
        for secret in secrets:
            expect(secret not in content and base64.b64encode(secret) not in content, f"{name} has a secret")
        expect(not re.search(rb"eyJ[A-Za-z0-9_-]{10,}\.", content), f"{name} has a token")
    wait("3 idle", lambda: len(ns.idle()) == 3)


@test
@once
def no_secret_is_told(ns):
    key = ns.get("secret", "demo-jwt-key")["data"]["jwt.key"]
    # Another lane may just have replaced the operator.
    log = wait("the operator's log", lambda: kubectl("-n", "slurm-operator", "logs", "-l", "app.kubernetes.io/name=slurm-operator", "--tail=-1").stdout)
    events = ns.kubectl("get", "events", "-o", "json").stdout
    for where, text in (("log", log), ("events", events)):
        expect(key not in text, f"the JWT key stands in the {where}")
        expect("eyJ" not in text, f"a token stands in the {where}")


@test
def ends_with_its_controller(ns):
    ns.kubectl("delete", "controllers.slinky.slurm.net", "demo", "--wait=true")
    wait("the workers go", lambda: not ns.workers())


@own_clusters
@from_older
def slurm_is_upgraded_under_a_job(tag, plugin):
    """All images change at once, as with a chart. slurmctld is upgraded first, the job keeps running, and a downgrade is
    refused."""
    newest = max(slurm_releases())
    with Namespace(f"e2e-release-{tag.replace('.', '-')}", tag, plugin) as ns:
        ns.apply(demo_manifest().replace("replicas: 3", "replicas: 2"))
        kinds = {"controllers": "slurmctld", "restapis": "slurmrestd", "nodesets": "slurmd"}
        names = {"controllers": "demo", "restapis": "demo", "nodesets": "cpu"}
        serves(ns, 2)
        job = running_on(ns, "cpu-0")
        image = lambda kind, release: {"spec": {kinds[kind]: {"image": f"local/{kinds[kind]}:{release}"}}}
        release = lambda pod, container: next(c["image"] for c in pod["spec"]["containers"] if c["name"] == container).split(":")[1]
        # First set the images of daemons that must wait for slurmctld.
        for kind in ("nodesets", "restapis"):
            ns.patch(f"{kind}.slinky.slurm.net", names[kind], image(kind, newest))
            ns.wait_condition(f"{kind}.slinky.slurm.net", names[kind], "Progressing", saying="no daemon may be newer than slurmctld")
        time.sleep(5)
        expect([release(pod, "slurmd") for pod in ns.workers().values()] == [tag, tag], "a worker is newer than slurmctld")
        ns.patch("controllers.slinky.slurm.net", "demo", image("controllers", newest))
        wait(f"slurmctld is of {newest}", lambda: newest in ns.slurm("scontrol", "--version", check=False).stdout)
        wait("the idle worker is updated", lambda: release(ns.workers()["cpu-1"], "slurmd") == newest and "cpu-1" in ns.idle())
        ns.kubectl("rollout", "status", "deployment/demo-restapi", "--timeout=300s")
        expect(release(ns.workers()["cpu-0"], "slurmd") == tag, "a worker was updated under its job")
        expect(ns.fates([job]) == {("RUNNING", 0): 1}, f"the job did not run on: {ns.fates([job])}")
        wait("a job runs on an updated worker", lambda: ns.slurm("srun", "-w", "cpu-1", "hostname", timeout=60).stdout.strip() == "cpu-1")
        ends_well(ns, job)
        wait("the other worker is updated", lambda: "cpu-0" in ns.workers() and release(ns.workers()["cpu-0"], "slurmd") == newest and ns.idle() == ["cpu-0", "cpu-1"])
        before = slurmctld_identity(ns)
        ns.patch("controllers.slinky.slurm.net", "demo", image("controllers", tag))
        ns.wait_condition("controllers.slinky.slurm.net", "demo", "Degraded", saying="ReleaseRefused")
        time.sleep(5)
        expect(slurmctld_identity(ns) == before, "slurmctld was replaced by one that cannot read its state")


@contextlib.contextmanager
def host_named(node, name):
    """Gives the machine of a Kubernetes node another hostname for the duration of the block."""
    call = lambda own: run("nsenter", "--target", str(process("kubelet", node)), "--uts", "hostname", own)
    call(name)
    try:
        yield
    finally:
        call(node)


@own_clusters
@alone
def workers_on_their_hosts_networks_are_called_like_their_kubernetes_nodes(tag, plugin):
    """The names do not depend on the hosts' own hostnames."""
    with Namespace(f"e2e-host-{tag.replace('.', '-')}", tag, plugin) as ns, host_named("node-2", "shorty"):
        on_host = """  template:
    spec:
      hostNetwork: true
      dnsPolicy: ClusterFirstWithHostNet
      nodeSelector: {kubernetes.io/hostname: node-2}
  slurmd:
"""
        ns.apply(demo_manifest().replace("replicas: 3", "replicas: 1").replace("  slurmd:\n", on_host))
        for kind, name in (("controllers", "demo"), ("restapis", "demo"), ("nodesets", "cpu")):
            ns.wait_condition(f"{kind}.slinky.slurm.net", name)
        wait("it is idle", lambda: ns.idle() == ["node-2"])
        expect(ns.slurm("srun", "-w", "node-2", "hostname", timeout=60).stdout.strip() == "shorty", "the host is called otherwise")
        job = running_on(ns, "node-2")
        wait("its worker is protected", lambda: ns.workers()["cpu-0"]["metadata"]["labels"].get("nodeset.slinky.slurm.net/pod-busy") == "true")
        ns.scale("cpu", 0)
        wait("it drains", lambda: "DRAIN" in ns.nodes()["node-2"][0])
        expect(ns.fates([job]) == {("RUNNING", 0): 1}, "the job was ended")
        ns.scale("cpu", 1)
        wait("it serves", lambda: "DRAIN" not in ns.nodes()["node-2"][0])
        ends_well(ns, job)
        wait("it is idle", lambda: ns.idle() == ["node-2"])
        ns.kubectl("delete", "pod", "cpu-0", "--wait=false")
        wait("its preStop sets it down", lambda: "DOWN" in ns.nodes()["node-2"][0] and "Pod is terminating" in ns.nodes()["node-2"][1], every=0)
        wait("the next one is idle", lambda: ns.idle() == ["node-2"])
        ns.kubectl("delete", "nodesets.slinky.slurm.net", "cpu", "--wait=true")
        expect(not ns.nodes(), f"of the worker there is left {ns.nodes()}")


@own_clusters
def a_worker_that_registers_under_another_name_is_found(tag, plugin):
    """An option that names slurmd is refused if the operator can see it. If not, the worker is drained and deleted like any
    other."""
    nodesets = "nodesets.slinky.slurm.net"
    with Namespace(f"e2e-name-{tag.replace('.', '-')}", tag, plugin) as ns:
        slurmd = """  slurmd:
    args: ["-N", "$(HOST_NODE)"]
    env: [{name: HOST_NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}]
"""
        ns.apply(demo_manifest().replace("replicas: 3", "replicas: 1").replace("  slurmd:\n", slurmd))
        ns.wait_condition(nodesets, "cpu", "Degraded", saying="InvalidSpec: container slurmd: with the option -N $(HOST_NODE)")
        ns.wait_condition("restapis.slinky.slurm.net", "demo")
        expect(not ns.workers(), "a worker was made")
        ns.kubectl("create", "configmap", "unseen", "--from-literal=SLURMD_OPTIONS=-N other-7")
        ns.patch(nodesets, "cpu", {"spec": {"slurmd": {"args": None, "env": None, "envFrom": [{"configMapRef": {"name": "unseen"}}]}}})
        wait("it is idle", lambda: ns.idle() == ["other-7"])
        ns.wait_condition(nodesets, "cpu")
        ns.wait_condition(nodesets, "cpu", "Degraded", "False")
        job = running_on(ns, "other-7")
        ns.kubectl("delete", nodesets, "cpu", "--wait=false")
        wait("it drains", lambda: "DRAIN" in ns.nodes()["other-7"][0])
        time.sleep(5)
        expect(list(ns.workers()) == ["cpu-0"] and ns.fates([job]) == {("RUNNING", 0): 1}, "the job was ended")
        ends_well(ns, job)
        wait("the NodeSet is gone", lambda: ns.get(nodesets, "cpu") is None)
        expect(not ns.nodes(), f"of the worker there is left {ns.nodes()}")


@own_clusters
@once
def services_may_have_other_ports(tag, plugin):
    """Workers and the operator use the ports of the Services, also after a change of the ports."""
    with Namespace(f"e2e-ports-{tag.replace('.', '-')}", tag, plugin) as ns:
        port = lambda number: f"spec:\n  service: {{port: {number}}}\n"
        manifest = demo_manifest().replace("replicas: 3", "replicas: 1")
        manifest = manifest.replace("spec:\n  slurmctld:", port(7817) + "  slurmctld:", 1).replace("spec:\n  controllerRef:", port(7820) + "  controllerRef:", 1)
        ns.apply(manifest)
        serves(ns, 1)
        ports = lambda name: [item["port"] for item in ns.get("service", name)["spec"]["ports"]]
        expect(ports("demo-controller") == [7817, 6817] and ports("demo-restapi") == [7820], f"{ports('demo-controller')}, {ports('demo-restapi')}")
        expect("demo-controller." + ns.name + ":7817" in " ".join(ns.get("pod", "cpu-0")["spec"]["containers"][0]["args"]), "the worker goes to another port")
        wait("a job runs", lambda: ns.slurm("srun", "hostname").stdout.strip() == "cpu-0")
        listens = [{"name": "slurmrestd", "containerPort": 7900}]
        ns.patch("restapis.slinky.slurm.net", "demo", {"spec": {"service": {"port": 7821}, "slurmrestd": {"ports": listens}}})
        wait("the Service has the new port", lambda: ports("demo-restapi") == [7821])
        ns.kubectl("rollout", "status", "deployment/demo-restapi", "--timeout=300s")
        ns.scale("cpu", 2)
        wait("the operator has found it", lambda: ns.idle() == ["cpu-0", "cpu-1"])
        ns.scale("cpu", 1)
        wait("and scales in", lambda: len(ns.nodes()) == len(ns.workers()) == 1)


@own_clusters
def slurm_finds_gpus_by_itself(tag, plugin):
    """A worker without GPUs shows the files of a driver with two GPUs. Slurm detects these GPUs and gives them to jobs. Slurm
    24.11 needs a gres.conf and Gres= in extraConf for that, and 26.05 needs neither."""
    driver = """
mount -t tmpfs none /proc/driver && mount -t tmpfs none /sys/bus/pci/drivers
for i in 0 1; do
  bus=0000:0$i:00.0
  mkdir -p /proc/driver/nvidia/gpus/$bus /sys/bus/pci/drivers/nvidia/$bus
  printf 'Model: \\t\\t NVIDIA H100\\nGPU UUID: \\t GPU-%s\\nDevice Minor: \\t %s\\n' $i $i >/proc/driver/nvidia/gpus/$bus/information
  echo 0-1 >/sys/bus/pci/drivers/nvidia/$bus/local_cpulist
  [ -e /dev/nvidia$i ] || mknod /dev/nvidia$i c 1 3
done
exec entrypoint.sh "$@"
"""
    explicit = tag.startswith("24.11")
    with Namespace(f"e2e-gpus-{tag.replace('.', '-')}", tag, plugin) as ns:
        manifest = demo_manifest().replace("replicas: 3", "replicas: 1").replace("    TaskPlugin=task/none\n", "    TaskPlugin=task/none\n    GresTypes=gpu\n")
        command = json.dumps(["/bin/bash", "-euc", driver, "slurmd"])
        manifest = manifest.replace("    image: local/slurmd:${TAG}\n", f"    image: local/slurmd:${{TAG}}\n    command: {command}\n")
        if explicit:
            ns.apply('''
apiVersion: v1
kind: ConfigMap
metadata: {name: gres}
data: {gres.conf: AutoDetect=nvidia}
''')
            manifest = manifest.replace("    - name: demo-files\n", "    - name: demo-files\n    - name: gres\n").replace(
                "  extraConf: CPUs=2 RealMemory=1000\n", "  extraConf: CPUs=2 RealMemory=1000 Gres=gpu:nvidia_h100:2\n")
        ns.apply(manifest)
        serves(ns, 1)
        wait("Slurm knows two of their model", lambda: "gpu:nvidia_h100:2" in ns.slurm("scontrol", "show", "node", "cpu-0").stdout)
        for wanted, seen in (("gpu:1", "0"), ("gpu:nvidia_h100:2", "0,1")):
            job = ns.submit(f"test $CUDA_VISIBLE_DEVICES = {seen}", f"--gres={wanted}")
            wait(f"the job with {wanted} completes", lambda job=job: ns.completed(job))
        expect("Requested node configuration is not available" in ns.slurm("sbatch", "--gres=gpu:3", "--wrap=true", check=False).stderr,
               "a job gets more than there are")


@own_clusters
@once
def two_clusters(tag, plugin):
    """Two namespaces contain clusters with the same names at the same time."""
    with Namespace(f"e2e-a-{tag.replace('.', '-')}", tag, plugin) as a, Namespace(f"e2e-b-{tag.replace('.', '-')}", tag, plugin) as b:
        for ns in (a, b):
            ns.apply(demo_manifest().replace("replicas: 3", "replicas: 1"))
        for ns in (a, b):
            ns.wait_condition("nodesets.slinky.slurm.net", "cpu")
            wait("the worker is idle", lambda ns=ns: ns.idle() == ["cpu-0"])
            wait("srun", lambda ns=ns: ns.slurm("srun", "hostname", timeout=60).stdout.strip() == "cpu-0")


@own_clusters
def a_job_has_what_the_site_gives_it(tag, plugin):
    """Devices of gres.conf, prolog, epilog and a node health check from ConfigMaps, and MPI ranks take effect in a job or after
    it."""
    with Namespace(f"e2e-site-files-{tag.replace('.', '-')}", tag, plugin) as ns:
        # Device files that every container has.
        ns.apply("""
apiVersion: v1
kind: ConfigMap
metadata: {name: gres}
data: {gres.conf: "Name=gpu File=/dev/zero\\nName=gpu File=/dev/full\\n"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: prolog}
data: {10-prolog.sh: "#!/bin/sh\\necho begin $SLURM_JOB_ID >>/tmp/site-log\\n"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: epilog}
data: {90-epilog.sh: "#!/bin/sh\\necho end $SLURM_JOB_ID >>/tmp/site-log\\n"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: health}
data:
  check.sh: |
    #!/bin/sh
    [ ! -e /tmp/broken ] || scontrol update NodeName=$(hostname) State=DRAIN Reason="health check: disk"
""")
        manifest = demo_manifest().replace("replicas: 3", "replicas: 1")
        manifest = manifest.replace("    - name: demo-files\n", """    - name: demo-files
    - name: gres
  prologScriptRefs: [{name: prolog}]
  epilogScriptRefs: [{name: epilog}]
""").replace("    TaskPlugin=task/none\n", """    TaskPlugin=task/none
    GresTypes=gpu
    HealthCheckProgram=/opt/site/check.sh
    HealthCheckInterval=2
""").replace("  extraConf: CPUs=2 RealMemory=1000\n", """  extraConf: CPUs=2 RealMemory=1000 Gres=gpu:2
  template:
    spec:
      volumes: [{name: site, configMap: {name: health, defaultMode: 493}}]
""").replace("    image: local/slurmd:${TAG}\n", "    image: local/slurmd:${TAG}\n    volumeMounts: [{name: site, mountPath: /opt/site}]\n")
        ns.apply(manifest)
        serves(ns, 1)
        on_worker = lambda *command: ns.kubectl("exec", "cpu-0", "-c", "slurmd", "--", *command).stdout
        job = ns.submit("sleep 1", "--gres=gpu:1")
        wait("the job completes", lambda: ns.completed(job))
        wait("prolog and epilog ran", lambda: on_worker("cat", "/tmp/site-log").split("\n")[:2] == [f"begin {job}", f"end {job}"])

        srun = lambda *words: sorted(ns.slurm("srun", *words).stdout.split())
        expect(srun("--gres=gpu:1", "printenv", "CUDA_VISIBLE_DEVICES") == ["0"], "a job with one device does not see it as its first")
        expect(srun("--gres=gpu:2", "printenv", "CUDA_VISIBLE_DEVICES") == ["0,1"], "a job with both devices does not see them")
        expect(srun("-n2", "--mpi=pmi2", "printenv", "PMI_RANK") == ["0", "1"], "two tasks are not the ranks 0 and 1")
        if tag.startswith("24.11"):
            # Debian builds Slurm 26.05 without PMIx.
            expect(srun("-n2", "--mpi=pmix", "printenv", "PMIX_RANK") == ["0", "1"], "two tasks are not PMIx' ranks 0 and 1")

        job = ns.submit_until_told()
        wait("the job runs", lambda: ns.fates([job]) == {("RUNNING", 0): 1})
        on_worker("touch", "/tmp/broken")
        wait("the health check drains the node", lambda: "DRAIN" in ns.nodes()["cpu-0"][0])
        expect(ns.nodes()["cpu-0"][1].startswith("health check: disk"), f"the reason is {ns.nodes()['cpu-0'][1]}")
        ns.told(job)
        on_worker("rm", "/tmp/broken")

        def resumed():
            """Resumes the node until it is idle, because a health check that had begun before may drain it once more."""
            if "DRAIN" in ns.nodes()["cpu-0"][0]:
                ns.slurm("scontrol", "update", "NodeName=cpu-0", "State=RESUME")
            return ns.idle() == ["cpu-0"]

        wait("the worker is idle again", resumed)


@own_clusters
@once
def jobs_run_in_oci_containers(tag, plugin):
    """Uses the files of the documentation, with the runc and busybox of this machine as runtime and root file system."""
    with Namespace(f"e2e-oci-{tag.replace('.', '-')}", tag, plugin) as ns:
        ns.apply(documented("oci-containers.md", "apiVersion: v1"))
        mounts = {"runc": "/usr/local/bin/runc", "busybox": "/opt/site/busybox"}
        files = {name: os.path.realpath(shutil.which(name, path=ENV["PATH"])) for name in mounts}
        manifest = demo_manifest().replace("replicas: 3", "replicas: 1")
        manifest = manifest.replace("    - name: demo-files\n", "    - name: demo-files\n    - name: oci\n  prologScriptRefs: [{name: oci-prolog}]\n")
        manifest = manifest.replace("  extraConf: CPUs=2 RealMemory=1000\n", f"""  extraConf: CPUs=2 RealMemory=1000
  template: {{spec: {{volumes: {json.dumps([{"name": name, "hostPath": {"path": path, "type": "File"}} for name, path in files.items()])}}}}}
""").replace("    image: local/slurmd:${TAG}\n", f"""    image: local/slurmd:${{TAG}}
    volumeMounts: {json.dumps([{"name": name, "mountPath": path, "readOnly": True} for name, path in mounts.items()])}
""")
        ns.apply(manifest)
        serves(ns, 1)
        on_worker = lambda *command, **options: ns.kubectl("exec", "cpu-0", "-c", "slurmd", "--", *command, **options)
        alice = lambda *command: on_worker("setpriv", "--reuid=alice", "--regid=alice", "--clear-groups", "env", "HOME=/home/alice",
                                           "XDG_RUNTIME_DIR=/run/user/5001", *command, timeout=120).stdout
        on_worker("bash", "-ec", """
useradd --uid 5001 --create-home alice
cd /home/alice
mkdir -p bundle/rootfs/{bin,proc,dev,sys,tmp}
cp /opt/site/busybox bundle/rootfs/bin/
for name in sh id cat hostname sleep; do ln -s busybox bundle/rootfs/bin/$name; done
chown -R alice: bundle
setpriv --reuid=alice --regid=alice --clear-groups runc spec --rootless --bundle bundle
sed -i 's/"terminal": true/"terminal": false/; s|"sh"|"/bin/hostname"|' bundle/config.json
""")
        out = alice("srun", "--container=/home/alice/bundle", "/bin/sh", "-c", "hostname; id -u; cat /proc/self/uid_map; echo /bin/s*").split()
        expect(out == ["runc", "0", "0", "5001", "1", "/bin/sh", "/bin/sleep"], f"in the container is {out}")

        submit = lambda script: int(alice("sbatch", "--parsable", "--container=/home/alice/bundle", "--chdir=/", "--output=/home/alice/out", "--error=/dev/null",
                                          f"--wrap={script}"))
        job = submit("hostname")
        wait("a batch job in a container completes", lambda: ns.completed(job))
        out = on_worker("cat", "/home/alice/out").stdout
        expect(out == "runc\n", f"in the container of a batch job the host name is {out}")

        containers = lambda: on_worker("pgrep", "-fc", "^runc .*run ", check=False).stdout.strip()
        job = submit("sleep 3600")
        wait("the container runs", lambda: containers() == "1")
        # The protection of workers relies on Slurm, which knows the job.
        wait("the worker is busy", lambda: ns.workers()["cpu-0"]["metadata"]["labels"].get("nodeset.slinky.slurm.net/pod-busy") == "true")
        ns.slurm("scancel", str(job))
        wait("the container ends with the job", lambda: ns.idle() == ["cpu-0"] and containers() == "0")

        # The container's output goes to the process that `scrun create` leaves behind until the container ends.
        alice("sh", "-c", "cd; scrun create --bundle $PWD/bundle mine </dev/null >scrun-out 2>scrun-errors && scrun start mine")
        wait("scrun has run the command of config.json", lambda: on_worker("cat", "/home/alice/scrun-out").stdout == "runc\n")
        wait("the worker is idle again", lambda: ns.idle() == ["cpu-0"])


@own_clusters
def workers_join_a_slurmctld_outside(tag, plugin):
    """Somebody else runs the cluster, here in another namespace. Workers join it, and are drained there before they are
    deleted."""
    name = tag.replace(".", "-")
    with Namespace(f"e2e-site-{name}", tag, plugin) as site, Namespace(f"e2e-far-{name}", tag, plugin) as far:
        keys = {"slurm": os.urandom(1024), "jwt": os.urandom(32)}
        for ns in (site, far):
            put_key(ns, "site", keys)
        named = '  slurmKeyRef: {name: site, key: slurm}\n  jwtKeyRef: {name: site, key: jwt}\n'
        manifest = demo_manifest().replace("  extraConf: |\n", f"  clusterName: site\n{named}  extraConf: |\n", 1)
        site.apply(manifest.replace("replicas: 3", "replicas: 0"))
        site.wait_condition("restapis.slinky.slurm.net", "demo")
        rest = manifest[manifest.index("apiVersion", manifest.index("kind: Controller")):]
        rest = rest.replace("replicas: 3", "replicas: 1").replace("name: cpu\n", "name: far\n")
        far.apply(f"""apiVersion: slinky.slurm.net/v1beta1
kind: Controller
metadata: {{name: demo}}
spec:
  clusterName: site
  external: true
  externalConfig: {{host: demo-controller.{site.name}, port: 6817}}
{named}---
{rest}""")
        far.wait_condition("controllers.slinky.slurm.net", "demo", "Degraded", saying="PartitionMissing")
        conf = site.get("controllers.slinky.slurm.net", "demo")["spec"]["extraConf"]
        site.patch("controllers.slinky.slurm.net", "demo",
                   {"spec": {"extraConf": conf + "NodeSet=far Feature=far\nPartitionName=far Nodes=far MaxTime=UNLIMITED State=UP\n"}})
        for kind, of in (("controllers", "demo"), ("nodesets", "far")):
            far.wait_condition(f"{kind}.slinky.slurm.net", of)
        far.wait_condition("controllers.slinky.slurm.net", "demo", "Degraded", "False")
        expect(not far.get("statefulsets"), "a slurmctld was made beside the one outside")
        wait("the worker is idle", lambda: site.idle() == ["far-0"])
        wait_for_partition(site, "far", "far-0")
        job = site.submit_until_told("-p", "far", "-w", "far-0", "--no-requeue")
        wait("the job runs", lambda: site.fates([job]) == {("RUNNING", 0): 1})
        expect(evict(far, "far-0"), "a worker with a job was evicted")
        far.kubectl("delete", "nodesets.slinky.slurm.net", "far", "--wait=false")
        wait("it drains", lambda: "DRAIN" in site.nodes()["far-0"][0])
        site.told(job)
        wait("the worker and its record are gone", lambda: not far.workers() and not site.nodes())


@own_clusters
def a_backup_of_slurmctld_takes_over(tag, plugin):
    """The primary's pod is deleted by force and not created again. The backup starts the waiting job and loses none."""
    quota = '{"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "full"}, "spec": {"hard": {"pods": "1"}}}'
    controller, backup = "controllers.slinky.slurm.net", "demo-controller-backup-0"
    with Namespace(f"e2e-ha-{tag.replace('.', '-')}", tag, plugin) as ns:
        ns.apply(with_a_backup(demo_manifest()).replace("replicas: 3", "replicas: 2"))
        ready = lambda timeout=LIMIT: ns.wait_condition(controller, "demo", "BackupsReady", saying="demo-controller-0 is primary", timeout=timeout)
        ready()
        serves(ns, 2)

        uid = lambda pod: ns.get("pod", pod)["metadata"]["uid"]
        primary, stale = slurmctld_identity(ns), uid(backup)
        conf = ns.get(controller, "demo")["spec"]["extraConf"]
        ns.patch(controller, "demo", {"spec": {"extraConf": conf + "PartitionName=late Nodes=ALL MaxTime=UNLIMITED State=UP\n"}})
        wait("the new partition is there", lambda: ns.slurm("sinfo", "-h", "-p", "late").stdout.strip())
        left = ns.get("pod", backup)
        expect(not left or left["metadata"]["uid"] != stale or "deletionTimestamp" in left["metadata"],
               "the primary has loaded what the backup would not know")
        expect(slurmctld_identity(ns) == primary, "the primary was restarted")
        wait("another backup is made", lambda: uid(backup) != stale and ns.condition("pod", backup, "Ready")["status"] == "True")
        ready()

        runs_on = runs(ns, ns.submit_until_told("-p", "late", "-w", "cpu-0", "--exclusive", "--no-requeue"))
        before = runs(ns, ns.submit("until test -e /tmp/may-end; do sleep 0.2; done", "-p", "late", "-w", "cpu-1", "--exclusive", "--no-requeue"))
        waits = ns.submit("sleep 1", "-p", "late", "-w", "cpu-1", "--exclusive", "--no-requeue")
        state_is_written(ns, waits)
        ns.kubectl("create", "-f", "-", text=quota)
        wait("the quota is in force", lambda: ns.get("resourcequota", "full")["status"]["hard"])
        expect(ns.jobs()[waits]["job_state"] == ["PENDING"], "the job that waits has started")
        killed = time.time()
        ns.kubectl("delete", "pod", "demo-controller-0", "--force", "--grace-period=0")
        # The first job ends while no slurmctld runs.
        time.sleep(8)
        # The primary's container runs until its kubelet has seen the deletion.
        wait("the primary has ended", lambda: re.search(r"\(primary\).* is DOWN", ns.kubectl(
            "exec", backup, "-c", "slurmctld", "--", "scontrol", "ping", check=False, timeout=60).stdout))
        ns.kubectl("exec", "cpu-1", "-c", "slurmd", "--", "touch", "/tmp/may-end")
        slurm = lambda *command: ns.kubectl("exec", backup, "-c", "slurmctld", "--", *command, timeout=60).stdout
        jobs = lambda: {job["job_id"]: job for job in json.loads(slurm("squeue", "--json", "--states=all"))["jobs"]}
        states = lambda: {number: (job["job_state"], job["restart_cnt"]) for number, job in jobs().items()}
        wait("the waiting job starts", lambda: states()[waits][0] in (["RUNNING"], ["COMPLETING"], ["COMPLETED"]))
        # Measured by Slurm's clock, because polling would add time. The goal is 15 s, which a busy machine may miss.
        print(f"        {tag}: the waiting job had started {jobs()[waits]['start_time']['number'] - killed:.1f} s after the primary was killed", flush=True)
        expect(not ns.get("pod", "demo-controller-0"), "the primary has come back")
        ns.wait_condition(controller, "demo", "BackupsReady", "False", saying=f"Slurm is served by {backup}")
        ns.wait_condition(controller, "demo")
        endpoints = lambda: ns.get("endpoints", "demo-controller")["subsets"][0]["addresses"]
        wait("the Service has an endpoint", lambda: [a["targetRef"]["name"] for a in endpoints()] == [backup])
        wait("each job has run once, to its end", lambda: all(
            states()[job] == (["COMPLETED"], 0) for job in (runs_on, before, waits)) or slurm("scancel", "--batch", "--signal=URG", str(runs_on)))
        wait("srun at the backup", lambda: slurm("srun", "-p", "late", "hostname").startswith("cpu-"))

        kept = int(slurm("sbatch", "--parsable", "--output=/dev/null", "--no-requeue", "-p", "late",
                         "--wrap=trap 'exit 0' URG; sleep 3600 & wait"))
        wait("the backup's job runs", lambda: states()[kept][0] == ["RUNNING"])
        # Slurm's own takeover would lose what the backup has not written yet.
        late = int(slurm("sbatch", "--parsable", "--output=/dev/null", "-p", "late", "--hold", "--wrap=true"))
        ns.kubectl("delete", "resourcequota", "full")
        # Kubernetes has failed to create its pod, and retries with a growing delay.
        ready(3 * LIMIT)
        wait("the primary has the jobs of the backup", lambda: ns.jobs()[kept]["job_state"] == ["RUNNING"])
        ns.slurm("scontrol", "release", str(late))
        wait("the last of them runs to its end", lambda: ns.slurm(
            "squeue", "-h", "--states=all", f"--jobs={late}", "-o", "%T").stdout.strip() == "COMPLETED")

        one, other = uid("demo-controller-0"), uid(backup)
        ns.patch(controller, "demo", {"spec": {"template": {"metadata": {"annotations": {"site": "new"}}}}})
        wait("the backup's pod is replaced", lambda: uid(backup) != other)
        wait("the primary's pod is replaced", lambda: uid("demo-controller-0") != one)
        # Compares Kubernetes' times, because a poll between the two may come late.
        made = lambda pod: ns.get("pod", pod)["metadata"]["creationTimestamp"]
        backup_made, primary_made = wait("both are there", lambda: (made(backup), made("demo-controller-0")))
        expect(backup_made <= primary_made, f"the primary went before its backup: {primary_made}, {backup_made}")
        ready()
        wait("Slurm answers", lambda: ns.jobs()[kept]["job_state"] == ["RUNNING"])
        ends_well(ns, kept)


@own_clusters
@once
def two_controllers_in_a_namespace(tag, plugin):
    """Two clusters in one namespace: each runs its own job, and the deletion of one does not affect the other."""
    with Namespace(f"e2e-side-{tag.replace('.', '-')}", tag, plugin) as ns:
        one = demo_manifest().replace("replicas: 3", "replicas: 1")
        ns.apply(one)
        ns.apply(re.sub(r"name: cpu$", "name: gpu", re.sub(r"name: demo$", "name: other", one, flags=re.M), flags=re.M))
        for controller, worker in (("demo", "cpu-0"), ("other", "gpu-0")):
            ns.wait_condition("nodesets.slinky.slurm.net", worker[:-2])
            wait(f"{worker} is idle", lambda c=controller, w=worker: ns.idle(c) == [w])
            wait(f"srun on {controller}", lambda c=controller, w=worker: ns.slurm(
                "srun", "hostname", controller=c, timeout=60).stdout.strip() == w)
            nodes = sorted(ns.nodes(controller))
            expect(nodes == [worker], f"{controller} has the nodes {nodes}")
        secrets = [ns.get("secret", f"{name}-slurm-key")["data"]["slurm.key"] for name in ("demo", "other")]
        expect(secrets[0] != secrets[1], "both clusters have the same key")
        before = slurmctld_identity(ns)
        job = runs(ns, ns.submit("sleep 3600"))
        for kind, name in (("controllers", "other"), ("restapis", "other"), ("nodesets", "gpu")):
            ns.kubectl("delete", f"{kind}.slinky.slurm.net", name, "--wait=false")
        kinds = "pods,services,statefulsets,deployments,nodesets.slinky.slurm.net"
        wait("nothing of the other is left", lambda: not any(
            item["metadata"]["name"].startswith(("other", "gpu")) for item in ns.get(kinds)))
        expect(ns.jobs()[job]["job_state"] == ["RUNNING"], "the job of the cluster that stays did not survive")
        expect(slurmctld_identity(ns) == before, "the slurmctld that stays was restarted")
        expect(ns.get("secret", "demo-slurm-key")["data"]["slurm.key"] == secrets[0], "the key of the cluster that stays was changed")
        ns.slurm("scancel", str(job))
        wait("it still runs jobs", lambda: ns.slurm("srun", "hostname", timeout=60).stdout.strip() == "cpu-0")


@own_clusters
@once
def slurmctld_refused_by_a_quota(tag, plugin):
    """A quota refuses slurmctld's pod, which only events of its StatefulSet show. The status has their message, and a larger
    quota ends the problem."""
    with Namespace(f"e2e-quota-{tag.replace('.', '-')}", tag, plugin) as ns:
        ns.apply("{apiVersion: v1, kind: ResourceQuota, metadata: {name: few}, spec: {hard: {pods: 0}}}")
        wait("the quota is in force", lambda: ns.get("resourcequota", "few")["status"]["hard"])
        ns.apply(demo_manifest().replace("replicas: 3", "replicas: 1"))
        cause = "exceeded quota: few"
        for kind, name, reason in (("controllers", "demo", "PodNotCreated"), ("restapis", "demo", "PodsRefused"),
                                   ("nodesets", "cpu", "FailedCreate")):
            wait(f"{kind} tell the quota", lambda k=kind, n=name: cause in (
                ns.condition(f"{k}.slinky.slurm.net", n, "Degraded") or {"message": ""})["message"])
            wait(f"an event of {kind} does too", lambda n=name, r=reason: cause in ns.events(n, r))
        ns.patch("resourcequota", "few", {"spec": {"hard": {"pods": "20"}}})
        for kind, name in (("controllers", "demo"), ("restapis", "demo"), ("nodesets", "cpu")):
            # Kubernetes retries with a growing delay.
            ns.wait_condition(f"{kind}.slinky.slurm.net", name, timeout=3 * LIMIT)
            ns.wait_condition(f"{kind}.slinky.slurm.net", name, "Degraded", "False")


@own_clusters
@once
def bad_configuration_at_first(tag, plugin):
    """slurmctld does not start with its first configuration. The status has its error, and the corrected configuration starts
    it."""
    with Namespace(f"e2e-bad-{tag.replace('.', '-')}", tag, plugin) as ns:
        manifest = demo_manifest().replace("replicas: 3", "replicas: 1")
        ns.apply(manifest.replace("  extraConf: |\n", "  extraConf: |\n    SchedulerType=sched/nonesuch\n", 1))
        wait("its words are told", lambda: "nonesuch" in ns.condition("controllers.slinky.slurm.net", "demo", "Ready")["message"])
        ns.apply(manifest)
        # A container that failed often restarts only after five minutes.
        wait("it runs", lambda: ns.idle() == ["cpu-0"], 3 * LIMIT)


@contextlib.contextmanager
def without_the_operator():
    """Scales the operator of the whole cluster to 0 for the duration of the block, because two operators must not act in one
    namespace."""
    scale = lambda replicas: kubectl("-n", "slurm-operator", "scale", "deployment/slurm-operator", f"--replicas={replicas}")
    pods = lambda: kubectl("-n", "slurm-operator", "get", "pods", "-l", "app.kubernetes.io/name=slurm-operator", "-o", "name").stdout
    scale(0)
    try:
        wait("it has ended", lambda: not pods())
        yield
    finally:
        scale(1)
        kubectl("-n", "slurm-operator", "rollout", "status", "deployment/slurm-operator", "--timeout=300s")


def helm(*arguments):
    run("helm", *arguments)


@own_clusters
@once
@alone
def a_role_in_one_namespace_is_enough(tag, plugin):
    release = "e2e-role"
    with without_the_operator(), Namespace(release, tag, plugin) as ns:
        helm("upgrade", "--install", release, str(TOP / "charts/slurm-operator"), "-n", ns.name, "--set",
             f"fullnameOverride={release},operator.clusterRole=false,operator.namespaces={ns.name},operator.imagePullPolicy=IfNotPresent")
        try:
            account = f"system:serviceaccount:{ns.name}:{release}"
            may = lambda *what: kubectl("auth", "can-i", *what, f"--as={account}", check=False).stdout.strip()
            for what in (("list", "nodes"), ("get", "secrets", "-n", "kube-system"), ("list", "pods", "--all-namespaces")):
                expect(may(*what) == "no", f"the operator may {' '.join(what)}")
            wait("the operator may delete pods in its own namespace", lambda: may("delete", "pods", "-n", ns.name) == "yes")
            since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 1))
            bound = json.loads(kubectl("get", "clusterrolebindings", "-o", "json").stdout)["items"]
            expect(not any(s.get("name") == release for b in bound for s in b.get("subjects") or []), "a ClusterRole is bound to the operator")
            ready_cluster(ns, 2)
            job = running_on(ns, "cpu-0")
            ns.scale("cpu", 1)
            wait("the idle worker goes", lambda: list(ns.workers()) == ["cpu-0"])
            ns.scale("cpu", 0)
            wait("the busy one is drained", lambda: "DRAIN" in ns.nodes()["cpu-0"][0])
            ends_well(ns, job)
            wait("it goes after its job", lambda: not ns.workers())
            log = ns.kubectl("logs", f"deployment/{release}", f"--since-time={since}").stdout
            expect("forbidden" not in log.lower(), f"something was forbidden: {[l for l in log.splitlines() if 'orbidden' in l][:2]}")
            ns.kubectl("delete", "controllers.slinky.slurm.net", "demo", "--wait=true")
        finally:
            helm("uninstall", release, "-n", ns.name, "--wait")


HOST_KEYS = """
mkdir -p /tmp/h/etc/ssh && ssh-keygen -A -f /tmp/h >/dev/null && cd /tmp/h/etc/ssh
for f in ssh_host_{rsa,ed25519,ecdsa}_key{,.pub}; do echo "$f: $(base64 -w0 $f)"; done
"""


def release_of_slinky(ns, folder, change=lambda own, children: (own, children)):
    """Creates a release of the Slinky operator's chart (a stand-in for that chart) and what that operator has made of it, and
    starts a job on cpu-0. `change` turns the objects into those of another release of that operator. Returns the job and the
    objects that the operator made."""
    parts = re.split("^#---.*\n", (TOP / "tests/e2e/slinky_release.yaml").read_text(), flags=re.MULTILINE)
    own, children = change(*parts[:2])
    workers, on_host = parts[2:]
    have_client(ns)
    host = json.loads(kubectl("get", "nodes", "-o", "json").stdout)["items"][0]["metadata"]["name"]
    known = {"NS": ns.name, "HOST": host, "LOGIN_KEY": made_key(ns, "first").strip()}
    fill = lambda text, **more: functools.reduce(lambda t, item: t.replace(f"${{{item[0]}}}", item[1]), (known | more).items(), ns.fill(text))
    chart = pathlib.Path(folder)
    (chart / "templates").mkdir()
    (chart / "Chart.yaml").write_text("apiVersion: v2\nname: slurm\nversion: 1.2.1\n")
    (chart / "templates/all.yaml").write_text(fill(own, KEY="k" * 1024))
    helm("install", "slurm", str(chart), "-n", ns.name)
    uid = lambda kind, name: ns.get(f"{kind}.slinky.slurm.net", name)["metadata"]["uid"]
    owners = {"CONTROLLER": uid("controllers", "slurm"), "RESTAPI": uid("restapis", "slurm"), "NODESET": uid("nodesets", "slurm-worker-cpu"),
              "HOSTSET": uid("nodesets", "slurm-worker-host"), "LOGINSET": uid("loginsets", "slurm-login-main"),
              "JWTKEY": ns.get("secret", "slurm-auth-jwt")["metadata"]["uid"]}
    if ns.get("accountings.slinky.slurm.net", "slurm"):
        owners["ACCOUNTING"] = uid("accountings", "slurm")
    keys = dict(line.split(": ") for line in client(ns, "bash", "-c", HOST_KEYS).stdout.splitlines())
    made = fill(children, HOST_KEYS=json.dumps(keys), **owners)
    ns.apply(made)
    ns.apply("---\n".join([*(fill(workers, N=number, **owners) for number in ("0", "1")), fill(on_host, **owners)]))
    ns.patch("nodesets.slinky.slurm.net", "slurm-worker-cpu", {"metadata": {"finalizers": ["nodeset.slinky.slurm.net/reservation"]}})
    # The client accepts the Service's host keys this once.
    wait("a user logs in", lambda: ssh(ns, "first", "root", "true", host="slurm-login-main", check=False).returncode == 0)
    wait("3 idle", lambda: ns.idle("slurm") == ["cpu-0", "cpu-1", host])
    pods = {"cpu-0": "slurm-worker-cpu-0", "cpu-1": "slurm-worker-cpu-1", host: "slurm-worker-host-x7k2p"}
    for name, pod in pods.items():
        nodeset = "slurm-worker-host" if name == host else "slurm-worker-cpu"
        comment = {"namespace": ns.name, "podName": pod, "node": "", "nodeSetName": nodeset, "nodeSetUID": uid("nodesets", nodeset)}
        ns.slurm("scontrol", "update", f"nodename={name}", f"comment={json.dumps(comment)}", controller="slurm")
    ns.kubectl("label", "pod", "slurm-worker-cpu-0", "nodeset.slinky.slurm.net/pod-protect=true")
    # The job leaves this when it ends by itself.
    job = ns.submit("trap 'echo ended well >/scratch/proof; exit 0' USR1; sleep 3600 & wait", "-N1", "-w", "cpu-0", "--no-requeue", controller="slurm")
    wait("the job runs", lambda: ns.fates([job], "slurm") == {("RUNNING", 0): 1})
    return job, made


class TakenOver:
    """The objects of a release of the Slinky operator that must stay when another operator or another chart takes the release
    over."""

    KINDS = (("controllers", "slurm"), ("restapis", "slurm"), ("nodesets", "slurm-worker-cpu"), ("nodesets", "slurm-worker-host"),
             ("loginsets", "slurm-login-main"), ("tokens", "alice"))

    def __init__(self, ns, job):
        self.ns, self.job = ns, job
        self.workers, self.kept = self.pods(), self.what_is_kept()

    def pods(self):
        return {name: (pod["metadata"]["uid"], [c["restartCount"] for c in pod["status"]["containerStatuses"]])
                for name, pod in self.ns.workers().items()}

    def what_is_kept(self):
        """Returns the volumes, the keys of the cluster, and the host keys of the login nodes."""
        claims = {item["metadata"]["name"]: item["metadata"]["uid"] for item in self.ns.get("persistentvolumeclaims")}
        return claims, [self.ns.get("secret", name)["data"] for name in ("slurm-auth-slurm", "slurm-auth-jwt", "slurm-login-main-ssh-host-keys")]

    def undisturbed(self, what):
        ns = self.ns
        for kind, name in self.KINDS:
            wait(f"{kind} is looked at", lambda: (o := ns.get(f"{kind}.slinky.slurm.net", name))["status"].get(
                "observedGeneration") == o["metadata"]["generation"])
            ns.wait_condition(f"{kind}.slinky.slurm.net", name)
        wait(f"{what}: the nodes answer", lambda: not any("NOT_RESPONDING" in s for s, _ in ns.nodes("slurm").values()))
        # Workers to be replaced would be replaced by now.
        time.sleep(5)
        expect(self.pods() == self.workers, f"{what}: workers were replaced or restarted: {self.workers} became {self.pods()}")
        # slurmctld may restart once.
        wait(f"{what}: the job runs, in its first start", lambda: ns.fates([self.job], "slurm") == {("RUNNING", 0): 1})
        expect(self.what_is_kept() == self.kept, f"{what}: volumes or keys are others")
        wait(f"{what}: no worker is drained", lambda: not any("DRAIN" in s for s, _ in ns.nodes("slurm").values()))
        out = wait(f"{what}: a user logs in", lambda: ssh(ns, "first", "root", "srun", "-w", "cpu-1", "hostname", host="slurm-login-main").stdout.strip())
        expect(out == "cpu-1", f"{what}: srun hostname printed {out}")


def given_back_to_slinky(ns, made, revision):
    """Gives the cluster back and rolls its release back. Expects that the Slinky operator can write to all objects and that
    nothing of our operator is left."""
    with without_the_operator():
        wait("it is given back", lambda: slurm_plugin(ns, "release", "slurm", "--yes"), every=2)
        helm("rollback", "slurm", revision, "-n", ns.name)
        for kind, name in TakenOver.KINDS[:5]:
            left = [f for f in ns.get(f"{kind}.slinky.slurm.net", name)["metadata"].get("finalizers", []) if not f.endswith("/reservation")]
            expect(not left, f"finalizers are left on {kind} {name}: {left}")
        notes = {note for pod in ns.workers().values() for note in pod["metadata"]["annotations"]} & {
            "nodeset.slinky.slurm.net/registered", "nodeset.slinky.slurm.net/deletion-evidence"}
        expect(not notes, f"notes are left on workers: {notes}")
        expect(ns.get("nodesets.slinky.slurm.net", "slurm-worker-cpu")["metadata"]["labels"]["helm.sh/chart"] == "slurm-1.2.1", "it was not rolled back")
        # The Go operator writes merge patches.
        for text in made.split("\n---\n"):
            kind, name = (re.search(pattern, text, re.M)[1] for pattern in (r"^kind: (\w+)", r"name: ([\w-]+)"))
            if kind in ("Service", "ConfigMap", "StatefulSet", "Deployment"):
                ns.kubectl("patch", kind, name, "--type=merge", "--dry-run=server", "--patch-file=/dev/stdin", text=text)


@own_clusters
@once
@alone
def a_release_of_the_slinky_operator_is_taken_over(tag, plugin):
    with Namespace("e2e-slinky", tag, plugin) as ns, tempfile.TemporaryDirectory() as folder:
        with without_the_operator():
            job, made = release_of_slinky(ns, folder)
            taken = TakenOver(ns, job)
            token = ns.get("secret", "alice-jwt-slurm")["metadata"]["uid"]

        taken.undisturbed("the operator took over")
        wait("the Token's Secret is renewed", lambda: base64.b64decode(ns.get("secret", "alice-jwt-slurm")["data"]["SLURM_JWT"]).count(b".") == 2)
        expect(ns.get("secret", "alice-jwt-slurm")["metadata"]["uid"] == token, "the Token's Secret is another")
        nodeset = lambda conf, **more: {"oversubscribeNode": True, "slurmd": {"image": f"local/slurmd:{tag}"}, "extraConf": conf,
                                        "logfile": {"image": f"local/slurmd:{tag}"}, "podSpec": {"nodeSelector": None}} | more
        release = ns.get("nodesets.slinky.slurm.net", "slurm-worker-cpu"), ns.get("nodesets.slinky.slurm.net", "slurm-worker-host")
        login = ns.get("loginsets.slinky.slurm.net", "slurm-login-main")["spec"]
        sssd = base64.b64decode(ns.get("secret", "slurm-sssd-conf")["data"]["sssd.conf"]).decode()
        cpu = nodeset("CPUs=2 RealMemory=1000", replicas=2, volumeClaimTemplates=release[0]["spec"]["volumeClaimTemplates"],
                      partition={"enabled": True, "config": "Default=YES MaxTime=UNLIMITED State=UP"})
        cpu["slurmd"]["volumeMounts"] = release[0]["spec"]["slurmd"]["volumeMounts"]
        host = nodeset("CPUs=1 RealMemory=500", scalingMode="DaemonSet", podSpec={
            "nodeSelector": release[1]["spec"]["template"]["spec"]["nodeSelector"]})
        image = {"image": f"local/login:{tag}"}
        values = json.dumps({
            "configFiles": {"cgroup.conf": f"CgroupPlugin={plugin}\nIgnoreSystemd=yes\n"},
            "controller": {"slurmctld": {"image": f"local/slurmctld:{tag}"}, "logfile": {"image": f"local/slurmctld:{tag}"},
                           "persistence": {"resources": {"requests": {"storage": "100Mi"}}},
                           "extraConf": "ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\n", "podSpec": {"nodeSelector": None}},
            "restapi": {"slurmrestd": {"image": f"local/slurmrestd:{tag}"}},
            "sssd": {"conf": sssd},
            "loginsets": {"main": {"login": image, "initconf": image, "rootSshAuthorizedKeys": login["rootSshAuthorizedKeys"],
                                   "podSpec": {"nodeSelector": None}, "service": {"spec": {"type": "ClusterIP"}}}},
            "nodesets": {"cpu": cpu, "host": host}})
        upgrade = lambda *more: run("helm", "upgrade", "slurm", str(TOP / "charts/slurm"), "-n", ns.name, "-f", "-", *more, text=values)
        upgrade()
        taken.undisturbed("the chart took over")
        given_back_to_slinky(ns, made, "1")
        # The NodeSet is completely ours: it is drained before its deletion, and the former operator's finalizer does not keep
        # it. Its volumes stay.
        upgrade("--set", "nodesets.cpu.enabled=false")
        wait("the busy worker is left", lambda: sorted(ns.workers()) == ["slurm-worker-cpu-0", "slurm-worker-host-x7k2p"])
        ns.slurm("scancel", "--batch", "--signal=USR1", str(job), controller="slurm")
        wait("the job completes, in its first start", lambda: ns.fates([job], "slurm") == {("COMPLETED", 0): 1})
        wait("the NodeSet goes", lambda: not ns.get("nodesets.slinky.slurm.net", "slurm-worker-cpu"))
        expect(taken.what_is_kept() == taken.kept, "volumes or keys went with the NodeSet")
        ns.apply("""
apiVersion: v1
kind: Pod
metadata: {name: reader}
spec:
  restartPolicy: Never
  containers: [{name: reader, image: "local/slurmd:${TAG}", imagePullPolicy: IfNotPresent, command: [cat, /scratch/proof], volumeMounts: [{name: scratch, mountPath: /scratch}]}]
  volumes: [{name: scratch, persistentVolumeClaim: {claimName: scratch-slurm-worker-cpu-0}}]
""")
        wait("the job has ended by itself, as its volume tells", lambda: ns.kubectl("logs", "reader").stdout == "ended well\n")
        helm("uninstall", "slurm", "-n", ns.name)
        expect([ns.get("secret", f"slurm-auth-{part}")["data"] for part in ("slurm", "jwt")] == taken.kept[1][:2], "the keys went with the release")


def with_two_slurmctlds(own, children):
    """Changes the objects of release_of_slinky to those of release 1.3 of the Slinky operator with ha."""
    other = (TOP / "tests/e2e/slinky_release_1.3.yaml").read_text()
    key = lambda text: tuple(re.search(pattern, text, re.M)[1] for pattern in (r"^kind: (\w+)", r"name: ([\w-]+)"))
    mine = {key(text) for text in other.split("\n---\n")}
    kept = [text for text in children.split("\n---\n") if key(text) not in mine]
    own = re.sub(r"^  persistence: .*$", "  persistence: {existingClaim: shared}\n  ha: {enabled: true}", own, flags=re.MULTILINE)
    return own, "\n---\n".join([other, *kept])


@own_clusters
@once
@alone
@long
def a_release_with_two_slurmctlds_is_taken_over(tag, plugin):
    """Both slurmctlds are in one StatefulSet. The standby is removed before ours is created, and a slurmctld serves all the
    time."""
    with Namespace("e2e-slinky-ha", tag, plugin) as ns, tempfile.TemporaryDirectory() as folder:
        with without_the_operator():
            starting = threading.Thread(target=lambda: wait("slurmctld's pod is there", lambda: ns.kubectl(
                "label", "pod", "slurm-controller-0", "controller.slinky.slurm.net/active=true"), 600), daemon=True)
            starting.start()
            job, _ = release_of_slinky(ns, folder, with_two_slurmctlds)
            starting.join()
            wait("it has the label", lambda: ns.get("pod", "slurm-controller-0")["metadata"]["labels"].get(
                "controller.slinky.slurm.net/active") == "true")
            ns.kubectl("wait", "--for=condition=Ready", "pod/slurm-controller-1", "--timeout=300s")
            taken = TakenOver(ns, job)
            # The primary is not known to serve, so nothing is changed.
            ns.kubectl("label", "pod", "slurm-controller-0", "controller.slinky.slurm.net/active-")
            before = {name: ns.get("pod", name)["metadata"]["uid"] for name in ("slurm-controller-0", "slurm-controller-1")}
        ns.wait_condition("controllers.slinky.slurm.net", "slurm", "Degraded", saying="OtherSlurmctlds")
        time.sleep(5)
        expect({name: ns.get("pod", name)["metadata"]["uid"] for name in before} == before, "slurmctld was replaced")
        expect(not ns.get("statefulset", "slurm-controller-backup"), "a backup was made beside the other one")
        ns.kubectl("label", "pod", "slurm-controller-0", "controller.slinky.slurm.net/active=true")
        wait("the one that stands by has gone", lambda: not ns.get("pod", "slurm-controller-1"))
        ns.wait_condition("controllers.slinky.slurm.net", "slurm", "BackupsReady", saying="slurm-controller-0 is primary")
        taken.undisturbed("the operator took over")
        wait("and its pod is ours", lambda: ns.get("pod", "slurm-controller-0")["metadata"]["uid"] != before["slurm-controller-0"])
        taken.undisturbed("slurmctld is ours")
        ns.slurm("scancel", "--batch", "--signal=USR1", str(job), controller="slurm")
        wait("the job completes, in its first start", lambda: ns.fates([job], "slurm") == {("COMPLETED", 0): 1})
        proof = ns.kubectl("exec", "slurm-worker-cpu-0", "-c", "slurmd", "--", "cat", "/scratch/proof").stdout
        expect(proof == "ended well\n", f"the job left {proof}")


def with_accounting(own, children):
    """Changes the objects of release_of_slinky to those with accounting.enabled."""
    more, made = (TOP / "tests/e2e/slinky_release_accounting.yaml").read_text().split("#---children\n")
    key, none, only = "  slurmKeyRef: {name: slurm-auth-slurm, key: slurm.key}\n", "AccountingStorageType=accounting_storage/none\n", "-s, openapi/slurmctld, "
    expect(key in own and none in children and only in children, "the release has changed")
    storage = "AccountingStorageType=accounting_storage/slurmdbd\n    AccountingStorageHost=slurm-accounting\n    AccountingStoragePort=6819\n"
    return (own.replace(key, "  accountingRef: {name: slurm}\n" + key, 1) + "---\n" + more,
            children.replace(none, storage).replace(only, "") + made.replace("${PASSWORD}", "secret"))


class TakenOverWithAccounting(TakenOver):
    KINDS = (*TakenOver.KINDS, ("accountings", "slurm"))


@own_clusters
@once
@alone
def a_slinky_release_accounting_is_taken_over(tag, plugin):
    """Our operator takes over slurmdbd with its StatefulSet and records. The Secret with the Slinky operator's slurmdbd.conf
    stays."""
    if tag.startswith("24.11"):
        print("skipped Slurm 24.11: the Slinky operator 1.2.1 does not run its slurmdbd", flush=True)
        return
    accounting.database_image()
    with Namespace("e2e-slinky-dbd", tag, plugin) as ns, tempfile.TemporaryDirectory() as folder:
        with without_the_operator():
            accounting.secret(ns, "secret")
            ns.apply(accounting.manifests()[0])
            ns.kubectl("wait", "--for=condition=Available", "deployment/mariadb", "--timeout=300s")
            job, made = release_of_slinky(ns, folder, with_accounting)
            ns.slurm("sacctmgr", "--immediate", "add", "account", "physics", controller="slurm")
            early = ns.submit("true", "-w", "cpu-1", *accounting.SMALL, controller="slurm")
            for number, state in ((job, "RUNNING"), (early, "COMPLETED")):
                accounting.recorded(ns, number, state, controller="slurm")
            taken = TakenOverWithAccounting(ns, job)
            name, its = "slurm-accounting", {"labelSelector": "app.kubernetes.io/name=slurmdbd"}
            uids = lambda: [ns.get(kind, name)["metadata"]["uid"] for kind in ("statefulset", "service")]
            left = lambda: ns.get("secret", name)["data"]
            before, conf, (pod,) = uids(), left(), ns.get("pods", **its)

        def ours(what):
            taken.undisturbed(what)
            accounting.joined(ns, "slurm")
            (now,) = ns.get("pods", **its)
            expect(now["metadata"]["uid"] != pod["metadata"]["uid"], f"{what}: slurmdbd's pod is the one of the other operator")
            volumes = {volume["name"]: volume for volume in now["spec"]["volumes"]}
            expect("emptyDir" in volumes["slurm-etc"] and name not in [
                source["secret"]["name"] for volume in volumes.values() for source in volume.get("projected", {}).get("sources", []) if "secret" in source],
                   f"{what}: slurmdbd still reads the Secret of the other operator: {volumes}")
            for kind, which in taken.KINDS:
                told = ns.condition(f"{kind}.slinky.slurm.net", which, "FieldsNotActedOn")
                expect(not told, f"{what}: {kind} {which}: {told}")
            expect(uids() == before, f"{what}: its StatefulSet or its Service is another")
            for number, state in ((job, "RUNNING"), (early, "COMPLETED")):
                accounting.recorded(ns, number, state, controller="slurm")

        ours("the operator took over")
        expect(left() == conf, "the Secret with slurmdbd.conf was changed")
        expect("physics" in ns.slurm("sacctmgr", "--noheader", "show", "account", "format=account", controller="slurm").stdout, "an account is gone")
        given_back_to_slinky(ns, made, "1")
        # The Slinky operator would have restored the old value in the StatefulSet.
        ours("it came back")
        # Does what the page about migration says.
        ns.kubectl("delete", "secret", name)
        ns.kubectl("delete", "pod", f"{name}-0", "--wait=true")
        accounting.joined(ns, "slurm")
        late = ns.submit("true", "-w", "cpu-1", *accounting.SMALL, controller="slurm")
        ns.slurm("scancel", "--batch", "--signal=USR1", str(job), controller="slurm")
        accounting.all_recorded(ns, [job, early, late], "slurm")
        accounting.no_runaway_jobs(ns, "slurm")


@own_clusters
@once
def namespace_with_drain(tag, plugin):
    """A namespace with a Controller with deletionPolicy Drain is deleted: the deletion waits for jobs, and idle workers are
    deleted at once."""
    with Namespace(f"e2e-drain-{tag.replace('.', '-')}", tag, plugin) as ns:
        ready_cluster(ns, 2)
        ns.patch("controllers.slinky.slurm.net", "demo", {"spec": {"deletionPolicy": "Drain"}})
        job = runs(ns, ns.submit_until_told("-w", "cpu-0"))
        kubectl("delete", "namespace", ns.name, "--wait=false")
        wait("the idle worker goes", lambda: sorted(ns.workers()) == ["cpu-0"])
        for _ in range(10):
            expect(sorted(ns.workers()) == ["cpu-0"], "the worker went before its job had ended")
            wait("slurmctld answers", lambda: ns.slurm("scontrol", "ping"))
            time.sleep(0.5)
        wait("the namespace is gone", lambda: "not found" in kubectl("get", "namespace", ns.name, check=False).stderr or ns.tell(job, "URG"), 3 * LIMIT)


@own_clusters
@once
def namespace_at_once(tag, plugin):
    """Without deletionPolicy Drain a namespace is deleted at once, even with jobs."""
    with Namespace(f"e2e-now-{tag.replace('.', '-')}", tag, plugin) as ns:
        ready_cluster(ns, 1)
        job = runs(ns, ns.submit("sleep 3600"))
        kubectl("delete", "namespace", ns.name, "--wait=true", timeout=3 * LIMIT)


def renew(ns):
    """Gives the next test a new cluster, because a failed test leaves its cluster in any state."""
    if not KEEP:
        ns.kubectl("annotate", "controllers.slinky.slurm.net", "--all", "controller.slinky.slurm.net/stop-deletions-", check=False)
    ns.renew()
    ready_cluster(ns)


def a_cluster_becomes_ready(ns):
    ready_cluster(ns)


def a_new_cluster_for_the_next_test(ns):
    renew(ns)


def run_one(name, function):
    start = time.monotonic()
    try:
        function()
        print(f"ok      {name} ({time.monotonic() - start:.1f} s)", flush=True)
        return True
    except (Failed, subprocess.TimeoutExpired) as error:
        # Shows the first error, if a clean-up has failed after it.
        causes = [error]
        while causes[0].__context__:
            causes.insert(0, causes[0].__context__)
        print(f"not ok  {name} ({time.monotonic() - start:.1f} s): {'; then: '.join(map(str, causes))}", flush=True)
    except Exception:  # pylint: disable=broad-except
        print(f"not ok  {name}: {traceback.format_exc()}", flush=True)
    return False


def told_of(function):
    return function.__name__.replace("_", " ")


def in_turn(lane, tag, function, *arguments, before=None):
    """Runs a test as soon as no test of another lane forbids it and everything that it needs is there. Tests in ALONE disturb
    the whole cluster and run alone."""
    alone = function in ALONE
    # A test that waits to be alone holds the turnstile, so that no other test starts before it.
    with lane.open("turnstile") as turnstile, lane.open("cluster") as cluster:
        fcntl.flock(turnstile, fcntl.LOCK_EX)
        fcntl.flock(cluster, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        if not alone:
            fcntl.flock(turnstile, fcntl.LOCK_UN)

        def prepared():
            problem = None
            try:
                wait("Kubernetes and the operator are as they were", kubernetes_is_whole)
                if before:
                    before(*arguments)
            except (Failed, subprocess.TimeoutExpired) as error:
                problem = error
            expect(not problem, f"it was not begun, for what it needs is not there: {problem}")
            function(*arguments)

        return run_one(f"{tag} {told_of(function)}", prepared)


def in_one_cluster(lane, results):
    """Runs the tests that share a Slurm cluster, one after the other."""
    with Namespace(f"e2e-{lane.tag.replace('.', '-')}", lane.tag, cgroup_plugin()) as ns:
        have = in_turn(lane, lane.tag, a_cluster_becomes_ready, ns)
        results.append(have)
        left = list(lane.tests)
        while have and left:
            results.append(in_turn(lane, lane.tag, left.pop(0), ns, before=as_each_test_finds_it))
            if not results[-1]:
                have = in_turn(lane, lane.tag, a_new_cluster_for_the_next_test, ns)
                # A cluster that could not be created counts as a failed test.
                if not have:
                    results.append(False)
        if not have:
            for function in left:
                print(f"not ok  {lane.tag} {told_of(function)}: it was not begun, for there is no cluster", flush=True)
            results += [False] * len(left)
            if KEEP:
                ns.renew()


def in_their_own(lane, results):
    """Runs the tests that create clusters of their own."""
    for function in lane.tests:
        results.append(in_turn(lane, lane.tag, function, lane.tag, cgroup_plugin()))


@dataclasses.dataclass
class Lane:
    """Tests that run one after the other in a process of their own. Lanes run in parallel, because most tests mostly wait."""
    tag: str
    body: typing.Callable
    tests: list
    locks: str

    def open(self, name):
        return open(os.path.join(self.locks, name), "w", encoding="ascii")

    def run(self):
        """Returns True for each test that has passed, False for each other one, and one more False if the lane itself was
        aborted."""
        results = []
        try:
            self.body(self, results)
        except Exception:  # pylint: disable=broad-except
            print(f"not ok  {self.tag} {told_of(self.body)} broke off after {len(results)} of {len(self.tests)} tests: {traceback.format_exc()}", flush=True)
            results.append(False)
        return results


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--slurm", action="append", help="Slurm release of the local images; may be repeated")
    parser.add_argument("--long", action="store_true", help="all tests with every release")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    made = slurm_releases()
    releases = arguments.slurm or made
    with tempfile.TemporaryDirectory() as locks:
        lanes = []
        for tag in releases:
            for body, tests in ((in_one_cluster, TESTS), (in_their_own, OWN_CLUSTERS)):
                wanted = [function for function in tests
                          if not arguments.names or any(part in function.__name__ for part in arguments.names)]
                wanted = [function for function in wanted if SINCE.get(function, tag) <= tag and tag < UNTIL.get(function, "99")]
                if tag != releases[0] and not arguments.long:
                    wanted = [function for function in wanted if function not in ONCE]
                if not (arguments.long or arguments.names):
                    wanted = [function for function in wanted if function not in LONG]
                if tag == max(made):
                    wanted = [function for function in wanted if function not in FROM_OLDER]
                if wanted:
                    lanes.append(Lane(tag, body, wanted, locks))
        with concurrent.futures.ProcessPoolExecutor(max(1, len(lanes))) as pool:
            results = [result for lane in pool.map(Lane.run, lanes) for result in lane]
    failed = len(results) - sum(results)
    print(f"{sum(results)} passed, {failed} failed")
    return 1 if failed or not results else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""End-to-end tests on the local cluster, as a user sees it: kubectl and Slurm's own commands, nothing of the operator's inside.

Usage: run.py [--slurm 26.05] [--long] [NAME...]     tests whose names contain one of NAME; default: all, for each Slurm release with images
What is the same with every release runs with the first one only, unless --long is given.
KEEP=1 leaves the namespaces of failed tests for a look.
"""

import argparse
import base64
import concurrent.futures
import dataclasses
import fcntl
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import traceback
import typing

from cluster import KEEP, Failed, Namespace, cgroup_plugin, demo_manifest, kubectl, kubelet_away, slurm_releases, wait

TESTS = []
OWN_CLUSTERS = []
ONCE = set()
ALONE = set()


def test(function):
    TESTS.append(function)
    return function


def once(function):
    """What does not depend on the Slurm release."""
    ONCE.add(function)
    return function


def alone(function):
    """What disturbs all of the cluster, as a Kubernetes node that is cordoned does."""
    ALONE.add(function)
    return function


def own_clusters(function):
    """A test with namespaces of its own."""
    OWN_CLUSTERS.append(function)
    return function


def expect(condition, message):
    if not condition:
        raise Failed(message)


def ready_cluster(ns, replicas=3):
    """The demo's cluster in this namespace, Ready with this many idle workers."""
    ns.apply(demo_manifest().replace("replicas: 3", f"replicas: {replicas}"))
    for kind, name in (("controllers", "demo"), ("restapis", "demo"), ("nodesets", "cpu")):
        ns.wait_condition(f"{kind}.slinky.slurm.net", name)
    wait("all workers idle", lambda: len(ns.idle()) == replicas)


def slurmctld_identity(ns):
    """Its pod's UID and its restarts; Failed while the pod is not there, or has not begun to start."""
    pod = ns.get("pod", "demo-controller-0") or {"status": {}}
    for status in pod["status"].get("containerStatuses") or []:
        if status["name"] == "slurmctld":
            return pod["metadata"]["uid"], status["restartCount"]
    raise Failed("slurmctld's pod tells no container of that name")


def evict(ns, name):
    """Whether an eviction is let through; "" or the refusal."""
    eviction = json.dumps({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": ns.name}})
    out = ns.kubectl("create", "--raw", f"/api/v1/namespaces/{ns.name}/pods/{name}/eviction", "-f", "-", text=eviction, check=False)
    return "" if out.returncode == 0 else out.stderr


def runs(ns, job):
    wait("the job runs", lambda: ns.jobs()[job]["job_state"] == ["RUNNING"])
    return job


def running_on(ns, worker):
    """A job that runs there until it is told to end, and is not requeued."""
    return runs(ns, ns.submit_until_told("-N1", "-w", worker, "--exclusive", "--no-requeue"))


def ends_well(ns, job):
    """The job ran once, to its end."""
    ns.tell(job)
    wait("the job completes", lambda: ns.completed(job))
    out = json.loads(ns.slurm("scontrol", "show", "job", str(job), "--json").stdout)["jobs"][0]
    expect(out["restart_cnt"] == 0, f"the job was started {out['restart_cnt'] + 1} times")


@test
def a_cluster_runs_jobs(ns):
    out = ns.slurm("srun", "-N3", "hostname").stdout.split()
    expect(sorted(out) == ["cpu-0", "cpu-1", "cpu-2"], f"srun -N3 hostname printed {out}")
    status = ns.get("nodesets.slinky.slurm.net", "cpu")["status"]
    for field, wanted in (("replicas", 3), ("readyReplicas", 3), ("availableReplicas", 3), ("desired", 3)):
        expect(status.get(field) == wanted, f"status.{field} is {status.get(field)}, not {wanted}")


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
    ns.scale("cpu", 2)
    wait("2 workers", lambda: len(ns.workers()) == 2)
    wait("no records of the others", lambda: len(ns.nodes()) == 2)
    ns.scale("cpu", 3)
    wait("3 idle again", lambda: len(ns.idle()) == 3)


@test
def scale_in_waits_for_jobs(ns):
    job = runs(ns, ns.submit_until_told("-N3", "--exclusive"))
    ns.scale("cpu", 1)
    time.sleep(5)
    expect(len(ns.workers()) == 3, "a busy worker was deleted")
    ends_well(ns, job)
    wait("1 worker is left", lambda: len(ns.workers()) == 1)
    ns.scale("cpu", 3)
    wait("3 idle again", lambda: len(ns.idle()) == 3)
    expect(not any(reason for _, reason in ns.nodes().values()), f"reasons were left: {ns.nodes()}")


@test
def no_job_is_lost_when_replicas_flap(ns):
    jobs = ns.submit_many(60, "sleep 3", "-n1")
    for replicas in (9, 1, 6, 1, 9, 1, 5, 3):
        ns.scale("cpu", replicas)
        time.sleep(2)
    done = {("COMPLETED", 0): len(jobs)}
    wait("all jobs have ended", lambda: not any(
        name.startswith(("PENDING", "RUNNING", "CONFIGURING")) or "COMPLETING" in name for name, _ in ns.fates(jobs)), 180, every=1)
    expect(ns.fates(jobs) == done, f"jobs by state and restarts: {dict(ns.fates(jobs))}")
    wait("3 idle", lambda: len(ns.idle()) == 3)
    # Any three may be left; the other tests know them by name.
    ns.scale("cpu", 0)
    wait("no worker", lambda: not ns.nodes())
    ns.scale("cpu", 3)
    wait("3 idle", lambda: len(ns.idle()) == 3)


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
    wait("the idle workers are replaced", lambda: replaced() == {"cpu-0", "cpu-2"}, 90)
    wait("the busy one is drained", lambda: "being updated" in ns.nodes()["cpu-1"][1])
    wait("cpu-0 serves", lambda: ns.idle() == ["cpu-0"])
    expect(ns.nodes()["cpu-2"][1] == "admin: bad disk", f"the administrator's drain of cpu-2 became {ns.nodes()['cpu-2']}")
    expect(ns.jobs()[later]["job_state"] == ["PENDING"], "the job that waits for cpu-0 by its name is gone")
    expect("cpu-1" not in replaced(), "the busy worker was replaced")
    ends_well(ns, job)
    wait("it is replaced after its job", lambda: len(replaced()) == 3)
    ns.slurm("scancel", str(later))
    ns.slurm("scontrol", "update", "nodename=cpu-2", "state=resume")
    wait("3 idle", lambda: len(ns.idle()) == 3)
    expect(ns.get("nodesets.slinky.slurm.net", "cpu")["status"]["updatedReplicas"] == 3, "not all workers count as updated")
    before = uids()
    site(None)
    wait("all workers have the former template again", lambda: len(replaced()) == 3 and len(ns.idle()) == 3, 120)


@test
def scale_in_spares_busy_workers(ns):
    job = runs(ns, ns.submit_until_told("-w", "cpu-2", "-N1", "--exclusive"))
    wait("the deadline or state shows", lambda: any(
        c["type"] in ("SlurmNodeStateAllocated", "SlurmNodeStateMixed") and c["status"] == "True"
        for c in ns.get("pod", "cpu-2")["status"]["conditions"]))
    wait("the busy worker is protected", lambda: ns.get("pod", "cpu-2")["metadata"]["labels"].get(
        "nodeset.slinky.slurm.net/pod-protect") == "true")
    ns.kubectl("delete", "--wait=false", "pod", "cpu-0")
    wait("cpu-0 is usable again", lambda: len(ns.idle()) == 2 and "cpu-0" in ns.idle())
    ends_well(ns, job)
    wait("3 idle", lambda: len(ns.idle()) == 3)


@test
@once
def busy_workers_are_not_evicted_while_scaled_in(ns):
    job = runs(ns, ns.submit("sleep 600", "-N3", "--exclusive"))
    wait("the workers are protected", lambda: all(
        pod["metadata"]["labels"].get("nodeset.slinky.slurm.net/pod-protect") == "true" for pod in ns.workers().values()))
    ns.scale("cpu", 1)
    wait("workers drain", lambda: sum("DRAIN" in states for states, _ in ns.nodes().values()) == 2)
    # The budget is counted anew when a pod changes; a change that means nothing brings that about.
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
    node = ns.get("pod", "cpu-0")["spec"]["nodeName"]
    expect("disruption budget" in evict(ns, "cpu-0"), "a worker that may get a job at any moment was evicted")
    try:
        kubectl("cordon", node)
        wait("the eviction goes through", lambda: not evict(ns, "cpu-0"), 20)
    finally:
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
    # Preemption knows it by this label, a second or two after the job began.
    wait("the worker is marked as busy", lambda: ns.get("pod", "cpu-2")["metadata"]["labels"].get(
        "nodeset.slinky.slurm.net/pod-busy") == "true")
    worker = ns.get("pod", "cpu-2")
    node = worker["spec"]["nodeName"]
    millis = lambda text: int(text[:-1]) if text.endswith("m") else int(float(text) * 1000)
    requests = lambda pod: sum(millis(c.get("resources", {}).get("requests", {}).get("cpu", "0")) for c in pod["spec"]["containers"])
    pods = json.loads(kubectl("get", "pods", "-A", "--field-selector", f"spec.nodeName={node}", "-o", "json").stdout)["items"]
    others = sum(requests(pod) for pod in pods if pod["metadata"]["uid"] != worker["metadata"]["uid"])
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
  containers: [{{name: c, image: "local/slurmd:${{TAG}}", command: [sleep, "600"], resources: {{requests: {{cpu: {room}m}}}}}}]
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
    name, worker = next((n, p) for n, p in sorted(ns.workers().items()) if p["spec"]["nodeName"] != home)
    node, away = worker["spec"]["nodeName"], ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
    limits = lambda: [t["tolerationSeconds"] for t in ns.get("pod", name)["spec"]["tolerations"] if "tolerationSeconds" in t]
    expect(not limits(), "the worker would leave a node whose kubelet is away")
    # As one that was adopted has it, but impatient.
    hasty = [{**t, "tolerationSeconds": 5} if t.get("key") in away else t for t in worker["spec"]["tolerations"]]
    ns.patch("pod", name, {"spec": {"tolerations": hasty}})
    wait("a running worker is made patient", lambda: not limits())
    job = running_on(ns, name)
    with kubelet_away(node):
        taints = lambda: json.loads(kubectl("get", "node", node, "-o", "json").stdout)["spec"].get("taints", [])
        wait("its node is given up", lambda: any(t["effect"] == "NoExecute" for t in taints()), 90, every=1)
        time.sleep(15)
        found = ns.get("pod", name)["metadata"]
        expect("deletionTimestamp" not in found, "the worker was deleted")
        ends_well(ns, job)
    wait("its node is back", lambda: not any(t["effect"] == "NoExecute" for t in taints()))
    expect(ns.get("pod", name)["metadata"]["uid"] == worker["metadata"]["uid"], "the worker was replaced")
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
    expect(len(ns.idle()) == 3 and len(ns.workers()) == 3, "a worker was drained or deleted")
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
    # Both at once: one worker that Slurm does not know is believed to be forgotten.
    ns.slurm("scontrol", "delete", "nodename=cpu-[1-2]")
    ns.wait_condition("nodesets.slinky.slurm.net", "cpu", "DeletionsStopped", saying="does not know 2 of 3 workers")
    ns.scale("cpu", 1)
    time.sleep(5)
    expect(len(ns.workers()) == 3 and "DRAIN" not in ns.nodes()["cpu-0"][0], "Slurm was believed")
    ns.scale("cpu", 3)
    ns.kubectl("delete", "pod", "cpu-1", "cpu-2", "--wait=true")
    wait("its nodes are back", lambda: len(ns.idle()) == 2, 90)
    wait("it goes on", lambda: ns.condition("nodesets.slinky.slurm.net", "cpu", "DeletionsStopped") is None)
    ends_well(ns, job)
    wait("3 idle", lambda: len(ns.idle()) == 3)


@test
def a_deleted_pod_comes_back_usable(ns):
    before = ns.get("pod", "cpu-1")["metadata"]["uid"]
    ns.kubectl("delete", "pod", "cpu-1", "--wait=true")
    wait("a new pod", lambda: (ns.get("pod", "cpu-1") or {"metadata": {"uid": before}})["metadata"]["uid"] != before)
    wait("3 idle", lambda: len(ns.idle()) == 3)


@test
def a_foreign_drain_survives_everything(ns):
    ns.slurm("scontrol", "update", "nodename=cpu-0", "state=drain", "reason=admin: bad memory")
    ns.kubectl("delete", "pod", "cpu-0", "--wait=true")
    wait("the pod is ready again", lambda: any(c["type"] == "Ready" and c["status"] == "True"
                                               for c in ns.get("pod", "cpu-0")["status"]["conditions"]))
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
    wait("srun on the new partition", lambda: ns.slurm("srun", "-p", "gpu", "hostname", timeout=20).stdout.strip() == "gpu-0")
    ns.kubectl("delete", "nodesets.slinky.slurm.net", "gpu", "--wait=true")
    wait("the partition goes", lambda: "gpu" not in ns.slurm("sinfo", "-h", "-o", "%R").stdout.split())
    expect(slurmctld_identity(ns) == before, "slurmctld was restarted")
    ends_well(ns, job)
    wait("3 idle", lambda: len(ns.idle()) == 3)


@test
def a_refused_configuration_is_rolled_back_and_mended(ns):
    before = slurmctld_identity(ns)
    good = ns.get("controllers.slinky.slurm.net", "demo")["spec"]["extraConf"]
    ns.patch("controllers.slinky.slurm.net", "demo", {"spec": {"extraConf": good + "SchedulerType=sched/nonesuch\n"}})
    bad = ns.wait_condition("controllers.slinky.slurm.net", "demo", "Degraded", "True", 60)
    expect(bad["message"], "the condition has no message")
    expect(ns.slurm("scontrol", "ping").stdout.find("UP") >= 0, "slurmctld is down")
    ns.patch("controllers.slinky.slurm.net", "demo", {"spec": {"extraConf": good + "MessageTimeout=15\n"}})
    ns.wait_condition("controllers.slinky.slurm.net", "demo", "Degraded", "False", 60)
    wait("the new value is loaded", lambda: "MessageTimeout          = 15" in ns.slurm("scontrol", "show", "config").stdout)
    expect(slurmctld_identity(ns) == before, "slurmctld was restarted")
    ns.patch("controllers.slinky.slurm.net", "demo", {"spec": {"extraConf": good}})


@test
@once
def malformed_extra_conf_names_its_line(ns):
    good = ns.get("controllers.slinky.slurm.net", "demo")["spec"]["extraConf"]
    ns.patch("controllers.slinky.slurm.net", "demo", {"spec": {"extraConf": good + "ScedulerType=sched/backfill\n"}})
    ns.wait_condition("controllers.slinky.slurm.net", "demo", "Degraded", saying="ScedulerType")
    ns.patch("controllers.slinky.slurm.net", "demo", {"spec": {"extraConf": good}})
    ns.wait_condition("controllers.slinky.slurm.net", "demo", "Degraded", "False")


# A NodeSet of one worker, to be given an image and a pod template.
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
    running = runs(ns, ns.submit("sleep 600", "-N3", "--exclusive"))
    queued = ns.submit("true", "-N3", "--exclusive")
    ns.kubectl("delete", "pod", "demo-controller-0", "--wait=true")
    jobs = wait("slurmctld answers again", lambda: uid() not in (None, before) and ns.jobs(), 90)
    states = {job: jobs[job]["job_state"] for job in jobs}
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

    versions = re.findall(r"slurm\\?/v0\.0\.(\d+)\\?/nodes", ask("/openapi/v3"))  # it writes / as \/
    expect(versions, "slurmrestd tells no version of its API")
    answer = ask(f"/slurm/v0.0.{max(map(int, versions))}/nodes/")
    expect('"cpu-0"' in answer, f"slurmrestd answered: {answer[:300]}")


@test
@once
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
    ns.tell(job)
    wait("the NodeSet goes when its job has ended", lambda: ns.get("nodesets.slinky.slurm.net", "cpu") is None)
    expect(not ns.nodes(), f"records were left: {ns.nodes()}")
    expect(ns.completed(job), "the job did not complete")
    ready_cluster(ns)


# --- Workers that end, and the word of administrators -----------------------------------------------------------------

def queue_while(ns, what):
    """Eighteen short jobs that may not be requeued, on one CPU each, while `what` happens to cpu-1: only those that run there
    may be lost. Each of the others leaves a line on the worker where it ended."""
    jobs = ns.submit_many(18, "sleep 3; echo $SLURM_JOB_ID >>/tmp/ended", "--no-requeue", "--exclusive", "-N1")
    wait("a job runs on cpu-1", lambda: any(job["nodes"] == "cpu-1" for job in ns.jobs().values() if job["job_id"] in jobs))
    what()
    ended_at = time.time()
    wait("the queue is empty", lambda: not any(job["job_state"][0] in ("PENDING", "RUNNING", "COMPLETING")
                                               for number, job in ns.jobs().items() if number in jobs), 180)
    wait("3 idle", lambda: len(ns.idle()) == 3)
    ended = "".join(ns.kubectl("exec", pod, "-c", "slurmd", "--", "sh", "-c", "cat /tmp/ended 2>/dev/null || true").stdout
                    for pod in ns.workers()).split()
    for number in jobs:
        job = json.loads(ns.slurm("scontrol", "show", "job", str(number), "--json").stdout)["jobs"][0]
        if job["nodes"] == "cpu-1" and (job["job_state"] == ["COMPLETED"] or job["start_time"]["number"] <= ended_at + 1):
            continue  # It was there when the worker ended, or its file went with a worker.
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

    ns.slurm("scontrol", "reconfigure")  # As when a NodeSet is added: all slurmds register.
    time.sleep(8)
    held("after a reconfigure")
    ns.scale("cpu", 0)
    wait("no worker", lambda: not ns.workers())
    ns.scale("cpu", 3)
    wait("cpu-0 is idle", lambda: ns.idle() == ["cpu-0"], 90)
    wait("all are ready", lambda: ns.get("nodesets.slinky.slurm.net", "cpu")["status"].get("readyReplicas") == 3, 90)
    time.sleep(5)
    held("after scaling in and out")
    for name in ("cpu-1", "cpu-2"):
        ns.slurm("scontrol", "update", f"nodename={name}", "state=resume")
    wait("3 idle", lambda: len(ns.idle()) == 3)


# --- Workers whose end nothing told Slurm -----------------------------------------------------------------------------------

def a_job_that_may_run_elsewhere(ns, worker):
    """It runs on this worker, may be requeued, and the others are free."""
    others = ",".join(name for name in ns.workers() if name != worker)
    ns.slurm("scontrol", "update", f"nodename={others}", "state=drain", "reason=test: elsewhere")
    job = ns.submit_until_told("-N1", "--exclusive", "--requeue")
    wait("the job runs", lambda: ns.jobs()[job]["job_state"] == ["RUNNING"])
    ns.slurm("scontrol", "update", f"nodename={others}", "state=resume")
    return job


def runs_elsewhere(ns, job, worker, within):
    """It is requeued within so many seconds, starts on another worker, and ends well."""
    wait("the job is requeued", lambda: ns.jobs()[job]["restart_cnt"] == 1, within, every=1)
    # slurmctld lets two minutes pass before it starts it anew.
    ns.slurm("scontrol", "update", f"jobid={job}", "starttime=now", "excnodelist=" + worker, check=False)
    wait("the job runs again", lambda: ns.jobs()[job]["job_state"] == ["RUNNING"] and ns.jobs()[job]["nodes"] != worker, 150, every=1)
    ns.tell(job)
    wait("the job completes", lambda: ns.completed(job), 60)


@test
@once
@alone
def a_job_on_a_kubernetes_node_that_is_deleted_starts_anew(ns):
    pods = json.loads(kubectl("get", "pods", "-A", "-o", "json").stdout)["items"]
    # What must live on: their old processes do not end before their kubelet is back.
    needed = [pod["spec"].get("nodeName") for pod in pods if pod["metadata"]["name"].startswith("slurm-operator-")
              or "demo-controller-0" == pod["metadata"]["name"]]
    mine = [ns.get("pod", "demo-controller-0")["spec"]["nodeName"], next(
        pod["spec"]["nodeName"] for pod in pods if pod["metadata"]["name"].startswith("slurm-operator-"))]
    home = {name: pod["spec"]["nodeName"] for name, pod in sorted(ns.workers().items())}
    worker = next((w for w in home if home[w] not in needed), None) or next(w for w in home if home[w] not in mine)
    node = json.loads(kubectl("get", "node", home[worker], "-o", "json").stdout)
    job = a_job_that_may_run_elsewhere(ns, worker)
    # A kubelet writes its node's state, but makes the node itself only when it starts; kube-proxy ends when the addresses go.
    again = {"apiVersion": "v1", "kind": "Node", "spec": {},
             "metadata": {key: node["metadata"][key] for key in ("name", "labels", "annotations")},
             "status": {key: node["status"][key] for key in ("addresses", "capacity", "allocatable", "nodeInfo")}}
    with kubelet_away(home[worker]):
        kubectl("delete", "node", home[worker])
        try:
            # The garbage collector of pods looks every 20 s, and waits for 40.
            runs_elsewhere(ns, job, worker, 120)
        finally:
            kubectl("create", "-f", "-", text=json.dumps(again))
    wait("its Kubernetes node is back", lambda: any(
        c["type"] == "Ready" and c["status"] == "True"
        for c in json.loads(kubectl("get", "node", home[worker], "-o", "json").stdout)["status"].get("conditions", [])), 90, every=1)
    wait("3 idle", lambda: len(ns.idle()) == 3, 120)


@test
def a_job_of_a_worker_that_is_removed_by_force_starts_anew(ns):
    job = a_job_that_may_run_elsewhere(ns, "cpu-1")
    delete_though_busy(ns, "cpu-1", "--force", "--grace-period=0")
    runs_elsewhere(ns, job, "cpu-1", 120)
    wait("3 idle", lambda: len(ns.idle()) == 3, 120)


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
    # It ends when another one waits.
    runs(ns, ns.submit("until squeue -h -t PENDING | grep -q .; do sleep 1; done; sleep 2", "-N3", "--exclusive"))
    done = ns.slurm("srun", "-N3", "--exclusive", "hostname", timeout=60)
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
    # The same name in Slurm without a partition; and a worker that would be called cpu-0.
    for name, host in (("a", "cpu"), ("b", "cpu-")):
        ns.apply(twin.replace("NAME", name).replace("HOST", host))
        ns.wait_condition("nodesets.slinky.slurm.net", name, "Degraded", saying="HostnameConflict: ")
        ns.wait_condition("nodesets.slinky.slurm.net", name, "Ready", "False")
    ns.wait_condition("controllers.slinky.slurm.net", "demo", "Degraded", saying="NodeSet a: NodeSet cpu already uses the name")
    time.sleep(3)
    expect(sorted(ns.workers()) == ["cpu-0", "cpu-1", "cpu-2"], f"there are {sorted(ns.workers())}")
    expect(ns.jobs()[job]["partition"] == "cpu" and ns.jobs()[job]["job_state"] == ["RUNNING"], "the partition or its job is gone")
    for name in ("a", "b"):
        ns.kubectl("delete", "nodesets.slinky.slurm.net", name, "--wait=true", timeout=60)
    expect(sorted(ns.nodes()) == ["cpu-0", "cpu-1", "cpu-2"], "records went with the NodeSets that had none")
    ends_well(ns, job)
    ns.wait_condition("controllers.slinky.slurm.net", "demo", "Degraded", "False")


@test
def a_job_needs_the_nodes_that_it_names(ns):
    """-w may name more nodes than -N takes; slurmctld fails a running job of which one is gone when it reconfigures."""
    job = ns.submit_until_told("-N1", "-n1", "-w", "cpu-[0-2]")
    wait("the job runs", lambda: ns.jobs()[job]["job_state"] == ["RUNNING"])
    ns.scale("cpu", 2)
    wait("its worker is drained", lambda: "DRAIN" in ns.nodes()["cpu-2"][0])
    conf = ns.get("controllers.slinky.slurm.net", "demo")["spec"]["extraConf"]
    ns.patch("controllers.slinky.slurm.net", "demo", {"spec": {"extraConf": conf.rstrip() + "\nKillWait=31\n"}})
    wait("slurmctld reconfigures", lambda: "31 sec" in ns.slurm("scontrol", "show", "config").stdout)
    expect("cpu-2" in ns.nodes(), "the node that the job names is gone")
    ends_well(ns, job)
    wait("the worker goes", lambda: len(ns.workers()) == 2)
    ns.patch("controllers.slinky.slurm.net", "demo", {"spec": {"extraConf": conf}})
    ns.scale("cpu", 3)
    wait("3 idle again", lambda: len(ns.idle()) == 3)


@test
@once
def a_logfile_does_not_keep_slurmctld_down(ns):
    job = runs(ns, ns.submit_until_told("-N1", "--exclusive"))
    before = slurmctld_identity(ns)
    ns.patch("controllers.slinky.slurm.net", "demo", {"spec": {"logfile": {"imagePullPolicy": "IfNotPresent"}}})
    wait("slurmctld runs with it", lambda: slurmctld_identity(ns)[0] != before[0] and ns.idle(), 90)
    before = slurmctld_identity(ns)
    ns.kubectl("delete", "pod", "demo-controller-0", "--wait=false")
    # Its grace is 60 s.
    wait("it is gone", lambda: (ns.get("pod", "demo-controller-0") or {"metadata": {"uid": ""}})["metadata"]["uid"] != before[0], 40)
    wait("another slurmctld answers", lambda: slurmctld_identity(ns)[0] != before[0] and ns.idle(), 90)
    printed = ns.kubectl("logs", "demo-controller-0", "-c", "logfile").stdout
    expect("Running as primary controller" in printed, f"the sidecar printed {printed[:300]}")
    ends_well(ns, job)
    before = slurmctld_identity(ns)
    ns.patch("controllers.slinky.slurm.net", "demo", {"spec": {"logfile": None}})
    wait("slurmctld runs without it", lambda: slurmctld_identity(ns)[0] != before[0] and ns.idle(), 90)


@test
def a_job_with_an_odd_name_hinders_nothing(ns):
    """Its name is one byte that is no UTF-8: what prints it cannot be decoded here, so its state is asked for alone."""
    script = "sbatch --parsable --output=/dev/null -N1 --exclusive -J $'\\xe9' --wrap='sleep 20'"
    job = int(ns.slurm("bash", "-c", script).stdout.strip().split(";")[0])
    fields = lambda: ns.slurm("bash", "-c", f"scontrol show job {job} | grep -aoE '(JobState|Restarts)=[A-Z0-9_]+'").stdout.split()
    wait("the job runs", lambda: "JobState=RUNNING" in fields())
    busy = lambda: [p for p in ns.workers().values() if p["metadata"]["labels"].get("nodeset.slinky.slurm.net/pod-protect") == "true"]
    wait("its worker is known to be busy", busy)
    ns.scale("cpu", 1)
    wait("the other workers go, it stays", lambda: len(ns.workers()) == 1)
    for kind, name in (("controllers.slinky.slurm.net", "demo"), ("nodesets.slinky.slurm.net", "cpu")):
        expect(ns.condition(kind, name, "Degraded")["status"] == "False", f"{name} is Degraded")
    wait("the job completes", lambda: "JobState=COMPLETED" in fields())
    expect("Restarts=0" in fields(), f"the job was requeued: {fields()}")
    ns.scale("cpu", 3)
    wait("3 idle again", lambda: len(ns.idle()) == 3)


# --- What the configuration no longer asks for ---


def batch_file(ns, job, path):
    """Proof of a job's end that slurmctld has no part in: what the job itself wrote on its worker."""
    return ns.kubectl("exec", "cpu-0", "-c", "slurmd", "--", "cat", path, check=False).stdout.strip() == str(job)


@test
def a_partition_goes_when_its_last_job_has_ended(ns):
    proof = "/tmp/withheld"
    script = f"trap 'echo $SLURM_JOB_ID > {proof}; exit 0' USR1; sleep 600 & wait"
    running = runs(ns, ns.submit(script, "-p", "cpu", "-w", "cpu-0", "--exclusive", "--no-requeue", "--time=10"))
    waiting = ns.submit_until_told("-p", "cpu", "-w", "cpu-0", "--exclusive", "--no-requeue", "--time=10")
    ns.patch("nodesets.slinky.slurm.net", "cpu", {"spec": {"partition": {"enabled": False}}})
    # The one that waits may be known a look later.
    for job in (running, waiting):
        ns.wait_condition("controllers.slinky.slurm.net", "demo", "ChangesWithheld", saying=str(job))
    wait("it takes no more jobs", lambda: "State=DRAIN" in ns.slurm("scontrol", "show", "partition", "cpu").stdout)
    expect(ns.slurm("sbatch", "-p", "cpu", "--wrap=true", check=False).returncode != 0, "a drained partition took a job")
    kubectl("-n", "slurm-operator", "delete", "pod", "-l", "app.kubernetes.io/name=slurm-operator", "--wait=true")
    time.sleep(10)
    expect(ns.jobs()[running]["job_state"] == ["RUNNING"], "the job ended with its partition")
    ns.tell(running)
    wait("the job completes", lambda: ns.completed(running))
    expect(batch_file(ns, running, proof), "the job left no proof of its end")
    wait("the one that waited runs", lambda: ns.jobs()[waiting]["job_state"] == ["RUNNING"])
    ns.tell(waiting)
    wait("it completes", lambda: ns.completed(waiting))
    wait("the partition goes", lambda: ns.slurm("scontrol", "show", "partition", "cpu", check=False).returncode != 0)
    wait("and is not told any more", lambda: ns.condition("controllers.slinky.slurm.net", "demo", "ChangesWithheld") is None)
    ready_cluster(ns)


@test
def a_refused_file_reaches_no_new_slurmd(ns):
    """slurmctld 26.05 hands out what it has refused, until it reads other files."""
    good = ns.get("controllers.slinky.slurm.net", "demo")["spec"]["extraConf"]
    ns.patch("controllers.slinky.slurm.net", "demo", {"spec": {"extraConf": good + "JobContainerType=job_container/tmpfs\n"}})
    ns.wait_condition("controllers.slinky.slurm.net", "demo", "Degraded", "True", 60)
    time.sleep(5)
    before = ns.get("pod", "cpu-2")["metadata"]["uid"]
    ns.kubectl("delete", "pod", "cpu-2")
    wait("its successor is idle", lambda: ns.get("pod", "cpu-2")["metadata"]["uid"] != before and len(ns.idle()) == 3)
    restarts = [status["restartCount"] for status in ns.get("pod", "cpu-2")["status"]["containerStatuses"]]
    expect(sum(restarts) == 0, f"its containers were restarted: {restarts}")
    ns.patch("controllers.slinky.slurm.net", "demo", {"spec": {"extraConf": good}})
    ns.wait_condition("controllers.slinky.slurm.net", "demo", "Degraded", "False", 60)


@test
def a_table_is_not_made_too_small_for_what_is_in_it(ns):
    good = ns.get("controllers.slinky.slurm.net", "demo")["spec"]["extraConf"]
    jobs = [running_on(ns, f"cpu-{i}") for i in range(3)]
    ns.patch("controllers.slinky.slurm.net", "demo", {"spec": {"extraConf": good + "MaxNodeCount=2\nMaxJobCount=2\n"}})
    bad = ns.wait_condition("controllers.slinky.slurm.net", "demo", "Degraded", "True", 60)
    expect(bad["reason"] == "TableTooSmall", bad)
    time.sleep(5)
    for job in jobs:
        ends_well(ns, job)
    ns.patch("controllers.slinky.slurm.net", "demo", {"spec": {"extraConf": good}})
    ns.wait_condition("controllers.slinky.slurm.net", "demo", "Degraded", "False", 60)


@test
def without_a_restapi_a_withheld_partition_outlives_its_configmap(ns):
    job = running_on(ns, "cpu-0")
    ns.kubectl("delete", "restapis.slinky.slurm.net", "demo")
    ns.patch("nodesets.slinky.slurm.net", "cpu", {"spec": {"partition": {"enabled": False}}})
    ns.wait_condition("controllers.slinky.slurm.net", "demo", "ChangesWithheld", saying="partition/cpu")
    ns.kubectl("delete", "configmap", "demo-config")
    wait("it is made again", lambda: "PartitionName=cpu" in ns.get("configmap", "demo-config")["data"]["slurm.conf"])
    ns.kubectl("delete", "pod", "demo-controller-0")
    wait("slurmctld is back", lambda: "UP" in ns.slurm("scontrol", "ping", check=False).stdout, timeout=120)
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


@own_clusters
@once
def another_key_waits_for_the_end_of_workers(tag, plugin):
    """Other data in the Secret of slurmKeyRef, and a reconfigure: the job runs on. Without workers they come into force."""
    with Namespace(f"e2e-key-{tag.replace('.', '-')}", tag, plugin) as ns:
        keys = {"slurm": os.urandom(1024), "jwt": os.urandom(32)}
        put_key(ns, "site", keys)
        ns.apply(demo_manifest().replace("replicas: 3", "replicas: 1").replace(
            "  extraConf: |\n", '  slurmKeyRef: {name: site, key: slurm}\n  jwtKeyRef: {name: site, key: jwt}\n  extraConf: |\n', 1))
        for kind, name in (("controllers", "demo"), ("restapis", "demo"), ("nodesets", "cpu")):
            ns.wait_condition(f"{kind}.slinky.slurm.net", name)
        wait("the worker is idle", lambda: ns.idle() == ["cpu-0"])
        worker, slurmctld = ns.get("pod", "cpu-0")["metadata"]["uid"], slurmctld_identity(ns)
        job = ns.submit_until_told("-w", "cpu-0")
        wait("the job runs", lambda: ns.fates([job]) == {("RUNNING", 0): 1})

        put_key(ns, "site", {**keys, "slurm": os.urandom(1024)})
        told = lambda: (ns.condition("controllers.slinky.slurm.net", "demo", "KeyChanged") or {}).get("message", "")
        wait("the Secret and its key are named", lambda: f"Secret {ns.name}/site, key slurm" in told(), 30)
        # A kubelet would have swapped a mounted Secret by then.
        time.sleep(100)
        conf = ns.get("controllers.slinky.slurm.net", "demo")["spec"]["extraConf"]
        ns.patch("controllers.slinky.slurm.net", "demo", {"spec": {"extraConf": conf + "MessageTimeout=11\n"}})
        wait("slurmctld has reconfigured",
             lambda: re.search(r"MessageTimeout\s*= 11 ", ns.slurm("scontrol", "show", "config").stdout), 60)
        time.sleep(20)
        ns.slurm("scontrol", "ping")
        states = ns.nodes()["cpu-0"][0]
        expect(states & {"ALLOCATED", "MIXED"} and not states & {"DOWN", "NOT_RESPONDING"}, f"the worker is cut off: {states}")
        expect(slurmctld_identity(ns) == slurmctld, "slurmctld was restarted")
        ns.tell(job)
        wait("the job completes, in its first start", lambda: ns.fates([job]) == {("COMPLETED", 0): 1}, 60)
        expect(ns.get("pod", "cpu-0")["metadata"]["uid"] == worker, "the worker was replaced")

        ns.scale("cpu", 0)
        wait("the other key is in force", lambda: not told() and slurmctld_identity(ns) != slurmctld, 120)
        ns.scale("cpu", 1)
        wait("the worker is idle again", lambda: ns.idle() == ["cpu-0"], 120)
        expect(ns.slurm("srun", "-N1", "hostname").stdout.split() == ["cpu-0"], "no job runs with the other key")


@test
@once
def no_secret_is_told(ns):
    key = ns.get("secret", "demo-jwt-key")["data"]["jwt.key"]
    log = kubectl("-n", "slurm-operator", "logs", "-l", "app.kubernetes.io/name=slurm-operator", "--tail=-1").stdout
    events = ns.kubectl("get", "events", "-o", "json").stdout
    for where, text in (("log", log), ("events", events)):
        expect(key not in text, f"the JWT key stands in the {where}")
        expect("eyJ" not in text, f"a token stands in the {where}")


@test
def ends_with_its_controller(ns):
    ns.kubectl("delete", "controllers.slinky.slurm.net", "demo", "--wait=true", timeout=120)
    wait("the workers go", lambda: not ns.workers())


@own_clusters
@once
def two_clusters(tag, plugin):
    """Two namespaces, the same names in both, at once."""
    with Namespace(f"e2e-a-{tag.replace('.', '-')}", tag, plugin) as a, Namespace(f"e2e-b-{tag.replace('.', '-')}", tag, plugin) as b:
        for ns in (a, b):
            ns.apply(demo_manifest().replace("replicas: 3", "replicas: 1"))
        for ns in (a, b):
            wait("srun", lambda ns=ns: ns.slurm("srun", "hostname", timeout=20).stdout.strip() == "cpu-0", 120)


@own_clusters
@once
def two_controllers_in_a_namespace(tag, plugin):
    """Two clusters side by side: each runs its own job, and the end of one is nothing to the other."""
    with Namespace(f"e2e-side-{tag.replace('.', '-')}", tag, plugin) as ns:
        one = demo_manifest().replace("replicas: 3", "replicas: 1")
        ns.apply(one)
        ns.apply(re.sub(r"name: cpu$", "name: gpu", re.sub(r"name: demo$", "name: other", one, flags=re.M), flags=re.M))
        for controller, worker in (("demo", "cpu-0"), ("other", "gpu-0")):
            wait(f"srun on {controller}", lambda c=controller, w=worker: ns.slurm(
                "srun", "hostname", controller=c, timeout=20).stdout.strip() == w, 120)
            nodes = sorted(ns.nodes(controller))
            expect(nodes == [worker], f"{controller} has the nodes {nodes}")
        secrets = [ns.get("secret", f"{name}-slurm-key")["data"]["slurm.key"] for name in ("demo", "other")]
        expect(secrets[0] != secrets[1], "both clusters have the same key")
        before = slurmctld_identity(ns)
        job = runs(ns, ns.submit("sleep 600"))
        for kind, name in (("controllers", "other"), ("restapis", "other"), ("nodesets", "gpu")):
            ns.kubectl("delete", f"{kind}.slinky.slurm.net", name, "--wait=false")
        kinds = "pods,services,statefulsets,deployments,nodesets.slinky.slurm.net"
        wait("nothing of the other is left", lambda: not any(
            item["metadata"]["name"].startswith(("other", "gpu")) for item in ns.get(kinds)), 60)
        expect(ns.jobs()[job]["job_state"] == ["RUNNING"], "the job of the cluster that stays did not survive")
        expect(slurmctld_identity(ns) == before, "the slurmctld that stays was restarted")
        expect(ns.get("secret", "demo-slurm-key")["data"]["slurm.key"] == secrets[0], "the key of the cluster that stays was changed")
        ns.slurm("scancel", str(job))
        wait("it still runs jobs", lambda: ns.slurm("srun", "hostname", timeout=20).stdout.strip() == "cpu-0")


@own_clusters
@once
def slurmctld_refused_by_a_quota(tag, plugin):
    """Of slurmctld's pod only events of its StatefulSet say that a quota refuses it: told in their words, and mended by a larger quota."""
    with Namespace(f"e2e-quota-{tag.replace('.', '-')}", tag, plugin) as ns:
        ns.apply("{apiVersion: v1, kind: ResourceQuota, metadata: {name: few}, spec: {hard: {pods: 0}}}")
        ns.apply(demo_manifest().replace("replicas: 3", "replicas: 1"))
        cause = "exceeded quota: few"
        for kind, name, reason in (("controllers", "demo", "PodNotCreated"), ("restapis", "demo", "PodsRefused"),
                                   ("nodesets", "cpu", "FailedCreate")):
            wait(f"{kind} tell the quota", lambda k=kind, n=name: cause in (
                ns.condition(f"{k}.slinky.slurm.net", n, "Degraded") or {"message": ""})["message"])
            wait(f"an event of {kind} does too", lambda n=name, r=reason: cause in ns.events(n, r))
        ns.patch("resourcequota", "few", {"spec": {"hard": {"pods": "20"}}})
        for kind, name in (("controllers", "demo"), ("restapis", "demo"), ("nodesets", "cpu")):
            ns.wait_condition(f"{kind}.slinky.slurm.net", name, timeout=120)
            ns.wait_condition(f"{kind}.slinky.slurm.net", name, "Degraded", "False")


@own_clusters
@once
def bad_configuration_at_first(tag, plugin):
    """slurmctld never starts: its own words are told, and the mended configuration starts it."""
    with Namespace(f"e2e-bad-{tag.replace('.', '-')}", tag, plugin) as ns:
        manifest = demo_manifest().replace("replicas: 3", "replicas: 1")
        ns.apply(manifest.replace("  extraConf: |\n", "  extraConf: |\n    SchedulerType=sched/nonesuch\n", 1))
        wait("its words are told", lambda: "nonesuch" in ns.condition("controllers.slinky.slurm.net", "demo", "Ready")["message"])
        ns.apply(manifest)
        wait("it runs", lambda: ns.idle() == ["cpu-0"], 90)


@own_clusters
@once
def namespace_with_drain(tag, plugin):
    """Who deletes a namespace whose Controller says Drain waits for its jobs; the rest goes at once."""
    with Namespace(f"e2e-drain-{tag.replace('.', '-')}", tag, plugin) as ns:
        ready_cluster(ns, 2)
        ns.patch("controllers.slinky.slurm.net", "demo", {"spec": {"deletionPolicy": "Drain"}})
        job = runs(ns, ns.submit_until_told("-w", "cpu-0"))
        kubectl("delete", "namespace", ns.name, "--wait=false")
        wait("the idle worker goes", lambda: sorted(ns.workers()) == ["cpu-0"])
        for _ in range(10):
            expect(sorted(ns.workers()) == ["cpu-0"], "the worker went before its job had ended")
            ns.slurm("scontrol", "ping")
            time.sleep(0.5)
        ns.tell(job)
        wait("the namespace is gone", lambda: kubectl("get", "namespace", ns.name, check=False).returncode != 0, 120)


@own_clusters
@once
def namespace_at_once(tag, plugin):
    """Without Drain a namespace goes, jobs or not."""
    with Namespace(f"e2e-now-{tag.replace('.', '-')}", tag, plugin) as ns:
        ready_cluster(ns, 1)
        job = runs(ns, ns.submit("sleep 600"))
        kubectl("delete", "namespace", ns.name, "--wait=true", timeout=90)


def renew(ns):
    """A failed test leaves its cluster as it is; the next one gets a new one."""
    if not KEEP:
        ns.kubectl("annotate", "controllers.slinky.slurm.net", "--all", "controller.slinky.slurm.net/stop-deletions-", check=False)
    ns.renew()
    ready_cluster(ns)


def run_one(name, function):
    start = time.monotonic()
    try:
        function()
        print(f"ok      {name} ({time.monotonic() - start:.1f} s)", flush=True)
        return True
    except (Failed, subprocess.TimeoutExpired) as error:
        print(f"not ok  {name} ({time.monotonic() - start:.1f} s): {error}", flush=True)
    except Exception:  # pylint: disable=broad-except
        print(f"not ok  {name}: {traceback.format_exc()}", flush=True)
    return False


def in_turn(lane, tag, function, *arguments):
    """Runs a test when no other lane's forbids it: those of ALONE disturb all of the cluster."""
    alone = function in ALONE
    # Who waits to be alone holds the turnstile, so that no other begins before it.
    with lane.open("turnstile") as turnstile, lane.open("cluster") as cluster:
        fcntl.flock(turnstile, fcntl.LOCK_EX)
        fcntl.flock(cluster, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        if not alone:
            fcntl.flock(turnstile, fcntl.LOCK_UN)
        return run_one(f"{tag} {function.__name__.replace('_', ' ')}", lambda: function(*arguments))


def in_one_cluster(lane):
    """The tests that share a Slurm cluster, one after the other."""
    results = []
    with Namespace(f"e2e-{lane.tag.replace('.', '-')}", lane.tag, cgroup_plugin()) as ns:
        if run_one(f"{lane.tag} a cluster becomes Ready", lambda: ready_cluster(ns)):
            results.append(True)
            for function in lane.tests:
                results.append(in_turn(lane, lane.tag, function, ns))
                if not results[-1]:
                    run_one(f"{lane.tag} a new cluster for the next test", lambda: renew(ns))
        else:
            results.append(False)
            ns.renew()
    return results


def in_their_own(lane):
    """The tests that make clusters of their own."""
    return [in_turn(lane, lane.tag, function, lane.tag, cgroup_plugin()) for function in lane.tests]


@dataclasses.dataclass
class Lane:
    """Tests that run one after the other, in a process of their own: most of them mostly wait."""
    tag: str
    body: typing.Callable
    tests: list
    locks: str

    def open(self, name):
        return open(os.path.join(self.locks, name), "w", encoding="ascii")

    def run(self):
        return self.body(self)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--slurm", action="append", help="Slurm release of the local images; may be repeated")
    parser.add_argument("--long", action="store_true", help="all tests with every release")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    releases = arguments.slurm or slurm_releases()
    with tempfile.TemporaryDirectory() as locks:
        lanes = []
        for tag in releases:
            for body, tests in ((in_one_cluster, TESTS), (in_their_own, OWN_CLUSTERS)):
                wanted = [function for function in tests
                          if not arguments.names or any(part in function.__name__ for part in arguments.names)]
                if tag != releases[0] and not arguments.long:
                    wanted = [function for function in wanted if function not in ONCE]
                if wanted:
                    lanes.append(Lane(tag, body, wanted, locks))
        with concurrent.futures.ProcessPoolExecutor(max(1, len(lanes))) as pool:
            results = [result for lane in pool.map(Lane.run, lanes) for result in lane]
    failed = len(results) - sum(results)
    print(f"{sum(results)} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

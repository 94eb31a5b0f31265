"""Code that the files of end-to-end tests share: how a test is registered, and the first steps of most tests."""

import json
import re
import subprocess
import time

import cluster
from cluster import ENV, LIMIT, TOP, Failed, wait
from waiting import expect

TESTS = []
OWN_CLUSTERS = []
ONCE = set()
FROM_OLDER = set()
ALONE = set()
LONG = set()
SINCE = {}
UNTIL = {}


def test(function):
    TESTS.append(function)
    return function


def once(function):
    """Marks a test whose result does not depend on the Slurm release."""
    ONCE.add(function)
    return function


def alone(function):
    """Marks a test that disturbs the whole cluster, for example by cordoning a Kubernetes node."""
    ALONE.add(function)
    return function


def long(function):
    """Marks a test that takes minutes and is similar to another one. It runs with --long, or if it is named."""
    LONG.add(function)
    return function


def from_older(function):
    """Marks a test that upgrades Slurm from the tested release to the newest one. It does not run with the newest."""
    FROM_OLDER.add(function)
    return function


def since(release):
    """Marks a test that runs only with Slurm of this release or a later one."""
    def known(function):
        SINCE[function] = release
        return function

    return known


def until(release):
    """Marks a test that runs only with Slurm before this release."""
    def known(function):
        UNTIL[function] = release
        return function

    return known


def own_clusters(function):
    """Marks a test with namespaces of its own."""
    OWN_CLUSTERS.append(function)
    return function


def demo_manifest():
    """Returns the demo's cluster. Its slurmctld keeps an ended job long enough for a slow test to ask for it."""
    return cluster.demo_manifest().replace("    TaskPlugin=task/none\n", "    TaskPlugin=task/none\n    MinJobAge=900\n")


def wait_for_partition(ns, name, *nodes):
    """Waits until the partition has these nodes, which may follow the partition after a moment."""
    wait(f"partition {name}", lambda: set(nodes) <= set(ns.slurm("sinfo", "-h", "-N", "-p", name, "-o", "%N").stdout.split()))


def serves(ns, replicas):
    """Waits until the demo's cluster is Ready with this many idle workers, and its partition accepts jobs."""
    for kind, name in (("controllers", "demo"), ("restapis", "demo"), ("nodesets", "cpu")):
        ns.wait_condition(f"{kind}.slinky.slurm.net", name)
    workers = [f"cpu-{i}" for i in range(replicas)]
    wait(f"{replicas} idle workers", lambda: ns.idle() == workers)
    # A test may have drained or removed the partition.
    wait("the partition takes jobs", lambda: "State=UP" in ns.slurm("scontrol", "show", "partition", "cpu").stdout)
    wait_for_partition(ns, "cpu", *workers)


def ready_cluster(ns, replicas=3):
    """Creates the demo's cluster in this namespace, and waits until it serves."""
    ns.apply(demo_manifest().replace("replicas: 3", f"replicas: {replicas}"))
    serves(ns, replicas)


def reconfigure(ns, *workers):
    """Reconfigures slurmctld, as for a new NodeSet, which makes all slurmds register. Waits until the slurmds of these workers
    have."""
    before = {name: slurmd_start(ns, name) for name in workers}
    ns.slurm("scontrol", "reconfigure")
    wait("slurmds have registered", lambda: all(slurmd_start(ns, name) not in (0, before[name]) for name in workers))


def slurmd_start(ns, node):
    """Returns when the slurmd that registered last was started. A reconfigure counts as a start."""
    return json.loads(ns.slurm("scontrol", "show", "node", node, "--json").stdout)["nodes"][0]["slurmd_start_time"]["number"]


def state_is_written(ns, job):
    """Waits until slurmctld has saved the job in its state, which it does some seconds after a change, or later."""
    state = re.search(r"StateSaveLocation\s*= (\S+)", ns.slurm("scontrol", "show", "config").stdout)[1] + "/job_state"
    # Do not write within the second of the submission, because the state may have been saved before the submission.
    time.sleep(2)
    since = int(ns.slurm("date", "+%s").stdout)
    ns.slurm("scontrol", "update", f"jobid={job}", "comment=to be written")
    wait("its state is written", lambda: int(ns.slurm("stat", "-c", "%Y", state).stdout) >= since)


def with_a_backup(manifest):
    """Returns the demo's cluster with a second slurmctld and a volume that both slurmctlds mount."""
    begin = manifest.index("  persistence:\n")
    end = manifest.index("  extraConf: |\n", begin)
    claim = """apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: shared}
spec: {accessModes: [ReadWriteMany], resources: {requests: {storage: 100Mi}}}
---
"""
    return claim + manifest[:begin] + "  persistence: {existingClaim: shared}\n  ha: {enabled: true}\n" + manifest[end:]


def slurmctld_identity(ns):
    """Returns the UID of slurmctld's pod and its restarts. Failed: there is no pod, or it has not begun to start."""
    pod = ns.get("pod", "demo-controller-0") or {"status": {}}
    for status in pod["status"].get("containerStatuses") or []:
        if status["name"] == "slurmctld":
            return pod["metadata"]["uid"], status["restartCount"]
    raise Failed("slurmctld's pod tells no container of that name")


def runs(ns, job):
    wait("the job runs", lambda: ns.jobs()[job]["job_state"] == ["RUNNING"])
    return job


def running_on(ns, worker):
    """Starts a job there that runs until it is told to end, and that is not requeued."""
    return runs(ns, ns.submit_until_told("-N1", "-w", worker, "--exclusive", "--no-requeue"))


def ends_well(ns, job):
    """Ends the job, and expects that it ran exactly once and completed."""
    ns.told(job)
    out = json.loads(ns.slurm("scontrol", "show", "job", str(job), "--json").stdout)["jobs"][0]
    expect(out["restart_cnt"] == 0, f"the job was started {out['restart_cnt'] + 1} times")


def slurm_plugin(ns, *arguments, code=0, timeout=3 * LIMIT):
    """Runs `kubectl slurm`. Returns its output and its error output."""
    done = subprocess.run([TOP / "build/release/kubectl-slurm", *arguments, "-n", ns.name], capture_output=True, text=True, env=ENV, timeout=timeout)
    expect(done.returncode == code, f"kubectl slurm {' '.join(arguments)} ended with {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout, done.stderr

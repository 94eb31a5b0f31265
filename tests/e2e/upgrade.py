#!/usr/bin/env python3
"""The operator's own upgrade, and the way back, on the local cluster: from the one of an earlier commit to the one of this tree, under busy
workers, adopted ones and ones that the earlier operator never stamped. No worker is replaced, and no job is lost; slurmctld may restart.

Usage: upgrade.py [--slurm 26.05]
"""

import argparse
import pathlib
import subprocess
import sys

from cluster import TOP, Failed, Namespace, cgroup_plugin, demo_manifest, shell, slurm_releases, wait

# The last operator that stamped no names on its workers.
EARLIER = "c2d14cd3d31f"
STAMP = "nodeset.slinky.slurm.net/registered"


def earlier_tree():
    """A tree of that commit, with a build folder that outlives the clone; None: this clone does not have the commit."""
    tree = pathlib.Path(shell('. dev/lib.sh; echo "$CACHE"')) / f"operator-{EARLIER}"
    if not (tree / "Makefile").exists():
        tree.mkdir(parents=True, exist_ok=True)
        archive = subprocess.run(["git", "-C", str(TOP), "archive", EARLIER], stdout=subprocess.PIPE, check=False)
        if archive.returncode != 0:
            return None
        subprocess.run(["tar", "-x", "-C", str(tree)], input=archive.stdout, check=True)
    return tree


def install(tree):
    done = subprocess.run([str(TOP / "dev/operator.sh"), "install", str(tree)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failed(f"dev/operator.sh install {tree}: {done.stdout[-500:]}{done.stderr[-500:]}")


def workers(ns):
    """The workers by name: uid, and restarts of containers."""
    restarts = lambda pod: sum(status["restartCount"] for status in pod["status"].get("containerStatuses") or [])
    return {name: (pod["metadata"]["uid"], restarts(pod)) for name, pod in ns.workers().items()}


def ready(ns, replicas):
    for kind, name in (("controllers", "demo"), ("restapis", "demo"), ("nodesets", "cpu")):
        ns.wait_condition(f"{kind}.slinky.slurm.net", name)
    wait(f"{replicas} workers", lambda: len(ns.workers()) == replicas)


def undisturbed(ns, before, job, what):
    """After the operator was replaced: what ran runs on, and the cluster is governed."""
    ready(ns, len(before))
    now = workers(ns)
    if now != before:
        raise Failed(f"{what}: workers were replaced or restarted: {before} became {now}")
    wait(f"{what}: the job runs as before", lambda: ns.fates([job]) == {("RUNNING", 0): 1}, 30)


def upgrade_and_back(ns, tree):
    install(tree)
    ns.apply(demo_manifest().replace("replicas: 3", "replicas: 4"))
    ready(ns, 4)
    # Adopted ones: their NodeSet went without them, and came back.
    job = ns.submit_until_told("-N1", "-w", "cpu-1")
    wait("the job runs", lambda: ns.fates([job]) == {("RUNNING", 0): 1})
    ns.kubectl("delete", "nodesets.slinky.slurm.net", "cpu", "--cascade=orphan", "--wait=true")
    ns.apply(demo_manifest().replace("replicas: 3", "replicas: 4"))
    ready(ns, 4)
    # One without a stamp.
    ns.kubectl("annotate", "pod", "cpu-2", f"{STAMP}-")
    before = workers(ns)

    install(TOP)
    undisturbed(ns, before, job, "after the upgrade")
    # The busy one stays, and an idle one goes.
    ns.scale("cpu", 3)
    wait("an idle worker goes", lambda: len(ns.workers()) == 3, 60)
    if "cpu-1" not in ns.workers():
        raise Failed("the busy worker was scaled in")
    before = {name: pod for name, pod in before.items() if name in ns.workers()}

    install(tree)
    undisturbed(ns, before, job, "after the way back")
    install(TOP)
    undisturbed(ns, before, job, "after the second upgrade")
    ns.tell(job)
    wait("the job completes, in its first start", lambda: ns.fates([job]) == {("COMPLETED", 0): 1}, 60)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--slurm")
    tag = parser.parse_args().slurm or slurm_releases()[0]
    tree = earlier_tree()
    if tree is None:
        print(f"skipped upgrade: this clone does not have commit {EARLIER}\n0 passed, 0 failed")
        return 0
    failed = 0
    try:
        with Namespace("e2e-upgrade", tag, cgroup_plugin()) as ns:
            upgrade_and_back(ns, tree)
        print(f"ok      {tag} upgrade from {EARLIER}, and back")
    except (Failed, subprocess.TimeoutExpired) as error:
        failed = 1
        print(f"not ok  {tag} upgrade from {EARLIER}, and back: {error}")
    finally:
        install(TOP)
    print(f"{1 - failed} passed, {failed} failed")
    return failed


if __name__ == "__main__":
    sys.exit(main())

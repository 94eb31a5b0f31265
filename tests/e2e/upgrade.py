#!/usr/bin/env python3
"""Upgrades the operator on the local cluster from an earlier commit to this tree, and downgrades it again. Some workers are busy,
some were adopted, and some were never stamped by the earlier operator (slinky/worker_names.hpp). No worker is replaced and no
job is lost. slurmctld may restart.

Usage: upgrade.py [--slurm 26.05]
"""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

from cluster import TOP, Failed, Namespace, cgroup_plugin, demo_manifest, kubectl, shell, slurm_releases, wait

# The last operator that did not stamp names on its workers.
EARLIER = "c2d14cd3d31f"
STAMP = "nodeset.slinky.slurm.net/registered"
KEEP = "helm.sh/resource-policy"


def earlier_tree():
    """Returns a tree of that commit, with a build folder that is kept longer than the clone. None: this clone does not have the
    commit."""
    tree = pathlib.Path(shell('. dev/lib.sh; echo "$CACHE"')) / f"operator-{EARLIER}"
    git = ["git", "-C", str(TOP)]
    if not (tree / "Makefile").exists():
        if subprocess.run([*git, "cat-file", "-e", f"{EARLIER}^{{commit}}"], capture_output=True, check=False).returncode != 0:
            return None
        shutil.rmtree(tree, ignore_errors=True)
        tree.parent.mkdir(parents=True, exist_ok=True)
        # The final name shows that the tree is complete.
        with tempfile.TemporaryDirectory(dir=tree.parent, prefix=f"{tree.name}.") as folder:
            made = pathlib.Path(folder, "tree")
            made.mkdir()
            archive = subprocess.run([*git, "archive", EARLIER], stdout=subprocess.PIPE, check=True)
            subprocess.run(["tar", "-x", "-C", str(made)], input=archive.stdout, check=True)
            made.rename(tree)
    return tree


def install(tree):
    done = subprocess.run([str(TOP / "dev/operator.sh"), "install", str(tree)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failed(f"dev/operator.sh install {tree}: {done.stdout[-500:]}{done.stderr[-500:]}")


def definitions(tree):
    """Returns the custom resource definitions in the chart of a tree."""
    files = (tree / "charts/slurm-operator-crds/templates").glob("slinky.slurm.net_*.yaml")
    return {file.stem.removeprefix("slinky.slurm.net_") + ".slinky.slurm.net" for file in files}


def go_back(tree):
    """Downgrades as docs/how-to/upgrade.md says: objects that the earlier chart lacks are marked to be kept first, or the chart
    refuses."""
    for name in definitions(TOP) - definitions(tree):
        kubectl("annotate", "crd", name, f"{KEEP}=keep", "--overwrite")
    install(tree)


def go_forward():
    install(TOP)
    for name in definitions(TOP):
        kubectl("annotate", "crd", name, f"{KEEP}-")


def workers(ns):
    """Returns the uid and the restarts of the containers of each worker, by name."""
    restarts = lambda pod: sum(status["restartCount"] for status in pod["status"].get("containerStatuses") or [])
    return {name: (pod["metadata"]["uid"], restarts(pod)) for name, pod in ns.workers().items()}


def revisions(ns):
    return {item["metadata"]["name"] for item in ns.get("controllerrevisions") if item["metadata"]["name"].startswith("cpu-")}


def chart_labels(version):
    """Returns the labels that charts write into a NodeSet's template. An earlier operator regarded a change of them as a new
    template."""
    return {"helm.sh/chart": f"slurm-{version}", "app.kubernetes.io/managed-by": "Helm"}


def name_chart(ns, version):
    ns.patch("nodesets.slinky.slurm.net", "cpu", {"spec": {"template": {"metadata": {"labels": chart_labels(version)}}}})
    wait("the operator has seen it", lambda: (o := ns.get("nodesets.slinky.slurm.net", "cpu"))["status"]["observedGeneration"]
         == o["metadata"]["generation"])


def ready(ns, replicas):
    for kind, name in (("controllers", "demo"), ("restapis", "demo"), ("nodesets", "cpu")):
        ns.wait_condition(f"{kind}.slinky.slurm.net", name)
    wait(f"{replicas} workers", lambda: len(ns.workers()) == replicas)


def undisturbed(ns, before, job, what):
    """Expects, after the operator was replaced, that workers and jobs keep running and that the new operator manages the
    cluster."""
    ready(ns, len(before))
    now = workers(ns)
    if now != before:
        raise Failed(f"{what}: workers were replaced or restarted: {before} became {now}")
    wait(f"{what}: the job runs as before", lambda: ns.fates([job]) == {("RUNNING", 0): 1})


def upgrade_and_back(ns, tree):
    go_back(tree)
    template = f"  template: {json.dumps({'metadata': {'labels': chart_labels(1)}})}"
    manifest = demo_manifest().replace("  replicas: 3", f"  replicas: 4\n{template}")
    ns.apply(manifest)
    ready(ns, 4)
    wait("4 idle", lambda: len(ns.idle()) == 4)
    # An adopted worker: its NodeSet was deleted with --cascade=orphan and created again.
    job = ns.submit_until_told("-N1", "-w", "cpu-1")
    wait("the job runs", lambda: ns.fates([job]) == {("RUNNING", 0): 1})
    ns.kubectl("delete", "nodesets.slinky.slurm.net", "cpu", "--cascade=orphan", "--wait=true")
    ns.apply(manifest)
    ready(ns, 4)
    # A worker without the annotation that records its registered name.
    ns.kubectl("annotate", "pod", "cpu-2", f"{STAMP}-")
    before, recorded = workers(ns), revisions(ns)

    go_forward()
    undisturbed(ns, before, job, "after the upgrade")
    name_chart(ns, 2)
    undisturbed(ns, before, job, "after the chart's upgrade")
    if revisions(ns) != recorded:
        raise Failed(f"to the operator the template is another one: {recorded} became {revisions(ns)}")
    name_chart(ns, 1)
    # The busy worker stays, and an idle one is deleted.
    ns.scale("cpu", 3)
    wait("an idle worker goes", lambda: len(ns.workers()) == 3)
    if "cpu-1" not in ns.workers():
        raise Failed("the busy worker was scaled in")
    before = {name: pod for name, pod in before.items() if name in ns.workers()}

    go_back(tree)
    undisturbed(ns, before, job, "after the way back")
    go_forward()
    undisturbed(ns, before, job, "after the second upgrade")
    ns.told(job)
    wait("the job completes, in its first start", lambda: ns.fates([job]) == {("COMPLETED", 0): 1})


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
        go_forward()
    print(f"{1 - failed} passed, {failed} failed")
    return failed


if __name__ == "__main__":
    sys.exit(main())

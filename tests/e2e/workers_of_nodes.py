"""End-to-end test of a NodeSet with one worker on each Kubernetes node, while jobs run that leave a proof of their end. run.py
runs it."""

import json
import subprocess
import time

from cluster import ENV, LIMIT, TOP, Namespace, kubectl, run, wait
from faults import NODESET, OPERATOR, Proofs
from suite import alone, demo_manifest, expect, own_clusters, runs, wait_for_partition

POOL, FULL = "e2e.slurm.test/pool", "e2e.slurm.test/full"
HOSTNAME = "nodeset.slinky.slurm.net/hostname-override"
FEATURES, TOPOLOGY = "features.slinky.slurm.net/spec", "topology.slinky.slurm.net/spec"
NETWORK = """  topology.yaml: |
    - topology: default
      cluster_default: true
      tree:
        switches:
          - switch: leaf-1
          - {switch: root, children: leaf-1}
"""


def manifest(ns, proofs, home):
    """Returns the demo's cluster with its daemons on one Kubernetes node, and a worker with its own volume on each node of the
    pool."""
    out = proofs.added_to(demo_manifest())
    for daemon in ("slurmctld", "slurmrestd"):
        out = out.replace(f"  {daemon}:\n", f"  template: {{spec: {{nodeSelector: {{kubernetes.io/hostname: {home}}}}}}}\n  {daemon}:\n")
    out = out.replace("  replicas: 3\n", "  scalingMode: DaemonSet\n  volumeClaimTemplates:\n  - metadata: {name: scratch}\n"
                      "    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 10Mi}}}\n")
    out = out.replace("volumeMounts: [", "volumeMounts: [{name: scratch, mountPath: /scratch}, ")
    pool = f"{{{POOL}: {ns.name}}}"
    out = out.replace("template: {spec: {volumes: ", f"template: {{metadata: {{labels: {pool}}}, spec: {{nodeSelector: {pool}, volumes: ")
    return out.replace("    IgnoreSystemd=yes\n", "    IgnoreSystemd=yes\n" + NETWORK) if ns.tag >= "25.05" else out


class Site:
    """The cluster and its two Kubernetes nodes for workers. The faults are applied to `first`, which may be switched off,
    because nothing else is there."""

    def __init__(self, ns):
        self.ns, self.proofs = ns, Proofs(ns)
        get = lambda *of: json.loads(kubectl(*of, "-o", "json").stdout)["items"]
        (self.home,) = {pod["spec"]["nodeName"] for pod in get(*OPERATOR, "get", "pods", "--field-selector=status.phase=Running")}
        self.first, self.second = sorted({node["metadata"]["name"] for node in get("get", "nodes")} - {self.home})
        self.pods = {}

    def idle(self, *names):
        """Waits until Slurm has exactly these nodes, and they are idle."""
        wait(f"the nodes of Slurm are {names}, all idle", lambda: set(self.ns.idle()) == set(self.ns.nodes()) == set(names))
        wait_for_partition(self.ns, "cpu", *names)

    def begin(self, name, worker):
        """Starts a job that has this worker alone, and waits until its script runs."""
        job = runs(self.ns, self.proofs.submit(name, "-w", worker, "-N1", "--exclusive"))
        wait("its script runs", lambda: self.proofs.of(name) == ["begun"])
        return job

    def uid(self, node):
        """Returns the uid of the worker's pod on this Kubernetes node. The pod always has the same name. None: there is no
        pod."""
        pod = self.ns.get("pod", self.pods[node])
        return pod and pod["metadata"]["uid"]

    def on(self, worker, *command):
        return self.ns.slurm("srun", "--immediate=60", "-w", worker, *command).stdout.split()

    def details(self):
        return {node["name"]: node for node in json.loads(self.ns.slurm("scontrol", "show", "nodes", "--json").stdout)["nodes"]}

    def have_places(self):
        """Reports whether the workers have places in the topology. Slurm supports this since 25.05."""
        wait("both workers are below the switch",
             lambda: self.ns.tag < "25.05" or all("leaf-1" in node["topology"] for node in self.details().values()))

    def states(self, worker):
        return self.ns.nodes()[worker][0]

    def takes_no_jobs(self, worker):
        """Reports whether the node takes no jobs because of a drain by the operator, possibly the drain that its predecessor's
        preStop hook set."""
        states, reason = self.ns.nodes()[worker]
        return "DRAIN" in states and "NOT_RESPONDING" not in states and reason.startswith("slurm-operator: ")

    def claims(self):
        return {claim["metadata"]["name"] for claim in self.ns.get("persistentvolumeclaims") if claim["metadata"]["name"].startswith("scratch-")}

    def restored(self):
        """Restores the Kubernetes nodes after whatever the test has done to them."""
        run(str(TOP / "dev/node.sh"), "start", self.first, timeout=180)
        kubectl("uncordon", self.first)
        kubectl("taint", "node", self.first, f"{FULL}-", check=False)
        kubectl("annotate", "node", self.first, self.second, *(f"{key}-" for key in (HOSTNAME, FEATURES, TOPOLOGY)))
        kubectl("label", "node", self.first, self.second, f"{POOL}-")


def is_created(site):
    ns = site.ns
    ns.apply(manifest(ns, site.proofs, site.home))
    for kind, name in (("controllers", "demo"), ("restapis", "demo"), ("nodesets", "cpu")):
        ns.wait_condition(f"{kind}.slinky.slurm.net", name)
    site.idle(site.first, site.second)
    site.pods = {pod["spec"]["nodeName"]: name for name, pod in ns.workers().items()}
    expect(set(site.pods) == {site.first, site.second}, f"the workers are on {site.pods}")
    site.have_places()
    expect(len(site.claims()) == 2, f"there are the claims {site.claims()}")
    site.on(site.first, "sh", "-c", "echo was here >/scratch/mark")


def gets_another_name_under_a_job(site):
    job = site.begin("named", site.second)
    kubectl("annotate", "node", site.second, f"{HOSTNAME}=renamed")
    wait("its worker is drained", lambda: site.ns.nodes()[site.second][1].endswith("gives its worker the name renamed now"))
    site.proofs.ends_well("named", job)
    site.idle(site.first, "renamed")
    site.have_places()


def tells_features(site):
    wait("Slurm has the features", lambda: set(site.details()[site.first]["features"]) == {"cpu", "k8s/rack-7"})
    site.have_places()
    out = site.ns.slurm("srun", "--immediate=60", "--constraint=k8s/rack-7", "hostname").stdout.split()
    expect(out == [site.first], f"a job that asks for the feature ran on {out}")


def is_updated_under_a_job(site):
    before = {node: site.uid(node) for node in site.pods}
    job = site.begin("updated", site.first)
    site.ns.patch(NODESET, "cpu", {"spec": {"template": {"metadata": {"annotations": {"site": "new"}}}}})
    wait("the idle worker is replaced", lambda: site.uid(site.second) not in (None, before[site.second]))
    wait("the busy one is drained", lambda: "DRAIN" in site.states(site.first))
    expect(site.uid(site.first) == before[site.first], "the busy worker was replaced")
    site.proofs.ends_well("updated", job)
    wait("it is replaced", lambda: site.uid(site.first) not in (None, before[site.first]))
    site.idle(site.first, "renamed")
    expect(site.on(site.first, "cat", "/scratch/mark") == ["was", "here"], "its volume is another one")


def is_drained_by_kubectl_under_a_job(site):
    """The Kubernetes node is cordoned afterwards, and has a worker that takes no jobs."""
    before, job = site.uid(site.first), site.begin("evicted", site.first)
    drain = subprocess.Popen(
        ["kubectl", "drain", site.first, f"--pod-selector={POOL}={site.ns.name}", "--ignore-daemonsets", "--delete-emptydir-data"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=ENV)
    try:
        wait("its worker is drained", lambda: "DRAIN" in site.states(site.first))
        time.sleep(6)  # kubectl drain retries every five seconds
        expect(drain.poll() is None and site.uid(site.first) == before, "a busy worker was evicted")
        site.proofs.ends_well("evicted", job)
        out = drain.communicate(timeout=LIMIT)[0]
        expect(drain.returncode == 0, f"kubectl drain ended with {drain.returncode}: {out}")
    finally:
        drain.kill()
    wait("another worker is there", lambda: site.uid(site.first) not in (None, before))
    wait("it takes no jobs", lambda: site.takes_no_jobs(site.first))


def loses_power_while_it_is_cordoned(site):
    """The pod of the worker is lost as well, as when somebody deletes it by force because its machine is away."""
    node = lambda: json.loads(kubectl("get", "node", site.first, "-o", "json").stdout)
    lost = site.uid(site.first)
    run(str(TOP / "dev/node.sh"), "stop", site.first)
    site.ns.kubectl("delete", "pod", site.pods[site.first], "--force", "--grace-period=0")
    run(str(TOP / "dev/node.sh"), "start", site.first, timeout=180)
    wait("another worker is Ready", lambda: site.uid(site.first) not in (None, lost) and
         site.ns.condition("pod", site.pods[site.first], "Ready")["status"] == "True")
    expect(node()["spec"].get("unschedulable"), "the Kubernetes node is not cordoned any more")
    wait("it takes no jobs", lambda: site.takes_no_jobs(site.first))
    kubectl("uncordon", site.first)
    site.idle(site.first, "renamed")
    expect(site.on(site.first, "cat", "/scratch/mark") == ["was", "here"], "its volume is another one")


def is_tainted_under_a_job(site):
    """The worker stays, and no other one is created there."""
    before, job = site.uid(site.first), site.begin("tainted", site.first)
    kubectl("taint", "node", site.first, f"{FULL}=:NoSchedule")
    time.sleep(3)
    expect(site.uid(site.first) == before and "DRAIN" not in site.states(site.first), "its worker does not stay")
    site.proofs.ends_well("tainted", job)
    site.idle(site.first, "renamed")
    wait("it runs no job any more, as its label says",
         lambda: "nodeset.slinky.slurm.net/pod-busy" not in site.ns.get("pod", site.pods[site.first])["metadata"]["labels"])
    site.ns.kubectl("delete", "pod", site.pods[site.first], "--wait=true")
    wait("one worker is wanted", lambda: site.ns.get(NODESET, "cpu")["status"]["desired"] == 1)
    time.sleep(3)
    expect(not site.uid(site.first), "a worker was made on a Kubernetes node whose taint it does not tolerate")
    kubectl("taint", "node", site.first, f"{FULL}-")
    site.idle(site.first, "renamed")


def has_workers_with_numbers_after_a_job(site):
    """The NodeSet switches to the other scalingMode. Claims stay until the NodeSet is deleted, as its policy says."""
    ns, job, before = site.ns, site.begin("switched", site.first), site.claims()
    # Idle workers are deleted first, one at a time.
    wait("the operator has seen the job", lambda: "nodeset.slinky.slurm.net/pod-busy" in ns.get("pod", site.pods[site.first])["metadata"]["labels"])
    ns.patch(NODESET, "cpu", {"spec": {"scalingMode": "StatefulSet", "replicas": 2}})
    wait("the idle one goes, and the busy one is drained", lambda: set(ns.nodes()) == {site.first, "cpu-0"} and "DRAIN" in site.states(site.first))
    ns.kubectl("annotate", "pod", site.pods[site.first], "nodeset.slinky.slurm.net/pod-cordon=true")
    site.proofs.ends_well("switched", job)
    ns.wait_condition(NODESET, "cpu", "Progressing", "False", saying="SwitchHeld")
    expect(site.uid(site.first), "a worker was replaced that had been cordoned while it waited for its job")
    ns.kubectl("annotate", "pod", site.pods[site.first], "nodeset.slinky.slurm.net/pod-cordon-")
    site.idle("cpu-0", "cpu-1")
    expect(site.claims() == before | {"scratch-cpu-0", "scratch-cpu-1"}, f"of the claims {before} and new ones there are {site.claims()}")
    ns.patch(NODESET, "cpu", {"spec": {"persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete"}}})
    ns.kubectl("delete", NODESET, "cpu", "--wait=true")
    wait("the claims go with the NodeSet", lambda: not site.claims())


@own_clusters
@alone
def what_happens_to_kubernetes_nodes_costs_no_job(tag, plugin):
    """A NodeSet with one worker on each of two Kubernetes nodes goes through all these events, one after the other."""
    with Namespace(f"e2e-pool-{tag.replace('.', '-')}", tag, plugin) as ns:
        site = Site(ns)
        try:
            kubectl("label", "node", site.first, site.second, f"{POOL}={ns.name}")
            if tag >= "25.05":
                kubectl("annotate", "node", site.first, site.second, f"{TOPOLOGY}=default:leaf-1")
            is_created(site)
            gets_another_name_under_a_job(site)
            kubectl("annotate", "node", site.first, f"{FEATURES}=rack-7")
            tells_features(site)
            is_updated_under_a_job(site)
            is_drained_by_kubectl_under_a_job(site)
            loses_power_while_it_is_cordoned(site)
            tells_features(site)
            is_tainted_under_a_job(site)
            kubectl("annotate", "node", site.second, f"{HOSTNAME}-")
            site.idle(site.first, site.second)
            has_workers_with_numbers_after_a_job(site)
        finally:
            site.restored()

"""End-to-end tests of slurm-bridge: pods that wait in Slurm's queue, start where Slurm decides, and end when Slurm ends them. run.py runs them."""

import contextlib
import functools
import hashlib
import json
import re
import subprocess
import tempfile

from accounting import database_image, joined, managed, manifest_with_accounting
from cluster import KEEP, TOP, Namespace, condition_of, kubectl, run, wait
from suite import alone, demo_manifest, ends_well, expect, once, own_clusters, runs, serves, since, slurm_plugin, slurmctld_identity, until

GATE = "scheduler.slinky.slurm.net/slurm-bridge"
SETTING = "slurmjob.slinky.slurm.net/"
EXTERNAL = "scheduler.slinky.slurm.net/external-node"
PARTITIONS_OF_NODE = "scheduler.slinky.slurm.net/external-node-partitions"
MANAGED = "slinky.slurm.net/managed-node"
EXTERNAL_JOBS = "25.11"
PARTITIONS = """    SchedulerParameters=sched_interval=2
    PreemptType=preempt/partition_prio
    PreemptMode=CANCEL
    NodeSet=bridged Feature=bridge
    PartitionName=bridge Nodes=bridged Default=YES MaxTime=UNLIMITED State=UP
    PartitionName=urgent Nodes=bridged MaxTime=UNLIMITED State=UP PriorityTier=10
"""
# Ends at once when it is told to.
UNTIL_TOLD = "trap 'exit 0' TERM; sleep 3600 & wait"


@functools.cache
def bridge_image():
    """In the nodes, once for each lane. Returns the digest of the binary."""
    made = subprocess.run([str(TOP / "dev/bridge.sh"), "image"], capture_output=True, text=True, check=False)
    expect(made.returncode == 0, f"the image of slurm-bridge: {made.stdout[-500:]}{made.stderr[-500:]}")
    return hashlib.sha256((TOP / "build/release/slurm-bridge").read_bytes()).hexdigest()[:16]


def bridged(manifest):
    """The demo's cluster with a partition for Kubernetes nodes, which is the default one, and a more urgent one."""
    line = "    TaskPlugin=task/none\n"
    expect(line in manifest and "config: Default=YES" in manifest, "the demo's manifest has changed")
    return manifest.replace(line, line + PARTITIONS).replace("config: Default=YES", "config:")


class Bridged(Namespace):
    """The namespace of a Slurm cluster, where its bridge runs too; `pods` is the one that the bridge manages."""

    def __init__(self, what, tag, plugin):
        super().__init__(f"e2e-bridge-{what}-{tag.replace('.', '-')}", tag, plugin)
        self.pods = Namespace(f"{self.name}-pods", tag, plugin)
        self.hosts = []

    def __enter__(self):
        self.pods.__enter__()
        return super().__enter__()

    def __exit__(self, kind, error, trace):
        # Those that a test has held would keep the namespace.
        if kind is None or not KEEP:
            for pod in self.pods.get("pods"):
                self.pods.kubectl("patch", "pod", pod["metadata"]["name"], "--type=merge", "-p", '{"metadata":{"finalizers":null}}', check=False)
        self.pods.__exit__(kind, error, trace)
        if kind is None or not KEEP:
            run("helm", "uninstall", self.name, "-n", self.name, "--ignore-not-found", check=False)
        super().__exit__(kind, error, trace)

    def install(self, **more):
        """`more`: further values of the chart, "nodes.enabled" for example. Without them, pods have the gate only if they say so."""
        values = {"admission.enabled": "false", "fullnameOverride": self.name, "sharedConfig.cluster": f"{self.name}/demo", "schedulerConfig.partition": "",
                  "admission.managedNamespaces": f"{{{self.pods.name}}}", "controllers.podAnnotations.binary": f"sha256-{bridge_image()}"} | more
        run("helm", "upgrade", "--install", self.name, str(TOP / "charts/slurm-bridge"), "-n", self.name,
            "--set", ",".join(f"{key}={value}" for key, value in values.items()))

    def register(self, *names):
        """These Kubernetes nodes become external nodes by hand, for a bridge that leaves nodes alone: without taints, other tests can go on."""
        for name in names:
            addresses = kubernetes_node(name)["status"]["addresses"]
            address = next(one["address"] for one in addresses if one["type"] == "InternalIP")
            self.slurm("scontrol", "create", f"NodeName={name}", f"NodeAddr={address}", "State=EXTERNAL", "CPUs=2", "RealMemory=1000",
                       "Feature=bridge")
        self.hosts = list(names)
        wait("the nodes are idle", lambda: set(names) <= set(self.idle()))

    def slurm_node(self, name):
        """The record that slurmctld has of the node; None if there is none."""
        nodes = json.loads(self.slurm("scontrol", "show", "nodes", "--json").stdout)["nodes"]
        return next((node for node in nodes if node["name"] == name), None)

    def install_admission(self):
        """With the webhook. The PriorityClass is there once for all bridges."""
        known = kubectl("get", "priorityclass", "slurm-bridge", "--ignore-not-found", "-o", "name").stdout
        self.install(**{"admission.enabled": "true", "admission.priorityClass.create": "false" if known else "true",
                        "schedulerConfig.schedulerName": self.name, "nodes.enabled": "false"})
        self.wait_ready(1)

    def wait_ready(self, replicas):
        wait(f"{replicas} bridges are ready", lambda: self.get("deployment", self.name)["status"].get("readyReplicas", 0) == replicas)

    def apply_pod(self, name, script=UNTIL_TOLD, held=False, grace=3, group=None, **settings):
        """A pod with the gate and these annotations, in this PodGroup. One that is held stays to be seen after its end."""
        pod = self.plain_pod(name, script, grace, **settings)
        pod["spec"]["schedulingGates"] = [{"name": GATE}]
        if group:
            pod["metadata"]["labels"] = {"scheduling.x-k8s.io/pod-group": group}
        if held:
            pod["metadata"]["finalizers"] = ["slinky.slurm.net/e2e"]
        self.pods.kubectl("apply", "-f", "-", text=json.dumps(pod))

    def plain_pod(self, name, script=UNTIL_TOLD, grace=3, **settings):
        """A pod without the gate, as data."""
        meta = {"name": name, "annotations": {SETTING + key.replace("_", "-"): value for key, value in settings.items()}}
        container = {"name": "c", "image": f"local/slurmd:{self.tag}", "imagePullPolicy": "IfNotPresent", "command": ["sh", "-c", script],
                     "resources": {"requests": {"cpu": "50m", "memory": "20Mi"}}}
        spec = {"restartPolicy": "Never", "terminationGracePeriodSeconds": grace, "containers": [container]}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}

    def apply_group(self, name, size):
        meta = {"name": name}
        group = {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": meta, "spec": {"minMember": size}}
        self.pods.kubectl("apply", "-f", "-", text=json.dumps(group))

    def group_runs(self, name, *pods):
        """Until these pods run, each on its node of the one job of the group, in its order. Returns the number of the job."""
        def all_run():
            live = {number: job for number, job in self.jobs_of(name).items() if job["job_state"] == ["RUNNING"]}
            found = [self.pod(pod) for pod in pods]
            if len(live) != 1 or None in found or {pod["status"]["phase"] for pod in found} != {"Running"}:
                return None
            number, job = live.popitem()
            nodes = expanded(job["nodes"])
            return [pod["spec"]["nodeName"] for pod in found] == nodes and number

        return wait(f"the pods of {name} run on the nodes of its job", all_run)

    def pod(self, name):
        return self.pods.get("pod", name)

    def jobs_of(self, name):
        """All jobs of the pod that slurmctld has, by number."""
        return {number: job for number, job in self.jobs_of_all_states().items() if job["name"] == name}

    def job(self, name):
        """The number of its one job."""
        jobs = list(self.jobs_of(name))
        expect(len(jobs) == 1, f"pod {name} has the jobs {jobs}")
        return jobs[0]

    def running(self, name):
        """Until the pod runs on the node of its job. Returns the number of the job, and the node."""
        def both():
            pod, job = self.pod(name), self.jobs_of(name)[self.job(name)]
            return pod["status"]["phase"] == "Running" and job["job_state"] == ["RUNNING"] and job["nodes"] == pod["spec"]["nodeName"] and job

        job = wait(f"pod {name} runs on the node of its job", both)
        return job["job_id"], job["nodes"]

    def ended(self, job, comment):
        """Until the job has ended, with this comment."""
        def has():
            found = self.jobs_of_all_states()[job]
            return found["job_state"] == ["CANCELLED"] and found["comment"] == comment

        wait(f"job {job} has ended: {comment}", has)

    def queued(self, name, status, saying):
        wait(f"pod {name} SlurmQueued={status} {saying}", lambda: self.says(name, "SlurmQueued", status, saying))

    def says(self, name, condition, status, saying):
        item = condition_of(self.pod(name), condition)
        return item["status"] == status and saying in f"{item['reason']}: {item['message']}"

    def evicted(self, name, reason):
        """Until the pod, which is held, has ended for this reason of Slurm."""
        wait(f"pod {name} has ended, SlurmEnded={reason}",
             lambda: self.says(name, "SlurmEnded", "True", f"{reason}: ") and "deletionTimestamp" in self.pod(name)["metadata"]
             and self.pod(name)["status"]["phase"] in ("Succeeded", "Failed"))

    def bridge_pod(self):
        """The one that leads."""
        holder = self.get("lease", self.name)["spec"]["holderIdentity"]
        pods = self.get("pods", labelSelector="app.kubernetes.io/name=slurm-bridge")
        return [pod for pod in pods if holder.startswith(f"{pod['metadata']['name']}_")]

    def kill_bridge(self):
        """Ends it at once, and does not wait for the next one."""
        self.kubectl("delete", "pod", "-l", "app.kubernetes.io/name=slurm-bridge", "--force", "--grace-period=0")

    @contextlib.contextmanager
    def slurmrestd_away(self):
        def pods():
            return self.get("pods", labelSelector="app.kubernetes.io/name=slurmrestd")

        self.patch("restapis.slinky.slurm.net", "demo", {"spec": {"replicas": 0}})
        wait("slurmrestd is away", lambda: not pods())
        yield
        self.patch("restapis.slinky.slurm.net", "demo", {"spec": {"replicas": 1}})


def expanded(hostlist):
    """The names in "node-[2-3]" or "node-2,node-3"."""
    match = re.fullmatch(r"(.*)\[(\d+)-(\d+)\]", hostlist)
    return [f"{match[1]}{number}" for number in range(int(match[2]), int(match[3]) + 1)] if match else hostlist.split(",")


def kubernetes_node(name):
    return json.loads(kubectl("get", "node", name, "-o", "json").stdout)


def tainted(name):
    """The value of the taint of managed nodes, "-" for none; None without the taint."""
    taints = kubernetes_node(name)["spec"].get("taints", [])
    return next((taint.get("value", "") or "-" for taint in taints if taint["key"] == MANAGED), None)


def node_says(name, status, saying):
    item = condition_of(kubernetes_node(name), "SlurmReady")
    return bool(item) and item["status"] == status and saying in f"{item['reason']}: {item['message']}"


def kubernetes_nodes():
    return sorted(node["metadata"]["name"] for node in json.loads(kubectl("get", "nodes", "-o", "json").stdout)["items"])


@own_clusters
@once
@since(EXTERNAL_JOBS)
def pods_run_where_slurm_decides(tag, plugin):
    """Pods wait in the queue, start on the nodes of their jobs, and their jobs end with them, whoever is away meanwhile."""
    with Bridged("main", tag, plugin) as ns:
        ns.apply(bridged(demo_manifest()).replace("replicas: 3", "replicas: 1"))
        serves(ns, 1)
        foreign = runs(ns, ns.submit_until_told("-pcpu", "-wcpu-0"))
        ns.register(*kubernetes_nodes()[-2:])
        ns.install(**{"nodes.enabled": "false"})

        for name in ("a", "b", "c"):
            ns.apply_pod(name)
            wait(f"pod {name} has a job", lambda name=name: ns.job(name))
        (_, first), (_, second) = ns.running("a"), ns.running("b")
        expect({first, second} == set(ns.hosts), f"the pods run on {first} and {second}")
        ns.queued("c", "True", f"job {ns.job('c')} waits in partition bridge: ")
        expect("nodeName" not in ns.pod("c")["spec"] and ns.pod("c")["spec"]["schedulingGates"], "pod c does not wait")
        users_ask_why(ns)

        # The node of a pod that has gone is the next one's.
        job = ns.job("a")
        ns.pods.kubectl("delete", "pod", "a")
        wait(f"job {job} has ended", lambda: ns.jobs_of_all_states()[job]["job_state"] == ["CANCELLED"])
        expect(ns.running("c")[1] == first, "pod c runs elsewhere")

        users_change_words(ns)
        restarts_change_nothing(ns)
        what_happens_while_slurmrestd_is_away(ns)
        killed_while_pods_start(ns)
        ends_well(ns, foreign)


def why_pod(ns, name, *options):
    return json.loads(slurm_plugin(ns.pods, "why", f"pod/{name}", "-o", "json", *options)[0])


def users_ask_why(ns):
    """`kubectl slurm` explains a pod that waits and one that runs. A user of the namespace only sees what Kubernetes has."""
    waits, runs_on = why_pod(ns, "c"), why_pod(ns, "a")
    expect(waits["state"] == "Waits" and waits["controller"] == f"{ns.name}/demo", f"pod c: {waits}")
    expect(waits["job"]["job"]["id"] == str(ns.job("c")) and waits["job"]["job"]["state"] == "PENDING", f"the job of pod c: {waits}")
    expect(runs_on["state"] in ("Starts", "Runs") and runs_on["placedFor"] == ns.job("a"), f"pod a: {runs_on}")
    expect(runs_on["job"]["job"]["id"] == str(ns.job("a")), f"the job of pod a: {runs_on}")
    text = slurm_plugin(ns.pods, "why", "pod", "c")[0]
    expect(f"Pod {ns.pods.name}/c is Pending" in text and f"Job {ns.job('c')} is pending" in text, text)

    ns.pods.kubectl("create", "serviceaccount", "ada")
    ns.pods.kubectl("create", "rolebinding", "ada", "--clusterrole=view", f"--serviceaccount={ns.pods.name}:ada")
    config = json.loads(kubectl("config", "view", "--minify", "--raw", "-o", "json").stdout)
    config["users"][0]["user"] = {"token": ns.pods.kubectl("create", "token", "ada").stdout.strip()}
    with tempfile.NamedTemporaryFile("w") as file:
        json.dump(config, file)
        file.flush()
        plain = why_pod(ns, "c", "--kubeconfig", file.name)
        named = why_pod(ns, "c", "--kubeconfig", file.name, "--cluster", f"{ns.name}/demo")
    expect(plain["state"] == "Waits" and plain["conditions"][0]["type"] == "SlurmQueued", f"pod c, as a user sees it: {plain}")
    expect(plain["job"] is None and "--cluster" in plain["jobUnknown"], f"a user sees the job of pod c: {plain}")
    expect(named["job"] is None and "right" in named["jobUnknown"], f"a user sees the job of pod c: {named}")


def users_change_words(ns):
    """The label and the annotation of a running pod come back, and its job goes on."""
    job = ns.job("b")
    label, annotation = "scheduler.slinky.slurm.net/slurm-jobid", "slinky.slurm.net/slurm-node"
    ns.pods.kubectl("label", "pod", "b", f"{label}-")
    ns.pods.kubectl("annotate", "pod", "b", f"{annotation}-")

    def has_words():
        meta = ns.pod("b")["metadata"]
        return meta.get("labels", {}).get(label) == str(job) and meta.get("annotations", {}).get(annotation)

    wait("pod b has its label and its annotation again", has_words)
    expect(ns.running("b")[0] == job, "pod b has another job")


def restarts_change_nothing(ns):
    before = {name: (ns.job(name), ns.pod(name)["metadata"]["uid"]) for name in ("b", "c")}
    identity = slurmctld_identity(ns)
    ns.kubectl("delete", "pod", "demo-controller-0")
    wait("there is another slurmctld", lambda: slurmctld_identity(ns) != identity and ns.jobs())
    ns.kill_bridge()
    wait("another bridge leads", ns.bridge_pod)
    # It has looked at all when it has placed this one.
    ns.apply_pod("late")
    ns.queued("late", "True", "waits in partition bridge")
    ns.pods.kubectl("delete", "pod", "late")
    for name, (job, uid) in before.items():
        ns.running(name)
        expect((ns.job(name), ns.pod(name)["metadata"]["uid"]) == (job, uid), f"pod {name} was replaced")


def what_happens_while_slurmrestd_is_away(ns):
    """Nothing is done then, and all of it afterwards."""
    gone, cancelled = ns.job("b"), ns.job("c")
    with ns.slurmrestd_away():
        ns.pods.kubectl("delete", "pod", "b")
        ns.slurm("scancel", str(cancelled))
        ns.apply_pod("d")
        expect(ns.jobs()[gone]["job_state"] == ["RUNNING"] and ns.pod("c")["status"]["phase"] == "Running", "something has ended")
    wait(f"job {gone} has ended", lambda: ns.jobs_of_all_states()[gone]["job_state"] == ["CANCELLED"])
    wait("pod c is evicted", lambda: ns.pod("c") is None)
    ns.running("d")
    ns.pods.kubectl("delete", "pod", "d")
    wait("no pod has a job", lambda: not [job for job in ns.jobs().values() if job["partition"] == "bridge"])


def killed_while_pods_start(ns):
    """Each pod has one job, and no job is left behind."""
    names = [f"k{i}" for i in range(4)]
    for name in names:
        ns.apply_pod(name, exclusive="false")
        ns.kill_bridge()
    for name in names:
        ns.running(name)
    for name in names:
        ns.pods.kubectl("delete", "pod", name, "--wait=false")
        ns.kill_bridge()
    wait("their jobs have ended", lambda: not [job for job in ns.jobs().values() if job["partition"] == "bridge"])
    for name in names:
        ns.job(name)


@own_clusters
@once
@since(EXTERNAL_JOBS)
def pods_and_jobs_end_together(tag, plugin):
    """The outcome of a pod is in sacct, and the pod says how its job has ended. What Slurm refuses is told."""
    database_image()
    with Bridged("ends", tag, plugin) as ns:
        manifest = bridged(manifest_with_accounting("demo")).replace(PARTITIONS, "    AccountingStorageEnforce=associations,limits,qos\n" + PARTITIONS)
        ns.apply(manifest)
        ns.kubectl("apply", "-f", "-", text=json.dumps(managed("demo", tag)))
        joined(ns)
        serves(ns, 1)
        # The bridge submits as this user.
        ns.slurm("sacctmgr", "--immediate", "add", "account", "pods")
        ns.slurm("sacctmgr", "--immediate", "add", "user", "slurm", "account=pods")
        ns.register(*kubernetes_nodes()[-2:])
        ns.install(**{"nodes.enabled": "false"})

        outcomes_are_recorded(ns)
        slurm_ends_pods(ns)
        refusals_are_told(ns)


def outcomes_are_recorded(ns):
    ns.apply_pod("succeeds", "exit 0")
    ns.apply_pod("fails", "exit 3", comment="mine")
    for name, phase, comment, code in (("succeeds", "Succeeded", "the pod has Succeeded with exit code 0", "0:0"),
                                       ("fails", "Failed", "mine; the pod has Failed with exit code 3", "3:0")):
        wait(f"pod {name} has {phase}", lambda name=name, phase=phase: ns.pod(name)["status"]["phase"] == phase)
        job = ns.job(name)
        ns.ended(job, comment)

        def record(job=job):
            return ns.slurm("sacct", "--allusers", "--noheader", "--parsable2", "--allocations", f"--jobs={job}",
                            "--format=state%30,derivedexitcode,comment").stdout.strip()

        wait(f"the record of job {job}", lambda record=record, code=code: record().startswith("CANCELLED") and record().split("|")[1] == code)
        expect(ns.pod(name)["status"]["phase"] == phase and not condition_of(ns.pod(name), "SlurmEnded"), "the pod was evicted")
    ns.pods.kubectl("delete", "pod", "--all")


def slurm_ends_pods(ns):
    """Both nodes are held by the pods of this test in turn."""
    for name, settings in (("cancelled", {}), ("late", {"timelimit": "1"})):
        ns.apply_pod(name, held=True, **settings)
        ns.running(name)
    ns.slurm("scancel", str(ns.job("cancelled")))
    ns.evicted("cancelled", "Cancelled")
    ns.evicted("late", "TimedOut")
    expect(ns.says("late", "SlurmEnded", "True", f"TimedOut: job {ns.job('late')} ends at "), "the pod did not leave before the end of its job")

    ns.apply_pod("preempted", held=True)
    ns.apply_pod("down", held=True)
    (_, node), _ = ns.running("down"), ns.running("preempted")
    ns.slurm("scontrol", "update", f"NodeName={node}", "State=DOWN", "Reason=e2e")
    ns.evicted("down", "NodeFailed")
    ns.apply_pod("urgent", partition="urgent")
    ns.evicted("preempted", "Preempted")
    ns.running("urgent")
    ns.slurm("scontrol", "update", f"NodeName={node}", "State=RESUME")
    # A node that is drained takes no further pod, and keeps the one that it has.
    ns.slurm("scontrol", "update", f"NodeName={','.join(ns.hosts)}", "State=DRAIN", "Reason=e2e")
    ns.apply_pod("unbound")
    ns.queued("unbound", "True", "waits in partition bridge")
    ns.slurm("scancel", str(ns.job("unbound")))
    wait("the pod that waits has ended", lambda: ns.says("unbound", "SlurmEnded", "True", "Cancelled: ") and ns.pod("unbound")["status"]["phase"] == "Failed")
    ns.apply_pod("waits")
    ns.queued("waits", "True", "waits in partition bridge")
    expect(ns.pod("urgent")["status"]["phase"] == "Running", "the pod on a drained node has ended")
    ns.slurm("scontrol", "update", f"NodeName={','.join(ns.hosts)}", "State=RESUME")
    ns.running("waits")
    ns.pods.kubectl("delete", "pod", "unbound", "urgent", "waits")


def refusals_are_told(ns):
    wanted = {"partition": "Refused: submit job: Batch job submission failed: Invalid partition",
              "account": "Refused: submit job: Batch job submission failed: Invalid account",
              "qos": "Refused: submit job: Batch job submission failed: Invalid qos",
              "licenses": "Refused: submit job: Batch job submission failed: Invalid license",
              "reservation": "Refused: submit job: Batch job submission failed: Requested reservation is invalid",
              "constraints": "Refused: submit job: Batch job submission failed: Invalid feature",
              "gres": "Refused: submit job: Batch job submission failed: Invalid generic resource",
              "timelimit": 'Refused: annotation slurmjob.slinky.slurm.net/timelimit: "nonesuch", must be a whole number of minutes',
              "user-id": 'Refused: annotation slurmjob.slinky.slurm.net/user-id: "nonesuch", must be absent',
              "walltime": 'Refused: annotation slurmjob.slinky.slurm.net/walltime: "nonesuch", must be absent'}
    for name in wanted:
        ns.apply_pod(f"bad-{name}", **{name: "nonesuch"})
    for name, saying in wanted.items():
        ns.queued(f"bad-{name}", "False", saying)
        expect(not ns.jobs_of(f"bad-{name}"), f"there is a job for the wrong {name}")
    a_user_who_may_not_is_told(ns)
    ns.apply_pod("bad-size", cpu_per_task="60000")
    ns.queued("bad-size", "True", "waits in partition bridge: PartitionConfig")
    pod = ns.plain_pod("bad-requests")
    pod["spec"]["schedulingGates"] = [{"name": GATE}]
    pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "1000"
    expect(create(ns.pods, pod).returncode == 0, "the pod is refused")
    ns.queued("bad-requests", "False", "NoNode: no node of Slurm can run the pod: ")
    # What is mended starts.
    ns.pods.kubectl("annotate", "pod", "bad-qos", f"{SETTING}qos=normal", "--overwrite")
    ns.running("bad-qos")
    ns.pods.kubectl("delete", "pod", "--all", "--wait=false")


def a_user_who_may_not_is_told(ns):
    """Slurm knows these users. One has no association, and the other one's does not allow the QOS."""
    ns.slurm("sacctmgr", "--immediate", "add", "qos", "gold")
    ns.slurm("sacctmgr", "--immediate", "add", "user", "games", "account=pods")
    for user, name, saying in (("daemon", "bad-user", "Invalid account or account/partition"), ("games", "bad-gold", "Invalid qos")):
        kubectl("annotate", "namespace", ns.pods.name, f"{SETTING}user-id={user}", "--overwrite")
        ns.apply_pod(name, qos="gold")
        ns.queued(name, "False", f"Refused: submit job: Batch job submission failed: {saying}")
    kubectl("annotate", "namespace", ns.pods.name, f"{SETTING}user-id-")


@own_clusters
@once
@since(EXTERNAL_JOBS)
def groups_start_and_end_together(tag, plugin):
    """The pods of a group get one job. All of them run or none, a pod that goes is replaced in the job, and the job ends all."""
    kubectl("apply", "-f", str(TOP / "dev/manifests/slurm-bridge/podgroups.yaml"))
    with Bridged("groups", tag, plugin) as ns:
        ns.apply(bridged(demo_manifest()).replace("replicas: 3", "replicas: 1"))
        serves(ns, 1)
        ns.register(*kubernetes_nodes()[-2:])
        ns.install(**{"nodes.enabled": "false"})

        a_group_waits_for_all_of_its_nodes(ns)
        a_pod_is_replaced_in_its_job(ns)
        ns.slurm("scancel", str(ns.group_runs("train", "train-0", "train-1")))
        for name in ("train-0", "train-1"):
            ns.evicted(name, "Cancelled")
            ns.pods.kubectl("patch", "pod", name, "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
        killed_while_a_group_starts(ns)
        the_pods_of_a_job_are_a_group(ns)


def a_group_waits_for_all_of_its_nodes(ns):
    ns.apply_pod("alone")
    ns.running("alone")
    ns.apply_pod("train-1", group="train", held=True)
    ns.queued("train-1", "False", "NoGroup: PodGroup train does not exist")
    ns.apply_group("train", 2)
    ns.queued("train-1", "False", "GroupIncomplete: podgroup/train has 1 of the 2 pods")
    ns.apply_pod("train-0", group="train", held=True)
    for name in ("train-0", "train-1"):
        ns.queued(name, "True", "waits in partition bridge")
    expect(ns.pod("alone")["status"]["phase"] == "Running" and ns.jobs()[ns.job("train")]["job_state"] == ["PENDING"], "the group does not wait")
    ns.pods.kubectl("delete", "pod", "alone")
    ns.group_runs("train", "train-0", "train-1")


def a_pod_is_replaced_in_its_job(ns):
    job = ns.group_runs("train", "train-0", "train-1")
    ns.pods.kubectl("patch", "pod", "train-1", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    ns.pods.kubectl("delete", "pod", "train-1")
    ns.apply_pod("train-1", group="train", held=True)
    expect(ns.group_runs("train", "train-0", "train-1") == job, "the group got another job")


def killed_while_a_group_starts(ns):
    """The group has one job, and all of its pods run."""
    ns.apply_group("killed", 2)
    for name in ("killed-0", "killed-1"):
        ns.apply_pod(name, group="killed")
        ns.kill_bridge()
    job = ns.group_runs("killed", "killed-0", "killed-1")
    expect(ns.job("killed") == job, "the group has more than one job")
    ns.kill_bridge()
    ns.pods.kubectl("delete", "pod", "killed-0", "killed-1")
    wait("the job of the group has ended", lambda: ns.jobs_of_all_states()[job]["job_state"] == ["CANCELLED"])


def the_pods_of_a_job_are_a_group(ns):
    """By annotation. Those of another Job have a job each."""
    container = {"name": "c", "image": f"local/slurmd:{ns.tag}", "imagePullPolicy": "IfNotPresent", "command": ["sleep", "2"],
                 "resources": {"requests": {"cpu": "50m", "memory": "20Mi"}}}
    spec = {"schedulingGates": [{"name": GATE}], "restartPolicy": "Never", "containers": [container]}
    template = {"metadata": {"annotations": {SETTING + "gang": "true"}}, "spec": spec}
    job = {"parallelism": 2, "completions": 2, "completionMode": "Indexed", "template": template}
    ns.pods.kubectl("apply", "-f", "-", text=json.dumps({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "sweep"}, "spec": job}))
    wait("the Job is complete", lambda: ns.pods.get("job", "sweep")["status"].get("succeeded") == 2)
    number = ns.job("sweep")
    ns.ended(number, "all of its pods have ended")
    expect(ns.jobs_of_all_states()[number]["node_count"]["number"] == 2, "its job did not have two nodes")


@own_clusters
@once
@since(EXTERNAL_JOBS)
def pods_are_admitted_for_slurm(tag, plugin):
    """Plain pods of the managed namespace wait for Slurm, and only the bridge lets them go. Without the bridge, no other pods are stopped."""
    with Bridged("admit", tag, plugin) as ns, Namespace(f"{ns.name}-elsewhere", tag, plugin) as elsewhere:
        ns.apply(bridged(demo_manifest()).replace("replicas: 3", "replicas: 1"))
        serves(ns, 1)
        ns.register(*kubernetes_nodes()[-2:])
        ns.install_admission()

        plain_pods_wait_for_slurm(ns, elsewhere)
        wrong_pods_are_refused(ns)
        users_do_not_place_pods(ns)
        the_certificate_is_made_again(ns)
        nobody_else_needs_the_webhook(ns, elsewhere)


def create(ns, pod):
    return ns.kubectl("create", "-f", "-", text=json.dumps(pod), check=False)


def refused(made, saying):
    expect(made.returncode != 0 and saying in made.stderr, f"not refused with {saying}: {made.stdout} {made.stderr}")


def plain_pods_wait_for_slurm(ns, elsewhere):
    expect(create(ns.pods, ns.plain_pod("plain")).returncode == 0, "a plain pod is refused")
    spec = ns.pod("plain")["spec"]
    expect(spec["priorityClassName"] == "slurm-bridge" and spec["preemptionPolicy"] == "Never", f"its class is {spec['priorityClassName']}")
    ns.running("plain")
    # The schedulerName of the Go bridge, in a namespace that is not managed.
    pod = ns.plain_pod("asks")
    pod["spec"]["schedulerName"] = ns.name
    expect(create(elsewhere, pod).returncode == 0, "a pod that asks for Slurm is refused")
    wait("the pod that asks runs", lambda: elsewhere.get("pod", "asks")["status"]["phase"] == "Running")
    pod = elsewhere.get("pod", "asks")
    job = ns.jobs_of("asks")[ns.job("asks")]
    expect(pod["spec"]["schedulerName"] == "default-scheduler" and job["nodes"] == pod["spec"]["nodeName"], f"it runs on {pod['spec']['nodeName']}")
    told = create(ns.pods, ns.plain_pod("told") | {"metadata": {"name": "told", "annotations": {"slinky.slurm.net/timelimit": "5"}}})
    expect("did you mean slurmjob.slinky.slurm.net/timelimit?" in told.stderr, f"no warning: {told.stderr}")
    elsewhere.kubectl("delete", "pod", "asks")
    ns.running("told")
    ns.pods.kubectl("delete", "pod", "--all")


def wrong_pods_are_refused(ns):
    refused(create(ns.pods, ns.plain_pod("wrong", timelimit="soon")), "annotation slurmjob.slinky.slurm.net/timelimit")
    for field, value, saying in (("nodeName", kubernetes_nodes()[0], "spec.nodeName: must be absent"),
                                 ("priorityClassName", "system-cluster-critical", '"system-cluster-critical" preempts pods'),
                                 ("topologySpreadConstraints", [{"maxSkew": 1, "topologyKey": "kubernetes.io/hostname",
                                                                 "whenUnsatisfiable": "DoNotSchedule"}], "spec.topologySpreadConstraints:")):
        pod = ns.plain_pod("wrong")
        pod["spec"][field] = value
        refused(create(ns.pods, pod), saying)
    pod = ns.plain_pod("wrong")
    pod["metadata"]["labels"] = {"scheduler.slinky.slurm.net/slurm-jobid": "7"}
    refused(create(ns.pods, pod), "label scheduler.slinky.slurm.net/slurm-jobid: must be absent")


def users_do_not_place_pods(ns):
    """Both nodes are taken, so that the pod waits."""
    for name in ("first", "second"):
        create(ns.pods, ns.plain_pod(name))
        ns.running(name)
    create(ns.pods, ns.plain_pod("waits"))
    ns.queued("waits", "True", "waits in partition bridge")
    ns.pods.kubectl("create", "rolebinding", "ada", "--clusterrole=edit", "--user=ada")
    pin = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [ns.hosts[0]]}]}]}}}
    for path, value, saying in (("/spec/schedulingGates", [], "only slurm-bridge removes its scheduling gate"),
                                ("/spec/affinity", pin, "only slurm-bridge says to which node"),
                                ("/metadata/labels", {"scheduler.slinky.slurm.net/slurm-jobid": "7"}, "only slurm-bridge writes the label")):
        patch = json.dumps([{"op": "add", "path": path, "value": value}])
        refused(ns.pods.kubectl("patch", "pod", "waits", "--type=json", "-p", patch, "--as=ada", check=False), saying)
    ns.pods.kubectl("label", "pod", "waits", "mine=yes")
    ns.pods.kubectl("annotate", "pod", "first", "mine=yes")
    refused(ns.pods.kubectl("label", "pod", "first", "scheduler.slinky.slurm.net/slurm-jobid-", check=False), "only slurm-bridge writes the label")
    ns.pods.kubectl("delete", "pod", "first")
    ns.running("waits")
    ns.pods.kubectl("delete", "pod", "--all")


def the_certificate_is_made_again(ns):
    before = ns.get("secret", ns.name)
    ns.kubectl("delete", "secret", ns.name)
    wait("there is another certificate", lambda: ns.get("secret", ns.name)["metadata"]["uid"] != before["metadata"]["uid"])

    def published():
        authorities = ns.get("secret", ns.name)["data"]["ca.crt"]
        hooks = json.loads(kubectl("get", "mutatingwebhookconfiguration", ns.name, "-o", "json").stdout)["webhooks"]
        return all(hook["clientConfig"]["caBundle"] == authorities for hook in hooks)

    wait("its authority is published", published)
    expect(create(ns.pods, ns.plain_pod("again")).returncode == 0, "no pod is admitted with the other certificate")
    ns.pods.kubectl("delete", "pod", "--all")


def nobody_else_needs_the_webhook(ns, elsewhere):
    ns.kubectl("scale", "deployment", ns.name, "--replicas=0")
    wait("no bridge runs", lambda: not ns.get("pods", labelSelector="app.kubernetes.io/name=slurm-bridge"))
    refused(create(ns.pods, ns.plain_pod("waits")), "failed calling webhook")
    asks = ns.plain_pod("asks")
    asks["spec"]["schedulerName"] = ns.name
    refused(create(elsewhere, asks), "failed calling webhook")
    expect(create(elsewhere, ns.plain_pod("free")).returncode == 0, "a pod of another namespace is stopped")
    template = {"metadata": {"labels": {"app": "daemon"}}, "spec": ns.plain_pod("daemon")["spec"] | {"restartPolicy": "Always"}}
    daemon = {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "daemon"},
              "spec": {"selector": {"matchLabels": {"app": "daemon"}}, "template": template}}
    create(ns.pods, daemon)
    wait("the pods of a DaemonSet run", lambda: ns.pods.get("daemonset", "daemon")["status"]["numberReady"] > 0)
    wait("the pod of another namespace runs", lambda: elsewhere.get("pod", "free")["status"]["phase"] == "Running")
    ns.pods.kubectl("delete", "daemonset", "daemon")

    # All replicas serve, not only the one that leads.
    ns.kubectl("scale", "deployment", ns.name, "--replicas=2")
    ns.wait_ready(2)
    for number in range(10):
        made = create(ns.pods, ns.plain_pod(f"served-{number}"))
        expect(made.returncode == 0, f"a pod is refused: {made.stderr}")
    ns.pods.kubectl("delete", "pod", "--all")


@own_clusters
@until(EXTERNAL_JOBS)
def pods_wait_for_a_newer_slurm(tag, plugin):
    """A Slurm without external jobs gets none, and the pods say so."""
    with Bridged("old", tag, plugin) as ns:
        ns.apply(demo_manifest().replace("replicas: 3", "replicas: 1"))
        serves(ns, 1)
        ns.install()
        ns.apply_pod("a")
        ns.queued("a", "False", "Unsupported: Slurm 24.11")
        expect(ns.pod("a")["spec"]["schedulingGates"] and not ns.jobs_of_all_states(), "it did something")


def label(node, value):
    kubectl("label", "node", node, f"{EXTERNAL}-" if value is None else f"{EXTERNAL}={value}", "--overwrite")


def partitions(node, names):
    kubectl("annotate", "node", node, f"{PARTITIONS_OF_NODE}-" if names is None else f"{PARTITIONS_OF_NODE}={names}", "--overwrite")


@own_clusters
@once
@alone
@since(EXTERNAL_JOBS)
def nodes_follow_kubernetes(tag, plugin):
    """Labelled nodes are registered, drained with Kubernetes, and leave Slurm with their labels. Drains of others stay."""
    node, other = kubernetes_nodes()[-2:]
    with Bridged("nodes", tag, plugin) as ns:
        try:
            ns.apply(bridged(demo_manifest()).replace("replicas: 3", "replicas: 1"))
            serves(ns, 1)
            ns.install()
            partitions(node, "bridge")
            label(node, "true")
            wait("the node is idle", lambda: node in ns.idle())
            record = ns.slurm_node(node)
            expect(any(feature.startswith(f"slurm-bridge/{cluster_uid()}/") for feature in record["features"]), f"the node has no mark: {record}")
            expect("bridge" in record["partitions"], f"the node is not in its partition: {record}")
            wait("the Kubernetes node says so", lambda: node_says(node, "True", f"InService: Slurm has the node {node}"))
            wait("it has the taint", lambda: tainted(node) == "-")

            cordons_become_drains(ns, node)
            what_others_drain_stays(ns, node)
            what_cannot_be_registered_is_told(ns, other)
            a_suspension_leaves_no_node_behind(ns, node)
            a_busy_node_leaves_when_its_pod_has_ended(ns, node)
        finally:
            # Other tests need the nodes.
            for name in (node, other):
                label(name, None)
                partitions(name, None)
                kubectl("uncordon", name)
            for name in (node, other):
                wait(f"{name} has left Slurm", lambda name=name: tainted(name) is None)


@own_clusters
@once
@alone
@since(EXTERNAL_JOBS)
def the_bridge_retires(tag, plugin):
    """Pods that wait are let go, those that run go on, and nodes leave Slurm when they have ended."""
    node = kubernetes_nodes()[-1]
    with Bridged("retire", tag, plugin) as ns:
        try:
            ns.apply(bridged(demo_manifest()).replace("replicas: 3", "replicas: 1"))
            serves(ns, 1)
            ns.install()
            partitions(node, "bridge")
            label(node, "true")
            wait("the node is idle", lambda: node in ns.idle())
            ns.apply_pod("runs")
            ns.running("runs")
            ns.apply_pod("waits")
            ns.queued("waits", "True", "waits in partition bridge")

            ns.install(retire="true")
            wait("the pod that waits is let go", lambda: not ns.pod("waits")["spec"].get("schedulingGates"))
            wait("its job has ended", lambda: ns.jobs_of("waits")[ns.job("waits")]["job_state"] == ["CANCELLED"])
            drained(ns, node, "slurm-bridge: slurm-bridge is being removed")
            expect(ns.running("runs")[1] == node, "the pod that runs has ended")
            expect(not ns.get("job", f"{ns.name}-retire")["status"].get("succeeded"), "the bridge is gone while its pod runs")
            ns.pods.kubectl("delete", "pod", "--all")
            wait("nothing is left", lambda: ns.get("job", f"{ns.name}-retire")["status"].get("succeeded"))
            expect(ns.slurm_node(node) is None and tainted(node) is None, f"{node} has not left Slurm")
        finally:
            # Other tests need the node.
            kubectl("taint", "node", node, f"{MANAGED}-", check=False)
            label(node, None)
            partitions(node, None)


def cluster_uid():
    return json.loads(kubectl("get", "namespace", "kube-system", "-o", "json").stdout)["metadata"]["uid"]


def drained(ns, node, reason):
    wait(f"{node} is drained: {reason}", lambda: "DRAIN" in ns.slurm_node(node)["state"] and ns.slurm_node(node)["reason"] == reason)


def in_service(ns, node):
    wait(f"{node} is in service", lambda: "DRAIN" not in ns.slurm_node(node)["state"])


def cordons_become_drains(ns, node):
    kubectl("cordon", node)
    drained(ns, node, f"slurm-bridge: Kubernetes node ({node}) was cordoned")
    ns.kill_bridge()
    kubectl("uncordon", node)
    in_service(ns, node)


def what_others_drain_stays(ns, node):
    ns.slurm("scontrol", "update", f"NodeName={node}", "State=DRAIN", "Reason=bad DIMM")
    wait("the taint has the reason", lambda: tainted(node) == "bad-DIMM")
    kubectl("cordon", node)
    kubectl("uncordon", node)
    wait("the condition has the reason", lambda: node_says(node, "False", "Drained: Slurm: bad DIMM"))
    expect(ns.slurm_node(node)["reason"] == "bad DIMM", "the reason was replaced")
    ns.slurm("scontrol", "update", f"NodeName={node}", "State=RESUME")
    wait("the node is in service", lambda: node_says(node, "True", "InService: "))


def what_cannot_be_registered_is_told(ns, other):
    partitions(other, "nowhere")
    label(other, "true")
    wait("the partition is told", lambda: node_says(other, "False", 'Slurm has no partition "nowhere"'))
    expect(ns.slurm_node(other) is None and tainted(other) is None, f"{other} was registered")
    label(other, None)
    # Somebody else registers it.
    ns.slurm("scontrol", "create", f"NodeName={other}", "NodeAddr=127.0.0.1", "State=EXTERNAL", "CPUs=1", "RealMemory=100", "Feature=mine")
    label(other, "true")
    wait("it is not taken over", lambda: node_says(other, "True", "RegisteredByOthers: "))
    label(other, None)
    wait("it has the taint", lambda: tainted(other))
    expect(ns.slurm_node(other)["features"] == ["mine"], "its features were changed")
    ns.slurm("scontrol", "delete", f"NodeName={other}")
    wait("the taint goes with the node", lambda: tainted(other) is None)


def a_suspension_leaves_no_node_behind(ns, node):
    """Slurm asks an external node to suspend a job. It gets no answer, and starts no job there until the node is registered again."""
    ns.apply_pod("paused")
    job, _ = ns.running("paused")
    ns.slurm("scontrol", "suspend", str(job))
    wait("Slurm waits for the node", lambda: "NOT_RESPONDING" in ns.slurm_node(node)["state"])
    ns.slurm("scontrol", "resume", str(job))
    wait("the condition tells it", lambda: node_says(node, "False", "NotResponding: "))
    expect(ns.running("paused") == (job, node), "the pod has lost its job")
    ns.pods.kubectl("delete", "pod", "paused")
    wait("the node is in service", lambda: node_says(node, "True", "InService: ") and "NOT_RESPONDING" not in ns.slurm_node(node)["state"])
    ns.apply_pod("next")
    ns.running("next")
    ns.pods.kubectl("delete", "pod", "next")


def a_busy_node_leaves_when_its_pod_has_ended(ns, node):
    ns.apply_pod("last", grace=20, script="trap '' TERM; sleep 3600 & wait")
    ns.running("last")
    label(node, None)
    drained(ns, node, f"slurm-bridge: Kubernetes node ({node}) is not labelled as external any more")
    expect(ns.pod("last")["status"]["phase"] == "Running", "the pod has ended")
    ns.pods.kubectl("delete", "pod", "last", "--wait=false")
    wait("the node has left Slurm", lambda: ns.slurm_node(node) is None)
    wait("the taint goes", lambda: tainted(node) is None)


@own_clusters
@once
@alone
@since(EXTERNAL_JOBS)
def a_native_job_waits_for_a_pod_that_still_ends(tag, plugin):
    """On a node with a slurmd and a kubelet, the prolog of the bridge holds a native job back until the pod of an ended job is gone."""
    node = kubernetes_nodes()[-1]
    try:
        with Bridged("hybrid", tag, plugin) as ns:
            # Its chart brings the prolog.
            ns.install()
            kubectl("label", "node", node, f"{POOL}={ns.name}", "--overwrite")
            ns.apply(hybrid(demo_manifest(), ns.name))
            wait("the worker has the name of its Kubernetes node", lambda: ns.idle() == [node])
            wait("the Kubernetes node has the taint", lambda: tainted(node))

            ns.apply_pod("slow", script="trap '' TERM; sleep 3600 & wait", grace=45, partition="cpu")
            job, where = ns.running("slow")
            expect(where == node and json.loads(ns.slurm_node(node)["extra"])["slurm-bridge"] == str(job), f"the node is {ns.slurm_node(node)}")
            ns.slurm("scancel", str(job))
            native = ns.submit("true", "-pcpu", f"-w{node}", "-N1", "--exclusive")

            def gone():
                """The job is looked at first: if it had left its prolog, the pod would have to be gone."""
                found = ns.jobs_of_all_states()[native]
                pod = ns.pod("slow")
                expect(pod is None or found["job_state"] == ["PENDING"] or found["state_reason"] == "Prolog", f"job {native} runs beside the pod: {found}")
                return pod is None

            wait("the pod is gone", gone)
            wait("the native job has completed", lambda: ns.completed(native))
    finally:
        kubectl("label", "node", node, f"{POOL}-")
        kubectl("taint", "node", node, f"{MANAGED}-", check=False)


POOL = "e2e.slurm.test/pool"


def hybrid(manifest, pool):
    """The demo's cluster with one worker on each Kubernetes node of the pool, beside its kubelet, and the prolog of the bridge."""
    settings = "    PrologFlags=Alloc\n    PrologEpilogTimeout=300\n    BatchStartTimeout=300\n    SchedulerParameters=sched_interval=2\n"
    conf = "  extraConf: |\n"
    out = manifest.replace(conf, f"  prologScriptRefs: [{{name: {pool}-prolog}}]\n{conf}{settings}")
    return out.replace("  replicas: 3\n", f"  scalingMode: DaemonSet\n  template: {{spec: {{nodeSelector: {{{POOL}: {pool}}}}}}}\n")

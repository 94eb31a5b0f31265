"""End-to-end tests of the chart `slurm` with values that users of slurm-operator 1.2.1 have. Each chart is installed, all its
resources become Ready, it runs a job, and it is uninstalled. run.py runs the tests."""

import contextlib
import json
import pathlib
import tempfile

import accounting
from cluster import TOP, Namespace, kubectl, run, slurm_releases, wait
from logins import have_client, made_key, ssh
from suite import expect, own_clusters

# The parts for the local cluster: its images, and Slurm's limits there.
LOCAL = """
configFiles:
  cgroup.conf: |
    CgroupPlugin=${CGROUP_PLUGIN}
    IgnoreSystemd=yes
controller:
  slurmctld: {image: {repository: local/slurmctld, tag: "${TAG}"}}
  extraConfMap: {ProctrackType: proctrack/linuxproc, TaskPlugin: task/none}
restapi:
  slurmrestd: {image: {repository: local/slurmrestd, tag: "${TAG}"}}
accounting:
  slurmdbd: {image: {repository: local/slurmdbd, tag: "${TAG}"}}
nodesetDefaults:
  slurmd: {image: {repository: local/slurmd, tag: "${TAG}"}}
loginsetDefaults:
  login: {image: {repository: local/login, tag: "${TAG}"}}
"""
KINDS = ("controllers", "restapis", "nodesets", "accountings", "loginsets")


@contextlib.contextmanager
def installed(ns, values, *options):
    """Installs the chart with these values and waits until it is Ready. Afterwards uninstalls it and waits until nothing of it
    runs."""
    made = lambda: {kind: found for kind in KINDS if (found := ns.get(f"{kind}.slinky.slurm.net"))}
    pods = lambda: {pod["metadata"]["name"] for pod in ns.get("pods")}
    before = pods()
    with tempfile.TemporaryDirectory() as folder:
        files = [pathlib.Path(folder, name) for name in ("local.yaml", "values.yaml")]
        for file, text in zip(files, (LOCAL, values)):
            file.write_text(ns.fill(text))
        run("helm", "install", "slurm", str(TOP / "charts/slurm"), "-n", ns.name, *(f"--values={file}" for file in files), *options)
    for kind in made():
        ns.kubectl("wait", "--for=condition=Ready", f"{kind}.slinky.slurm.net", "--all", "--timeout=300s")
    for kind, items in made().items():
        for item in items:
            conditions = {told["type"]: told for told in item["status"]["conditions"]}
            expect("FieldsNotActedOn" not in conditions, f"{kind}: {conditions.get('FieldsNotActedOn')}")
            expect(conditions["Degraded"]["status"] == "False", f"{kind}: {conditions['Degraded']}")
    yield
    run("helm", "uninstall", "slurm", "-n", ns.name)
    wait("nothing of it is left", lambda: not made() and pods() == before)


def ran_on(ns, *options):
    """Returns where `srun hostname` ran."""
    return ns.slurm("srun", "--immediate=60", *options, "hostname", controller="slurm").stdout.split()


@own_clusters
def values_with_the_defaults(tag, plugin):
    """The values of the first steps in the documentation of slurm-operator 1.2.1: one NodeSet without settings, and the
    partition all."""
    with Namespace(f"e2e-defaults-{tag.replace('.', '-')}", tag, plugin) as ns:
        with installed(ns, "", "--set-json", 'nodesets={"slinky":{}}', "--set", "partitions.all.enabled=true"):
            out = ran_on(ns)
            expect(out == ["slinky-0"], f"srun hostname printed {out}")


@own_clusters
def values_with_an_external_database(tag, plugin):
    """The values of that documentation for a database: the MariaDB is called mariadb, and its user's password is in the Secret
    mariadb-password."""
    accounting.database_image()
    with Namespace(f"e2e-mariadb-{tag.replace('.', '-')}", tag, plugin) as ns:
        accounting.secret(ns, accounting.PASSWORD)
        ns.apply(accounting.manifests()[0])
        ns.kubectl("wait", "--for=condition=Available", "deployment/mariadb", "--timeout=300s")
        with installed(ns, "", "--set-json", 'nodesets={"slinky":{}}', "--set", "partitions.all.enabled=true,accounting.enabled=true"):
            ns.slurm("sacctmgr", "--immediate", "add", "account", "physics", controller="slurm")
            ns.slurm("sacctmgr", "--immediate", "add", "user", "slurm", "account=physics", controller="slurm")
            job = ns.submit("true", "--account=physics", controller="slurm")
            accounting.recorded(ns, job, controller="slurm")
            expect(accounting.sacct(ns, job, controller="slurm")[job][1] == "physics", "its record has another account")
        left = accounting.query(ns, "select count(*) from slurm_acct_db.acct_table where name = 'physics'").strip()
        expect(left == "1", f"the user's database was changed when the release was removed: {left} accounts of that name")


@contextlib.contextmanager
def extended_resource(node, name, count):
    """Makes a Kubernetes node report so many devices."""
    at = f"/status/capacity/{name.replace('/', '~1')}"
    patch = lambda operation: kubectl("patch", "node", node, "--subresource=status", "--type=json", "-p", json.dumps([operation]))
    said = lambda: json.loads(kubectl("get", "node", node, "-o", "json").stdout)["status"]["allocatable"].get(name)
    patch({"op": "add", "path": at, "value": str(count)})
    try:
        wait("its kubelet lets pods have them", lambda: said() == str(count), every=1)
        yield
    finally:
        patch({"op": "remove", "path": at})


# Slurm accepts any device files.
GPUS = """
configFiles:
  gres.conf: |
    Name=gpu Type=h100 File=/dev/zero
    Name=gpu Type=h100 File=/dev/full
controller:
  extraConfMap:
    GresTypes: gpu
nodesets:
  gpu:
    enabled: true
    replicas: 1
    slurmd:
      resources:
        limits:
          nvidia.com/gpu: 2
    extraConfMap:
      Gres: ["gpu:h100:2"]
    partition:
      enabled: true
      configMap:
        State: UP
        Default: "YES"
loginsets:
  slinky:
    enabled: true
"""


@own_clusters
def values_with_gpus_and_a_login(tag, plugin):
    """GPUs that the device plugin reports and gres.conf names, and a login node, whose Service requests a load balancer by
    default."""
    # The same test with another release may run at the same time: each has a node of its own.
    host = json.loads(kubectl("get", "nodes", "-o", "json").stdout)["items"][slurm_releases().index(tag)]["metadata"]["name"]
    with Namespace(f"e2e-gpu-values-{tag.replace('.', '-')}", tag, plugin) as ns, extended_resource(host, "nvidia.com/gpu", 2):
        have_client(ns)
        key, login = made_key(ns, "first").strip(), "slurm-login-slinky"
        with installed(ns, GPUS, "--set-string", f"loginsets.slinky.rootSshAuthorizedKeys={key}"):
            (worker,) = ns.workers().values()
            expect(worker["spec"]["nodeName"] == host, f"the worker is on {worker['spec']['nodeName']}, which has no GPUs")
            wait("a user logs in", lambda: ssh(ns, "first", "root", "true", host=login, check=False).returncode == 0)
            # The previous job may be COMPLETING for a while: see "With login nodes" in docs/reference/limits.md.
            seen = lambda wanted: ssh(ns, "first", "root", "srun", "--immediate=240", f"--gres={wanted}", "printenv", "CUDA_VISIBLE_DEVICES",
                                      host=login).stdout.strip()
            for wanted, devices in (("gpu:1", "0"), ("gpu:h100:2", "0,1")):
                expect(seen(wanted) == devices, f"a job with --gres={wanted} does not see the devices {devices}")

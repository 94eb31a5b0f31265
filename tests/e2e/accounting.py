"""End-to-end tests of accounting: a real slurmdbd and a real MariaDB. run.py runs them."""

import functools
import json
import re
import subprocess
import time
import urllib.error
import urllib.request

from cluster import TOP, Failed, Namespace, wait
from suite import demo_manifest, ends_well, expect, once, own_clusters, running_on, serves, slurmctld_identity

CONTROLLER, ACCOUNTING = "controllers.slinky.slurm.net", "accountings.slinky.slurm.net"
# What slurmdbd.conf, SQL and shells read in ways of their own.
PASSWORD = "pa#s\\s'w\"o$rd`"


@functools.cache
def database_image():
    """In the nodes, once for each lane."""
    made = subprocess.run([str(TOP / "dev/images/build.sh"), "--database"], capture_output=True, text=True, check=False)
    tars = re.findall(r"^image-tar: (.*)$", made.stdout, re.M)
    loaded = tars and subprocess.run([str(TOP / "dev/load-image.sh"), *tars], capture_output=True, text=True, check=False)
    expect(loaded and loaded.returncode == 0, f"the image of MariaDB: {made.stderr[-500:]}{loaded and loaded.stderr[-500:]}")


def manifests():
    """The MariaDB's, and the Accounting's."""
    return tuple((TOP / "dev/demo" / name).read_text() for name in ("mariadb.yaml", "accounting.yaml"))


def manifest_with_accounting(name):
    """The demo's cluster with one worker, which names this Accounting."""
    manifest = demo_manifest().replace("replicas: 3", "replicas: 1").replace(
        "metadata:\n  name: demo\nspec:\n  slurmctld:", f"metadata:\n  name: demo\nspec:\n  accountingRef: {{name: {name}}}\n  slurmctld:")
    expect("accountingRef" in manifest, "the demo's manifest has changed")
    return manifest


def managed(name, tag, **spec):
    """An Accounting whose MariaDB the operator runs."""
    return {"apiVersion": "slinky.slurm.net/v1beta1", "kind": "Accounting", "metadata": {"name": name},
            "spec": {"slurmdbd": {"image": f"local/slurmdbd:{tag}", "imagePullPolicy": "IfNotPresent"},
                     "storageConfig": {"managed": True, "mariadb": {"image": "local/mariadb:dev", "imagePullPolicy": "IfNotPresent"},
                                       "persistence": {"resources": {"requests": {"storage": "500Mi"}}}}} | spec}


def secret(ns, password):
    text = json.dumps({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "mariadb-password"}, "stringData": {"password": password}})
    ns.kubectl("apply", "-f", "-", text=text)


def query(ns, sql):
    return ns.kubectl("exec", "deployment/mariadb", "--", "mariadb", "--socket=/tmp/mariadb.sock", "--user=root", "--batch", "--skip-column-names",
                      "--execute", sql).stdout


def sacct(ns, *jobs):
    """What slurmdbd has of these jobs: id -> (state, account)."""
    out = ns.slurm("sacct", "--allusers", "--noheader", "--parsable2", "--allocations", f"--jobs={','.join(map(str, jobs))}",
                   "--format=jobidraw,state,account").stdout
    return {int(job): (state, account) for job, state, account in (line.split("|") for line in out.splitlines())}


def recorded(ns, job, state="COMPLETED"):
    wait(f"the record of job {job}", lambda: sacct(ns, job)[job][0] == state)


def joined(ns):
    ns.wait_condition(CONTROLLER, "demo", "AccountingJoined")
    for kind in (ACCOUNTING, CONTROLLER):
        ns.wait_condition(kind, "demo")
        ns.wait_condition(kind, "demo", "Degraded", "False")


def rest(ns, path):
    """The answer of slurmrestd to user slurm."""
    token = ns.slurm("scontrol", "token", "username=slurm", "lifespan=600").stdout.strip().partition("=")[2]
    address = ns.get("service", "demo-restapi")["spec"]["clusterIP"]
    get = lambda at: json.load(urllib.request.urlopen(urllib.request.Request(
        f"http://{address}:6820{at}", headers={"X-SLURM-USER-NAME": "slurm", "X-SLURM-USER-TOKEN": token}), timeout=30))
    versions = {part for at in get("/openapi/v3")["paths"] if at.startswith("/slurmdb/") for part in at.split("/")[2:3]}
    try:
        return get(f"/slurmdb/{max(versions)}/{path}")
    except (urllib.error.URLError, ValueError) as error:
        raise Failed(f"/slurmdb/{path}: {error}") from error


@own_clusters
def accounting_from_the_first_job(tag, plugin):
    """All is applied at once, the database last; and what is wrong is told and heals."""
    database_image()
    database, accounting = manifests()
    with Namespace(f"e2e-accounting-{tag.replace('.', '-')}", tag, plugin) as ns:
        ns.apply(manifest_with_accounting("demo"))
        ns.wait_condition(CONTROLLER, "demo", "Ready", "False", saying="AccountingMissing")
        ns.apply(accounting)
        ns.wait_condition(ACCOUNTING, "demo", "Degraded", saying="SecretMissing")
        secret(ns, "two\nlines")
        ns.wait_condition(ACCOUNTING, "demo", "Degraded", saying="PasswordInvalid")
        secret(ns, PASSWORD)
        ns.wait_condition(ACCOUNTING, "demo", "Degraded", saying="DatabaseUnreachable: spec.storageConfig.host: mariadb")
        ns.apply(database)
        joined(ns)
        serves(ns, 1)
        expect(slurmctld_identity(ns)[1] == 0, "slurmctld was started more than once")
        ns.slurm("sacctmgr", "--immediate", "add", "account", "physics")
        ns.slurm("sacctmgr", "--immediate", "add", "user", "slurm", "account=physics")
        job = ns.submit("true", "--account=physics")
        recorded(ns, job)
        expect(sacct(ns, job)[job][1] == "physics", f"another account: {sacct(ns, job)}")
        found = {item["name"]: item for item in rest(ns, "clusters/")["clusters"]}
        name = f"{ns.name}_demo"
        expect(name in found and found[name]["controller"]["port"] == 6817, f"the cluster is not registered: {found}")

        # The password is nowhere but in its Secret.
        for kind in ("configmaps", "secrets", "pods", "statefulsets", ACCOUNTING, "events"):
            for item in ns.get(kind):
                text = json.dumps(item)
                expect(item["metadata"]["name"] == "mariadb-password" or json.dumps(PASSWORD)[1:-1] not in text,
                       f"{kind}/{item['metadata']['name']} shows the password")

        # Both away: jobs go on.
        ns.kubectl("scale", "deployment", "mariadb", "--replicas=0")
        wait("the database is gone", lambda: not ns.get("pods", labelSelector="app=mariadb"))
        ns.kubectl("delete", "pod", "demo-accounting-0", "--wait=true")
        ns.wait_condition(CONTROLLER, "demo", "AccountingJoined", "False", saying="AccountingAway")
        job = ns.submit("sleep 1", "--account=physics")
        wait("a job runs meanwhile", lambda: ns.completed(job))
        ns.wait_condition(ACCOUNTING, "demo", "Degraded", saying="DatabaseUnreachable")
        ns.wait_condition(CONTROLLER, "demo")
        ns.kubectl("scale", "deployment", "mariadb", "--replicas=1")
        joined(ns)
        recorded(ns, job)

        # Settings of the server that slurmdbd does not do well with.
        query(ns, "set global max_allowed_packet=1048576")
        if tag != "24.11":
            query(ns, "set global innodb_snapshot_isolation=ON")
        ns.kubectl("delete", "pod", "demo-accounting-0", "--wait=true")
        ns.wait_condition(ACCOUNTING, "demo", "DatabaseUnsuited", saying="max_allowed_packet=16M or more")
        if tag != "24.11":
            ns.wait_condition(ACCOUNTING, "demo", "DatabaseUnsuited", saying="innodb_snapshot_isolation=OFF")
        query(ns, "set global max_allowed_packet=16777216")
        query(ns, "set global innodb_snapshot_isolation=OFF")
        ns.kubectl("delete", "pod", "demo-accounting-0", "--wait=true")
        joined(ns)
        wait("nothing is told of its settings", lambda: not ns.condition(ACCOUNTING, "demo", "DatabaseUnsuited"))

        # Another password, and then the database has it too. slurmdbd tries by itself.
        secret(ns, "another")
        ns.wait_condition(ACCOUNTING, "demo", "Degraded", saying="DatabaseRefused: spec.storageConfig.username: slurm")
        query(ns, "alter user slurm@'%' identified by 'another'")
        joined(ns)
        # No right to the database that is wanted.
        ns.patch(ACCOUNTING, "demo", {"spec": {"storageConfig": {"database": "elsewhere"}}})
        ns.wait_condition(ACCOUNTING, "demo", "Degraded", saying="DatabaseRefused: spec.storageConfig.database: elsewhere")
        ns.patch(ACCOUNTING, "demo", {"spec": {"storageConfig": {"database": "slurm_acct_db"}}})
        joined(ns)
        recorded(ns, job)


@own_clusters
def accounting_with_a_managed_database(tag, plugin):
    """The operator runs the MariaDB; its records outlive the Accounting."""
    database_image()
    with Namespace(f"e2e-managed-{tag.replace('.', '-')}", tag, plugin) as ns:
        accounting = managed("demo", tag)
        ns.apply(manifest_with_accounting("demo"))
        ns.kubectl("apply", "-f", "-", text=json.dumps(accounting))
        joined(ns)
        serves(ns, 1)
        expect(not ns.condition(ACCOUNTING, "demo", "DatabaseUnsuited"), "slurmdbd complains of the operator's own settings")
        job = ns.submit("true")
        recorded(ns, job)
        # Another password comes with another Secret.
        before = ns.get("secret", "demo-mariadb")
        ns.kubectl("delete", "secret", "demo-mariadb")
        wait("there is another password", lambda: ns.get("secret", "demo-mariadb")["data"] != before["data"])
        joined(ns)
        recorded(ns, job)
        ns.kubectl("delete", "pod", "demo-mariadb-0", "--wait=true")
        ns.wait_condition(ACCOUNTING, "demo")
        job_meanwhile = ns.submit("true")
        recorded(ns, job_meanwhile)
        # The Accounting is made again.
        ns.kubectl("delete", ACCOUNTING, "demo", "--wait=true")
        ns.wait_condition(CONTROLLER, "demo", "AccountingJoined", "False", saying="AccountingMissing")
        wait("its pods are gone", lambda: not ns.get("pods", labelSelector="app.kubernetes.io/name in (slurmdbd,slurm-mariadb)"))
        ns.kubectl("apply", "-f", "-", text=json.dumps(accounting))
        joined(ns)
        recorded(ns, job)


@once
@own_clusters
def accounting_that_somebody_else_runs(tag, plugin):
    """A slurmdbd that its Accounting only names, here one of another Accounting with the same keys."""
    database_image()
    with Namespace(f"e2e-external-{tag.replace('.', '-')}", tag, plugin) as ns:
        ns.apply(manifest_with_accounting("outside"))
        keys = {f"{kind}KeyRef": {"name": f"demo-{kind}-key", "key": f"{kind}.key"} for kind in ("slurm", "jwt")}
        ns.kubectl("apply", "-f", "-", text=json.dumps(managed("inside", tag, **keys)))
        ns.wait_condition(ACCOUNTING, "inside")
        external = managed("outside", tag) | {
            "spec": {"external": True, "externalConfig": {"host": f"inside-accounting.{ns.name}", "port": 6819}}}
        ns.kubectl("apply", "-f", "-", text=json.dumps(external))
        ns.wait_condition(CONTROLLER, "demo", "AccountingJoined", saying=f"inside-accounting.{ns.name}:6819")
        ns.wait_condition(ACCOUNTING, "outside")
        ns.wait_condition(ACCOUNTING, "outside", "Serving", "Unknown", saying="External")
        serves(ns, 1)
        recorded(ns, ns.submit("true"))
        expect(not ns.get("service", "outside-accounting"), "something was made for a slurmdbd of somebody else")


@own_clusters
def accounting_joins_and_leaves_under_jobs(tag, plugin):
    """slurmctld restarts once for each, and no job is lost."""
    database_image()
    database, accounting = manifests()
    with Namespace(f"e2e-joins-{tag.replace('.', '-')}", tag, plugin) as ns:
        ns.apply(demo_manifest().replace("replicas: 3", "replicas: 2"))
        serves(ns, 2)
        job = running_on(ns, "cpu-0")
        waits = ns.submit("true", "--hold")
        workers = {name: pod["metadata"]["uid"] for name, pod in ns.workers().items()}
        before = slurmctld_identity(ns)
        secret(ns, PASSWORD)
        ns.patch(CONTROLLER, "demo", {"spec": {"accountingRef": {"name": "demo"}}})
        ns.wait_condition(CONTROLLER, "demo", "AccountingJoined", "False", saying="AccountingMissing")
        ns.apply(accounting)
        ns.wait_condition(CONTROLLER, "demo", "AccountingJoined", "False", saying="Waiting")
        time.sleep(3)
        expect(slurmctld_identity(ns) == before, "slurmctld was restarted before there is a slurmdbd")
        ns.apply(database)
        joined(ns)
        serves_both = lambda: ns.fates([job, waits]) == {("RUNNING", 0): 1, ("PENDING", 0): 1}
        wait("both jobs are there", serves_both)
        now = slurmctld_identity(ns)
        expect(now[0] != before[0] and now[1] == 0, f"slurmctld was {before} and is {now}")
        recorded(ns, job, "RUNNING")
        # It starts again without its slurmdbd.
        ns.kubectl("scale", "deployment", "mariadb", "--replicas=0")
        wait("the database is gone", lambda: not ns.get("pods", labelSelector="app=mariadb"))
        ns.kubectl("delete", "pod", "demo-accounting-0", "--wait=true")
        ns.kubectl("delete", "pod", "demo-controller-0", "--wait=true")
        ns.wait_condition(CONTROLLER, "demo")
        wait("both jobs are there", serves_both)
        ns.kubectl("scale", "deployment", "mariadb", "--replicas=1")
        joined(ns)

        before = slurmctld_identity(ns)
        ns.patch(CONTROLLER, "demo", {"spec": {"accountingRef": None}})
        wait("the condition goes", lambda: not ns.condition(CONTROLLER, "demo", "AccountingJoined"))
        wait("slurmctld is another", lambda: slurmctld_identity(ns)[0] != before[0])
        ns.wait_condition(CONTROLLER, "demo")
        ns.wait_condition(CONTROLLER, "demo", "Reconfigured")
        expect(slurmctld_identity(ns)[1] == 0, "slurmctld was started more than once")
        expect("accounting_storage/slurmdbd" not in ns.slurm("scontrol", "show", "config").stdout, "slurmctld still has its slurmdbd")
        wait("both jobs are there", serves_both)
        ends_well(ns, job)
        ns.slurm("scontrol", "release", str(waits))
        ends_well(ns, waits)
        expect(workers == {name: pod["metadata"]["uid"] for name, pod in ns.workers().items()}, "workers were replaced")
        # And back again: the database knows the cluster.
        ns.patch(CONTROLLER, "demo", {"spec": {"accountingRef": {"name": "demo"}}})
        joined(ns)
        job = ns.submit("true")
        recorded(ns, job)

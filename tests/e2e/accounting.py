"""End-to-end tests of accounting: a real slurmdbd and a real MariaDB. run.py runs them."""

import base64
import functools
import json
import os
import re
import shlex
import signal
import subprocess
import time
import urllib.error
import urllib.request

from cluster import LIMIT, TOP, AtBackup, Failed, Namespace, wait
from faults import process_of
from suite import (demo_manifest, ends_well, expect, once, own_clusters, running_on, runs, serves, slurmctld_identity, state_is_written,
                   with_a_backup)

CONTROLLER, ACCOUNTING = "controllers.slinky.slurm.net", "accountings.slinky.slurm.net"
NODESET, RESTAPI = "nodesets.slinky.slurm.net", "restapis.slinky.slurm.net"
# Characters that are special in slurmdbd.conf, SQL and shells.
PASSWORD = "pa#s\\s'w\"o$rd`"


@functools.cache
def database_image():
    """Loads the image of the database into the nodes, once for each lane."""
    made = subprocess.run([str(TOP / "dev/images/build.sh"), "--database"], capture_output=True, text=True, check=False)
    tars = re.findall(r"^image-tar: (.*)$", made.stdout, re.M)
    loaded = tars and subprocess.run([str(TOP / "dev/load-image.sh"), *tars], capture_output=True, text=True, check=False)
    expect(loaded and loaded.returncode == 0, f"the image of MariaDB: {made.stderr[-500:]}{loaded and loaded.stderr[-500:]}")


def manifests():
    """Returns the manifests of the MariaDB and of the Accounting."""
    return tuple((TOP / "dev/demo" / name).read_text() for name in ("mariadb.yaml", "accounting.yaml"))


def manifest_with_accounting(name, replicas=1):
    """Returns the demo's cluster with so many workers, which names this Accounting."""
    manifest = demo_manifest().replace("replicas: 3", f"replicas: {replicas}").replace(
        "metadata:\n  name: demo\nspec:\n  slurmctld:", f"metadata:\n  name: demo\nspec:\n  accountingRef: {{name: {name}}}\n  slurmctld:")
    expect("accountingRef" in manifest, "the demo's manifest has changed")
    return manifest


def managed(name, tag, **spec):
    """Returns an Accounting whose MariaDB the operator runs."""
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


def sacct(ns, *jobs, controller="demo"):
    """Returns the records of these jobs in slurmdbd: id -> (state, account)."""
    out = ns.slurm("sacct", "--allusers", "--noheader", "--parsable2", "--allocations", f"--jobs={','.join(map(str, jobs))}",
                   "--format=jobidraw,state,account", controller=controller).stdout
    return {int(job): (state, account) for job, state, account in (line.split("|") for line in out.splitlines())}


def recorded(ns, job, state="COMPLETED", controller="demo"):
    wait(f"the record of job {job}", lambda: sacct(ns, job, controller=controller)[job][0] == state)


# Several of these jobs fit on a worker.
SMALL = ("-n1", "--mem=10", "--no-requeue")


def fates(ns, jobs, controller="demo"):
    """Returns how these jobs ended, according to slurmctld: a tuple (job, state, exit code, start, end) for each. Failed: a job
    has not ended."""
    known, out = ns.jobs_of_all_states(controller), []
    for job in (known[number] for number in jobs):
        expect(job["job_state"] in (["COMPLETED"], ["FAILED"]) and job["restart_cnt"] == 0,
               f"job {job['job_id']} is {job['job_state']}, in start {job['restart_cnt'] + 1}")
        code = job["exit_code"]
        out.append((job["job_id"], job["job_state"][0], f"{code['return_code']['number']}:{code['signal']['id']['number']}",
                    job["start_time"]["number"], job["end_time"]["number"]))
    return sorted(out)


def records(ns, jobs, controller="demo"):
    """Returns the records of these jobs in slurmdbd, in the form of fates(). A job with two records is there twice, and a job
    that runs ends at 0."""
    out = ns.slurm("env", "SLURM_TIME_FORMAT=%s", "sacct", "--allusers", "--duplicates", "--noheader", "--parsable2", "--allocations",
                   f"--jobs={','.join(map(str, jobs))}", "--format=jobidraw,state,exitcode,start,end", controller=controller).stdout
    number = lambda text: int(text) if text.isdigit() else 0
    return sorted((int(job), state, code, number(start), number(end)) for job, state, code, start, end in (
        line.split("|") for line in out.splitlines()))


def all_recorded(ns, jobs, controller="demo"):
    """Waits until these jobs have ended and slurmdbd has one record of each, with the same end as in slurmctld."""
    ended = wait("the jobs end", lambda: fates(ns, jobs, controller))

    def same():
        found = records(ns, jobs, controller)
        expect(found == ended, f"not the same: slurmctld {sorted(set(ended) - set(found))[:5]}, slurmdbd {sorted(set(found) - set(ended))[:5]}, "
                               f"{len(found)} records of {len(jobs)} jobs")
        return ended

    return wait("the records of the jobs", same)


def no_runaway_jobs(ns, controller="demo"):
    """Expects that slurmdbd has no running job that slurmctld does not know."""
    said = ns.slurm("sacctmgr", "show", "runawayjobs", controller=controller).stdout
    expect("No runaway jobs found" in said, f"slurmdbd has runaway jobs: {said}")


def remove_by_force(ns, pod):
    ns.kubectl("delete", "pod", pod, "--force", "--grace-period=0")


def kill(ns, pod, program):
    os.kill(process_of(ns.get("pod", pod), program), signal.SIGKILL)


def is_another(ns, pod, before):
    """Reports whether the pod is ready and is another one than before or has restarted containers."""
    now = ns.get("pod", pod)
    starts = lambda it: (it["metadata"]["uid"], [c["restartCount"] for c in it["status"]["containerStatuses"]])
    return starts(now) != starts(before) and all(c["ready"] for c in now["status"]["containerStatuses"])


def keep_away(ns, away):
    """If `away`, no Kubernetes node matches slurmdbd's pod. If not, removes that restriction."""
    ns.patch(ACCOUNTING, "demo", {"spec": {"template": {"spec": {"nodeSelector": {"e2e": "nowhere"} if away else None}}}})


def joined(ns, name="demo"):
    ns.wait_condition(CONTROLLER, name, "AccountingJoined")
    try:
        ns.wait_condition(ACCOUNTING, name, timeout=60)
    except Failed as error:
        # A slurmctld that started without its slurmdbd registers five minutes later. The condition names the command that does
        # it at once.
        if "is not connected to slurmdbd" in str(error):
            ns.slurm("scontrol", "reconfigure", controller=name)
    for kind in (ACCOUNTING, CONTROLLER):
        ns.wait_condition(kind, name)
        ns.wait_condition(kind, name, "Degraded", "False")


def rest(ns, path):
    """Returns slurmrestd's answer to the user slurm."""
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
    """Everything is applied at once, the database last. Problems are reported and resolve themselves."""
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

        # The password is only in its Secret.
        for kind in ("configmaps", "secrets", "pods", "statefulsets", ACCOUNTING, "events"):
            for item in ns.get(kind):
                text = json.dumps(item)
                expect(item["metadata"]["name"] == "mariadb-password" or json.dumps(PASSWORD)[1:-1] not in text,
                       f"{kind}/{item['metadata']['name']} shows the password")

        # Both are down, and jobs continue.
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

        # Settings of the database server that slurmdbd does not recommend.
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

        # The Secret gets another password, and later the database. slurmdbd retries by itself.
        secret(ns, "another")
        ns.wait_condition(ACCOUNTING, "demo", "Degraded", saying="DatabaseRefused: spec.storageConfig.username: slurm")
        query(ns, "alter user slurm@'%' identified by 'another'")
        joined(ns)
        # The user has no right to this database.
        ns.patch(ACCOUNTING, "demo", {"spec": {"storageConfig": {"database": "elsewhere"}}})
        ns.wait_condition(ACCOUNTING, "demo", "Degraded", saying="DatabaseRefused: spec.storageConfig.database: elsewhere")
        ns.patch(ACCOUNTING, "demo", {"spec": {"storageConfig": {"database": "slurm_acct_db"}}})
        joined(ns)
        recorded(ns, job)


@own_clusters
def accounting_with_a_managed_database(tag, plugin):
    """The operator runs the MariaDB. Its records survive the deletion of the Accounting."""
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
        # A new Secret comes with a new password.
        before = ns.get("secret", "demo-mariadb")
        ns.kubectl("delete", "secret", "demo-mariadb")
        wait("there is another password", lambda: ns.get("secret", "demo-mariadb")["data"] != before["data"])
        joined(ns)
        recorded(ns, job)
        ns.kubectl("delete", "pod", "demo-mariadb-0", "--wait=true")
        ns.wait_condition(ACCOUNTING, "demo")
        job_meanwhile = ns.submit("true")
        recorded(ns, job_meanwhile)
        # The Accounting is deleted while slurmctld uses it. It stays, also over a restart of slurmctld.
        before = slurmctld_identity(ns)
        ns.kubectl("delete", ACCOUNTING, "demo", "--wait=false")
        ns.wait_condition(ACCOUNTING, "demo", "Progressing", saying="it is still used by the slurmctld of Controllers: demo")
        ns.kubectl("delete", "pod", "demo-controller-0", "--wait=true")
        wait("there is another slurmctld", lambda: slurmctld_identity(ns)[0] != before[0])
        ns.wait_condition(CONTROLLER, "demo")
        recorded(ns, ns.submit("true"))
        # The cluster stops using the Accounting, so the Accounting is deleted. It is created again.
        ns.patch(CONTROLLER, "demo", {"spec": {"accountingRef": None}})
        wait("the Accounting is gone", lambda: not ns.get(ACCOUNTING, "demo"))
        ns.patch(CONTROLLER, "demo", {"spec": {"accountingRef": {"name": "demo"}}})
        ns.wait_condition(CONTROLLER, "demo", "AccountingJoined", "False", saying="AccountingMissing")
        wait("its pods are gone", lambda: not ns.get("pods", labelSelector="app.kubernetes.io/name in (slurmdbd,slurm-mariadb)"))
        ns.kubectl("apply", "-f", "-", text=json.dumps(accounting))
        joined(ns)
        recorded(ns, job)


@own_clusters
def slurmdbd_and_its_database_are_killed_under_jobs(tag, plugin):
    """slurmdbd and MariaDB are ended in various ways while jobs begin, run and end. Afterwards slurmdbd has one record of each
    job, which agrees with slurmctld."""
    database_image()
    slurmdbd, database = "demo-accounting-0", "demo-mariadb-0"
    with Namespace(f"e2e-killed-{tag.replace('.', '-')}", tag, plugin) as ns:
        ns.apply(manifest_with_accounting("demo", 2))
        ns.kubectl("apply", "-f", "-", text=json.dumps(managed("demo", tag)))
        joined(ns)
        serves(ns, 2)
        through_all = runs(ns, ns.submit_until_told(*SMALL))
        recorded(ns, through_all, "RUNNING")
        jobs = [through_all]

        def some(count):
            """Submits jobs that end within seconds, every third of them with an error."""
            good, bad = ns.submit_many(count * 2, "sleep 1", *SMALL), ns.submit_many(count, "sleep 2; exit 3", *SMALL)
            jobs.extend(good + bad)
            return good + bad, dict.fromkeys(good, "0:0") | dict.fromkeys(bad, "3:0")

        def under_jobs(pod, strike):
            before, (first, codes) = ns.get("pod", pod), some(3)
            # On a busy machine the first job may end before the last one is submitted.
            wait("some of them have begun", lambda: any(state not in ("PENDING", "FORGOTTEN") for state, _ in ns.fates(first)))
            strike(ns, pod)
            second, more = some(2)
            wait(f"{pod} is there again", lambda: is_another(ns, pod, before))
            ended = all_recorded(ns, first + second)
            expect({job: code for job, _, code, _, _ in ended} == codes | more, f"they did not end as their scripts do: {ended}")
            joined(ns)

        under_jobs(slurmdbd, remove_by_force)
        under_jobs(slurmdbd, lambda ns, pod: kill(ns, pod, "slurmdbd"))
        under_jobs(database, remove_by_force)
        under_jobs(database, lambda ns, pod: kill(ns, pod, "mariadbd"))

        # slurmctld keeps unsent records through its own restart.
        keep_away(ns, True)
        ns.wait_condition(CONTROLLER, "demo", "AccountingJoined", "False", saying="AccountingAway")
        kept, _ = some(2)
        wait("they end", lambda: fates(ns, kept))
        before = slurmctld_identity(ns)
        ns.kubectl("delete", "pod", "demo-controller-0", "--wait=true")
        wait("there is another slurmctld", lambda: slurmctld_identity(ns)[0] != before[0])
        ns.wait_condition(CONTROLLER, "demo")
        later, _ = some(2)
        wait("they end", lambda: fates(ns, later))
        keep_away(ns, False)
        joined(ns)
        all_recorded(ns, kept + later)

        wait("the first job runs", lambda: ns.jobs()[through_all]["job_state"] == ["RUNNING"])
        recorded(ns, through_all, "RUNNING")
        ends_well(ns, through_all)
        all_recorded(ns, jobs)
        no_runaway_jobs(ns)
        found = ns.slurm("sacct", "--allusers", "--duplicates", "--noheader", "--allocations", "--starttime=now-1days", "--format=jobidraw").stdout.split()
        expect(sorted(map(int, found)) == sorted(jobs), f"slurmdbd has {len(found)} records of {len(jobs)} jobs")


@own_clusters
def another_database_under_a_slurmctld_that_lives(tag, plugin):
    """Another database has another number for the cluster. slurmctld waits for a person, and no job is lost."""
    database_image()
    database, accounting = manifests()
    with Namespace(f"e2e-number-{tag.replace('.', '-')}", tag, plugin) as ns:
        cluster, waits_for_you = f"{ns.name}_demo", "slurmctld waits for you"
        secret(ns, PASSWORD)
        ns.apply(manifest_with_accounting("demo"))
        ns.apply(database)
        ns.apply(accounting)
        joined(ns)
        serves(ns, 1)
        job, held = runs(ns, ns.submit_until_told(*SMALL)), ns.submit("true", *SMALL, "--hold")
        state_is_written(ns, held)
        both_are_there = lambda: ns.fates([job, held]) == {("RUNNING", 0): 1, ("PENDING", 0): 1}
        number = lambda: query(ns, f"select id from slurm_acct_db.cluster_table where name='{cluster}'").strip()

        def renumber(to):
            query(ns, f"update slurm_acct_db.cluster_table set id={to} where name='{cluster}'")

        def waits(ours, theirs):
            """Returns the commands that the condition names."""
            ns.kubectl("delete", "pod", "demo-controller-0", "--wait=true")
            ns.wait_condition(CONTROLLER, "demo", "AccountingJoined", "False", saying=waits_for_you)
            message = ns.condition(CONTROLLER, "demo", "AccountingJoined")["message"]
            expect(f"is {ours} in slurmctld's state, and {theirs} in the database" in message, message)
            ns.wait_condition(CONTROLLER, "demo", "Degraded", saying="ClusterNumberDiffers")
            time.sleep(5)
            expect(slurmctld_identity(ns)[1] == 0, "slurmctld is started while it waits")
            return [shlex.split(command)[3:] for command in re.findall(r"`(kubectl [^`]*)`", message)]

        ours = number()
        theirs = "4711" if ours != "4711" else "4712"
        # The previous database returns.
        renumber(theirs)
        wait("the running one goes on", both_are_there)
        try_again, _ = waits(ours, theirs)
        renumber(ours)
        ns.kubectl(*try_again)
        joined(ns)
        wait("both jobs are there", both_are_there)
        before = slurmctld_identity(ns)
        ns.kubectl("delete", "pod", "demo-controller-0", "--wait=true")
        wait("there is another slurmctld", lambda: slurmctld_identity(ns)[0] != before[0])
        joined(ns)
        # The first time the other database was a mistake. The second time it stays.
        renumber(theirs)
        try_again, _ = waits(ours, theirs)
        ns.kubectl(*try_again)
        ns.wait_condition(CONTROLLER, "demo", "AccountingJoined", "False", saying="will then wait for your decision")
        ns.wait_condition(CONTROLLER, "demo", "AccountingJoined", "False", saying=waits_for_you)
        _, accept = waits(ours, theirs)
        ns.kubectl(*accept)
        joined(ns)
        wait("both jobs are there", both_are_there)
        ends_well(ns, job)
        ns.slurm("scontrol", "release", str(held))
        ends_well(ns, held)
        all_recorded(ns, [job, held])


@own_clusters
def accounting_with_a_backup(tag, plugin):
    """The primary is killed while jobs run. slurmdbd has one record of each job that ends before the backup serves, ends while
    it serves, or begins there. A backup of 26.05 sends its records only when it is reconfigured or hands over."""
    database_image()
    sends = tag.startswith("24.11")
    with Namespace(f"e2e-dbd-ha-{tag.replace('.', '-')}", tag, plugin) as ns:
        backup, pod = AtBackup(ns), "demo-controller-backup-0"
        primary_serves = lambda timeout=LIMIT: ns.wait_condition(CONTROLLER, "demo", "BackupsReady", saying="demo-controller-0 is primary",
                                                                 timeout=timeout)
        ns.apply(with_a_backup(manifest_with_accounting("demo", 2)))
        ns.kubectl("apply", "-f", "-", text=json.dumps(managed("demo", tag)))
        joined(ns)
        primary_serves()
        serves(ns, 2)
        through_all, ends_there = (runs(ns, ns.submit_until_told("-w", "cpu-0", *SMALL)) for _ in range(2))
        between = runs(ns, ns.submit("until test -e /tmp/may-end; do sleep 0.2; done; exit 3", "-w", "cpu-1", *SMALL))
        waits = ns.submit("true", "-w", "cpu-1", "--hold", *SMALL)
        before = [through_all, ends_there, between]
        for job in before:
            recorded(ns, job, "RUNNING")
        state_is_written(ns, waits)

        # The quota prevents a new primary pod.
        ns.apply("{apiVersion: v1, kind: ResourceQuota, metadata: {name: full}, spec: {hard: {pods: 1}}}")
        wait("the quota is in force", lambda: ns.get("resourcequota", "full")["status"]["hard"])
        remove_by_force(ns, "demo-controller-0")
        wait("the primary has ended", lambda: re.search(r"\(primary\).* is DOWN", backup.slurm("scontrol", "ping", check=False).stdout))
        ns.kubectl("exec", "cpu-1", "-c", "slurmd", "--", "touch", "/tmp/may-end")
        ns.wait_condition(CONTROLLER, "demo", "BackupsReady", "False", saying=f"Slurm is served by {pod}")
        wait("the backup has the end of a job", lambda: fates(backup, [between]))
        if sends:
            recorded(backup, between, "FAILED")
        wait("the job is told to end", lambda: backup.completed(ends_there) or backup.tell(ends_there, "URG"))
        begun = wait("the backup takes jobs", lambda: backup.submit_many(3, "sleep 1", *SMALL))
        begun.append(wait("and one that runs on", lambda: backup.submit_until_told("-w", "cpu-1", *SMALL)))
        wait("it releases the job that was held", lambda: backup.slurm("scontrol", "release", str(waits)))
        runs(backup, begun[-1])
        ended = [ends_there, between, waits, *begun[:-1]]
        wait("the jobs end there", lambda: fates(backup, ended))
        if sends:
            recorded(backup, begun[-1], "RUNNING")
            all_recorded(backup, ended)
        expect(not ns.get("pod", "demo-controller-0"), "the primary has come back")
        for kind, condition in ((ACCOUNTING, "Ready"), (CONTROLLER, "Ready"), (CONTROLLER, "AccountingJoined")):
            ns.wait_condition(kind, "demo", condition)

        ns.kubectl("delete", "resourcequota", "full")
        # Kubernetes has failed to create its pod, and retries with a growing delay.
        primary_serves(3 * LIMIT)
        joined(ns)
        for job in (through_all, begun[-1]):
            wait("what ran all the time runs", lambda job=job: ns.jobs()[job]["job_state"] == ["RUNNING"])
            recorded(ns, job, "RUNNING")
            ends_well(ns, job)
        all_recorded(ns, [*before, waits, *begun])
        no_runaway_jobs(ns)


@once
@own_clusters
def accounting_that_somebody_else_runs(tag, plugin):
    """An Accounting names a slurmdbd that somebody else runs: here that of another Accounting with the same keys."""
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
        ns.wait_condition(ACCOUNTING, "outside", "Serving", saying=f"inside-accounting.{ns.name}:6819")
        serves(ns, 1)
        recorded(ns, ns.submit("true"))
        expect(not ns.get("service", "outside-accounting"), "something was made for a slurmdbd of somebody else")

        # Another name of the same slurmdbd, which does not resolve first, and then has no backend. slurmctld is not restarted for it.
        job = runs(ns, ns.submit_until_told(*SMALL))
        service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "late"}, "spec": {"selector": {"e2e": "nothing"}, "ports": [{"port": 6819}]}}
        late = external | {"metadata": {"name": "late"}, "spec": {"external": True, "externalConfig": {"host": f"late.{ns.name}", "port": 6819}}}
        before = slurmctld_identity(ns)
        ns.kubectl("apply", "-f", "-", text=json.dumps(late))
        ns.patch(CONTROLLER, "demo", {"spec": {"accountingRef": {"name": "late"}}})
        ns.wait_condition(ACCOUNTING, "late", "Serving", "False", saying=f"late.{ns.name}:6819: resolve: ")
        ns.kubectl("apply", "-f", "-", text=json.dumps(service))
        ns.wait_condition(ACCOUNTING, "late", "Serving", "False", saying=f"late.{ns.name}:6819: connect: ")
        ns.wait_condition(CONTROLLER, "demo", "AccountingJoined", "False", saying="Waiting")
        ns.wait_condition(CONTROLLER, "demo")
        expect(slurmctld_identity(ns) == before, "slurmctld was restarted for a slurmdbd that does not answer")
        ns.patch("service", "late", {"spec": {"selector": {"e2e": None} | ns.get("service", "inside-accounting")["spec"]["selector"]}})
        ns.wait_condition(CONTROLLER, "demo", "AccountingJoined", saying=f"late.{ns.name}:6819")
        ns.wait_condition(ACCOUNTING, "late")
        recorded(ns, job, "RUNNING")
        ends_well(ns, job)
        all_recorded(ns, [job])


@once
@own_clusters
def accounting_that_two_clusters_share(tag, plugin):
    """The database grants the rights late, two clusters share one slurmdbd, the Secret of their key gets new data, and
    everything is deleted at once: the last job is recorded, and nothing is left."""
    database_image()
    database, accounting = manifests()
    with Namespace(f"e2e-shared-{tag.replace('.', '-')}", tag, plugin) as ns:
        both, jwt = ("demo", "other"), os.urandom(32)

        def put_keys():
            data = {name: base64.b64encode(key).decode() for name, key in (("slurm", os.urandom(1024)), ("jwt", jwt))}
            ns.kubectl("apply", "-f", "-", text=json.dumps({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "site"}, "data": data}))

        def all_joined():
            joined(ns)
            for condition, status in (("AccountingJoined", "True"), ("Ready", "True"), ("Degraded", "False")):
                ns.wait_condition(CONTROLLER, "other", condition, status)

        put_keys()
        secret(ns, PASSWORD)
        ns.apply(database)
        ns.kubectl("wait", "--for=condition=Available", "deployment/mariadb", "--timeout=300s")
        query(ns, "revoke all on slurm_acct_db.* from slurm@'%'")
        ns.apply(accounting)
        manifest = manifest_with_accounting("demo").replace(
            "  extraConf: |\n", "  slurmKeyRef: {name: site, key: slurm}\n  jwtKeyRef: {name: site, key: jwt}\n  extraConf: |\n", 1)
        ns.apply(manifest)
        ns.apply(manifest.replace("name: demo\n", "name: other\n").replace("name: cpu\n", "name: more\n"))
        ns.wait_condition(ACCOUNTING, "demo", "Degraded", saying="DatabaseRefused: spec.storageConfig.database: slurm_acct_db")
        query(ns, "grant all on slurm_acct_db.* to slurm@'%'")
        all_joined()
        serves(ns, 1)
        ns.wait_condition(NODESET, "more")

        jobs = {name: ns.submit("true", controller=name) for name in both}
        for name, job in jobs.items():
            recorded(ns, job, controller=name)
        said = ns.slurm("sacct", "--allclusters", "--allusers", "--noheader", "--parsable2", "--allocations", "--starttime=now-1days",
                        "--format=jobidraw,cluster,state").stdout
        wanted = sorted(f"{job}|{ns.name}_{name}|COMPLETED" for name, job in jobs.items())
        expect(sorted(said.split()) == wanted, f"sacct has {said.split()}, not {wanted}")

        # The younger cluster gets a new key. slurmdbd keeps the older cluster's key until that cluster gets the new key too.
        put_keys()
        for name in both:
            wait(f"{name} waits", lambda name=name: ns.condition(CONTROLLER, name, "KeyChanged"))
        ns.scale("more", 0)
        ns.wait_condition(ACCOUNTING, "demo", "Degraded", saying="KeyDiffers: slurmdbd refuses the slurmctld of Controllers other: ")
        ns.scale("cpu", 0)
        for name in both:
            wait(f"{name} has it", lambda name=name: not ns.condition(CONTROLLER, name, "KeyChanged"))
        all_joined()

        ns.scale("cpu", 1)
        serves(ns, 1)
        ns.patch(CONTROLLER, "demo", {"spec": {"deletionPolicy": "Drain"}})
        job = runs(ns, ns.submit("until test -e /tmp/may-end; do sleep 0.2; done", *SMALL))
        recorded(ns, job, "RUNNING")
        kinds = (CONTROLLER, ACCOUNTING, RESTAPI, NODESET)
        ns.kubectl("delete", ",".join(kinds), "--all", "--wait=false")
        ns.wait_condition(ACCOUNTING, "demo", "Progressing", saying="waiting for Controllers to be deleted: demo")
        ns.kubectl("exec", "cpu-0", "-c", "slurmd", "--", "touch", "/tmp/may-end")
        daemons = {"labelSelector": "app.kubernetes.io/name in (slurmctld,slurmd,slurmrestd,slurmdbd)"}
        wait("nothing is left", lambda: not any(map(ns.get, kinds)) and not ns.get("pods", **daemons), 2 * LIMIT)
        row = query(ns, f"select state, exit_code, time_end > 0 from slurm_acct_db.`{ns.name}_demo_job_table` where id_job={job}").split()
        expect(row == ["3", "0", "1"], f"slurmdbd has of the last job: {row}")


@own_clusters
def accounting_joins_and_leaves_under_jobs(tag, plugin):
    """slurmctld restarts once when the cluster joins and once when it leaves, and no job is lost."""
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
        # slurmctld restarts without its slurmdbd.
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
        # Back to accounting: the database knows the cluster.
        ns.patch(CONTROLLER, "demo", {"spec": {"accountingRef": {"name": "demo"}}})
        joined(ns)
        job = ns.submit("true")
        recorded(ns, job)

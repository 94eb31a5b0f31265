"""End-to-end tests of SlurmQos, SlurmAccount and SlurmUser, with a real slurmdbd and a real MariaDB. run.py runs them."""

import json
import time

from accounting import database_image, joined, managed, manifest_with_accounting, recorded, sacct
from cluster import Failed, Namespace, wait
from faults import Proofs
from suite import expect, own_clusters, runs, serves

QOS, ACCOUNT, USER = (f"{kind}.slinky.slurm.net" for kind in ("slurmqoses", "slurmaccounts", "slurmusers"))
RESTAPI = "restapis.slinky.slurm.net"


def declared(kind, name, spec):
    return {"apiVersion": "slinky.slurm.net/v1beta1", "kind": kind, "metadata": {"name": name} | spec.pop("metadata", {}),
            "spec": {"accountingRef": {"name": "demo"}} | spec}


def qos(name, /, **spec):
    return declared("SlurmQos", name, spec)


def account(name, /, **spec):
    return declared("SlurmAccount", name, spec)


def user(name, /, *associations, **spec):
    return declared("SlurmUser", name, {"associations": list(associations)} | spec)


def apply(ns, *objects):
    ns.kubectl("apply", "-f", "-", text=json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))


def show(ns, name, *fields):
    """Returns the fields of a QOS as sacctmgr prints them; None if there is no such QOS."""
    out = ns.slurm("sacctmgr", "--noheader", "--parsable2", "show", "qos", name, f"format={','.join(fields)}").stdout.splitlines()
    return dict(zip(fields, out[0].split("|"))) if out else None


def shows(ns, name, **wanted):
    wait(f"sacctmgr shows QOS {name}: {wanted}", lambda: show(ns, name, *wanted) == wanted)


def sacctmgr(ns, *words):
    ns.slurm("sacctmgr", "--immediate", *words)


def transactions(ns):
    """Returns what has been changed in slurmdbd. Leaves out the registration of a cluster, which slurmctld may repeat at any
    time."""
    lines = ns.slurm("sacctmgr", "--noheader", "--parsable2", "show", "transactions", "format=timestamp,action,info").stdout.splitlines()
    return [line for line in lines if "Cluster" not in line.split("|")[1]]


def rows(ns, *words, fields):
    """Returns what `sacctmgr show WORDS` prints: a dictionary for each line."""
    out = ns.slurm("sacctmgr", "--noheader", "--parsable2", "show", *words, f"format={','.join(fields)}").stdout
    return [dict(zip(fields, line.split("|"))) for line in out.splitlines()]


def association(ns, of_account, of_user="", fields=()):
    """Returns the fields of an association; None if there is none. Without a user it is the association of the account
    itself."""
    found = rows(ns, "association", f"account={of_account}", fields=("User", *fields))
    return next(({field: row[field] for field in fields} for row in found if row["User"] == of_user), None)


def association_shows(ns, of_account, of_user="", /, **wanted):
    wait(f"sacctmgr shows the association of {of_user or 'all'} in account {of_account}: {wanted}",
         lambda: association(ns, of_account, of_user, tuple(wanted)) == wanted)


def entity_shows(ns, entity, name, /, **wanted):
    """Waits until sacctmgr shows these fields of an account or user."""
    wait(f"sacctmgr shows {entity} {name}: {wanted}", lambda: rows(ns, entity, name, "withcoordinator", fields=tuple(wanted)) == [wanted])


def observed(ns, kind, name):
    """Waits until the operator has seen the present spec."""
    def seen():
        found = ns.get(kind, name)
        return found["status"]["observedGeneration"] == found["metadata"]["generation"]

    wait(f"{kind}/{name} is observed", seen)


class AsGames(Namespace):
    """The same namespace, with jobs submitted by an ordinary user that each image has, on the first worker. Slurm's own user
    and root may use every QOS."""

    def __init__(self, ns):
        super().__init__(ns.name, ns.tag, ns.cgroup_plugin)

    def submit(self, script, *options, controller="demo"):
        out = self.kubectl("exec", "cpu-0", "-c", "slurmd", "--", "setpriv", "--reuid=games", "--regid=games", "--clear-groups", "env",
                           "HOME=/tmp", "sbatch", "--parsable", "--chdir=/tmp", "--output=/dev/null", *options, f"--wrap={script}").stdout
        return int(out.strip().split(";")[0])


def events(ns, reason):
    return [event["message" if "message" in event else "note"] for event in ns.get("events") if event["reason"] == reason]


@own_clusters
def qos_are_declared(tag, plugin):
    """SlurmQos become QOS, drift is reverted, one of two resources owns a QOS, and a QOS that is in use is not deleted."""
    database_image()
    with Namespace(f"e2e-qos-{tag.replace('.', '-')}", tag, plugin) as ns:
        ns.apply(manifest_with_accounting("demo"))
        ns.kubectl("apply", "-f", "-", text=json.dumps(managed("demo", tag)))
        gpu = qos("gpu", description="Jobs on GPUs", priority=100, flags=["DenyOnLimit", "NoDecay"], usageFactor="1.5", graceTime="90s",
                  preempt=["low"], preemptMode="Requeue",
                  limits={"grpJobs": 4, "maxWallDurationPerJob": "72:00:00", "grpTRES": {"cpu": 64, "mem": "100G"}})
        # Applied in one file, in the wrong order, before there is a slurmdbd.
        apply(ns, gpu, qos("low"), qos("spare"))
        joined(ns)
        serves(ns, 1)
        for name in ("gpu", "low", "spare"):
            ns.wait_condition(QOS, name)
            ns.wait_condition(QOS, name, "Synced")
        shows(ns, "gpu", Name="gpu", Priority="100", Flags="DenyOnLimit,NoDecay", UsageFactor="1.500000", GraceTime="00:01:30",
              Preempt="low", PreemptMode="requeue", GrpJobs="4", MaxWall="3-00:00:00", GrpTRES="cpu=64,mem=100G")
        status = ns.get(QOS, "gpu")["status"]
        expect(status["ready"] and status["id"] and status["observedGeneration"] == 1, f"status: {status}")

        # The same declaration in another spelling causes no write.
        before = ns.slurm("sacctmgr", "--noheader", "--parsable2", "show", "transactions", "action=Modify QOS", "format=timestamp,info").stdout
        again = json.loads(json.dumps(gpu))
        again["spec"]["limits"]["maxWallDurationPerJob"] = "3-00:00:00"
        apply(ns, again)
        wait("it is observed", lambda: ns.get(QOS, "gpu")["status"]["observedGeneration"] == 2)
        ns.wait_condition(QOS, "gpu", "Synced")
        after = ns.slurm("sacctmgr", "--noheader", "--parsable2", "show", "transactions", "action=Modify QOS", "format=timestamp,info").stdout
        expect(before == after, f"it was written again: {after}")

        # Somebody changes declared fields.
        sacctmgr(ns, "modify", "qos", "gpu", "set", "GrpJobs=20")
        shows(ns, "gpu", GrpJobs="4")
        wait("the event tells both values", lambda: any("GrpJobs is 20, wanted 4" in note for note in events(ns, "DriftMended")))
        sacctmgr(ns, "delete", "qos", "spare")
        shows(ns, "spare", Name="spare")
        # A field that is not declared is left alone.
        sacctmgr(ns, "modify", "qos", "gpu", "set", "MaxJobsPerUser=3")
        ns.patch(QOS, "gpu", {"spec": {"priority": 50, "flags": None}})
        shows(ns, "gpu", Priority="50", Flags="", MaxJobsPU="3", GrpJobs="4")
        ns.patch(QOS, "gpu", {"spec": {"policy": "Observe"}})
        wait("it is observed", lambda: ns.get(QOS, "gpu")["status"]["observedGeneration"] == ns.get(QOS, "gpu")["metadata"]["generation"])
        sacctmgr(ns, "modify", "qos", "gpu", "set", "GrpJobs=21")
        ns.wait_condition(QOS, "gpu", "Synced", "False", saying="GrpJobs is 21, wanted 4")
        ns.patch(QOS, "gpu", {"spec": {"policy": "Enforce"}})
        shows(ns, "gpu", GrpJobs="4")

        # A QOS that others preempt is not deleted.
        ns.kubectl("delete", QOS, "low", "--wait=false")
        ns.wait_condition(QOS, "low", "Synced", "False", saying="QOS low is not deleted: it is preempted by QOS gpu")

        # Another SlurmQos for the same QOS.
        apply(ns, qos("rival", name="gpu", limits={"grpJobs": 9}))
        ns.wait_condition(QOS, "rival", "Synced", "False", saying="QOS gpu belongs to SlurmQos gpu")
        shows(ns, "gpu", GrpJobs="4", Priority="50")
        ns.kubectl("delete", QOS, "gpu", "--wait=true")
        ns.wait_condition(QOS, "rival", "Synced", "False", saying="Run: sacctmgr modify qos gpu set preempt=")
        sacctmgr(ns, "modify", "qos", "gpu", "set", "preempt=")
        ns.wait_condition(QOS, "rival", "Synced")
        wait("QOS low is deleted", lambda: not ns.get(QOS, "low") and show(ns, "low", "Name") is None)
        shows(ns, "gpu", GrpJobs="9", Priority="0", GrpTRES="", MaxJobsPU="3")

        # A QOS of somebody else, and settings that cannot be written.
        sacctmgr(ns, "add", "qos", "foreign", "Priority=7")
        apply(ns, qos("foreign", limits={"grpJobs": 1}), qos("tres", limits={"grpTRES": {"gres/gpu": 1}}),
              qos("raw", config={"priority": 5, "limits": {"max": {"jobz": 1}}}))
        ns.wait_condition(QOS, "foreign", "Synced", "False", saying="AlreadyExists")
        ns.wait_condition(QOS, "tres", "Synced", "False", saying="gres/gpu")
        ns.wait_condition(QOS, "raw", "Synced", "False", saying="limits.max.jobz: unknown")
        shows(ns, "foreign", Priority="7", GrpJobs="")
        ns.patch(QOS, "foreign", {"spec": {"adoption": "Adopt"}})
        ns.patch(QOS, "raw", {"spec": {"config": {"limits": None}}})
        shows(ns, "foreign", Priority="7", GrpJobs="1")
        shows(ns, "raw", Priority="5")
        warning = ns.kubectl("apply", "--dry-run=server", "-f", "-", text=json.dumps(qos("normal"))).stderr
        expect("normal is Slurm's built-in QOS" in warning, f"no warning: {warning}")

        # Deletions.
        sacctmgr(ns, "add", "account", "physics")
        sacctmgr(ns, "add", "user", "slurm", "account=physics", "qos=normal,gpu", "defaultqos=gpu")
        ns.kubectl("delete", QOS, "rival", "--wait=false")
        ns.wait_condition(QOS, "rival", "Synced", "False", saying="account physics, user slurm")
        sacctmgr(ns, "modify", "user", "slurm", "set", "defaultqos=normal")
        wait("it is deleted", lambda: not ns.get(QOS, "rival") and show(ns, "gpu", "Name") is None)
        ns.kubectl("delete", QOS, "--all", "--wait=true")
        names = ns.slurm("sacctmgr", "--noheader", "--parsable2", "show", "qos", "format=name").stdout.split()
        expect(names == ["normal"], f"left over: {names}")


# Several of these jobs fit on a worker.
SMALL = ("-n1", "--mem=10")


def enforcing(manifest):
    """Returns the demo's cluster, where slurmctld runs only jobs of associations, within their limits and QOS."""
    line = "    TaskPlugin=task/none\n"
    expect(line in manifest, "the demo's manifest has changed")
    return manifest.replace(line, f"{line}    AccountingStorageEnforce=associations,limits,qos\n")


def declarations():
    """Returns the manifests by name, in the wrong order: users, accounts below others, their parents, a QOS."""
    return {
        "games": user("games", {"account": "optics", "limits": {"maxJobs": 4}, "fairShare": 3}, {"account": "physics"}, {"account": "nvidia"},
                      defaultAccount="physics"),
        "mail": user("mail", {"account": "nvidia"}, adminLevel="Operator"),
        "optics": account("optics", parent="physics", fairShare=10,
                          limits={"maxTRESPerJob": {"cpu": 8}, "maxWallDurationPerJob": "12:00:00"}),
        # This account may not use the QOS gpu.
        "nvidia": account("nvidia", qos=["normal"], defaultQOS="normal"),
        "physics": account("physics", description="department", organization="science", coordinators=["games"], fairShare=40,
                           qos=["gpu", "normal"], defaultQOS="normal", limits={"grpJobs": 20, "maxJobs": 5, "grpTRES": {"cpu": 64}}),
        "gpu": qos("gpu", priority=100)}


PLURAL = {"SlurmQos": QOS, "SlurmAccount": ACCOUNT, "SlurmUser": USER}


def all_as_declared(ns):
    association_shows(ns, "physics", ParentName="root", Fairshare="40", GrpJobs="20", MaxJobs="5", GrpTRES="cpu=64", DefaultQOS="normal",
                      QOS="gpu,normal")
    association_shows(ns, "optics", ParentName="physics", Fairshare="10", MaxTRES="cpu=8", MaxWall="12:00:00")
    association_shows(ns, "nvidia", ParentName="root", DefaultQOS="normal", QOS="normal")
    association_shows(ns, "optics", "games", Fairshare="3", MaxJobs="4")
    association_shows(ns, "physics", "games", Account="physics")
    association_shows(ns, "nvidia", "games", QOS="normal")
    association_shows(ns, "nvidia", "mail", QOS="normal")
    entity_shows(ns, "account", "physics", Account="physics", Description="department", Organization="science", Coordinators="games")
    entity_shows(ns, "user", "games", User="games", AdminLevel="None", DefaultAccount="physics")
    entity_shows(ns, "user", "mail", User="mail", AdminLevel="Operator", DefaultAccount="nvidia")


@own_clusters
def accounts_are_declared(tag, plugin):
    """SlurmAccounts and SlurmUsers become accounts and users, in the order that Slurm needs. Drift is reverted, one of two
    resources owns an account, Slurm enforces the declared limits, and whatever a job uses is not deleted."""
    database_image()
    with Namespace(f"e2e-accounts-{tag.replace('.', '-')}", tag, plugin) as ns:
        proofs = Proofs(AsGames(ns))
        ns.apply(proofs.added_to(enforcing(manifest_with_accounting("demo"))))
        ns.kubectl("apply", "-f", "-", text=json.dumps(managed("demo", tag)))
        # All applied in one file, before there is a slurmdbd.
        wanted = declarations()
        apply(ns, *wanted.values())
        joined(ns)
        serves(ns, 1)
        for name, item in wanted.items():
            ns.wait_condition(PLURAL[item["kind"]], name)
            ns.wait_condition(PLURAL[item["kind"]], name, "Synced", saying="InSync")
            status = ns.get(PLURAL[item["kind"]], name)["status"]
            expect(status["ready"] and status["applied"] and status["observedGeneration"] == 1, f"status of {name}: {status}")
        all_as_declared(ns)

        said_otherwise(ns)
        drift_is_mended(ns)
        some_is_left_to_others(ns)
        one_owns_it(ns)
        jobs_are_refused(ns)
        deleted_all_at_once(ns, proofs)


def said_otherwise(ns):
    """The same declarations in another spelling cause no write."""
    before = transactions(ns)
    again = declarations()
    again["optics"]["spec"]["limits"] = {"maxTRESPerJob": {"cpu": "8"}, "maxWallDurationPerJob": "12h"}
    again["physics"]["spec"]["qos"] = ["normal", "gpu"]
    again["games"]["spec"]["associations"].reverse()
    apply(ns, *again.values())
    for name in ("physics", "optics"):
        observed(ns, ACCOUNT, name)
        ns.wait_condition(ACCOUNT, name, "Synced")
    observed(ns, USER, "games")
    ns.wait_condition(USER, "games", "Synced")
    expect(transactions(ns) == before, f"it was written again: {transactions(ns)[len(before):]}")
    apply(ns, *declarations().values())


def drift_is_mended(ns):
    sacctmgr(ns, "modify", "account", "physics", "set", "GrpTRES=cpu=128", "MaxJobs=9")
    association_shows(ns, "physics", GrpTRES="cpu=64", MaxJobs="5")
    wait("the event tells both values", lambda: any("GrpTRES/cpu is 128, wanted 64" in note for note in events(ns, "DriftMended")))
    sacctmgr(ns, "modify", "account", "optics", "set", "parent=root")
    association_shows(ns, "optics", ParentName="physics")
    sacctmgr(ns, "delete", "coordinator", "account=physics", "names=games")
    entity_shows(ns, "account", "physics", Coordinators="games")
    sacctmgr(ns, "modify", "user", "mail", "set", "AdminLevel=None")
    entity_shows(ns, "user", "mail", AdminLevel="Operator")
    sacctmgr(ns, "modify", "user", "where", "name=games", "account=optics", "set", "MaxJobs=99")
    association_shows(ns, "optics", "games", MaxJobs="4")
    # What was deleted is there again, with all settings.
    sacctmgr(ns, "delete", "user", "mail")
    entity_shows(ns, "user", "mail", User="mail", AdminLevel="Operator", DefaultAccount="nvidia")
    sacctmgr(ns, "delete", "user", "name=games", "account=optics")
    association_shows(ns, "optics", "games", Fairshare="3", MaxJobs="4")
    # It is nobody's default account, so Slurm deletes it with its users' associations.
    sacctmgr(ns, "delete", "account", "optics")
    all_as_declared(ns)
    wait("events tell of it", lambda: any("account optics had been deleted" in note for note in events(ns, "DriftMended")))


def some_is_left_to_others(ns):
    """A field that is not declared is left alone, a field that is no longer declared is reset, and policy Observe writes
    nothing."""
    sacctmgr(ns, "modify", "account", "physics", "set", "GrpSubmitJobs=77")
    ns.patch(ACCOUNT, "physics", {"spec": {"description": None, "limits": {"grpJobs": None}}})
    association_shows(ns, "physics", GrpJobs="", GrpSubmitJobs="77", MaxJobs="5", GrpTRES="cpu=64", QOS="gpu,normal")
    entity_shows(ns, "account", "physics", Organization="science", Coordinators="games")
    ns.patch(USER, "mail", {"spec": {"adminLevel": None}})
    entity_shows(ns, "user", "mail", AdminLevel="None")
    ns.patch(USER, "games", {"spec": {"associations": [{"account": "physics"}, {"account": "nvidia"}]}})
    wait("the association is deleted", lambda: association(ns, "optics", "games") is None and association(ns, "physics", "games") == {})

    ns.patch(ACCOUNT, "physics", {"spec": {"policy": "Observe"}})
    observed(ns, ACCOUNT, "physics")
    sacctmgr(ns, "modify", "account", "physics", "set", "GrpTRES=cpu=99")
    ns.wait_condition(ACCOUNT, "physics", "Synced", "False", saying="GrpTRES/cpu is 99, wanted 64")
    association_shows(ns, "physics", GrpTRES="cpu=99")
    ns.patch(ACCOUNT, "physics", {"spec": {"policy": "Enforce"}})
    association_shows(ns, "physics", GrpTRES="cpu=64")


def one_owns_it(ns):
    """Names are compared without case. What somebody else has created is adopted only if spec.adoption says so."""
    apply(ns, account("second", name="Physics", limits={"maxJobs": 1}), user("twin", {"account": "physics"}, name="GAMES", adminLevel="Operator"))
    ns.wait_condition(ACCOUNT, "second", "Synced", "False", saying="Conflicted")
    ns.wait_condition(ACCOUNT, "second", "Synced", "False", saying="belongs to SlurmAccount physics")
    ns.wait_condition(USER, "twin", "Synced", "False", saying="belongs to SlurmUser games")
    association_shows(ns, "physics", MaxJobs="5")
    entity_shows(ns, "user", "games", AdminLevel="None")
    ns.kubectl("delete", f"{ACCOUNT},{USER}", "second", "twin", "--ignore-not-found", "--wait=true")
    association_shows(ns, "physics", MaxJobs="5")

    sacctmgr(ns, "add", "account", "foreign", "Fairshare=7")
    sacctmgr(ns, "add", "user", "news", "account=foreign", "Fairshare=8")
    apply(ns, account("foreign", limits={"grpJobs": 3}), user("news", {"account": "foreign", "limits": {"maxJobs": 1}}))
    for kind, name in ((ACCOUNT, "foreign"), (USER, "news")):
        ns.wait_condition(kind, name, "Synced", "False", saying="AlreadyExists")
    association_shows(ns, "foreign", Fairshare="7", GrpJobs="")
    association_shows(ns, "foreign", "news", Fairshare="8", MaxJobs="")
    for kind, name in ((ACCOUNT, "foreign"), (USER, "news")):
        ns.patch(kind, name, {"spec": {"adoption": "Adopt"}})
        ns.wait_condition(kind, name, "Synced")
    association_shows(ns, "foreign", Fairshare="7", GrpJobs="3")
    association_shows(ns, "foreign", "news", Fairshare="8", MaxJobs="1")


def jobs_are_refused(ns):
    """A job runs in a QOS that its account may use. It is refused in another QOS, and in an account to which its user does not
    belong."""
    games = AsGames(ns)
    job = games.submit("true", "--account=physics", "--qos=gpu", *SMALL)
    recorded(ns, job)
    expect(sacct(ns, job)[job][1] == "physics", f"another account: {sacct(ns, job)}")
    job = games.submit("true", "--account=nvidia", *SMALL)
    recorded(ns, job)
    for options, words in ((("--account=nvidia", "--qos=gpu"), "Invalid qos specification"),
                           (("--account=foreign",), "Invalid account or account/partition combination")):
        try:
            job = games.submit("true", *options, *SMALL)
        except Failed as refusal:
            expect(words in str(refusal), f"{options} is refused for another reason: {refusal}")
        else:
            raise Failed(f"Slurm took job {job} with {options}")


def deleted_all_at_once(ns, proofs):
    """An account with users stays. So does everything that a job uses, until the job has ended by itself. Then nothing is
    left."""
    job = runs(ns, proofs.submit("uses", "--account=physics", "--qos=gpu", *SMALL))
    wait("its script runs", lambda: proofs.of("uses") == ["begun"])
    ns.kubectl("delete", ACCOUNT, "physics", "--wait=false")
    ns.wait_condition(ACCOUNT, "physics", "Synced", "False", saying="InUse: account physics is not deleted")
    ns.kubectl("delete", f"{USER},{ACCOUNT},{QOS}", "--all", "--wait=false")
    for kind, name, what in ((USER, "games", "user"), (ACCOUNT, "physics", "account"), (QOS, "gpu", "QOS")):
        ns.wait_condition(kind, name, "Synced", "False", saying=f"InUse: {what} {name} is not deleted")
    wait("what no job uses is gone", lambda: not (ns.get(USER, "mail") or ns.get(USER, "news") or ns.get(ACCOUNT, "foreign")))
    expect(association(ns, "physics", "games") == {}, "the association of the job is gone")
    proofs.ends_well("uses", job)
    wait("all are gone", lambda: not ns.get(USER) and not ns.get(ACCOUNT) and not ns.get(QOS))
    left = {entity: sorted(row[field] for row in rows(ns, entity, fields=(field,)))
            for entity, field in (("user", "User"), ("account", "Account"), ("qos", "Name"))}
    expect(left == {"user": ["root"], "account": ["root"], "qos": ["normal"]}, f"left over: {left}")
    expect({row["Account"] for row in rows(ns, "association", fields=("Account",))} == {"root"}, "an association is left over")


@own_clusters
def limits_follow_capacity(tag, plugin):
    """A limit that is an expression rises as soon as there are more nodes, and falls later. It does not change while the nodes
    are unknown."""
    database_image()
    with Namespace(f"e2e-capacity-{tag.replace('.', '-')}", tag, plugin) as ns:
        ns.apply(manifest_with_accounting("demo", 2))
        ns.kubectl("apply", "-f", "-", text=json.dumps(managed("demo", tag)))
        apply(ns, qos("half", limits={"grpTRES": {"node": "50%", "cpu": "all - 1"}, "maxTRESPerUser": {"cpu": "partition(cpu) * 0.25"}}))
        joined(ns)
        serves(ns, 2)
        follows(ns, nodes=2)
        ns.wait_condition(QOS, "half", "Synced", saying="InSync")
        # A value that somebody else sets is drift.
        sacctmgr(ns, "modify", "qos", "half", "set", "GrpTRES=node=9")
        follows(ns, nodes=2)

        ns.scale("cpu", 4)
        serves(ns, 4)
        follows(ns, nodes=4)

        # A draining node does not count as capacity. The limit stays for a while.
        ns.slurm("scontrol", "update", "nodename=cpu-3", "state=drain", "reason=admin: looking at it")
        lower = wait("a lower value is told", lambda: [item for item in in_force(ns) if item.get("lowerSince")] or None)
        expect(all(item["value"] == VALUES[4][item["expression"]] for item in lower), f"it fell at once: {lower}")
        follows(ns, nodes=3)
        ns.slurm("scontrol", "update", "nodename=cpu-3", "state=resume")
        serves(ns, 4)
        follows(ns, nodes=4)

        # Nothing is written while Slurm does not answer, nor when it has been away.
        before = transactions(ns)
        ns.kubectl("delete", "pod", "demo-controller-0", "--wait=true")
        serves(ns, 4)
        stays(ns, before)
        ns.patch(RESTAPI, "demo", {"spec": {"replicas": 0}})
        wait("slurmrestd is away", lambda: not ns.get("pods", labelSelector="app.kubernetes.io/name=slurmrestd"))
        stays(ns, before)
        ns.patch(RESTAPI, "demo", {"spec": {"replicas": 1}})
        serves(ns, 4)
        ns.wait_condition(QOS, "half", "Synced", saying="InSync")
        stays(ns, before)

        ns.scale("cpu", 2)
        serves(ns, 2)
        follows(ns, nodes=2)

        # An expression that has no value is reported. The API server refuses unknown words; the operator checks the rest.
        apply(ns, qos("nowhere", priority=3, limits={"grpTRES": {"node": "partition(nowhere) * 0.5"}}),
              qos("wrong", limits={"grpTRES": {"node": "all - (8"}}))
        ns.wait_condition(QOS, "nowhere", "Synced", "False", saying="nowhere")
        ns.wait_condition(QOS, "wrong", "Synced", "False", saying="Invalid")
        words = qos("words", limits={"grpTRES": {"node": "50% of all"}})
        refused = ns.kubectl("apply", "-f", "-", text=json.dumps(words), check=False)
        expect(refused.returncode != 0 and "spec.limits.grpTRES" in refused.stderr, f"not refused: {refused.stdout}{refused.stderr}")


# The values of the expressions, by the number of workers with 2 CPUs each.
VALUES = {nodes: {"50%": nodes // 2, "all - 1": 2 * nodes - 1, "partition(cpu) * 0.25": 2 * nodes // 4} for nodes in (2, 3, 4)}


def in_force(ns):
    return ns.get(QOS, "half")["status"]["capacityLimits"]


def follows(ns, nodes):
    """Waits until slurmdbd and the status have the values for so many nodes."""
    values = VALUES[nodes]
    shows(ns, "half", GrpTRES=f"cpu={values['all - 1']},node={values['50%']}", MaxTRESPU=f"cpu={values['partition(cpu) * 0.25']}")
    inputs = {"50%": {"all": nodes}, "all - 1": {"all": 2 * nodes}, "partition(cpu) * 0.25": {"partition(cpu)": 2 * nodes}}
    wait(f"the status has the values for {nodes} nodes", lambda: {item["expression"]: (item["value"], item["inputs"]) for item in in_force(ns)} == {
        expression: (values[expression], inputs[expression]) for expression in values})
    expect({item["cluster"] for item in in_force(ns)} == {"demo"}, f"another cluster: {in_force(ns)}")


def stays(ns, before):
    """Expects that nothing is written for longer than it takes until a limit falls. In Slurm the limit still is the value for
    four nodes."""
    for _ in range(45):
        time.sleep(1)
        expect({item["expression"]: item["value"] for item in in_force(ns)} == VALUES[4], f"it changed: {in_force(ns)}")
    shows(ns, "half", GrpTRES="cpu=7,node=2", MaxTRESPU="cpu=2")
    expect(transactions(ns) == before, f"something was written: {transactions(ns)[len(before):]}")

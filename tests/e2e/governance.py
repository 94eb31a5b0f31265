"""End-to-end tests of SlurmQos, with a real slurmdbd and a real MariaDB. run.py runs them."""

import json

from accounting import database_image, joined, managed, manifest_with_accounting
from cluster import Namespace, wait
from suite import expect, own_clusters, serves

QOS = "slurmqoses.slinky.slurm.net"


def qos(name, /, **spec):
    created = spec.pop("metadata", {})
    return {"apiVersion": "slinky.slurm.net/v1beta1", "kind": "SlurmQos", "metadata": {"name": name} | created,
            "spec": {"accountingRef": {"name": "demo"}} | spec}


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


def events(ns, reason):
    return [event["message" if "message" in event else "note"] for event in ns.get("events") if event["reason"] == reason]


@own_clusters
def qos_are_declared(tag, plugin):
    """SlurmQos become QOS, drift is mended, one of two resources owns a QOS, and a QOS in use is not deleted."""
    database_image()
    with Namespace(f"e2e-qos-{tag.replace('.', '-')}", tag, plugin) as ns:
        ns.apply(manifest_with_accounting("demo"))
        ns.kubectl("apply", "-f", "-", text=json.dumps(managed("demo", tag)))
        gpu = qos("gpu", description="Jobs on GPUs", priority=100, flags=["DenyOnLimit", "NoDecay"], usageFactor="1.5", graceTime="90s",
                  preempt=["low"], preemptMode="Requeue",
                  limits={"grpJobs": 4, "maxWallDurationPerJob": "72:00:00", "grpTRES": {"cpu": 64, "mem": "100G"}})
        # Both in one file, in the wrong order, before there is a slurmdbd.
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

        # The same again, with other words for it, writes nothing.
        before = ns.slurm("sacctmgr", "--noheader", "--parsable2", "show", "transactions", "action=Modify QOS", "format=timestamp,info").stdout
        again = json.loads(json.dumps(gpu))
        again["spec"]["limits"]["maxWallDurationPerJob"] = "3-00:00:00"
        apply(ns, again)
        wait("it is observed", lambda: ns.get(QOS, "gpu")["status"]["observedGeneration"] == 2)
        ns.wait_condition(QOS, "gpu", "Synced")
        after = ns.slurm("sacctmgr", "--noheader", "--parsable2", "show", "transactions", "action=Modify QOS", "format=timestamp,info").stdout
        expect(before == after, f"it was written again: {after}")

        # Drift.
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

        # Another one for the same QOS.
        apply(ns, qos("rival", name="gpu", limits={"grpJobs": 9}))
        ns.wait_condition(QOS, "rival", "Synced", "False", saying="QOS gpu belongs to SlurmQos gpu")
        shows(ns, "gpu", GrpJobs="4", Priority="50")
        ns.kubectl("delete", QOS, "gpu", "--wait=true")
        ns.wait_condition(QOS, "rival", "Synced", "False", saying="Run: sacctmgr modify qos gpu set preempt=")
        sacctmgr(ns, "modify", "qos", "gpu", "set", "preempt=")
        ns.wait_condition(QOS, "rival", "Synced")
        wait("QOS low is deleted", lambda: not ns.get(QOS, "low") and show(ns, "low", "Name") is None)
        shows(ns, "gpu", GrpJobs="9", Priority="0", GrpTRES="", MaxJobsPU="3")

        # One of somebody else, and what cannot be written.
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

        # Deletion.
        sacctmgr(ns, "add", "account", "physics")
        sacctmgr(ns, "add", "user", "slurm", "account=physics", "qos=normal,gpu", "defaultqos=gpu")
        ns.kubectl("delete", QOS, "rival", "--wait=false")
        ns.wait_condition(QOS, "rival", "Synced", "False", saying="account physics, user slurm")
        sacctmgr(ns, "modify", "user", "slurm", "set", "defaultqos=normal")
        wait("it is deleted", lambda: not ns.get(QOS, "rival") and show(ns, "gpu", "Name") is None)
        ns.kubectl("delete", QOS, "--all", "--wait=true")
        names = ns.slurm("sacctmgr", "--noheader", "--parsable2", "show", "qos", "format=name").stdout.split()
        expect(names == ["normal"], f"left over: {names}")

"""End-to-end test of a whole site from the chart, for users of an LDAP directory. run.py runs it."""

import base64
import json
import re
import shlex
import urllib.request

import accounting
from cluster import TOP, Namespace, kubectl, run, wait
from logins import client, made_key, ssh, ssh_command
from suite import expect, own_clusters

KINDS = [f"{kind}.slinky.slurm.net" for kind in ("controllers", "accountings", "restapis", "nodesets", "loginsets", "tokens")]
LOGIN = "slurm-login-slinky"


def as_user(ns, user, *command, key=None, **options):
    """Runs a shell command as this user on a login node."""
    return ssh(ns, key or user, user, *command, host=LOGIN, **options)


def has_key(ns, user, public):
    """Makes the directory have this key of the user, and no other."""
    ns.kubectl("exec", "-i", "ldap", "--", "ldapmodify", "-Q", "-Y", "EXTERNAL", "-H", "ldapi:///", text=f"""dn: uid={user},dc=example,dc=com
changetype: modify
replace: sshPublicKey
sshPublicKey: {public.strip()}
""")


def refused(ns, user, words, key=None):
    told = as_user(ns, user, "true", key=key, check=False)
    expect(told.returncode == 255 and re.search(words, told.stderr), f"{user}: {told.returncode}: {told.stderr}")
    return True


def on_worker(ns, worker, *command):
    """Runs a command as alice on a worker, through a login node, which does not have her private key."""
    proxy = shlex.join(ssh_command("alice", "alice", host=LOGIN)[:-1] + ["-W", "%h:%p", f"alice@{LOGIN}"])
    ssh_to, *rest = ssh_command("alice", "alice", *command, host=worker)
    return client(ns, ssh_to, "-o", f"ProxyCommand={proxy}", *rest, check=False)


def told_by_slurmrestd(ns, path):
    """Returns slurmrestd's answer to the token in the Secret of Token alice."""
    token = base64.b64decode(ns.get("secret", "alice-jwt-alice")["data"]["SLURM_JWT"]).decode()
    address = ns.get("service", "slurm-restapi")["spec"]["clusterIP"]
    get = lambda at: json.load(urllib.request.urlopen(urllib.request.Request(
        f"http://{address}:6820{at}", headers={"X-SLURM-USER-NAME": "alice", "X-SLURM-USER-TOKEN": token}), timeout=30))
    versions = {part for at in get("/openapi/v3")["paths"] if at.startswith("/slurm/") for part in at.split("/")[2:3]}
    return get(f"/slurm/{max(versions)}/{path}")


@own_clusters
def a_site_for_users_of_a_directory(tag, plugin):
    """The values of `make demo-site`: one installation creates everything, and a user of the directory logs in and works."""
    accounting.database_image()
    with Namespace(f"e2e-site-{tag.replace('.', '-')}", tag, plugin) as ns:
        accounting.secret(ns, "secret")
        for name in ("mariadb.yaml", "site.yaml"):
            ns.apply((TOP / "dev/demo" / name).read_text())
        ns.kubectl("wait", "--for=condition=Ready", "pod/ldap", "pod/client", "--timeout=300s")
        for user in ("alice", "bob"):
            has_key(ns, user, made_key(ns, user))
        # sshd would penalize the client for a key that is not valid.
        values = (TOP / "dev/demo/site-values.yaml").read_text()
        patient = re.sub(r"^( *)AuthorizedKeysCommandUser nobody$", r"\g<0>\n\1PerSourcePenalties no", values, flags=re.M)
        run("helm", "install", "slurm", str(TOP / "charts/slurm"), "-n", ns.name, "-f", "-", text=ns.fill(patient))

        for kind in KINDS:
            # Waits for the condition that the API server shows.
            ns.kubectl("wait", "--for=condition=Ready", kind, "--all", "--timeout=300s")
        hosts = sorted(node["metadata"]["name"] for node in json.loads(kubectl("get", "nodes", "-o", "json").stdout)["items"])
        expect(len(hosts) == 3, f"the local cluster has other nodes: {hosts}")
        workers = ["cpu-0", "cpu-1", *hosts]
        wait("the workers of both modes are idle", lambda: ns.idle("slurm") == workers)
        for words in (("account", "physics"), ("user", "alice", "account=physics")):
            ns.slurm("sacctmgr", "--immediate", "add", *words, controller="slurm")

        # The keys of alice and her home, and a user outside of the group.
        who = wait("alice logs in", lambda: as_user(ns, "alice", "id").stdout.strip())
        expect(who.startswith("uid=5001(alice) gid=5001(alice)") and "5002(lab)" in who, f"id printed {who}")
        told = as_user(ns, "alice", "stat", "-c", "'%U %n'", "$PWD").stdout.strip()
        expect(told == "alice /home/alice", f"her home is {told}")
        login = lambda: next(iter(ns.get("pods", labelSelector=f"app.kubernetes.io/instance={LOGIN}")))["metadata"]
        has = ns.kubectl("exec", login()["name"], "-c", "login", "--", "sss_ssh_authorizedkeys", "bob").stdout
        expect(has.startswith("ssh-ed25519 "), f"bob has no key: {has}")
        refused(ns, "bob", "Connection closed|Permission denied")

        # Jobs on workers of both modes with her user and group IDs, and their records.
        for worker in ("cpu-0", hosts[0]):
            out = as_user(ns, "alice", "srun", "-w", worker, "hostname").stdout.strip()
            expect(out == worker, f"srun on {worker} printed {out}")
        job = int(as_user(ns, "alice", "sbatch", "--parsable", "-N5", "--output=job.out", "--wrap='srun hostname; id -un'").stdout)
        record = lambda: as_user(ns, "alice", "sacct", "-nPX", "-j", str(job), "--format=user,account,state").stdout.strip()
        wait("she sees the record of her job", lambda: record() == "alice|physics|COMPLETED")
        out = as_user(ns, "alice", "cat", "job.out").stdout.split()
        expect(out[-1] == "alice" and sorted(out[:-1]) == workers, f"the job printed {out}")
        expect("UserId=alice(5001)" in ns.slurm("scontrol", "show", "job", str(job), controller="slurm").stdout, "slurmctld does not know her name")
        names = {item["user_name"] for item in told_by_slurmrestd(ns, "jobs/")["jobs"] if item["job_id"] == job}
        expect(names == {"alice"}, f"slurmrestd tells the names {names}")

        # She may log in where her job runs.
        job = int(as_user(ns, "alice", "sbatch", "--parsable", "-w", "cpu-0", "--output=/dev/null", "--wrap='sleep 3600'").stdout)
        wait("the job runs", lambda: ns.fates([job], "slurm") == {("RUNNING", 0): 1})
        out = wait("she logs in where her job runs", lambda: on_worker(ns, "cpu-0", "hostname; pwd").stdout.split())
        expect(out == ["cpu-0", "/home/alice"], f"there she saw {out}")
        out = on_worker(ns, hosts[0], "true")
        expect(out.returncode == 255 and "pam_slurm_adopt" in out.stderr, f"where she has no job she was told {out.returncode}: {out.stderr}")
        ns.slurm("scancel", str(job), controller="slurm")

        # The directory gets another key.
        has_key(ns, "alice", made_key(ns, "another"))
        wait("it opens", lambda: as_user(ns, "alice", "true", key="another").returncode == 0)
        wait("the one before does not", lambda: refused(ns, "alice", "Permission denied"))

        # The client refuses a changed host key.
        before = login()
        ns.kubectl("delete", "pod", before["name"])
        wait("another pod", lambda: login()["uid"] != before["uid"])
        wait("it serves", lambda: as_user(ns, "alice", "cat", "job.out", key="another").stdout.split()[-1] == "alice")
        for kind in KINDS:
            ns.kubectl("wait", "--for=condition=Ready", kind, "--all", "--timeout=300s")

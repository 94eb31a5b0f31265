"""What the tests of slurm-enlist need to use the hosts of dev/enlist-hosts.sh: programs on hosts, Slurm's records, and waiting."""

import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import time

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests/e2e"))
from waiting import Failed, expect, wait  # noqa: E402  # pylint: disable=wrong-import-position

SCRIPT = TOP / "dev/enlist-hosts.sh"
# Ten times what most things take on a quiet machine, in seconds. Only a failing test waits that long.
LIMIT = 60
STATE = "/var/lib/slurm-enlist"
POOL_FILE = "/etc/slurm/slurm-enlist.conf"
# Where programs write on a host.
PLACES = ("etc", "root", "run", "tmp", "var")


def releases():
    """Returns the Slurm releases of which there are local images, first the one to use if one is enough."""
    return subprocess.run(["bash", "-c", '. "$0/dev/lib.sh"; slurm_releases made', TOP], capture_output=True, text=True, check=True).stdout.split()


class Site:
    """The controller `ctl` and hosts, in namespaces. As a context manager, ends all of them."""

    flags = ()  # further arguments of `enlist-hosts.sh start`

    def __init__(self, release, folder, hosts):
        self.release, self.folder, self.hosts = release, pathlib.Path(folder), hosts
        self.coordinators = self.began = 0

    def __enter__(self):
        self.script("stop")
        self.began = int(time.time())
        for log in self.folder.glob("log/*"):
            log.unlink()
        self.script("start", "-n", str(self.hosts), *self.flags)
        return self

    def __exit__(self, kind, error, trace):
        self.script("stop")

    # --- hosts ---

    def script(self, verb, *words, release=None, check=True, text=None):
        """Runs a verb of enlist-hosts.sh. Its processes and mounts end with this process."""
        env = {**os.environ, "SURVIVOR_OWNER": str(os.getpid())}
        done = subprocess.run([SCRIPT, release or self.release, verb, self.folder, *words], input=text, env=env, check=False,
                              stdin=subprocess.DEVNULL if text is None else None, capture_output=True, text=True,
                              errors="replace", timeout=4 * LIMIT)
        if check and done.returncode != 0:
            raise Failed(f"{verb} {' '.join(words)}: {(done.stdout + done.stderr).strip()}")
        return done

    def run(self, host, *command, **options):
        return self.script("exec", host, *command, **options)

    def out(self, host, *command):
        return self.run(host, *command).stdout.strip()

    def write(self, host, path, text, mode="0644"):
        self.run(host, "sh", "-c", 'mkdir -p "$(dirname "$1")" && cat >"$1" && chmod "$2" "$1"', "sh", path, mode, text=text)

    def log(self, name):
        path = self.folder / "log" / name
        return path.read_text(errors="replace") if path.exists() else ""

    def tell(self):
        """Prints the ends of all logs, after a test that failed."""
        logs = {path.name: path.read_text(errors="replace") for path in sorted(self.folder.glob("log/*.log"))}
        for path in self.folder.glob("pids/*"):
            places = "/var/log/slurm/slurmctld.log" if path.name == "ctl" else "/var/log/slurm-enlist/slurmd.log"
            logs[f"{path.name}:{places}"] = self.run(path.name, "tail", "-n", "40", places, check=False).stdout
        for name, text in logs.items():
            print(f"--- the end of {name}", *text.splitlines()[-20:], sep="\n", flush=True)

    def reboot(self, host, name=None):
        """Ends all processes of a host at once, and starts the host again, perhaps with another host name."""
        self.script("kill", host)
        self.script("boot", host, name or host)

    def processes(self, host, words):
        """Returns the processes whose command line begins with these words: the start of each, in clock ticks, by its pid."""
        found = {}
        for line in self.out(host, "sh", "-c", """for p in /proc/[0-9]*; do
            echo "${p#/proc/} $(sed 's/.*) //' $p/stat | cut -d' ' -f20) $(tr '\\0' ' ' <$p/cmdline)"; done 2>/dev/null""").splitlines():
            pid, _, rest = line.partition(" ")
            start, _, command = rest.partition(" ")
            # A process that has just ended has no start.
            if start and command.startswith(words):
                found[int(pid)] = int(start)
        return found

    def end(self, host, words, signal="KILL"):
        """Ends the one process whose command line begins with these words, and waits for that."""
        pids = list(self.processes(host, words))
        expect(len(pids) == 1, f"{len(pids)} processes of {host} are: {words}")
        self.run(host, "kill", f"-{signal}", str(pids[0]))
        # The agent may have started the next one already.
        wait(f"{words} has ended", lambda: pids[0] not in self.processes(host, words), LIMIT)

    def files(self, host):
        """Returns the mode and the content of each file of a host that was written since the hosts were started, by its path."""
        tar = subprocess.run([SCRIPT, self.release, "exec", self.folder, host, "tar", "-C", "/", "--one-file-system", "-cf", "-",
                              f"--newer-mtime=@{self.began}", *PLACES], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, check=False, timeout=LIMIT).stdout
        with tarfile.open(fileobj=io.BytesIO(tar)) as archive:
            return {"/" + item.name: (item.mode & 0o777, archive.extractfile(item).read()) for item in archive if item.isfile()}

    # --- enlistment ---

    def init(self, *flags):
        """Makes the controller ready for enlistment, as an administrator does."""
        self.run("ctl", "slurm-enlist", "coordinator", "init", "--yes", *flags)
        self.run("ctl", "scontrol", "reconfigure")

    def coordinate(self, *flags):
        """Starts the coordinator, and waits until Slurm answers it."""
        self.coordinators += 1
        log = f"coordinator.{self.coordinators}.log"
        self.script("spawn", "ctl", log, "slurm-enlist", "coordinator", "run", *flags)
        wait("Slurm answers the coordinator", lambda: '"msg":"Slurm answers"' in self.log(log), LIMIT)

    def pool(self, name="gpu", *flags):
        self.run("ctl", "slurm-enlist", "pool", "create", name, *flags)

    def token(self, pool="gpu", *flags):
        return self.out("ctl", "slurm-enlist", "token", pool, *flags)

    def join(self, host, token, *flags, **options):
        return self.run(host, "slurm-enlist", "join", "--token", token, "--no-service", "--wait", "0", *flags, **options)

    def agent(self, host, *flags):
        self.script("spawn", host, f"{host}.agent.log", "slurm-enlist", "agent", *flags)

    def enlist(self, *hosts, pool="gpu"):
        """Joins hosts, and starts their agents. Returns the names of their nodes."""
        names = []
        for host in hosts:
            names.append(re.match(r"This host is (\S+) ", self.join(host, self.token(pool)).stdout)[1])
            self.agent(host)
        return names

    def nodes(self):
        """Returns the coordinator's nodes by name."""
        return {node["name"]: node for node in json.loads(self.out("ctl", "slurm-enlist", "node", "list", "-o", "json"))}

    def pools(self):
        return {pool["name"]: pool for pool in json.loads(self.out("ctl", "slurm-enlist", "pool", "list", "-o", "json"))}

    def ready(self, *names):
        """Waits until Slurm may start jobs on these nodes, and nobody has anything to say about them."""
        def they_are():
            nodes, records = self.nodes(), self.records()
            return all(nodes[name]["phase"] == "Ready" and not nodes[name]["message"] and idle(records[name]) for name in names)

        wait(f"{', '.join(names)} ready", they_are, LIMIT)

    def phase(self, name, phase):
        """Waits until the node is in this phase. Returns its message."""
        return wait(f"{name} is {phase}", lambda: (lambda node: node["phase"] == phase and (node["message"] or "-"))(self.nodes()[name]),
                    LIMIT)

    def status(self, host):
        """Returns what the agent of a host says."""
        return json.loads(self.out(host, "cat", "/run/slurm-enlist/agent.status"))

    # --- Slurm ---

    def records(self):
        """Returns Slurm's nodes by name."""
        return {node["name"]: node for node in json.loads(self.out("ctl", "scontrol", "show", "nodes", "--json"))["nodes"]}

    def registered(self, name):
        """Returns when the slurmd was started that Slurm knows under this name, in seconds. A reconfigure counts as a start."""
        return self.records()[name]["slurmd_start_time"]["number"]

    def slurmctld_log(self):
        return self.out("ctl", "cat", "/var/log/slurm/slurmctld.log")

    def reconfigures(self):
        return self.slurmctld_log().count("Processing Reconfiguration Request")

    def submit(self, *flags):
        """Submits a job that ends when it is told to, and waits until it runs."""
        job = self.out("ctl", "sbatch", "--parsable", "--no-requeue", "--output=/dev/null", "--chdir=/tmp", *flags, "--wrap",
                       "echo x >>/tmp/begun.$SLURM_JOB_ID; until [ -e /tmp/end ]; do sleep 0.1; done")
        wait(f"job {job} runs", lambda: self.job(job) == "RUNNING", LIMIT)
        return job

    def job(self, job):
        return re.search(r"JobState=(\S+)", self.out("ctl", "scontrol", "show", "job", job))[1]

    def ends_well(self, job, *hosts):
        """Ends the job, and expects that it ran once on each host and completed."""
        for host in hosts:
            self.run(host, "touch", "/tmp/end")
        wait(f"job {job} completes", lambda: self.job(job) == "COMPLETED", LIMIT)
        expect("Restarts=0" in self.out("ctl", "scontrol", "show", "job", job), "the job was started again")
        expect(self.out(hosts[0], "cat", f"/tmp/begun.{job}") == "x", "the job ran more than once")

    def slurmctld(self):
        """Starts a slurmctld that was ended."""
        self.script("slurmctld")

    def as_it_is(self, *hosts):
        """Returns what must not change while nothing is to be done: slurmds, their records, the pool file, reconfigures."""
        records = {name: (record["state"], record["reason"], record["slurmd_start_time"]["number"]) for name, record in self.records().items()}
        return ({host: self.processes(host, "/usr/sbin/slurmd") for host in hosts}, records,
                self.out("ctl", "stat", "-c", "%i %Y", POOL_FILE, "/etc/slurm/slurm.conf"), self.reconfigures())


def idle(record):
    """Reports whether Slurm may start jobs on the node, and it has none."""
    return set(record["state"]) == {"IDLE", "DYNAMIC_NORM"}

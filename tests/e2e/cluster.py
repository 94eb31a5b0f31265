"""What the end-to-end tests and the benchmarks need to use the local cluster: kubectl, Slurm's own commands, and waiting."""

import collections
import contextlib
import functools
import http.client
import json
import multiprocessing.util
import os
import pathlib
import re
import shlex
import signal
import statistics
import subprocess
import time
import urllib.parse

from waiting import LIMIT, Failed, wait

TOP = pathlib.Path(__file__).resolve().parents[2]
_env = subprocess.run(["bash", "-c", '. "$0/dev/env.sh" && env -0', str(TOP)], stdout=subprocess.PIPE, text=True, check=True).stdout
ENV = dict(line.split("=", 1) for line in _env.split("\0") if line)


# Keep the namespaces of failed tests for inspection.
KEEP = bool(os.environ.get("KEEP"))


def run(*command, text=None, check=True, timeout=2 * LIMIT):
    done = subprocess.run(command, input=text, capture_output=True, text=True, env=ENV, timeout=timeout)
    if check and done.returncode != 0:
        raise Failed(f"{' '.join(command)}: {(done.stdout + done.stderr).strip()}")
    return done


# kubectl's messages about requests that were not started, so that they can be repeated.
NOT_BEGUN = re.compile(r"^(error:|Error from server|Unable to connect to the server|The connection to the server).*("
                       r"error dialing backend|unable to upgrade connection|TLS handshake timeout|connect: connection refused|was refused)", re.M)

# Slurm commands that only read, and the messages if slurmctld's container ends during them or has not started.
READS = (("scontrol", "show"), ("scontrol", "ping"), ("squeue",), ("sinfo",))
RESTARTS = re.compile(r"exit code 137|container not found|container is not created or running|Unable to contact slurm controller|"
                      r"Connection refused")


def kubectl(*arguments, text=None, check=True, timeout=2 * LIMIT):
    """Runs kubectl. Repeats a request up to three times if the API server or a kubelet did not serve it."""
    for pause in (1, 3, 9, 0):
        done = run("kubectl", *arguments, text=text, check=False, timeout=timeout)
        if done.returncode == 0 or not NOT_BEGUN.search(done.stderr):
            break
        time.sleep(pause)
    if check and done.returncode != 0:
        raise Failed(f"kubectl {' '.join(arguments)}: {done.stderr.strip() or done.stdout.strip()}")
    return done


class Api:
    """Sends requests to the API server over one connection. Waiting code polls ten times a second, and each kubectl process
    would take a fifth of a second of a CPU core."""

    def __init__(self):
        self.proxy = subprocess.Popen(["kubectl", "proxy", "--port=0"], stdout=subprocess.PIPE, text=True, env=ENV)
        # Processes of multiprocessing do not run atexit handlers.
        multiprocessing.util.Finalize(None, self.proxy.kill, exitpriority=1)
        self.port = int(self.proxy.stdout.readline().rsplit(":", 1)[1])
        self.connection = None

    def get(self, path):
        """Returns the status and the document."""
        for last in (False, True):
            try:
                self.connection = self.connection or http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
                self.connection.request("GET", path)
                answer = self.connection.getresponse()
                return answer.status, json.loads(answer.read())
            except (OSError, http.client.HTTPException, ValueError) as error:
                self.connection = None
                if last:
                    raise Failed(f"GET {path}: {error!r}")

    @functools.cached_property
    def paths(self):
        """Returns, for each namespaced resource by its plural, singular and full name, the parts of its path before and after
        the namespace."""
        groups = [f"/apis/{group['preferredVersion']['groupVersion']}" for group in self.get("/apis")[1]["groups"]]
        found = {}
        for base in ["/api/v1", *groups]:
            group = base.split("/")[2] if base != "/api/v1" else ""
            for resource in self.get(base)[1].get("resources", []):
                if resource["namespaced"] and "/" not in resource["name"]:
                    for name in (f"{resource['name']}.{group}", resource["name"], resource["singularName"]):
                        found.setdefault(name, (base, resource["name"]))
        return found


api = functools.cache(Api)


def process(name, *words):
    """Returns the pid of the only process of this program, in any folder, with these arguments among its own."""
    def mine(path):
        try:
            program, *arguments = path.read_text(errors="replace").split("\0")
        except OSError:  # it has just ended
            return False
        return pathlib.PurePath(program).name == name and set(words) <= set(arguments)

    pids = [int(path.parent.name) for path in pathlib.Path("/proc").glob("[0-9]*/cmdline") if mine(path)]
    if len(pids) != 1:
        raise Failed(f"{len(pids)} processes are: {' '.join((name, *words))}")
    return pids[0]


@contextlib.contextmanager
def standing_still(pid):
    """Stops the process for the duration of the block. Its child processes continue."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def kubelet_away(node):
    """Stops the kubelet of a node of the local cluster for the duration of the block."""
    return standing_still(process("kubelet", node))


def condition_of(found, condition):
    """Returns the condition of an object, or None. `found`: the object."""
    for item in ((found or {}).get("status") or {}).get("conditions") or []:
        if item["type"] == condition:
            return item
    return None


class Namespace:
    """A namespace of one test. Replaces the ${NAMES} in manifests."""

    def __init__(self, name, tag, cgroup_plugin="disabled"):
        self.name, self.tag, self.cgroup_plugin = name, tag, cgroup_plugin

    def __enter__(self):
        kubectl("delete", "namespace", self.name, "--ignore-not-found", "--wait=true", timeout=3 * LIMIT)
        kubectl("create", "namespace", self.name)
        return self

    def renew(self):
        """Continues with an empty namespace. With KEEP, the present namespace stays, and the next one has another name."""
        if KEEP:
            self.name += "-next"
        self.__enter__()

    def __exit__(self, kind, error, trace):
        if kind is None or not KEEP:
            kubectl("delete", "namespace", self.name, "--wait=false", check=False)

    def fill(self, manifest):
        return manifest.replace("${TAG}", self.tag).replace("${CGROUP_PLUGIN}", self.cgroup_plugin)

    def apply(self, manifest):
        return kubectl("apply", "-n", self.name, "-f", "-", text=self.fill(manifest))

    def kubectl(self, *arguments, **options):
        return kubectl("-n", self.name, *arguments, **options)

    def get(self, kind, name=None, **selectors):
        """Returns an object, or None. Without a name, returns all objects of the kind that match labelSelector and
        fieldSelector. `kind` may be several kinds, separated by commas."""
        if "," in kind:
            return [item for one in kind.split(",") for item in self.get(one, **selectors)]
        base, resource = api().paths[kind]
        query = f"/{name}" if name else f"?{urllib.parse.urlencode(selectors)}"
        status, document = api().get(f"{base}/namespaces/{self.name}/{resource}{query}")
        if name and status == 404:
            return None
        if status != 200:
            raise Failed(f"{kind} {name or ''}: {status} {document.get('message')}")
        if name:
            return document
        # The items of a list do not contain their kind.
        whole = {"apiVersion": document["apiVersion"], "kind": document["kind"].removesuffix("List")}
        return [whole | item for item in document["items"]]

    def patch(self, kind, name, patch):
        return self.kubectl("patch", kind, name, "--type=merge", "-p", json.dumps(patch))

    def scale(self, nodeset, replicas):
        self.kubectl("scale", "nodesets.slinky.slurm.net", nodeset, f"--replicas={replicas}")

    def condition(self, kind, name, condition):
        """Returns the condition of an object, or None."""
        return condition_of(self.get(kind, name), condition)

    def wait_condition(self, kind, name, condition="Ready", status="True", timeout=LIMIT, saying=""):
        """Waits until the condition has this status, and contains these words in "reason: message". Conditions from before the
        operator saw the present spec do not count."""
        def holds():
            found = self.get(kind, name) or {}
            item, current = condition_of(found, condition), found.get("metadata", {}).get("generation")
            if item and item["status"] == status and saying in f"{item['reason']}: {item['message']}" and (
                    found["status"].get("observedGeneration", current) == current):
                return item
            raise Failed(f"{kind}/{name} {condition}: {item}")

        return wait(f"{kind}/{name} {condition}={status}", holds, timeout)

    def events(self, name, reason):
        """Returns the messages of the events with this reason about objects of this name."""
        items = self.get("events", fieldSelector=f"involvedObject.name={name},reason={reason}")
        return "\n".join(item["message"] for item in items)

    @staticmethod
    def slurmctld(controller):
        """Returns the pod in which Slurm's commands run."""
        return f"{controller}-controller-0"

    def slurm(self, *command, controller="demo", check=True, timeout=120):
        """Runs a Slurm command in slurmctld's pod. Repeats a command that only reads if slurmctld restarts in the meantime."""
        deadline = time.monotonic() + 120
        while True:
            done = self.kubectl("exec", self.slurmctld(controller), "-c", "slurmctld", "--", *command, check=False, timeout=timeout)
            if done.returncode == 0 or not check:
                return done
            reads = any(command[:len(words)] == words for words in READS)
            if not (reads and RESTARTS.search(done.stderr)) or time.monotonic() > deadline:
                raise Failed(f"{' '.join(command)}: {(done.stdout + done.stderr).strip()}")
            time.sleep(1)

    def nodes(self, controller="demo"):
        """Returns Slurm's nodes: name -> (set of states, reason)."""
        out = self.slurm("scontrol", "show", "nodes", "--json", controller=controller).stdout
        return {n["name"]: (set(n["state"]), n["reason"]) for n in json.loads(out)["nodes"]}

    def idle(self, controller="demo"):
        """Returns the names of the nodes that are idle and usable."""
        usable = lambda states: "IDLE" in states and not states & {"DRAIN", "NOT_RESPONDING", "INVALID_REG", "COMPLETING"}
        return sorted(name for name, (states, _) in self.nodes(controller).items() if usable(states))

    def jobs(self, controller="demo"):
        out = self.slurm("squeue", "--json", controller=controller).stdout
        return {job["job_id"]: job for job in json.loads(out)["jobs"]}

    def completed(self, job, controller="demo"):
        """Reports whether the job has completed successfully. Failed: it ended in another way."""
        out = self.slurm("scontrol", "show", "job", str(job), "--json", controller=controller).stdout
        state = json.loads(out)["jobs"][0]["job_state"]
        if any(bad in state for bad in ("NODE_FAIL", "FAILED", "CANCELLED", "TIMEOUT")):
            raise Failed(f"job {job} ended as {state}")
        return state == ["COMPLETED"]

    def submit(self, script, *options, controller="demo"):
        out = self.slurm("sbatch", "--parsable", "--output=/dev/null", *options, f"--wrap={script}", controller=controller).stdout
        return int(out.strip().split(";")[0])

    def submit_many(self, count, script, *options, controller="demo"):
        """Submits `count` such jobs in one call, and returns their ids."""
        command = f'for i in $(seq {count}); do sbatch --parsable --output=/dev/null {" ".join(options)} --wrap={shlex.quote(script)}; done'
        out = self.slurm("bash", "-c", command, controller=controller).stdout
        return [int(line.split(";")[0]) for line in out.split()]

    def jobs_of_all_states(self, controller="demo"):
        """Returns all jobs, including those that have ended, until slurmctld forgets them."""
        out = self.slurm("squeue", "--json", "--states=all", controller=controller).stdout
        return {job["job_id"]: job for job in json.loads(out)["jobs"]}

    def fates(self, jobs, controller="demo"):
        """Counts how these jobs ended: (state, restarts) -> number. A job that slurmctld does not know any more counts as
        FORGOTTEN."""
        known = self.jobs_of_all_states(controller)
        fate = lambda job: ("+".join(job["job_state"]), job["restart_cnt"]) if job else ("FORGOTTEN", 0)
        return collections.Counter(fate(known.get(job)) for job in jobs)

    def submit_until_told(self, *options):
        """Submits a job that runs until it is `told` to end, and then ends successfully, so that no test depends on the
        duration of earlier steps. The signal is one that is ignored by a script that has not set its trap yet."""
        return self.submit("trap 'exit 0' URG; sleep 3600 & wait", *options)

    def tell(self, job, name="USR1"):
        """Sends a signal to the script of the job."""
        self.slurm("scancel", "--batch", f"--signal={name}", str(job))

    def told(self, job):
        """Tells the job to end, and waits until it has completed. Repeats the signal: slurmctld shows a job as running before
        its script runs, and the signal is lost until then."""
        wait("the job completes", lambda: self.completed(job) or self.tell(job, "URG"))

    def workers(self):
        """Returns the worker pods that are not terminating, by name."""
        pods = self.get("pods", labelSelector="app.kubernetes.io/name=slurmd")
        return {p["metadata"]["name"]: p for p in pods if "deletionTimestamp" not in p["metadata"]}


class AtBackup(Namespace):
    """The same namespace, with Slurm's commands run in the pod of the standby slurmctld."""

    def __init__(self, ns):
        super().__init__(ns.name, ns.tag, ns.cgroup_plugin)

    @staticmethod
    def slurmctld(controller):
        return f"{controller}-controller-backup-0"


def demo_manifest():
    return (TOP / "dev/demo/cluster.yaml").read_text()


def shell(script):
    """Returns what a function of the dev/ scripts prints."""
    return subprocess.run(["bash", "-c", script], cwd=TOP, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def slurm_releases():
    """Returns the Slurm releases of which there are local images, first the one to use if one is enough. Prints which releases
    are left out, and why."""
    for line in shell(". dev/lib.sh; slurm_releases skipped").splitlines():
        print(f"skipped Slurm {line}", flush=True)
    return shell(". dev/lib.sh; slurm_releases made").split()


def cgroup_plugin():
    return shell('. dev/cgroup.sh; slurm_cgroup_plugin "$(cgroup_version "$(cat /proc/mounts)")"')


def expand_hostlist(text):
    """Returns the names in a hostlist of Slurm such as cpu-[0-2,5],extra-1."""
    out = set()
    for prefix, numbers, plain in re.findall(r"([a-z-]+)\[([\d,-]+)\]|([a-z0-9-]+)", text):
        if plain:
            out.add(plain)
        for part in filter(None, numbers.split(",")):
            first, _, last = part.partition("-")
            out.update(f"{prefix}{number}" for number in range(int(first), int(last or first) + 1))
    return out


def unit_of(figure):
    """Returns the unit of a figure by its name: seconds, unless the name ends with another unit or says that it is a number."""
    return "" if figure.startswith("number of") or figure.endswith((", MiB", ", ms")) else "s"


def figures_table(figures, floors, runs):
    """Yields the lines of a benchmark's result: one for each figure, with its floor if it has one."""
    yield f"{'what':62} median   worst   floor   (of {runs} run{'s' * (runs != 1)}; floor: median)"
    for name, values in figures.items():
        least = f"{statistics.median(floors[name]):5.1f} s" if floors.get(name) else "      -"
        unit = f" {unit_of(name):1}"
        yield f"{name:62} {statistics.median(values):5.1f}{unit} {max(values):5.1f}{unit} {least}"


class AuditLog:
    """Reads what the API server adds to its audit log from now on, also across its rotation (audit.log becomes
    audit-TIME.log)."""

    WRITES = ("create", "update", "patch", "delete", "deletecollection")

    def __init__(self, path=TOP / ".local/audit.log"):
        self.path, self.file, self.part = path, path.open(), ""
        self.file.seek(0, os.SEEK_END)

    def writes(self):
        """Returns the events of writes since the last call."""
        # Sorted by name, which is the order of time: '-' sorts before '.'.
        files = sorted(self.path.parent.glob(f"{self.path.stem}*{self.path.suffix}"))
        numbers = [file.stat().st_ino for file in files]
        mine = os.fstat(self.file.fileno()).st_ino
        if mine not in numbers:
            raise Failed(f"{self.path} was rotated more often than its old files are kept")
        for file in [None, *files[numbers.index(mine) + 1:]]:
            if file:
                self.file.close()
                self.file = file.open()
            while part := self.file.readline():
                self.part += part
                # The rest of an unfinished line comes later.
                if not self.part.endswith("\n"):
                    break
                event, self.part = json.loads(self.part), ""
                if event["verb"] in self.WRITES:
                    yield event

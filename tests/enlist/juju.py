"""A stand-in of Juju for hosts of dev/enlist-hosts.sh: applications, relations and secrets, and the programs that hooks call.

The programs on the hosts write what they are asked for into a folder that all hosts share, and this process answers. Events come in
Juju's documented order; what a hook changes counts when it has succeeded.
"""

import base64
import collections
import json
import shutil
import subprocess
import time

from hosts import LIMIT, SCRIPT, expect

TOOLS = ("action-fail", "action-get", "action-set", "config-get", "is-leader", "juju-log", "relation-get", "relation-ids", "relation-list", "relation-set", "secret-add", "secret-get",
         "secret-grant", "secret-ids", "secret-info-get", "secret-remove", "secret-set", "status-get", "status-set")
SHARED = "/usr/local/lib/enlist/juju"
# A file that a secret is made of is on the host.
PROGRAM = """#!/bin/bash
request=$(mktemp "$JUJU_CONTEXT_ID/XXXXXX")
words=("${0##*/}")
for word; do
  [[ $word != *#file=* ]] || word=${word%%#*}#base64=$(base64 -w0 "${word#*#file=}") || exit 1
  words+=("$word")
done
printf '%s\\0' "${words[@]}" >"$request"
[[ " $* " != *" --file - "* ]] || cat >"$request.input"
mv "$request" "$request.asked"
until [[ -e $request.answered ]]; do sleep 0.02; done
cat "$request.out"
cat "$request.err" >&2
exit "$(<"$request.answered")"
"""


class Refused(Exception):
    """A program or an action fails with this message."""


class Juju:
    def __init__(self, site):
        self.site = site
        self.hosts, self.charms, self.configs, self.leaders, self.statuses = {}, {}, {}, {}, {}
        self.relations, self.secrets, self.logs = {}, {}, []
        self.parameters, self.results, self.failure = {}, {}, None  # of an action
        self.counts = collections.Counter()
        self.pending = collections.deque()
        self.hooks = 0
        self.folder = site.folder / "lib" / "juju"
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        for tool in TOOLS:
            path = site.folder / "bin" / tool
            path.write_text(PROGRAM)
            path.chmod(0o755)

    # --- what administrators do ---

    def deploy(self, app, charm, host, **config):
        self.charms[app], self.configs[app] = charm, config
        self.leaders[app] = f"{app}/0"
        return self.add_unit(app, host)

    def add_unit(self, app, host):
        unit = f"{app}/{self.counts[app]}"
        self.counts[app] += 1
        self.hosts[unit] = host
        self.hook(unit, "install")
        for number in self.of(app):
            self.relation_hook(unit, number, "created")
        self.hook(unit, "leader-elected" if self.leaders[app] == unit else "leader-settings-changed")
        self.hook(unit, "config-changed")
        self.hook(unit, "start")
        for number in self.of(app):
            self.meet(unit, number)
        self.settle()
        return unit

    def integrate(self, compute, controller):
        number = str(self.counts["relations"])
        self.counts["relations"] += 1
        self.relations[number] = {"endpoints": {compute: "slurmctld", controller: "slurmd"},
                                  "databags": {compute: {}, controller: {}}, "members": []}
        for app in (compute, controller):
            for unit in self.units(app):
                self.relation_hook(unit, number, "created")
        for unit in self.units(compute):
            self.meet(unit, number)
        self.settle()
        return number

    def configure(self, app, **config):
        self.configs[app].update(config)
        self.everywhere("config-changed", app)

    def act(self, unit, action, **parameters):
        """Returns the results of an action. Raises Refused if it fails."""
        self.parameters, self.results, self.failure = parameters, {}, None
        self.hook(unit, None, JUJU_DISPATCH_PATH=f"actions/{action}")
        self.settle()
        if self.failure is not None:
            raise Refused(self.failure)
        return self.results

    def remove_unit(self, unit, meanwhile):
        """`meanwhile` is called while its stop waits. The units of the other side meet their own departed only."""
        app = app_of(unit)
        for number in self.of(app):
            for other in self.units(self.other(number, app)):
                self.relation_hook(unit, number, "departed", other, JUJU_DEPARTING_UNIT=unit)
                self.relation_hook(other, number, "departed", unit, JUJU_DEPARTING_UNIT=unit)
            self.relations[number]["members"].remove(unit)
            self.relation_hook(unit, number, "broken")
        self.hook(unit, "stop", meanwhile)
        self.hook(unit, "remove")
        del self.hosts[unit]
        if self.leaders[app] == unit and self.units(app):
            self.leaders[app] = self.units(app)[0]
            self.hook(self.leaders[app], "leader-elected")
        self.settle()

    def remove_unit_by_force(self, unit):
        """No hook of it runs."""
        app = app_of(unit)
        del self.hosts[unit]
        for number in self.of(app):
            for other in self.units(self.other(number, app)):
                self.relation_hook(other, number, "departed", unit, JUJU_DEPARTING_UNIT=unit)
            self.relations[number]["members"].remove(unit)
        self.settle()

    def remove_relation(self, number):
        apps = self.relations[number]["endpoints"]
        self.relations[number]["members"] = []
        for app in apps:
            for unit in self.units(app):
                for other in self.units(self.other(number, app)):
                    self.relation_hook(unit, number, "departed", other, JUJU_DEPARTING_UNIT=other)
        for app in apps:
            for unit in self.units(app):
                self.relation_hook(unit, number, "broken")
        del self.relations[number]
        for secret in self.secrets.values():
            secret["grants"].discard(number)
        self.settle()

    def everywhere(self, event, app=None):
        for unit in self.units(app):
            self.hook(unit, event)
        self.settle()

    # --- events ---

    def units(self, app=None):
        return [unit for unit in self.hosts if app in (None, app_of(unit))]

    def of(self, app):
        return [number for number, relation in self.relations.items() if app in relation["endpoints"]]

    def other(self, number, app):
        return next(name for name in self.relations[number]["endpoints"] if name != app)

    def meet(self, unit, number):
        for other in self.units(self.other(number, app_of(unit))):
            members = self.relations[number]["members"]
            members += [name for name in (unit, other) if name not in members]
            for what in ("joined", "changed"):
                self.relation_hook(unit, number, what, other)
                self.relation_hook(other, number, what, unit)

    def relation_hook(self, unit, number, what, remote=None, **environment):
        endpoint = self.relations[number]["endpoints"][app_of(unit)]
        environment.update(JUJU_RELATION=endpoint, JUJU_RELATION_ID=f"{endpoint}:{number}")
        # Juju may not know the other end any more.
        if what != "broken":
            environment["JUJU_REMOTE_APP"] = self.other(number, app_of(unit))
        if remote:
            environment["JUJU_REMOTE_UNIT"] = remote
        self.hook(unit, f"{endpoint}-relation-{what}", **environment)

    def settle(self):
        while self.pending:
            self.pending.popleft()()

    def hook(self, unit, event, meanwhile=None, **environment):
        """`meanwhile` is called once, when the hook has said that it waits."""
        self.hooks += 1
        folder = self.folder / str(self.hooks)
        folder.mkdir()
        environment.setdefault("JUJU_DISPATCH_PATH", f"hooks/{event}")
        environment.update(JUJU_UNIT_NAME=unit, JUJU_MODEL_UUID="6f1e",
                           JUJU_CONTEXT_ID=f"{SHARED}/{self.hooks}")
        command = ["env", *(f"{key}={value}" for key, value in environment.items()), "slurm-enlist", "charm", self.charms[app_of(unit)]]
        process = subprocess.Popen([SCRIPT, self.site.release, "exec", self.site.folder, self.hosts[unit], *command],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        changes, deadline = [], time.monotonic() + 4 * LIMIT
        while process.poll() is None:
            expect(time.monotonic() < deadline, f"{unit} {event} does not end")
            for asked in folder.glob("*.asked"):
                self.answer(unit, asked, changes)
                if meanwhile and self.statuses[unit][0] == "waiting":
                    meanwhile = meanwhile()
            time.sleep(0.01)
        out = process.communicate()[0]
        expect(process.returncode == 0, f"{unit} {event}: exit code {process.returncode}: {out} {self.logs[-5:]}")
        for change in changes:
            change()

    # --- the programs ---

    def answer(self, unit, asked, changes):
        words = asked.read_text().split("\0")[:-1]
        request = asked.with_suffix("")
        asked.unlink()
        given = request.with_suffix(".input")
        status, out, err = 0, "", ""
        try:
            plain = [word for word in words[1:] if word != "--format=json"]
            out = self.call(unit, words[0], plain, given.read_text() if given.exists() else "", changes)
            out = "" if out is None else json.dumps(out) if "--format=json" in words else out
        except Refused as refused:
            status, err = 1, f"ERROR {refused}"
        request.with_suffix(".out").write_text(out)
        request.with_suffix(".err").write_text(err)
        request.with_suffix(".new").write_text(str(status))
        request.with_suffix(".new").rename(request.with_suffix(".answered"))

    def call(self, unit, tool, words, given, changes):
        app = app_of(unit)
        leader = self.leaders[app] == unit

        def only_leader():
            if not leader:
                raise Refused("permission denied")

        def relation(flag="--relation"):
            return words[words.index(flag) + 1].split(":")[1]

        def secret():
            if words[0] not in self.secrets:
                raise Refused("secret not found")
            return self.secrets[words[0]]

        def content():
            return dict(word.split("=", 1) for word in words if "=" in word)

        if tool == "is-leader":
            return leader
        if tool == "action-get":
            return self.parameters
        if tool == "action-set":
            self.results.update(content())
        elif tool == "action-fail":
            self.failure = words[0]
        if tool == "config-get":
            return {key.replace("_", "-"): value for key, value in self.configs[app].items()}
        if tool == "juju-log":
            return self.logs.append(f"{unit}: {words[1]} {words[-1]}")
        if tool == "status-get":
            return dict(zip(("status", "message"), self.statuses.get(unit, ("unknown", ""))))
        if tool == "status-set":
            self.statuses[unit] = tuple(words)
        elif tool == "relation-ids":
            return [f"{words[0]}:{number}" for number, has in self.relations.items() if has["endpoints"].get(app) == words[0]]
        elif tool == "relation-list":
            if "--app" in words:
                return self.other(relation(), app)
            return [member for member in self.relations[relation()]["members"] if app_of(member) != app]
        elif tool == "relation-get":
            if words[-1] == app:
                only_leader()
            return self.relations[relation()]["databags"][words[-1]]
        elif tool == "relation-set":
            only_leader()
            changes.append(lambda: self.publish(app, relation(), json.loads(given)))
        elif tool == "secret-ids":
            return [name.removeprefix("secret:") for name, secret in self.secrets.items() if secret["owner"] == app]
        elif tool == "secret-info-get":
            return {words[0].removeprefix("secret:"): {"label": secret()["label"], "owner": "application"}}
        elif tool == "secret-add":
            only_leader()
            name = f"secret:s{self.hooks}"
            label = words[words.index("--label") + 1]
            made = {"owner": app, "label": label, "revisions": [content()], "grants": set(), "observers": set()}
            changes.append(lambda: self.secrets.update({name: made}))
            return name + "\n"
        elif tool == "secret-set":
            only_leader()
            changes.append(lambda: self.revise(words[0], content()))
        elif tool == "secret-grant":
            only_leader()
            changes.append(lambda: self.secrets[words[0]]["grants"].add(relation()))
        elif tool == "secret-remove":
            only_leader()
            changes.append(lambda: self.secrets.pop(words[0]))
        elif tool == "secret-get":
            if secret()["owner"] != app and not any(app in self.relations[number]["endpoints"] for number in secret()["grants"]):
                raise Refused("permission denied")
            if "--refresh" in words:
                secret()["observers"].add(unit)
            values = secret()["revisions"][-1]
            return values[words[-1]] if words[-1] in values else base64.b64decode(values[words[-1] + "#base64"]).decode()
        return None

    def publish(self, app, number, values):
        databag = self.relations[number]["databags"][app]
        if databag | values == databag:
            return
        databag.update(values)
        for unit in self.units(self.other(number, app)):
            self.pending.append(lambda unit=unit: self.relation_hook(unit, number, "changed"))

    def revise(self, name, values):
        self.secrets[name]["revisions"].append(values)
        for unit in self.secrets[name]["observers"]:
            self.pending.append(lambda unit=unit: self.hook(unit, "secret-changed", JUJU_SECRET_ID=name))


def app_of(unit):
    return unit.split("/")[0]

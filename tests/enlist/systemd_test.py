#!/usr/bin/env python3
"""Tests the packages and the services of slurm-enlist: each host runs Debian's systemd, with slurm-enlist from its packages.

Usage: systemd_test.py [--slurm 26.05] [--dir DIR] [NAME...]    tests whose names contain one of NAME; default: all, with each
                                                                Slurm release that there are images of
Needs root, the packages (make packages), and root file systems of dev/images/systemd.sh. KEEP=1 keeps the hosts of the first test that fails, and
ends.
"""

import re
import subprocess
import sys
import time

from hosts import LIMIT, TOP, Site, expect, wait
from runner import main

AGENT, COORDINATOR = "slurm-enlist-agent.service", "slurm-enlist-coordinator.service"
UNITS = "/etc/systemd/system"


class SystemdSite(Site):
    """Hosts with systemd. slurmctld runs as the service of its Debian package."""

    flags = ("-s",)

    def install(self, host, *packages):
        self.run(host, "sh", "-c", 'for name; do set -- "$@" /mnt/${name}_*.deb; shift; done; dpkg --install "$@"', "sh", *packages)

    def coordinate(self, *flags):
        expect(not flags, "the service has no flags")
        self.run("ctl", "systemctl", "enable", "--now", COORDINATOR)
        wait("Slurm answers the coordinator", lambda: '"msg":"Slurm answers"' in self.journal("ctl", COORDINATOR), LIMIT)

    def enlist(self, *hosts, pool="gpu"):
        for host in hosts:
            self.install(host, "slurm-enlist")
            joined = self.run(host, "slurm-enlist", "join", "--token-file", "-", text=self.token(pool) + "\n", check=False)
            expect(joined.returncode == 0, f"join on {host}: {joined.stdout}{joined.stderr}")

    def journal(self, host, unit):
        return self.run(host, "journalctl", "--unit", unit, "--output", "cat", "--no-pager", check=False).stdout

    def main_pid(self, host, unit):
        return self.out(host, "systemctl", "show", "--property=MainPID", "--value", unit)

    def state(self, host, unit):
        return self.out(host, "systemctl", "show", "--property=ActiveState", "--value", unit)

    def runs(self, host, *units):
        """Waits until these services run, and checks that they are enabled."""
        for unit in units:
            wait(f"{unit} of {host} is active", lambda u=unit: self.state(host, u) == "active", LIMIT)
            expect(self.out(host, "systemctl", "is-enabled", unit) == "enabled", f"{unit} of {host} is not enabled")

    def restart(self, host):
        """Shuts a host down in an orderly way, and boots it."""
        self.run(host, "systemctl", "poweroff", check=False)
        wait(f"{host} is down", lambda: self.run(host, "true", check=False).returncode != 0, LIMIT)
        self.script("boot", host)

    def failed_units(self, host):
        return self.run(host, "systemctl", "list-units", "--failed", "--plain", "--no-legend").stdout

    def tell(self):
        super().tell()
        for path in self.folder.glob("pids/*"):
            journal = self.run(path.name, "journalctl", "--no-pager", "--lines", "60", check=False).stdout
            print(f"--- the journal of {path.name}", *journal.splitlines(), sep="\n", flush=True)


def with_pool(site):
    """Installs the coordinator as an administrator does, and makes the pool `gpu`."""
    site.install("ctl", "slurm-enlist", "slurm-enlist-coordinator")
    site.init()
    site.coordinate()
    site.pool("gpu", "--partition", "Default=YES MaxTime=1-0")


def joined(site):
    """As with_pool(); then the host h1 joins."""
    with_pool(site)
    site.enlist("h1")
    site.ready("gpu-1")


def another_slurmd(site, before):
    """Waits until slurmd has another main process than before, and Slurm reports its node as MIXED: it has a job."""
    wait("another slurmd runs", lambda: site.main_pid("h1", "slurmd") not in (before, "0"), LIMIT)
    site.runs("h1", "slurmd.service")
    wait("Slurm has it", lambda: set(site.records()["gpu-1"]["state"]) == {"MIXED", "DYNAMIC_NORM"}, LIMIT)


def refused_by_debian_12(folder, units):
    """Returns the complaints of Debian 12's systemd about these units: texts by name. Their programs are replaced: Debian 12 has none of them."""
    folder.mkdir(exist_ok=True)
    for name, text in units.items():
        (folder / name).write_text(re.sub("/usr/sbin/slurmd|/usr/bin/slurm-enlist|/bin/kill", "/usr/bin/true", text))
    script = """. "$0/dev/lib.sh"; root=$(readlink -f "$CACHE/images/systemd-debian/rootfs")
        mount --bind "$1" "$root/mnt"; mount -t proc proc "$root/proc"; cd /; chroot "$root" sh -c 'systemd-analyze verify --man=no /mnt/*.service'"""
    done = subprocess.run(["unshare", "--mount", "bash", "-c", script, TOP, folder], capture_output=True, text=True, check=False, timeout=LIMIT)
    return done.stdout + done.stderr + (f"exit code {done.returncode}" if done.returncode else "")


# Requirement 3
def a_host_joins_and_its_services_run(site):
    joined(site)
    site.runs("ctl", COORDINATOR, "slurmctld.service")
    site.runs("h1", AGENT, "slurmd.service")
    texts = {}
    for host, units in (("ctl", [f"/usr/lib/systemd/system/{COORDINATOR}"]), ("h1", [f"{UNITS}/{AGENT}", f"{UNITS}/slurmd.service"])):
        texts |= {unit.rpartition("/")[2]: site.out(host, "cat", unit) + "\n" for unit in units}
        done = site.run(host, "systemd-analyze", "verify", "--man=no", *units)
        expect(not done.stdout + done.stderr, f"systemd-analyze verify: {done.stdout}{done.stderr}")
        expect(not site.failed_units(host), f"units of {host} failed: {site.failed_units(host)}")
    refused = refused_by_debian_12(site.folder / "units", texts)
    expect(not refused, f"systemd of Debian 12: {refused}")
    expect(site.out("h1", "systemctl", "show", "--property=FragmentPath", "--value", "slurmd") == f"{UNITS}/slurmd.service",
           "systemd uses another unit for slurmd")
    expect(site.out("ctl", "srun", "hostname") == "h1", "no job runs there")
    before = site.as_it_is("h1")
    time.sleep(5)
    expect(site.as_it_is("h1") == before, f"something changed: {before} became {site.as_it_is('h1')}")


def a_job_outlives_a_restart_of_slurmd(site):
    joined(site)
    job = site.submit()
    before = site.main_pid("h1", "slurmd")
    site.run("h1", "systemctl", "restart", "slurmd")
    another_slurmd(site, before)
    before = site.main_pid("h1", "slurmd")
    site.run("h1", "systemctl", "kill", "--kill-whom=main", "--signal=KILL", "slurmd")
    another_slurmd(site, before)
    site.ends_well(job, "h1")
    site.ready("gpu-1")


def files_of_slurmd_that_are_removed_return(site):
    """Somebody removes the files of slurmd's service under a job. The agent writes them again, and slurmd is not restarted."""
    joined(site)
    job = site.submit()
    before, files = site.as_it_is("h1"), ("/etc/default/slurmd", f"{UNITS}/slurmd.service")
    texts = {file: site.out("h1", "cat", file) for file in files}
    for file in files:
        site.run("h1", "rm", file)
        site.run("h1", "systemctl", "daemon-reload")
        wait(f"{file} is there again", lambda f=file: site.run("h1", "cat", f, check=False).stdout.strip() == texts[f], LIMIT)
    # Releases of systemd print properties in different orders.
    wait("systemd has read the unit", lambda: set(site.out("h1", "systemctl", "show", "--property=KillMode,LoadState", "slurmd").split()) ==
         {"KillMode=process", "LoadState=loaded"}, LIMIT)
    expect(site.phase("gpu-1", "Ready") == "-", f"the message is {site.nodes()['gpu-1']['message']}")
    expect(site.as_it_is("h1") == before, f"something changed: {before} became {site.as_it_is('h1')}")
    slurmd = site.main_pid("h1", "slurmd")
    site.run("h1", "systemctl", "kill", "--kill-whom=main", "--signal=KILL", "slurmd")
    another_slurmd(site, slurmd)
    site.ends_well(job, "h1")
    site.ready("gpu-1")


def an_agent_that_is_killed_is_started_again(site):
    joined(site)
    job = site.submit()
    before, agent = site.as_it_is("h1"), site.main_pid("h1", AGENT)
    site.run("h1", "systemctl", "kill", "--kill-whom=main", "--signal=KILL", AGENT)
    wait("another agent runs", lambda: site.main_pid("h1", AGENT) not in (agent, "0"), LIMIT)
    site.runs("h1", AGENT)
    site.phase("gpu-1", "Ready")
    time.sleep(2)
    expect(site.as_it_is("h1") == before, f"something changed: {before} became {site.as_it_is('h1')}")
    site.ends_well(job, "h1")


def a_coordinator_that_is_killed_is_started_again(site):
    joined(site)
    job = site.submit()
    before, coordinator = site.as_it_is("h1"), site.main_pid("ctl", COORDINATOR)
    site.run("ctl", "systemctl", "kill", "--kill-whom=main", "--signal=KILL", COORDINATOR)
    wait("another coordinator runs", lambda: site.main_pid("ctl", COORDINATOR) not in (coordinator, "0"), LIMIT)
    wait("it answers", lambda: site.run("ctl", "slurm-enlist", "node", "list", check=False).returncode == 0, LIMIT)
    site.phase("gpu-1", "Ready")
    expect(site.as_it_is("h1") == before, f"something changed: {before} became {site.as_it_is('h1')}")
    site.ends_well(job, "h1")


def a_host_comes_back_after_a_reboot(site):
    """The power fails, and later the host is shut down in an orderly way. Both times, systemd starts the services."""
    joined(site)
    for act in ("power", "shutdown"):
        before = site.registered("gpu-1")
        if act == "shutdown":
            site.restart("h1")
        else:
            site.reboot("h1")
        wait("slurmd has registered again", lambda b=before: site.registered("gpu-1") > b, LIMIT)
        site.ready("gpu-1")
        site.runs("h1", AGENT, "slurmd.service")
        expect(set(site.records()) == set(site.nodes()) == {"gpu-1"}, f"there are the nodes {sorted(site.records())}")
        expect(site.out("ctl", "srun", "hostname") == "h1", "no job runs there")


def a_controller_comes_back_after_a_reboot(site):
    joined(site)
    job = site.submit()
    slurmd = site.main_pid("h1", "slurmd")
    # slurmctld saves its jobs every few seconds, and when it is stopped. A power cut would lose this one.
    site.restart("ctl")
    wait("the coordinator answers", lambda: site.run("ctl", "slurm-enlist", "node", "list", check=False).returncode == 0, LIMIT)
    site.runs("ctl", COORDINATOR, "slurmctld.service")
    site.phase("gpu-1", "Ready")
    wait("the job is known", lambda: site.job(job) == "RUNNING", LIMIT)
    site.ends_well(job, "h1")
    site.ready("gpu-1")
    expect(site.main_pid("h1", "slurmd") == slurmd, "slurmd was restarted")


def hosts_come_back_after_a_power_cut(site):
    """The power of all hosts fails, and the controller comes back long after the host."""
    joined(site)
    for host in ("ctl", "h1"):
        site.script("kill", host)
    site.script("boot", "h1")
    # systemd gives up a slurmd that fails five times within 30 s.
    time.sleep(30)
    site.script("boot", "ctl")
    wait("the coordinator answers", lambda: site.run("ctl", "slurm-enlist", "node", "list", check=False).returncode == 0, LIMIT)
    site.ready("gpu-1")
    site.runs("h1", AGENT, "slurmd.service")
    site.runs("ctl", COORDINATOR, "slurmctld.service")
    expect(site.out("ctl", "srun", "hostname") == "h1", "no job runs there")


# Requirement 3
def a_slurmd_that_fails_is_told(site):
    """The host and the coordinator report the cause, also after systemd has given up. The agent starts slurmd when the cause is gone."""
    with_pool(site)
    site.write("h1", "/usr/local/sbin/slurmd", '#!/bin/sh\ncase "$1" in -V | -C) exec /usr/sbin/slurmd "$@" ;; esac\n'
               '[ ! -e /root/good ] || exec /usr/sbin/slurmd "$@"\necho "slurmd: fatal: no such disk" >&2; exit 1\n', "0755")
    site.install("h1", "slurm-enlist")
    done = site.run("h1", "slurm-enlist", "join", "--token-file", "-", "--slurmd", "/usr/local/sbin/slurmd", text=site.token() + "\n", check=False)
    expect(done.returncode == 1 and "no such disk" in done.stdout, f"join: {done.returncode} {done.stdout}{done.stderr}")
    expect("no such disk" in site.phase("gpu-1", "Refused"), f"the message is {site.nodes()['gpu-1']['message']}")
    wait("systemd has given up", lambda: "start-limit-hit" in site.journal("h1", "slurmd.service") or
         "Start request repeated too quickly" in site.journal("h1", "slurmd.service"), LIMIT)
    wait("the host has the cause", lambda: "no such disk" in site.status("h1")["message"], LIMIT)
    site.run("h1", "touch", "/root/good")
    site.ready("gpu-1")
    site.runs("h1", AGENT, "slurmd.service")


def a_node_returns_to_a_slurmctld_that_lost_its_state(site):
    """The agent reloads slurmd through systemd, so that it registers again."""
    joined(site)
    job = site.submit()
    began = site.out("h1", "systemctl", "show", "--property=ActiveEnterTimestampMonotonic", "slurmd")
    site.ends_well(job, "h1")
    site.run("ctl", "systemctl", "stop", "slurmctld")
    site.run("ctl", "sh", "-c", "rm -rf /var/spool/slurmctld/*")
    site.run("ctl", "systemctl", "start", "slurmctld")
    wait("slurmd has registered again", lambda: site.nodes()["gpu-1"]["registrations"] == 1, LIMIT)
    site.ready("gpu-1")
    site.runs("h1", "slurmd.service")
    expect(site.out("h1", "systemctl", "show", "--property=ActiveEnterTimestampMonotonic", "slurmd") == began, "slurmd was restarted, not reloaded")
    expect(site.out("ctl", "srun", "hostname") == "h1", "no job runs there")
    before = site.main_pid("h1", "slurmd")
    site.run("h1", "systemctl", "restart", "slurmd")
    wait("another slurmd runs", lambda: site.main_pid("h1", "slurmd") not in (before, "0"), LIMIT)
    site.ready("gpu-1")


def a_slurmd_of_somebody_else_is_left_alone(site):
    with_pool(site)
    unit = "[Service]\nExecStart=/usr/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n"
    site.write("h1", f"{UNITS}/slurmd.service", unit)
    site.run("h1", "systemctl", "daemon-reload")
    site.run("h1", "systemctl", "enable", "--now", "slurmd")
    before = site.main_pid("h1", "slurmd")
    site.install("h1", "slurm-enlist")
    told = "slurmd runs already, and slurm-enlist has not started it: stop and disable it"
    join, token = ("slurm-enlist", "join", "--token-file", "-"), site.token() + "\n"
    done = site.run("h1", *join, text=token, check=False)
    expect(done.returncode == 1 and told in done.stdout + done.stderr, f"join: {done.returncode} {done.stdout}{done.stderr}")
    expect(site.main_pid("h1", "slurmd") == before, "slurmd was stopped")
    expect(not site.nodes(), "the host has a node")
    site.run("h1", "systemctl", "disable", "--now", "slurmd")
    site.run("h1", *join, text=token)
    site.ready("gpu-1")
    site.runs("h1", "slurmd.service")
    expect(site.out("h1", "cat", f"{UNITS}/slurmd.service.before-slurm-enlist") == unit.strip(), "the unit was not kept")


def a_slurmd_as_debian_leaves_it_is_taken_over(site):
    """Debian enables and starts slurmd when it installs it. Without a configuration, slurmd fails."""
    with_pool(site)
    site.run("h1", "systemctl", "enable", "slurmd")
    site.run("h1", "systemctl", "start", "--no-block", "slurmd")
    wait("slurmd looks for a slurmctld", lambda: "failed to load configs" in site.journal("h1", "slurmd.service"), LIMIT)
    # systemd would do so after 90 s.
    site.run("h1", "systemctl", "kill", "--signal=KILL", "slurmd")
    wait("it has failed", lambda: site.state("h1", "slurmd") == "failed", LIMIT)
    site.enlist("h1")
    site.ready("gpu-1")
    site.runs("h1", "slurmd.service")
    expect(site.out("ctl", "srun", "hostname") == "h1", "no job runs there")


def packages_that_are_removed_leave_slurm_alone(site):
    joined(site)
    job = site.submit()
    slurmd = site.main_pid("h1", "slurmd")
    # As an upgrade does.
    agent, coordinator = site.main_pid("h1", AGENT), site.main_pid("ctl", COORDINATOR)
    site.install("h1", "slurm-enlist")
    site.install("ctl", "slurm-enlist", "slurm-enlist-coordinator")
    wait("the agent runs the new program", lambda: site.main_pid("h1", AGENT) not in (agent, "0"), LIMIT)
    wait("the coordinator does", lambda: site.main_pid("ctl", COORDINATOR) not in (coordinator, "0"), LIMIT)
    wait("it answers", lambda: site.run("ctl", "slurm-enlist", "node", "list", check=False).returncode == 0, LIMIT)
    site.runs("h1", AGENT, "slurmd.service")
    site.phase("gpu-1", "Ready")
    done = site.run("h1", "dpkg", "--purge", "slurm-enlist")
    expect("this host is still a node of its cluster" in done.stderr, f"dpkg says: {done.stdout}{done.stderr}")
    site.run("ctl", "dpkg", "--purge", "slurm-enlist-coordinator")
    for host, unit in (("h1", AGENT), ("ctl", COORDINATOR)):
        expect(site.state(host, unit) == "inactive", f"{unit} of {host} runs still")
        expect(not site.failed_units(host), f"units of {host} failed: {site.failed_units(host)}")
    site.runs("h1", "slurmd.service")
    expect(site.main_pid("h1", "slurmd") == slurmd, "slurmd was restarted")
    # After another installation, the services go on with the same node.
    site.install("ctl", "slurm-enlist-coordinator")
    site.coordinate()
    site.install("h1", "slurm-enlist")
    site.run("h1", "systemctl", "enable", "--now", AGENT)
    site.phase("gpu-1", "Ready")
    site.ends_well(job, "h1")
    site.ready("gpu-1")


TESTS = [(function, 1) for function in (
    a_host_joins_and_its_services_run, a_job_outlives_a_restart_of_slurmd, files_of_slurmd_that_are_removed_return,
    an_agent_that_is_killed_is_started_again, a_coordinator_that_is_killed_is_started_again, a_host_comes_back_after_a_reboot,
    a_controller_comes_back_after_a_reboot, hosts_come_back_after_a_power_cut, a_slurmd_that_fails_is_told,
    a_node_returns_to_a_slurmctld_that_lost_its_state, a_slurmd_of_somebody_else_is_left_alone,
    a_slurmd_as_debian_leaves_it_is_taken_over, packages_that_are_removed_leave_slurm_alone)]

if __name__ == "__main__":
    sys.exit(main(__doc__, TESTS, SystemdSite))

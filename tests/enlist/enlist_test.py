#!/usr/bin/env python3
"""Tests slurm-enlist as an administrator uses it, with a real Slurm on the hosts of dev/enlist-hosts.sh.

Usage: enlist_test.py [--slurm 26.05] [--dir DIR] [NAME...]     tests whose names contain one of NAME; default: all, with each
                                                                Slurm release that there are images of
Needs root and build/release/slurm-enlist. KEEP=1 keeps the hosts of the first test that fails, and ends.
"""

import base64
import hashlib
import json
import os
import sys
import time

from hosts import LIMIT, POOL_FILE, STATE, Failed, expect, idle, releases, wait
from juju import Juju, Refused
from runner import main

TESTS = []


def test(hosts):
    """Registers a test that has so many hosts beside the controller."""
    def registered(function):
        TESTS.append((function, hosts))
        return function

    return registered


def with_pool(site):
    """Starts the coordinator on a controller that knows nothing of enlistment, and makes the pool `gpu`."""
    site.init()
    site.coordinate()
    site.pool("gpu", "--partition", "Default=YES MaxTime=1-0")


# --- The main path --------------------------------------------------------------------------------------------------


# Requirement 1
# Requirement 9
# Requirement 13
@test(hosts=2)
def hosts_join_and_run_jobs(site):
    site.init()
    conf, reconfigures = site.out("ctl", "cat", "/etc/slurm/slurm.conf"), site.reconfigures()
    site.coordinate()
    site.pool("gpu", "--partition", "Default=YES MaxTime=1-0")
    expect(site.enlist("h1", "h2") == ["gpu-1", "gpu-2"], "the nodes have other names")
    site.ready("gpu-1", "gpu-2")
    out = site.out("ctl", "srun", "-N2", "hostname").split()
    expect(sorted(out) == ["h1", "h2"], f"srun -N2 hostname printed {out}")
    for name, record in site.records().items():
        expect(record["partitions"] == ["gpu"] and record["features"] == ["gpu"] and not record["reason"], f"{name}: {record}")
    expect("MaxTime=1-00:00:00" in site.out("ctl", "scontrol", "show", "partition", "gpu"), "the parameters of the partition are lost")
    expect(site.out("ctl", "cat", "/etc/slurm/slurm.conf") == conf, "slurm.conf was changed")
    expect("gpu-" not in conf + site.out("ctl", "cat", POOL_FILE), "a node stands in the configuration")
    expect(site.reconfigures() == reconfigures + 1, f"{site.reconfigures() - reconfigures} reconfigures for one pool")
    site.pool("gpu", "--partition", "Default=YES MaxTime=1-0")
    expect(site.run("ctl", "slurm-enlist", "coordinator", "init", "--yes").stdout.startswith("Nothing has to be changed"),
           "a second init changes something")


# Requirement 17
@test(hosts=10)
def ten_hosts_join_at_once(site):
    with_pool(site)
    wait("slurmctld has the pool", lambda: "PartitionName=gpu" in site.out("ctl", "scontrol", "show", "partitions"), LIMIT)
    reconfigures = site.reconfigures()
    token = site.token("gpu", "--uses", "10")
    hosts = [f"h{i}" for i in range(1, 11)]
    for host in hosts:
        site.write(host, "/tmp/join", f"slurm-enlist join --token {token} --no-service --wait 0 && exec slurm-enlist agent\n")
    for host in hosts:
        site.script("spawn", host, f"{host}.agent.log", "sh", "/tmp/join")
    wait("all have joined", lambda: len(site.nodes()) == 10, LIMIT)
    expect(set(site.nodes()) == {f"gpu-{i}" for i in range(1, 11)}, f"the names are {sorted(site.nodes())}")
    site.ready(*site.nodes())
    out = site.out("ctl", "srun", "-N10", "hostname").split()
    expect(sorted(out) == sorted(hosts), f"srun -N10 hostname printed {out}")
    expect(site.reconfigures() == reconfigures, f"{site.reconfigures() - reconfigures} reconfigures for hosts that join")


# --- Restarts -------------------------------------------------------------------------------------------------------


@test(hosts=1)
def a_host_keeps_its_node_under_another_name(site):
    with_pool(site)
    site.enlist("h1")
    site.ready("gpu-1")
    before = site.registered("gpu-1")
    site.reboot("h1", "renamed")
    site.agent("h1")
    wait("slurmd has registered again", lambda: site.registered("gpu-1") > before, LIMIT)
    site.ready("gpu-1")
    expect(set(site.records()) == set(site.nodes()) == {"gpu-1"}, f"there are the nodes {sorted(site.records())}")
    expect(site.records()["gpu-1"]["hostname"] == "renamed", "Slurm has the old host name")
    expect(site.nodes()["gpu-1"]["report"]["hostname"] == "renamed", "the coordinator has the old host name")
    expect(site.out("ctl", "srun", "-w", "gpu-1", "hostname") == "renamed", "no job runs there")


# What the driver of two GPUs shows. Slurm's AutoDetect=nvidia reads it.
DRIVER = """mount -t tmpfs none /proc/driver && mount -t tmpfs none /sys/bus/pci/drivers && for i in 0 1; do
  bus=0000:0$i:00.0
  mkdir -p /proc/driver/nvidia/gpus/$bus /sys/bus/pci/drivers/nvidia/$bus
  printf 'Model: \\t\\t NVIDIA H100\\nGPU UUID: \\t GPU-%s\\nDevice Minor: \\t %s\\n' $i $i >/proc/driver/nvidia/gpus/$bus/information
  cp /sys/devices/system/cpu/online /sys/bus/pci/drivers/nvidia/$bus/local_cpulist
  mknod /dev/nvidia$i c 1 3
done"""


# Requirement 42
# Requirement 43
@test(hosts=1)
def a_host_brings_its_gpus(site):
    site.run("ctl", "sh", "-c", "echo GresTypes=gpu >>/etc/slurm/slurm.conf && echo AutoDetect=nvidia >/etc/slurm/gres.conf")
    with_pool(site)
    site.run("h1", "sh", "-c", DRIVER)
    site.enlist("h1")
    site.ready("gpu-1")
    expect("gpu:nvidia_h100:2" in site.records()["gpu-1"]["gres"], f"Slurm has {site.records()['gpu-1']['gres']}")
    for wanted, seen in (("gpu:1", "0"), ("gpu:nvidia_h100:2", "0,1")):
        found = site.out("ctl", "srun", f"--gres={wanted}", "printenv", "CUDA_VISIBLE_DEVICES")
        expect(found == seen, f"a job with {wanted} sees {found}")
    expect("Gres" not in site.out("ctl", "cat", POOL_FILE), "the file of the pools has GPUs")


# Requirement 42
@test(hosts=2)
def gpus_that_slurmd_does_not_find_are_named(site):
    """An administrator names them for a pool, and a program of the host for another one. gres.conf has their files."""
    site.run("ctl", "sh", "-c", "echo GresTypes=gpu >>/etc/slurm/slurm.conf && echo 'Name=gpu Type=a100 File=/dev/gpu[0-1]' >/etc/slurm/gres.conf")
    with_pool(site)
    site.pool("named", "--nodes", "Gres=gpu:a100:2")
    for host in ("h1", "h2"):
        site.run(host, "sh", "-c", "mknod /dev/gpu0 c 1 3 && mknod /dev/gpu1 c 1 3")
    site.write("h1", "/usr/local/bin/gpus", "#!/bin/sh\necho Gres=gpu:a100:2\n", "0755")
    site.join("h1", site.token())
    site.agent("h1", "--gpu-detector", "/usr/local/bin/gpus")
    site.enlist("h2", pool="named")
    site.ready("gpu-1", "named-1")
    for pool, host in (("gpu", "h1"), ("named", "h2")):
        expect("gpu:a100:2" in site.records()[f"{pool}-1"]["gres"], f"Slurm has {site.records()[f'{pool}-1']['gres']}")
        for wanted, seen in (("gpu:1", "0"), ("gpu:a100:2", "0,1")):
            found = site.out("ctl", "srun", "-p", pool, f"--gres={wanted}", "sh", "-c", "echo $(hostname) $CUDA_VISIBLE_DEVICES")
            expect(found == f"{host} {seen}", f"a job with {wanted} sees {found}")
        refused = site.run("ctl", "srun", "-p", pool, "--gres=gpu:3", "true", check=False)
        expect(refused.returncode != 0, "a job gets three GPUs of two")


@test(hosts=1)
def a_driver_that_comes_late_is_found(site):
    """Its node is invalid until then. slurmd is not restarted while a job runs."""
    site.run("ctl", "sh", "-c", "echo GresTypes=gpu >>/etc/slurm/slurm.conf && echo 'Name=gpu File=/dev/gpu[0-1]' >/etc/slurm/gres.conf")
    with_pool(site)
    detector, devices = "/usr/local/bin/gpus", "mknod /dev/gpu0 c 1 3; mknod /dev/gpu1 c 1 3; :"
    site.run("h1", "sh", "-c", devices)
    site.write("h1", detector, "#!/bin/sh\necho Gres=gpu:2\n", "0755")
    site.join("h1", site.token())
    site.agent("h1", "--gpu-detector", detector)
    site.ready("gpu-1")
    site.write("h1", detector, "#!/bin/sh\n", "0755")
    site.reboot("h1")
    site.run("h1", "sh", "-c", devices)
    site.agent("h1", "--gpu-detector", detector)
    expect("gres/gpu" in site.phase("gpu-1", "Invalid"), f"the message is {site.nodes()['gpu-1']['message']}")
    site.write("h1", detector, "#!/bin/sh\necho Gres=gpu:2\n", "0755")
    wait("the registration is valid", lambda: "INVALID_REG" not in site.records()["gpu-1"]["state"], 3 * LIMIT)
    wait("the drain is told", lambda: "somebody else has drained it: gres/gpu" in site.nodes()["gpu-1"]["message"], LIMIT)
    site.run("ctl", "scontrol", "update", "nodename=gpu-1", "state=resume")
    site.ready("gpu-1")
    expect(site.out("ctl", "srun", "--gres=gpu:2", "hostname") == "h1", "no job runs there")


@test(hosts=1)
def an_agent_that_is_killed_disturbs_nothing(site):
    with_pool(site)
    site.enlist("h1")
    site.ready("gpu-1")
    job = site.submit()
    before = site.as_it_is("h1")
    site.end("h1", "slurm-enlist agent")
    expect(site.as_it_is("h1") == before, "something changed with the agent's end")
    site.agent("h1")
    wait("the agent has a status", lambda: site.status("h1")["phase"] == "Ready", LIMIT)
    time.sleep(2)
    expect(site.as_it_is("h1") == before, f"the next agent changed something: {before} became {site.as_it_is('h1')}")
    site.ends_well(job, "h1")


@test(hosts=1)
def a_slurmd_that_is_killed_is_started_again(site):
    with_pool(site)
    site.enlist("h1")
    site.ready("gpu-1")
    job = site.submit()
    before = site.registered("gpu-1")
    site.end("h1", "/usr/sbin/slurmd")
    wait("another slurmd is registered", lambda: site.registered("gpu-1") > before, LIMIT)
    site.ends_well(job, "h1")
    site.ready("gpu-1")


@test(hosts=2)
def a_coordinator_that_is_killed_disturbs_nothing(site):
    with_pool(site)
    site.enlist("h1", "h2")
    site.ready("gpu-1", "gpu-2")
    job = site.submit("-w", "gpu-1")
    before, nodes = site.as_it_is("h1", "h2"), site.nodes()
    site.end("ctl", "slurm-enlist coordinator run")
    wait("slurmrestd ends with it", lambda: not site.processes("ctl", "slurmrestd"), LIMIT)
    site.coordinate()
    wait("it has the nodes as before", lambda: site.nodes() == nodes, LIMIT)
    time.sleep(2)
    expect(site.as_it_is("h1", "h2") == before, f"something changed: {before} became {site.as_it_is('h1', 'h2')}")
    site.ends_well(job, "h1")


@test(hosts=1)
def nobody_else_reaches_slurmrestd(site):
    """The coordinator sends tokens of SlurmUser to its slurmrestd, and to nobody who takes its place."""
    with_pool(site)
    folder = "/run/slurm-enlist-coordinator"
    expect(site.out("ctl", "stat", "-c", "%a %U", folder) == "700 slurm-enlist", "the folder of the socket is open to others")
    pid = next(iter(site.processes("ctl", "slurmrestd")))
    listens = site.out("ctl", "sh", "-c", f"for fd in /proc/{pid}/fd/*; do readlink $fd; done; cat /proc/net/unix")
    expect(f"{folder}/slurmrestd." in listens, f"its socket is elsewhere: {listens}")
    ports = {int(line.split()[1].split(":")[1], 16) for line in site.out("ctl", "cat", "/proc/net/tcp", "/proc/net/tcp6").splitlines()
             if len(line.split()) > 3 and line.split()[3] == "0A"}
    expect({6830, 6831} <= ports and 6832 not in ports, f"these ports are open: {ports}")
    # A slurmrestd that is killed removes nothing, and the next one listens all the same.
    site.end("ctl", "slurmrestd")
    wait("another one runs", lambda: site.processes("ctl", "slurmrestd"), LIMIT)
    site.enlist("h1")
    site.ready("gpu-1")


@test(hosts=2)
def a_copied_host_is_noticed(site):
    """The copy has the key of the node, and another slurmd. Slurm itself ends jobs when the copy's slurmd registers."""
    with_pool(site)
    site.enlist("h1")
    site.ready("gpu-1")
    files = site.out("h1", "sh", "-c", "tar -C /var/lib -cz slurm-enlist | base64 -w0")
    site.run("h2", "sh", "-c", "base64 -d | tar -C /var/lib -xz", text=files)
    site.agent("h2")
    message = site.phase("gpu-1", "Impostor")
    expect(message.startswith("two hosts use the key of this node") and "h1 (boot " in message and "h2 (boot " in message, message)
    wait("the hosts are told", lambda: site.status("h2")["message"] == message == site.status("h1")["message"], LIMIT)
    site.run("ctl", "slurm-enlist", "node", "remove", "gpu-1", "--wait", "0")
    site.phase("gpu-1", "Stuck")
    time.sleep(10)
    expect("gpu-1" in site.records() and site.processes("h1", "/usr/sbin/slurmd"), "the copy has spoken for the node")
    site.run("ctl", "slurm-enlist", "node", "keep", "gpu-1")
    # What the documentation says.
    site.end("h2", "slurm-enlist agent")
    site.end("h2", "/usr/sbin/slurmd")
    site.run("h2", "rm", "-r", "/var/lib/slurm-enlist")
    expect(site.enlist("h2") == ["gpu-2"], "the copy has not joined as another node")
    site.ready("gpu-2")
    wait("two hosts are seen no more", lambda: site.nodes()["gpu-1"]["phase"] != "Impostor", 5 * LIMIT)
    site.run("h1", "kill", "-HUP", str(next(iter(site.processes("h1", "/usr/sbin/slurmd")))))
    site.ready("gpu-1")


@test(hosts=2)
def hosts_work_without_the_coordinator(site):
    """A coordinator that is away stops no slurmd. A host that boots meanwhile starts it."""
    with_pool(site)
    site.enlist("h1", "h2")
    site.ready("gpu-1", "gpu-2")
    site.end("ctl", "slurm-enlist coordinator run", "TERM")
    before = site.registered("gpu-2")
    site.reboot("h2")
    site.agent("h2")
    wait("slurmd has registered again", lambda: site.registered("gpu-2") > before, LIMIT)
    out = wait("a job on both", lambda: site.out("ctl", "srun", "-N2", "hostname").split(), LIMIT)
    expect(sorted(out) == ["h1", "h2"], f"srun -N2 hostname printed {out}")
    site.coordinate()
    site.ready("gpu-1", "gpu-2")


@test(hosts=1)
def a_restart_of_slurmctld_changes_nothing(site):
    with_pool(site)
    site.enlist("h1")
    site.ready("gpu-1")
    job = site.submit()
    # slurmctld knows the start of a slurmd only from its registration.
    before = site.processes("h1", "/usr/sbin/slurmd")
    site.end("ctl", "slurmctld --systemd", "TERM")
    site.slurmctld()
    wait("the node is back", lambda: "ALLOCATED" in str(site.records()["gpu-1"]["state"]) or "MIXED" in str(site.records()["gpu-1"]["state"]),
         LIMIT)
    expect(site.processes("h1", "/usr/sbin/slurmd") == before, "slurmd was restarted")
    site.ends_well(job, "h1")
    site.ready("gpu-1")


@test(hosts=2)
def nodes_return_to_a_slurmctld_that_lost_its_state(site):
    with_pool(site)
    site.enlist("h1", "h2")
    site.ready("gpu-1", "gpu-2")
    before = site.processes("h1", "/usr/sbin/slurmd")
    site.end("ctl", "slurmctld --systemd", "TERM")
    site.run("ctl", "sh", "-c", "rm -rf /var/spool/slurmctld/*")
    site.slurmctld()
    wait("both have registered again", lambda: all(node["registrations"] == 1 for node in site.nodes().values()), LIMIT)
    site.ready("gpu-1", "gpu-2")
    expect(site.processes("h1", "/usr/sbin/slurmd") == before, "slurmd was restarted, not reloaded")
    out = site.out("ctl", "srun", "-N2", "hostname").split()
    expect(sorted(out) == ["h1", "h2"], f"srun -N2 hostname printed {out}")


@test(hosts=1)
def a_record_that_is_deleted_again_and_again_returns(site):
    with_pool(site)
    site.enlist("h1")
    site.ready("gpu-1")
    before = site.processes("h1", "/usr/sbin/slurmd")
    for _ in range(3):
        # The next one is deleted before the coordinator has confirmed it, too.
        wait("Slurm has the node", lambda: "gpu-1" in site.records(), 2 * LIMIT)
        site.run("ctl", "scontrol", "delete", "nodename=gpu-1")
    wait("Slurm has the node", lambda: "gpu-1" in site.records(), 2 * LIMIT)
    site.ready("gpu-1")
    expect(site.processes("h1", "/usr/sbin/slurmd") == before, "slurmd was restarted, not reloaded")


@test(hosts=2)
def a_node_that_the_full_table_refused_returns_when_there_is_room(site):
    def room_for(count):
        site.run("ctl", "sed", "-i", f"s/^MaxNodeCount=.*/MaxNodeCount={count}/", "/etc/slurm/slurm.conf")
        site.run("ctl", "scontrol", "reconfigure")

    with_pool(site)
    site.enlist("h1")
    site.ready("gpu-1")
    site.join("h2", site.token())
    room_for(1)
    site.agent("h2")
    expect("Slurm's node table is full" in site.phase("gpu-2", "Refused"), f"the message is {site.nodes()['gpu-2']['message']}")
    room_for(2)
    site.ready("gpu-1", "gpu-2")


# --- Drains and the gate --------------------------------------------------------------------------------------------


# Requirement 2
@test(hosts=1)
def a_drain_of_an_administrator_stays(site):
    with_pool(site)
    site.enlist("h1")
    site.ready("gpu-1")
    reason = "bad \"disk\"; it's $HOME"
    site.run("ctl", "scontrol", "update", "nodename=gpu-1", "state=drain", f"reason={reason}")

    def stays(after):
        wait("the coordinator knows the drain", lambda: reason in site.nodes()["gpu-1"]["message"], LIMIT)
        time.sleep(2)
        record = site.records()["gpu-1"]
        expect("DRAIN" in record["state"] and record["reason"] == reason, f"after {after}: {record['state']} {record['reason']}")

    def registers(after):
        wait(f"another slurmd is registered after {after}", lambda: site.registered("gpu-1") > before, LIMIT)
        stays(after)

    stays("the drain")
    site.end("h1", "slurm-enlist agent")
    site.agent("h1")
    stays("a restart of the agent")
    site.end("ctl", "slurm-enlist coordinator run")
    site.coordinate()
    stays("a restart of the coordinator")
    before = site.registered("gpu-1")
    site.end("h1", "/usr/sbin/slurmd")
    registers("a restart of slurmd")
    before = site.registered("gpu-1")
    site.reboot("h1")
    site.agent("h1")
    registers("a reboot")
    site.run("ctl", "scontrol", "update", "nodename=gpu-1", "state=resume")
    site.ready("gpu-1")


@test(hosts=1)
def a_check_that_fails_keeps_the_gate_closed(site):
    with_pool(site)
    check = '[ -e /tmp/good ] || { echo "error: $1 of $2 has no /scratch" >&2; exit 3; }'
    site.write("h1", "/usr/local/sbin/check", f"#!/bin/sh\n{check}\n", "0755")
    site.join("h1", site.token())
    site.agent("h1", "--check", "/usr/local/sbin/check")
    told = "the check /usr/local/sbin/check fails (exit code 3): error: gpu-1 of gpu has no /scratch"
    wait("the coordinator knows the cause", lambda: told in site.nodes()["gpu-1"]["message"], LIMIT)
    expect(site.phase("gpu-1", "Enlisted").startswith("its check has not passed yet"), f"the message is {site.nodes()['gpu-1']['message']}")
    wait("the host has the cause", lambda: told in site.status("h1")["message"], LIMIT)
    time.sleep(2)
    record = site.records()["gpu-1"]
    expect("DRAIN" in record["state"] and record["reason"] == "slurm-enlist: joining", f"{record['state']} {record['reason']}")
    site.run("h1", "touch", "/tmp/good")
    site.ready("gpu-1")
    expect("error" not in site.status("h1"), f"the host says {site.status('h1')}")


# Requirement 2
@test(hosts=1)
def a_drain_at_the_gate_stays(site):
    """An administrator drains a node whose check has not passed yet. The node stays drained when it passes."""
    with_pool(site)
    site.write("h1", "/usr/local/sbin/check", "#!/bin/sh\n[ -e /tmp/good ]\n", "0755")
    site.join("h1", site.token())
    site.agent("h1", "--check", "/usr/local/sbin/check")
    site.phase("gpu-1", "Enlisted")
    site.run("ctl", "scontrol", "update", "nodename=gpu-1", "state=drain", "reason=mine")
    site.run("h1", "touch", "/tmp/good")
    wait("the check has passed", lambda: site.nodes()["gpu-1"]["report"]["check_passed"], LIMIT)
    wait("the coordinator knows the drain", lambda: "somebody else has drained it: mine" in site.nodes()["gpu-1"]["message"], LIMIT)
    record = site.records()["gpu-1"]
    expect("DRAIN" in record["state"] and record["reason"] == "mine", f"{record['state']} {record['reason']}")
    site.run("ctl", "scontrol", "update", "nodename=gpu-1", "state=resume")
    site.ready("gpu-1")


@test(hosts=1)
def a_boot_closes_the_gate_until_the_check_passes(site):
    with_pool(site)
    site.write("h1", "/usr/local/sbin/check", "#!/bin/sh\n[ -e /tmp/good ]\n", "0755")
    site.join("h1", site.token())
    site.run("h1", "touch", "/tmp/good")
    site.agent("h1", "--check", "/usr/local/sbin/check")
    site.ready("gpu-1")

    def boot():
        site.reboot("h1")
        site.run("h1", "sh", "-c", "cat /proc/sys/kernel/random/uuid >/tmp/boot && mount --bind /tmp/boot /proc/sys/kernel/random/boot_id")
        site.agent("h1", "--check", "/usr/local/sbin/check")

    site.run("h1", "rm", "/tmp/good")
    boot()
    wait("the gate is closed", lambda: (lambda record: "DRAIN" in record["state"] and record["reason"] == "slurm-enlist: joining")(
        site.records()["gpu-1"]), LIMIT)
    site.phase("gpu-1", "Enlisted")
    site.run("h1", "touch", "/tmp/good")
    site.ready("gpu-1")
    # Somebody who resumes it from the gate wants it open.
    site.run("h1", "rm", "/tmp/good")
    boot()
    wait("the gate is closed", lambda: "its check has not passed yet" in site.nodes()["gpu-1"]["message"], LIMIT)
    site.run("ctl", "scontrol", "update", "nodename=gpu-1", "state=resume")
    wait("it is open", lambda: idle(site.records()["gpu-1"]), LIMIT)
    time.sleep(5)
    expect(idle(site.records()["gpu-1"]), "it was drained again")


# Requirement 2
@test(hosts=1)
def a_drain_is_found_again_on_a_new_record(site):
    """slurmctld has lost what an administrator had set. slurm-enlist knows it."""
    with_pool(site)
    site.enlist("h1")
    site.ready("gpu-1")
    site.run("ctl", "scontrol", "update", "nodename=gpu-1", "state=drain", "reason=bad fan")
    site.run("ctl", "scontrol", "update", "nodename=gpu-1", "comment=row 7")
    wait("the coordinator knows both", lambda: site.nodes()["gpu-1"]["marks"] == {"reason": "bad fan", "comment": "row 7"}, LIMIT)
    site.end("ctl", "slurmctld --systemd", "TERM")
    site.run("ctl", "sh", "-c", "rm -rf /var/spool/slurmctld/*")
    site.slurmctld()
    wait("the drain is found again", lambda: (lambda node: "DRAIN" in node["state"] and node["reason"] == "bad fan" and node["comment"] == "row 7")(
        site.records()["gpu-1"]), LIMIT)
    site.run("ctl", "slurm-enlist", "node", "resume", "gpu-1")
    site.ready("gpu-1")


# --- Leaving --------------------------------------------------------------------------------------------------------


def gone(site, name, host=None):
    """Waits until neither the coordinator nor Slurm has the node. If the host lives, nothing of slurm-enlist is left there."""
    wait(f"{name} is gone", lambda: name not in site.nodes() and name not in site.records(), LIMIT)
    if host is None:
        return
    wait("the agent has ended", lambda: not site.processes(host, "slurm-enlist agent"), LIMIT)
    expect(not site.processes(host, "/usr/sbin/slurmd"), "slurmd runs on")
    left = [path for path in site.files(host) if path.startswith((STATE, "/etc/slurm/", "/etc/default/", "/run/slurm-enlist/"))]
    expect(not left, f"the host still has {left}")


# Requirement 24
@test(hosts=2)
def an_idle_node_leaves(site):
    with_pool(site)
    site.enlist("h1", "h2")
    site.ready("gpu-1", "gpu-2")
    other = site.registered("gpu-2")
    out = site.out("ctl", "slurm-enlist", "node", "remove", "gpu-1", "--wait", str(LIMIT))
    expect(out.endswith("gpu-1: it has left"), f"it says {out}")
    gone(site, "gpu-1", "h1")
    expect(site.registered("gpu-2") == other and "gpu-2" in site.nodes(), "the other node was disturbed")
    done = site.run("ctl", "slurm-enlist", "node", "remove", "gpu-1", check=False)
    expect(done.returncode == 1 and "there is no node gpu-1" in done.stderr, f"it says {done.stderr}")
    expect(site.enlist("h1") == ["gpu-3"], "a name is used again")
    site.ready("gpu-2", "gpu-3")
    site.end("h2", "slurm-enlist agent", "TERM")
    site.script("spawn", "h2", "h2.leave.log", "slurm-enlist", "leave")
    wait("the command misses the agent", lambda: "the agent has to take the node out of the cluster, and has not reported for 10 s" in site.log("h2.leave.log"), LIMIT)
    site.agent("h2")
    gone(site, "gpu-2", "h2")
    wait("the command has told it", lambda: "This host has left." in site.log("h2.leave.log"), LIMIT)


# Requirement 19
# Requirement 20
# Requirement 21
# Requirement 48
@test(hosts=1)
def a_busy_node_leaves_after_its_job(site):
    with_pool(site)
    site.enlist("h1")
    site.ready("gpu-1")
    job = site.submit()
    site.run("h1", "slurm-enlist", "leave", "--wait", "0")
    wait("it waits for the job", lambda: f"jobs run there: {job}" in site.nodes()["gpu-1"]["message"], LIMIT)
    record = site.records()["gpu-1"]
    expect("DRAIN" in record["state"] and record["reason"] == "slurm-enlist: leaving", f"{record['state']} {record['reason']}")
    # Slurm would delete the record of a node whose job is suspended.
    site.run("ctl", "scontrol", "suspend", job)
    wait("it waits for the suspended job", lambda: f"jobs are suspended there: {job}" in site.nodes()["gpu-1"]["message"], LIMIT)
    time.sleep(3)
    expect("gpu-1" in site.records() and site.processes("h1", "/usr/sbin/slurmd"), "the node went under its job")
    site.run("ctl", "scontrol", "resume", job)
    site.ends_well(job, "h1")
    gone(site, "gpu-1", "h1")


# Requirement 21
@test(hosts=1)
def a_leave_goes_on_whatever_is_killed(site):
    with_pool(site)
    site.enlist("h1")
    site.ready("gpu-1")
    job = site.submit()
    site.run("ctl", "slurm-enlist", "node", "remove", "gpu-1", "--wait", "0")
    site.phase("gpu-1", "Draining")
    site.end("ctl", "slurm-enlist coordinator run")
    site.end("h1", "slurm-enlist agent")
    site.coordinate()
    site.agent("h1")
    wait("it waits for the job", lambda: f"jobs run there: {job}" in site.nodes()["gpu-1"]["message"], LIMIT)
    # A slurmctld that is killed forgets jobs of which it has not saved the state yet, and ends them.
    site.end("ctl", "slurmctld --systemd", "TERM")
    wait("Slurm is away", lambda: "Slurm does not answer" in site.nodes()["gpu-1"]["message"], LIMIT)
    site.slurmctld()
    wait("it waits for the job", lambda: f"jobs run there: {job}" in site.nodes()["gpu-1"]["message"], LIMIT)
    site.ends_well(job, "h1")
    # From here on, each step takes less than a second.
    for _ in range(20):
        if not site.nodes():
            break
        site.end("ctl", "slurm-enlist coordinator run")
        pids = list(site.processes("h1", "slurm-enlist agent"))
        if pids:
            # It may end by itself just now.
            site.run("h1", "kill", "-KILL", str(pids[0]), check=False)
            wait("the agent has ended", lambda: not site.processes("h1", "slurm-enlist agent"), LIMIT)
            if site.run("h1", "test", "-e", f"{STATE}/agent.json", check=False).returncode == 0:
                site.agent("h1")
        site.coordinate()
        time.sleep(0.5)
    gone(site, "gpu-1", "h1")


# Requirement 22
@test(hosts=1)
def a_node_that_is_kept_works_on(site):
    with_pool(site)
    site.enlist("h1")
    site.ready("gpu-1")
    job = site.submit()
    before = site.processes("h1", "/usr/sbin/slurmd")
    site.run("ctl", "slurm-enlist", "node", "remove", "gpu-1", "--wait", "0")
    wait("it waits for the job", lambda: f"jobs run there: {job}" in site.nodes()["gpu-1"]["message"], LIMIT)
    site.run("ctl", "slurm-enlist", "node", "keep", "gpu-1")
    wait("it is open", lambda: site.nodes()["gpu-1"]["phase"] == "Ready" and "DRAIN" not in site.records()["gpu-1"]["state"], LIMIT)
    expect(site.processes("h1", "/usr/sbin/slurmd") == before, "slurmd was restarted")
    site.ends_well(job, "h1")
    site.ready("gpu-1")


def record_with(site, name, **values):
    """Waits until Slurm's record of the node has these values."""
    def shown():
        record = site.records().get(name, {})
        return all((record[key]["number"] if isinstance(record[key], dict) else record[key]) == value for key, value in values.items()) \
            if record else False

    wait(f"{name} has {values}", shown, LIMIT)


# Requirement 2
# Requirement 39
# Requirement 40
@test(hosts=2)
def a_node_gets_other_words_after_its_job(site):
    with_pool(site)
    site.enlist("h1", "h2")
    site.ready("gpu-1", "gpu-2")
    job, other = site.submit("-w", "gpu-1"), site.processes("h2", "/usr/sbin/slurmd")
    before = site.processes("h1", "/usr/sbin/slurmd")
    site.script("spawn", "ctl", "config.log", "slurm-enlist", "node", "config", "gpu-1", "RealMemory=500", "Weight=7")
    wait("it waits for the job", lambda: f"jobs run there: {job}" in site.nodes()["gpu-1"]["message"], LIMIT)
    record = site.records()["gpu-1"]
    expect("DRAIN" in record["state"] and record["reason"] == "slurm-enlist: configuring", f"{record['state']} {record['reason']}")
    # It is taken back, and the node works on.
    site.run("ctl", "slurm-enlist", "node", "config", "gpu-1", "--reset")
    wait("it is open", lambda: site.nodes()["gpu-1"]["phase"] == "Ready" and "DRAIN" not in site.records()["gpu-1"]["state"], LIMIT)
    wait("the command has told it", lambda: "or gpu-1 was given other parameters" in site.log("config.log"), LIMIT)
    # It is wished again. Somebody drains the node meanwhile, and both daemons of ours are killed.
    site.run("ctl", "slurm-enlist", "node", "config", "gpu-1", "RealMemory=500", "Weight=7", "--wait", "0")
    wait("it waits for the job", lambda: f"jobs run there: {job}" in site.nodes()["gpu-1"]["message"], LIMIT)
    wait("it is drained", lambda: site.records()["gpu-1"]["reason"] == "slurm-enlist: configuring", LIMIT)
    site.run("ctl", "scontrol", "update", "nodename=gpu-1", "state=drain", "reason=bad fan", "comment=rack 4")
    site.end("ctl", "slurm-enlist coordinator run")
    site.end("h1", "slurm-enlist agent")
    site.coordinate()
    site.agent("h1")
    wait("it waits for the job", lambda: f"jobs run there: {job}" in site.nodes()["gpu-1"]["message"], LIMIT)
    expect(site.processes("h1", "/usr/sbin/slurmd") == before, "slurmd was restarted under the job")
    expect(site.job(job) == "RUNNING", f"the job is {site.job(job)}")
    site.ends_well(job, "h1")
    out = site.out("ctl", "slurm-enlist", "node", "config", "gpu-1", "RealMemory=500 Weight=7", "--wait", str(LIMIT))
    expect("gpu-1: Ready" in out, f"it says {out}")
    record_with(site, "gpu-1", real_memory=500, weight=7, comment="rack 4", reason="bad fan")
    expect("DRAIN" in site.records()["gpu-1"]["state"], "the drain of somebody else is undone")
    expect(site.processes("h1", "/usr/sbin/slurmd") != before, "slurmd was not started again")
    site.run("ctl", "slurm-enlist", "node", "resume", "gpu-1")
    site.ready("gpu-1", "gpu-2")
    expect(site.out("ctl", "srun", "-w", "gpu-1", "hostname") == "h1", "no job runs there")
    expect(site.processes("h2", "/usr/sbin/slurmd") == other, "the other node was disturbed")
    # And back.
    site.run("ctl", "slurm-enlist", "node", "config", "gpu-1", "--reset", "--wait", str(LIMIT))
    wait("it has its whole memory again", lambda: site.records()["gpu-1"]["real_memory"] > 500, LIMIT)
    record_with(site, "gpu-1", weight=1, comment="rack 4")
    site.ready("gpu-1")


def kill_slurmctld(site, later):
    """Kills slurmctld before it may have saved its state, and starts it again."""
    time.sleep(later)
    site.end("ctl", "slurmctld --systemd", "KILL")
    site.slurmctld()
    wait("slurmctld answers", lambda: site.run("ctl", "scontrol", "ping", check=False).returncode == 0, LIMIT)


# Requirement 21
@test(hosts=4)
def a_deletion_that_slurmctld_has_not_saved_is_done_again(site):
    """slurmctld saves its state some seconds after a change. Killed before that, it starts with the record that was deleted."""
    with_pool(site)
    site.enlist("h1", "h2", "h3", "h4")
    site.ready("gpu-1", "gpu-2", "gpu-3", "gpu-4")
    job = site.submit("-w", "gpu-4")
    time.sleep(8)  # slurmctld has saved the job. It ends jobs that it does not know.
    again = 0
    for name, host, later in (("gpu-1", "h1", 0), ("gpu-2", "h2", 2), ("gpu-3", "h3", 4)):
        site.run("ctl", "slurm-enlist", "node", "remove", name, "--wait", str(LIMIT))
        kill_slurmctld(site, later)
        if name in site.records():
            again += 1
            wait(f"the coordinator shows {name} again", lambda: name in site.nodes() or name not in site.records(), LIMIT)
        gone(site, name, host)
    expect(again > 0, "slurmctld had saved every deletion")
    time.sleep(5)
    expect(set(site.records()) == set(site.nodes()) == {"gpu-4"}, f"Slurm has {set(site.records())}, the coordinator {set(site.nodes())}")
    expect(site.enlist("h1") == ["gpu-5"], "a name is used again")
    site.ready("gpu-5")
    expect(site.out("ctl", "srun", "-w", "gpu-5", "hostname") == "h1", "no job runs there")
    site.ends_well(job, "h4")


@test(hosts=1)
def other_words_are_given_again_after_slurmctld_has_lost_the_record(site):
    with_pool(site)
    site.enlist("h1")
    site.ready("gpu-1")
    time.sleep(8)  # slurmctld has saved the first record.
    memory = 500
    for later in (0, 1, 2):
        memory += 100
        time.sleep(8)  # slurmctld has saved the record from before.
        site.run("ctl", "slurm-enlist", "node", "config", "gpu-1", f"RealMemory={memory}", "--wait", "0")
        record_with(site, "gpu-1", real_memory=memory)
        kill_slurmctld(site, later)
        # slurmctld may have lost the drain as well. Then nothing tells the record from one that somebody has resumed.
        wait("the parameters are set again, or the message says why not",
             lambda: site.nodes()["gpu-1"]["phase"] == "Ready" and (site.records()["gpu-1"]["real_memory"] == memory or
                                                                    "from before the node got these parameters" in site.nodes()["gpu-1"]["message"]), LIMIT)
        site.run("ctl", "slurm-enlist", "node", "config", "gpu-1", f"RealMemory={memory}", "--wait", str(LIMIT))
        record_with(site, "gpu-1", real_memory=memory)
        site.ready("gpu-1")
        expect(site.out("ctl", "srun", "hostname") == "h1", "no job runs there")


@test(hosts=1)
def other_words_are_set_whatever_is_killed(site):
    with_pool(site)
    site.enlist("h1")
    site.ready("gpu-1")
    site.run("ctl", "scontrol", "update", "nodename=gpu-1", "state=drain", "reason=bad fan")
    site.phase("gpu-1", "Ready")
    wait("the coordinator knows the drain", lambda: site.nodes()["gpu-1"]["marks"]["reason"] == "bad fan", LIMIT)
    site.run("ctl", "slurm-enlist", "node", "config", "gpu-1", "RealMemory=500", "--wait", "0")
    # Each step takes less than a second.
    for _ in range(20):
        if site.records().get("gpu-1", {}).get("real_memory") == 500:
            break
        site.end("ctl", "slurm-enlist coordinator run")
        site.end("h1", "slurm-enlist agent")
        site.agent("h1")
        site.coordinate()
        time.sleep(0.3)
    record_with(site, "gpu-1", real_memory=500, reason="bad fan")
    site.phase("gpu-1", "Ready")
    site.run("ctl", "slurm-enlist", "node", "resume", "gpu-1")
    site.ready("gpu-1")
    expect(site.out("ctl", "srun", "hostname") == "h1", "no job runs there")


@test(hosts=1)
def weight_and_features_change_under_a_job(site):
    with_pool(site)
    site.enlist("h1")
    site.ready("gpu-1")
    job = site.submit()
    before = site.processes("h1", "/usr/sbin/slurmd")
    site.run("ctl", "slurm-enlist", "node", "config", "gpu-1", "Weight=7", "Features=ssd", "--wait", str(LIMIT))
    record_with(site, "gpu-1", weight=7)
    expect(sorted(site.records()["gpu-1"]["features"]) == ["gpu", "ssd"], f"{site.records()['gpu-1']['features']}")
    expect("DRAIN" not in site.records()["gpu-1"]["state"], "the node was drained")
    # Slurm reverts both when it reconfigures.
    site.run("ctl", "scontrol", "reconfigure")
    time.sleep(2)
    record_with(site, "gpu-1", weight=7)
    wait("it has the feature", lambda: sorted(site.records()["gpu-1"]["features"]) == ["gpu", "ssd"], LIMIT)
    # The next start of slurmd has them.
    expect(site.job(job) == "RUNNING", f"the job is {site.job(job)}")
    site.ends_well(job, "h1")
    site.run("ctl", "slurm-enlist", "node", "config", "gpu-1", "Features=nvme", "--wait", str(LIMIT))
    record_with(site, "gpu-1", weight=1)
    expect(sorted(site.records()["gpu-1"]["features"]) == ["gpu", "nvme"], f"{site.records()['gpu-1']['features']}")
    expect(site.processes("h1", "/usr/sbin/slurmd") == before, "slurmd was restarted")
    site.end("h1", "/usr/sbin/slurmd")
    wait("it is started with the parameters", lambda: "nvme" in site.nodes()["gpu-1"]["report"]["conf"], LIMIT)
    site.ready("gpu-1")


# Requirement 38
# Requirement 40
@test(hosts=1)
def words_that_cannot_be_are_refused_or_told(site):
    with_pool(site)
    site.enlist("h1")
    site.ready("gpu-1")
    before = site.nodes()["gpu-1"], site.processes("h1", "/usr/sbin/slurmd")
    for words, cause in (("Bogus=1", "Bogus"), ("RealMemory=lots", "RealMemory"), ("State=IDLE", "State"), ("CPUs", "CPUs")):
        done = site.run("ctl", "slurm-enlist", "node", "config", "gpu-1", words, check=False)
        expect(done.returncode == 1 and cause in done.stderr, f"{words}: {done.returncode} {done.stderr}")
    if site.release == "24.11":
        done = site.run("ctl", "slurm-enlist", "node", "config", "gpu-1", "Topology=default:s1", check=False)
        expect(done.returncode == 1 and "Slurm has this parameter since 25.05" in done.stderr, f"{done.returncode} {done.stderr}")
    expect((site.nodes()["gpu-1"], site.processes("h1", "/usr/sbin/slurmd")) == before, "a refused parameter changed something")
    # Only Slurm knows that the host has less.
    done = site.run("ctl", "slurm-enlist", "node", "config", "gpu-1", "RealMemory=999000000", "--wait", str(LIMIT), check=False)
    expect(done.returncode == 1 and "Invalid: " in done.stdout and "Low RealMemory" in done.stdout, f"{done.stdout} {done.stderr}")
    out = site.out("ctl", "slurm-enlist", "node", "config", "gpu-1", "--reset", "--wait", str(LIMIT))
    expect("gpu-1: Ready" in out, f"it says {out}")
    site.ready("gpu-1")


@test(hosts=1)
def a_dead_host_is_removed(site):
    with_pool(site)
    site.enlist("h1")
    site.ready("gpu-1")
    site.script("kill", "h1")
    # The limits are two minutes of silence, and SlurmdTimeout.
    wait("it is drained", lambda: site.records()["gpu-1"]["reason"] == "slurm-enlist: silent", 6 * LIMIT)
    expect(site.nodes()["gpu-1"]["phase"] == "Silent", f"it is {site.nodes()['gpu-1']['phase']}")
    site.run("ctl", "slurm-enlist", "node", "remove", "gpu-1", "--wait", str(LIMIT))
    gone(site, "gpu-1")
    site.script("boot", "h1")
    site.agent("h1")
    wait("the host is told", lambda: "it must join again, with a new token" in site.status("h1").get("error", ""), LIMIT)


# Requirement 26
# Requirement 27
# Requirement 28
# Requirement 48
# Requirement 49
@test(hosts=1)
def a_pool_is_removed_after_its_jobs(site):
    with_pool(site)
    site.enlist("h1")
    site.ready("gpu-1")
    job = site.submit()

    def refused_for_the_job():
        """Each try is refused. The state of the job is that of the coordinator's last look at Slurm."""
        done = site.run("ctl", "slurm-enlist", "pool", "remove", "gpu", check=False)
        expect(done.returncode == 1, f"the pool is removed under its job: {done.stdout}")
        return f"jobs use the partition gpu: {job} (RUNNING)" in done.stderr

    wait("the job is told", refused_for_the_job, LIMIT)
    site.run("ctl", "slurm-enlist", "pool", "remove", "gpu", "--force", "--wait", "0")
    wait("it takes no new jobs", lambda: "State=DRAIN" in site.out("ctl", "scontrol", "show", "partition", "gpu"), LIMIT)
    wait("it waits for the job", lambda: f"jobs use its partition: {job}" in site.pools()["gpu"]["problem"], LIMIT)
    refused_job = site.run("ctl", "sbatch", "--wrap", "true", check=False)
    expect(refused_job.returncode != 0, "it takes a new job")
    expect(site.nodes()["gpu-1"]["phase"] == "Ready", "the node leaves before the job has ended")
    site.ends_well(job, "h1")
    gone(site, "gpu-1", "h1")
    wait("the pool is gone", lambda: not site.pools(), LIMIT)
    wait("its lines are gone", lambda: "=gpu" not in site.out("ctl", "cat", POOL_FILE), LIMIT)
    wait("its partition is gone", lambda: "PartitionName=gpu" not in site.out("ctl", "scontrol", "show", "partitions"), LIMIT)
    wait("the name is free", lambda: site.run("ctl", "slurm-enlist", "pool", "create", "gpu", check=False).returncode == 0, LIMIT)
    expect(site.enlist("h1") == ["gpu-2"], "a name is used again")


# Requirement 21
# Requirement 24
# Requirement 28
@test(hosts=3)
def every_job_ends_well_while_nodes_and_their_pool_leave(site):
    """More jobs than the nodes can run at once. Each leaves a proof at its end, and the proofs are counted."""
    with_pool(site)
    hosts = ("h1", "h2", "h3")
    site.ready(*site.enlist(*hosts))
    jobs = site.out("ctl", "sh", "-c", """for i in $(seq 18); do sbatch --parsable --no-requeue --output=/dev/null --chdir=/tmp --wrap \\
        'sleep 3; echo $SLURM_JOB_ID >>/tmp/proofs'; done""").split()
    wait("some run", lambda: site.out("ctl", "squeue", "--noheader", "--states=RUNNING"), LIMIT)
    site.run("ctl", "slurm-enlist", "node", "remove", "gpu-1", "--wait", "0")
    expect(site.out("ctl", "squeue", "--noheader", "--states=PENDING"), "no jobs are left for the other nodes")
    wait("gpu-1 has left", lambda: "gpu-1" not in site.records(), LIMIT)
    site.run("ctl", "slurm-enlist", "pool", "remove", "gpu", "--force", "--wait", str(2 * LIMIT))
    wait("the partition is gone", lambda: "PartitionName=gpu" not in site.out("ctl", "scontrol", "show", "partitions"), LIMIT)
    told = {job: site.out("ctl", "scontrol", "show", "job", job) for job in jobs}
    expect(len(told) == 18, f"the jobs are {jobs}")
    for job, text in told.items():
        expect("JobState=COMPLETED " in text and "Restarts=0 " in text, f"job {job}: {text}")
    proofs = [line for host in hosts for line in site.run(host, "cat", "/tmp/proofs", check=False).stdout.split()]
    expect(sorted(proofs) == sorted(jobs), f"of the jobs {jobs}, these have ended: {proofs}")


# Requirement 29
@test(hosts=1)
def slurm_ends_the_jobs_of_a_partition_that_goes_first(site):
    """Why a pool is removed in another order. The coordinator writes back the lines that somebody has removed."""
    with_pool(site)
    site.enlist("h1")
    site.ready("gpu-1")
    job = site.submit()
    site.end("ctl", "slurm-enlist coordinator run", "TERM")
    site.run("ctl", "sed", "-i", "/=/d", POOL_FILE)
    site.run("ctl", "scontrol", "reconfigure")
    wait("Slurm has ended the job", lambda: site.job(job) not in ("RUNNING", "COMPLETING"), LIMIT)
    expect(site.job(job) != "COMPLETED", "the job ended well")
    site.coordinate()
    site.ready("gpu-1")
    expect(site.out("ctl", "srun", "hostname") == "h1", "no job runs there")


# Requirement 23
# Requirement 24
# Requirement 50
@test(hosts=2)
def only_destroy_jobs_ends_jobs(site):
    with_pool(site)
    site.enlist("h1", "h2")
    site.ready("gpu-1", "gpu-2")
    ended, other = site.submit("-w", "gpu-1", "--job-name", "doomed"), site.submit("-w", "gpu-2")
    out = site.out("ctl", "slurm-enlist", "destroy-jobs", "gpu-1")
    expect({ended, "doomed", "root"} <= set(out.split()) and other not in out.split(), f"it says {out}")
    wait("the job has ended", lambda: site.job(ended) == "CANCELLED", LIMIT)
    expect(site.job(other) == "RUNNING", "another job was ended")
    site.ends_well(other, "h2")
    site.run("h1", "rm", "-f", "/tmp/end")
    site.run("h2", "rm", "-f", "/tmp/end")
    both = site.submit("-N2")
    out = site.out("ctl", "slurm-enlist", "destroy-jobs", "gpu-1")
    expect({both, "gpu-[1-2]"} <= set(out.split()), f"it does not tell the other node: {out}")
    wait("the job has ended", lambda: site.job(both) == "CANCELLED", LIMIT)


@test(hosts=1)
def a_revoked_host_is_not_answered(site):
    with_pool(site)
    site.enlist("h1")
    site.ready("gpu-1")
    token = site.token("gpu", "--uses", "5")
    site.run("ctl", "slurm-enlist", "node", "revoke", "gpu-1")
    wait("the host is told", lambda: "node gpu-1 is revoked" in site.status("h1").get("error", ""), LIMIT)
    done = site.join("h1", token, "--again", check=False)
    expect(done.returncode == 1 and "the token is not known" in done.stderr, f"a token from before is good: {done.stdout}{done.stderr}")
    expect("Revoked" in site.out("ctl", "slurm-enlist", "node", "list"), "the list does not show it")
    site.join("h1", site.token(), "--again")
    wait("it is answered again", lambda: "error" not in site.status("h1"), LIMIT)
    site.run("ctl", "slurm-enlist", "node", "revoke", "gpu-1")
    site.run("ctl", "slurm-enlist", "node", "remove", "gpu-1", "--wait", str(LIMIT))
    gone(site, "gpu-1")


# --- A coordinator that has lost its records --------------------------------------------------------------------------


def lines_of_pool(name):
    return f"NodeSet={name} Feature={name}", f"PartitionName={name} Nodes={name}"


@test(hosts=1)
def pools_outlive_the_records_of_the_coordinator(site):
    """The coordinator's folder is lost while a job runs and another one waits in a pool, and while another pool is idle."""
    with_pool(site)
    site.pool("cpu", "--partition", "MaxTime=60")
    site.enlist("h1")
    site.ready("gpu-1")
    wait("slurmctld has both", lambda: "PartitionName=cpu" in site.out("ctl", "scontrol", "show", "partitions"), LIMIT)
    job = site.submit()
    waiting = site.out("ctl", "sbatch", "--parsable", "--no-requeue", "--output=/dev/null", "--chdir=/tmp",
                       f"--dependency=afterok:{job}", "--wrap", "true")
    before, file = site.as_it_is("h1"), site.out("ctl", "cat", POOL_FILE)
    site.end("ctl", "slurm-enlist coordinator run", "TERM")
    site.run("ctl", "rm", "-r", STATE)
    site.coordinate()
    wait("both pools are told", lambda: sorted(site.pools()) == ["cpu", "gpu"] and all(
        f"pool create {name}" in pool.get("problem", "") for name, pool in site.pools().items()), LIMIT)
    expect("pool create cpu" in site.out("ctl", "slurm-enlist", "pool", "list"), "the list does not show it")
    time.sleep(5)
    expect(site.as_it_is("h1") == before, f"something changed: {before} became {site.as_it_is('h1')}")
    expect(site.out("ctl", "cat", POOL_FILE) == file, "the file of the pools was changed")

    # They are in nobody's way.
    site.pool("tpu")
    wait("slurmctld has it", lambda: "PartitionName=tpu" in site.out("ctl", "scontrol", "show", "partitions"), LIMIT)
    expect(all(line in site.out("ctl", "cat", POOL_FILE) for name in ("cpu", "gpu", "tpu") for line in lines_of_pool(name)),
           f"the file is {site.out('ctl', 'cat', POOL_FILE)}")
    expect(site.job(job) == "RUNNING" and site.job(waiting) == "PENDING", f"the jobs are {site.job(job)} and {site.job(waiting)}")

    # One is added to the records, with its parameters. The other one is removed.
    expect(site.run("ctl", "slurm-enlist", "token", "gpu", check=False).returncode == 1, "there is a token of an unknown pool")
    site.pool("gpu")
    wait("it is like any other", lambda: not site.pools()["gpu"].get("problem"), LIMIT)
    expect(site.pools()["gpu"]["partition_conf"] == "Default=YES MaxTime=1-0", f"it is {site.pools()['gpu']}")
    site.run("ctl", "slurm-enlist", "pool", "remove", "cpu", "--wait", str(LIMIT))
    wait("its partition is gone", lambda: "PartitionName=cpu" not in site.out("ctl", "scontrol", "show", "partitions"), LIMIT)
    expect(sorted(site.pools()) == ["gpu", "tpu"], f"the pools are {sorted(site.pools())}")
    site.ends_well(job, "h1")
    wait("the other job has run", lambda: site.job(waiting) == "COMPLETED", LIMIT)

    # The host joins again, as another node. Slurm has the former one until somebody deletes it.
    site.run("ctl", "scontrol", "update", "nodename=gpu-1", "state=drain", "reason=joins again")
    site.end("h1", "slurm-enlist agent")
    site.join("h1", site.token(), "--again")
    site.agent("h1")
    site.ready("gpu-2")
    site.run("ctl", "scontrol", "delete", "nodename=gpu-1")
    expect(site.out("ctl", "srun", "hostname") == "h1", "no job runs there")
    expect(set(site.nodes()) == set(site.records()) == {"gpu-2"}, f"there are {set(site.nodes())} and {set(site.records())}")


@test(hosts=1)
def pools_outlive_a_restored_older_copy(site):
    """The copy knows nothing of a pool that was made since, where a job runs."""
    with_pool(site)
    site.end("ctl", "slurm-enlist coordinator run", "TERM")
    site.run("ctl", "cp", "-a", STATE, "/var/lib/copy")
    site.coordinate()
    site.pool("cpu", "--partition", "MaxTime=60")
    site.enlist("h1", pool="cpu")
    site.ready("cpu-1")
    job = site.submit("-p", "cpu")
    before = site.as_it_is("h1")
    site.end("ctl", "slurm-enlist coordinator run", "TERM")
    site.run("ctl", "sh", "-c", f"rm -r {STATE} && mv /var/lib/copy {STATE}")
    site.coordinate()
    wait("the pool is told", lambda: "pool create cpu" in site.pools().get("cpu", {}).get("problem", ""), LIMIT)
    site.ends_well(job, "h1")
    time.sleep(5)
    expect(site.as_it_is("h1")[2:] == before[2:], "the idle pool was touched")
    site.pool("cpu")
    wait("it is like any other", lambda: not site.pools()["cpu"].get("problem"), LIMIT)
    expect(site.pools()["cpu"]["partition_conf"] == "MaxTime=60", f"it is {site.pools()['cpu']}")
    time.sleep(2)
    expect(site.as_it_is("h1")[2:] == before[2:], "slurmctld was reconfigured for it")


# --- Refusals: the cause on the host and at the coordinator, and nothing is left behind -----------------------------


def left_on(site, host):
    """Returns what a join may leave on a host: files, and processes."""
    places = ("/etc/slurm", "/etc/default", "/etc/systemd/system", STATE, "/run/slurm-enlist", "/var/log/slurm-enlist", "/var/spool/slurmd")
    files = {path: content for path, content in site.files(host).items() if path.startswith(tuple(place + "/" for place in places))}
    return files, [*site.processes(host, "slurm-enlist"), *site.processes(host, "/usr/sbin/slurmd")]


def refused(site, host, token, *causes, flags=()):
    """Expects that a join fails with each of these causes on standard error, and leaves nothing behind."""
    before, nodes, pools = left_on(site, host), site.nodes(), site.pools()
    done = site.join(host, token, *flags, check=False)
    expect(done.returncode == 1, f"the exit code is {done.returncode}: {done.stdout}{done.stderr}")
    expect(len(done.stderr.splitlines()) == 1 and done.stderr.startswith("slurm-enlist join: "), f"it says: {done.stderr}")
    for cause in causes:
        expect(cause in done.stderr, f"the cause is not {cause!r}, but: {done.stderr}")
    expect(token not in done.stdout + done.stderr, "the token is shown")
    expect(left_on(site, host) == before, "something is left on the host")
    expect(site.nodes() == nodes and set(site.records()) <= set(nodes), "a node is left")
    expect(site.pools() == pools, "the pool has changed")


def bytes_of(token):
    word = token.split("_", 1)[1]
    return base64.urlsafe_b64decode(word + "=" * (-len(word) % 4))


# In a token, after the fingerprint of the coordinator's key.
SECRET = slice(32, 48)


def altered(token):
    """Returns the token with another secret, and with the sum of its bytes at its end."""
    raw = bytearray(bytes_of(token)[:-8])
    raw[SECRET] = os.urandom(16)
    return "enlist1_" + base64.urlsafe_b64encode(raw + hashlib.sha256(raw).digest()[:8]).decode().rstrip("=")


@test(hosts=2)
def bad_tokens_are_refused(site):
    with_pool(site)
    unknown = "the token is not known, has expired or is used up; make a new one with slurm-enlist token POOL"
    refused(site, "h1", "enlist1_nonsense", "the token is incomplete or has a typing error")
    refused(site, "h1", "nonsense", "the token does not begin with enlist1_")
    refused(site, "h1", altered(site.token()), unknown)
    expect(site.run("h1", "test", "-e", STATE, check=False).returncode != 0, "the folder of the agent is left")
    expect("a wrong token is refused" in site.log("coordinator.1.log"), "the coordinator does not tell")
    expired = site.token("gpu", "--valid-for", "1s")
    time.sleep(1.1)
    refused(site, "h1", expired, unknown)
    used = site.token()
    site.join("h1", used)
    refused(site, "h2", used, unknown)
    # By the same host a token can be used again, because an answer may be lost. The host stays what it is.
    expect("This host is gpu-1" in site.join("h1", used, "--again").stdout and list(site.nodes()) == ["gpu-1"], "the host is another node")
    site.agent("h1")
    site.ready("gpu-1")
    done = site.join("h1", site.token())
    expect("This host is already gpu-1 of the pool gpu" in done.stdout, f"a second join says: {done.stdout}")
    for words, code, cause in ((["token", "none"], 1, "there is no pool none"), (["token", "gpu", "--valid-for", "x"], 2, "--valid-for x: must be"),
                               (["token", "gpu", "--uses", "0"], 2, "--uses")):
        done = site.run("ctl", "slurm-enlist", *words, check=False)
        expect(done.returncode == code and cause in done.stderr, f"{words}: {done.returncode} {done.stderr}")


@test(hosts=1)
def a_token_of_another_coordinator_is_refused(site):
    """The token pins the coordinator's key, and nothing is sent to another one."""
    with_pool(site)
    token = site.token()
    site.end("ctl", "slurm-enlist coordinator run", "TERM")
    site.run("ctl", "mv", STATE, STATE + ".away")
    site.coordinate()
    refused(site, "h1", token, "the coordinator at ctl:6831", "key")
    # The host trusts the right one.
    site.end("ctl", "slurm-enlist coordinator run", "TERM")
    site.run("ctl", "sh", "-c", f"rm -rf {STATE} && mv {STATE}.away {STATE}")
    site.coordinate()
    site.join("h1", token)
    # The agent does not speak to a coordinator with another key either, and slurmd stays.
    site.agent("h1")
    site.ready("gpu-1")
    site.end("ctl", "slurm-enlist coordinator run", "TERM")
    site.run("ctl", "rm", f"{STATE}/coordinator.key", f"{STATE}/coordinator.crt")
    before = site.processes("h1", "/usr/sbin/slurmd")
    site.coordinate()
    wait("the host tells", lambda: "key" in site.status("h1").get("error", ""), LIMIT)
    expect(site.processes("h1", "/usr/sbin/slurmd") == before, "slurmd was restarted")


# Requirement 33
@test(hosts=1)
def bad_pools_are_refused(site):
    site.init()
    site.write("ctl", "/etc/slurm/mine.conf", "NodeName=mine-1 CPUs=1 State=FUTURE\nNodeSet=set Nodes=mine-1\nPartitionName=mine Nodes=set\n")
    site.run("ctl", "sh", "-c", "echo Include mine.conf >>/etc/slurm/slurm.conf")
    site.run("ctl", "scontrol", "reconfigure")
    site.coordinate()
    site.pool("gpu", "--partition", "Default=YES", "--nodes", "Weight=5")
    site.enlist("h1")
    site.ready("gpu-1")
    before, pools, file = site.as_it_is("h1"), site.pools(), site.out("ctl", "cat", POOL_FILE)
    for words, *causes in (
            (["mine"], "mine is taken by a partition of Slurm", "choose another name"),
            (["set"], "set is taken by a NodeSet of Slurm"),
            (["gpu", "--nodes", "Weight=6"], "pool gpu exists already, with other parameters"),
            (["mine-1"], "must not end with"),
            (["Upper"], "must be 1 to 40 of a-z"),
            (["default"], "default"),
            (["x", "--nodes", "Weight"], "Weight"),
            (["x", "--nodes", "State=IDLE"], "State: set by slurm-enlist; remove it"),
            (["x", "--nodes", "NodeName=x"], "NodeName: set by slurm-enlist; remove it"),
            (["x", "--partition", "Bogus=1"], "Bogus"),
            (["x", "--partition", "Nodes=ALL"], "Nodes"),
            (["x", "--partition", "PartitionName=y"], "PartitionName"),
            (["x", "--partition", "MaxTime=1\nNodeName=y"], "line")):
        done = site.run("ctl", "slurm-enlist", "pool", "create", *words, check=False)
        expect(done.returncode == 1 and done.stderr.startswith("slurm-enlist: "), f"{words}: {done.returncode} {done.stderr}")
        for cause in causes:
            expect(cause in done.stderr, f"{words}: the cause is not {cause!r}, but: {done.stderr}")
    time.sleep(2)
    expect(site.pools() == pools and site.out("ctl", "cat", POOL_FILE) == file, "something is left of a pool that was refused")
    expect(site.as_it_is("h1") == before, f"something changed: {before} became {site.as_it_is('h1')}")
    expect(site.out("ctl", "sinfo", "-h", "-n", "gpu-1", "-o", "%w") == "5", "the parameters of the nodes are lost")


@test(hosts=1)
def a_pool_that_slurmctld_refuses_is_rolled_back(site):
    """Whether a value is valid is known to slurmctld alone."""
    with_pool(site)
    site.enlist("h1")
    site.ready("gpu-1")
    file = site.out("ctl", "cat", POOL_FILE)
    site.pool("bad", "--partition", "TRESBillingWeights=nothing=1")
    wait("the pool has a problem", lambda: "slurmctld refused the pool file" in site.pools()["bad"]["problem"], LIMIT)
    wait("the file is as before", lambda: site.out("ctl", "cat", POOL_FILE) == file, LIMIT)
    expect(not site.pools()["gpu"].get("problem"), f"pool gpu has the problem {site.pools()['gpu']['problem']}")
    site.ready("gpu-1")
    expect(site.out("ctl", "srun", "hostname") == "h1", "no job runs any more")
    site.run("ctl", "slurm-enlist", "pool", "remove", "bad", "--wait", str(LIMIT))
    expect(list(site.pools()) == ["gpu"], "the refused pool is there still")
    site.pool("good")
    wait("slurmctld has the next pool", lambda: "PartitionName=good" in site.run("ctl", "scontrol", "show", "partition", "good", check=False).stdout, LIMIT)


@test(hosts=3)
def a_full_node_table_is_told(site):
    site.init("--max-nodes", "2")
    site.coordinate()
    site.pool("gpu")
    site.enlist("h1", "h2")
    site.ready("gpu-1", "gpu-2")
    refused(site, "h3", site.token(), "Slurm's node table is full: MaxNodeCount is 2", "raise it in slurm.conf")
    expect("a host is refused" in site.log("coordinator.1.log"), "the coordinator does not tell")
    site.run("ctl", "sed", "-i", "s/^MaxNodeCount=.*/MaxNodeCount=3/", "/etc/slurm/slurm.conf")
    site.run("ctl", "scontrol", "reconfigure")
    wait("the coordinator has read it", lambda: site.join("h3", site.token(), check=False).returncode == 0, LIMIT)
    site.agent("h3")
    site.ready(*site.nodes())


@test(hosts=1)
def init_refuses_what_is_the_administrators_decision(site):
    conf = site.out("ctl", "cat", "/etc/slurm/slurm.conf")
    for old, new, cause in (("AuthType=auth/slurm", "AuthType=auth/munge", "AuthType=auth/munge: set AuthType=auth/slurm"),
                            ("AuthType=auth/slurm", "", "AuthType is not set, and Slurm's default is auth/munge"),
                            ("CredType=cred/slurm", "CredType=cred/munge", "CredType=cred/munge: set CredType=cred/slurm"),
                            ("TaskPlugin=task/none", "SelectType=select/linear", "SelectType=select/linear: set SelectType=select/cons_tres")):
        site.write("ctl", "/tmp/test/slurm.conf", conf.replace(old, new) + "\n")
        before = site.files("ctl")
        done = site.run("ctl", "slurm-enlist", "coordinator", "init", "--yes", "--slurm-conf", "/tmp/test/slurm.conf", check=False)
        expect(done.returncode == 1 and cause in done.stdout, f"{new}: {done.returncode} {done.stdout}{done.stderr}")
        after = site.files("ctl")
        changed = [path for path in set(before) | set(after) if before.get(path) != after.get(path) and not path.startswith("/var/log/")]
        changed = [path for path in changed if not path.startswith("/var/spool/slurmctld/")]
        expect(not changed, f"init changed {changed}")
    before = site.out("ctl", "cat", "/etc/slurm/slurm.conf")
    expect("Nothing was changed" in site.out("ctl", "slurm-enlist", "coordinator", "init"), "init without --yes does not say so")
    expect(site.out("ctl", "cat", "/etc/slurm/slurm.conf") == before, "init without --yes changes slurm.conf")


# --- Hosts that are not empty ---------------------------------------------------------------------------------------


@test(hosts=1)
def a_slurm_conf_of_another_cluster_is_named(site):
    with_pool(site)
    foreign = "ClusterName=other\nSlurmctldHost=elsewhere\nNodeName=x CPUs=1\nPartitionName=y Nodes=x\n"
    site.write("h1", "/etc/slurm/slurm.conf", foreign)
    site.script("spawn", "h1", "h1.join.log", "sh", "-c",
                f'slurm-enlist join --token "$0" --no-service --wait {LIMIT}; echo "exit code $?"', site.token())
    wait("h1 has joined", lambda: "This host is gpu-1" in site.log("h1.join.log"), LIMIT)
    site.agent("h1")
    wait("it is ready", lambda: site.nodes()["gpu-1"]["phase"] == "Ready" and idle(site.records()["gpu-1"]), LIMIT)
    wait("join ends", lambda: "exit code" in site.log("h1.join.log"), 2 * LIMIT)
    expect("exit code 0" in site.log("h1.join.log"), f"join said {site.log('h1.join.log')}")
    note = "note: /etc/slurm/slurm.conf is of the cluster other; slurmd ignores it and takes that of plain"
    wait("the coordinator names it", lambda: note in site.nodes()["gpu-1"]["message"], LIMIT)
    wait("the host names it", lambda: site.status("h1")["note"] == note, LIMIT)
    expect("error" not in site.status("h1"), f"the agent says {site.status('h1')}")
    expect(site.out("ctl", "srun", "hostname") == "h1", "no job runs there")
    expect(site.out("h1", "cat", "/etc/slurm/slurm.conf") == foreign.strip(), "the file was changed")


@test(hosts=1)
def a_key_of_somebody_else_is_not_overwritten(site):
    with_pool(site)
    site.write("h1", "/etc/slurm/slurm.key", "0123456789abcdef of another cluster", "0600")
    told = "the host has a slurm.key with another key than the cluster's"
    refused(site, "h1", site.token(), told)
    expect(told in site.log("coordinator.1.log"), "the coordinator does not tell")
    expect(not site.nodes() and not site.records(), "the host has a node")
    expect(site.out("h1", "cat", "/etc/slurm/slurm.key") == "0123456789abcdef of another cluster", "the key was overwritten")
    site.run("h1", "rm", "/etc/slurm/slurm.key")
    site.enlist("h1")
    site.ready("gpu-1")


@test(hosts=0)
def a_slurmd_of_another_release(site):
    """Slurm allows slurmds that are older by up to three releases, and none that is newer."""
    with_pool(site)
    for release in releases():
        if release == site.release:
            continue
        site.script("boot", "h1", release=release)
        if release > site.release:
            refused(site, "h1", site.token(), "slurmd must not be newer; install slurmd")
            expect("slurmd must not be newer" in site.log("coordinator.1.log"), "the coordinator does not tell")
            continue
        site.enlist("h1")
        site.ready("gpu-1")
        expect(site.nodes()["gpu-1"]["report"]["slurm_version"].startswith(release), "the coordinator has another release")
        expect(site.out("ctl", "srun", "hostname") == "h1", "no job runs there")


# Requirement 37
@test(hosts=1)
def a_slurmd_that_fails_is_told(site):
    """The cause of a slurmd that ends is told on the host and at the coordinator."""
    with_pool(site)
    site.write("h1", "/usr/local/sbin/slurmd", '#!/bin/sh\ncase "$1" in -V | -C) exec /usr/sbin/slurmd "$@" ;; esac\n'
               '[ ! -e /tmp/good ] || exec /usr/sbin/slurmd "$@"\necho "slurmd: fatal: no such disk" >&2; exit 1\n', "0755")
    site.join("h1", site.token())
    site.agent("h1", "--slurmd", "/usr/local/sbin/slurmd")
    expect("no such disk" in site.phase("gpu-1", "Refused"), f"the message is {site.nodes()['gpu-1']['message']}")
    wait("the host has the cause", lambda: "no such disk" in site.status("h1")["message"], LIMIT)
    expect(not site.records(), "Slurm has a node")
    site.run("h1", "touch", "/tmp/good")
    site.ready("gpu-1")


# --- Rotation of the auth key ---------------------------------------------------------------------------------------

# What Slurm logs when it cannot verify a message, in 24.11 to 26.05.
NOT_VERIFIED = ("uthentication", "could not find kid", "jwt_decode", "decode_jwt", "token expired", "verify_internal", "auth_g_verify")
# How long what a key has signed is accepted, in seconds: long enough for a slow machine.
SIGNED_FOR = 20


def move_to_jwks(site):
    """Moves the key to a slurm.jwks, as an administrator does."""
    site.run("ctl", "sh", "-c", """cd /etc/slurm && umask 077 &&
        printf '{"keys": [{"alg": "HS256", "kty": "oct", "kid": "first", "k": "%s"}]}' "$(base64 -w0 slurm.key)" >slurm.jwks &&
        chown --reference=slurm.key slurm.jwks && rm slurm.key && scontrol reconfigure""")


def ready_to_rotate(site):
    """Moves the key to a slurm.jwks, and makes what it has signed expire soon."""
    site.run("ctl", "sh", "-c", f"echo AuthInfo=ttl={SIGNED_FOR},cred_expire={SIGNED_FOR} >>/etc/slurm/slurm.conf")
    move_to_jwks(site)


def rotation(site):
    return json.loads(site.out("ctl", "slurm-enlist", "rotate", "status", "-o", "json"))


def key_ids(site, host):
    """Returns the kids of the slurm.jwks of a host, and the one that signs."""
    keys = json.loads(site.out(host, "cat", "/etc/slurm/slurm.jwks"))["keys"]
    return [key["kid"] for key in keys], next((key["kid"] for key in keys if key.get("use") == "default"), keys[0]["kid"])


def not_verified(site, *hosts):
    """Returns the lines of slurmctld and of the slurmds about messages that they could not verify."""
    logs = {"ctl": "/var/log/slurm/slurmctld.log", **{host: "/var/log/slurm-enlist/slurmd.log" for host in hosts}}
    return [f"{host}: {line}" for host, log in logs.items() for line in site.out(host, "cat", log).splitlines()
            if any(word in line for word in NOT_VERIFIED) and "error" in line]


def jobs_all_the_time(site):
    """Starts jobs on all nodes, one after another, until /tmp/stop is there. Failures are in /tmp/failed, and others in /tmp/passed."""
    site.run("ctl", "rm", "-f", "/tmp/stop", "/tmp/failed", "/tmp/passed")
    site.script("spawn", "ctl", "jobs.log", "sh", "-c", """while [ ! -e /tmp/stop ]; do
        if out=$(srun --mem=100 -N3 -n3 hostname 2>&1) && job=$(cd /tmp && sbatch --mem=100 --parsable --wait -o /dev/null --wrap hostname 2>&1)
        then echo "$out" >>/tmp/passed; else echo "$out $job" >>/tmp/failed; fi; done""")


def rotate(site, *flags, kill_in=""):
    """Rotates the key while jobs start all the time. A login host, h4, gets the file by hand. Returns the phases that were seen."""
    site.script("spawn", "ctl", "rotate.log", "slurm-enlist", "rotate", "--also", "h4", *flags)
    wait("the rotation runs", lambda: rotation(site)["running"], LIMIT)
    seen = []
    end = time.monotonic() + 12 * LIMIT
    while (status := rotation(site))["running"]:
        expect(time.monotonic() < end, f"the rotation does not end: {status}")
        expect("problem" not in status and "refusal" not in status, f"the rotation has a problem: {status}")
        if status["phase"] not in seen:
            seen.append(status["phase"])
            if status["phase"] == kill_in:
                site.end("ctl", "slurm-enlist coordinator run")
                site.coordinate()
            out = site.out("ctl", "srun", "--mem=100", "-N3", "-n3", "hostname").split()
            expect(sorted(out) == ["h1", "h2", "h3"], f"in {status['phase']}: srun printed {out}")
        for host in status["hosts"]:
            if host["acknowledge"]:
                expect(host["host"] == "h4", f"the rotation waits for {host}")
                site.write("h4", "/etc/slurm/slurm.jwks", site.run("ctl", "cat", "/etc/slurm/slurm.jwks").stdout, "0600")
                site.run("ctl", "slurm-enlist", "rotate", "--acknowledge", "h4")
        time.sleep(0.5)
    expect(status["result"].startswith("done"), f"the rotation has ended: {status}")
    wait("the command ends", lambda: not site.processes("ctl", "slurm-enlist rotate"), LIMIT)
    return seen


# Requirement 16
@test(hosts=4)
def the_auth_key_rotates_under_jobs(site):
    """Defect 2 of the charms: no message fails to be verified, and no job ends."""
    with_pool(site)
    ready_to_rotate(site)
    site.enlist("h1", "h2", "h3")
    site.ready("gpu-1", "gpu-2", "gpu-3")
    expect(site.out("ctl", "slurm-enlist", "rotate", "status") == "there was no rotation", "there was a rotation")
    owner = site.out("ctl", "stat", "-c", "%u:%g %a", "/etc/slurm/slurm.jwks")
    slurmds = {host: site.processes(host, "/usr/sbin/slurmd") for host in ("h1", "h2", "h3")}
    job = site.submit("--mem=100", "-w", "gpu-1")
    jobs_all_the_time(site)
    former = ["first"]
    for kill_in in ("Sign", "Spread"):
        seen = rotate(site, kill_in=kill_in)
        expect(seen == ["Spread", "Sign", "Retire"], f"the phases were {seen}")
        kids, signer = key_ids(site, "ctl")
        expect(kids == [signer] and signer not in former, f"the keys are {kids}, after {former}")
        former.append(signer)
        digests = {host: site.out(host, "sha256sum", "/etc/slurm/slurm.jwks") for host in ("ctl", "h1", "h2", "h3", "h4")}
        expect(len(set(digests.values())) == 1, f"the files differ: {digests}")
        expect(site.out("ctl", "stat", "-c", "%u:%g %a", "/etc/slurm/slurm.jwks") == owner, "slurm.jwks has another owner or mode")
        expect(site.job(job) == "RUNNING", "the job has ended")
    site.run("ctl", "touch", "/tmp/stop")
    wait("the jobs end", lambda: not site.processes("ctl", "srun") and not site.processes("ctl", "sbatch"), LIMIT)
    expect(not site.out("ctl", "sh", "-c", "cat /tmp/failed 2>/dev/null || :"), "jobs have failed")
    expect(len(site.out("ctl", "cat", "/tmp/passed").split()) >= 3, "no jobs were started beside")
    expect(not (lines := not_verified(site, *slurmds)), f"messages were not verified: {lines}")
    site.ends_well(job, "h1")
    site.ready("gpu-1", "gpu-2", "gpu-3")
    for host, before in slurmds.items():
        after = site.processes(host, "/usr/sbin/slurmd")
        expect(after == before, f"slurmd of {host} was restarted: {before}, {after}")
    # No key is anywhere else.
    key = json.loads(site.out("ctl", "cat", "/etc/slurm/slurm.jwks"))["keys"][0]["k"][:32].encode()
    for log in site.folder.glob("log/*"):
        expect(key not in log.read_bytes(), f"{log.name} has the key")
    for host in ("ctl", *slurmds):
        places = {path: mode for path, (mode, text) in site.files(host).items() if key in text}
        expect(places == {"/etc/slurm/slurm.jwks": 0o600}, f"{host}: the key is in {places}")


@test(hosts=1)
def a_pool_that_slurmctld_refuses_does_not_end_a_rotation(site):
    with_pool(site)
    ready_to_rotate(site)
    site.enlist("h1")
    site.ready("gpu-1")
    site.pool("bad", "--partition", "TRESBillingWeights=nothing=1")
    wait("the pool has a problem", lambda: "slurmctld refused the pool file" in site.pools()["bad"]["problem"], LIMIT)
    job = site.submit("--mem=100")
    out = site.out("ctl", "slurm-enlist", "rotate", "--wait", str(6 * LIMIT))
    expect(rotation(site)["result"].startswith("done"), f"it says {out}")
    kids, signer = key_ids(site, "h1")
    expect(kids == [signer] and signer != "first", f"the keys are {kids}")
    wait("the pool still has its problem", lambda: "slurmctld refused the pool file" in site.pools()["bad"]["problem"], LIMIT)
    site.ends_well(job, "h1")
    site.run("ctl", "slurm-enlist", "pool", "remove", "bad", "--wait", str(LIMIT))
    site.ready("gpu-1")


@test(hosts=1)
def the_auth_key_changes_its_file_under_a_job(site):
    """From slurm.key to slurm.jwks and back, with the same key: one file is left, and slurmd signs with it."""
    with_pool(site)
    site.enlist("h1")
    site.ready("gpu-1")
    job = site.submit("--mem=100")
    back = """cd /etc/slurm && umask 077 && sed 's/.*"k": "\\([^"]*\\)".*/\\1/' slurm.jwks | base64 -d >slurm.key &&
        chown --reference=slurm.jwks slurm.key && rm slurm.jwks && scontrol reconfigure"""

    def has_moved(to):
        def holds():
            report = site.nodes()["gpu-1"]["report"]
            same = site.out("ctl", "sha256sum", f"/etc/slurm/{to}") == site.run("h1", "sha256sum", f"/etc/slurm/{to}", check=False).stdout.strip()
            return same and report["key_revision"] and report["key_loaded"] == report["key_revision"]

        wait(f"slurmd has {to}", holds, LIMIT)
        wait(f"only {to} is left", lambda: site.out("h1", "sh", "-c", "ls -A /etc/slurm | grep -E 'key|jwks'") == to, LIMIT)
        expect(len(site.processes("h1", "/usr/sbin/slurmd")) == 1, "slurmd does not run once")
        wait("a job runs", lambda: site.run("ctl", "srun", "--mem=100", "hostname", check=False).stdout.strip() == "h1", LIMIT)

    for _ in range(2):
        move_to_jwks(site)
        has_moved("slurm.jwks")
        site.run("ctl", "sh", "-c", back)
        has_moved("slurm.key")
    expect(not (lines := not_verified(site, "h1")), f"messages were not verified: {lines}")
    site.ends_well(job, "h1")
    site.ready("gpu-1")
    # A slurm.jwks of somebody else stays, and slurmd does not sign with it.
    site.write("h1", "/etc/slurm/slurm.jwks", "{}", "0600")
    wait("it is named", lambda: "/etc/slurm/slurm.jwks has another key" in site.nodes()["gpu-1"]["message"], LIMIT)
    site.run("h1", "rm", "/etc/slurm/slurm.jwks")
    site.ready("gpu-1")
    site.run("ctl", "slurm-enlist", "node", "remove", "gpu-1")
    wait("it has left", lambda: not site.nodes(), LIMIT)
    wait("no key is left", lambda: not site.out("h1", "sh", "-c", "ls -A /etc/slurm | grep -E 'key|jwks' || :"), LIMIT)


@test(hosts=1)
def a_rotation_that_is_refused_or_abandoned_keeps_the_old_key(site):
    with_pool(site)
    ready_to_rotate(site)
    site.enlist("h1")
    site.ready("gpu-1")
    job = site.submit("--mem=100")
    site.run("ctl", "sh", "-c", "cp -p /etc/slurm/slurm.conf /tmp/good.conf; echo PartitionName=bad Nodes=nowhere >>/etc/slurm/slurm.conf")
    refused_one = site.run("ctl", "slurm-enlist", "rotate", check=False)
    expect(refused_one.returncode == 1 and "slurmctld refused to load the keys" in refused_one.stdout, f"rotate said {refused_one.stdout}")
    kids, signer = key_ids(site, "ctl")
    expect(kids == [signer] and key_ids(site, "h1") == (kids, signer), f"the keys are {kids}")
    site.run("ctl", "sh", "-c", "cp -p /tmp/good.conf /etc/slurm/slurm.conf; scontrol reconfigure")
    expect(site.out("ctl", "srun", "--mem=100", "hostname") == "h1", "no job runs after a rotation that was refused")

    site.run("ctl", "slurm-enlist", "rotate", "--wait", "0")
    refused_one = site.run("ctl", "slurm-enlist", "rotate", check=False)
    expect(refused_one.returncode == 1 and "a rotation runs" in refused_one.stderr, f"a second rotation: {refused_one}")
    wait("the new key signs", lambda: key_ids(site, "h1")[1] != signer, 2 * LIMIT)
    expect(site.out("ctl", "srun", "--mem=100", "hostname") == "h1", "no job runs with the new key")
    out = site.run("ctl", "slurm-enlist", "rotate", "--abandon").stdout
    expect("it was abandoned" in out, f"rotate --abandon said {out}")
    expect(key_ids(site, "ctl") == (kids, signer) and key_ids(site, "h1") == (kids, signer), "the old key is not back")
    expect(site.out("ctl", "srun", "--mem=100", "hostname") == "h1", "no job runs after a rotation that was abandoned")
    expect(not (lines := not_verified(site, "h1")), f"messages were not verified: {lines}")
    site.ends_well(job, "h1")


@test(hosts=2)
def a_rotation_abandoned_while_a_host_is_off_cuts_nobody_off(site):
    """slurmctld has begun to sign with the new key, and nothing has made it do so but a restart."""
    with_pool(site)
    ready_to_rotate(site)
    site.enlist("h1", "h2")
    site.ready("gpu-1", "gpu-2")
    old = key_ids(site, "ctl")
    job = site.submit("--mem=100", "-w", "gpu-1")
    site.run("ctl", "slurm-enlist", "rotate", "--also", "h9", "--wait", "0")

    def goes_on(phase):
        """Acknowledges the file of this phase. Meanwhile, jobs start on the host that is on."""
        wait(f"{phase} waits for h9", lambda: rotation(site)["phase"] == phase and [
            host for host in rotation(site)["hosts"] if host["acknowledge"]] and key_ids(site, "h1") == key_ids(site, "ctl"), LIMIT)
        expect(site.out("ctl", "srun", "--mem=100", "-w", "gpu-1", "hostname") == "h1", f"no job runs in {phase}")
        site.run("ctl", "slurm-enlist", "rotate", "--acknowledge", "h9", "--phase", phase)

    wait("only h9 is waited for", lambda: [host["host"] for host in rotation(site)["hosts"]] == ["h9"], LIMIT)
    site.script("kill", "h2")
    goes_on("Spread")
    goes_on("Sign")
    wait("h2 is waited for", lambda: [host["host"] for host in rotation(site)["hosts"]] == ["gpu-2"], LIMIT)
    late = site.run("ctl", "slurm-enlist", "rotate", "--acknowledge", "h9", "--phase", "Spread", check=False)
    expect(late.returncode == 1 and "in the phase Sign, not in Spread" in late.stderr, f"an acknowledgement of the phase before: {late}")
    site.end("ctl", "slurmctld --systemd", "TERM")
    site.slurmctld()
    wait("slurmctld is back", lambda: site.run("ctl", "srun", "--mem=100", "-w", "gpu-1", "hostname", check=False).returncode == 0, LIMIT)
    site.run("ctl", "slurm-enlist", "rotate", "--abandon", "--wait", "0")
    site.run("ctl", "scontrol", "update", "nodename=gpu-2", "state=drain", "reason=power")
    wait("the coordinator knows that h2 is drained",
         lambda: site.run("ctl", "slurm-enlist", "rotate", "--without", "gpu-2", check=False).returncode == 0, LIMIT)
    goes_on("Spread")
    goes_on("Return")
    wait("the rotation ends", lambda: not rotation(site)["running"], LIMIT)
    expect("it was abandoned" in rotation(site)["result"], f"the rotation has ended: {rotation(site)}")
    expect(key_ids(site, "ctl") == old and key_ids(site, "h1") == old, "the old key is not back")
    expect(site.out("ctl", "srun", "--mem=100", "-w", "gpu-1", "hostname") == "h1", "no job runs after the rotation")
    expect(not (lines := not_verified(site, "h1")), f"messages were not verified: {lines}")
    site.ends_well(job, "h1")


@test(hosts=2)
def a_silent_host_is_left_out_of_a_rotation_and_gets_the_key_later(site):
    with_pool(site)
    ready_to_rotate(site)
    site.enlist("h1", "h2")
    site.ready("gpu-1", "gpu-2")
    site.script("kill", "h2")
    site.run("ctl", "slurm-enlist", "rotate", "--wait", "0")
    wait("only h2 is waited for", lambda: [host["host"] for host in rotation(site)["hosts"]] == ["gpu-2"], LIMIT)
    told = site.run("ctl", "slurm-enlist", "rotate", "--without", "gpu-2", check=False)
    expect(told.returncode == 1 and "cannot be left out of the rotation" in told.stderr, f"rotate --without said {told}")
    # Not state=down: an answer of its slurmd from before its end may return it to service.
    site.run("ctl", "scontrol", "update", "nodename=gpu-2", "state=drain", "reason=power")
    wait("the coordinator knows that it is drained",
         lambda: site.run("ctl", "slurm-enlist", "rotate", "--without", "gpu-2", check=False).returncode == 0, LIMIT)
    wait("the rotation ends", lambda: not rotation(site)["running"], 4 * LIMIT)
    expect(rotation(site)["result"].startswith("done"), f"the rotation has ended: {rotation(site)}")
    site.script("boot", "h2", "h2")
    site.agent("h2")
    wait("h2 has the new key", lambda: site.nodes()["gpu-2"]["report"]["key_loaded"] == site.nodes()["gpu-1"]["report"]["key_loaded"], LIMIT)
    site.run("ctl", "slurm-enlist", "node", "resume", "gpu-2")
    site.ready("gpu-1", "gpu-2")
    expect(sorted(site.out("ctl", "srun", "--mem=100", "-N2", "hostname").split()) == ["h1", "h2"], "a host runs no jobs")


# --- Secrets --------------------------------------------------------------------------------------------------------


def secrets_of(token, key):
    """Returns the forms in which secrets may be written down, by a name for people."""
    secret = bytes_of(token)[SECRET]
    return {"the token": token.encode(), "its secret": secret.hex().encode(), "its secret, raw": secret,
            "the auth key": key[:24], "the auth key in base64": base64.b64encode(key[:24]), "the auth key in hex": key[:16].hex().encode()}


# Requirement 31
@test(hosts=2)
def secrets_are_written_nowhere(site):
    site.run("ctl", "sh", "-c", "head -c 768 /dev/urandom | base64 -w0 >/etc/slurm/slurm.key")
    site.end("ctl", "slurmctld --systemd", "TERM")
    site.slurmctld()
    with_pool(site)
    token = site.token("gpu", "--uses", "2")
    key = site.run("ctl", "cat", "/etc/slurm/slurm.key").stdout.encode()
    secrets = secrets_of(token, key)
    # One join shows its token for as long as it waits, one gets it from a file.
    site.script("spawn", "h1", "h1.join.log", "slurm-enlist", "join", "--token", token, "--no-service", "--wait", "600")
    site.write("h2", "/root/token", token + "\n", "0600")
    site.run("h2", "slurm-enlist", "join", "--token-file", "/root/token", "--no-service", "--wait", "0")
    site.run("h2", "rm", "/root/token")
    wait("both have joined", lambda: len(site.nodes()) == 2, LIMIT)

    def in_no_process():
        for host in ("ctl", "h1", "h2"):
            told = site.out(host, "sh", "-c", "cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null | tr '\\0' ' '").encode()
            for name, secret in secrets.items():
                expect(secret not in told, f"{host}: {name} is in a command line or an environment")

    in_no_process()
    expect(site.processes("h1", "slurm-enlist join"), "the join has ended")
    for host in ("h1", "h2"):
        site.agent(host)
    site.ready("gpu-1", "gpu-2")
    refused(site, "h2", altered(token), "the token is not known", flags=["--again"])
    in_no_process()
    for host in ("ctl", "h1", "h2"):
        for path, (mode, content) in site.files(host).items():
            for name, secret in secrets.items():
                if secret in content:
                    expect("key" in name and path == "/etc/slurm/slurm.key" and mode == 0o600, f"{host}:{path} (mode {mode:o}) has {name}")
            if path.startswith(STATE + "/") and not path.endswith(".crt"):
                expect(mode == 0o600, f"{host}:{path} has mode {mode:o}")
    for log in site.folder.glob("log/*"):
        for name, secret in secrets.items():
            expect(secret not in log.read_bytes(), f"{log.name} has {name}")
    told = (site.out("ctl", "slurm-enlist", "node", "list", "-o", "json") + site.out("ctl", "slurm-enlist", "pool", "list", "-o", "json")).encode()
    for name, secret in secrets.items():
        expect(secret not in told, f"the coordinator tells {name}")


@test(hosts=1)
def a_key_that_is_damaged_is_written_again(site):
    with_pool(site)
    site.enlist("h1")
    site.ready("gpu-1")
    key = site.out("h1", "sha256sum", "/etc/slurm/slurm.key")
    site.run("h1", "sh", "-c", "echo damaged >/etc/slurm/slurm.key")
    wait("the key is as it was", lambda: site.out("h1", "sha256sum", "/etc/slurm/slurm.key") == key, LIMIT)
    site.ready("gpu-1")


@test(hosts=2)
def the_network_of_a_host_is_cut(site):
    with_pool(site)
    site.enlist("h1", "h2")
    site.ready("gpu-1", "gpu-2")
    before = site.processes("h1", "/usr/sbin/slurmd")
    site.script("cut", "h1")
    wait("the agent tells", lambda: site.status("h1").get("error"), LIMIT)
    expect(site.processes("h1", "/usr/sbin/slurmd") == before, "slurmd was restarted")
    site.script("plug", "h1")
    wait("the agent has the coordinator again", lambda: "error" not in site.status("h1"), LIMIT)
    site.ready("gpu-1", "gpu-2")
    expect(site.processes("h1", "/usr/sbin/slurmd") == before, "slurmd was restarted")


# --- Juju -----------------------------------------------------------------------------------------------------------


# Requirement 1
# Requirement 2
# Requirement 12
# Requirement 13
# Requirement 17
# Requirement 31
@test(hosts=2)
def units_of_a_charm_join_and_run_jobs(site):
    """The charms slurmctld and slurmd, with a stand-in of Juju."""
    site.init()
    key, conf = site.out("ctl", "base64", "-w0", "/etc/slurm/slurm.key"), site.out("ctl", "cat", "/etc/slurm/slurm.conf")
    reconfigures = site.reconfigures()
    juju = Juju(site)
    juju.deploy("slurmctld", "slurmctld", "ctl")
    juju.deploy("gpu", "slurmd", "h1", partition_config="Default=YES MaxTime=1-0")
    expect(juju.statuses["gpu/0"][0] == "blocked", f"a unit without slurmctld: {juju.statuses}")
    juju.integrate("gpu", "slurmctld")
    expect({status for status, _ in juju.statuses.values()} == {"active"}, f"{juju.statuses} {juju.logs}")
    wait("the first unit is idle", lambda: idle(site.records()["gpu-0"]), LIMIT)
    juju.everywhere("update-status")
    expect(juju.statuses == {"slurmctld/0": ("active", ""), "gpu/0": ("active", "gpu-0 is IDLE")}, f"{juju.statuses} {juju.logs}")
    expect(site.out("ctl", "srun", "hostname") == "h1", "no job runs on the first unit")
    expect(site.reconfigures() == reconfigures + 1, f"{site.reconfigures() - reconfigures} reconfigures for one application")
    lines = [line for line in site.out("ctl", "cat", POOL_FILE).splitlines() if "=gpu " in line]
    expect(lines == ["NodeSet=gpu Feature=gpu", "PartitionName=gpu Nodes=gpu Default=YES MaxTime=1-0"], f"the pool file has {lines}")

    before = site.as_it_is("ctl", "h1")
    juju.add_unit("gpu", "h2")
    wait("the second unit is idle", lambda: idle(site.records()["gpu-1"]), LIMIT)
    expect(sorted(site.out("ctl", "srun", "-N2", "hostname").split()) == ["h1", "h2"], "no job runs on both units")
    expect(site.as_it_is("ctl", "h1")[2:] == before[2:], "the second unit took a change on the controller")
    expect(site.out("ctl", "cat", "/etc/slurm/slurm.conf") == conf, "slurm.conf was changed")
    expect("gpu-" not in conf + site.out("ctl", "cat", POOL_FILE), "a node stands in the configuration")

    # A record that Slurm does not have any more comes back.
    site.run("ctl", "scontrol", "delete", "nodename=gpu-1")
    juju.everywhere("update-status")
    wait("the second unit is idle again", lambda: idle(site.records()["gpu-1"]), LIMIT)
    expect(juju.statuses["gpu/1"][0] == "active", f"{juju.statuses}")

    # What an administrator has set stays, and hooks without a change do nothing.
    site.run("ctl", "scontrol", "update", "NodeName=gpu-1", "State=DRAIN", "Reason=bad disk")
    job, before = site.submit("-w", "gpu-0"), site.as_it_is("h1", "h2")
    for event in ("update-status", "config-changed", "upgrade-charm", "start"):
        juju.everywhere(event)
    expect(site.as_it_is("h1", "h2") == before, f"something changed: {before} became {site.as_it_is('h1', 'h2')}")
    juju.configure("gpu", partition_config="Default=YES MaxTime=2-0")
    wait("the partition is changed", lambda: "MaxTime=2-00:00:00" in site.out("ctl", "scontrol", "show", "partition", "gpu"), LIMIT)
    record = site.records()["gpu-1"]
    expect("DRAIN" in record["state"] and record["reason"] == "bad disk", f"the drain is lost: {record['state']} {record['reason']}")

    # A partition that slurmctld refuses takes nothing from the others.
    file = site.out("ctl", "cat", POOL_FILE)
    juju.configure("gpu", partition_config="Default=YES TRESBillingWeights=nothing=1")
    expect(juju.statuses["slurmctld/0"][0] == "blocked" and site.out("ctl", "cat", POOL_FILE) == file, f"{juju.statuses}")
    expect("MaxTime=2-00:00:00" in site.out("ctl", "scontrol", "show", "partition", "gpu"), "the partition is not as before")
    site.ends_well(job, "h1")

    # The key is on the units, and nowhere else.
    for host in ("h1", "h2"):
        there = {path: mode for path, (mode, text) in site.files(host).items() if base64.b64decode(key) in text or key.encode() in text}
        expect(there == {"/etc/slurm/slurm.key": 0o600}, f"the key is in {there}")
    exchanged = json.dumps([relation["databags"] for relation in juju.relations.values()]) + "".join(juju.logs)
    expect(key not in exchanged, "the key was exchanged")


# Requirement 19
# Requirement 20
# Requirement 21
# Requirement 24
# Requirement 26
# Requirement 27
# Requirement 28
# Requirement 30
@test(hosts=2)
def units_of_a_charm_leave_under_a_job(site):
    """A unit is removed, and then the relation, while jobs run. They end by themselves."""
    site.init()
    juju = Juju(site)
    juju.deploy("slurmctld", "slurmctld", "ctl")
    juju.deploy("gpu", "slurmd", "h1", partition_config="Default=YES MaxTime=1-0")
    relation = juju.integrate("gpu", "slurmctld")
    juju.add_unit("gpu", "h2")
    for name in ("gpu-0", "gpu-1"):
        wait(f"{name} is idle", lambda name=name: idle(site.records()[name]), LIMIT)
    reconfigures = site.reconfigures()

    def no_other_state(name):
        record = site.records()[name]
        return "DRAIN" in record["state"] and record["reason"] == "slurm-enlist: leaving"

    # A suspended job does not show in the state of the node, and its deletion would end the job.
    leaves, stays = site.submit("-w", "gpu-0"), site.submit("-w", "gpu-1")
    site.run("ctl", "scontrol", "suspend", leaves)

    def meanwhile():
        expect(juju.statuses["gpu/0"] == ("waiting", f"gpu-0 leaves: jobs are suspended there: {leaves}"), f"{juju.statuses}")
        expect(no_other_state("gpu-0"), f"gpu-0 is {site.records()['gpu-0']}")
        time.sleep(12)  # It looks every five seconds.
        site.run("ctl", "scontrol", "resume", leaves)
        wait("the job runs on", lambda: site.job(leaves) == "RUNNING", LIMIT)
        site.ends_well(leaves, "h1")

    juju.remove_unit("gpu/0", meanwhile)
    expect(set(site.records()) == {"gpu-1"}, f"Slurm has {set(site.records())}")
    expect(not site.processes("h1", "/usr/sbin/slurmd"), "slurmd still runs")
    expect("slurm.key" not in site.out("h1", "ls", "/etc/slurm"), "the key is still there")
    expect(site.job(stays) == "RUNNING" and site.reconfigures() == reconfigures, "a unit that leaves has touched others")

    juju.remove_relation(relation)
    expect(juju.statuses["gpu/1"] == ("waiting", f"gpu-1 leaves: jobs run there: {stays}"), f"{juju.statuses}")
    expect(site.reconfigures() == reconfigures + 1 and no_other_state("gpu-1"), "the partition or the node is not closed")
    expect(site.run("ctl", "sbatch", "--wrap", "true", check=False).returncode != 0, "the partition takes new jobs")
    juju.everywhere("update-status")
    expect(juju.statuses["slurmctld/0"] == ("waiting", f"gpu is being removed: jobs use its partition: {stays} (RUNNING)"), f"{juju.statuses}")
    expect(site.job(stays) == "RUNNING" and len(juju.secrets) == 1, "the relation has gone too early")
    site.ends_well(stays, "h2")

    def have_gone():
        juju.everywhere("update-status")
        return juju.statuses["slurmctld/0"] == ("active", "") and juju.statuses["gpu/1"][0] == "blocked"

    wait("all have gone", have_gone, LIMIT)
    expect(not site.records() and not juju.secrets, f"Slurm has {site.records()}, Juju has {juju.secrets}")
    expect("gpu" not in site.out("ctl", "cat", POOL_FILE), "the lines of the partition are still there")
    expect(site.reconfigures() == reconfigures + 2, f"{site.reconfigures() - reconfigures} reconfigures for one application")
    expect(not site.processes("h2", "/usr/sbin/slurmd"), "slurmd still runs")

    # It can come back.
    juju.integrate("gpu", "slurmctld")
    wait("gpu-1 is idle", lambda: idle(site.records()["gpu-1"]), LIMIT)
    expect(site.out("ctl", "srun", "hostname") == "h2", "no job runs")


# Requirement 16
@test(hosts=1)
def the_key_of_units_of_a_charm_moves_to_another_file(site):
    """From slurm.key to slurm.jwks and back, under a job."""
    site.init()
    juju = Juju(site)
    juju.deploy("slurmctld", "slurmctld", "ctl")
    juju.deploy("gpu", "slurmd", "h1", partition_config="Default=YES")
    juju.integrate("gpu", "slurmctld")
    wait("gpu-0 is idle", lambda: idle(site.records()["gpu-0"]), LIMIT)
    job = site.submit("--mem=100")
    move = '''printf '{"keys": [{"alg": "HS256", "kty": "oct", "kid": "first", "k": "%s"}]}' "$(base64 -w0 slurm.key)" >slurm.jwks
        chmod 0600 slurm.jwks && chown --reference=slurm.key slurm.jwks'''
    for file, command in (("slurm.jwks", move), ("slurm.key", "rm slurm.jwks")):
        before, registered = set(site.processes("h1", "/usr/sbin/slurmd")), site.registered("gpu-0")
        site.run("ctl", "sh", "-c", f"cd /etc/slurm && {command}")
        juju.everywhere("update-status")
        there = [name for name in site.out("h1", "ls", "/etc/slurm").split() if name in ("slurm.key", "slurm.jwks")]
        expect(there == [file], f"the key is in {there}")
        expect(len(before) == 1 and not before & set(site.processes("h1", "/usr/sbin/slurmd")), "slurmd was not started again")
        wait("slurmd has registered again", lambda registered=registered: site.registered("gpu-0") > registered, LIMIT)
        expect(site.out("h1", "srun", "--mem=100", "hostname") == "h1", f"no job runs with {file}")
        expect(juju.statuses["gpu/0"][0] == "active", f"{juju.statuses}")
        # slurmd has nothing to do for the next hook, nor does it stumble over its next reload.
        after = site.as_it_is("h1")
        juju.everywhere("update-status")
        expect(site.as_it_is("h1") == after, "a hook without a change did something")
    site.ends_well(job, "h1")


@test(hosts=2)
def the_record_of_a_unit_that_is_gone_is_deleted(site):
    """A machine loses its power, and its unit is removed by force. The leader of slurmctld deletes the record, but not under a job."""
    site.run("ctl", "sh", "-c", "echo SlurmdTimeout=20 >>/etc/slurm/slurm.conf")
    site.init()
    juju = Juju(site)
    juju.deploy("slurmctld", "slurmctld", "ctl")
    juju.deploy("gpu", "slurmd", "h1", partition_config="Default=YES MaxTime=1-0")
    juju.integrate("gpu", "slurmctld")
    juju.add_unit("gpu", "h2")
    for name in ("gpu-0", "gpu-1"):
        wait(f"{name} is idle", lambda name=name: idle(site.records()[name]), LIMIT)
    reconfigures = site.reconfigures()
    ends, stays = site.submit("-w", "gpu-0"), site.submit("-w", "gpu-1")
    site.script("kill", "h1")
    juju.remove_unit_by_force("gpu/0")
    wait("Slurm has set gpu-0 down", lambda: {"DOWN", "NOT_RESPONDING"} <= set(site.records()["gpu-0"]["state"]), 5 * LIMIT)
    wait("Slurm has ended the job there", lambda: site.job(ends) == "NODE_FAIL", LIMIT)
    asks = site.out("ctl", "sbatch", "--parsable", "--output=/dev/null", "--chdir=/tmp", "-w", "gpu-0", "--wrap", "true")

    def says(what):
        juju.everywhere("update-status")
        return what in juju.statuses["slurmctld/0"][1] and juju.statuses["slurmctld/0"][0] == "waiting"

    expect(says("Its record gpu-0 is deleted in a later hook"), f"{juju.statuses}")
    # The limit is two minutes of silence.
    wait("the waiting job keeps the record", lambda: says(f"pending jobs request this node by name, and Slurm would end them: {asks}"), 5 * LIMIT)
    expect(site.job(asks) == "PENDING", f"the job that waits is {site.job(asks)}")
    record = site.records()["gpu-0"]
    expect("DRAIN" in record["state"] and record["reason"] == "slurm-enlist: leaving", f"gpu-0 is {record['state']} {record['reason']}")
    site.run("ctl", "scancel", asks)

    def deleted():
        juju.everywhere("update-status")
        return set(site.records()) == {"gpu-1"}

    wait("the record is deleted", deleted, LIMIT)
    expect(juju.statuses["slurmctld/0"] == ("active", ""), f"{juju.statuses}")
    expect(site.reconfigures() == reconfigures, "slurmctld was reconfigured")
    site.ends_well(stays, "h2")


# Requirement 23
# Requirement 38
# Requirement 39
# Requirement 40
@test(hosts=1)
def units_of_a_charm_carry_out_actions(site):
    site.init()
    juju = Juju(site)
    juju.deploy("slurmctld", "slurmctld", "ctl")
    juju.deploy("gpu", "slurmd", "h1", partition_config="Default=YES")
    juju.integrate("gpu", "slurmctld")
    wait("gpu-0 is idle", lambda: idle(site.records()["gpu-0"]), LIMIT)

    def fails(action, **parameters):
        try:
            juju.act("gpu/0", action, **parameters)
        except Refused as refused:
            return str(refused)
        raise Failed(f"{action} does not fail")

    before = site.as_it_is("h1")
    expect("State" in fails("node-config", parameters="State=DOWN"), "the wrong parameter is not named")
    expect(site.as_it_is("h1") == before, "an action that fails has changed something")

    # Features are changed under a job. Other parameters wait until it has ended.
    job = site.submit()
    expect(juju.act("gpu/0", "node-config", parameters="Features=ssd")["result"] == "applied", f"{juju.results}")
    expect(sorted(site.records()["gpu-0"]["active_features"]) == ["gpu", "ssd"], f"{site.records()}")
    expect("is drained" in juju.act("gpu/0", "node-config", parameters="Weight=7")["result"], f"{juju.results}")
    record = site.records()["gpu-0"]
    expect("DRAIN" in record["state"] and record["reason"] == "slurm-enlist: configuring" and record["weight"] == 1, f"{record}")
    expect("registers again with its new parameters" in fails("resume"), "resume opens a node that must register again")
    juju.everywhere("update-status")
    expect(site.job(job) == "RUNNING", "the job does not run any more")
    site.ends_well(job, "h1")

    def anew():
        juju.everywhere("update-status")
        record = site.records().get("gpu-0")
        return record and record["weight"] == 7 and idle(record)

    wait("gpu-0 has registered anew", anew, LIMIT)
    expect(sorted(site.records()["gpu-0"]["features"]) == ["gpu", "ssd"], f"{site.records()}")

    # A drain of an administrator goes along with the node.
    expect(juju.act("gpu/0", "drain", reason='disk "sda"')["reason"] == "disk 'sda'", f"{juju.results}")
    expect(juju.act("gpu/0", "node-config", reset=True)["result"] == "applied", f"{juju.results}")
    record = site.records()["gpu-0"]
    expect(record["weight"] == 1 and "DRAIN" in record["state"] and record["reason"] == "disk 'sda'", f"{record}")
    expect("DRAIN" not in juju.act("gpu/0", "resume")["state"], f"{juju.results}")
    wait("gpu-0 is idle", lambda: idle(site.records()["gpu-0"]), LIMIT)

    # A task of an array ends alone.
    tasks = site.out("ctl", "sbatch", "--parsable", "--array=1-2", "--exclusive", "--output=/dev/null", "--chdir=/tmp", "--wrap", "sleep 1000")
    wait("the first task runs", lambda: site.out("ctl", "squeue", "-h", "-t", "RUNNING", "-o", "%i") == f"{tasks}_1", LIMIT)
    expect(juju.act("gpu/0", "destroy-jobs")["jobs"] == f"{tasks}_1", f"{juju.results}")
    wait("the second task runs", lambda: site.out("ctl", "squeue", "-h", "-t", "RUNNING", "-o", "%i") == f"{tasks}_2", LIMIT)
    site.run("ctl", "scancel", tasks)


if __name__ == "__main__":
    sys.exit(main(__doc__, TESTS))

#!/usr/bin/env python3
"""Times slurm-enlist with a real Slurm on the hosts of dev/enlist-hosts.sh: how long a host takes to join and to leave, alone and
with others. Prints the median and the worst of --runs. Needs root and build/release/slurm-enlist.
Usage: enlist.py [--runs 5] [--hosts 20] [--slurm 26.05]"""

import argparse
import pathlib
import sys
import tempfile
import time

TOP = pathlib.Path(__file__).resolve().parents[1]
# A module named cluster is in bench and tests/e2e, and the one of tests/e2e is meant.
sys.path[:0] = [str(TOP / "tests/e2e"), str(TOP / "bench"), str(TOP / "tests/enlist")]
from hosts import LIMIT, SCRIPT, Failed, Site, expect, releases, wait  # noqa: E402
from measure import Stream, note, print_figures  # noqa: E402

# Prints the nodes and their states again and again: "gpu-1=idle gpu-2=idle".
STATES = """while :; do echo $(sinfo --noheader --Node --partition=gpu --format=%N=%T | sort -u); sleep 0.05; done"""


def states(site):
    return Stream(str(SCRIPT), site.release, "exec", str(site.folder), "ctl", "sh", "-c", STATES)


def is_idle(line, *names):
    return set(line.split()) >= {f"{name}=idle" for name in names}


def is_gone(line, name):
    return not any(word.startswith(f"{name}=") for word in line.split())


def begin(site, *hosts):
    """Joins hosts at the same time with one token, and starts their agents. Returns when it began."""
    token = site.token("gpu", "--uses", str(len(hosts)))
    for host in hosts:
        site.write(host, "/tmp/join", f"slurm-enlist join --token {token} --no-service --wait 0 && exec slurm-enlist agent\n")
    began = time.monotonic()
    for host in hosts:
        site.script("spawn", host, f"{host}.agent.log", "sh", "/tmp/join")
    return began


def agent_memory(site, host):
    """Returns the resident memory of the agent in MiB: all of it, and its own part, which is not in files."""
    (pid,) = site.processes(host, "slurm-enlist agent")
    words = dict(line.split(":", 1) for line in site.out(host, "cat", f"/proc/{pid}/status").splitlines())
    return [int(words[name].split()[0]) / 1024 for name in ("VmRSS", "RssAnon")]


def prepared(site):
    site.init()
    site.coordinate()
    site.pool("gpu", "--partition", "Default=YES MaxTime=1-0")
    wait("slurmctld has the pool", lambda: "PartitionName=gpu" in site.out("ctl", "scontrol", "show", "partitions"), LIMIT)


def bench_one(site, runs):
    """Times hosts that join and leave one after another."""
    prepared(site)
    with states(site) as shown:
        for run in range(1, runs + 1):
            host, name = f"h{run}", f"gpu-{run}"
            began = begin(site, host)
            note("join of a host until it is IDLE", shown.first(lambda line, name=name: is_idle(line, name), began) - began)
        time.sleep(10)
        for run in range(1, runs + 1):
            rss, own = agent_memory(site, f"h{run}")
            note("the agent, MiB", rss)
            note("the agent without what is mapped from files, MiB", own)
        for run in range(1, runs + 1):
            name, busy = f"gpu-{run}", run % 2 == 0
            job = site.submit("-w", name) if busy else None
            began = time.monotonic()
            site.run("ctl", "slurm-enlist", "node", "remove", name, "--wait", "0")
            if busy:
                # It waits for the job.
                time.sleep(3)
                began = time.monotonic()
                site.run(f"h{run}", "touch", "/tmp/end")
            gone = shown.first(lambda line, name=name: is_gone(line, name), began) - began
            note("leave of a busy host, from the end of its job until Slurm has no record" if busy else
                 "leave of an idle host until Slurm has no record", gone)
            if busy:
                expect(site.job(job) == "COMPLETED", f"job {job} is {site.job(job)}")


def bench_many(site, count):
    prepared(site)
    reconfigures = site.reconfigures()
    names = [f"gpu-{i}" for i in range(1, count + 1)]
    with states(site) as shown:
        began = begin(site, *(f"h{i}" for i in range(1, count + 1)))
        note(f"join of {count} hosts at once until all are IDLE", shown.first(lambda line: is_idle(line, *names), began) - began)
    note(f"number of reconfigures of slurmctld while {count} hosts join", site.reconfigures() - reconfigures)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--hosts", type=int, default=20, help="hosts that join at once")
    parser.add_argument("--slurm", help="Slurm release of the local images")
    arguments = parser.parse_args()
    tag = arguments.slurm or releases()[0]
    print(f"Slurm {tag}", flush=True)
    with tempfile.TemporaryDirectory(prefix="enlist-bench.") as folder:
        with Site(tag, folder, arguments.runs) as site:
            bench_one(site, arguments.runs)
        for _ in range(min(arguments.runs, 3)):
            with Site(tag, folder, arguments.hosts) as site:
                bench_many(site, arguments.hosts)
    print_figures(arguments.runs)


if __name__ == "__main__":
    try:
        main()
    except Failed as error:
        sys.exit(f"enlist.py: {error}")

"""Runs tests of slurm-enlist, each on hosts of its own."""

import argparse
import os
import shutil
import tempfile
import time
import traceback

from hosts import Failed, Site, releases


def run(site, function):
    """Runs a test on these hosts. Returns whether it passed."""
    name, began = f"{site.release} {function.__name__.replace('_', ' ')}", time.monotonic()
    try:
        site.__enter__()
        function(site)
    except Exception as error:  # pylint: disable=broad-except
        print(f"not ok  {name}: {error if isinstance(error, Failed) else traceback.format_exc()}", flush=True)
        if not os.environ.get("KEEP"):
            site.tell()
            site.__exit__(None, None, None)
        return False
    site.__exit__(None, None, None)
    print(f"ok      {name} ({time.monotonic() - began:.1f} s)", flush=True)
    return True


def main(usage, tests, kind=Site):
    """Runs the tests that the command line asks for. A test is a function and its number of hosts beside the controller."""
    parser = argparse.ArgumentParser(description=usage, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--slurm", action="append", help="Slurm release of the local images; may be repeated")
    parser.add_argument("--dir", help="where the hosts are (default: a new folder in /tmp)")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    chosen = [(function, hosts) for function, hosts in tests
              if not arguments.names or any(part in function.__name__ for part in arguments.names)]
    folder = arguments.dir or tempfile.mkdtemp(prefix="enlist-test.")
    results = []
    for release in arguments.slurm or releases():
        for function, hosts in chosen:
            results.append(run(kind(release, folder, hosts), function))
            if not results[-1] and os.environ.get("KEEP"):
                print(f"the hosts are kept in {folder}", flush=True)
                return 1
    if not arguments.dir:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    return 0 if results and all(results) else 1

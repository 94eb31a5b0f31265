"""What benchmarks share: the output of a program that runs beside them, and their figures."""

import collections
import subprocess
import threading
import time

from cluster import ENV, figures_table, unit_of
from waiting import Failed

Figures = collections.defaultdict(list)
Floors = collections.defaultdict(list)


def note(name, value):
    Figures[name].append(value)
    print(f"    {name}: {value:.1f} {unit_of(name)}", flush=True)


def note_floor(seconds, *names):
    """Notes how much of the last figures of these names is the floor, for which this project is not responsible."""
    for name in names:
        Floors[name].append(seconds)
    print(f"      floor: {seconds:.1f} s", flush=True)


def print_figures(runs):
    print("\n" + "\n".join(figures_table(Figures, Floors, runs)))


class Stream:
    """The output lines of a running command, each with the time at which it arrived."""

    def __init__(self, *command):
        self.lines, self.process = [], subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=ENV)
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.append((time.monotonic(), line.strip()))

    def _ended(self):
        return self.process.poll() is not None

    def first(self, condition, since, timeout=120):
        """Returns the time of the first line after `since` for which condition(line) holds."""
        seen, deadline = 0, time.monotonic() + timeout
        while time.monotonic() < deadline:
            for at, line in self.lines[seen:]:
                seen += 1
                if at >= since and condition(line):
                    return at
            if self._ended() and seen == len(self.lines):
                return None
            time.sleep(0.01)
        raise Failed(f"not within {timeout} s; last: {self.lines[-1:]}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

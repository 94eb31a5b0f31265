"""How all end-to-end tests wait for a state, and fail. Needs no cluster."""

import subprocess
import time


class Failed(Exception):
    """An expectation of a test did not hold. The message says which."""


# Ten times what most things take on a quiet machine, in seconds. Only a failing test waits that long.
LIMIT = 300


def wait(what, condition, timeout=LIMIT, every=0.1):
    """Waits until condition() is true, and returns its value. A Failed of the condition counts as not yet. So do look-ups of
    something that does not exist, and answers that were cut off."""
    deadline, last = time.monotonic() + timeout, None
    while True:
        try:
            last = condition()
            if last:
                return last
        except (Failed, subprocess.TimeoutExpired, LookupError, TypeError, ValueError, AttributeError) as error:
            last = repr(error)
        if time.monotonic() > deadline:
            raise Failed(f"not within {timeout} s: {what} (last: {last})")
        time.sleep(every)


def expect(condition, message):
    if not condition:
        raise Failed(message)

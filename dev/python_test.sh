#!/bin/bash
# The tests of what is written in Python.
set -euo pipefail
top=$(cd "$(dirname "$0")/.." && pwd -P)
"$top/dev/deps.sh" test
export PYTHONDONTWRITEBYTECODE=1
python3 "$top/tests/e2e/cluster_test.py" -v 2>&1 | sed 's/\(.*\) \.\.\. ok$/ok    \1/; s/\(.*\) \.\.\. \(FAIL\|ERROR\)$/not ok  \1/'

#!/bin/bash
# What users wait for, measured on the local cluster. RUNS=5, REST=600 (seconds at rest), BENCH="apply scale ..." for some of it.
. "$(dirname "$0")/lib.sh"

need_root bench
"$DEV/deps.sh" build test
"$DEV/up.sh"
STEP=0 STARTED=${EPOCHREALTIME/./}
"$DEV/operator.sh" install
step "timings on the local cluster"
# shellcheck disable=SC2086
python3 "$TOP/bench/cluster.py" --runs "${RUNS:-5}" --rest "${REST:-600}" ${BENCH:-}
step "sizes"
tar=$("$DEV/images/build.sh" --operator "$TOP/build/release/slurm-operator" 2>/dev/null | sed -n 's/^image-tar: //p')
say "the operator's whole image: $(($(stat -c %s "$tar") / 1024)) KiB"

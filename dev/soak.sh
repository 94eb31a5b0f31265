#!/bin/bash
# Random work and random faults on the local cluster for MINUTES (30), from SEED (1), with Slurm SLURM (the preferred release). Ends with
# what became of every job.
. "$(dirname "$0")/lib.sh"

need_root "make soak"
"$DEV/up.sh"
"$DEV/deps.sh" test
STEP=0 STARTED=${EPOCHREALTIME/./}
"$DEV/operator.sh" install
step "random work and faults for ${MINUTES:-30} minutes"
exec python3 "$TOP/tests/e2e/soak.py" --minutes "${MINUTES:-30}" --seed "${SEED:-1}" ${SLURM:+--slurm "$SLURM"}

#!/bin/bash
# What users wait for, measured on the local cluster. RUNS=5, REST=600 (seconds at rest), BENCH="apply scale busy drain rest scale1000"
# for some of it.
. "$(dirname "$0")/lib.sh"

need_root bench
"$DEV/deps.sh" build test
"$DEV/up.sh"
STEP=0 STARTED=${EPOCHREALTIME/./}
"$DEV/operator.sh" install
step "timings on the local cluster"
names=() thousand=0
for name in ${BENCH:-apply scale busy drain rest scale1000}; do
  if [[ $name == scale1000 ]]; then thousand=1; else names+=("$name"); fi
done
if ((${#names[@]})); then
  python3 "$TOP/bench/cluster.py" --runs "${RUNS:-5}" --rest "${REST:-600}" "${names[@]}"
fi
if ((thousand)); then
  step "10 to 1,000 workers that only pretend"
  "$DEV/kwok.sh"
  "$DEV/cpp.sh" release sim-slurmrestd
  tar=$("$DEV/images/build.sh" --image local/sim-slurmrestd:dev --binary "$TOP/build/release/sim-slurmrestd" 2>"$LOCAL/logs/sim-slurmrestd-image.log" |
    sed -n 's/^image-tar: //p') || die "the image could not be made" "see $LOCAL/logs/sim-slurmrestd-image.log"
  "$DEV/load-image.sh" "$tar"
  python3 "$TOP/bench/scale.py"
fi
step "sizes"
tar=$("$DEV/images/build.sh" --operator "$TOP/build/release/slurm-operator" 2>/dev/null | sed -n 's/^image-tar: //p')
say "the operator's whole image: $(($(stat -c %s "$tar") / 1024)) KiB"

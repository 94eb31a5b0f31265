#!/bin/bash
# What users wait for, measured on the local cluster, and what the operator costs in a simulated one of 10,000 workers. RUNS=5, REST=600
# (seconds at rest), AWAY=300 (seconds without slurmdbd), SCALE_RUNS=5 (of 10 to 1,000 workers, two minutes each), and for some of it
# BENCH="apply scale busy drain roll rest accounting governance bridge enlist site records update node config evict failover scale1000 sim10000".
. "$(dirname "$0")/lib.sh"

need_root "make bench"
"$DEV/deps.sh" build test
"$DEV/up.sh"
STEP=0 STARTED=${EPOCHREALTIME/./}
"$DEV/operator.sh" install
step "timings on the local cluster"
names=() bridge=0 enlist=0 failover=0 thousand=0 simulated=0
for name in ${BENCH:-apply scale busy drain roll rest accounting governance bridge enlist site records update node config evict failover scale1000 sim10000}; do
  case $name in
    bridge) bridge=1 names+=("$name") ;;
    enlist) enlist=1 ;;
    failover) failover=1 ;;
    scale1000) thousand=1 ;;
    sim10000) simulated=1 ;;
    *) names+=("$name") ;;
  esac
done
if ((bridge)); then "$DEV/kwok.sh"; fi
if ((${#names[@]})); then
  python3 "$TOP/bench/cluster.py" --runs "${RUNS:-5}" --rest "${REST:-600}" --away "${AWAY:-300}" "${names[@]}"
fi
if ((bridge)); then
  step "slurm-bridge with 5,000 pods and 1,000 nodes in the simulator"
  "$DEV/cpp.sh" release slurm-bridge-bench
  "$TOP/build/release/slurm-bridge-bench"
fi
if ((enlist)); then
  step "slurm-enlist with hosts in namespaces"
  "$DEV/images/build.sh" >"$LOCAL/logs/enlist-images.log"
  "$DEV/cpp.sh" release slurm-enlist
  python3 "$TOP/bench/enlist.py" --runs "${RUNS:-5}"
fi
if ((failover)); then
  step "a backup of slurmctld takes over"
  python3 "$TOP/tests/e2e/run.py" a_backup_of_slurmctld_takes_over
fi
if ((thousand)); then
  step "10 to 1,000 workers that only pretend, ${SCALE_RUNS:-5} run(s)"
  "$DEV/kwok.sh"
  "$DEV/cpp.sh" release sim-slurmrestd
  tar=$("$DEV/images/build.sh" --image local/sim-slurmrestd:dev --binary "$TOP/build/release/sim-slurmrestd" 2>"$LOCAL/logs/sim-slurmrestd-image.log" |
    sed -n 's/^image-tar: //p') || die "the image could not be made" "see $LOCAL/logs/sim-slurmrestd-image.log"
  "$DEV/load-image.sh" "$tar"
  python3 "$TOP/bench/scale.py" --runs "${SCALE_RUNS:-5}"
fi
if ((simulated)); then
  step "10,000 workers in the simulator"
  "$DEV/cpp.sh" release slurm-operator-sim
  "$TOP/build/release/slurm-operator-sim" --bench
fi
step "sizes, and the start of the plugin"
tar=$("$DEV/images/build.sh" --operator "$TOP/build/release/slurm-operator" 2>/dev/null | sed -n 's/^image-tar: //p')
say "the operator's whole image: $(($(stat -c %s "$tar") / 1024)) KiB"
"$DEV/cpp.sh" release kubectl-slurm
began=${EPOCHREALTIME/./}
for _ in {1..20}; do "$TOP/build/release/kubectl-slurm" --help >"$LOCAL/logs/kubectl-slurm-help.log"; done
say "kubectl slurm --help: $(((${EPOCHREALTIME/./} - began) / 20000)) ms"

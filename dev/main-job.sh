#!/bin/bash
# The main job on the real thing: `make demo` from nothing, a scale-in that waits for a running job, and `make down`, which leaves nothing
# behind. Begins and ends without a cluster of this clone.
. "$(dirname "$0")/lib.sh"
. "$DEV/cluster.sh"
. "$DEV/traces.sh"

passed=0 failed=0

"$DEV/down.sh"
# What is installed or built on the way is no trace of a cluster.
"$DEV/deps.sh" cluster images build
"$DEV/build.sh" cluster
"$DEV/images/build.sh" >/dev/null
"$DEV/cpp.sh" release slurm-operator

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
traces_begin "$scratch/before"

check "make demo" env "$mark" make -C "$TOP" demo
if ((failed)); then # a look at it is worth more than what it leaves
  echo "$passed passed, $failed failed"
  exit 1
fi

ctld() { kube exec -n demo demo-controller-0 -c slurmctld -- "$@"; }
# A line each: the workers that are not on their way out, with the UIDs of their pods.
workers() {
  kube get pods -n demo -l app.kubernetes.io/name=slurmd -o json |
    jq -r '.items[] | select(.metadata.deletionTimestamp == null) | .metadata.name + " " + .metadata.uid' | sort
}
job_is() { # STATE RESTARTS
  [[ $(ctld scontrol show job "$job" --json | jq -r '.jobs[0] | (.job_state | join("+")) + " " + (.restart_cnt | tostring)') == "$1 $2" ]]
}
draining() { (($(ctld sinfo --noheader --Node --states=draining --format=%N | sort -u | wc -l) == $1)); }
count() { (($(workers | wc -l) == $1)); }
records() { (($(ctld sinfo --noheader --Node --format=%N | sort -u | wc -l) == $1)); }
told_to_end() { ctld scancel --batch --signal=URG "$job"; job_is COMPLETED 0; }

# It runs until it is told to end. The signal does nothing to a script that has not set its trap yet.
job=$(ctld sbatch --parsable -N3 --exclusive --no-requeue --output=/dev/null --wrap "trap 'exit 0' URG; sleep 3600 & wait")
check "a job runs on the three workers" wait_for 120 "" job_is RUNNING 0
workers >"$scratch/workers"
kube scale -n demo nodesets.slinky.slurm.net/cpu --replicas=1 >/dev/null
check "the scale-in drains two workers" wait_for 60 "" draining 2
check "the workers under the job stay" diff "$scratch/workers" <(workers)
check "the job runs on" job_is RUNNING 0
check "the job completes, in its first start" wait_for 60 "" told_to_end
check "then one worker is left" wait_for 120 "" count 1
check "and one record in Slurm" wait_for 60 "" records 1
check "all is Ready" kube wait -n demo --for=condition=Ready --timeout=120s \
  controllers.slinky.slurm.net/demo restapis.slinky.slurm.net/demo nodesets.slinky.slurm.net/cpu

check "make down" make -C "$TOP" down
check "it leaves nothing" nothing_left "$scratch/before"
echo "$passed passed, $failed failed"
((failed == 0))

#!/bin/bash
# slurm-bridge from nothing: the pods of a Deployment wait in Slurm's queue with a job of sbatch, start where Slurm decides, and end when
# Slurm ends them. At each step squeue and kubectl show the same. Usage: dev/demo-bridge.sh [SLURM RELEASE]
. "$(dirname "$0")/lib.sh"
. "$DEV/demo-lib.sh"

namespace=bridge controller=demo pods=bridge-pods
demo_begin demo-bridge "$@"
[[ ! $tag < 25.11 ]] || die "Slurm $tag has no external nodes and jobs" "SLURM=26.05 make demo-bridge"

p() { kubectl -n $pods "$@"; }
# side_by_side: what Slurm says of its jobs, and Kubernetes of its pods.
side_by_side() {
  paste -d '|' <(ctld squeue --format='%.5i %24j %8T %R' | awk '{ printf "%-62s\n", $0 }') \
    <(p get pods -o custom-columns='POD:.metadata.name,PHASE:.status.phase,NODE:.spec.nodeName,WHY:.status.conditions[?(@.type=="SlurmQueued")].reason' \
      --sort-by=.metadata.creationTimestamp) | sed 's/|/  /' | indented
}
# same_story RUNNING WAITING: so many pods run, each on the node of the running job of its name, and so many wait with their jobs.
same_story() {
  local jobs found
  jobs=$(ctld squeue --noheader --partition=bridge --format='%j %T %N' | sed 's/ PENDING *$/ Pending <none>/; s/ RUNNING / Running /' | sort) || return
  found=$(p get pods --no-headers -o custom-columns=A:.metadata.name,B:.status.phase,C:.spec.nodeName,D:.metadata.deletionTimestamp |
    awk '$4 == "<none>" { print $1, $2, $3 }' | sort) || return
  [[ $jobs == "$found" && $(grep -c ' Running ' <<<"$jobs") == "$1" && $(grep -c ' Pending ' <<<"$jobs") == "$2" ]]
}
tell_same_story() {
  wait_for 120 "" same_story "$@" || {
    side_by_side >&2
    die "squeue and kubectl do not show $1 running and $2 waiting pods" "kubectl describe -n $pods pods; kubectl -n slurm-bridge logs deployment/slurm-bridge"
  }
  side_by_side
}
# shellcheck disable=SC2053
job_is() { [[ $(ctld squeue --noheader --states=all --jobs="$1" --format='%T %r') == $2 ]]; } # JOB PATTERN of "STATE REASON"

step "applying a Slurm cluster with one worker, two licenses, and a partition for nodes of Kubernetes (Slurm $tag)"
make_namespace
# Slurm does not look at its queue when an external job frees its node, only at intervals.
filled "$DEV/demo/cluster.yaml" | sed -e 's/^  replicas: 3$/  replicas: 1/' -e 's/config: Default=YES/config:/' -e 's/^    TaskPlugin=.*/&\
    Licenses=seat:2\
    SchedulerParameters=sched_interval=2\
    NodeSet=bridged Feature=bridge\
    PartitionName=bridge Nodes=bridged Default=YES MaxTime=UNLIMITED State=UP/' | k apply -f - | indented
for resource in controllers/demo restapis/demo nodesets/cpu; do wait_ready $resource; done

kubectl create namespace $pods --dry-run=client -o yaml | kubectl apply -f - >/dev/null
"$DEV/bridge.sh" install $namespace/$controller $pods | indented

step "two nodes of Kubernetes are labelled and become external nodes of Slurm, where no slurmd runs"
mapfile -t hosts < <(kubectl get nodes -o name | tail -n 2)
kubectl annotate --overwrite "${hosts[@]}" scheduler.slinky.slurm.net/external-node-partitions=bridge | indented
kubectl label --overwrite "${hosts[@]}" scheduler.slinky.slurm.net/external-node=true | indented
registered() { [[ $(ctld sinfo --noheader --Node --partition=bridge --format=%N | sort -u | wc -l) == 2 ]]; }
wait_for 120 "" registered || die "the nodes are not in Slurm" "kubectl describe nodes; kubectl -n slurm-bridge logs deployment/slurm-bridge"
ctld sinfo --Node | indented

step "a Deployment of three pods, each for a whole node"
filled "$DEV/demo/bridge.yaml" | p apply -f - | indented
p scale deployment service --replicas=3 >/dev/null
tell_same_story 2 1

step "sbatch --licenses=seat:1: the pods have both licenses"
job=$(ctld sbatch --parsable --partition=cpu --licenses=seat:1 --output=/dev/null --job-name=batch --wrap "trap 'exit 0' URG; sleep 600 & wait")
wait_for 60 "" job_is "$job" 'PENDING *' || die "job $job does not wait" "kubectl slurm why $job -n $namespace"
side_by_side

step "kubectl scale deployment service --replicas=1: jobs of pods end, and the job of sbatch gets its license"
p scale deployment service --replicas=1 >/dev/null
wait_for 120 "" job_is "$job" 'RUNNING *' || die "job $job does not start" "kubectl slurm why $job -n $namespace"
tell_same_story 1 0

step "kubectl scale deployment service --replicas=2: the second pod waits for the license"
p scale deployment service --replicas=2 >/dev/null
tell_same_story 1 1
first=$(ctld squeue --noheader --partition=bridge --states=RUNNING --format=%i)

step "scancel $first, the job of the pod that runs: the pod is evicted, the Deployment makes another one, and the pod that waited starts"
old=$(p get pods -l "scheduler.slinky.slurm.net/slurm-jobid=$first" -o name)
ctld scancel "$first"
gone() { ! p get "$old"; }
wait_for 120 "" gone || die "$old is not evicted" "kubectl describe -n $pods $old"
tell_same_story 1 1

step "the job of sbatch ends, and the last pod starts"
# The script may not have set its trap when it is told for the first time.
ended() {
  ctld scancel --batch --signal=URG "$job" || true
  job_is "$job" 'COMPLETED *'
}
wait_for 60 "" ended || die "job $job does not end" "kubectl slurm why $job -n $namespace"
tell_same_story 2 0

step "a gang: two pods of a Job with one job in Slurm, which waits for two nodes"
filled "$DEV/demo/bridge-gang.yaml" | p apply -f - | indented
p scale deployment service --replicas=1 >/dev/null
gang_waits() { [[ $(ctld squeue --noheader --name=gang --format='%T %D') == "PENDING 2" && $(p get pods -l app=gang -o name | wc -l) == 2 ]]; }
wait_for 60 "" gang_waits || die "the gang has no job that waits" "kubectl describe -n $pods pods -l app=gang"
side_by_side

step "kubectl scale deployment service --replicas=0: both pods of the gang start, in their order on the nodes of the job"
p scale deployment service --replicas=0 >/dev/null
gang_runs() {
  local nodes
  nodes=$(ctld scontrol show hostnames "$(ctld squeue --noheader --name=gang --states=RUNNING --format=%N)") || return
  [[ $nodes == "$(p get pods -l app=gang --field-selector=status.phase=Running -o custom-columns=A:.metadata.name,B:.spec.nodeName --no-headers |
    sort | awk '{ print $2 }')" && $(wc -l <<<"$nodes") == 2 ]]
}
wait_for 120 "" gang_runs || die "the gang does not run" "kubectl describe -n $pods pods -l app=gang"
side_by_side
echo
echo "The demo works: pods, a gang of them and a job shared one queue, and squeue and kubectl told the same story."
printf '  %-77s %s\n' ". \"$DEV/env.sh\"" "kubectl uses this cluster" \
  "kubectl -n $pods get pods" "the pods" \
  "kubectl -n $namespace exec demo-controller-0 -c slurmctld -- squeue" "the queue" \
  "kubectl -n $pods scale deployment service --replicas=5" "more pods" \
  "kubectl label nodes --all scheduler.slinky.slurm.net/external-node-" "the nodes leave Slurm and take other pods again" \
  "make down" "leave nothing behind"

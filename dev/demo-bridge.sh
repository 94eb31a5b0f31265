#!/bin/bash
# slurm-bridge from nothing: the pods of a Deployment, a gang of pods and jobs of sbatch compete for three nodes, two of which have a worker of
# Slurm. Pods wait in Slurm's queue, start where Slurm decides, and end when Slurm ends them. At each step squeue and kubectl show the same. Usage: dev/demo-bridge.sh [SLURM RELEASE]
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

step "two nodes of Kubernetes get a worker of Slurm each, beside their kubelets; the third becomes an external node, where no slurmd runs"
mapfile -t hosts < <(kubectl get nodes -o name)
external=${hosts[0]#node/}
kubectl label --overwrite "${hosts[@]:1:2}" demo-bridge/worker=true | indented
kubectl annotate --overwrite "${hosts[0]}" scheduler.slinky.slurm.net/external-node-partitions=bridge | indented
kubectl label --overwrite "${hosts[0]}" scheduler.slinky.slurm.net/external-node=true | indented

step "installing slurm-bridge, and applying a Slurm cluster with a partition of all three nodes (Slurm $tag)"
# What an earlier run of this demo has left.
kubectl delete namespace $pods --ignore-not-found >/dev/null
make_namespace
kubectl create namespace $pods --dry-run=client -o yaml | kubectl apply -f - >/dev/null
"$DEV/bridge.sh" install $namespace/$controller $pods | indented
# Slurm does not look at its queue when an external job frees its node, only at intervals. The prolog is the one of the chart.
filled "$DEV/demo/cluster.yaml" | sed -e 's/config: Default=YES/config:/' -e 's/^    TaskPlugin=.*/&\
    SchedulerParameters=sched_interval=2\
    PrologFlags=Alloc\
    PrologEpilogTimeout=300\
    BatchStartTimeout=300\
    NodeSet=bridged Feature=bridge\
    PartitionName=bridge Nodes=bridged,cpu Default=YES MaxTime=UNLIMITED State=UP\
  prologScriptRefs: [{name: slurm-bridge-prolog}]/' -e 's|^  replicas: 3$|  scalingMode: DaemonSet\
  template: {spec: {nodeSelector: {demo-bridge/worker: "true"}}}|' | k apply -f - | indented
for resource in controllers/demo restapis/demo nodesets/cpu; do wait_ready $resource; done
for name in first second; do ctld scancel --name=$name; done
registered() { [[ $(ctld sinfo --noheader --Node --partition=bridge --states=idle --format=%N | sort -u | wc -l) == 3 ]]; }
wait_for 120 "" registered || die "the nodes are not in Slurm" "kubectl describe nodes; kubectl -n slurm-bridge logs deployment/slurm-bridge"
ctld sinfo --Node | indented

step "sbatch: a job of Slurm on one of the nodes with a worker"
submit() {
  ctld sbatch --parsable --partition=cpu --exclusive --output=/dev/null --job-name="$1" --wrap "trap 'exit 0' URG; sleep 600 & wait"
}
job=$(submit first)
wait_for 60 "" job_is "$job" 'RUNNING *' || die "job $job does not start" "kubectl slurm why $job -n $namespace"
side_by_side

step "a Deployment of three pods, each for a whole node: two run, one waits for the job"
filled "$DEV/demo/bridge.yaml" | p apply -f - | indented
tell_same_story 2 1

step "the job ends, and the pod that waited starts on its node"
# The script may not have set its trap when it is told for the first time.
end_job() {
  ctld scancel --batch --signal=URG "$job" || true
  job_is "$job" 'COMPLETED *'
}
wait_for 60 "" end_job || die "job $job does not end" "kubectl slurm why $job -n $namespace"
tell_same_story 3 0

step "sbatch again: the job waits for a node of a pod"
job=$(submit second)
wait_for 60 "" job_is "$job" 'PENDING *' || die "job $job does not wait" "kubectl slurm why $job -n $namespace"
first=$(ctld squeue --noheader --partition=bridge --states=RUNNING --format='%i %N' | awk -v external="$external" '$2 != external { print $1; exit }')

step "scancel $first, the job of a pod: the pod is evicted, the job starts when the pod is gone, and the Deployment's next pod waits"
old=$(p get pods -l "scheduler.slinky.slurm.net/slurm-jobid=$first" -o name)
ctld scancel "$first"
started() { job_is "$job" 'RUNNING *' && [[ $(ctld squeue --noheader --jobs="$job" --format=%r) != Prolog ]]; }
wait_for 120 "" started || die "job $job does not start" "kubectl slurm why $job -n $namespace; kubectl describe -n $pods $old"
! p get "$old" >/dev/null 2>&1 || die "job $job runs beside $old, whose job has ended" "kubectl describe -n $pods $old"
tell_same_story 2 1

step "a gang: two pods of a Job with one job in Slurm, which waits for two nodes"
p scale deployment service --replicas=2 >/dev/null
tell_same_story 2 0
filled "$DEV/demo/bridge-gang.yaml" | p apply -f - | indented
gang_waits() { [[ $(ctld squeue --noheader --name=gang --format='%T %D') == "PENDING 2" && $(p get pods -l app=gang -o name | wc -l) == 2 ]]; }
wait_for 60 "" gang_waits || die "the gang has no job that waits" "kubectl describe -n $pods pods -l app=gang"
side_by_side

step "kubectl scale deployment service --replicas=0: both pods of the gang start, in their order on the nodes of the job"
p scale deployment service --replicas=0 >/dev/null
gang_runs() {
  local nodes
  # squeue's NODELIST is sorted by name. The order of the job's nodes is that of Slurm's records, which the JSON has.
  nodes=$(ctld squeue --name=gang --states=RUNNING --json | jq -r '.jobs[0].nodes // empty') || return
  nodes=$(ctld scontrol show hostnames "$nodes") || return
  [[ $nodes == "$(p get pods -l app=gang --field-selector=status.phase=Running -o custom-columns=A:.metadata.name,B:.spec.nodeName --no-headers |
    sort | awk '{ print $2 }')" && $(wc -l <<<"$nodes") == 2 ]]
}
wait_for 120 "" gang_runs || die "the gang does not run" "kubectl describe -n $pods pods -l app=gang"
side_by_side
echo
echo "The demo works: pods, a gang of them and jobs of sbatch shared one queue and three nodes, and squeue and kubectl told the same story."
printf '  %-77s %s\n' ". \"$DEV/env.sh\"" "kubectl uses this cluster" \
  "kubectl -n $pods get pods" "the pods" \
  "kubectl -n $namespace exec demo-controller-0 -c slurmctld -- squeue" "the queue" \
  "kubectl -n $pods scale deployment service --replicas=5" "more pods" \
  "kubectl label nodes --all scheduler.slinky.slurm.net/external-node-" "the nodes leave Slurm and take other pods again" \
  "make down" "leave nothing behind"

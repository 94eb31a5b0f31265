#!/bin/bash
# Who may use how much, from nothing: a QOS, accounts and a user become a tree in slurmdbd and stay as declared, an account is denied a QOS,
# two resources for one QOS, a limit that follows the number of nodes, and the reason of a job that waits. Usage: dev/demo-governance.sh
# [SLURM RELEASE]
. "$(dirname "$0")/lib.sh"
. "$DEV/demo-lib.sh"

namespace=governance controller=demo
demo_begin demo-governance "$@"

# Slurm lets its own user and root use every QOS, so jobs are submitted by an ordinary user, from a worker.
as_games() { k exec cpu-0 -c slurmd -- setpriv --reuid=games --regid=games --clear-groups env HOME=/tmp "$@"; }
# submitted OPTION...: the number of a job of games that writes no file.
submitted() { as_games sbatch --parsable --chdir=/tmp --output=/dev/null --no-requeue -n1 --mem=10 "$@"; }
sacctmgr() { ctld sacctmgr --immediate --noheader --parsable2 "$@"; }
qos_has() { [[ $(sacctmgr show qos "$1" "format=$2") == "$3" ]]; } # QOS FIELD VALUE
account_has() { grep -qxF "|$3" <<<"$(sacctmgr show association account="$1" "format=user,$2")"; } # ACCOUNT FIELD VALUE: without its users
# shellcheck disable=SC2053
job_is() { [[ $(ctld squeue --noheader --states=all --jobs="$1" --format='%T %r') == $2 ]]; } # JOB PATTERN of "STATE REASON"
condition() { k get "$1" -o jsonpath="{.status.conditions[?(@.type==\"$2\")]['reason', 'message']}{\"\n\"}"; } # OBJECT TYPE
idle_workers() { [[ $(ctld sinfo --noheader --partition=cpu --states=idle --format=%D) == "$1" ]]; }
since() { local tenths=$(((${EPOCHREALTIME/./} - $1) / 100000)) && echo "$((tenths / 10)).$((tenths % 10))"; } # MICROSECONDS of the epoch
mended() { [[ $(drift_events) == *"GrpJobs is 99, wanted 20"* ]]; }
drift_events() {
  k get events --field-selector=involvedObject.kind=SlurmAccount,involvedObject.name=physics,reason=DriftMended \
    -o jsonpath='{range .items[*]}{.message}{"\n"}{end}'
}
# all_ready FILE: what the manifest declares.
all_ready() {
  k wait --for=condition=Ready --timeout=60s -f "$1" >/dev/null || {
    k get slurmqoses,slurmaccounts,slurmusers >&2
    die "not all of ${1##*/} is Ready" "kubectl describe -n $namespace -f $1"
  }
}

step "building kubectl slurm"
"$DEV/cpp.sh" release kubectl-slurm
PATH=$TOP/build/release:$PATH

step "making an image of MariaDB and loading it into the nodes"
database_image

step "applying a MariaDB, an Accounting, and a cluster that enforces associations, limits and QOS (Slurm $tag)"
make_namespace
database_password
apply "$DEV/demo/mariadb.yaml"
apply "$DEV/demo/accounting.yaml"
filled "$DEV/demo/cluster.yaml" | sed -e 's/^  replicas: 3$/  replicas: 2/' -e '/^  slurmctld:$/i\  accountingRef: {name: demo}' \
  -e 's/^    TaskPlugin=.*/&\n    AccountingStorageEnforce=associations,limits,qos/' | k apply -f - | indented
for resource in accountings/demo controllers/demo restapis/demo nodesets/cpu; do wait_ready $resource; done
wait_for 120 "" idle_workers 2 || die "the two workers are not idle" "kubectl exec -n $namespace demo-controller-0 -c slurmctld -- sinfo"
[[ $(ctld scontrol show config) =~ AccountingStorageEnforce\ *=\ *[a-z,]*associations,limits,qos ]] ||
  die "slurmctld does not enforce associations, limits and QOS" "kubectl describe -n $namespace controllers/demo"

step "four manifests: a user, two accounts, a QOS"
applied=${EPOCHREALTIME/./}
apply "$DEV/demo/governance.yaml"
all_ready "$DEV/demo/governance.yaml"
say "               all Ready after $(since "$applied") s"
k get slurmqoses,slurmaccounts,slurmusers | indented

step "sacctmgr show association tree"
ctld sacctmgr show association tree format=account%-12,user%-8,share,grpjobs,defaultqos%-12,qos%-12 | indented
for field in 'QOS gpu,normal' 'DefaultQOS normal' 'Share 40'; do
  account_has physics "${field% *}" "${field#* }" ||
    die "account physics does not have ${field/ /=} in slurmdbd" "kubectl describe -n $namespace slurmaccount/physics"
done

step "kubectl slurm tree"
kubectl slurm tree -n $namespace | indented

step "sacctmgr modify account physics set GrpJobs=99, which is declared as 20"
sacctmgr modify account physics set GrpJobs=99 >/dev/null
changed=${EPOCHREALTIME/./}
wait_for 20 "" account_has physics GrpJobs 20 ||
  die "GrpJobs of account physics is not 20 again" "kubectl describe -n $namespace slurmaccount/physics"
say "               it is 20 again after $(since "$changed") s, which sacctmgr's own look is part of"
wait_for 20 "" mended || die "there is no event about it" "kubectl get events -n $namespace"
drift_events | tail -n1 | indented

step "sbatch --qos=gpu: account physics may use it"
job=$(submitted --account=physics --qos=gpu --wrap true)
wait_for 120 "" recorded "$job" 'COMPLETED|physics' || die "slurmdbd does not have job $job as completed" "kubectl slurm why $job -n $namespace"
ctld sacct --allusers --allocations --jobs="$job" --format=jobid,user,account,qos,state | indented

step "sbatch --qos=gpu: it is denied to account nvidia"
if refusal=$(submitted --account=nvidia --qos=gpu --wrap true 2>&1); then
  die "Slurm took the job of account nvidia in QOS gpu" "kubectl describe -n $namespace slurmaccount/nvidia"
fi
# kubectl adds a line of its own.
refusal=$(grep '^sbatch: ' <<<"$refusal") || die "sbatch failed for another reason: $refusal"
say "$refusal" | indented
[[ $refusal == *"Invalid qos specification"* ]] || die "Slurm refused the job for another reason"

step "a second SlurmQos for the QOS gpu, with another limit"
apply "$DEV/demo/governance-rival.yaml"
k wait --for=condition=Synced=False --timeout=20s slurmqos/rival >/dev/null || die "it is not refused" "kubectl describe -n $namespace slurmqos/rival"
condition slurmqos/rival Synced | indented
[[ $(condition slurmqos/rival Synced) == *Conflicted* ]] || die "the second one is not Conflicted" "kubectl describe -n $namespace slurmqos/rival"
qos_has gpu MaxJobsPU 1 || die "QOS gpu has not the limit of the older resource" "kubectl describe -n $namespace slurmqos/gpu"
say "               QOS gpu still has MaxJobsPerUser=1"
k delete -f "$DEV/demo/governance-rival.yaml" --wait=true --timeout=60s >/dev/null

step "a QOS with grpTRES node: 50%, and two workers"
apply "$DEV/demo/governance-half.yaml"
all_ready "$DEV/demo/governance-half.yaml"
# After an earlier run there were four workers, and a limit falls 30 s after the nodes are gone.
wait_for 300 "" qos_has half GrpTRES node=1 || die "half of two nodes is not one" "kubectl get -n $namespace slurmqos/half -o yaml"
sacctmgr show qos half format=name,grptres | indented

step "kubectl scale nodeset cpu --replicas=4"
k scale nodesets.slinky.slurm.net cpu --replicas=4 >/dev/null
wait_for 200 "" idle_workers 4 || die "there are not four idle workers" "kubectl describe -n $namespace nodesets/cpu"
grown=${EPOCHREALTIME/./}
wait_for 50 "" qos_has half GrpTRES node=2 || die "half of four nodes is not two" "kubectl get -n $namespace slurmqos/half -o yaml"
say "               the limit had followed $(since "$grown") s after sinfo showed four idle workers"
sacctmgr show qos half format=name,grptres | indented
k get slurmqos half -o jsonpath='{.status.capacityLimits}{"\n"}' | indented

step "a user may run one job at a time in QOS gpu: the second one waits, and kubectl slurm why tells for what"
first=$(submitted --account=physics --qos=gpu --time=10 --wrap "trap 'exit 0' URG; sleep 600 & wait")
wait_for 60 "" job_is "$first" 'RUNNING *' || die "job $first does not start" "kubectl slurm why $first -n $namespace"
second=$(submitted --account=physics --qos=gpu --wrap true)
wait_for 60 "" job_is "$second" 'PENDING QOSMaxJobsPerUserLimit' ||
  die "job $second does not wait for the limit of its QOS" "kubectl slurm why $second -n $namespace"
kubectl slurm why "$second" -n $namespace | indented
# The script may not have set its trap when it is told for the first time.
first_ended() {
  ctld scancel --batch --signal=URG "$first" || true
  job_is "$first" 'COMPLETED *'
}
wait_for 60 "" first_ended || die "job $first does not end" "kubectl slurm why $first -n $namespace"
wait_for 120 "" recorded "$second" 'COMPLETED|physics' || die "job $second did not run after it" "kubectl slurm why $second -n $namespace"
say "               job $first ends, and job $second runs"
echo
echo "The demo works: four manifests are a tree in slurmdbd, and stay as declared; limits and denials hold."
printf '  %-77s %s\n' ". \"$DEV/env.sh\"; PATH=\$PATH:$TOP/build/release" "kubectl and kubectl slurm use this cluster" \
  "kubectl slurm tree -n $namespace" "who may use how much" \
  "kubectl -n $namespace get slurmqoses,slurmaccounts,slurmusers" "what declares it" \
  "kubectl -n $namespace exec demo-controller-0 -c slurmctld -- sacctmgr show qos" "what slurmdbd has" \
  "kubectl -n $namespace edit slurmaccount physics" "change it" \
  "make down" "leave nothing behind"

#!/bin/bash
# Records of jobs, from nothing: the cluster of dev/demo.sh gets a MariaDB and a slurmdbd while it runs; an account and a user; jobs, and their
# records, also of one that ran while slurmdbd was away. Usage: dev/demo-accounting.sh [SLURM RELEASE]
. "$(dirname "$0")/lib.sh"
. "$DEV/demo-lib.sh"

namespace=demo controller=demo
need_root "make demo-accounting"
"$DEV/demo.sh" "$@"
STEP=0 STARTED=${EPOCHREALTIME/./}
export KUBECONFIG=$LOCAL/kubeconfig

# ended JOB: in slurmctld.
ended() { [[ $(ctld scontrol show job "$1" --oneliner) == *" JobState=COMPLETED "* ]]; }

step "making an image of MariaDB and loading it into the nodes"
database_image

step "a job begins, before there is any accounting"
first=$(ctld sbatch --parsable -N1 --no-requeue --output=/dev/null --wrap "trap 'exit 0' URG; sleep 3600 & wait")
running() { [[ $(ctld squeue --noheader --states=R --format=%i) == *"$first"* ]]; }
wait_for 60 "" running || die "the job does not start"

step "applying a MariaDB and an Accounting, which the Controller names"
database_password
tag=$(k get controllers.slinky.slurm.net demo -o jsonpath='{.spec.slurmctld.image}')
tag=${tag##*:}
apply "$DEV/demo/mariadb.yaml"
apply "$DEV/demo/accounting.yaml"
k patch controllers.slinky.slurm.net demo --type=merge -p '{"spec":{"accountingRef":{"name":"demo"}}}' >/dev/null

step "waiting until slurmctld records its jobs there"
wait_ready controllers/demo AccountingJoined
wait_ready accountings/demo
wait_ready controllers/demo
running || die "the job did not survive that" "kubectl exec -n $namespace demo-controller-0 -c slurmctld -- scontrol show job $first"

step "sacctmgr: an account, and a user in it"
ctld sacctmgr --immediate add account physics >/dev/null
ctld sacctmgr --immediate add user slurm account=physics >/dev/null
ctld sacctmgr --noheader --parsable2 list association format=cluster,account,user | indented

step "srun -N2 hostname, for that account, beside the first job"
ctld srun -N2 --immediate=60 --account=physics hostname | sort | indented
second=$(ctld squeue --noheader --states=all --sort=-i --format=%i | head -n1)
wait_for 60 "" recorded "$second" 'COMPLETED|physics' || die "slurmdbd has no record of job $second"

step "a job, while slurmdbd and its database are away"
k scale deployment mariadb --replicas=0 >/dev/null
k wait --for=delete pod --selector=app=mariadb --timeout=60s >/dev/null
k delete pod demo-accounting-0 --wait=true >/dev/null
third=$(ctld sbatch --parsable -N1 --account=physics --output=/dev/null --wrap 'sleep 1')
wait_for 60 "" ended "$third" || die "job $third did not run"
wait_ready accountings/demo Degraded # slurmdbd has told that it cannot reach its database
k get accountings.slinky.slurm.net demo -o jsonpath='{.status.conditions[?(@.type=="Degraded")].message}{"\n"}' | indented

step "they come back, and the record arrives"
k scale deployment mariadb --replicas=1 >/dev/null
wait_ready accountings/demo
wait_for 120 "" recorded "$third" 'COMPLETED|physics' || die "slurmdbd has no record of job $third"
ctld scancel --batch --signal=URG "$first"
wait_for 60 "" recorded "$first" 'COMPLETED|' || wait_for 60 "" recorded "$first" 'COMPLETED|physics' ||
  die "slurmdbd has no record of job $first, which began before it was there"
ctld sacct --allusers --allocations --format=jobid,user,account,state,start,end | indented
echo
echo "The demo works: slurmdbd has the records of all three jobs."
printf '  %-70s %s\n' "kubectl -n $namespace exec demo-controller-0 -c slurmctld -- sacct -a" "the records" "make down" "leave nothing behind"

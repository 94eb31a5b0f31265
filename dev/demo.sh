#!/bin/bash
# The main job from nothing: a local Kubernetes, the operator from its charts, a Slurm cluster, and a job on its workers.
# Usage: dev/demo.sh [SLURM RELEASE]       default: 26.05 where there are images of it, else the newest
. "$(dirname "$0")/lib.sh"
. "$DEV/demo-lib.sh"

namespace=demo controller=demo
demo_begin demo "$@"

step "applying a Controller, a RestApi and a NodeSet of 3 workers (Slurm $tag)"
make_namespace
applied=${EPOCHREALTIME/./}
apply "$DEV/demo/cluster.yaml"

step "waiting until they are Ready"
for resource in controllers/demo restapis/demo nodesets/cpu; do WAIT=120s wait_ready $resource; done
ready=$(((${EPOCHREALTIME/./} - applied) / 100000))

step "srun -N3 hostname"
output=$(ctld srun -N3 --immediate=30 hostname | sort)
say "$output" | indented
[[ $output == $'cpu-0\ncpu-1\ncpu-2' ]] || die "srun did not run on the three workers" "kubectl exec -n $namespace demo-controller-0 -c slurmctld -- sinfo"

step "sinfo"
ctld sinfo | indented
k get nodesets,controllers,restapis | indented
echo
echo "The demo works: a job ran on 3 workers; the cluster was ready $((ready / 10)).$((ready % 10)) s after kubectl apply."
printf '  %-47s %s\n' ". \"$DEV/env.sh\"" "kubectl and helm use this cluster" \
  "kubectl -n $namespace get pods" "what was made" \
  "kubectl -n $namespace scale nodeset cpu --replicas=5" "more workers" \
  "make down" "leave nothing behind"

#!/bin/bash
# The main job from nothing: a local Kubernetes, the operator from its charts, a Slurm cluster, and a job on its workers.
# Usage: dev/demo.sh [SLURM RELEASE]       default: 26.05 where there are images of it, else the newest
. "$(dirname "$0")/lib.sh"
. "$DEV/cgroup.sh"

tag=${1:-${SLURM:-}}
namespace=demo
need_root "make demo"

GOAL=demo "$DEV/up.sh"
STEP=0 STARTED=${EPOCHREALTIME/./}
export KUBECONFIG=$LOCAL/kubeconfig
made=$(slurm_releases made)
slurm_releases skipped | while read -r line; do warn "there are no images of Slurm $line"; done
: "${tag:=${made%%$'\n'*}}"
grep -qxF "$tag" <<<"$made" || die "there are no images of Slurm $tag; there are of: ${made//$'\n'/ }" "SLURM=${made%%$'\n'*} make demo"
"$DEV/operator.sh" install

step "applying a Controller, a RestApi and a NodeSet of 3 workers (Slurm $tag)"
kubectl create namespace $namespace --dry-run=client -o yaml | kubectl apply -f - >/dev/null
applied=${EPOCHREALTIME/./}
plugin=$(slurm_cgroup_plugin "$(cgroup_version "$(cat /proc/mounts)")")
sed -e "s|\${TAG}|$tag|; s|\${CGROUP_PLUGIN}|$plugin|" "$DEV/demo/cluster.yaml" | kubectl apply -n $namespace -f - | sed 's/^/               /'

step "waiting until they are Ready"
for resource in controllers/demo restapis/demo nodesets/cpu; do
  kubectl wait -n $namespace --for=condition=Ready --timeout=120s "${resource%/*}.slinky.slurm.net/${resource#*/}" >/dev/null || {
    kubectl get -n $namespace controllers,restapis,nodesets,pods >&2
    die "$resource is not Ready" "kubectl describe -n $namespace $resource"
  }
done
ready=$(((${EPOCHREALTIME/./} - applied) / 100000))

step "srun -N3 hostname"
output=$(kubectl exec -n $namespace demo-controller-0 -c slurmctld -- srun -N3 --immediate=30 hostname | sort)
say "$output" | sed 's/^/               /'
[[ $output == $'cpu-0\ncpu-1\ncpu-2' ]] || die "srun did not run on the three workers" "kubectl exec -n $namespace demo-controller-0 -c slurmctld -- sinfo"

step "sinfo"
kubectl exec -n $namespace demo-controller-0 -c slurmctld -- sinfo | sed 's/^/               /'
kubectl get -n $namespace nodesets,controllers,restapis | sed 's/^/               /'
echo
echo "The demo works: a job ran on 3 workers; the cluster was ready $((ready / 10)).$((ready % 10)) s after kubectl apply."
printf '  %-47s %s\n' ". \"$DEV/env.sh\"" "kubectl and helm use this cluster" \
  "kubectl -n $namespace get pods" "what was made" \
  "kubectl -n $namespace scale nodeset cpu --replicas=5" "more workers" \
  "make down" "leave nothing behind"

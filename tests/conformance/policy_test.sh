#!/bin/bash
# Tests the admission policies against a real API server: who may delete workers and the objects that drains need. Uses the
# cluster of KUBECONFIG as an administrator who may impersonate, and a namespace of its own, which it removes. Installs the
# policies if they are missing.
# Usage: tests/conformance/policy_test.sh          Ends with "N passed, N failed"; exits 1 when something failed.
set -uo pipefail
top=$(cd "$(dirname "$0")/../.." && pwd -P)
export KUBECONFIG=${KUBECONFIG:-$top/.local/kubeconfig}
PATH=$top/.local/bin:$PATH
namespace=policy-test-$$
collector=generic-garbage-collector
cleaner=namespace-controller
evidence='nodeset.slinky.slurm.net/deletion-evidence'
passed=0 failed=0
installed=
said='may run jobs: slurm-operator has not released it'
groups=()

idle() { kubectl -n "$namespace" label pods --all nodeset.slinky.slurm.net/pod-busy- >/dev/null 2>&1; }
finish() {
  idle
  kubectl -n "$namespace" delete pods --all --force --grace-period=0 >/dev/null 2>&1
  kubectl delete namespace "$namespace" --wait=false >/dev/null 2>&1
  [[ -z $installed ]] || policy | kubectl delete -f - >/dev/null 2>&1
}
trap finish EXIT

policy() {
  helm template slurm-operator "$top/charts/slurm-operator" --kube-version 1.30 --show-only templates/worker-protection.yaml \
    --show-only templates/cluster-protection.yaml --show-only templates/busy-protection.yaml 2>/dev/null
}

status() { # phase, and the state of its container
  printf '{"status":{"phase":"%s","containerStatuses":[{"name":"slurmd","image":"i","imageID":"i","ready":false,%s}]}}' "$1" "$2"
}
running=$(status Running '"started":true,"restartCount":0,"state":{"running":{}}')
crashed=$(status Running '"started":false,"restartCount":1,"state":{"waiting":{}},"lastState":{"terminated":{"exitCode":1}}')
waiting=$(status Pending '"started":false,"restartCount":0,"state":{"waiting":{"reason":"PodInitializing"}}')
# A pod that ran is Pending again after a reboot of its Kubernetes node.
again=$(status Pending '"started":false,"restartCount":1,"state":{"waiting":{}},"lastState":{"terminated":{"exitCode":255}}')
failed_pod='{"status":{"phase":"Failed"}}'
succeeded_pod='{"status":{"phase":"Succeeded"}}'

# in_force WORD USER KIND NAME: waits until the user's deletion of the object is "allowed" or "refused". The API server sees
# changes of policies and objects only after a while.
in_force() {
  local word=$1 user=$2 deadline=$((SECONDS + 120)) out answer
  while ((SECONDS < deadline)); do
    answer=
    if out=$(kubectl -n "$namespace" delete "$3" "$4" --dry-run=server --wait=false ${user:+--as "$user"} 2>&1); then
      answer=allowed
    elif [[ $out == *"denied request"* ]]; then
      answer=refused
    fi
    [[ $answer != "$word" ]] || return 0
    sleep 0.5
  done
  echo "     not $word to $user: $out"
}

# worker STATUS ANNOTATIONS LABELS NODE: creates a worker in that state.
worker() {
  local state=$1 annotations=$2 labels=$3 node=$4
  idle
  kubectl -n "$namespace" delete pod worker --force --grace-period=0 >/dev/null 2>&1
  printf 'apiVersion: v1\nkind: Pod\nmetadata: {name: worker, labels: {%s}, annotations: {%s}}\nspec: {%s schedulingGates: %s, containers: [{name: slurmd, image: i}]}\n' \
    "$labels" "$annotations" "$node" "$([[ $node ]] && echo '[]' || echo '[{name: test/hold}]')" | kubectl -n "$namespace" create -f - >/dev/null
  [[ -z $state ]] || kubectl -n "$namespace" patch pod worker --subresource=status -p "$state" >/dev/null
}

# expect WORD USER STATUS [ANNOTATIONS [LABELS [NODE]]]: expects that the user's deletion of a worker in that state is "allowed"
# or "refused". USER "": the administrator.
expect() {
  local word=$1 user=$2 state=$3 annotations=${4:-} out
  worker "$state" "$annotations" "${5-app.kubernetes.io/name: slurmd, slinky.slurm.net/cluster: c}" "${6-nodeName: none,}"
  if out=$(kubectl -n "$namespace" delete pod worker --wait=false --force --grace-period=0 ${user:+--as "$user"} "${groups[@]}" 2>&1); then
    [[ $word == allowed ]]
  else
    [[ $word == refused && $out == *"worker $namespace/worker $said"* ]]
  fi && passed=$((passed + 1)) && return
  failed=$((failed + 1))
  printf 'FAIL %s to %s: %s %s\n     %s\n' "$word" "$user" "$state" "$annotations" "$out"
}

kubectl create namespace "$namespace" >/dev/null || exit 1
kubectl -n "$namespace" create serviceaccount default >/dev/null 2>&1
if ! kubectl get validatingadmissionpolicy slurm-operator-slurmrestd >/dev/null 2>&1; then
  installed=yes
  policy | kubectl apply -f - >/dev/null || exit 1
fi

prefix=system:serviceaccount:kube-system:
worker "$running" '' 'app.kubernetes.io/name: slurmd, slinky.slurm.net/cluster: c' 'nodeName: none,'
in_force refused $prefix$collector pod worker
worker "$running" '' 'app.kubernetes.io/name: slurmd, nodeset.slinky.slurm.net/pod-busy: "true"' 'nodeName: none,'
for user in '' system:kube-scheduler; do in_force refused "$user" pod worker; done
for user in $prefix$collector $prefix$cleaner; do
  expect refused "$user" "$running"
  expect refused "$user" "$crashed"
  expect refused "$user" "$again"
  expect refused "$user" "$running" 'nodeset.slinky.slurm.net/registered: "true"'
  expect allowed "$user" "$running" "$evidence: drained"
  # The kubelet may have started slurmd without having reported it yet.
  expect refused "$user" "$waiting"
  expect refused "$user" ''
  expect allowed "$user" '' '' 'app.kubernetes.io/name: slurmd, slinky.slurm.net/cluster: c' ''
  expect allowed "$user" "$failed_pod"
  expect allowed "$user" "$succeeded_pod"
  expect allowed "$user" "$running" '' 'app.kubernetes.io/name: slurmd'
  expect allowed "$user" "$running" '' 'app.kubernetes.io/name: slurmctld, slinky.slurm.net/cluster: c'
  expect allowed "$user" "$running" '' ''
done
# The policy does not apply to other users.
expect allowed "${prefix}pod-garbage-collector" "$running"
expect allowed "" "$running"

# Only components of Kubernetes may delete a worker that runs jobs, and users who have allowed it by an annotation.
said='runs jobs. Drain it first'
busy='app.kubernetes.io/name: slurmd, nodeset.slinky.slurm.net/pod-busy: "true"'
for user in "" system:kube-scheduler; do
  expect refused "$user" "$running" '' "$busy"
  expect refused "$user" "$running" 'nodeset.slinky.slurm.net/pod-release: "false"' "$busy"
  expect allowed "$user" "$running" 'nodeset.slinky.slurm.net/pod-release: "true"' "$busy"
  expect allowed "$user" "$running" "$evidence: drained" "$busy"
  expect allowed "$user" "$failed_pod" '' "$busy"
  expect allowed "$user" "$running" '' 'app.kubernetes.io/name: slurmd'
done
for user in pod-garbage-collector node-controller; do expect allowed "$prefix$user" "$running" '' "$busy"; done
groups=(--as-group system:nodes --as-group system:masters)
expect allowed system:node:none "$running" '' "$busy"
groups=(--as-group system:masters)
expect refused jane "$running" '' "$busy"
groups=()

# Objects that drains need are kept while a Controller has deletionPolicy Drain.
controller() { # deletionPolicy
  printf 'apiVersion: slinky.slurm.net/v1beta1\nkind: Controller\nmetadata: {name: c}\nspec: {deletionPolicy: %s}\n' "$1" |
    kubectl -n "$namespace" apply -f - >/dev/null
}
declare -A manifests=(
  [pod]='{apiVersion: v1, kind: Pod, spec: {schedulingGates: [{name: test/hold}], containers: [{name: c, image: i}]}'
  [service]='{apiVersion: v1, kind: Service, spec: {clusterIP: None}'
  [endpointslice]='{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, addressType: IPv4, endpoints: []'
  [configmap]='{apiVersion: v1, kind: ConfigMap'
  [secret]='{apiVersion: v1, kind: Secret'
  [restapis.slinky.slurm.net]='{apiVersion: slinky.slurm.net/v1beta1, kind: RestApi, spec: {controllerRef: {name: c}}'
)
thing() { # APP KIND [OWNERS]
  kubectl -n "$namespace" delete "$2" thing --ignore-not-found --force --grace-period=0 >/dev/null 2>&1
  echo "${manifests[$2]}, metadata: {name: thing, labels: {app.kubernetes.io/name: $1}${3:+, ownerReferences: $3}}}" |
    kubectl -n "$namespace" create -f - >/dev/null
}
# settles WORD USER [APP]: waits until the user's deletion of a Service of that app (default: slurmctld) is "allowed" or
# "refused".
settles() {
  thing "${3:-slurmctld}" service
  in_force "$1" "$2" service thing
}
# keeps WORD USER APP KIND: expects that the user's deletion of an object with that app's label is "allowed" or "refused".
keeps() {
  local word=$1 user=$2 app=$3 kind=$4 out
  thing "$app" "$kind"
  if out=$(kubectl -n "$namespace" delete "$kind" thing --wait=false ${user:+--as "$user"} 2>&1); then
    [[ $word == allowed ]]
  else
    [[ $word == refused && $out == *"Controller $namespace/c has deletionPolicy: Drain, and its workers still exist"* ]]
  fi && passed=$((passed + 1)) && return
  failed=$((failed + 1))
  printf 'FAIL %s to %s: delete %s of %s\n     %s\n' "$word" "$user" "$kind" "$app" "$out"
}
restapi=restapis.slinky.slurm.net
controller Immediate
settles allowed $prefix$cleaner
for kind in "${!manifests[@]}"; do keeps allowed $prefix$cleaner slurmctld "$kind"; done
controller Drain
# Each of these has a policy of its own.
for app in slurmctld slurmrestd; do settles refused $prefix$cleaner $app; done
thing others $restapi
in_force refused $prefix$cleaner $restapi thing
for kind in pod service endpointslice configmap secret; do
  keeps refused $prefix$cleaner slurmctld $kind
  keeps refused $prefix$cleaner slurmrestd $kind
  keeps allowed $prefix$cleaner others $kind
done
keeps refused $prefix$cleaner slurmd service
keeps refused $prefix$cleaner others $restapi
# The namespace is not being deleted: the garbage collector only deletes objects whose owners are gone.
keeps allowed $prefix$collector slurmrestd pod
keeps allowed '' slurmctld service
# In a foreground deletion, the garbage collector deletes children first. A running operator would remove its finalizer before
# the test could see the refusal, so this runs only without an operator.
if [[ $installed ]]; then
  kubectl -n "$namespace" patch controllers.slinky.slurm.net c --type=merge -p '{"metadata":{"finalizers":["controller.slinky.slurm.net/teardown"]}}' >/dev/null
  kubectl -n "$namespace" delete controllers.slinky.slurm.net c --wait=false >/dev/null
  settles refused $prefix$collector
  keeps refused $prefix$collector slurmctld service
  kubectl -n "$namespace" patch controllers.slinky.slurm.net c --type=merge -p '{"metadata":{"finalizers":[]}}' >/dev/null
fi
kubectl -n "$namespace" delete controllers.slinky.slurm.net c --ignore-not-found --timeout=120s >/dev/null
settles allowed $prefix$cleaner
keeps allowed $prefix$cleaner slurmctld service
if [[ $installed ]]; then
  echo '{apiVersion: slinky.slurm.net/v1beta1, kind: RestApi, metadata: {name: r, finalizers: [restapi.slinky.slurm.net/serve]}, spec: {controllerRef: {name: c}}}' |
    kubectl -n "$namespace" create -f - >/dev/null
  uid=$(kubectl -n "$namespace" get $restapi r -o 'jsonpath={.metadata.uid}')
  kubectl -n "$namespace" delete $restapi r --wait=false >/dev/null
  thing slurmrestd service "[{apiVersion: slinky.slurm.net/v1beta1, kind: RestApi, name: r, uid: $uid}]"
  in_force refused $prefix$collector service thing
  out=$(kubectl -n "$namespace" delete service thing --wait=false --as $prefix$collector 2>&1)
  if [[ $out == *"RestApi $namespace/r serves NodeSets that are being drained"* ]]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    printf 'FAIL refused to the collector: a Service of a RestApi that ends\n     %s\n' "$out"
  fi
  keeps allowed $prefix$collector slurmrestd service
  kubectl -n "$namespace" patch $restapi r --type=merge -p '{"metadata":{"finalizers":[]}}' >/dev/null
fi

echo "$passed passed, $failed failed"
[[ $failed -eq 0 ]]

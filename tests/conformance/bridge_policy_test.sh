#!/bin/bash
# The policy of slurm-bridge against a real API server: who may let a pod of Slurm go, and write what the bridge notes on it. Uses the
# cluster of KUBECONFIG, as an administrator who may impersonate; works in namespaces of its own, which it removes.
# Usage: tests/conformance/bridge_policy_test.sh   Ends with "N passed, N failed"; exits 1 when something failed.
set -uo pipefail
top=$(cd "$(dirname "$0")/../.." && pwd -P)
export KUBECONFIG=${KUBECONFIG:-$top/.local/kubeconfig}
PATH=$top/.local/bin:$PATH
namespace=bridge-policy-$$
managed=$namespace-pods
bridge=system:serviceaccount:$namespace:$namespace
# A user of both namespaces, and the bridge of another Slurm cluster.
user=$namespace-user other=$namespace-other
passed=0 failed=0

# admission [FILE...]: the objects of admission in the chart, or those of these templates.
admission() {
  local each files=("${@:-policy webhook}")
  # shellcheck disable=SC2086  # a list
  for each in ${files[*]}; do
    helm template "$namespace" "$top/charts/slurm-bridge" --kube-version 1.30 --namespace "$namespace" --set "fullnameOverride=$namespace,sharedConfig.cluster=none/none" \
      --set "schedulerConfig.schedulerName=$namespace,admission.managedNamespaces={$managed}" --show-only "templates/$each.yaml" 2>/dev/null
    echo ---
  done
}
finish() {
  admission policy | kubectl delete --ignore-not-found -f - >/dev/null 2>&1
  for each in "$namespace" "$managed"; do
    kubectl -n "$each" delete pods --all --force --grace-period=0 >/dev/null 2>&1
    kubectl delete namespace "$each" --wait=false >/dev/null 2>&1
  done
}
trap finish EXIT

verdict() { # WHAT OUTPUT: counts the last status
  if (($? == 0)); then passed=$((passed + 1)); else
    failed=$((failed + 1))
    printf 'FAIL %s\n     %s\n' "$1" "$2"
  fi
}
# expect allowed|WORDS WHAT COMMAND...: whether it is allowed, or refused with these words.
expect() {
  local want=$1 what=$2 out
  if out=$("${@:3}" 2>&1); then [[ $want == allowed ]]; else [[ $want != allowed && $out == *"$want"* ]]; fi
  verdict "$what: not $want" "$out"
}

# In the namespace of `where`. pods VERB...: kubectl of the user.
where=$managed
pods() { kubectl -n "$where" ${user:+--as "$user"} "$@"; }
# pod SPEC [METADATA]: the user creates a pod "p" with this, and nothing else.
manifest() {
  printf '{apiVersion: v1, kind: Pod, metadata: {name: p, %s}, spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 1}}}], %s}}\n' "${2:-}" "$1"
}
pod() {
  kubectl -n "$where" delete pod p --ignore-not-found --force --grace-period=0 >/dev/null 2>&1
  manifest "$1" "${2:-}" | pods create -f - >/dev/null
}
# The last --as counts.
as() { "${@:2}" --as "$1"; }
as_bridge() { as "$bridge" "$@"; }
as_admin() { user='' "$@"; }
patch() { pods patch pod p --type=json -p "$1" "${@:2}"; }
add() { patch "[{\"op\": \"add\", \"path\": \"$1\", \"value\": $2}]" "${@:3}"; }

gate='scheduler.slinky.slurm.net/slurm-bridge'
waiting="schedulingGates: [{name: $gate}]"
job='"scheduler.slinky.slurm.net/slurm-jobid"' node='"slinky.slurm.net/slurm-node"' replaced='"slinky.slurm.net/slurm-replaced-job"'
pin='{"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["none"]}]}]}}}'
place="[{\"op\": \"remove\", \"path\": \"/spec/schedulingGates/0\"}, {\"op\": \"add\", \"path\": \"/spec/affinity\", \"value\": $pin},
  {\"op\": \"add\", \"path\": \"/spec/tolerations/-\", \"value\": {\"key\": \"slinky.slurm.net/managed-node\", \"operator\": \"Exists\"}},
  {\"op\": \"add\", \"path\": \"/metadata/labels\", \"value\": {$job: \"7\"}}, {\"op\": \"add\", \"path\": \"/metadata/annotations\", \"value\": {$node: \"none\"}}]"
let_go='[{"op": "remove", "path": "/spec/schedulingGates/0"}]'
record='{"key": "scheduler.slinky.slurm.net/placed-for", "operator": "Equal", "value": "7.1"}'
note="[{\"op\": \"add\", \"path\": \"/spec/tolerations/-\", \"value\": $record}]"
gate_stays='only slurm-bridge removes its scheduling gate'
label_stays='only slurm-bridge writes the label'
toleration_stays='only slurm-bridge adds the toleration slinky.slurm.net/managed-node'
record_stays='only slurm-bridge adds the toleration scheduler.slinky.slurm.net/placed-for'

for each in "$namespace" "$managed"; do
  kubectl create namespace "$each" >/dev/null || exit 1
  kubectl -n "$each" create serviceaccount default >/dev/null 2>&1
  kubectl -n "$each" create role pods --verb='*' --resource=pods,pods/status,pods/resize >/dev/null
  kubectl -n "$each" create rolebinding pods --role=pods "--user=$user" "--user=$other" >/dev/null
  for verb in place ungate; do
    kubectl -n "$each" create -f - >/dev/null <<<"{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: $verb},
      rules: [{apiGroups: [scheduler.slinky.slurm.net], resources: [pods], verbs: [$verb]}]}"
  done
  kubectl -n "$each" create rolebinding place --role=place "--user=$other" >/dev/null
  kubectl -n "$each" create rolebinding bridge --clusterrole=cluster-admin "--serviceaccount=$namespace:$namespace" >/dev/null
done
out=$(admission | kubectl apply --dry-run=server -f - 2>&1)
verdict "the API server accepts the policies and the webhook" "$out"
admission policy | kubectl apply -f - >/dev/null || exit 1
# The API server learns of a policy a while later, and Kubernetes checks its types.
pod "$waiting"
deadline=$((SECONDS + 120))
until ((SECONDS > deadline)) || [[ $(patch "$let_go" --dry-run=server 2>&1) == *"$gate_stays"* ]]; do sleep 0.5; done
until ((SECONDS > deadline)) || [[ $(patch "$note" --dry-run=server 2>&1) == *"$record_stays"* ]]; do sleep 0.5; done
for each in "$namespace" "$namespace-record"; do
  checked() { [[ $(kubectl get validatingadmissionpolicy "$each" -o 'jsonpath={.status.observedGeneration}') ]]; }
  until ((SECONDS > deadline)) || checked; do sleep 0.5; done
  out=$(kubectl get validatingadmissionpolicy "$each" -o 'jsonpath={.status.typeChecking.expressionWarnings}')
  checked && [[ ! $out ]]
  verdict "the policy $each has no warnings" "$out"
done

expect "$gate_stays" "a user removes the gate" patch "$let_go"
expect "$gate_stays" "a user places the pod" patch "$place"
expect 'only slurm-bridge says to which node' "a user pins the pod" add /spec/affinity "$pin"
expect allowed "a user selects nodes" add /spec/nodeSelector '{"zone": "a"}'
expect "$label_stays" "a user writes the job" add /metadata/labels "{$job: \"7\"}"
expect "$label_stays" "a user writes the node" add /metadata/annotations "{$node: \"none\"}"
expect "$label_stays" "a user writes the replaced job" add /metadata/annotations "{$replaced: \"6\"}"
expect "$label_stays" "a user writes the job through the status" add /metadata/labels "{$job: \"7\"}" --subresource=status
expect "$toleration_stays" "a user tolerates managed nodes" add /spec/tolerations/- '{"key": "slinky.slurm.net/managed-node", "operator": "Exists"}'
expect "$record_stays" "a user writes the record" patch "$note"
expect "$record_stays" "an administrator writes the record" as_admin patch "$note"
expect allowed "a user tolerates others" add /spec/tolerations/- '{"key": "gpu", "operator": "Exists"}'
expect allowed "a user annotates" pods annotate pod p a=b
expect allowed "a user writes the status" add /status/conditions/- '{"type": "Mine", "status": "True"}' --subresource=status
expect allowed "the bridge notes a replaced job" as_bridge pods annotate pod p slinky.slurm.net/slurm-replaced-job=6
expect allowed "the bridge writes the record" as_bridge patch "$note"
expect allowed "the bridge places the pod" as_bridge patch "$place"
expect "$label_stays" "a user removes the job" pods label pod p scheduler.slinky.slurm.net/slurm-jobid-
expect "$label_stays" "a user changes the job" pods label pod p scheduler.slinky.slurm.net/slurm-jobid=8 --overwrite
expect "$toleration_stays" "a user tolerates managed nodes later" add /spec/tolerations/- '{"key": "slinky.slurm.net/managed-node", "operator": "Exists", "effect": "NoSchedule"}'
expect allowed "a user labels a placed pod" pods label pod p a=b
expect 'Slurm does not change the resources' "a user resizes a placed pod" add /spec/containers/0/resources '{"requests": {"cpu": "2"}}' --subresource=resize
expect allowed "a user deletes a placed pod" pods delete pod p --force --grace-period=0

# Whoever may free pods removes the gate, and does nothing else.
# shellcheck disable=SC2016  # a word of Kubernetes
free='{"spec": {"schedulingGates": [{"name": "scheduler.slinky.slurm.net/slurm-bridge", "$patch": "delete"}]}}'
pod "$waiting"
expect 'only slurm-bridge says to which node' "an administrator places the pod" as_admin patch "$place"
expect allowed "an administrator removes the gate" as_admin pods patch pod p -p "$free"
pod "$waiting"
kubectl -n "$managed" create rolebinding ungate --role=ungate "--user=$user" >/dev/null
until ((SECONDS > deadline)) || patch "$let_go" --dry-run=server >/dev/null 2>&1; do sleep 0.5; done
expect allowed "a user with the right removes the gate" pods patch pod p -p "$free"

expect "$label_stays" "a user creates a pod with a job" pod "$waiting" "labels: {$job: \"7\"}"
expect "$label_stays" "a user creates a pod with a node" pod "$waiting" "annotations: {$node: none}"
expect allowed "a user creates a pod that tolerates managed nodes" pod "$waiting, tolerations: [{key: slinky.slurm.net/managed-node, operator: Exists}]"
pod 'schedulingGates: [{name: example.com/other}]'
expect allowed "a user removes another gate" patch "$let_go"
expect allowed "a user tolerates managed nodes with a pod of their own" add /spec/tolerations/- '{"key": "slinky.slurm.net/managed-node", "operator": "Exists"}'
expect "$label_stays" "a user takes a pod of their own for one of Slurm" add /metadata/labels "{$job: \"7\"}"

# In other namespaces only the record is protected, and pods that the webhook took in.
where=$namespace
pod "$waiting"
expect "$record_stays" "a user writes the record elsewhere" patch "$note"
expect allowed "the bridge writes the record elsewhere" as_bridge patch "$note" --dry-run=server
expect allowed "a bridge of another cluster writes the record" as "$other" patch "$note"
expect allowed "a user labels a pod with a record" pods label pod p a=b
expect allowed "a user writes the job elsewhere" pods label pod p scheduler.slinky.slurm.net/slurm-jobid=7
expect allowed "a user removes the gate elsewhere" patch "$let_go"
for each in "$user" "$bridge" "$other"; do
  user=$each expect "$record_stays" "$each creates a pod with a record" pod "$waiting, tolerations: [$record]"
done
pod "$waiting" 'annotations: {slinky.slurm.net/slurm-managed-by: none/other}'
expect allowed "a user removes the gate of another bridge" patch "$let_go"
pod "$waiting" 'annotations: {slinky.slurm.net/slurm-managed-by: none/none}'
expect "$gate_stays" "a user removes the gate of a pod that the webhook took in" patch "$let_go"
expect 'the annotation slinky.slurm.net/slurm-managed-by cannot be changed' "a user removes its mark" pods annotate pod p slinky.slurm.net/slurm-managed-by-
pod "$waiting"
expect 'the annotation slinky.slurm.net/slurm-managed-by cannot be changed' "a user adds the mark" pods annotate pod p slinky.slurm.net/slurm-managed-by=none/none

echo "$passed passed, $failed failed"
[[ $failed -eq 0 ]]

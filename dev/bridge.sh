#!/bin/bash
# Installs slurm-bridge of this tree into the local cluster: builds the binary, makes its image, loads it into the nodes, and waits until
# it leads. Usage: dev/bridge.sh install NAMESPACE/CONTROLLER MANAGED... | uninstall | image
# NAMESPACE/CONTROLLER is the Controller of the Slurm cluster. The MANAGED namespaces are those whose gated pods become jobs.
. "$(dirname "$0")/lib.sh"

export KUBECONFIG=$LOCAL/kubeconfig
manifests=$DEV/manifests/slurm-bridge
namespace=slurm-bridge
scheduler=slurm-bridge-scheduler # of the Go bridge
image=local/slurm-bridge:dev
binary=$TOP/build/release/slurm-bridge

load_image() {
  step "building slurm-bridge"
  "$DEV/cpp.sh" release slurm-bridge
  step "making its image and loading it into the nodes"
  local tar
  tar=$("$DEV/images/build.sh" --image $image --binary "$binary" 2>"$LOCAL/bridge-image.log" | sed -n 's/^image-tar: //p') ||
    die "the image could not be made" "see $LOCAL/bridge-image.log"
  "$DEV/load-image.sh" "$tar" >"$LOCAL/bridge-image.log" 2>&1 || die "the image could not be loaded" "see $LOCAL/bridge-image.log"
}

install_bridge() {
  local cluster=$1 managed
  shift
  managed=$(IFS=, && echo "$*")
  load_image
  step "installing it for $cluster, with the pods of $managed"
  sed -e "s|\${NAMESPACE}|$namespace|g; s|\${IMAGE}|$image|g; s|\${CLUSTER}|$cluster|g; s|\${SLURM_NAMESPACE}|${cluster%/*}|g" \
    -e "s|\${MANAGED}|$managed|g; s|\${BINARY}|$(sha256sum <"$binary" | cut -c1-16)|g; s|\${SCHEDULER}|$scheduler|g" \
    -e "s|\${ADMISSION}|:9443|g" "$manifests"/{bridge,admission}.yaml | kubectl apply -f - >/dev/null
  step "waiting for slurm-bridge"
  kubectl -n $namespace rollout status deployment/slurm-bridge --timeout=180s >/dev/null ||
    die "slurm-bridge did not become ready" "kubectl -n $namespace describe pods; kubectl -n $namespace logs deployment/slurm-bridge"
  wait_for 120 "" leads || die "slurm-bridge does not lead" "kubectl -n $namespace describe lease slurm-bridge"
}

# The newest pod holds the Lease: the one before it lets go when it ends.
leads() {
  local newest
  newest=$(kubectl -n $namespace get pods -l app.kubernetes.io/name=slurm-bridge --sort-by=.metadata.creationTimestamp -o name | tail -n1)
  [[ -n $newest && $(kubectl -n $namespace get lease slurm-bridge -o jsonpath='{.spec.holderIdentity}') == "${newest#pod/}"_* ]]
}

uninstall_bridge() {
  # Without the webhook, nobody could create pods in the managed namespaces.
  kubectl delete mutatingwebhookconfiguration/$namespace validatingadmissionpolicy{binding,}/$namespace --ignore-not-found --wait >/dev/null
  kubectl delete namespace/$namespace clusterrole{,binding}/$namespace{,-admission} priorityclass/slurm-bridge --ignore-not-found --wait >/dev/null
  # The right to read the key is in the namespace of the Slurm cluster.
  kubectl get rolebindings,roles --all-namespaces --field-selector=metadata.name=slurm-bridge-key \
    -o jsonpath='{range .items[*]}{.metadata.namespace}{" "}{.kind}{"\n"}{end}' | while read -r of kind; do
    kubectl -n "$of" delete "$kind" slurm-bridge-key --ignore-not-found >/dev/null
  done
}

usage="dev/bridge.sh install NAMESPACE/CONTROLLER MANAGED... | uninstall | image"
case ${1:-} in
  install)
    [[ $# -ge 3 && $2 == ?*/?* ]] || die "a Controller and at least one managed namespace are needed" "$usage"
    install_bridge "${@:2}"
    ;;
  uninstall) uninstall_bridge ;;
  image) load_image ;;
  *) die "unknown word: ${1:-none}" "$usage" ;;
esac

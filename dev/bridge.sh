#!/bin/bash
# Installs slurm-bridge of this tree into the local cluster, from the project's own chart: builds the binary, makes its image, loads it into
# the nodes, and waits until it leads. Usage: dev/bridge.sh install NAMESPACE/CONTROLLER MANAGED... | uninstall | image
# NAMESPACE/CONTROLLER is the Controller of the Slurm cluster. The MANAGED namespaces are those whose pods become jobs.
. "$(dirname "$0")/lib.sh"

export KUBECONFIG=$LOCAL/kubeconfig
namespace=slurm-bridge
binary=$TOP/build/release/slurm-bridge

load_image() {
  step "building slurm-bridge"
  "$DEV/cpp.sh" release slurm-bridge
  load_program slurm-bridge "$binary"
}

install_bridge() {
  local cluster=$1 managed
  shift
  managed=$(IFS=, && echo "$*")
  load_image
  step "installing the chart for $cluster, with the pods of $managed"
  # The digest of the binary stands in the pod template, so that a new build under the same tag replaces the old one.
  helm upgrade --install slurm-bridge "$TOP/charts/slurm-bridge" --namespace $namespace --create-namespace \
    --set "sharedConfig.cluster=$cluster,admission.managedNamespaces={$managed},schedulerConfig.partition=" \
    --set-string "controllers.podAnnotations.binary=$(sha256sum <"$binary" | cut -c1-16)" >/dev/null
  wait_for_program slurm-bridge
}

uninstall_bridge() { helm uninstall slurm-bridge --namespace $namespace --ignore-not-found --wait >/dev/null; }

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

#!/bin/bash
# Installs the operator of this tree into the local cluster, from the project's own charts: builds the binary, makes its image,
# loads it into the nodes, and waits until it leads. Usage: dev/operator.sh install [TREE] | uninstall
# With TREE, a checkout of another commit: the operator and the charts of that one.
. "$(dirname "$0")/lib.sh"

export KUBECONFIG=$LOCAL/kubeconfig
tree=${2:-$TOP}
# Another commit's is built in the variant that takes the least time.
variant=$([[ $tree == "$TOP" ]] && echo release || echo debug)
build=$tree/build/$variant
namespace=slurm-operator

install_operator() {
  step "building the operator"
  "$tree/dev/cpp.sh" "$variant" slurm-operator
  step "making its image and loading it into the nodes"
  local tar
  tar=$("$DEV/images/build.sh" --operator "$build/slurm-operator" 2>"$LOCAL/operator-image.log" | sed -n 's/^image-tar: //p') ||
    die "the image could not be made" "see $LOCAL/operator-image.log"
  "$DEV/load-image.sh" "$tar" >"$LOCAL/operator-image.log" 2>&1 || die "the image could not be loaded" "see $LOCAL/operator-image.log"
  step "installing the charts"
  helm upgrade --install slurm-operator-crds "$tree/charts/slurm-operator-crds" --wait >/dev/null
  # The digest of the binary stands in the pod template, so that a new build under the same tag replaces the old one.
  helm upgrade --install slurm-operator "$tree/charts/slurm-operator" --namespace $namespace --create-namespace \
    --set operator.image.repository=local/slurm-operator --set operator.image.tag=dev --set operator.imagePullPolicy=IfNotPresent \
    --set-string "operator.podAnnotations.binary=$(sha256sum <"$build/slurm-operator" | cut -c1-16)" >/dev/null
  step "waiting for the operator"
  kubectl -n $namespace rollout status deployment/slurm-operator --timeout=180s >/dev/null ||
    die "the operator did not become ready" "kubectl -n $namespace describe pods; kubectl -n $namespace logs deployment/slurm-operator"
  wait_for 120 "" leads || die "the operator does not lead" "kubectl -n $namespace describe lease slurm-operator"
}

# The newest pod holds the Lease: the one before it lets go when it ends.
leads() {
  local newest
  newest=$(kubectl -n $namespace get pods -l app.kubernetes.io/name=slurm-operator --sort-by=.metadata.creationTimestamp -o name | tail -n1)
  [[ $(kubectl -n $namespace get lease slurm-operator -o jsonpath='{.spec.holderIdentity}') == "${newest#pod/}"_* ]]
}

uninstall_operator() {
  helm uninstall slurm-operator --namespace $namespace --ignore-not-found --wait >/dev/null
  helm uninstall slurm-operator-crds --ignore-not-found --wait >/dev/null
}

case ${1:-install} in
  install) install_operator ;;
  uninstall) uninstall_operator ;;
  *) die "unknown word: $1" "dev/operator.sh install [TREE] | uninstall" ;;
esac

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
  load_program slurm-operator "$build/slurm-operator"
  step "installing the charts"
  helm upgrade --install slurm-operator-crds "$tree/charts/slurm-operator-crds" --wait >/dev/null
  # The digest of the binary stands in the pod template, so that a new build under the same tag replaces the old one.
  helm upgrade --install slurm-operator "$tree/charts/slurm-operator" --namespace $namespace --create-namespace \
    --set operator.image.repository=local/slurm-operator --set operator.image.tag=dev --set operator.imagePullPolicy=IfNotPresent \
    --set-string "operator.podAnnotations.binary=$(sha256sum <"$build/slurm-operator" | cut -c1-16)" >/dev/null
  wait_for_program slurm-operator
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

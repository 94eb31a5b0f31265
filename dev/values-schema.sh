#!/bin/bash
# Writes Kubernetes' types into the values.schema.json of the charts, from the source of the release that dev/kube names.
# Usage: dev/values-schema.sh             Write them. Run it after a change of that release, or when a schema uses another type.
#        dev/values-schema.sh check       Exits 1 if they are not up to date. Downloads nothing: without the source, it compares the release only.
. "$(dirname "$0")/lib.sh"

charts=("$TOP/charts/slurm" "$TOP/charts/slurm-operator")
version=$(awk '$1 == "k8s.io/kubernetes" { print $2 }' "$DEV/kube/go.mod")

if [[ ${1:-} == check ]]; then
  for chart in "${charts[@]}"; do
    grep -qF "of Kubernetes $version. " "$chart/values.schema.json" ||
      die "$chart/values.schema.json has the types of another release than Kubernetes $version." "dev/values-schema.sh"
  done
  find_go || exit 0
  source=$(GOFLAGS=-mod=mod GOPROXY=off go mod download -json "k8s.io/kubernetes@$version" 2>/dev/null | jq -r '.Dir // empty') || true
  [[ $source ]] || exit 0
  exec python3 "$DEV/values_schema.py" check "$source" "$version" "${charts[@]}"
fi

use_go
source=$(go mod download -json "k8s.io/kubernetes@$version" | jq -r .Dir)
python3 "$DEV/values_schema.py" write "$source" "$version" "${charts[@]}"

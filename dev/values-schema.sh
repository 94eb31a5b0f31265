#!/bin/bash
# Writes the generated part of the values.schema.json of the charts: Kubernetes' types, from the source of the release that dev/kube names, and
# fields of the custom resources, from their definitions.
# Usage: dev/values-schema.sh             Write it. Run it after a change of that release or of the definitions, or when a schema uses another type.
#        dev/values-schema.sh check       Exits 1 if it is not up to date. Downloads nothing: without Kubernetes' source, it compares the release only.
. "$(dirname "$0")/lib.sh"

charts=("$TOP/charts/slurm" "$TOP/charts/slurm-operator" "$TOP/charts/slurm-bridge")
definitions=$TOP/charts/slurm-operator-crds/templates
version=$(awk '$1 == "k8s.io/kubernetes" { print $2 }' "$DEV/kube/go.mod")

if [[ ${1:-} == check ]]; then
  for chart in "${charts[@]}"; do
    grep -qF "of Kubernetes $version. " "$chart/values.schema.json" ||
      die "$chart/values.schema.json has the types of another release than Kubernetes $version." "dev/values-schema.sh"
  done
  source=
  ! find_go || source=$(GOFLAGS=-mod=mod GOPROXY=off go mod download -json "k8s.io/kubernetes@$version" 2>/dev/null | jq -r '.Dir // empty') || true
  exec python3 "$DEV/values_schema.py" check "$source" "$version" "$definitions" "${charts[@]}"
fi

"$DEV/deps.sh" test
use_go
source=$(go mod download -json "k8s.io/kubernetes@$version" | jq -r .Dir)
python3 "$DEV/values_schema.py" write "$source" "$version" "$definitions" "${charts[@]}"

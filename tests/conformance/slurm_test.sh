#!/bin/bash
# The Slurm client, its acts and the model of Slurm against real Slurm, without Kubernetes: by default of all releases that
# dev/images/build.sh made images of. Needs root.
# Usage: tests/conformance/slurm_test.sh PROGRAM [RELEASE...]          PROGRAM: the built slurm_conformance
#
# Ends with "N passed, N failed"; exits 1 when something failed.
set -uo pipefail
top=$(cd "$(dirname "$0")/../.." && pwd -P)
. "$top/dev/verdict.sh"
program=$(readlink -f "${1:?PROGRAM}")
shift
cd "$top" || exit 1
# shellcheck disable=SC2046  # a release a line
(($# > 0)) || set -- $(. dev/lib.sh; slurm_releases made)
(($# > 0)) || exit 1
passed=0 failed=0 dir=

finish() {
  [[ -z $dir ]] || { dev/slurm-local.sh "$release" stop "$dir"; rm -rf "$dir"; }
  dir=
}
trap finish EXIT

# tests RELEASE FILTER: counts what GoogleTest says.
tests() {
  local log status good bad
  log=$(mktemp)
  SLURM_LOCAL_RELEASE=$1 SLURM_LOCAL_DIR=$dir timeout 1200 "$program" --gtest_filter="$2" 2>&1 | tee "$log"
  status=${PIPESTATUS[0]}
  read -r good bad < <(verdict "$status" "$log")
  passed=$((passed + good)) failed=$((failed + bad))
  rm -f "$log"
}

tests model '*/model_*'
port=24650
for release in "$@"; do
  echo "== real Slurm $release"
  dir=$(mktemp -d /tmp/slurm-conformance.XXXXXX)
  if out=$(dev/slurm-local.sh "$release" start "$dir" -p $port); then
    SLURM_REST_URL=$(sed -n 's/^url: //p' <<<"$out")
    export SLURM_REST_URL
    tests "$release" '*/real'
    unset SLURM_REST_URL
  else
    failed=$((failed + 1))
  fi
  finish
  port=$((port + 2000))
done
echo "$passed passed, $failed failed"
((failed == 0))

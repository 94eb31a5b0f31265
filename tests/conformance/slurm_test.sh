#!/bin/bash
# Tests the Slurm client, its acts and the model of Slurm against real Slurm, without Kubernetes. By default, tests all releases
# of which dev/images/build.sh has made images. Needs root.
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
bash -c '. dev/lib.sh; survivors_end'
export SURVIVOR_OWNER=$$
work=$(mktemp -d /tmp/slurm-conformance.XXXXXX)
parts=()
# Each background process stops the Slurm that it has started.
trap 'trap "" TERM HUP; kill "${parts[@]}" 2>/dev/null; wait; rm -rf "$work"' EXIT
trap 'exit 143' TERM HUP

# tests LOG FILTER: writes the output of GoogleTest and a line with the counts to the log. Runs in a subshell. The program is in
# the process group of this script, so that a signal to the group ends it too.
tests() {
  timeout --foreground 2400 "$program" --gtest_filter="$2" >"$1" 2>&1 &
  running=$!
  wait $running
  verdict $? "$1" | awk '{ print $1 " passed, " $2 " failed" }' >>"$1"
  running=
}
running=
end_tests() { [[ -z $running ]] || { kill $running && wait $running; } 2>/dev/null; }

model() {
  trap end_tests EXIT
  trap 'exit 143' TERM
  tests "$work/model.log" '*/model_*'
}

# real RELEASE PORT: runs the tests with a Slurm of that release, which it starts and stops.
real() {
  release=$1 dir=$work/$1
  mkdir "$dir"
  trap 'end_tests; dev/slurm-local.sh "$release" stop "$dir"' EXIT
  trap 'exit 143' TERM
  if out=$(dev/slurm-local.sh "$release" start "$dir" -p "$2"); then
    SLURM_REST_URL=$(sed -n 's/^url: //p' <<<"$out")
    export SLURM_REST_URL SLURM_LOCAL_RELEASE=$release SLURM_LOCAL_DIR=$dir
    tests "$work/$release.log" '*/real'
  else
    echo "0 passed, 1 failed" >"$work/$release.log"
  fi
}

# The tests mostly wait, so all run at once.
model &
parts+=($!)
port=24650
for release in "$@"; do
  real "$release" $port &
  parts+=($!)
  port=$((port + 2000))
done
wait
parts=()
for name in model "$@"; do
  echo "== $name"
  # A run that was aborted counts as a failure.
  grep -qE '^[0-9]+ passed, [0-9]+ failed$' "$work/$name.log" || echo "0 passed, 1 failed" >>"$work/$name.log"
  cat "$work/$name.log"
done
cat "$work"/*.log | awk '/^[0-9]+ passed, [0-9]+ failed$/ { p += $1; f += $3 } END { print p + 0 " passed, " f + 0 " failed"; exit (f > 0) }'

#!/bin/bash
# Tests writes to a real slurmdbd with a real MariaDB, without Kubernetes. By default, tests all releases of which
# dev/images/build.sh has made images. Needs root, and dev/images/build.sh --database.
# Usage: tests/conformance/accounting_test.sh PROGRAM [RELEASE...]          PROGRAM: the built accounting_conformance
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
work=$(mktemp -d /tmp/accounting-conformance.XXXXXX)
release=
trap '[[ -z $release ]] || dev/slurm-local.sh "$release" stop "$work/$release"; rm -rf "$work"' EXIT
trap 'exit 143' TERM HUP

passed=0 failed=0 port=24550
for release in "$@"; do
  echo "== $release"
  mkdir "$work/$release"
  log=$work/$release.log
  if out=$(dev/slurm-local.sh "$release" start "$work/$release" -n 1 -p $port -a); then
    SLURM_REST_URL=$(sed -n 's/^url: //p' <<<"$out")
    export SLURM_REST_URL SLURM_LOCAL_RELEASE=$release SLURM_LOCAL_DIR=$work/$release
    status=0
    timeout --foreground 1200 "$program" >"$log" 2>&1 || status=$?
    cat "$log"
    read -r good bad < <(verdict $status "$log")
    passed=$((passed + good)) failed=$((failed + bad))
  else
    failed=$((failed + 1))
  fi
  dev/slurm-local.sh "$release" stop "$work/$release"
  port=$((port + 2000))
done
release=
echo "$passed passed, $failed failed"
((failed == 0))

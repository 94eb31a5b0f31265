#!/bin/bash
# Tells how long `make up` or `make demo` will take here, by what is not in the cache yet. Says nothing of less than a minute.
# Usage: dev/estimate.sh up|demo
. "$(dirname "$0")/lib.sh"

total=0 parts=()
# part NAME SECONDS [SECONDS]: seconds of 2 busy cores, and of what more cores do not shorten.
part() {
  local seconds=$(($(on_these_cores "$2") + ${3:-0}))
  total=$((total + seconds))
  ((seconds < 30)) || parts+=("$1 $(in_minutes $seconds)")
}

while read -r name seconds; do part "$name" "$seconds"; done < <("$DEV/build.sh" missing)
ls "$CACHE"/images/slurm-*.tar >/dev/null 2>&1 || part "Slurm's images" 30 30
part "the cluster" 10 15
if [[ ${1:-up} == demo ]]; then
  [[ -x $TOP/build/release/slurm-operator ]] || { [[ -d $CACHE/ccache ]] && part "the operator" 20; } || part "the operator" 200
  part "the demo" 5 20
fi
# Of many small parts none is worth a word.
of=$(printf ', %s' "${parts[@]}")
((total < 60)) || say "               the whole takes about $(in_minutes $total)${parts:+: ${of:2}}"

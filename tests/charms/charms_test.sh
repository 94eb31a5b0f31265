#!/bin/bash
# Packs the charms, and reads them with Juju's own parser. Needs go, with its module proxy.
# Usage: tests/charms/charms_test.sh          Ends with "N passed, N failed"; exits 1 when something failed.
. "$(dirname "$0")/../../dev/lib.sh"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$DEV/charms.sh" "$scratch" >/dev/null
use_go
(cd "$TOP/tests/charms" && nice go build -o "$scratch/charms" .)
status=0
"$scratch/charms" "$scratch"/{slurmd,slurmctld}.charm "$scratch" >"$scratch/log" || status=1
grep -v ' passed, ' "$scratch/log" || true
read -r passed _ failed _ < <(grep ' passed, ' "$scratch/log" || echo "0 passed, 1 failed")

for charm in slurmd slurmctld; do
  # It starts with its own libraries, and says that Juju is missing.
  if [[ $("$scratch/$charm/dispatch" 2>&1) == *"Juju runs this"* ]]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1)) status=1
    echo "not ok  $charm: dispatch does not run slurm-enlist: $("$scratch/$charm/dispatch" 2>&1)"
  fi
done
echo "$passed passed, $failed failed"
exit $status

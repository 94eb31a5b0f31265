#!/bin/bash
# Starts slurmctld. The container's arguments follow SLURMCTLD_OPTIONS; together they are read as shell words.
set -euo pipefail

mkdir -p /run/slurmctld

set -f +u
eval "options=(${SLURMCTLD_OPTIONS-} $*)"
set +f -u

exec notify-init slurmctld --systemd ${options[@]+"${options[@]}"}

#!/bin/bash
# The prolog of slurm-bridge with stand-ins for Slurm's commands.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

failed=0
check() { # WHAT GOT WANT
  if [[ $2 == "$3" ]]; then echo "ok    $1"; else
    printf 'not ok  %s: got "%s", want "%s"\n' "$1" "$2" "$3"
    failed=1
  fi
}

mkdir "$scratch/bin"
# shellcheck disable=SC2016
printf '#!/bin/sh\n[ "$4" = node-1 ] && cat "%s/node"\n' "$scratch" >"$scratch/bin/scontrol"
printf '#!/bin/sh\ncat "%s/alive"\n' "$scratch" >"$scratch/bin/squeue"
# Each look ends the prolog with 99, so that a wait is seen.
printf '#!/bin/sh\nkill -USR1 $PPID\n' >"$scratch/bin/sleep"
chmod +x "$scratch"/bin/*

# outcome NODE-LINE ALIVE: "goes" or "waits".
outcome() {
  if [[ -n $1 ]]; then echo "$1" >"$scratch/node"; else rm -f "$scratch/node"; fi
  if [[ $2 != away ]]; then printf '%s' "$2" >"$scratch/alive"; else rm -f "$scratch/alive"; fi
  PATH=$scratch/bin:$PATH SLURMD_NODENAME=node-1 sh charts/slurm-bridge/files/prolog.sh &>/dev/null
  case $? in
    0) echo goes ;;
    *) echo waits ;;
  esac
}

node='NodeName=node-1 Arch=x86_64 Comment={"node":"x"}'
check "a node without pods" "$(outcome "$node" "")" goes
check "a node with an extra of somebody else" "$(outcome "$node Extra=rack" "")" goes
check "a node with a pod of a running job" "$(outcome "$node Extra={\"slurm-bridge\":\"12\"}" $'      12\n       7\n')" goes
check "a node with a pod of a job that has ended" "$(outcome "$node Extra={\"slurm-bridge\":\"12\"}" $'7\n120\n')" waits
check "one of two jobs has ended" "$(outcome "$node Extra={\"slurm-bridge\":\"12 13\"} Reason=x" $'12\n')" waits
ours() { printf '%s' "$node Extra={\"slurm-bridge\":\"$1\",\"slurm-bridge-cluster\":\"0a1b-2c\"} Reason=x"; }
check "a list that says whose it is, of jobs that run" "$(outcome "$(ours "12 13")" $'12\n13\n')" goes
check "a list that says whose it is, of a job that has ended" "$(outcome "$(ours "12 13")" $'12\n')" waits
check "an empty list" "$(outcome "$node Extra={\"slurm-bridge\":\"\"} Reason=x" "")" goes
check "Slurm does not tell of the node" "$(outcome "" "")" waits
check "Slurm does not tell of the jobs" "$(outcome "$node Extra={\"slurm-bridge\":\"12\"}" away)" waits
exit $failed

#!/bin/bash
# Tests of what entrypoint.sh makes of its arguments, with a stand-in for slurmd: 2 sockets, 4 cores each, 2 threads, 24105 MB.
set -uo pipefail

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cat >"$scratch/slurmd" <<'END'
#!/bin/sh
echo "NodeName=h CPUs=16 Boards=1 SocketsPerBoard=2 CoresPerSocket=4 ThreadsPerCore=2 RealMemory=24105"
END
printf '#!/bin/sh\nshift 2\nprintf "[%%s]" "$@"\n' >"$scratch/notify-init"
printf '#!/bin/sh\n' >"$scratch/install"
# Once only: it ends the loop that would start it again.
# shellcheck disable=SC2016
printf '#!/bin/sh\nprintf "[%%s]" sssd "$@"\ntouch "$said"\nkill "$PPID"\n' >"$scratch/sssd"
export said=$scratch/said
chmod +x "$scratch"/*

failures=0
# expect WANTED [VARIABLE=VALUE...] -- ARGUMENT...
expect() {
  local wanted=$1 variables=() got
  shift
  while [[ $1 != -- ]]; do
    variables+=("$1")
    shift
  done
  shift
  got=$(env -u POD_CPUS -u POD_MEMORY -u POD_TOPOLOGY -u SLURMD_OPTIONS -u SSHD_OPTIONS -u SSSD_OPTIONS PATH="$scratch:$PATH" \
    ${variables[@]+"${variables[@]}"} bash "$(dirname "$0")/entrypoint.sh" "$@" 2>&1)
  if [[ $got == "$wanted" ]]; then
    echo "ok   $got"
  else
    printf 'FAIL %s\n     %s\n' "$wanted" "$got"
    failures=$((failures + 1))
  fi
}

expect '[-Z][--conf-server][c:6817][--conf][Features=a CPUs=2]' -- -Z --conf-server c:6817 --conf "'Features=a CPUs=2'"
expect '[-Z][-v][--conf][Features=a]' SLURMD_OPTIONS="-Z --conf 'Features=a'" -- -v
expect '[--conf][Features=a CoreSpecCount=6 MemSpecLimit=23105]' POD_CPUS=4 POD_MEMORY=1000 -- --conf "'Features=a'"
expect '[-Z][--conf][CoreSpecCount=6]' POD_CPUS=4 -- -Z
# At least one core is left, and a pod as large as the machine has all.
expect '[--conf][CoreSpecCount=7]' POD_CPUS=1 -- 
expect '[]' POD_CPUS=16 POD_MEMORY=24105 --
expect '[]' POD_CPUS=0 POD_MEMORY=0 --
# What is said already wins, in any case of letters.
expect '[--conf][cpus=2 MemSpecLimit=23105]' POD_CPUS=4 POD_MEMORY=1000 -- --conf "'cpus=2'"
expect '[--conf][RealMemory=5 CoreSpecCount=6]' POD_CPUS=4 POD_MEMORY=1000 -- "--conf='RealMemory=5'"
expect '[--conf][Topology=x:y]' POD_TOPOLOGY=a:b -- --conf "'Topology=x:y'"
expect '[--conf][Topology=a:b]' POD_TOPOLOGY=a:b --
# Empty values never reach slurmd; variables of the pod do.
expect '[--conf][Features=a Weight=3]' -- --conf "'Features=a Topology='\"\$SLINKY_TOPOLOGY\"' Weight=3'"
expect '[--conf][Features=a Topology=x:y]' SLINKY_TOPOLOGY=x:y -- --conf "'Features=a Topology='\"\$SLINKY_TOPOLOGY\""
expect '[--conf][Reason="a b" Features=a]' -- --conf "'Reason=\"a b\" Features=a Gres=\"\"'"
expect '[--conf][Features=a Reason="open]' -- --conf "'Features=a Reason=\"open'"
# Beside slurmd, which here starts after it, so that the order is always the same.
# shellcheck disable=SC2016
printf '#!/bin/sh\nfor i in $(seq 600); do [ -e "$said" ] || sleep 0.1; done\nshift 2\nprintf "[%%s]" "$@"\n' >"$scratch/notify-init"
expect '[sssd][-i][--logger=files][-d][3 4][-Z]' SSSD_OPTIONS="--logger=files -d '3 4'" -- -Z
rm "$scratch/sssd"
expect $'entrypoint: sssd is asked for, but this image does not have it\n[-Z]' SSSD_OPTIONS="-d 3" -- -Z

((failures == 0)) || { echo "$failures failed"; exit 1; }

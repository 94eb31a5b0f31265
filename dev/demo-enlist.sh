#!/bin/bash
# slurm-enlist from nothing: hosts outside of Kubernetes join a pool of a Slurm cluster by one command each, and run a job. Network namespaces of
# this machine are the hosts, with a real slurmctld and real slurmds. Usage: dev/demo-enlist.sh [SLURM RELEASE]
. "$(dirname "$0")/lib.sh"

need_root "make demo-enlist"
STEP=0 STARTED=${EPOCHREALTIME/./}
tag=${1:-${SLURM:-26.05}}
dir=$LOCAL/demo-enlist

hosts() { "$DEV/enlist-hosts.sh" "$tag" "$1" "$dir" "${@:2}"; }
on() { hosts exec "$@"; }
indented() { sed 's/^/               /'; }
ready() { [[ $(on ctl slurm-enlist node list -o json | jq '[.[] | select(.phase == "Ready")] | length') == "$1" ]]; }
idle() { [[ $(on ctl sinfo --noheader --Node --partition=gpu --states=idle --responding --format=%N | sort -u | wc -l) == "$1" ]]; }
joined() { # COUNT
  wait_for 60 "" ready "$1" && wait_for 60 "" idle "$1" || {
    on ctl slurm-enlist node list >&2
    die "not all hosts are nodes" "see $dir/log"
  }
}
join() { # HOST [NODES THEN]
  local token began=${EPOCHREALTIME/./}
  token=$(on ctl slurm-enlist token gpu)
  on "$1" slurm-enlist join --token-file - --no-service --wait 0 <<<"$token" | indented
  hosts spawn "$1" "agent-$1" slurm-enlist agent
  [[ $2 ]] || return 0
  joined "$2"
  echo "               $1 is IDLE $(((${EPOCHREALTIME/./} - began) / 1000)) ms after its token was made"
}

mkdir -p "$LOCAL"
step "building slurm-enlist, and the images of Slurm $tag"
"$DEV/deps.sh" build images test
"$DEV/cpp.sh" release slurm-enlist
"$DEV/images/build.sh" "$tag" >"$LOCAL/demo-enlist-images.log" 2>&1 || die "the images could not be made" "see $LOCAL/demo-enlist-images.log"

step "four hosts: ctl with a slurmctld whose slurm.conf names no node, and h1, h2, h3"
hosts stop >/dev/null 2>&1 || true
rm -rf "$dir"
hosts start -n 3
trap 'hosts stop || true' EXIT
on ctl cat /etc/slurm/slurm.conf | indented

step "what joining needs on the controller, once"
on ctl slurm-enlist coordinator init --yes | indented
on ctl scontrol reconfigure
hosts spawn ctl coordinator slurm-enlist coordinator run
pool() { on ctl slurm-enlist pool create gpu --partition "Default=YES MaxTime=1-0"; }
wait_for 60 "" pool || die "no pool could be made: $(pool 2>&1)" "see $dir/log/coordinator"
on ctl slurm-enlist pool list | indented

step "h1 joins"
join h1 1
step "h2 and h3 join"
join h2 ""
join h3 ""
joined 3
on ctl slurm-enlist node list | indented
on ctl sinfo --Node --partition=gpu | indented

step "a job on all three"
on ctl srun --nodes=3 --label sh -c 'echo "$SLURMD_NODENAME is the host $(hostname)"' | sort | indented

step "what the controller has of it"
on ctl cat /etc/slurm/slurm-enlist.conf | indented
on ctl grep -c NodeName /etc/slurm/slurm.conf /etc/slurm/slurm-enlist.conf | indented || true

hosts stop
trap - EXIT
echo
echo "The demo works: three hosts joined by one command each, and ran a job. slurm.conf names none of them."

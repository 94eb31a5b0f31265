#!/bin/bash
# slurm-enlist from nothing to nothing: hosts outside of Kubernetes join a pool of a Slurm cluster by one command each and run jobs. Then a node
# leaves under a job, and the pool is removed under another one: both jobs run to their end. Before that, the auth key is replaced under a job, too.
# Network namespaces of this machine are the hosts, with a real slurmctld and real slurmds. Usage: dev/demo-enlist.sh [SLURM RELEASE]
. "$(dirname "$0")/lib.sh"

need_root "make demo-enlist"
STEP=0 STARTED=${EPOCHREALTIME/./}
tag=${1:-${SLURM:-26.05}}
dir=$LOCAL/demo-enlist

hosts() { "$DEV/enlist-hosts.sh" "$tag" "$1" "$dir" "${@:2}"; }
on() { hosts exec "$@"; }
indented() { sed 's/^/               /'; }
# shown COMMAND...: on the controller, with its output. Both streams are one, as on a terminal.
shown() {
  echo "             # $*"
  on ctl "$@" 2>&1 | indented
}
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
state() { on ctl scontrol show job "$1" | sed -n 's/.*JobState=\([A-Z_]*\).*/\1/p'; }
runs() { [[ $(state "$1") == RUNNING ]]; }
# busy NODE HOST SECONDS: submits a job that works there for so long and leaves a proof when it has done all of it. Sets $job and $host.
busy() {
  host=$2
  job=$(on ctl sbatch --parsable --nodelist="$1" --no-requeue --chdir=/tmp --output=/dev/null --wrap \
    "for i in \$(seq $3); do sleep 1; done; echo \"all $3 of $3 seconds are done\" >/tmp/proof.\$SLURM_JOB_ID")
  wait_for 60 "" runs "$job" || die "job $job does not run: $(state "$job")" "see $dir/log"
}
# completed: nobody has ended the job, and it has not begun twice.
completed() {
  local proof
  proof=$(on "$host" cat "/tmp/proof.$job") || die "job $job has left no proof" "see $dir/log"
  [[ $(state "$job") == COMPLETED && $(on ctl scontrol show job "$job") == *" Restarts=0 "* ]] || die "job $job: $(state "$job")" "see $dir/log"
  echo "               job $job on $host has COMPLETED, without a restart, and says: $proof"
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
# A slurm.jwks can have two keys at a time. What a key has signed is accepted for 10 s here, so that the demo is short.
on ctl sh -c 'cd /etc/slurm && umask 077 &&
  printf "{\"keys\": [{\"alg\": \"HS256\", \"kty\": \"oct\", \"kid\": \"first\", \"k\": \"%s\"}]}" "$(base64 -w0 slurm.key)" >slurm.jwks &&
  chown --reference=slurm.key slurm.jwks && rm slurm.key && echo AuthInfo=ttl=10,cred_expire=10 >>slurm.conf'
shown cat /etc/slurm/slurm.conf

step "what joining needs on the controller, once"
shown slurm-enlist coordinator init --yes
on ctl scontrol reconfigure
conf=$(on ctl cat /etc/slurm/slurm.conf) nodes=$(on ctl scontrol show nodes) pools=$(on ctl cat /etc/slurm/slurm-enlist.conf)
hosts spawn ctl coordinator slurm-enlist coordinator run
pool() { on ctl slurm-enlist pool create gpu --partition "Default=YES MaxTime=1-0"; }
wait_for 60 "" pool || die "no pool could be made: $(pool 2>&1)" "see $dir/log/coordinator"
shown slurm-enlist pool list

step "h1 joins"
join h1 1
step "h2 and h3 join"
join h2 ""
join h3 ""
joined 3
shown slurm-enlist node list
shown sinfo --Node --partition=gpu

step "a job on all three"
on ctl srun --nodes=3 --label sh -c 'echo "$SLURMD_NODENAME is the host $(hostname)"' | sort | indented

step "what the controller has of it"
shown cat /etc/slurm/slurm-enlist.conf
shown grep -c NodeName /etc/slurm/slurm.conf /etc/slurm/slurm-enlist.conf || true

step "the auth key is replaced while a job runs on gpu-3"
key() { on "$1" sha256sum /etc/slurm/slurm.jwks; }
before=$(key ctl)
busy gpu-3 h3 30
shown slurm-enlist rotate || die "the key was not replaced" "see $dir/log"
[[ $(key ctl) != "$before" && $(key ctl) == "$(key h1)" && $(key ctl) == "$(key h2)" && $(key ctl) == "$(key h3)" ]] || die "the hosts have other keys" "see $dir/log"
echo "               ctl, h1, h2 and h3 have the same new key"
on ctl srun --nodelist=gpu-1 hostname >/dev/null || die "no job runs with the new key" "see $dir/log"
finished() { [[ $(state "$job") != RUNNING && $(state "$job") != COMPLETING ]]; }
wait_for 60 "" finished || die "job $job does not end" "see $dir/log"
completed

step "the pool shrinks while a job runs on gpu-1"
busy gpu-1 h1 10
shown squeue
shown slurm-enlist node remove gpu-1 || die "gpu-1 has not left" "see $dir/log"
completed
shown slurm-enlist node list
shown sinfo --Node --partition=gpu

step "the pool is removed while a job runs on gpu-2"
busy gpu-2 h2 10
if shown slurm-enlist pool remove gpu; then die "the pool was removed under job $job" "see $dir/log"; fi
shown slurm-enlist pool remove gpu --force || die "the pool was not removed" "see $dir/log"
completed
partition() { on ctl scontrol show partitions | grep -q PartitionName=gpu; }
wait_for 60 "" eval '! partition' || die "slurmctld still has the partition" "see $dir/log"
shown slurm-enlist pool list
shown sinfo
shown scontrol show nodes

step "what is left of it"
unlike() { # WHAT BEFORE AFTER
  [[ $2 == "$3" ]] || die "$1 is not as it was before the pool: $(diff <(echo "$2") <(echo "$3"))" "see $dir/log"
  echo "               $1 is as it was before the pool"
}
unlike slurm.conf "$conf" "$(on ctl cat /etc/slurm/slurm.conf)"
unlike "the node table" "$nodes" "$(on ctl scontrol show nodes)"
# But for the partition without nodes whose name tells the coordinator what slurmctld has loaded.
lines() { grep -v '^#\|^PartitionName=slurm-enlist-' || true; }
unlike "the list of partitions" "$(lines <<<"$pools")" "$(on ctl cat /etc/slurm/slurm-enlist.conf | lines)"
for host in h1 h2 h3; do
  left=$(on "$host" sh -c 'ls -d /etc/slurm/* /var/lib/slurm-enlist/*; grep -l slurm-enlist /etc/default/slurmd; pgrep -a "slurmd|slurm-enlist"' 2>/dev/null || true)
  [[ -z $left ]] || die "$host still has: $left" "see $dir/log"
  echo "               $host has no key, no configuration and no process of the cluster any more"
done

hosts stop
trap - EXIT
echo
echo "The demo works: three hosts joined by one command each, and ran jobs. The auth key was replaced, a node left, and the pool was removed, each while"
echo "a job ran. All jobs ended by themselves. slurm.conf and the node table are as they were before."

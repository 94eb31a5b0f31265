#!/bin/bash
# The local cluster itself: what it refuses, an interrupted `make up`, an unclean stop, what `make down` leaves, and an API server that
# does not serve WatchList. It ends with no cluster; the one of another clone it leaves alone.
. "$(dirname "$0")/lib.sh"
. "$DEV/cluster.sh"
. "$DEV/traces.sh"

passed=0 failed=0

# Before anything of ours: this ends here when another clone's cluster runs.
"$DEV/down.sh" >/dev/null
# What is installed or built on the way is no trace of a cluster.
"$DEV/deps.sh" cluster images build clang lint test
"$DEV/build.sh" cluster
"$DEV/images/build.sh" >/dev/null
"$DEV/cpp.sh" asan kube_conformance sim_kube_conformance

scratch=$(mktemp -d)
log=$scratch/log
holders=()
clean() {
  ! firewall_left || firewall -D
  ((${#holders[@]} == 0)) || kill "${holders[@]}" 2>/dev/null || true
  rm -rf "$scratch"
}
trap clean EXIT

# ---- Starting it -----------------------------------------------------------------------------------------------------

logged() { # COMMAND...
  "$@" >"$log" 2>&1 </dev/null || { sed 's/^/      | /' "$log"; return 1; }
}

up() {
  local begun=${EPOCHREALTIME/./}
  logged env "$mark" make -C "$TOP" up || return 1
  echo "        make up: $(((${EPOCHREALTIME/./} - begun) / 1000)) ms"
}

# interrupted STEP: `make up`, and Ctrl-C when it comes to that step. The last step may be over before the signal comes, where all is
# there already; it takes seconds where nothing is.
interrupted() {
  interrupt_at "$1" && return
  grep -q ' s  up$' "$log" && logged "$DEV/down.sh" && interrupt_at "$1" && return
  sed 's/^/      | /' "$log"
  return 1
}
# Where it ended by itself, it was not interrupted: then an error stands in the log, or the step never came.
interrupt_at() {
  local pid status=0
  : >"$log"
  # A process group of its own, as in a terminal, in which nobody ignores SIGINT as the background jobs of scripts do.
  env "$mark" setsid env --default-signal=INT make -C "$TOP" up >"$log" 2>&1 </dev/null &
  pid=$!
  wait_for 600 "" come_to "$1" $pid || true
  kill -INT -- -$pid || true
  wait $pid || status=$?
  ((status != 0)) && grep -q " s  $1\$" "$log" && ! grep -qE ' s  up$|^error: ' "$log" && wait_for 60 "" group_gone $pid
}
come_to() { grep -q " s  $1\$" "$log" || [[ ! -d /proc/$2 ]]; }
group_gone() { ! kill -0 -- "-$1"; }

# pods_run NAME: new pods, one a node.
pods_run() {
  local node
  for node in "${NODES[@]}"; do
    cat <<EOF
---
apiVersion: v1
kind: Pod
metadata: {name: $1-$node, labels: {app: $1}}
spec:
  nodeSelector: {kubernetes.io/hostname: $node}
  terminationGracePeriodSeconds: 0
  containers: [{name: pause, image: "$PAUSE", imagePullPolicy: Never}]
EOF
  done >"$scratch/pods.yaml"
  logged kube apply -f "$scratch/pods.yaml" && logged kube wait --for=condition=Ready --timeout=180s pod --selector "app=$1"
}

containers() { kube get pods --selector "app=$1" -o jsonpath='{range .items[*].status.containerStatuses[?(@.ready==true)]}{.containerID}{"\n"}{end}' | sort; }
# Ready alone may be what was written before the stop.
others_ready() { # NAME
  [[ $(containers "$1" | wc -l) == "${#NODES[@]}" && -z $(comm -12 "$scratch/containers" <(containers "$1")) ]]
}

# ---- Refusals --------------------------------------------------------------------------------------------------------

# refuses ERROR DO COMMAND...: it ends before it has built or changed anything, and says what is wrong and what to do.
refuses() {
  local status=0
  "${@:3}" >"$log" 2>&1 </dev/null || status=$?
  ((status == 1)) && grep -qE "^error: $1" "$log" && grep -qE "^   do: $2" "$log" && ! grep -q ' s  programs$' "$log" && return
  sed 's/^/      | /' "$log"
  return 1
}
# apart FLAG SETUP: `make up` in a namespace of its own, where the machine lacks something.
apart() { env "$mark" DEV="$DEV" unshare "$1" bash -ec "$2"'; exec "$DEV/up.sh"'; }

chmod 755 "$scratch"
mkdir "$scratch/clone"
cp -r "$DEV" "$TOP/images" "$scratch/clone/"
other=$scratch/clone/dev

# The table that the rule stands in stays, empty: it is part of what was there before.
firewall -I && firewall -D
traces_begin "$scratch/before"
for what in up down; do
  check "$what: not root" refuses "the local cluster needs root" "sudo make $what" \
    setpriv --reuid=65534 --regid=65534 --clear-groups "$other/$what.sh"
done
echo "MemAvailable: 2048000 kB" >"$scratch/meminfo"
check "little memory" refuses "only 2000 MiB of memory are free" "end other programs" apart --mount "mount --bind $scratch/meminfo /proc/meminfo"
mkdir "$scratch/disk"
check "little disk" refuses "only 64 MiB of disk are free at $scratch/disk" "free some, or set SLURM_OPERATOR_CACHE" \
  apart --mount "mount -t tmpfs -o size=64m tmpfs $scratch/disk; export SLURM_OPERATOR_CACHE=$scratch/disk"
check "no cgroups" refuses "no cgroups are mounted" "mount them" apart --mount "umount -l /sys/fs/cgroup"
check "addresses in use" refuses "the addresses 10.215.0.0/16 are used here: 10.215.7.0/24" "choose three others.*SLURM_OPERATOR_NET" \
  apart --net "ip link set lo up; ip route add 10.215.7.0/24 dev lo; export SLURM_OPERATOR_NET=10.214"
check "addresses of a wider network" refuses "the addresses 10.214.0.0/24 are used here: 10.0.0.0/8" "choose three others" \
  apart --net "ip link set lo up; ip route add 10.0.0.0/8 dev lo"
perl -MIO::Socket::INET -e '$socket = IO::Socket::INET->new(LocalAddr => "127.0.0.1:2380", Listen => 1) or die; sleep 600' &
holders=($!)
wait_for 60 "" bash -c '</dev/tcp/127.0.0.1/2380' || true
check "a taken port" refuses "port 2380 is taken at 127.0.0.1: by perl \(pid ${holders[0]}\)" "stop that program" "$DEV/up.sh"
kill "${holders[0]}"
wait "${holders[0]}" 2>/dev/null || true
holders=()
check "a refusal leaves nothing" nothing_left "$scratch/before"
"$DEV/down.sh" >/dev/null # where one of them was none

# ---- Behind a firewall -------------------------------------------------------------------------------------------------

firewalled() {
  local status=0
  firewall -I
  env "$mark" "$DEV/up.sh" >"$log" 2>&1 </dev/null || status=$?
  firewall -D
  ((status == 1)) && grep -q "^error: a firewall keeps the nodes ($LINK)" "$log" && grep -q "^   do: let in what comes from $LINK" "$log" && return
  sed 's/^/      | /' "$log"
  return 1
}
check "behind a firewall" firewalled
"$DEV/down.sh" >/dev/null

# ---- Interrupted, then up ---------------------------------------------------------------------------------------------

for what in "control plane" "cluster DNS, storage class" nodes; do check "interrupted at: $what" interrupted "$what"; done
check "make up goes on from there" up
check "pods run" pods_run first
check "make up where it is up" up
for what in up down; do
  check "$what: another clone's cluster" refuses "the cluster of another clone is running: $TOP" "make -C $TOP down" "$other/$what.sh"
done
check "another etcd" refuses "the cluster was made with ETCD=module" "make down, then make up with ETCD=debian" env ETCD=debian "$DEV/up.sh"

# ---- An unclean stop ---------------------------------------------------------------------------------------------------

# Processes that somebody has in the namespaces of a node and of the gateway keep these: the mounts of pods, the link.
entered() { # PID NAME NAMESPACE
  [[ $(readlink "/proc/$1/ns/$3") == "$(readlink "/proc/$(capsule_init "$2")/ns/$3")" ]]
}
env "$mark" nsenter --target "$(capsule_init node-1)" --net --mount -- sleep 600 &
holders+=($!)
env "$mark" nsenter --target "$(capsule_init gateway)" --net -- sleep 600 &
holders+=($!)
wait_for 60 "" entered "${holders[0]}" node-1 mnt || true
wait_for 60 "" entered "${holders[1]}" gateway net || true
containers first >"$scratch/containers"
killed=()
for file in "$RUNTIME"/*.pid "$RUNTIME"/*.init; do killed+=("$(process_of "$file")"); done
kill -KILL "${killed[@]}"
wait_for 60 "" capsule_gone control || true
check "the unclean stop left the link and the mounts of pods" bash -c \
  "ip link show $LINK >/dev/null && grep -q kubernetes.io~projected /proc/${holders[0]}/mountinfo && [[ -f $RUNTIME/node-1.pid ]]"
check "make up after an unclean stop" up
check "the pods of before run again" wait_for 180 "" others_ready first
check "new pods run" pods_run second
kill "${holders[@]}"
holders=()

# ---- Down ----------------------------------------------------------------------------------------------------------------

check "make down" logged make -C "$TOP" down
check "it leaves nothing" nothing_left "$scratch/before"
check "make down where nothing is up" logged make -C "$TOP" down

# ---- An API server without WatchList ------------------------------------------------------------------------------------

export ETCD=debian
conformance() {
  . "$DEV/env.sh"
  logged helm install slurm-operator-crds "$TOP/charts/slurm-operator-crds" --wait &&
    logged "$TOP/build/asan/sim_kube_conformance" --gtest_filter='*WatchList*' &&
    logged "$TOP/build/asan/kube_conformance" && grep -q "^\[       OK \] KubeLive.AServerWithoutWatchListGivesTheSame" "$log"
}
check "ETCD=debian make up" up
check "the conformance of client and model where WatchList is not served" conformance
check "make down with ETCD=debian" logged make -C "$TOP" down
check "it leaves nothing" nothing_left "$scratch/before"

echo "$passed passed, $failed failed"
((failed == 0))

#!/bin/bash
# The local cluster itself: what it refuses, an interrupted `make up`, an unclean stop, what `make down` leaves, and an API server that
# does not serve WatchList. It ends with no cluster; the one of another clone it leaves alone.
. "$(dirname "$0")/lib.sh"
. "$DEV/cluster.sh"

passed=0 failed=0
check() { # WHAT COMMAND...
  if "${@:2}"; then
    echo "ok      $1"
    passed=$((passed + 1))
  else
    echo "not ok  $1"
    failed=$((failed + 1))
  fi
}

# Before anything of ours: this ends here when another clone's cluster runs.
"$DEV/down.sh" >/dev/null
# What is installed or built on the way is no trace of a cluster.
"$DEV/deps.sh" cluster images build
"$DEV/cpp.sh" asan kube_conformance sim_kube_conformance

scratch=$(mktemp -d)
log=$scratch/log
holders=()
# A firewall that lets nothing of the nodes in: -I, or -D to take it away.
firewall() { iptables "$1" INPUT -i "$LINK" -j DROP; }
clean() {
  while firewall -D 2>/dev/null; do :; done
  ((${#holders[@]} == 0)) || kill "${holders[@]}" 2>/dev/null || true
  rm -rf "$scratch"
}
trap clean EXIT
# Told to every process of the clusters that are started here, so that each is known again.
mark=SLURM_OPERATOR_LIFECYCLE=$scratch

# ---- What is there ---------------------------------------------------------------------------------------------------

# What a cluster may leave on the machine, one thing a line; in full, so that it tells also what nobody thought of.
traces() (
  set +e # many of these are not there
  for pid in $({
    grep -lzsxF "$mark" /proc/[0-9]*/environ
    grep -lsF "/slurm-operator/node-" /proc/[0-9]*/cgroup
    grep -lsF " ${LOCAL// /\\040}/" /proc/[0-9]*/mountinfo
  } | cut -d/ -f3 | sort -un); do
    echo "process $pid $(cat "/proc/$pid/comm" 2>/dev/null)"
  done
  awk '{ print "mount", $5, $4 }' /proc/self/mountinfo
  ip netns list | sed 's/^/network namespace /'
  ip -o link | awk '{ print "link", $2 }'
  ip -o address | awk '{ print "address", $2, $4 }'
  for table in -4 -6; do
    ip $table route show table all | sed "s/ expires [0-9]*sec//; s/^/route $table /"
    ip $table rule | sed "s/^/rule $table /"
  done
  for table in iptables-save ip6tables-save "nft list ruleset"; do
    # shellcheck disable=SC2086  # words
    ! command -v ${table%% *} >/dev/null || $table 2>/dev/null | sed "/^#/d; s/ \[[0-9:]*\]$//; s/^/$table /"
  done
  for dir in $(cgroup_mounts "$(</proc/mounts)"); do find "$dir" -path '*/slurm-operator*' -type d -printf 'cgroup %p\n'; done
  for dir in "${SYSCTLS[@]}" net/ipv4/ip_forward net/ipv4/conf/all/forwarding net/ipv6/conf/all/forwarding; do
    [[ ! -r /proc/sys/$dir ]] || echo "sysctl $dir $(cat "/proc/sys/$dir")"
  done
  # /run/mount is of mount(8) itself, from its first umount on; notify-init's own test may run at the same time.
  find / /etc /opt /run /var/lib /var/log /var/spool -mindepth 1 -maxdepth 1 ! -path /run/mount ! -path '/run/notify-init.*' -printf 'file %p\n'
  find /var/lib/{kubelet,containerd,cni} "$RUNTIME" -mindepth 1 -maxdepth 2 ! -path "$RUNTIME/lock*" -printf 'file %p\n' 2>/dev/null
  find "$LOCAL" -maxdepth 1 \( -name state -o -name kubeconfig \) -printf 'file %p\n'
  true
)

same() { diff "$scratch/before" <(traces | sort) >"$scratch/diff"; }
nothing_left() {
  wait_for 10 "" same && return # others may have mounts of a moment
  sed -n 's/^</      | gone:/p; s/^>/      | left:/p' "$scratch/diff"
  return 1
}

# ---- Starting it -----------------------------------------------------------------------------------------------------

logged() { # COMMAND...
  "$@" >"$log" 2>&1 </dev/null || { sed 's/^/      | /' "$log"; return 1; }
}

up() {
  local begun=${EPOCHREALTIME/./} took
  logged env "$mark" make -C "$TOP" up || return 1
  took=$(((${EPOCHREALTIME/./} - begun) / 1000))
  echo "        make up: $took ms"
  # All is built: it is promised within a minute, also after an unclean stop.
  ((took < 60000))
}

# interrupted STEP: `make up`, and Ctrl-C when it comes to that step.
interrupted() {
  local pid status=0
  : >"$log"
  # A process group of its own, as in a terminal, in which nobody ignores SIGINT as the background jobs of scripts do.
  env "$mark" setsid env --default-signal=INT make -C "$TOP" up >"$log" 2>&1 </dev/null &
  pid=$!
  wait_for 60 "" come_to "$1" $pid || true
  kill -INT -- -$pid || true
  wait $pid || status=$?
  ((status != 0)) && ! grep -q ' s  up$' "$log" && wait_for 10 "" group_gone $pid && return
  sed 's/^/      | /' "$log"
  return 1
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
  logged kube apply -f "$scratch/pods.yaml" && logged kube wait --for=condition=Ready --timeout=60s pod --selector "app=$1"
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
traces | sort >"$scratch/before"
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
perl -MIO::Socket::INET -e '$socket = IO::Socket::INET->new(LocalAddr => "127.0.0.1:2380", Listen => 1) or die; sleep 60' &
holders=($!)
wait_for 10 "" bash -c '</dev/tcp/127.0.0.1/2380' || true
check "a taken port" refuses "port 2380 is taken at 127.0.0.1: by perl \(pid ${holders[0]}\)" "stop that program" "$DEV/up.sh"
kill "${holders[0]}"
wait "${holders[0]}" 2>/dev/null || true
holders=()
check "a refusal leaves nothing" nothing_left
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
env "$mark" nsenter --target "$(capsule_init node-1)" --net --mount -- sleep 600 &
holders+=($!)
env "$mark" nsenter --target "$(capsule_init gateway)" --net -- sleep 600 &
holders+=($!)
containers first >"$scratch/containers"
killed=()
for file in "$RUNTIME"/*.pid "$RUNTIME"/*.init; do killed+=("$(process_of "$file")"); done
kill -KILL "${killed[@]}"
wait_for 10 "" capsule_gone control || true
check "the unclean stop left the link and the mounts of pods" bash -c \
  "ip link show $LINK >/dev/null && grep -q kubernetes.io~projected /proc/${holders[0]}/mountinfo && [[ -f $RUNTIME/node-1.pid ]]"
check "make up after an unclean stop" up
check "the pods of before run again" wait_for 60 "" others_ready first
check "new pods run" pods_run second
kill "${holders[@]}"
holders=()

# ---- Down ----------------------------------------------------------------------------------------------------------------

check "make down" logged make -C "$TOP" down
check "it leaves nothing" nothing_left
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
check "it leaves nothing" nothing_left

echo "$passed passed, $failed failed"
((failed == 0))

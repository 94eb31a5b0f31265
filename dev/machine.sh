# shellcheck shell=bash
# Can the local cluster work on this machine, now? Sourced after cluster.sh. Each function ends the script with what is wrong and what to do.

. "$DEV/ports.sh"

# memory_and_disk MIB: that the cluster has memory, and the cache this much disk (MiB).
memory_and_disk() {
  local memory disk
  memory=$(awk '$1 == "MemAvailable:" { print int($2 / 1024) }' /proc/meminfo)
  ((memory >= 4096)) || die "only $memory MiB of memory are free; the cluster and Slurm need 4096." "end other programs, or use a bigger machine"
  mkdir -p "$LOCAL" "$CACHE"
  disk=$(df --output=avail -BM "$CACHE" | tail -1 | tr -dc 0-9)
  ((disk >= $1)) || die "only $disk MiB of disk are free at $CACHE; $1 are needed." "free some, or set SLURM_OPERATOR_CACHE to another disk"
}

check_machine() {
  memory_and_disk "$([[ -d $CACHE/built ]] && echo 4096 || echo 15360)"
  [[ $(cgroup_version "$(</proc/mounts)") != none ]] || die "no cgroups are mounted at /sys/fs/cgroup." "mount them, for instance with the package cgroupfs-mount"
  unshare --mount --net --pid --fork true 2>/dev/null || die "namespaces cannot be made." "run on a machine, or in a container with --privileged"
}

port_free() { # PORT ADDRESS: of others than us
  local inode pid
  inode=$(port_listener "$1" "$2" "$(cat /proc/net/{tcp,tcp6,udp,udp6} 2>/dev/null)")
  [[ -n $inode ]] || return 0
  pid=$(find /proc/[0-9]*/fd -lname "socket:\[$inode\]" -print -quit 2>/dev/null | cut -d/ -f3) || true
  die "port $1 is taken at $2${pid:+: by $(cat "/proc/$pid/comm") (pid $pid)}" "stop that program, then ${3:-make up}"
}

# check_ports ["make up"]: for what the ports are wanted.
check_ports() {
  port_free 2379 127.0.0.1 "$@"
  port_free 2380 127.0.0.1 "$@"
  port_free 6443 "$HOST_IP" "$@"
  port_free 53 "$HOST_IP" "$@"
  port_free 53 "$DNS_LOCAL" "$@"
}

#!/bin/bash
# Both kinds of cgroups, fed as data.
set -euo pipefail
. "$(dirname "$0")/cgroup.sh"

failed=0
check() { # WHAT GOT WANT
  if [[ $2 == "$3" ]]; then echo "ok    $1"; else
    printf 'FAIL  %s: got "%s", want "%s"\n' "$1" "$2" "$3"
    failed=1
  fi
}

v1='proc /proc proc rw 0 0
tmpfs /sys/fs/cgroup tmpfs rw,mode=755 0 0
cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,cpu,cpuacct 0 0
cgroup /sys/fs/cgroup/cpuset cgroup rw,cpuset 0 0
cgroup /sys/fs/cgroup/systemd cgroup rw,name=systemd 0 0'
hybrid="$v1
cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0"
hybrid_unified_first="tmpfs /sys/fs/cgroup tmpfs rw 0 0
cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0
cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0"
v2='proc /proc proc rw 0 0
cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid,nsdelegate 0 0
tmpfs /run tmpfs rw 0 0'
none='proc /proc proc rw 0 0
tmpfs /sys/fs/cgroup tmpfs rw 0 0'

check "v1: version" "$(cgroup_version "$v1")" v1
check "hybrid: version" "$(cgroup_version "$hybrid")" v1
check "hybrid, unified first: version" "$(cgroup_version "$hybrid_unified_first")" v1
check "v2: version" "$(cgroup_version "$v2")" v2
check "no hierarchy: version" "$(cgroup_version "$none")" none
check "no mounts: version" "$(cgroup_version "")" none
check "v1: mounts" "$(cgroup_mounts "$v1" | xargs)" "/sys/fs/cgroup/cpu,cpuacct /sys/fs/cgroup/cpuset /sys/fs/cgroup/systemd"
check "hybrid: mounts" "$(cgroup_mounts "$hybrid" | wc -l)" 4
check "v2: mounts" "$(cgroup_mounts "$v2")" /sys/fs/cgroup
check "v1: driver" "$(kubelet_cgroup_driver v1)" cgroupfs
check "v2: driver" "$(kubelet_cgroup_driver v2)" cgroupfs
check "root" "$(kubelet_cgroup_root node-2)" /slurm-operator/node-2
check "v1: Slurm" "$(slurm_cgroup_plugin v1)" disabled
check "v2: Slurm" "$(slurm_cgroup_plugin v2)" cgroup/v2
# Without it slurmd's plugin for v2 asks systemd over D-Bus, and ends where nobody answers.
check "the demo's Slurm does not ask systemd" "$(grep -c '^    IgnoreSystemd=yes$' "$(dirname "$0")/demo/cluster.yaml")" 1

here=$(cgroup_version "$(cat /proc/mounts)")
echo "this machine has cgroup $here; a cluster on the other kinds was not run here, only tested as data: $(
  for kind in v1 v2; do [[ $kind == "$here" ]] || echo -n "$kind "; done)"
exit $failed

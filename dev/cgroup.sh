# What the kind of cgroups on a machine means for us. Pure functions: the mount table comes in as text, nothing is read here.
# shellcheck shell=bash

# cgroup_version MOUNTS: v1 or v2, as container runtimes see it: by what is mounted at /sys/fs/cgroup itself. A machine with both
# ("hybrid": a tmpfs there, v1 hierarchies and a cgroup2 named unified below it) counts as v1.
cgroup_version() {
  local _ point type found=none
  while read -r _ point type _; do
    case $point in
      /sys/fs/cgroup) if [[ $type == cgroup2 ]]; then found=v2; elif [[ $found != v2 ]]; then found=${found/none/bare}; fi ;;
      /sys/fs/cgroup/*) [[ $type != cgroup || $found == v2 ]] || found=v1 ;;
    esac
  done <<<"$1"
  [[ $found == v1 || $found == v2 ]] || found=none
  echo "$found"
}

# cgroup_mounts MOUNTS: where hierarchies are, one a line: one for v2, one per v1 hierarchy (symlinks such as cpu,cpuacct are no mounts).
cgroup_mounts() {
  local _ point type version
  version=$(cgroup_version "$1")
  while read -r _ point type _; do
    case $version:$type:$point in
      v2:cgroup2:/sys/fs/cgroup | v1:cgroup:/sys/fs/cgroup/* | v1:cgroup2:/sys/fs/cgroup/*) echo "$point" ;;
    esac
  done <<<"$1"
}

# kubelet_cgroup_driver VERSION: the nodes are namespaces without a systemd of their own, so it is cgroupfs on both.
kubelet_cgroup_driver() { echo cgroupfs; }

# kubelet_cgroup_root NODE: below which the kubelet of that node keeps its pods, in every hierarchy.
kubelet_cgroup_root() { echo "/slurm-operator/$1"; }

# slurm_cgroup_plugin VERSION: CgroupPlugin of Slurm's cgroup.conf in pods. Slurm's v1 plugin needs the hierarchies writable at their roots,
# which a pod does not have.
slurm_cgroup_plugin() {
  case $1 in
    v2) echo cgroup/v2 ;;
    *) echo disabled ;;
  esac
}

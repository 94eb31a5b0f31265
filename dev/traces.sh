# shellcheck shell=bash
# What a cluster may leave on the machine. Sourced after cluster.sh by what compares the machine before and after.

# Told to every process of the clusters that the caller starts, so that each is known again: env "$mark" COMMAND.
mark=SLURM_OPERATOR_MARK=$$-$RANDOM

# traces: one thing a line; in full, so that it tells also what nobody thought of.
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
  # /run/mount is of mount(8) itself, from its first umount on.
  find / /etc /opt /run /var/lib /var/log /var/spool -mindepth 1 -maxdepth 1 ! -path /run/mount -printf 'file %p\n'
  find /var/lib/{kubelet,containerd,cni} "$RUNTIME" -mindepth 1 -maxdepth 2 ! -path "$RUNTIME/lock*" -printf 'file %p\n' 2>/dev/null
  find "$LOCAL" -maxdepth 1 \( -name state -o -name kubeconfig \) -printf 'file %p\n'
  true
)

# traces_begin FILE: what is there now; nothing_left FILE: whether it is all that is there again. Others may have mounts of a moment.
traces_begin() { traces | sort >"$1"; }
traces_differ() { ! diff "$1" <(traces | sort) >"$1.diff"; }
nothing_left() {
  wait_for 60 "" eval "! traces_differ '$1'" && return
  sed -n 's/^</      | gone:/p; s/^>/      | left:/p' "$1.diff"
  return 1
}

#!/bin/bash
# Stops the local cluster and removes all of it. What was built stays in the cache.
. "$(dirname "$0")/lib.sh"
. "$DEV/cluster.sh"

need_root "make down"
lock down
check_owner gone-too

step "stopping"
survivors_end
# Nodes that only pretend, of a benchmark that was cut short: bench/scale.py.
if [[ -f $LOCAL/kwok.pid ]]; then
  kwok=$(<"$LOCAL/kwok.pid")
  [[ $(readlink "/proc/$kwok/exe") != "$(readlink -f "$LOCAL/bin/kwok")" ]] || kill "$kwok" || true
  rm -f "$LOCAL/kwok.pid"
fi
! firewall_left || firewall -D # of a test that was killed
for name in "${NODES[@]}" control gateway; do capsule_stop "$name"; done
wait_for 10 "" bash -c "! ip link show $LINK" || ip link delete "$LINK"
step "removing"
wait_for 60 "" cgroup_remove || warn "cgroups are left below slurm-operator/ in /sys/fs/cgroup"
sysctls_restore
if grep -qF " ${LOCAL// /\\040}/" /proc/self/mountinfo; then
  die "something is mounted below $LOCAL; its files stay." "umount it, then make down"
fi
rm -rf "$STATE" "$LOCAL/kubeconfig"
rmdir --ignore-fail-on-non-empty /var/lib/{kubelet,containerd,cni} 2>/dev/null || true
rm -f "$RUNTIME/owner"
step "down"

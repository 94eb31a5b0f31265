#!/bin/bash
# What happens to nodes. Usage: dev/node.sh stop|start|partition|heal|enter NODE [COMMAND...]
#   stop       power off: all its processes end at once
#   start      power on, with its disk as it was
#   partition  pull its cable;  heal  put it back
#   enter      a shell (or COMMAND) in its network and mounts
. "$(dirname "$0")/lib.sh"
. "$DEV/cluster.sh"

usage() { die "usage: dev/node.sh stop|start|partition|heal|enter NODE [COMMAND...]" "NODE is one of: ${NODES[*]}"; }
(($# >= 2)) || usage
what=$1 node=$2
shift 2
[[ " ${NODES[*]} " == *" $node "* ]] || usage
need_root "dev/node.sh $what $node"
check_owner
capsule_alive control || die "the cluster is not running." "make up"
case $what in
  stop)
    capsule_stop "$node"
    wait_for 60 "" cgroup_remove "$node" || warn "cgroups of $node are left"
    ;;
  start) capsule_alive "$node" || start_node "$node" ;;
  partition) in_net gateway ip link set "$node" down ;;
  heal) in_net gateway ip link set "$node" up ;;
  enter) within "$node" "${@:-bash}" ;;
  *) usage ;;
esac

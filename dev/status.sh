#!/bin/bash
# What of the local cluster runs.
. "$(dirname "$0")/lib.sh"
. "$DEV/cluster.sh"

# Certificates and processes of the cluster are root's: anybody else would be told that it does not answer.
need_root "make status"
running=0
for name in control gateway "${NODES[@]}"; do
  if capsule_alive "$name"; then
    state="running"
    running=$((running + 1))
  else
    state="stopped"
  fi
  printf '%-10s %s\n' "$name" "$state"
done
if owner=$(other_owner); then
  say ""
  say "This is the cluster of another clone: $owner"
  if owner_gone "$owner"; then say "That clone is gone. next: make down"; else say "next: make -C $owner status"; fi
  exit 0
fi
if ((running == 0)); then
  say ""
  say "next: make up"
  exit 0
fi
if ! api_ready; then
  say ""
  say "The API server does not answer; see $LOGS/kube-apiserver.log"
  say "next: make up"
  exit 1
fi
say ""
kube get nodes -o wide
say ""
kube get pods -A -o wide
say ""
if ((running < 2 + ${#NODES[@]})); then
  say "next: make up"
else
  say "next: . dev/env.sh, then kubectl and helm use this cluster; make down stops it"
fi

#!/bin/bash
# Imports images into the store. Runs in namespaces of its own (see images.sh). Usage: store-import.sh STORE [IDENTITY TAR]...
set -euo pipefail
store=$1
shift
socket=/run/containerd.sock
mount -t tmpfs tmpfs /run
cat >/run/containerd.toml <<EOF
version = 2
root = "$store/root"
state = "/run/containerd"
disabled_plugins = ["io.containerd.grpc.v1.cri", "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs", "io.containerd.internal.v1.opt"]
[grpc]
  address = "$socket"
EOF
containerd --config /run/containerd.toml --log-level warn &
until ctr -a $socket version >/dev/null 2>&1; do sleep 0.05; done
done=()
while (($#)); do
  ctr -a $socket -n k8s.io images import "$2"
  done+=("$1" "$2")
  shift 2
done
kill %1
wait || true
sync -f "$store"
for ((i = 0; i < ${#done[@]}; i += 2)); do echo "${done[i + 1]}" >"$store/have/${done[i]}"; done

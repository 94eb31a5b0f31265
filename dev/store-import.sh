#!/bin/bash
# Imports images into the store. Runs in namespaces of its own (see images.sh). Usage: store-import.sh STORE TAR...
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
for tar in "$@"; do ctr -a $socket -n k8s.io images import "$tar"; done
kill %1
wait || true
sync -f "$store"

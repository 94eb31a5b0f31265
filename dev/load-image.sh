#!/bin/bash
# Loads images into all nodes of the running cluster. Usage: dev/load-image.sh TAR...   (docker-archives)
# An image that a node has already, by its content, is skipped.
. "$(dirname "$0")/lib.sh"
. "$DEV/cluster.sh"
. "$DEV/images.sh"

(($#)) || die "no image was named." "dev/load-image.sh TAR..."
need_root "dev/load-image.sh $*"
for tar in "$@"; do [[ -f $tar ]] || die "no such file: $tar" "name docker-archive files"; done
check_owner
jobs=()
for node in "${NODES[@]}"; do
  capsule_alive "$node" || { warn "$node is not running; it gets the image when make up has run"; continue; }
  (flock 8; load_images "$node" "$@") 8>"$STATE/nodes/$node/load.lock" &
  jobs+=("$!")
done
((${#jobs[@]})) || die "the cluster is not running." "make up"
for job in "${jobs[@]}"; do wait "$job" || die "an image could not be loaded." "see $LOGS/node-*-images.log"; done

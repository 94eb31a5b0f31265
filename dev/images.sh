# Container images without a registry. Sourced after cluster.sh.
# shellcheck shell=bash
#
# A store in the cache is a containerd root into which every image was imported once. A new node starts from it: small files are copied,
# blobs are hard links, and unpacked layers are symbolic links (they are lower directories of overlays, which nobody writes). So a
# node has all images in a moment, and stopping it can throw all away.

STORE=$CACHE/image-store

# image_identity TAR: what is in it: its manifest and its configuration (which names the layers by digest).
image_identity() {
  local manifest
  manifest=$(tar -xOf "$1" --occurrence=1 manifest.json) || die "not a docker-archive: $1" "make it with 'podman save --format docker-archive' or 'docker save'"
  {
    echo "$manifest"
    # shellcheck disable=SC2046
    tar -xOf "$1" $(jq -r '.[].Config' <<<"$manifest")
  } | sha256sum | cut -c1-32
}

# image_mark DIRECTORY TAR: note there that the image was imported; whatever had its names before is not there any more.
image_mark() {
  local names other
  names=$(tar -xOf "$2" --occurrence=1 manifest.json | jq -r '.[].RepoTags[]')
  for other in "$1"/*; do
    [[ ! -f $other ]] || ! grep -qxF -e "$names" "$other" || rm "$other"
  done
  echo "$names" >"$1/$(image_identity "$2")"
}

# image_tar DIRECTORY NAME:TAG CONFIG-JSON OUT: a docker-archive with the directory as its only layer.
image_tar() {
  local work=$4.work layer config
  rm -rf "$work"
  mkdir -p "$work"
  tar -C "$1" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -cf "$work/layer.tar" .
  layer=$(sha256sum <"$work/layer.tar" | cut -d' ' -f1)
  jq -nc --argjson config "$3" --arg layer "sha256:$layer" \
    '{architecture: "amd64", os: "linux", config: $config, rootfs: {type: "layers", diff_ids: [$layer]}}' >"$work/config.json"
  config=$(sha256sum <"$work/config.json" | cut -d' ' -f1).json
  mv "$work/config.json" "$work/$config"
  jq -nc --arg config "$config" --arg name "$2" '[{Config: $config, RepoTags: [$name], Layers: ["layer.tar"]}]' >"$work/manifest.json"
  tar -C "$work" -cf "$4" manifest.json "$config" layer.tar
  rm -rf "$work"
}

pause_image() {
  mkdir "$OUT/root"
  cp "$(readlink -f "$LOCAL/bin/pause")" "$OUT/root/pause"
  image_tar "$OUT/root" "$PAUSE" '{"Entrypoint": ["/pause"]}' "$OUT/pause.tar"
}

# store_images TAR...: into the store, those that it does not have.
store_images() {
  local tar new=()
  # Nodes that exist use the layers that are there now, and an import may replace some. They load new images themselves.
  ! compgen -G "$STATE/nodes/*/containerd" >/dev/null || return 0
  # An import that was interrupted may have left anything.
  [[ ! -e $STORE/importing ]] || rm -rf "$STORE"
  mkdir -p "$STORE/root" "$STORE/have"
  for tar in "$@"; do
    [[ -e $STORE/have/$(image_identity "$tar") ]] || new+=("$tar")
  done
  ((${#new[@]})) || return 0
  say "               importing ${#new[@]} image archive(s)"
  touch "$STORE/importing"
  # In namespaces of its own, which end with it: unpacking mounts.
  unshare --mount --pid --fork --kill-child=SIGKILL --mount-proc "$DEV/store-import.sh" "$STORE" "${new[@]}" 9>&- >"$LOGS/image-store.log" 2>&1 ||
    die "images could not be imported." "see $LOGS/image-store.log"
  for tar in "${new[@]}"; do image_mark "$STORE/have" "$tar"; done
  rm "$STORE/importing"
}

# node_images_whole NODE: the layers that a stopped node had from the store are still there.
node_images_whole() {
  local snapshots=$STATE/nodes/$1/containerd/io.containerd.snapshotter.v1.overlayfs/snapshots
  [[ -d $snapshots && -z $(find "$snapshots" -maxdepth 1 -xtype l -print -quit) ]]
}

# node_images NODE: give a node that does not run the images of the store.
node_images() {
  local root=$STATE/nodes/$1/containerd from=$STORE/root dir
  rm -rf "$root.new"
  mkdir -p "$root.new/io.containerd.content.v1.content/blobs" "$root.new/io.containerd.snapshotter.v1.overlayfs/snapshots"
  dir=io.containerd.metadata.v1.bolt
  cp -a "$from/$dir" "$root.new/"
  dir=io.containerd.snapshotter.v1.overlayfs
  cp -a "$from/$dir/metadata.db" "$root.new/$dir/"
  find "$from/$dir/snapshots" -mindepth 1 -maxdepth 1 -exec ln -s -t "$root.new/$dir/snapshots" {} +
  dir=io.containerd.content.v1.content/blobs
  cp -al "$from/$dir/." "$root.new/$dir/" 2>/dev/null || cp -a "$from/$dir/." "$root.new/$dir/" # another file system
  rm -rf "$STATE/nodes/$1/have"
  mkdir -p "$STATE/nodes/$1/have"
  cp -a "$STORE/have/." "$STATE/nodes/$1/have/"
  rm -rf "$root"
  mv "$root.new" "$root"
}

# load_images NODE TAR...: into a node that runs, those that it does not have.
load_images() {
  local node=$1 tar
  shift
  for tar in "$@"; do
    [[ ! -e $STATE/nodes/$node/have/$(image_identity "$tar") ]] || continue
    # Through a pipe: the node may not see where the file is.
    within "$node" ctr -a /run/containerd/containerd.sock -n k8s.io images import - <"$tar" >>"$LOGS/$node-images.log" 2>&1 || return 1
    image_mark "$STATE/nodes/$node/have" "$tar"
  done
}

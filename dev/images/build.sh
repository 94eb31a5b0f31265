#!/bin/bash
# Makes the container images of the local cluster, without a container engine.
#
#   build.sh                                  the Slurm images, of all releases that can be had
#   build.sh TAG...                           of these releases (24.11, 26.05), and all of them or it fails
#   build.sh --operator BINARY                local/slurm-operator:dev, from a binary that was built already
#   build.sh --database                       local/mariadb:dev, over the base of a release that was made already
#   build.sh --image NAME:TAG --binary FILE   any other one-binary image, started as /NAME
#   build.sh --refresh [TAG...]               either; install the packages again, though nothing of ours has changed
#
# Prints a line `image-tar: PATH` for each docker-archive it made or found made, and progress to stderr. One archive holds
# all images of a release: local/slurmctld, local/slurmd, local/slurmrestd, local/slurmdbd, local/login, and local/ldap for tests and demos, over
# one base layer. Entrypoints, ports and files come from the Containerfiles in images/, so that both ways of building agree.
# Without TAG, .local/slurm-releases then says what was made and what was not (see slurm_releases in dev/lib.sh).
#
# Everything is kept below ${SLURM_OPERATOR_CACHE:-${XDG_CACHE_HOME:-~/.cache}/slurm-operator}/images and is written under
# another name first: a run that was cut short is taken up where it stood.
#   base-SUITE-HASH/{rootfs,layer.tar,digest,version}   what the packages made
#   slurm-TAG -> base-SUITE-HASH                        the newest base of a release, also without a Kubernetes
#   extra-HASH/{layer.tar,digest}                       what packages of one image add (EXTRA_PACKAGES)
#   slurm-TAG-HASH.tar                                  the archive
#   notify-init                                         the newest build of it
# Packages come from the Debian mirror that this machine uses; SLURM_OPERATOR_DEBIAN_MIRROR names another one.
. "$(dirname "$0")/../lib.sh"
. "$DEV/images/apt.sh"

recipes=$TOP/images
cache=$CACHE/images
slurm_images=(slurmctld slurmd slurmrestd slurmdbd login)
# What tests need beside them. Their recipes stand here.
test_images=(ldap)
declare -A suites=([24.11]=trixie [26.05]=sid)
preferred=26.05

# Standard output is for the result.
say() { printf '[%4ds] %s\n' "$SECONDS" "$*" >&2; }
fail() { say "failed: $*"; exit 1; }

# A tar that depends on contents and modes only.
layer_of() {
  tar --create --file "$2" --directory "$1" --numeric-owner --sort=name --mtime=@0 --format=gnu "${@:3}" .
}

digest_of() { sha256sum <"$1" | cut -d' ' -f1; }

# --- a base per suite ---------------------------------------------------------------------------------------------

# need COMMAND: of the packages that dev/deps.sh knows.
need() {
  command -v "$1" >/dev/null || "$DEV/deps.sh" images build >&2
}

# base_of SUITE: makes sure of the base of a suite; $base is its directory, or empty where the packages could not be
# installed.
base_of() {
  local suite=$1 packages mirror temporary log option options=()
  packages=$(grep -v '^#' "$recipes/base/packages" | paste -sd,)
  base=$cache/base-$suite-$(content_hash "$recipes/base/prepare.sh" "$packages" "$suite" "$(declare -f base_of)")
  if [[ -d $base ]] && { ((!refresh)) || [[ -e $base/refreshed-by-$$ ]]; }; then
    say "$suite: base is at hand, Slurm $(<"$base/version")"
    return
  fi
  need mmdebstrap
  mirror=$(debian_mirror)
  temporary=$cache/tmp-base-$suite-$$
  log=$cache/base-$suite.log
  mkdir -p "$temporary"
  say "$suite: installing packages (log: $log)"
  # A sid mirror may be past its Valid-Until; what is signed stays signed.
  for option in 'Acquire::Check-Valid-Until "false"' 'APT::Install-Recommends "false"'; do
    options+=(--aptopt="$option")
  done
  while IFS= read -r option; do options+=(--aptopt="$option"); done < <(network_options)
  for option in /usr/share/{man,doc,info,locale,lintian,bug}; do options+=(--dpkgopt="path-exclude=$option/*"); done
  if ! mmdebstrap --variant=minbase --format=directory --include="$packages" "${options[@]}" \
    --customize-hook='rm -f "$1"/etc/apt/apt.conf.d/99mmdebstrap "$1"/etc/dpkg/dpkg.cfg.d/99mmdebstrap' \
    "$suite" "$temporary/rootfs" "deb $mirror $suite main" >"$log" 2>&1; then
    tail -n 15 "$log" >&2
    rm -rf --one-file-system "$temporary"
    say "$suite: could not be installed from $mirror"
    base=''
    return
  fi
  say "$suite: packing the base layer"
  # After mmdebstrap, which empties /run when it is done.
  cp "$recipes/base/prepare.sh" "$temporary/rootfs/prepare.sh"
  chroot "$temporary/rootfs" /prepare.sh
  rm -f "$temporary/rootfs/"{prepare.sh,etc/hostname,etc/resolv.conf}
  chroot "$temporary/rootfs" slurmctld -V | sed 's/^[^ ]* //' >"$temporary/version"
  layer_of "$temporary/rootfs" "$temporary/layer.tar" --exclude=./dev/* --exclude=./proc/* --exclude=./sys/*
  digest_of "$temporary/layer.tar" >"$temporary/digest"
  touch "$temporary/refreshed-by-$$"
  if [[ -d $base ]]; then mv "$base" "$cache/tmp-old-$suite-$$"; fi
  mv "$temporary" "$base"
  rm -rf --one-file-system "$cache/tmp-old-$suite-$$"
  say "$suite: Slurm $(<"$base/version"), layer of $(du -m "$base/layer.tar" | cut -f1) MB"
}

# bases_of TAG...: a line "TAG BASE" each, of those that a suite has. They are made at once, for apt and dpkg keep one core busy; as members
# of a pipeline, so that Ctrl-C ends them.
bases_of() {
  (($# > 0)) || return 0
  { [[ -z ${suites[$1]-} ]] || { base_of "${suites[$1]}" </dev/null; echo "$1 $base"; }; } | { bases_of "${@:2}"; cat; }
}

# install_extra BASE DIRECTORY PACKAGE...: what the packages change in a base, as DIRECTORY/upper. In mount and process
# namespaces of its own, so that nothing of it stays, whatever ends it.
install_extra() {
  local base=$1 directory=$2
  mkdir -p "$directory"/{upper,work,root}
  { printf '%s;\n' 'Acquire::Check-Valid-Until "false"' 'APT::Install-Recommends "false"'; network_options; } >"$directory/apt.conf"
  sed -i 's/[^;]$/&;/' "$directory/apt.conf"
  printf 'path-exclude=%s/*\n' /usr/share/{man,doc,info,locale,lintian,bug} >"$directory/dpkg.cfg"
  # shellcheck disable=SC2016
  unshare --mount --pid --fork --kill-child --propagation private bash -eu -c '
    root=$2/root
    mount -t overlay overlay -o "lowerdir=$1/rootfs,upperdir=$2/upper,workdir=$2/work" "$root"
    mount -t proc proc "$root/proc"
    mount -t tmpfs tmpfs "$root/dev"
    for device in null zero random urandom; do cp -a /dev/$device "$root/dev/"; done
    cp -L /etc/resolv.conf "$root/etc/resolv.conf"
    cp "$2/apt.conf" "$root/etc/apt/apt.conf.d/99build"
    cp "$2/dpkg.cfg" "$root/etc/dpkg/dpkg.cfg.d/99build"
    printf "#!/bin/sh\nexit 101\n" >"$root/usr/sbin/policy-rc.d"
    chmod +x "$root/usr/sbin/policy-rc.d"
    certificate=$(sed -n "s/^Acquire::https::CAInfo \"\(.*\)\";$/\1/p" "$2/apt.conf")
    [[ -z $certificate ]] || install -D -m 0644 "$certificate" "$root$certificate"
    export DEBIAN_FRONTEND=noninteractive LC_ALL=C
    chroot "$root" apt-get -q update
    chroot "$root" apt-get -q -y install "${@:3}"
    ! chroot "$root" sh -c "command -v pam-auth-update" >/dev/null || chroot "$root" pam-auth-update --enable mkhomedir
    rm -rf "$root"/etc/{resolv.conf,apt/apt.conf.d/99build,dpkg/dpkg.cfg.d/99build} "$root/usr/sbin/policy-rc.d" \
      "$root"/var/lib/apt/lists "$root"/var/cache/{apt,debconf,ldconfig} "$root"/var/log/{apt,dpkg.log,alternatives.log}
    [[ -z $certificate ]] || rm -f "$root$certificate"
    mkdir -p "$root"/var/lib/apt/lists/partial "$root"/var/cache/apt/archives/partial
    find "$root" -xdev -name "*.pyc" -delete
  ' bash "$base" "$directory" "${@:3}"
  # What is gone is a device in an overlay, and a name in an image.
  find "$directory/upper" -type c | while IFS= read -r gone; do
    rm "$gone"
    : >"${gone%/*}/.wh.${gone##*/}"
  done
}

# extra_layer BASE CONTAINERFILE: $extra is a directory with the layer of the packages that it adds to the base (EXTRA_PACKAGES),
# or empty where it adds none.
extra_layer() {
  local base=$1 packages temporary log
  extra=''
  packages=$(sed -n 's/^ARG EXTRA_PACKAGES="\(.*\)"$/\1/p' "$2")
  [[ -n $packages ]] || return 0
  extra=$cache/extra-$(content_hash "$(<"$base/digest")" "$packages" "$(declare -f install_extra extra_layer)")
  [[ ! -d $extra ]] || return 0
  temporary=$cache/tmp-extra-$$
  log=$cache/extra.log
  say "installing $packages (log: $log)"
  # shellcheck disable=SC2086
  if ! install_extra "$(readlink -f "$base")" "$temporary" $packages >"$log" 2>&1; then
    tail -n 15 "$log" >&2
    fail "could not install $packages"
  fi
  layer_of "$temporary/upper" "$temporary/layer.tar" --exclude=./dev/* --exclude=./proc/* --exclude=./tmp/*
  digest_of "$temporary/layer.tar" >"$temporary/digest"
  rm -rf --one-file-system "$temporary"/{upper,work,root}
  mv "$temporary" "$extra"
  say "layer of $(du -m "$extra/layer.tar" | cut -f1) MB"
}

# --- images -------------------------------------------------------------------------------------------------------

# instruction FILE WORD: the arguments of the last such line of a Containerfile.
instruction() { sed -n "s/^$2 //p" "$1" | tail -n1; }

# image_config CONTAINERFILE DIFF_ID...: the image's configuration as JSON.
image_config() {
  local file=$1 user entrypoint cmd ports='' port ids='' id
  user=$(instruction "$file" USER)
  entrypoint=$(instruction "$file" ENTRYPOINT)
  cmd=$(instruction "$file" CMD)
  for port in $(instruction "$file" EXPOSE); do ports+="${ports:+,}\"$port/tcp\":{}"; done
  for id in "${@:2}"; do ids+="${ids:+,}\"sha256:$id\""; done
  printf '{"architecture":"%s","os":"linux","config":{"User":"%s","Env":["PATH=%s"],"Entrypoint":%s,"Cmd":%s,"ExposedPorts":{%s}},"rootfs":{"type":"layers","diff_ids":[%s]}}' \
    "$(dpkg --print-architecture)" "$user" /usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    "${entrypoint:-null}" "${cmd:-null}" "$ports" "$ids"
}

# add_image STAGE CONTAINERFILE NAME:TAG LAYER_DIGEST...: writes the configuration and notes the image for the manifest.
add_image() {
  local stage=$1 file=$2 name=$3 config layers='' id
  image_config "$file" "${@:4}" >"$stage/config"
  config=$(digest_of "$stage/config").json
  mv "$stage/config" "$stage/$config"
  for id in "${@:4}"; do layers+="${layers:+,}\"$id.tar\""; done
  manifest+="${manifest:+,}"$(printf '{"Config":"%s","RepoTags":["%s"],"Layers":[%s]}' "$config" "$name" "$layers")
}

# archive STAGE TARGET: a docker-archive of all files of the stage. What tells its content comes first, to be read quickly.
archive() {
  printf '[%s]' "$manifest" >"$1/manifest.json"
  (
    cd "$1"
    tar --create --dereference --file "$2.tmp-$$" --numeric-owner --mtime=@0 \
      manifest.json [0-9a-f]*.json [0-9a-f]*.tar
  )
  mv "$2.tmp-$$" "$2"
}

notify_init() {
  notify_init=$cache/notify-init-$(content_hash "$recipes/notify-init/notify-init.cpp")
  if [[ ! -x $notify_init ]]; then
    need g++
    say "notify-init: compiling"
    g++ -std=c++20 -Wall -Wextra -static -Os -s -o "$notify_init.tmp-$$" "$recipes/notify-init/notify-init.cpp"
    mv "$notify_init.tmp-$$" "$notify_init"
  fi
  ln -sfn "${notify_init##*/}" "$cache/notify-init"
}

# slurm_archive TAG BASE
slurm_archive() {
  local tag=$1 base=$2 target stage image root from to id file context below extra
  target=$cache/slurm-$tag-$(content_hash "$(<"$base/digest")" "$notify_init" \
    "$(declare -f slurm_archive image_config add_image archive layer_of install_extra extra_layer)" \
    "${slurm_images[@]/#/$recipes/}" "${test_images[@]/#/$DEV/images/}").tar
  if [[ -f $target ]]; then
    say "$tag: images are at hand"
  else
    say "$tag: assembling ${slurm_images[*]} ${test_images[*]}"
    stage=$(mktemp -d "$cache/tmp-stage-XXXXXX")
    manifest=''
    ln -s "$base/layer.tar" "$stage/$(<"$base/digest").tar"
    for image in "${slurm_images[@]}" "${test_images[@]}"; do
      context=$recipes
      [[ -d $context/$image ]] || context=$DEV/images
      file=$context/$image/Containerfile
      root=$stage/root
      mkdir -p "$root/usr/local/bin"
      install -m 0755 "$notify_init" "$root/usr/local/bin/notify-init"
      while read -r from to; do
        install -D -m 0755 "$context/$from" "$root$to"
      done < <(sed -n 's/^COPY //p' "$file")
      layer_of "$root" "$stage/layer" --owner=0 --group=0
      rm -rf "$root"
      id=$(digest_of "$stage/layer")
      mv "$stage/layer" "$stage/$id.tar"
      below=("$(<"$base/digest")")
      extra_layer "$base" "$file"
      if [[ -n $extra ]]; then
        below+=("$(<"$extra/digest")")
        ln -sf "$extra/layer.tar" "$stage/$(<"$extra/digest").tar"
        touch "$extra"
      fi
      add_image "$stage" "$file" "local/$image:$tag" "${below[@]}" "$id"
    done
    archive "$stage" "$target"
    rm -rf "$stage"
    find "$cache" -maxdepth 1 -name "slurm-$tag-*.tar" ! -name "${target##*/}" -delete
    say "$tag: $(du -m "$target" | cut -f1) MB"
  fi
  tars+=("$target")
}

# release_of BASE: the release that the packages of a base are of, or nothing where there is no such base.
release_of() { [[ ! -d $1/rootfs ]] || cut -d. -f1,2 "$1/version"; }

# slurm_tag TAG: a release by the suite that has it. When the suite has moved on, both its new release and what the cache
# has of the old one are made.
slurm_tag() {
  local wanted=$1 suite=${suites[$1]-} base='' found why="no Debian suite of ours has it"
  [[ -z $suite ]] || { base=$(sed -n "s/^$wanted //p" <<<"$bases"); why="the packages of Debian $suite could not be installed (see $cache/base-$suite.log)"; }
  if [[ -n $base ]]; then
    found=$(release_of "$base")
    ln -sfn "${base##*/}" "$cache/slurm-$found"
    slurm_archive "$found" "$base"
    made+=("$found")
    [[ $found != "$wanted" ]] || return 0
    why="Debian $suite has Slurm $found now"
    say "$wanted: $why, so that is what was made"
  fi
  # Packages that were installed again may have made the old release's base a newer one's.
  if [[ $(release_of "$cache/slurm-$wanted") == "$wanted" ]]; then
    say "$wanted: from the cache, Slurm $(<"$cache/slurm-$wanted/version")"
    slurm_archive "$wanted" "$(readlink -f "$cache/slurm-$wanted")"
    made+=("$wanted")
  else
    missing+=("$wanted: $why, and the cache has none")
  fi
}

# binary_archive NAME:TAG BINARY
binary_archive() {
  local name=$1 binary=$2 path target stage id file components
  [[ -f $binary ]] || fail "no such file: $binary"
  path=${name%:*}
  path=/${path##*/}
  target=$cache/${path#/}-$(content_hash "$binary" "$name" "$recipes/slurm-operator" \
    "$(declare -f binary_archive image_config add_image archive layer_of)").tar
  if [[ ! -f $target ]]; then
    stage=$(mktemp -d "$cache/tmp-stage-XXXXXX")
    manifest=''
    file=$stage/Containerfile
    "$recipes/slurm-operator/collect.sh" "$binary" "$path" "$stage/root"
    components=$(dirname "$binary")/components.tsv
    "$recipes/slurm-operator/sbom.sh" "$stage/root" "$path" "${name#*:}" "$([[ ! -s $components ]] || echo "$components")"
    layer_of "$stage/root" "$stage/layer" --owner=0 --group=0
    rm -rf "$stage/root"
    id=$(digest_of "$stage/layer")
    mv "$stage/layer" "$stage/$id.tar"
    sed "s|^ENTRYPOINT .*|ENTRYPOINT [\"$path\"]|" "$recipes/slurm-operator/Containerfile" >"$file"
    add_image "$stage" "$file" "$name" "$id"
    rm "$file"
    archive "$stage" "$target"
    rm -rf "$stage"
    # An older binary's image is of no use to anybody.
    find "$cache" -maxdepth 1 -name "${path#/}-*.tar" ! -name "${target##*/}" -delete
  fi
  say "$name: $(du -m "$target" | cut -f1) MB"
  tars+=("$target")
}

# database_archive: a MariaDB, of the oldest suite that there is a base of.
database_archive() {
  local base extra target stage root id from to context=$DEV/images file=$DEV/images/mariadb/Containerfile
  base=$(readlink -f "$(find "$cache" -maxdepth 1 -type l -name 'slurm-[0-9]*' | sort -V | head -n1)")
  [[ -f $base/layer.tar ]] || fail "there are no Slurm images yet, whose base this one shares: run dev/images/build.sh first"
  extra_layer "$base" "$file"
  target=$cache/mariadb-$(content_hash "$(<"$base/digest")" "$(<"$extra/digest")" "$context/mariadb" \
    "$(declare -f database_archive image_config add_image archive layer_of)").tar
  if [[ ! -f $target ]]; then
    stage=$(mktemp -d "$cache/tmp-stage-XXXXXX")
    manifest=''
    root=$stage/root
    while read -r from to; do
      install -D -m 0755 "$context/$from" "$root$to"
    done < <(sed -n 's/^COPY //p' "$file")
    layer_of "$root" "$stage/layer" --owner=0 --group=0
    rm -rf "$root"
    id=$(digest_of "$stage/layer")
    mv "$stage/layer" "$stage/$id.tar"
    ln -s "$base/layer.tar" "$stage/$(<"$base/digest").tar"
    ln -s "$extra/layer.tar" "$stage/$(<"$extra/digest").tar"
    add_image "$stage" "$file" local/mariadb:dev "$(<"$base/digest")" "$(<"$extra/digest")" "$id"
    archive "$stage" "$target"
    rm -rf "$stage"
    find "$cache" -maxdepth 1 -name 'mariadb-*.tar' ! -name "${target##*/}" -delete
  fi
  touch "$extra"
  say "local/mariadb:dev: $(du -m "$target" | cut -f1) MB"
  tars+=("$target")
}

# --- the command line ---------------------------------------------------------------------------------------------

refresh=0
database=0
name=''
binary=''
tags=()
while (($# > 0)); do
  case "$1" in
    --operator) name=local/slurm-operator:dev binary=${2:?--operator needs a binary}; shift ;;
    --image) name=${2:?--image needs NAME:TAG}; shift ;;
    --binary) binary=${2:?--binary needs a file}; shift ;;
    --refresh) refresh=1 ;;
    --database) database=1 ;;
    -h | --help) sed -n '2,/^$/{s/^# \{0,1\}//;/^\. /d;p}' "$0"; exit 0 ;;
    -*) fail "unknown option $1" ;;
    *)
      [[ -n ${suites[$1]-} || -d $cache/slurm-$1 ]] || fail "unknown release $1; known: ${!suites[*]}"
      tags+=("$1")
      ;;
  esac
  shift
done

mkdir -p "$cache"
exec 8>"$cache/lock"
flock -n 8 || { say "waiting for another build"; flock 8; }
trap 'say "interrupted; the next run goes on from here"; exit 130' INT TERM
# What a killed run left lying. We hold the lock, so nobody works on it.
rm -rf --one-file-system "$cache"/tmp-* "$cache"/*.tmp-*

tars=()
made=()
missing=()
if ((database)); then
  database_archive
elif [[ -n $name || -n $binary ]]; then
  [[ -n $name && -n $binary ]] || fail "--image and --binary go together"
  binary_archive "$name" "$binary"
else
  all=("${tags[@]}")
  ((${#all[@]} > 0)) || mapfile -t all < <(printf '%s\n' "${!suites[@]}" | sort)
  notify_init
  need mmdebstrap # here, once
  bases=$(set -e; bases_of "${all[@]}")
  for tag in "${all[@]}"; do slurm_tag "$tag"; done
fi
# Bases that no release points at any more; not at once, since something may still run from one.
for base in "$cache"/base-*/; do
  base=${base%/}
  [[ -d $base && $(find "$cache" -maxdepth 1 -lname "${base##*/}") == '' ]] || continue
  [[ $(find "$base" -maxdepth 0 -mtime +0) == '' ]] || rm -rf "$base"
done
find "$cache" -maxdepth 1 -name 'extra-*' -type d -mtime +7 -exec rm -rf {} +
for tar in "${tars[@]}"; do echo "image-tar: $tar"; done
for release in "${missing[@]}"; do say "warning: there are no images of Slurm $release"; done
if ((${#made[@]} + ${#missing[@]} > 0 && ${#tags[@]} == 0)); then
  ((${#made[@]} > 0)) || fail "there are no images of any Slurm release"
  mkdir -p "$LOCAL"
  {
    # The one to take where one is enough comes first.
    printf 'made %s\n' "${made[@]}" | sort -u -r -V |
      awk -v first="made $preferred" '$0 == first { print; next } { rest = rest $0 "\n" } END { printf "%s", rest }'
    ((${#missing[@]} == 0)) || printf 'skipped %s\n' "${missing[@]}"
  } >"$LOCAL/slurm-releases.tmp-$$"
  mv "$LOCAL/slurm-releases.tmp-$$" "$LOCAL/slurm-releases"
  say "Slurm releases: $(slurm_releases made | paste -sd' ')"
  exit 0
fi
((${#missing[@]} == 0)) || exit 1

#!/bin/bash
# Makes root file systems with Debian's systemd, for the tests of slurm-enlist's packages.
#
#   systemd.sh debian     a plain Debian 12, without Slurm and slurm-enlist
#   systemd.sh TAG        the base of a Slurm release (build.sh), with systemd and what the packages in build/packages depend on
#
# They are kept beside the bases of build.sh:
#   systemd-debian -> debian-HASH     a directory with rootfs
#   systemd-TAG -> systemd-HASH       a directory with upper, a layer for an overlay over the base
. "$(dirname "$0")/../lib.sh"
. "$DEV/images/apt.sh"

cache=$CACHE/images
suite=bookworm

say() { printf '[%4ds] %s\n' "$SECONDS" "$*" >&2; }
fail() { say "failed: $*"; exit 1; }

# apt_options: lines for apt.conf.
apt_options() {
  { printf '%s\n' 'Acquire::Check-Valid-Until "false"' 'APT::Install-Recommends "false"'; network_options; } | sed 's/$/;/'
}

debian_root() { # DIRECTORY
  local option options=()
  while IFS= read -r option; do options+=(--aptopt="$option"); done < <(apt_options)
  for option in /usr/share/{man,doc,info,locale,lintian,bug}; do options+=(--dpkgopt="path-exclude=$option/*"); done
  mmdebstrap --variant=minbase --format=directory --include=systemd,systemd-sysv,dbus "${options[@]}" \
    --customize-hook='rm -f "$1"/etc/dpkg/dpkg.cfg.d/99mmdebstrap' $suite "$1/rootfs" "deb $(debian_mirror) $suite main"
}

# systemd_layer DIRECTORY BASE DEPENDS. In mount and process namespaces of its own, so that no mount is left when it is interrupted.
systemd_layer() {
  mkdir -p "$1"/{upper,work,root}
  apt_options >"$1/apt.conf"
  # shellcheck disable=SC2016
  unshare --mount --pid --fork --kill-child --propagation private bash -eu -c '
    root=$1/root
    mount -t overlay overlay -o "lowerdir=$2/rootfs,upperdir=$1/upper,workdir=$1/work" "$root"
    mount -t proc proc "$root/proc"
    mount -t tmpfs tmpfs "$root/dev"
    mount -t tmpfs tmpfs "$root/run"
    for device in null zero random urandom; do cp -a /dev/$device "$root/dev/"; done
    # The mounts hide these files. In the layer they are empty, or as they were.
    for file in /etc/resolv.conf /etc/apt/apt.conf; do mkdir -p "$root${file%/*}"; : >>"$root$file"; done
    mount --bind /etc/resolv.conf "$root/etc/resolv.conf"
    mount --bind "$1/apt.conf" "$root/etc/apt/apt.conf"
    certificate=$(sed -n "s/^Acquire::https::CAInfo \"\(.*\)\";$/\1/p" "$1/apt.conf")
    [[ -z $certificate ]] || install -D -m 0644 "$certificate" "$root$certificate"
    export DEBIAN_FRONTEND=noninteractive LC_ALL=C
    chroot "$root" apt-get -q update
    chroot "$root" apt-get -q -y satisfy "systemd, systemd-sysv, dbus, $3"
    # Debian enables these services when it installs them.
    for unit in slurmctld slurmd slurmdbd slurmrestd sackd ssh; do chroot "$root" systemctl disable "$unit"; done
    rm -rf "$root"/var/lib/apt/lists/* "$root"/var/cache/{apt,debconf}/*
  ' bash "$@"
}

# made NAME LINK COMMAND [ARGUMENT...]: runs `COMMAND DIRECTORY ARGUMENT...` and names the directory $cache/NAME, unless that is there. LINK then
# points at it.
made() {
  local name=$1 link=$2 log=$cache/$2.log temporary=$cache/tmp-$1-$$
  if [[ ! -d $cache/$name ]]; then
    say "$link: installing packages (log: $log)"
    mkdir -p "$temporary"
    if ! "$3" "$temporary" "${@:4}" >"$log" 2>&1; then
      tail -n 15 "$log" >&2
      fail "$link could not be made"
    fi
    mv "$temporary" "$cache/$name"
  fi
  ln -sfn "$name" "$cache/$link"
  # Delete older ones, unless they were used within a day.
  find "$cache" -maxdepth 1 -name "${name%-*}-????????????????" -type d | while read -r directory; do
    [[ $(find "$cache" -maxdepth 1 -lname "${directory##*/}") != '' || $(find "$directory" -maxdepth 0 -mtime +0) == '' ]] ||
      rm -rf --one-file-system "$directory"
  done
}

(($# == 1)) || { sed -n '2,/^$/{s/^# \{0,1\}//;/^\. /d;p}' "$0"; exit 2; }
((EUID == 0)) || fail "needs root, for namespaces and mounts"
mkdir -p "$cache"
exec 8>"$cache/lock"
flock -n 8 || { say "waiting for another build"; flock 8; }
if [[ $1 == debian ]]; then
  "$DEV/deps.sh" images >&2
  made "debian-$(content_hash $suite "$(declare -f debian_root)")" systemd-debian debian_root
else
  base=$(readlink -f "$cache/slurm-$1")
  [[ -d $base/rootfs ]] || fail "no images of $1 yet: run dev/images/build.sh $1"
  packages=("$TOP"/build/packages/slurm-enlist_*.deb)
  [[ -e ${packages[0]} ]] || fail "no packages yet: run make packages"
  depends=$(dpkg-deb --field "${packages[0]}" Depends)
  made "systemd-$(content_hash "$(<"$base/digest")" "$depends" "$(declare -f systemd_layer)")" "systemd-$1" systemd_layer "$base" "$depends"
fi

#!/bin/bash
# Installs the packages of slurm-enlist (make packages) on a plain Debian 12, and removes them again. Needs root, the packages, the root file
# system of `dev/images/systemd.sh debian`, and a Debian mirror.
. "$(dirname "$0")/../../dev/lib.sh"
. "$DEV/images/apt.sh"

fail() { die "$*"; }
packages=$TOP/build/packages
passed=0 failed=0

# inside: in the root file system, whose packages are in /mnt.
inside() {
  local before after left version units=/usr/lib/systemd/system
  export DEBIAN_FRONTEND=noninteractive
  files() { find / -xdev \( -path /proc -o -path /run -o -path /tmp -o -path /var/cache -o -path /var/lib/apt -o -path /var/lib/dpkg -o -path /var/log \) -prune -o -print | sort; }
  quiet() { "$@" >/tmp/out 2>&1 || { cat /tmp/out; return 1; }; }
  says_nothing() { local out; out=$("$@" 2>&1) && [[ -z $out ]] || { echo "$out"; return 1; }; }
  installed() { [[ $(dpkg-query --show --showformat='${db:Status-Abbrev}' "$1" 2>/dev/null) == 'ii ' ]]; }
  fails() { ! "$@" >/dev/null 2>&1; }

  quiet apt-get -q update
  # The cache of the linker stays another one after libraries have gone.
  ldconfig
  before=$(files)
  check "dpkg alone misses libraries" fails dpkg --install /mnt/*.deb
  check "apt adds them" quiet apt-get -q -y --fix-broken install
  check "both are installed" eval 'installed slurm-enlist && installed slurm-enlist-coordinator'
  version=$(dpkg-query --show --showformat='${Version}' slurm-enlist)
  check "the program runs" test "$(slurm-enlist --version)" = "${version%+git*}"
  check "another commit is another version" dpkg --compare-versions "$version" gt "${version%+git*}"
  check "with the libraries of its package" test "$(ldd /usr/bin/slurm-enlist | grep -c /lib/slurm-enlist/)" = 3
  check "all files are as they were packed" says_nothing dpkg --verify slurm-enlist slurm-enlist-coordinator
  check "systemd accepts the coordinator's unit" says_nothing systemd-analyze verify --man=no $units/slurm-enlist-coordinator.service
  check "it is not enabled" test "$(systemctl is-enabled slurm-enlist-coordinator)" = disabled
  quiet systemctl enable slurm-enlist-coordinator
  check "they can be installed again" quiet dpkg --install /mnt/*.deb
  check "which leaves it enabled" test "$(systemctl is-enabled slurm-enlist-coordinator)" = enabled
  check "apt installs them in one step, too" eval 'quiet apt-get -q -y purge slurm-enlist slurm-enlist-coordinator && quiet apt-get -q -y install /mnt/*.deb'
  quiet systemctl enable slurm-enlist-coordinator
  check "they can be purged" quiet apt-get -q -y --autoremove purge slurm-enlist
  check "so is the coordinator, which needs the program" fails installed slurm-enlist-coordinator
  after=$(files)
  left=$(diff <(echo "$before") <(echo "$after") || true)
  check "nothing is left${left:+: ${left//$'\n'/ }}" test -z "$left"
  ((failed == 0))
}

# outside DIRECTORY ROOTFS: process 1 of the namespaces around it.
outside() {
  local root=$1/root certificate
  mount -t tmpfs disk "$1"
  mkdir "$1"/{upper,work,root}
  mount -t overlay -o "lowerdir=$2,upperdir=$1/upper,workdir=$1/work" overlay "$root"
  mount -t proc proc "$root/proc"
  mount -t tmpfs tmpfs "$root/tmp"
  mount --bind "$packages" "$root/mnt"
  mount --rbind /dev "$root/dev"
  : >"$root/etc/resolv.conf"
  mount --bind /etc/resolv.conf "$root/etc/resolv.conf"
  network_options | sed 's/$/;/' >"$root/etc/apt/apt.conf"
  certificate=$(sed -n 's/^Acquire::https::CAInfo "\(.*\)";$/\1/p' "$root/etc/apt/apt.conf")
  [[ -z $certificate ]] || install -D -m 0644 "$certificate" "$root$certificate"
  {
    declare -f check inside
    echo 'passed=0 failed=0; inside'
  } >"$root/tmp/inside.sh"
  chroot "$root" bash -u /tmp/inside.sh
}

case "${1-}" in
  --outside) outside "${@:2}"; exit ;;
esac
need_root "tests/enlist/packages_test.sh" "the test makes namespaces and mounts."
rootfs=$(readlink -f "$CACHE/images/systemd-debian")/rootfs
[[ -d $rootfs ]] || die "there is no Debian to install them on" "dev/images/systemd.sh debian"
before=$(sha256sum "$packages"/*.deb)
"$DEV/packages.sh" >/dev/null
check "the packages are the same when they are built again" test "$(sha256sum "$packages"/*.deb)" = "$before"
directory=$(mktemp -d)
status=0
unshare --mount --pid --fork --kill-child --propagation private "$0" --outside "$directory" "$rootfs" || status=$?
rmdir "$directory"
exit $((status || failed))

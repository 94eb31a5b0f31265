#!/bin/bash
# Hosts on this machine for slurm-enlist: network namespaces, each with an address, a root file system and processes of its own, and a real
# Slurm of one release on the first.
#
#   enlist-hosts.sh VERSION start DIR [-n HOSTS] [-s]   starts the network, the controller `ctl` with a slurmctld, and hosts h1, h2, ... (3);
#                                                    -s: all of them run systemd
#   enlist-hosts.sh VERSION exec DIR HOST COMMAND    runs a command as root on a host
#   enlist-hosts.sh VERSION spawn DIR HOST LOG COMMAND   starts one in the background; its output goes to DIR/log/LOG
#   enlist-hosts.sh VERSION cut DIR HOST             unplugs the network of a host
#   enlist-hosts.sh VERSION plug DIR HOST            plugs it in again
#   enlist-hosts.sh VERSION kill DIR HOST            ends all processes of a host at once, as if its power failed; its disk stays
#   enlist-hosts.sh VERSION boot DIR HOST [NAME]     starts a host that was killed, perhaps with another host name; or one more host,
#                                                    perhaps of another release
#   enlist-hosts.sh VERSION slurmctld DIR            starts a slurmctld that has ended
#   enlist-hosts.sh VERSION stop DIR                 ends everything
#
# The hosts share a network of their own, 10.9.0.0/24, which the machine does not see: ctl is 10.9.0.1, hN is 10.9.0.(10+N). Their disks are in
# memory and end with `stop`. The programs in DIR/bin are in /usr/local/bin of all hosts, slurm-enlist among them.
#
# With -s, process 1 of a host is Debian's systemd, in a cgroup of its own, and slurmctld is the service of its Debian package. slurm-enlist is not
# installed: its packages (`make packages`) are in /mnt.
#
# Needs root, and images built once: dev/images/build.sh VERSION, and for -s dev/images/systemd.sh VERSION.
set -euo pipefail

# --- inside ---------------------------------------------------------------------------------------------------------

# `site DIR`: process 1 of the namespaces that hold all others. It has the switch, and the disks of the hosts.
site() {
  local dir=$1 pid
  # Seen through the machine's /proc, this process has the number that the machine knows it by.
  read -r pid _ </proc/self/stat
  mount --make-rprivate /
  # In it the hosts find their numbers.
  mount --bind /proc "$dir/proc"
  mount -t tmpfs -o mode=0755 disks "$dir/disks"
  ip link add switch type bridge
  ip link set switch up
  ip link set lo up
  mount -t proc proc /proc
  echo "$pid $(cut -d' ' -f22 "/proc/1/stat")" >"$dir/pid.new"
  mv "$dir/pid.new" "$dir/pid"
  exec sleep infinity </dev/null >/dev/null 2>&1
}

# `host ROOTFS DIR HOST NAME [CGROUP]`: process 1 of a host. ROOTFS: one directory or several, the uppermost first. CGROUP: where systemd has
# its cgroups; without it there is no systemd.
host() {
  local rootfs=$1 dir=$2 host=$3 name=$4 cgroup=$5 disk=$2/disks/$3 device file pid
  read -r pid _ <"$dir/proc/self/stat"
  mount --make-rprivate /
  mkdir -p "$disk"/{upper,work,root}
  mount -t overlay -o "lowerdir=$rootfs,upperdir=$disk/upper,workdir=$disk/work" overlay "$disk/root"
  cd "$disk/root"
  mount -t tmpfs -o mode=0755 dev dev
  for device in null zero full random urandom tty; do
    : >"dev/$device"
    mount --bind "/dev/$device" "dev/$device"
  done
  mkdir -p dev/shm dev/pts old
  chmod 1777 dev/shm
  mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
  ln -s pts/ptmx dev/ptmx
  ln -s /proc/self/fd dev/fd
  ln -s fd/0 dev/stdin
  ln -s fd/1 dev/stdout
  ln -s fd/2 dev/stderr
  mount -t proc proc proc
  mount -t sysfs -o ro sysfs sys
  mount -t tmpfs -o mode=0755 run run
  if [[ $cgroup ]]; then
    echo 0 >"$cgroup/cgroup.procs"
    mount --bind "$dir/packages" mnt
    # The machine's settings are not the host's.
    for file in proc/sys proc/sysrq-trigger; do
      [[ -e $file ]] || continue
      mount --bind $file $file
      mount -o remount,bind,ro $file
    done
  else
    mkdir -p run/slurm usr/local/bin usr/local/lib/enlist
    mount --bind "$dir/bin" usr/local/bin
    mount --bind "$dir/lib" usr/local/lib/enlist
    echo /usr/local/lib/enlist >etc/ld.so.conf.d/enlist.conf
    chroot . ldconfig
  fi
  grep -q '^user:' etc/passwd || { echo 'user:x:1000:1000::/tmp:/bin/bash' >>etc/passwd; echo 'user:x:1000:' >>etc/group; }
  cp "$dir/hosts" etc/hosts
  sed -i 's/^hosts:.*/hosts: files/' etc/nsswitch.conf
  cat /proc/sys/kernel/random/uuid >"$disk/boot_id"
  mount --bind "$disk/boot_id" proc/sys/kernel/random/boot_id
  hostname "$name"
  ip link set lo up
  echo "$pid" >"$dir/pids/$host.new"
  mv "$dir/pids/$host.new" "$dir/pids/$host"
  pivot_root . old
  umount -l old
  cd /
  [[ $cgroup ]] || exec tini -- sleep infinity </dev/null >/dev/null 2>&1
  # shellcheck disable=SC2016
  exec env -i container=enlist PATH=/usr/sbin:/usr/bin unshare --cgroup sh -c 'mount -t cgroup2 cgroup2 /sys/fs/cgroup &&
    exec setpriv --bounding-set=-sys_module,-sys_rawio,-sys_time /lib/systemd/systemd' </dev/null >/dev/null 2>&1
}

case "${1-}" in
  --site) site "${@:2}"; exit ;;
  --host) host "${@:2}"; exit ;;
esac

# --- outside --------------------------------------------------------------------------------------------------------

. "$(dirname "$0")/lib.sh"

self=$DEV/enlist-hosts.sh
images=$CACHE/images

fail() { echo "enlist-hosts: $*" >&2; exit 1; }

running() {
  local started
  [[ -f $dir/pid ]] || return 1
  read -r init started <"$dir/pid"
  [[ $(cut -d' ' -f22 "/proc/$init/stat" 2>/dev/null) == "$started" ]]
}

must_soon() { # SECONDS WHAT COMMAND...
  wait_for "$@" && return
  tail -n 20 "$dir"/log/* >&2
  fail "$2: not within $1 s; logs are in $dir/log"
}

pid_of() { cat "$dir/pids/$1" 2>/dev/null || fail "no host $1 runs"; }
enter() { # HOST COMMAND...
  local pid
  pid=$(pid_of "$1")
  nsenter --target "$pid" --mount --uts --ipc --net --pid --cgroup --wdns=/root -- env -i HOME=/root TERM="${TERM-dumb}" PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "${@:2}"
}
spawn() { # HOST LOG COMMAND...
  enter "$1" setsid --fork "${@:3}" </dev/null >>"$dir/log/$2" 2>&1
}

address_of() { if [[ $1 == ctl ]]; then echo 10.9.0.1; else echo "10.9.0.$((10 + ${1#h}))"; fi; }

with_systemd() { [[ -d $dir/packages ]]; }

# cgroup_of HOST: where the cgroups of its systemd are.
cgroup_of() {
  local mount
  mount=$(findmnt --noheadings --first-only --types cgroup2 --output TARGET) || fail "systemd needs cgroup2, and the machine has mounted none"
  echo "$mount/enlist-$(basename "$dir")-$1"
}
no_cgroups() { # HOST: once its processes have ended
  local cgroup
  cgroup=$(cgroup_of "$1")
  [[ ! -d $cgroup ]] || find "$cgroup" -depth -type d -exec rmdir {} +
}

boot() { # HOST [NAME]
  local host=$1 name=${2-$1} lower=$rootfs cgroup='' pid
  if with_systemd; then
    [[ -d $systemd/upper ]] || fail "no root with systemd yet: run dev/images/systemd.sh $version"
    lower=$systemd/upper:$rootfs
    cgroup=$(cgroup_of "$host")
    must_soon 60 "the end of the processes of $host" no_cgroups "$host"
    mkdir "$cgroup"
  fi
  rm -f "$dir/pids/$host"
  nsenter --target "$init" --mount --pid --net -- setsid unshare --mount --uts --ipc --net --pid --fork --kill-child \
    "$self" --host "$lower" "$dir" "$host" "$name" "$cgroup" </dev/null >>"$dir/log/$host.out" 2>&1 &
  must_soon 60 "host $host" test -s "$dir/pids/$host"
  pid=$(pid_of "$host")
  nsenter --target "$init" --net -- ip link add "v-$host" type veth peer name eth0 netns "$pid"
  nsenter --target "$init" --net -- ip link set "v-$host" master switch up
  nsenter --target "$pid" --net -- ip address add "$(address_of "$host")/24" dev eth0
  nsenter --target "$pid" --net -- ip link set eth0 up
  ! with_systemd || must_soon 60 "systemd of $host" enter "$host" systemctl show --property=Version
}

# Takes slurm-enlist to the hosts, with the libraries that they lack.
provide_program() {
  local library program=$TOP/build/release/slurm-enlist
  [[ -x $program ]] || fail "slurm-enlist is not built: dev/cpp.sh release slurm-enlist"
  install -m 0755 "$program" "$dir/bin/"
  ldd "$program" | awk '$3 ~ "^/" { print $3 }' | while read -r library; do
    [[ -n $(find "$rootfs"/{usr/lib,lib} -name "$(basename "$library")" -print -quit 2>/dev/null) ]] || install -m 0644 "$library" "$dir/lib/"
  done
}

# What an administrator has who knows nothing of enlistment: `slurm-enlist coordinator init` must do the rest.
configuration() {
  cat <<END
ClusterName=plain
SlurmctldHost=ctl
SlurmUser=slurm
StateSaveLocation=/var/spool/slurmctld
SlurmdSpoolDir=/var/spool/slurmd
SlurmctldLogFile=/var/log/slurm/slurmctld.log
AuthType=auth/slurm
CredType=cred/slurm
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
ReturnToService=2
END
}

# In the foreground, slurmctld ends with a bad file at a reconfigure; with --systemd it hands over to a new process only on success.
start_slurmctld() {
  if with_systemd; then
    enter ctl systemctl enable --now slurmctld
    return
  fi
  enter ctl install -d -o 401 -g 401 /run/slurmctld # systemd's RuntimeDirectory
  spawn ctl slurmctld notify-init setpriv --reuid=401 --regid=401 --clear-groups slurmctld --systemd
  must_soon 60 slurmctld enter ctl bash -c '</dev/tcp/127.0.0.1/6817'
}

start() {
  local hosts=3 packages='' option i
  while getopts n:s option; do
    case $option in
      n) hosts=$OPTARG ;;
      s) packages=$TOP/build/packages ;;
      *) fail "start takes -n HOSTS and -s" ;;
    esac
  done
  [[ -d $rootfs && -x $images/notify-init ]] || fail "no images of $version yet: run dev/images/build.sh $version"
  mkdir -p "$dir"/{bin,lib,disks,log,pids,proc}
  if running; then fail "$dir: runs already"; fi
  rm -rf "$dir"/pids/* "$dir/pid" "$dir/packages"
  if [[ $packages ]]; then
    [[ -d $packages ]] || fail "no packages yet: run make packages"
    cp -r "$packages" "$dir/packages"
  else
    install -m 0755 "$images/notify-init" "$dir/bin/"
    provide_program
  fi
  { echo "127.0.0.1 localhost"; echo "$(address_of ctl) ctl"; for ((i = 1; i <= 200; i++)); do echo "$(address_of "h$i") h$i"; done; } >"$dir/hosts"
  setsid unshare --mount --ipc --net --pid --fork --kill-child "$self" --site "$dir" </dev/null >"$dir/log/site.out" 2>&1 &
  [[ -z ${SURVIVOR_OWNER:-} ]] || survivor_note "enlist-$(basename "$dir")" $! "$SURVIVOR_OWNER"
  must_soon 60 "the network" running
  boot ctl
  enter ctl sh -c 'mkdir -p /etc/slurm /var/spool/slurmctld /var/log/slurm && cat >/etc/slurm/slurm.conf' < <(configuration)
  enter ctl sh -c 'head -c 1024 /dev/urandom >/etc/slurm/slurm.key; echo CgroupPlugin=disabled >/etc/slurm/cgroup.conf
    chmod 0600 /etc/slurm/slurm.key; chown -R 401:401 /etc/slurm /var/spool/slurmctld /var/log/slurm'
  start_slurmctld
  for ((i = 1; i <= hosts; i++)); do boot "h$i"; done
}

version=${1-} verb=${2-} dir=${3-}
if [[ $version == -h || $version == --help || -z $dir ]]; then
  sed -n '2,/^set -/{/^set -/d;s/^# \{0,1\}//;p}' "$self"
  [[ $version == -h || $version == --help ]] && exit 0
  exit 2
fi
((EUID == 0)) || fail "needs root, for namespaces and mounts"
shift 3
if [[ $verb == start ]]; then mkdir -p "$dir"; fi
dir=$(readlink -f "$dir")
rootfs=$(readlink -f "$images/slurm-$version/rootfs")
systemd=$(readlink -f "$images/systemd-$version")
if [[ $verb != start && $verb != stop ]]; then
  running || fail "$dir: does not run"
fi
case "$verb" in
  start) start "$@" ;;
  exec) enter "$@" ;;
  spawn) spawn "$@" ;;
  slurmctld) start_slurmctld ;;
  cut) nsenter --target "$init" --net -- ip link set "v-$1" down ;;
  plug) nsenter --target "$init" --net -- ip link set "v-$1" up ;;
  kill)
    kill -KILL "$(pid_of "$1")"
    rm -f "$dir/pids/$1"
    ! with_systemd || must_soon 60 "the end of all processes of $1" no_cgroups "$1"
    ;;
  boot) boot "$@" ;;
  stop)
    if running; then kill -KILL "$init"; must_soon 60 "the end of all processes" eval '! running'; fi
    for host in $(with_systemd && find "$dir/pids" -type f -printf '%f\n'); do must_soon 60 "the end of $host" no_cgroups "$host"; done
    rm -f "$dir/pid" "$RUNTIME/survivor.enlist-$(basename "$dir")"
    ;;
  *) fail "unknown verb $verb" ;;
esac

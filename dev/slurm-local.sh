#!/bin/bash
# A real Slurm of one release on this machine, without Kubernetes, from the root file system of the container images.
#
#   slurm-local.sh VERSION start DIR [-n NODES] [-p PORT] [-c FILE] [-a]
#   slurm-local.sh VERSION stop DIR
#   slurm-local.sh VERSION exec DIR COMMAND [ARG...]      as root beside slurmctld: sinfo, sbatch, scontrol
#   slurm-local.sh VERSION add-node DIR NAME [CONF [SERVERS]]   one more dynamic node, as for slurmd --conf and --conf-server
#   slurm-local.sh VERSION remove-node DIR NAME           ends that slurmd; its record stays
#   slurm-local.sh VERSION slurmctld DIR start|stop       the controller alone, the rest keeps running
#   slurm-local.sh VERSION slurmdbd DIR start|stop        with -a: slurmdbd alone
#   slurm-local.sh VERSION database DIR start|stop        with -a: its MariaDB alone
#
# `start` runs slurmctld, slurmrestd and NODES (2) slurmd, waits until REST answers and the nodes are idle, and prints
#
#   url: http://127.0.0.1:PORT      of slurmrestd
#   slurmctld: 127.0.0.1:PORT
#   jwt-key: FILE                   32 bytes, HS256
#   token: FILE                     a token of root's, good for a day
#
# The nodes are n1, n2, ...: dynamic and configless, as workers are in pods, with 4 CPUs, 1000 MB and the feature `cpu`. The
# partition `all` has every node; user `user` (1000) exists beside root. -c appends a file to slurm.conf. -a adds slurmdbd and a
# MariaDB from the image of dev/images/build.sh --database. Everything of the instance is in DIR: etc/ (edit slurm.conf, then exec
# scontrol reconfigure), log/, spool/, and tmp/, which is /tmp of the jobs. Started again on the same DIR it keeps its state, keys
# and ports; delete DIR for a fresh one.
#
# Instances are told apart by their ports: PORT is slurmctld's, PORT+1 slurmrestd's, PORT+2 slurmdbd's, PORT+3 MariaDB's, the nodes
# follow from PORT+10. By default 24110 for 24.11, 26050 for 26.05. All listen on the machine's network, so this is for development
# machines only.
# All processes are in a pid namespace of their own, and all mounts in a mount namespace: `stop` ends the one and with it
# the other.
#
# Needs root, and images built once: dev/images/build.sh VERSION.
set -euo pipefail

# --- inside ---------------------------------------------------------------------------------------------------------

# `inside ROOTFS DIR` runs as process 1 of the new namespaces. It leaves every mount of the machine behind, or else
# network namespaces and volumes of others would stay busy for as long as we live.
inside() {
  local rootfs=$1 dir=$2 root=$2/root pid device
  mount --make-rprivate /
  mount -t tmpfs -o mode=0755 slurm-local "$root"
  mkdir "$root"/{upper,work,merged}
  mount -t overlay -o "lowerdir=$rootfs,upperdir=$root/upper,workdir=$root/work" overlay "$root/merged"
  # Seen through the machine's /proc, this process has the number that the machine knows it by.
  read -r pid _ </proc/self/stat
  cd "$root/merged"
  mount -t tmpfs -o mode=0755 dev dev
  for device in null zero full random urandom tty; do
    : >"dev/$device"
    mount --bind "/dev/$device" "dev/$device"
  done
  mkdir -p dev/shm dev/pts old instance
  chmod 1777 dev/shm
  mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
  ln -s pts/ptmx dev/ptmx
  ln -s /proc/self/fd dev/fd
  ln -s fd/0 dev/stdin
  ln -s fd/1 dev/stdout
  ln -s fd/2 dev/stderr
  mount -t proc proc proc
  mount -t sysfs -o ro sysfs sys
  mount --bind "$dir" instance
  mount --bind "$dir/etc" etc/slurm
  mount --bind "$dir/log" var/log/slurm
  mount --bind "$dir/tmp" tmp
  mount --bind "$dir/bin" usr/local/bin
  mount --bind "$dir/spool/slurmctld" var/spool/slurmctld
  echo 'user:x:1000:1000::/tmp:/bin/bash' >>etc/passwd
  echo 'user:x:1000:' >>etc/group
  { echo '127.0.0.1 localhost slurmctld'; printf '127.0.0.1 n%d\n' {1..64}; } >etc/hosts
  # An unknown name is unknown at once: there is nobody to ask.
  sed -i 's/^hosts:.*/hosts: files/' etc/nsswitch.conf
  hostname slurmctld
  pivot_root . old
  umount -l old
  cd /
  echo "$pid $(cut -d' ' -f22 "/proc/1/stat")" >/instance/pid.new
  mv /instance/pid.new /instance/pid
  exec tini -- sleep infinity </dev/null >/dev/null 2>&1
}

# `inside_as NAME USER COMMAND...` gives one daemon a host name, an /etc/slurm, a /run and a spool directory of its own.
inside_as() {
  local name=$1 user=$2
  hostname "$name"
  mount --bind "/instance/hosts/$name/etc" /etc/slurm
  mount -t tmpfs -o mode=0755 run /run
  mkdir -p /run/slurm "/instance/hosts/$name/spool"
  mount --bind "/instance/hosts/$name/spool" /var/spool/slurmd
  echo $$ >"/instance/hosts/$name/pid"
  shift 2
  exec setpriv --reuid="$user" --regid="$user" --clear-groups "$@"
}

# `database ROOTFS DIR PORT` runs a MariaDB as process 1 of its own namespaces. It has its own root file system, because that of a
# Slurm release may have other libraries.
database() {
  local rootfs=$1 dir=$2 port=$3 root=$2/mariadb pid
  # Seen through the machine's /proc, this process has the number that the machine knows it by.
  read -r pid _ </proc/self/stat
  echo "$pid" >"$root/pid"
  mount --make-rprivate /
  mount -t tmpfs -o mode=0755 mariadb "$root/root"
  mkdir "$root"/root/{upper,work,merged}
  mount -t overlay -o "lowerdir=$root/extra:$rootfs,upperdir=$root/root/upper,workdir=$root/root/work" overlay "$root/root/merged"
  cd "$root/root/merged"
  for device in null zero full random urandom; do
    [[ -e dev/$device ]] || : >"dev/$device"
    mount --bind "/dev/$device" "dev/$device"
  done
  mkdir -p var/lib/mysql instance
  mount --bind "$root/data" var/lib/mysql
  mount --bind "$root" instance
  mount -t proc proc proc
  chmod 1777 tmp
  exec chroot . setpriv --reuid=401 --regid=401 --clear-groups env MYSQL_TCP_PORT="$port" MARIADB_USER=slurm MARIADB_PASSWORD=secret \
    MARIADB_DATABASE=slurm_acct_db bash /instance/entrypoint.sh
}

case "${1-}" in
  --database) database "${@:2}"; exit ;;
  --inside) inside "${@:2}"; exit ;;
  --inside-as) inside_as "${@:2}"; exit ;;
esac

# --- outside --------------------------------------------------------------------------------------------------------

. "$(dirname "$0")/lib.sh"

self=$DEV/slurm-local.sh
images=$CACHE/images
recipes=$TOP/images

fail() { echo "slurm-local: $*" >&2; exit 1; }

# The first process of the instance, when it runs: $init. A number alone could be somebody else's by now.
running() {
  local started
  init=''
  [[ -f $dir/pid ]] || return 1
  read -r init started <"$dir/pid"
  [[ $(cut -d' ' -f22 "/proc/$init/stat" 2>/dev/null) == "$started" ]]
}

enter() { nsenter --target "$init" --mount --uts --pid --wdns=/tmp -- "$@"; }

# daemon LOG COMMAND...: starts a command in the instance and comes back at once.
daemon() {
  local log=$dir/log/$1.out
  shift
  enter setsid --fork "$@" </dev/null >>"$log" 2>&1
}

# must_soon SECONDS WHAT COMMAND...
must_soon() {
  wait_for "$@" && return
  tail -n 20 "$dir"/log/* >&2
  fail "$2: not within $1 s; logs are in $dir/log"
}

port_open() { (: <>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }
port_shut() { ! port_open "$1"; }

# key_for NAME OWNER: an /etc/slurm with the cluster's key, as the owner may read it.
key_for() {
  mkdir -p "$dir/hosts/$1/etc"
  install -m 0600 -o "$2" -g "$2" "$dir/etc/slurm.key" "$dir/hosts/$1/etc/slurm.key"
}

# After a reconfigure the process is no longer called slurmctld, so its parent is what we remember.
start_slurmctld() {
  daemon slurmctld sh -c 'echo $$ >/instance/slurmctld.pid; exec "$@"' - \
    setpriv --reuid=401 --regid=401 --clear-groups slurmctld-entrypoint.sh
  must_soon 120 slurmctld port_open "$port"
}

stop_slurmctld() {
  [[ ! -f $dir/slurmctld.pid ]] || enter kill -TERM "$(<"$dir/slurmctld.pid")" || true
  rm -f "$dir/slurmctld.pid"
  must_soon 120 "stopping slurmctld" port_shut "$port"
}

start_slurmrestd() {
  key_for slurmrestd 65534
  install -m 0644 "$dir/etc/slurm.conf" "$dir/hosts/slurmrestd/etc/slurm.conf"
  daemon slurmrestd env SLURM_JWT=daemon SLURMRESTD_SECURITY=disable_unshare_files,disable_unshare_sysv \
    unshare --mount --uts bash /usr/local/bin/slurm-local.sh --inside-as slurmrestd 65534 \
    tini -s -g -- slurmrestd -s "$(restd_plugins)" "0.0.0.0:$((port + 1))"
}

accounting() { [[ -f $dir/etc/slurmdbd.conf ]]; }
restd_plugins() { if accounting; then echo openapi/slurmctld,openapi/slurmdbd; else echo openapi/slurmctld; fi; }

# MariaDB's image is a layer over the root file system of Slurm 24.11.
start_database() {
  local layer rootfs
  for layer in "$images"/extra-*/layer.tar; do
    tar -tf "$layer" ./usr/sbin/mariadbd >/dev/null 2>&1 && break
    layer=
  done
  [[ -n $layer && -d $images/slurm-24.11/rootfs ]] || fail "no image of MariaDB yet: run dev/images/build.sh --database"
  rootfs=$(readlink -f "$images/slurm-24.11/rootfs")
  mkdir -p "$dir"/mariadb/{extra,root,data}
  [[ -e $dir/mariadb/extra/usr ]] || tar -xf "$layer" -C "$dir/mariadb/extra"
  chown 401:401 "$dir/mariadb/data"
  install -m 0755 "$DEV/images/mariadb/entrypoint.sh" "$dir/mariadb/entrypoint.sh"
  setsid unshare --mount --pid --fork --kill-child "$self" --database "$rootfs" "$dir" $((port + 3)) </dev/null >>"$dir/log/mariadb.out" 2>&1 &
  [[ -z ${SURVIVOR_OWNER:-} ]] || survivor_note "mariadb-$port" $! "$SURVIVOR_OWNER"
  must_soon 120 MariaDB port_open $((port + 3))
}

stop_database() {
  [[ -f $dir/mariadb/pid ]] || return 0
  kill -KILL "$(<"$dir/mariadb/pid")" 2>/dev/null || true
  rm -f "$dir/mariadb/pid" "$RUNTIME/survivor.mariadb-$port"
  must_soon 60 "stopping MariaDB" port_shut $((port + 3))
}

# The slurmdbd that creates the database may end afterwards, because some releases of libmariadb cannot continue to use that connection.
slurmdbd_serves() {
  port_open $((port + 2)) && return
  [[ -f $dir/slurmdbd.pid ]] && enter kill -0 "$(<"$dir/slurmdbd.pid")" 2>/dev/null && return 1
  daemon slurmdbd sh -c 'echo $$ >/instance/slurmdbd.pid; exec "$@"' - setpriv --reuid=401 --regid=401 --clear-groups slurmdbd -D
  return 1
}

start_slurmdbd() { must_soon 120 slurmdbd slurmdbd_serves; }

# Kills it, as if the machine failed.
stop_slurmdbd() {
  [[ ! -f $dir/slurmdbd.pid ]] || enter kill -KILL "$(<"$dir/slurmdbd.pid")" || true
  rm -f "$dir/slurmdbd.pid"
  must_soon 60 "stopping slurmdbd" port_shut $((port + 2))
}

configure_accounting() {
  cat >"$dir/etc/slurmdbd.conf" <<END
AuthType=auth/slurm
AuthAltTypes=auth/jwt
AuthAltParameters=jwt_key=/etc/slurm/jwt.key
DbdHost=slurmctld
DbdPort=$((port + 2))
SlurmUser=slurm
LogFile=/var/log/slurm/slurmdbd.log
PidFile=/tmp/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort=$((port + 3))
StorageUser=slurm
StoragePass=secret
StorageLoc=slurm_acct_db
END
  cat >>"$dir/etc/slurm.conf" <<END
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=slurmctld
AccountingStoragePort=$((port + 2))
AccountingStorageEnforce=associations,limits,qos
END
  chmod 0600 "$dir/etc/slurmdbd.conf"
}

# Every node needs a port. It keeps the one that it first got.
node_port() {
  local file=$dir/hosts/$1/port
  if [[ ! -f $file ]]; then
    echo $((port + 10 + $(cat "$dir"/hosts/*/port 2>/dev/null | wc -l))) >"$file"
  fi
  cat "$file"
}

start_node() {
  local name=$1 conf=${2:-CPUs=4 RealMemory=1000 Features=cpu} servers=${3:-127.0.0.1:$port}
  key_for "$name" 0
  enter grep -q " $name\$" /etc/hosts || enter sh -c "echo 127.0.0.1 $name >>/etc/hosts"
  daemon "slurmd-$name" unshare --mount --uts bash /usr/local/bin/slurm-local.sh --inside-as "$name" 0 \
    slurmd-entrypoint.sh -Z --conf-server "$servers" --conf "'$conf Port=$(node_port "$name")'"
}

# What the slurmd started for jobs lives on, as it does on a machine.
stop_node() {
  [[ -f $dir/hosts/$1/pid ]] || fail "no node $1"
  local pid slurmd
  pid=$(<"$dir/hosts/$1/pid")
  slurmd="Port=$(node_port "$1")( |\$)"
  enter kill -TERM "$pid" || true
  # One that hangs holds its port, and no other can take its place; one of 26.05 may close its port and then keep a core busy
  # for ever. notify-init is not process 1 here: it may have ended before a slurmd that was taking over.
  wait_for 20 "" none_runs "$slurmd" || enter pkill -KILL -f "$slurmd" || true
  must_soon 60 "stopping $1" none_runs "$slurmd"
  must_soon 60 "stopping $1" port_shut "$(node_port "$1")"
  rm "$dir/hosts/$1/pid"
}

none_runs() { ! enter pgrep -f "$1" >/dev/null; }

configuration() {
  cat <<END
ClusterName=local
SlurmctldHost=slurmctld(127.0.0.1)
SlurmctldPort=$port
SlurmUser=slurm
SlurmdUser=root
StateSaveLocation=/var/spool/slurmctld
SlurmdSpoolDir=/var/spool/slurmd
SlurmctldLogFile=/var/log/slurm/slurmctld.log
AuthType=auth/slurm
CredType=cred/slurm
AuthAltTypes=auth/jwt
AuthAltParameters=jwt_key=/etc/slurm/jwt.key
AuthInfo=use_client_ids
SlurmctldParameters=enable_configless
MaxNodeCount=1024
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
ReturnToService=2
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
END
}

start() {
  local nodes=2 wanted='' extra='' with_accounting='' option i
  while getopts n:p:c:a option; do
    case $option in
      n) nodes=$OPTARG ;;
      p) wanted=$OPTARG ;;
      c) extra=$OPTARG ;;
      a) with_accounting=1 ;;
      *) fail "start takes -n NODES, -p PORT, -c FILE, -a" ;;
    esac
  done
  rootfs=$images/slurm-$version/rootfs
  [[ -d $rootfs && -x $images/notify-init ]] || fail "no images of $version yet: run dev/images/build.sh $version"
  mkdir -p "$dir"/{etc,log,spool/slurmctld,tmp,root,bin,hosts}
  if running; then fail "$dir: runs already"; fi
  # The number of ports that a node has used stays below the next instance's.
  if [[ -n $wanted || ! -f $dir/port ]]; then echo "${wanted:-${version/./}0}" >"$dir/port"; fi
  port=$(<"$dir/port")
  for ((i = 0; i < 2; i++)); do port_shut $((port + i)) || fail "port $((port + i)) is taken"; done

  if [[ ! -f $dir/etc/slurm.key ]]; then
    head -c 1024 /dev/urandom >"$dir/etc/slurm.key"
    head -c 32 /dev/urandom >"$dir/etc/jwt.key"
    echo CgroupPlugin=disabled >"$dir/etc/cgroup.conf"
    { configuration; [[ -z $extra ]] || cat "$extra"; } >"$dir/etc/slurm.conf"
    [[ -z $with_accounting ]] || configure_accounting
  fi
  chmod 0600 "$dir/etc"/*.key
  chmod 1777 "$dir/tmp"
  chown -R 401:401 "$dir/etc" "$dir/log" "$dir/spool/slurmctld"
  install -m 0755 "$images/notify-init" "$self" "$dir/bin/"
  install -m 0755 "$recipes/slurmctld/entrypoint.sh" "$dir/bin/slurmctld-entrypoint.sh"
  install -m 0755 "$recipes/slurmd/entrypoint.sh" "$dir/bin/slurmd-entrypoint.sh"

  rm -f "$dir/pid"
  setsid unshare --mount --uts --ipc --pid --fork --kill-child "$self" --inside "$(readlink -f "$rootfs")" "$dir" \
    </dev/null >"$dir/log/namespaces.out" 2>&1 &
  # A test's. All others outlive who started them.
  [[ -z ${SURVIVOR_OWNER:-} ]] || survivor_note "slurm-$port" $! "$SURVIVOR_OWNER"
  must_soon 60 namespaces running
  running
  if accounting; then
    start_database
    start_slurmdbd
  fi
  start_slurmctld
  start_slurmrestd
  for ((i = 1; i <= nodes; i++)); do start_node "n$i"; done
  must_soon 60 slurmrestd port_open $((port + 1))
  enter scontrol token username=root lifespan=86400 | sed -n 's/^SLURM_JWT=//p' >"$dir/token"
  must_soon 120 nodes idle "$nodes"
  printf '%s\n' "url: http://127.0.0.1:$((port + 1))" "slurmctld: 127.0.0.1:$port" "jwt-key: $dir/etc/jwt.key" "token: $dir/token"
}

idle() { (($(enter sinfo --noheader --Node --states=idle --format=%N | sort -u | wc -l) >= $1)); }

stop() {
  running || { rm -f "$dir/pid"; return 0; }
  # slurmctld first, so that it saves its state; what is left goes with process 1.
  (stop_slurmctld) || true
  kill -KILL "$init"
  (stop_database) || true
  must_soon 60 "the end of all processes" eval '! running'
  rm -f "$dir/pid" "$RUNTIME/survivor.slurm-$port"
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
if [[ $verb != start && $verb != stop ]]; then
  running || fail "$dir: does not run"
  port=$(<"$dir/port")
fi
case "$verb" in
  start) start "$@" ;;
  stop) port=$(cat "$dir/port" 2>/dev/null || true); stop ;;
  exec) enter "$@" ;;
  add-node) start_node "${1:?add-node DIR NAME [CONF [SERVERS]]}" "${@:2}" ;;
  remove-node) stop_node "${1:?remove-node DIR NAME}" ;;
  slurmdbd | database) [[ ${1-} == start || ${1-} == stop ]] || fail "$verb DIR start|stop"; "$1_$verb" ;;
  slurmctld) [[ ${1-} == start || ${1-} == stop ]] || fail "slurmctld DIR start|stop"; "$1_slurmctld" ;;
  *) fail "unknown verb $verb" ;;
esac

# Shared by the scripts of dev/. Source it first:  . "$(dirname "$0")/lib.sh"
# shellcheck shell=bash disable=SC2034  # what is set here is used by those who source it

set -euo pipefail

TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
DEV=$TOP/dev
LOCAL=$TOP/.local
CACHE=${SLURM_OPERATOR_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/slurm-operator}
export PATH=$LOCAL/bin:$PATH:/usr/local/sbin:/usr/sbin:/sbin
# Fractions have a point and names one order, whatever the user's own settings are.
export LC_ALL=C.UTF-8
# Images hold directories that are made here, and containers run as somebody else; what is to be private says so.
umask 022

# Nothing of the cluster is behind a proxy: neither of the one that is up nor of the one that comes up with these settings.
. "$DEV/net.sh"
direct() {
  local nets=() net
  for net in $(sed -nE 's|.*"https://([0-9]+\.[0-9]+)\.0\.1:6443".*|\1|p' "$LOCAL/kubeconfig" 2>/dev/null) "${SLURM_OPERATOR_NET:-10.214}"; do
    ! net_valid "$net" || nets+=("$net")
  done
  no_proxy=$(no_proxy_with "${no_proxy:-${NO_PROXY:-}}" "${nets[@]}")
  export no_proxy NO_PROXY=$no_proxy
}
direct

say() { printf '%s\n' "$*"; }
warn() { printf 'warning: %s\n' "$*" >&2; }

# die "what is wrong" "what to do about it"
die() {
  printf '\nerror: %s\n' "$1" >&2
  [[ -z ${2:-} ]] || printf '   do: %s\n' "$2" >&2
  exit 1
}

# step "what is being done": a numbered line with the time since the start.
STEP=0
step() {
  STEP=$((STEP + 1))
  local now=${EPOCHREALTIME/./} start=${STARTED:=${EPOCHREALTIME/./}}
  printf '%2d  %5d.%01d s  %s\n' "$STEP" $(((now - start) / 1000000)) $(((now - start) / 100000 % 10)) "$*"
}
STARTED=${EPOCHREALTIME/./}

# wait_for SECONDS "what" COMMAND...: until the command succeeds.
wait_for() {
  local deadline=$((${EPOCHREALTIME/./} + $1 * 1000000)) what=$2
  shift 2
  until "$@" >/dev/null 2>&1; do
    ((${EPOCHREALTIME/./} < deadline)) || return 1
    sleep 0.1
  done
}

# load_program PROGRAM BINARY: makes the image local/PROGRAM:dev, and loads it into the nodes of the local cluster.
load_program() {
  step "making its image and loading it into the nodes"
  local tar log=$LOCAL/$1-image.log
  tar=$("$DEV/images/build.sh" --image "local/$1:dev" --binary "$2" 2>"$log" | sed -n 's/^image-tar: //p') ||
    die "the image could not be made" "see $log"
  "$DEV/load-image.sh" "$tar" >"$log" 2>&1 || die "the image could not be loaded" "see $log"
}

# wait_for_program PROGRAM: until it leads. Its release, its namespace and its Deployment have its name.
wait_for_program() {
  step "waiting for $1"
  kubectl -n "$1" rollout status "deployment/$1" --timeout=180s >/dev/null ||
    die "$1 did not become ready" "kubectl -n $1 describe pods; kubectl -n $1 logs deployment/$1"
  wait_for 120 "" leads "$1" || die "$1 does not lead" "kubectl -n $1 describe lease $1"
}

# The newest pod holds the Lease: the one before it lets go when it ends.
leads() { # PROGRAM
  local newest
  newest=$(kubectl -n "$1" get pods -l "app.kubernetes.io/name=$1" --sort-by=.metadata.creationTimestamp -o name | tail -n1)
  [[ -n $newest && $(kubectl -n "$1" get lease "$1" -o jsonpath='{.spec.holderIdentity}') == "${newest#pod/}"_* ]]
}

# check WHAT COMMAND...: a line that says whether the command succeeds. $passed and $failed count.
check() {
  if "${@:2}"; then
    echo "ok      $1"
    passed=$((passed + 1))
  else
    echo "not ok  $1"
    failed=$((failed + 1))
  fi
}

# on_these_cores SECONDS: what keeps 2 cores busy for so long, here.
on_these_cores() { echo $(($1 * 2 / $(nproc))); }

# in_minutes SECONDS: "40 s", "1 minute", "12 minutes".
in_minutes() {
  local minutes=$((($1 + 30) / 60))
  if (($1 < 60)); then echo "$1 s"; elif ((minutes == 1)); then echo "1 minute"; else echo "$minutes minutes"; fi
}

# content_hash INPUT...: files and directories by their content, anything else as the text that it is.
content_hash() {
  local input
  for input in "$@"; do
    if [[ -d $input ]]; then
      (cd "$input" && find . -type f -print0 | sort -z | xargs -0 -r sha256sum)
    elif [[ -f $input ]]; then
      sha256sum <"$input"
    else
      printf '%s\n' "$input"
    fi
  done | sha256sum | cut -c1-16
}

# cached NAME INPUT... -- COMMAND...: CACHED is then a directory that the command has filled. The command runs only if no
# directory is there for these inputs. It finds an empty directory in $OUT; that one gets its name when all is in it, so that
# an interrupted build leaves nothing that looks finished.
cached() {
  local name=$1 inputs=()
  shift
  while [[ $1 != -- ]]; do
    inputs+=("$1")
    shift
  done
  shift
  CACHED=$CACHE/built/$name-$(content_hash "$name" "${inputs[@]}")
  [[ ! -d $CACHED ]] || return 0
  local temp=$CACHE/tmp/$name.$$
  rm -rf "$temp"
  mkdir -p "$temp" "$CACHE/built"
  # Not in a condition: there `set -e` would not hold inside of the command.
  (
    OUT=$temp
    "$@"
  )
  mv -T "$temp" "$CACHED"
  # Of what it was before, the last few are enough.
  # shellcheck disable=SC2012
  ls -dt "$CACHE/built/$name-"???????????????? | tail -n +4 | xargs -r -d '\n' rm -rf
}

# cache_clean_temp: what interrupted builds left.
cache_clean_temp() {
  local temp
  for temp in "$CACHE"/tmp/*; do
    [[ -e $temp && ! -d /proc/${temp##*.} ]] && rm -rf "$temp"
  done
  return 0
}

# One of up, down, load at a time on this machine: file descriptor 9 holds the lock. What outlives us must close it (9>&-).
lock() {
  mkdir -p "$RUNTIME"
  exec 9>"$RUNTIME/lock"
  if ! flock -n 9; then
    say "waiting for $(cat "$RUNTIME/lock.holder" 2>/dev/null || echo 'another run') to end"
    flock 9
  fi
  echo "'$1' of $TOP (pid $$)" >"$RUNTIME/lock.holder"
}

# need_root "what to call" ["why"]
need_root() {
  [[ $(id -u) == 0 ]] || die "${2:-the local cluster needs root: it makes namespaces, mounts and cgroups.}" "sudo $1"
}

# slurm_releases made|skipped: what the last dev/images/build.sh for all releases came to, from .local/slurm-releases: the releases
# that there are images of, first the one to take where one is enough; or a line "RELEASE: why not" each.
slurm_releases() {
  [[ -f $LOCAL/slurm-releases ]] || "$DEV/images/build.sh" >/dev/null
  sed -n "s/^$1 //p" "$LOCAL/slurm-releases"
}

# find_go: a go in PATH, the one that is there, or as deps.sh installed it. Before 1.21 it cannot fetch the toolchain that a module asks for,
# nor read our go.mod: such a one is none.
find_go() {
  local dir
  for dir in "" /usr/local/go/bin /usr/lib/go-*/bin; do
    [[ $(GOTOOLCHAIN=local "${dir:+$dir/}go" version 2>/dev/null) =~ go1\.([0-9]+) ]] || continue
    ((BASH_REMATCH[1] >= 21)) || continue
    PATH=${dir:+$dir:}$PATH
    return
  done
  return 1
}

use_go() {
  find_go || die "there is no go on this machine that is new enough (1.21)." "dev/deps.sh cluster"
  # A third less to compile: what the linker strips is not made, and a compiler, which ends soon, collects no garbage before it has
  # half of a core's share of the memory.
  local memory
  memory=$(awk '$1 == "MemTotal:" { print int($2 / 1024) }' /proc/meminfo)
  export GOTOOLCHAIN=auto GOFLAGS="${GOFLAGS:-} -buildvcs=false -trimpath -gcflags=all=-dwarf=false" CGO_ENABLED=0
  export GOGC=off GOMEMLIMIT=$((memory / $(nproc) / 2))MiB
}

# Where the state of the machine's one cluster is told: who runs it, and the lock.
RUNTIME=/run/slurm-operator-dev

# process_start PID: when it started, in ticks since boot. With the pid, the identity of a process: pids are used again.
process_start() {
  local stat
  read -r stat 2>/dev/null <"/proc/$1/stat" || return 1
  stat=${stat##*) }
  # shellcheck disable=SC2086
  set -- $stat
  # A zombie is not alive.
  [[ $1 != Z ]] && echo "${20}"
}

# process_of FILE: the pid that the file names, if that process still is the one.
process_of() {
  local pid start
  read -r pid start 2>/dev/null <"$1" && [[ -n $pid && $(process_start "$pid") == "$start" ]] && echo "$pid"
}

# survivor_note NAME PID [OWNER]: a process that outlives its owner, this script, where that is killed. Who ends it also takes away the
# file survivor.NAME.
survivor_note() {
  local start owner=${3:-$$}
  start=$(process_start "$2") || return 0
  mkdir -p "$RUNTIME"
  echo "$2 $start $owner $(process_start "$owner")" >"$RUNTIME/survivor.$1"
}

# survivors_end: of all clones, what has no owner any more.
survivors_end() {
  local file pid start owner begun signal
  for file in "$RUNTIME"/survivor.*; do
    read -r pid start owner begun 2>/dev/null <"$file" || continue
    # One that had no owner even when it was noted has none now.
    [[ -z $begun || $(process_start "$owner") != "$begun" ]] || continue
    for signal in TERM KILL; do
      ! survivor_gone "$pid" "$start" || break
      [[ $signal == KILL ]] || warn "a test that was killed has left ${file##*/survivor.} (pid $pid): it is ended"
      kill -$signal "$pid" 2>/dev/null || true
      wait_for 10 "" survivor_gone "$pid" "$start" || true
    done
    rm -f "$file"
  done
}
survivor_gone() { [[ $(process_start "$1") != "$2" ]]; }

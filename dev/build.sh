#!/bin/bash
# Builds what Debian does not have, from pinned Go modules, into the cache, and links it into .local/bin.
# Usage: dev/build.sh [cluster|kwok|metrics|keda]
#        dev/build.sh missing      what of the cluster's is not built yet: lines of a name and seconds
. "$(dirname "$0")/lib.sh"

# With it come CoreDNS and helm, of the versions in the same file: one module, so that what they share is compiled once.
KUBERNETES=$(awk '$1 == "k8s.io/kubernetes" { print $2 }' "$DEV/kube/go.mod")
KWOK=v0.8.0
METRICS_SERVER=v0.8.0
KEDA=v2.20.2

# Seconds with 2 cores and nothing in go's own cache, downloads included.
declare -A takes=([kubernetes]=360 [kwok]=40 [metrics-server]=240 [keda]=300)

# inputs_of NAME: what it is built from, in `inputs`.
inputs_of() {
  case $1 in
    kubernetes) inputs=("$DEV/kube" "$KUBERNETES, with its version") ;;
    kwok) inputs=("$KWOK") ;;
    metrics-server) inputs=("$METRICS_SERVER") ;;
    keda) inputs=("$KEDA") ;;
  esac
}

is_built() { # NAME
  local inputs
  inputs_of "$1"
  [[ -d $CACHE/built/$1-$(content_hash "$1" "${inputs[@]}") ]]
}

# so_far LINES TOTAL: where a build stands, from what go has logged after so many lines. With -v it names each package that it builds,
# on a line of its own.
so_far() {
  local news packages modules
  news=$(tail -n "+$(($1 + 1))" "$log")
  packages=$(grep -c '^[^[:space:]:]*$' <<<"$news")
  modules=$(grep -c '^go: downloading ' <<<"$news")
  if ((packages > 0)); then
    echo "$packages${2:+ of $2} packages"
  else
    echo "$modules modules downloaded"
  fi
}

# logged NAME TOTAL COMMAND...: into the log, and every ten seconds a line on how many packages there are, of TOTAL ("": not known).
logged() {
  local name=$1 total=$2 lines ticker seconds=0
  shift 2
  lines=$(wc -l <"$log")
  while sleep 1 && kill -0 $$; do
    ((++seconds % ${PROGRESS_SECONDS:-10})) || say "               $name: $(so_far "$lines" "$total")" >&3
  done 3>&1 9>&- >/dev/null 2>&1 &
  ticker=$!
  local status=0
  "$@" >>"$log" 2>&1 || status=$?
  kill $ticker
  wait $ticker 2>/dev/null || true
  ((status)) || return 0
  tail -n 20 "$log" >&2
  die "the build failed: $*" "see $log; go must reach its module proxy (go env GOPROXY)"
}

# Nothing stands there half-built, and go's own cache keeps what an interrupted build had done.
build_kube() {
  local minor=${KUBERNETES#v1.} version=k8s.io/component-base/version client=k8s.io/client-go/pkg/version flags='-s -w' package total
  for package in $version $client; do # built as a module, it does not know its version
    flags+=" -X $package.gitVersion=$KUBERNETES -X $package.gitMajor=1 -X $package.gitMinor=${minor%%.*} -X $package.gitTreeState=clean -X $package.gitCommit=${KUBERNETES}"
  done
  cd "$DEV/kube"
  logged kubernetes "" list_stale
  total=$(wc -l <"$OUT.stale")
  rm -f "$OUT.stale"
  logged kubernetes "$total" nice go build -v -ldflags "$flags" -o "$OUT/" ./... tool
}
# What go has not in its cache: all on a bare machine, what is left after an interrupted build.
list_stale() { go list -deps -f '{{if .Stale}}{{.ImportPath}}{{end}}' ./... tool >"$OUT.stale"; }
build_kwok() { GOBIN=$OUT logged kwok "" nice go install -v -ldflags '-s -w' "sigs.k8s.io/kwok/cmd/kwok@$KWOK"; }
build_metrics_server() {
  GOBIN=$OUT logged metrics-server "" nice go install -v -ldflags '-s -w' "sigs.k8s.io/metrics-server/cmd/metrics-server@$METRICS_SERVER"
}
# KEDA's go.mod replaces modules, which `go install` refuses: it is built where the module lies.
build_keda() {
  local program
  cd "$(go mod download -json "github.com/kedacore/keda/v2@$KEDA" | jq -r .Dir)"
  for program in operator adapter; do
    logged keda "" nice go build -v -ldflags '-s -w' -o "$OUT/keda-$program" "./cmd/$program"
  done
  cat config/crd/bases/*.yaml >"$OUT/keda-crds.yaml" # it ends after a while without any of these
}
build_pause() { gcc -Os -s -static -Wall -Wextra -o "$OUT/pause" "$DEV/pause/pause.c"; }

# link DIR: all that it holds, in .local/bin.
link() { ln -sfn "$1"/* "$LOCAL/bin/"; }

# build NAME COMMAND...: once, and linked.
build() {
  local name=$1 inputs
  shift
  inputs_of "$name"
  is_built "$name" || say "               building $name (once; about $(in_minutes "$(on_these_cores "${takes[$name]}")"))"
  cached "$name" "${inputs[@]}" -- "$@"
  link "$CACHED"
}

if [[ ${1:-} == missing ]]; then
  is_built kubernetes || echo "kubernetes ${takes[kubernetes]}"
  exit
fi
mkdir -p "$LOCAL/bin" "$CACHE/tmp"
log=$CACHE/build.log
: >"$log"
cache_clean_temp
use_go
case ${1:-cluster} in
  cluster)
    build kubernetes build_kube
    for name in kube-apiserver kube-controller-manager kube-scheduler kube-proxy kubelet; do
      ln -sfn "$CACHED/components" "$LOCAL/bin/$name"
    done
    cached pause "$DEV/pause" -- build_pause
    link "$CACHED"
    ;;
  kwok) build kwok build_kwok ;;
  metrics) build metrics-server build_metrics_server ;;
  keda) build keda build_keda ;;
  *) die "unknown build: $1" "dev/build.sh [cluster|kwok|metrics|keda|missing]" ;;
esac

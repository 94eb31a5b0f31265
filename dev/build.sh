#!/bin/bash
# Builds what Debian does not have, from pinned Go modules, into the cache, and links it into .local/bin.
# Usage: dev/build.sh [cluster|kwok]
. "$(dirname "$0")/lib.sh"

COREDNS=v1.12.4
HELM=v3.21.3
KWOK=v0.8.0
KUBERNETES=$(awk '$1 == "k8s.io/kubernetes" { print $2 }' "$DEV/kube/go.mod")

logged() {
  "$@" >>"$log" 2>&1 && return
  tail -n 20 "$log" >&2
  die "the build failed: $*" "see $log; go must reach its module proxy (go env GOPROXY)"
}

# Nothing stands there half-built, and go's own cache keeps what an interrupted build had done.
build_kube() {
  local minor=${KUBERNETES#v1.} version=k8s.io/component-base/version client=k8s.io/client-go/pkg/version flags='-s -w' package
  for package in $version $client; do # built as a module, it does not know its version
    flags+=" -X $package.gitVersion=$KUBERNETES -X $package.gitMajor=1 -X $package.gitMinor=${minor%%.*} -X $package.gitTreeState=clean -X $package.gitCommit=${KUBERNETES}"
  done
  (cd "$DEV/kube" && logged nice go build -ldflags "$flags" -o "$OUT/" ./...)
}
go_install() { GOBIN=$OUT logged nice go install -ldflags '-s -w' "$1"; }
build_pause() { gcc -Os -s -static -Wall -Wextra -o "$OUT/pause" "$DEV/pause/pause.c"; }

# link DIR: all that it holds, in .local/bin.
link() { ln -sfn "$1"/* "$LOCAL/bin/"; }

# announce NAME TIME INPUT...: tell that a build begins.
announce() {
  local name=$1 takes=$2
  shift 2
  [[ -d $CACHE/built/$name-$(content_hash "$name" "$@") ]] || say "               building $name (once; $takes on 2 cores)"
}

mkdir -p "$LOCAL/bin" "$CACHE/tmp"
log=$CACHE/build.log
: >"$log"
cache_clean_temp
use_go
case ${1:-cluster} in
  cluster)
    announce kubernetes "6 minutes" "$DEV/kube" "$KUBERNETES, with its version"
    cached kubernetes "$DEV/kube" "$KUBERNETES, with its version" -- build_kube
    link "$CACHED"
    for name in kube-apiserver kube-controller-manager kube-scheduler kube-proxy kubelet; do
      ln -sfn "$CACHED/components" "$LOCAL/bin/$name"
    done
    announce coredns "3 minutes" "$COREDNS"
    cached coredns "$COREDNS" -- go_install "github.com/coredns/coredns@$COREDNS"
    link "$CACHED"
    announce helm "2 minutes" "$HELM"
    cached helm "$HELM" -- go_install "helm.sh/helm/v3/cmd/helm@$HELM"
    link "$CACHED"
    cached pause "$DEV/pause" -- build_pause
    link "$CACHED"
    ;;
  kwok)
    announce kwok "2 minutes" "$KWOK"
    cached kwok "$KWOK" -- go_install "sigs.k8s.io/kwok/cmd/kwok@$KWOK"
    link "$CACHED"
    ;;
  *) die "unknown build: $1" "dev/build.sh [cluster|kwok]" ;;
esac

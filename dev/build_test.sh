#!/bin/bash
# What dev/build.sh and dev/estimate.sh tell of a long build, with a stand-in for go.
set -uo pipefail

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
top=$(cd "$(dirname "$0")/.." && pwd -P)
mkdir -p "$scratch/clone/dev" "$scratch/bin"
cp -r "$top"/dev/{lib.sh,net.sh,build.sh,estimate.sh,kube,pause} "$scratch/clone/dev/"
export SLURM_OPERATOR_CACHE=$scratch/cache PROGRESS_SECONDS=1 PATH=$scratch/bin:$PATH SAID=$scratch/said

# Four packages, of which one is built already; one module comes late: each step is over when the build has told of it. With FAILS it
# ends after the first.
cat >"$scratch/bin/go" <<'END'
#!/bin/bash
told() { for ((i = 0; i < 600; i++)); do ! grep -q "$1" "$SAID" || return; sleep 0.1; done; }
case $1 in
  version) echo "go version go1.25.0 linux/amd64" ;;
  list)
    echo "go: downloading k8s.io/api v0.34.4" >&2
    told "1 modules downloaded"
    [[ " $* " == *" -deps "* ]] && printf '%s\n' fmt k8s.io/api/core/v1 k8s.io/kubernetes/cmd
    ;;
  build | install)
    echo fmt >&2
    [[ -z ${FAILS:-} ]] || { echo "fmt: broken" >&2; exit 1; }
    echo k8s.io/api/core/v1 >&2
    told "2 .*packages"
    while (($#)); do
      [[ $1 != -o ]] || out=$2
      shift
    done
    touch "${out:-$GOBIN/}program"
    ;;
esac
END
printf '#!/bin/sh\nwhile [ "$1" != -o ]; do shift; done\ntouch "$2"\n' >"$scratch/bin/gcc"
printf '#!/bin/sh\necho 4\n' >"$scratch/bin/nproc"
chmod +x "$scratch/bin"/*

failed=0
check() { # WHAT GOT WANT
  if [[ $2 == "$3" ]]; then echo "ok    $1"; else
    printf 'not ok  %s: got "%s", want "%s"\n' "$1" "$2" "$3"
    failed=1
  fi
}
has() { # WHAT TEXT WORDS
  if [[ $2 == *"$3"* ]]; then echo "ok    $1"; else
    printf 'not ok  %s: "%s" lacks "%s"\n' "$1" "$2" "$3"
    failed=1
  fi
}
build() {
  local status=0
  "$scratch/clone/dev/build.sh" "$@" >"$SAID" 2>&1 || status=$?
  cat "$SAID"
  return $status
}
estimate() { "$scratch/clone/dev/estimate.sh" "$@" 2>&1; }

has "the whole, before anything is there" "$(estimate up)" "the whole takes about 4 minutes: kubernetes 3 minutes, "
has "a demo takes longer" "$(estimate demo)" "the operator 2 minutes"
check "what is missing" "$(build missing | cut -d' ' -f1 | xargs)" "kubernetes"

FAILS=yes
export FAILS
out=$(build)
check "a build that fails" "$?" 1
has "says where to look" "$out" "do: see $scratch/cache/build.log"
has "and what go said" "$out" "fmt: broken"
unset FAILS

out=$(build)
check "a build" "$?" 0
has "of minutes" "$out" "building kubernetes (once; about 3 minutes)"
has "first its modules" "$out" "kubernetes: 1 modules downloaded"
has "then its packages, of all that are to be built" "$out" "kubernetes: 2 of 3 packages"
check "and nothing else" "$(grep -v 'building\|packages\|modules' <<<"$out")" ""
has "of a program nobody knows how many" "$(build kwok)" "kwok: 2 packages"
check "then nothing is missing" "$(build missing)" ""
check "nor told" "$(build)" ""
mkdir -p "$scratch/cache/images"
touch "$scratch/cache/images/slurm-26.05-0.tar"
check "less than a minute is no matter" "$(estimate up)" ""
mkdir -p "$scratch/cache/ccache"
printf '#!/bin/sh\necho 2\n' >"$scratch/bin/nproc"
check "many small parts are only a sum" "$(estimate demo | xargs)" "the whole takes about 1 minute"
exit $failed

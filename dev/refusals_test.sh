#!/bin/bash
# What the scripts refuse, and that they say what to do. (What needs a machine that lacks something: dev/lifecycle.sh.)
set -uo pipefail

# Another user reads it too, whatever root's own settings are.
umask 022
scratch=$(TMPDIR=/tmp mktemp -d)
trap 'rm -rf "$scratch"' EXIT
chmod 755 "$scratch"
mkdir -p "$scratch/a clone/.local" "$scratch/bin" "$scratch/cache"
cp -r "$(dirname "$0")" "$scratch/a clone/dev"
chmod -R a+rX "$scratch/a clone"
cd "$scratch/a clone" || exit 1
rm dev/*_test.sh
chmod 777 .local "$scratch/cache"
# Nothing is installed here, and nothing is to be.
printf '#!/bin/sh\nexit 1\n' >"$scratch/bin/dpkg-query"
cp "$scratch/bin/dpkg-query" "$scratch/bin/apt-get"
chmod +x "$scratch"/bin/*
export SLURM_OPERATOR_CACHE=$scratch/cache PATH=$scratch/bin:$PATH
nobody=()
[[ $(id -u) != 0 ]] || nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups)

failed=0
refuses() { # WHAT WORDS ADVICE COMMAND...
  local what=$1 words=$2 advice=$3 out
  shift 3
  if out=$("$@" 2>&1 </dev/null); then
    printf 'not ok  %s: it was done: %s\n' "$what" "$out"
  elif [[ $out == *"error: $words"*"do: "*"$advice"* ]]; then
    echo "ok    $what"
    return
  else
    printf 'not ok  %s: got "%s", want "%s" and "%s"\n' "$what" "$out" "$words" "$advice"
  fi
  failed=1
}

refuses "make status by anybody" "the local cluster needs root" "sudo make status" "${nobody[@]}" dev/status.sh
refuses "make demo by anybody" "the local cluster needs root" "sudo make demo" "${nobody[@]}" dev/demo.sh
refuses "an image loaded by anybody" "the local cluster needs root" "sudo dev/load-image.sh a.tar" "${nobody[@]}" dev/load-image.sh a.tar
refuses "packages by anybody" "packages are missing, and to install them needs root: python3-yaml" "sudo dev/deps.sh test" "${nobody[@]}" dev/deps.sh test
# Debian 12's own go is one without toolchains to fetch; others of this machine do not count here.
sed -i "s|/usr/local/go/bin /usr/lib/go-\*/bin|$scratch/lib/go-*/bin|" dev/lib.sh
stand_in() { # DIRECTORY VERSION
  mkdir -p "$1"
  printf '#!/bin/sh\necho go version go%s linux/amd64\n' "$2" >"$1/go"
  chmod -R a+rx "$scratch/bin" "$1"
}
says() { # WHAT PATTERN COMMAND...
  local out
  out=$("${@:3}" 2>&1 </dev/null)
  # shellcheck disable=SC2053
  if [[ $out == $2 ]]; then echo "ok    $1"; else
    printf 'not ok  %s: got "%s", want "%s"\n' "$1" "$out" "$2"
    failed=1
  fi
}
# shellcheck disable=SC2016
uses=(bash -c '. dev/lib.sh; use_go; go version')
stand_in "$scratch/bin" 1.19.8
refuses "a go that is too old" "there is no go on this machine that is new enough" "dev/deps.sh cluster" "${uses[@]}"
says "packages where go is too old" "*needs root: *golang-1.23-go*" "${nobody[@]}" dev/deps.sh cluster
mkdir -p "$scratch/lib/go-1.23" "$scratch/lib/go-1.19"
chmod -R a+rX "$scratch/lib"
stand_in "$scratch/lib/go-1.19/bin" 1.19.8
stand_in "$scratch/lib/go-1.23/bin" 1.23.4
says "of several the one that is new enough" "go version go1.23.4 *" "${uses[@]}"
says "packages where one is there" '!(*golang*)' "${nobody[@]}" dev/deps.sh cluster
stand_in "$scratch/bin" 1.21rc2
says "the one of the machine, where it is new enough" "go version go1.21rc2 *" "${uses[@]}"
for suite in main tsan enlist lifecycle cluster conformance e2e upgrade; do
  refuses "suite $suite by anybody" "suite $suite needs root" "make test SUITES=" "${nobody[@]}" dev/test.sh shell $suite
done
refuses "an unknown suite" "unknown suite: units" "dev/test.sh [shell format" dev/test.sh units
# What a node does is told by a stand-in: "within NODE COMMAND".
# shellcheck disable=SC2016
reach=(bash -c '. dev/lib.sh; . dev/cluster.sh; within() { [[ $1 == node-1 && $2 == curl && ${!#} == https://10.214.0.1:6443/readyz ]] && "$reached"; }
  check_firewall 0 && echo reached' - )
refuses "nodes behind a firewall" "a firewall keeps the nodes (slurmop0) from 10.214.0.1" "ufw allow in on slurmop0" env reached=false "${reach[@]}"
says "nodes that reach the API server" reached env reached=true "${reach[@]}"
# shellcheck disable=SC2016
settings=(bash -c '. dev/lib.sh; . dev/cluster.sh')
refuses "an unknown etcd" "unknown ETCD: 3.6" "ETCD=module" env ETCD=3.6 "${settings[@]}"
for net in 10 10. .10 10.1.2 10.254 10.256 0.1 127.0 224.1 10.01 ten.1 10.-1 '10.1 '; do
  refuses "the network '$net'" "SLURM_OPERATOR_NET=$net is not" "SLURM_OPERATOR_NET=10.100" env SLURM_OPERATOR_NET="$net" "${settings[@]}"
done
for net in 10.0 10.253 192.168 9.99; do
  out=$(SLURM_OPERATOR_NET=$net "${settings[@]}" 2>&1) && [[ -z $out ]] && echo "ok    the network $net" && continue
  echo "not ok  the network $net: $out"
  failed=1
done
exit $failed

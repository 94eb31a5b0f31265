#!/bin/bash
# Installs with apt what is missing. Usage: dev/deps.sh GROUP...   (groups: see below)
# Mirrors and proxies are the machine's own. Nothing is asked of the network when all is there.
. "$(dirname "$0")/lib.sh"

# COMMAND=PACKAGE: the package, if there is no such command (it may have come from elsewhere). PACKAGE alone: that package.
packages_of() {
  case $1 in
    base) echo ip=iproute2 iptables=iptables nsenter=util-linux openssl=openssl curl=curl flock=util-linux jq=jq ca-certificates ;;
    cluster) packages_of base; echo gcc=gcc libc6-dev containerd=containerd runc=runc containernetworking-plugins ;;
    smoke) echo busybox-static ;;
    database) echo mariadbd=mariadb-server-core ;; # the program alone: nothing of it starts by itself
    packages) echo dpkg-shlibdeps=dpkg-dev ;;
    images) echo mmdebstrap=mmdebstrap jq=jq ca-certificates ;;
    build)
      echo g++=g++ cmake=cmake ninja=ninja-build ccache=ccache mold=mold libboost1.81-dev libssl-dev libsimdjson-dev nlohmann-json3-dev \
        libyaml-cpp-dev libspdlog-dev libfmt-dev prometheus-cpp-dev libcli11-dev libsqlite3-dev zlib1g-dev libgtest-dev libgmock-dev librapidcheck-dev libbenchmark-dev libjemalloc2
      ;;
    clang) echo clang++-19=clang-19 libclang-rt-19-dev llvm-symbolizer-19=llvm-19 ;;
    lint) echo clang-format=clang-format clang-tidy-19=clang-tidy-19 ;;
    test) echo python3=python3 python3-yaml ;;
    monitoring) echo prometheus=prometheus ;; # promtool too; nothing of it starts by itself
    docs) echo dot=graphviz ;;
    *) die "unknown group of packages: $1" "dev/deps.sh base|cluster|smoke|database|packages|images|build|clang|lint|test|monitoring|docs" ;;
  esac
}

installed() { [[ $(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null) == installed ]]; }

missing() {
  local entry
  for entry in $(for group in "$@"; do packages_of "$group"; done | xargs -n1 | sort -u); do
    if [[ $entry == *=* ]]; then
      command -v "${entry%%=*}" >/dev/null || installed "${entry#*=}" || echo "${entry#*=}"
    else
      installed "$entry" || echo "$entry"
    fi
  done | sort -u
}

apt() { DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 "$@"; }

# Services of what we install (containerd) do not start: the cluster runs its own.
install() {
  local policy=/usr/sbin/policy-rc.d made=
  if [[ ! -e $policy ]]; then
    printf '#!/bin/sh\nexit 101\n' >$policy
    chmod +x $policy
    made=yes
  fi
  local status=0
  apt install --no-install-recommends "$@" >>"$log" 2>&1 || status=$?
  [[ -z $made ]] || rm -f $policy
  return $status
}

# The machine's own mirror, for a suite that its sources do not name. Own lists, so that the machine's apt stays as it is.
suite_options() { # SUITE
  local base=$CACHE/apt/$1 mirror keyring=/usr/share/keyrings/debian-archive-keyring.gpg
  mirror=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT) $(CREATED_BY)' 2>/dev/null |
    awk -v release="${1%-backports}" '$2 == release && $3 == "main" && $4 == "Packages" { print $1; exit }')
  [[ -n $mirror ]] || die "apt knows no mirror of Debian ${1%-backports}." "add one to /etc/apt/sources.list.d"
  mkdir -p "$base/lists/partial"
  [[ ! -f $keyring ]] || mirror="[signed-by=$keyring] $mirror"
  printf 'deb %s %s main\n' "$mirror" "${1%-backports}" "$mirror" "$1" >"$base/sources.list"
  suite=(-o "Dir::Etc::SourceList=$base/sources.list" -o Dir::Etc::SourceParts=/dev/null -o "Dir::State::Lists=$base/lists")
}

install_go() {
  local suite
  suite_options bookworm-backports
  say "               installing golang-1.23 from bookworm-backports"
  apt "${suite[@]}" update >>"$log" 2>&1 || true
  install "${suite[@]}" -t bookworm-backports golang-1.23-go
}

failed() {
  tail -n 5 "$log" >&2
  die "apt could not install: $*" "see $log; the sources of apt must reach a Debian mirror"
}

(($#)) || set -- cluster
mkdir -p "$CACHE"
log=$CACHE/apt.log
wanted=$(missing "$@")
need_go=
[[ " $* " != *" cluster "* ]] || find_go || need_go=yes
[[ -n $wanted$need_go ]] || exit 0

command -v apt-get >/dev/null || die "apt is not on this machine; missing: ${wanted//$'\n'/ }" "use Debian 12, or install these in another way"
need_root "dev/deps.sh $*" "packages are missing, and to install them needs root: ${wanted//$'\n'/ }${need_go:+ golang-1.23-go}"
if [[ -n $wanted ]]; then
  say "               installing ${wanted//$'\n'/ }"
  # Package lists may be absent or old: then refresh them. A source that cannot be reached is no reason to stop.
  # shellcheck disable=SC2086
  install $wanted || { apt update >>"$log" 2>&1 || true; install $wanted; } || failed $wanted
fi
[[ -z $need_go ]] || install_go || failed golang-1.23-go

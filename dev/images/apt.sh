# Functions of scripts that make root file systems of Debian packages. Source it after dev/lib.sh. `fail` is defined by the script that sources it.
# shellcheck shell=bash

# The mirror that this machine takes Debian's main component from.
debian_mirror() {
  if [[ -n ${SLURM_OPERATOR_DEBIAN_MIRROR-} ]]; then
    echo "$SLURM_OPERATOR_DEBIAN_MIRROR"
    return
  fi
  local mirror
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 'Label: Debian' \
    'Component: main' | head -n1) || true
  [[ -n $mirror ]] || fail "no Debian mirror among apt's sources (has apt-get update been run?); set SLURM_OPERATOR_DEBIAN_MIRROR"
  echo "${mirror%/}"
}

# What apt must be told to reach the mirror from here.
network_options() {
  local key value
  for key in Acquire::http::Proxy Acquire::https::Proxy Acquire::https::CAInfo; do
    value=$(apt-config dump "$key" | sed -n "s/^$key \"\(.*\)\";$/\1/p")
    if [[ -z $value && $key == Acquire::http::Proxy ]]; then value=${http_proxy-}; fi
    if [[ -z $value && $key == Acquire::https::Proxy ]]; then value=${https_proxy-}; fi
    [[ -z $value ]] || printf '%s "%s"\n' "$key" "$value"
  done
}

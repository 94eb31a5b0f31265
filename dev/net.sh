# The addresses of the local cluster. Pure functions: what the machine has comes in as text, nothing is read here.
# shellcheck shell=bash

# net_valid NET: whether the two numbers leave room for the two networks after it.
net_valid() {
  [[ $1 =~ ^[1-9][0-9]{0,2}\.(0|[1-9][0-9]{0,2})$ ]] && ((${1%.*} <= 223 && ${1%.*} != 127 && ${1#*.} <= 253))
}

# net_ranges NET: those of nodes, pods and Services, a line each.
net_ranges() {
  echo "$1.0.0/24"
  echo "${1%.*}.$((${1#*.} + 1)).0.0/16"
  echo "${1%.*}.$((${1#*.} + 2)).0.0/16"
}

# no_proxy_with LIST NET...: the list of what is reached without a proxy, and what of these clusters is not yet in it. By address as well,
# for programs that do not know ranges.
no_proxy_with() {
  local list=$1 net entry
  if [[ $list != '*' ]]; then # all
    for entry in localhost 127.0.0.1 $(for net in "${@:2}"; do echo "$net.0.1"; net_ranges "$net"; done); do
      [[ ,$list, == *,"$entry",* ]] || list+=${list:+,}$entry
    done
  fi
  echo "$list"
}

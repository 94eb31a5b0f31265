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

# routes_in RANGES ROUTES LINK: of the routes (lines of `ip -4 route show`), the first that has addresses of the ranges (a line each): "RANGE:
# ROUTE", or nothing. Routes on our own LINK do not count, nor does the way out to all others: what is wider than /8 is no network, but such
# a way in halves (0.0.0.0/1 and 128.0.0.0/1), as VPNs set it.
routes_in() {
  awk -v ranges="$1" -v ours=" dev $3 " '
    function number(address, part) { split(address, part, "."); return ((part[1] * 256 + part[2]) * 256 + part[3]) * 256 + part[4] }
    function block(address, bits) { return int(number(address) / 2 ^ (32 - bits)) }
    BEGIN { count = split(ranges, range, "\n") }
    {
      split($1 ~ /^[0-9]/ ? $1 : $2, route, "/")   # some begin with their kind, such as blackhole
      if (route[1] !~ /^[0-9.]+$/ || index($0 " ", ours)) next
      bits = route[2] == "" ? 32 : route[2]
      if (bits < 8) next
      for (i = 1; i <= count; i++) {
        split(range[i], wanted, "/")
        common = bits < wanted[2] ? bits : wanted[2]
        if (block(route[1], common) == block(wanted[1], common)) { print range[i] ": " $0; exit }
      }
    }' <<<"$2"
}

# net_free ROUTES LINK: the beginning of three networks that these routes leave free, for SLURM_OPERATOR_NET; nothing where none of a few is.
net_free() {
  local net
  for net in 10.214 10.100 10.50 10.180 172.20 172.24 172.28 100.64; do
    [[ -n $(routes_in "$(net_ranges "$net")" "$1" "$2") ]] || { echo "$net"; return; }
  done
}

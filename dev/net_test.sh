#!/bin/bash
# Routes of machines, fed as data.
set -euo pipefail
. "$(dirname "$0")/net.sh"

failed=0
check() { # WHAT GOT WANT
  if [[ $2 == "$3" ]]; then echo "ok    $1"; else
    printf 'not ok  %s: got "%s", want "%s"\n' "$1" "$2" "$3"
    failed=1
  fi
}

plain='default via 192.168.1.1 dev eth0 proto dhcp metric 100
192.168.1.0/24 dev eth0 proto kernel scope link src 192.168.1.7
172.17.0.0/16 dev docker0 proto kernel scope link src 172.17.0.1 linkdown'
ours='10.214.0.0/24 dev slurmop0 proto kernel scope link src 10.214.0.1
10.215.1.0/24 via 10.214.0.11 dev slurmop0
10.215.0.0/16 via 10.214.0.2 dev slurmop0
10.216.0.0/16 via 10.214.0.2 dev slurmop0'
openvpn='0.0.0.0/1 via 10.8.0.1 dev tun0
default via 192.168.1.1 dev eth0
10.8.0.0/24 dev tun0 proto kernel scope link src 10.8.0.2
128.0.0.0/1 via 10.8.0.1 dev tun0
203.0.113.7 via 192.168.1.1 dev eth0'
taken() { routes_in "$(net_ranges "$1")" "$2" slurmop0; }

check "the ranges" "$(net_ranges 10.214)" $'10.214.0.0/24\n10.215.0.0/16\n10.216.0.0/16'
check "a machine with others" "$(taken 10.214 "$plain")" ""
check "no routes at all" "$(taken 10.214 "")" ""
check "our own" "$(taken 10.214 "$plain"$'\n'"$ours")" ""
check "a link whose name only begins like ours" "$(taken 10.214 '10.214.0.0/24 dev slurmop01 scope link')" "10.214.0.0/24: 10.214.0.0/24 dev slurmop01 scope link"
check "OpenVPN as the way out" "$(taken 10.214 "$openvpn")" ""
check "and its own network" "$(taken 10.8 "$openvpn")" "10.8.0.0/24: 10.8.0.0/24 dev tun0 proto kernel scope link src 10.8.0.2"
check "a way out in more parts" "$(taken 10.214 $'8.0.0.0/5 dev wg0\n64.0.0.0/2 dev wg0\n0.0.0.0/0 dev wg0')" ""
check "a narrower route" "$(taken 10.214 '10.215.7.0/24 dev lo')" "10.215.0.0/16: 10.215.7.0/24 dev lo"
check "a wider one" "$(taken 10.214 '10.0.0.0/8 dev lo')" "10.214.0.0/24: 10.0.0.0/8 dev lo"
check "one address" "$(taken 10.214 '10.216.255.255 via 10.8.0.1 dev tun0')" "10.216.0.0/16: 10.216.255.255 via 10.8.0.1 dev tun0"
check "the addresses beside them" "$(taken 10.214 $'10.214.1.0/24 dev a\n10.213.255.255 dev a\n10.217.0.0 dev a')" ""
check "one that ends there" "$(taken 10.214 'blackhole 10.216.0.0/14')" "10.216.0.0/16: blackhole 10.216.0.0/14"
check "of several the first" "$(taken 10.214 "$plain"$'\n10.216.3.0/24 dev b\n10.214.0.0/16 dev c')" "10.216.0.0/16: 10.216.3.0/24 dev b"

check "the advice" "$(net_free "$plain" slurmop0)" 10.214
check "where our own range is used" "$(net_free '10.215.7.0/24 dev lo' slurmop0)" 10.100
check "where two are" "$(net_free $'10.215.7.0/24 dev lo\n10.100.0.0/14 dev lo' slurmop0)" 10.50
check "in a company that has 10.0.0.0/8" "$(net_free $'10.0.0.0/8 dev lo\n172.21.0.0/16 dev br' slurmop0)" 172.24
check "where all is used" "$(net_free $'10.0.0.0/8 dev a\n172.16.0.0/12 dev a\n100.64.0.0/10 dev tailscale0' slurmop0)" ""
for net in $(net_free '' x) 10.100 10.50 10.180 172.20 172.24 172.28 100.64; do check "$net is valid" "$(net_valid "$net" && echo yes)" yes; done
exit $failed

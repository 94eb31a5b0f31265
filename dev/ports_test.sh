#!/bin/bash
# Tables of the kernel, fed as data.
set -euo pipefail
. "$(dirname "$0")/ports.sh"

failed=0
check() { # WHAT GOT WANT
  if [[ $2 == "$3" ]]; then echo "ok    $1"; else
    printf 'not ok  %s: got "%s", want "%s"\n' "$1" "$2" "$3"
    failed=1
  fi
}

head='  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode'
line() { echo "   0: $1 00000000:0000 $2 00000000:00000000 00:00000000 00000000     0        0 $3 2 0000000000000000 100 0 0 10 0"; }
table="$head
$(line 0A00007F:0035 0A 11)
$(line 0100D60A:192B 0A 12)
$(line 0100007F:094B 01 13)
$(line 00000000:07E8 0A 14)
$head
$(line 00000000000000000000000000000000:1F90 0A 15)
$(line 0000000000000000FFFF00000100007F:2383 0A 16)
$(line 00000000000000000000000001000000:094C 0A 17)
$(line 0100D60A:0036 07 18)"

check "at this address" "$(port_listener 6443 10.214.0.1 "$table")" 12
check "at another address" "$(port_listener 6443 127.0.0.1 "$table")" ""
check "each loopback address is its own" "$(port_listener 53 127.0.0.10 "$table"), $(port_listener 53 127.0.0.1 "$table")" "11, "
check "a connection is no listener" "$(port_listener 2379 127.0.0.1 "$table")" ""
check "at all addresses" "$(port_listener 2024 10.214.0.1 "$table")" 14
check "at all addresses of both kinds" "$(port_listener 8080 127.0.0.1 "$table")" 15
check "an IPv4 address in the IPv6 table" "$(port_listener 9091 127.0.0.1 "$table")" 16
check "the IPv6 loopback is another address" "$(port_listener 2380 127.0.0.1 "$table")" ""
check "UDP" "$(port_listener 54 10.214.0.1 "$table")" 18
check "an empty table" "$(port_listener 53 127.0.0.1 "$head")" ""
exit $failed

# Who listens where. A pure function: the kernel's tables come in as text, nothing is read here.
# shellcheck shell=bash

# port_listener PORT ADDRESS TABLE: the inode of a socket that listens on that port at that IPv4 address or at all of them, or nothing.
# TABLE: lines of /proc/net/tcp, tcp6, udp and udp6. Addresses stand there as the bytes of memory, so this is for little-endian machines.
port_listener() {
  local a b c d
  IFS=. read -r a b c d <<<"$2"
  awk -v port="$(printf '%04X' "$1")" -v address="$(printf '%02X%02X%02X%02X' "$d" "$c" "$b" "$a")" '
    BEGIN { mapped = "0000000000000000FFFF0000" }
    # 0A: TCP that listens. 07: UDP that waits for anybody; TCP has no lines of that state.
    $4 == "0A" || $4 == "07" {
      split($2, at, ":")
      if (at[2] == port && (at[1] ~ /^0+$/ || at[1] == mapped "00000000" || at[1] == address || at[1] == mapped address)) { print $10; exit }
    }' <<<"$3"
}

#!/bin/sh
# collect.sh BINARY PATH ROOT: makes ROOT the root of an image that holds BINARY at PATH and just what it needs to run.
set -eu
# Whoever the container runs as reads it.
umask 022

binary=$1 path=$2 root=$3

mkdir -p "$root/etc/ssl/certs" "$root/tmp" "$root$(dirname "$path")"
chmod 1777 "$root/tmp"
cp "$binary" "$root$path"
chmod 0755 "$root$path"

# The ELF interpreter and the libraries, each at the place where the interpreter looks for it. A static binary has none.
if libraries=$(ldd "$binary" 2>/dev/null); then
  if echo "$libraries" | grep 'not found' >&2; then exit 1; fi
  # Names are looked up by libnss_*; glibc 2.34 and later have files and dns built in.
  for library in $(echo "$libraries" | grep -o '/[^ ]*'); do
    mkdir -p "$root$(dirname "$library")"
    cp -L "$library" "$root$library"
  done
fi

[ ! -e /etc/ssl/certs/ca-certificates.crt ] || cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
echo 'hosts: files dns' >"$root/etc/nsswitch.conf"
printf '%s\n' root:x:0:0:root:/:/sbin/nologin nonroot:x:65532:65532:nonroot:/:/sbin/nologin >"$root/etc/passwd"
printf '%s\n' root:x:0: nonroot:x:65532: >"$root/etc/group"

#!/bin/bash
# The root of an image, as collect.sh makes it: anybody can run what is in it, whatever the umask of who made it.
set -uo pipefail
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
chmod 755 "$scratch"

failed=0
check() { # WHAT GOT WANT
  if [[ $2 == "$3" ]]; then echo "ok    $1"; else
    printf 'not ok  %s: got "%s", want "%s"\n' "$1" "$2" "$3"
    failed=1
  fi
}

for mask in 022 027 077; do
  root=$scratch/$mask
  (umask $mask && "$(dirname "$0")/collect.sh" /bin/true /program "$root") 2>&1
  check "under umask $mask all is there" "$([[ -x $root/program && -s $root/etc/passwd && -d $root/tmp ]] && find "$root" -name 'libc.so*' -printf '%f')" libc.so.6
  check "under umask $mask others can read it" "$(find "$root" '(' -type d ! -perm -005 -o -type f ! -perm -004 ')' -printf '%P ')" ""
  check "under umask $mask nobody else can write it" "$(find "$root" -perm /022 ! -path "$root/tmp" -printf '%P ')" ""
  [[ $(id -u) != 0 ]] || check "under umask $mask it runs as another user" "$(chroot --userspec=65532:65532 "$root" /program 2>&1)" ""
done
exit $failed

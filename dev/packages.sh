#!/bin/bash
# Builds the Debian packages slurm-enlist and slurm-enlist-coordinator in build/packages, from build/release/slurm-enlist. The same commit
# makes the same files. Usage: dev/packages.sh          MAINTAINER="NAME <ADDRESS>" names who answers for them.
. "$(dirname "$0")/lib.sh"

"$DEV/deps.sh" packages
"$DEV/cpp.sh" release slurm-enlist

out=$TOP/build/packages
# Each commit has a version of its own, which apt takes for a newer one: 0.1.0+git20260131.120000.1234abcd.
version=$(sed -n 's/^project(.* VERSION \([^ ]*\) .*/\1/p' "$TOP/CMakeLists.txt")
version+=$(TZ=UTC0 git -C "$TOP" log -1 --abbrev=8 --date=format-local:%Y%m%d.%H%M%S --format=+git%cd.%h)
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$TOP" log -1 --format=%ct)}
export SOURCE_DATE_EPOCH
# Nobody answers for packages that somebody builds for themselves.
maintainer=${MAINTAINER:-slurm-operator maintainers <root@localhost>}

rm -rf "$out"
mkdir -p "$out"
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT

# bundle PROGRAM ROOT: copies the libraries of which each Debian has another version, where the program looks for them first. Prints the
# packages that they are from.
bundle() {
  local file owner
  for file in $(ldd "$1" | awk '$1 ~ /^lib(fmt|prometheus-cpp-core|simdjson)\.so/ { print $3 }'); do
    owner=$(dpkg -S "$(readlink -f "$file")" | cut -d: -f1)
    install -D -m 0644 -t "$2/usr/lib/slurm-enlist" "$file"
    install -D -m 0644 "/usr/share/doc/$owner/copyright" "$2/usr/share/doc/slurm-enlist/$owner.copyright"
    echo "$owner"
  done
}

# libraries_of ROOT BUNDLED...: the packages that have the other libraries of what is in ROOT.
libraries_of() {
  local root=$1
  shift
  mkdir -p "$stage"/{source/debian,slurm-enlist/DEBIAN}
  printf 'Source: slurm-enlist\n\nPackage: slurm-enlist\nArchitecture: any\n' >"$stage/source/debian/control"
  (cd "$stage/source" && dpkg-shlibdeps -O "${@/#/-x}" "$root"/usr/bin/* "$root"/usr/lib/slurm-enlist/*) | sed -n 's/^shlibs:Depends=//p'
}

# package NAME ARCHITECTURE: makes the package of the files in its stage.
package() {
  local name=$1 root=$stage/$1 recipe=$TOP/packages/$1
  install -D -m 0644 "$TOP/LICENSE" "$root/usr/share/doc/$name/copyright"
  mkdir -p "$root/DEBIAN"
  {
    sed "/^Description:/,\$d; s/\${version}/$version/; s/\${libraries}/$libraries/" "$recipe/control"
    printf '%s\n' "Version: $version" "Architecture: $2" "Source: slurm-operator" "Maintainer: $maintainer" \
      "Installed-Size: $(find "$root" -type f -printf '%s\n' | awk '{ sum += int(($1 + 1023) / 1024) } END { print sum }')"
    sed -n '/^Description:/,$p' "$recipe/control"
  } >"$root/DEBIAN/control"
  install -m 0755 -t "$root/DEBIAN" "$recipe"/{postinst,prerm}
  (cd "$root" && find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum >DEBIAN/md5sums)
  find "$root" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
  dpkg-deb --root-owner-group -Zxz --threads-max=1 --build "$root" "$out" >/dev/null
}

install -D -m 0755 "$TOP/build/release/slurm-enlist" "$stage/slurm-enlist/usr/bin/slurm-enlist"
bundled=$(bundle "$TOP/build/release/slurm-enlist" "$stage/slurm-enlist")
[[ $(wc -w <<<"$bundled") == 3 ]] || die "the program is linked with other libraries than this script knows: ${bundled:-none}" "mend bundle in dev/packages.sh"
# shellcheck disable=SC2086
libraries=$(libraries_of "$stage/slurm-enlist" $bundled)
[[ -n $libraries ]] || die "dpkg-shlibdeps names no libraries" "look at what it printed above"
package slurm-enlist "$(dpkg --print-architecture)"

install -D -m 0644 -t "$stage/slurm-enlist-coordinator/usr/lib/systemd/system" "$TOP"/packages/slurm-enlist-coordinator/*.service
package slurm-enlist-coordinator all

for file in "$out"/*.deb; do say "               ${file#"$TOP/"}"; done

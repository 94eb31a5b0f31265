#!/bin/bash
# What dev/images/build.sh makes when a suite of Debian has moved on or cannot be reached, with stand-ins for all that installs or compiles.
set -uo pipefail

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
top=$(cd "$(dirname "$0")/.." && pwd -P)
mkdir -p "$scratch/clone/dev" "$scratch/bin"
cp -r "$top/images" "$scratch/clone/"
cp -r "$top/dev/lib.sh" "$top/dev/net.sh" "$top/dev/images" "$scratch/clone/dev/"
export SLURM_OPERATOR_CACHE=$scratch/cache SLURM_OPERATOR_DEBIAN_MIRROR=http://mirror.invalid PATH=$scratch/bin:$PATH

# The mirror: a file per suite with the version that it has.
cat >"$scratch/bin/mmdebstrap" <<'END'
#!/bin/bash
suite=${@: -3:1} root=${@: -2:1}
[[ -f $MIRROR/$suite ]] || { echo "E: no packages" >&2; exit 1; }
mkdir -p "$root"/{etc,dev,proc,sys}
cp "$MIRROR/$suite" "$root/version"
END
cat >"$scratch/bin/chroot" <<'END'
#!/bin/bash
[[ $2 != slurmctld ]] || echo "slurm $(cat "$1/version")"
END
cat >"$scratch/bin/g++" <<'END'
#!/bin/bash
while [[ $1 != -o ]]; do shift; done
printf '#!/bin/sh\n' >"$2"
chmod +x "$2"
END
printf '#!/bin/sh\n' >"$scratch/bin/apt-config"
# shellcheck disable=SC2016
printf '#!/bin/sh\n[ "$1" != --print-architecture ] || echo amd64\n' >"$scratch/bin/dpkg"
chmod +x "$scratch/bin"/*
export MIRROR=$scratch/mirror
mkdir "$MIRROR"

failed=0
check() { # WHAT GOT WANT
  if [[ $2 == "$3" ]]; then echo "ok    $1"; else
    printf 'not ok  %s: got "%s", want "%s"\n' "$1" "$2" "$3"
    sed 's/^/      | /' "$scratch/log"
    failed=1
  fi
}
mirror() { # SUITE VERSION, or nothing for a suite that has gone
  if [[ -n ${2-} ]]; then echo "$2" >"$MIRROR/$1"; else rm -f "$MIRROR/$1"; fi
}
build() { # sets status and tars
  "$scratch/clone/dev/images/build.sh" "$@" >"$scratch/out" 2>"$scratch/log"
  status=$?
  tars=$(sed -n 's/^image-tar: .*\/slurm-\([0-9.]*\)-.*/\1/p' "$scratch/out" | sort | xargs)
}
releases() { bash -c '. "$1/dev/lib.sh"; slurm_releases "$2"' - "$scratch/clone" "$1" | paste -sd' '; }

build
check "no suite: fails" "$status" 1
check "no suite: tells each" "$(grep -c 'warning: there are no images of Slurm' "$scratch/log")" 2
check "no suite: no file" "$(ls "$scratch/clone/.local" 2>/dev/null)" ""

mirror sid 26.05.5
build
check "one suite: goes on" "$status: $tars" "0: 26.05"
check "one suite: made" "$(releases made)" 26.05
check "one suite: skipped" "$(releases skipped)" \
  "24.11: the packages of Debian trixie could not be installed (see $SLURM_OPERATOR_CACHE/images/base-trixie.log), and the cache has none"
build 24.11
check "what was named must be there" "$status" 1
check "one release alone leaves the file" "$(releases made)" 26.05

mirror trixie 24.11.5
build
check "both" "$status: $tars" "0: 24.11 26.05"
check "both: 26.05 is first" "$(releases made)" "26.05 24.11"
check "both: nothing skipped" "$(releases skipped)" ""

mirror sid
mirror trixie
build
check "suites gone, bases in the cache" "$status: $(releases made)" "0: 26.05 24.11"

# Changed packages make a new base; the old one is still there for the release that has left Debian.
mirror sid 26.11.1
mirror trixie 24.11.5
echo more-packages >>"$scratch/clone/images/base/packages"
build
check "moved on, the old one in the cache: made" "$status: $tars" "0: 24.11 26.05 26.11"
check "moved on, the old one in the cache: 26.05 is first" "$(releases made)" "26.05 26.11 24.11"
build 26.11
check "a release that only the cache knows" "$status: $tars" "0: 26.11"

# Packages installed again take the place of the old base.
mirror sid 26.12.1
build --refresh
check "installed again: made" "$(releases made)" "26.05 26.12 24.11"
build 26.11
check "installed again: no other release under the old name" "$status: $tars" "1: "

rm -rf "$SLURM_OPERATOR_CACHE"
build
check "moved on, an empty cache: made" "$status: $(releases made)" "0: 26.12 24.11"
check "moved on, an empty cache: skipped" "$(releases skipped)" "26.05: Debian sid has Slurm 26.12 now, and the cache has none"
rm "$scratch/clone/.local/slurm-releases"
check "without the file they are made first" "$(releases made 2>/dev/null)" "26.12 24.11"
exit $failed

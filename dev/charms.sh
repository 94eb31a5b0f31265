#!/bin/bash
# Packs the charms of Juju, as charmcraft lays them out, with slurm-enlist and the libraries that Ubuntu does not have in these versions.
# Usage: dev/charms.sh [DIR]     writes DIR/slurmd.charm and DIR/slurmctld.charm (default: build/charms)
. "$(dirname "$0")/lib.sh"

to=${1:-$TOP/build/charms}
program=$TOP/build/release/slurm-enlist
[[ $(uname -m) == x86_64 ]] || die "the charms are packed on x86-64 only." "use such a machine"
"$DEV/deps.sh" build test
"$DEV/cpp.sh" release slurm-enlist
mkdir -p "$to"
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT

for charm in slurmd slurmctld; do
  mkdir -p "$stage/$charm"/{bin,lib}
  cp "$TOP/charms/$charm"/* "$stage/$charm/"
  cp "$program" "$stage/$charm/bin/"
  # glibc and the libraries of the compiler are on every machine, and newer ones work as well.
  ldd "$program" | awk '$3 ~ "^/" && $1 !~ /^(libc|libm|libstdc\+\+|libgcc_s)\.so/ { print $3 }' | xargs -I{} cp -L {} "$stage/$charm/lib/"
  cat >"$stage/$charm/manifest.yaml" <<END
bases:
  - name: ubuntu
    channel: "24.04"
    architectures: [amd64]
END
  # The same content gives the same archive.
  python3 - "$stage/$charm" "$to/$charm.charm" <<'END'
import pathlib, sys, zipfile

folder, archive = map(pathlib.Path, sys.argv[1:])
with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as out:
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        item = zipfile.ZipInfo(str(path.relative_to(folder)), (2020, 1, 1, 0, 0, 0))
        program = path.parent.name == "bin" or path.name == "dispatch"
        item.create_system, item.compress_type, item.external_attr = 3, zipfile.ZIP_DEFLATED, (0o100755 if program else 0o100644) << 16
        out.writestr(item, path.read_bytes())
END
  echo "$to/$charm.charm"
done

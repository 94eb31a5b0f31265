#!/bin/bash
# The list of contents of an image: SPDX that is whole, names what is there, and follows the contents.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd -P)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

failed=0
check() { # WHAT GOT WANT
  if [[ $2 == "$3" ]]; then echo "ok    $1"; else
    printf 'not ok  %s: got "%s", want "%s"\n' "$1" "$2" "$3"
    failed=1
  fi
}
of() { # EXPRESSION over "d", the document
  python3 -c '
import json, sys
d = json.load(open(sys.argv[1]))
packages = {p["SPDXID"]: p for p in d["packages"]}
print(eval(sys.argv[2]))' "$scratch/root/sbom.spdx.json" "$1" 2>&1
}

"$here/collect.sh" /bin/bash /program "$scratch/root"
printf 'libssl-dev\t3.0.19-1~deb12u2\tamd64\topenssl\nodd+one\t1:2+b"3\tall\todd\n' >"$scratch/components.tsv"
SOURCE_DATE_EPOCH=0 "$here/sbom.sh" "$scratch/root" /program 1.2 "$scratch/components.tsv"
check "what it is of" "$(of '[d["spdxVersion"], d["name"], d["creationInfo"]["created"]]')" "['SPDX-2.3', 'program-1.2', '1970-01-01T00:00:00Z']"
check "the program, by its digest" "$(of 'packages["SPDXRef-Program-program"]["checksums"][0]["checksumValue"]')" "$(sha256sum </bin/bash | cut -d' ' -f1)"
libc=$(dpkg-query -W -f '${Version}' libc6)
check "the packages of its libraries" "$(of 'packages["SPDXRef-Package-libc6"]["versionInfo"]')" "$libc"
check "no library is left out" "$(of 'sorted(p for p in packages if "tinfo" in p or "libc6" in p)')" "['SPDXRef-Package-libc6', 'SPDXRef-Package-libtinfo6']"
check "what is linked in" "$(of '[r["relatedSpdxElement"] for r in d["relationships"] if r["relationshipType"] == "STATIC_LINK"]')" "['SPDXRef-Package-libssl-dev', 'SPDXRef-Package-odd-one']"
check "versions with odd letters" "$(of '[packages["SPDXRef-Package-odd-one"]["versionInfo"], packages["SPDXRef-Package-odd-one"]["externalRefs"][0]["referenceLocator"].split("?")[0]]')" "['1:2+b\"3', 'pkg:deb/debian/odd%2Bone@1%3A2%2Bb\"3']"
check "each relation leads to a package, and each package has one" \
  "$(of '{r["relatedSpdxElement"] for r in d["relationships"]} == set(packages)')" True
check "what SPDX demands of a package" "$(of 'all(p[k] for p in packages.values() for k in ("name", "SPDXID", "downloadLocation"))')" True
check "anybody can read it" "$(stat -c %a "$scratch/root/sbom.spdx.json")" 644
exit $failed

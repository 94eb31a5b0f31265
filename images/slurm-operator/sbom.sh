#!/bin/sh
# sbom.sh ROOT PATH VERSION [COMPONENTS]: writes ROOT/sbom.spdx.json, what is in the image whose root collect.sh has made, as SPDX 2.3: the program
# at PATH, the Debian packages of the libraries beside it, and what is linked into the program, which its build has listed in COMPONENTS
# (build/release/components.tsv). Runs on the Debian from which the libraries were taken. SOURCE_DATE_EPOCH sets its date.
set -eu
# Whoever reads the image reads it.
umask 022

root=$1 path=$2 version=$3 components=${4:-}
tab=$(printf '\t')

# The package of a file; dpkg knows it by the name that it was installed under, which may be that of /lib or of /usr/lib.
package_of() {
  file=$(readlink -f "$1")
  { dpkg-query -S "$file" || dpkg-query -S "${file#/usr}"; } 2>/dev/null | head -n 1 | sed 's/: .*//'
}

# Package, version, architecture, source package: of every package that a file of the image is from.
debian() {
  find "$root" -name '*.so*' -type f | sed "s|^$root||" | while read -r library; do package_of "$library"; done |
    sort -u | while read -r package; do
      dpkg-query -W -f '${Package}\t${Version}\t${Architecture}\t${source:Package}\n' "$package"
    done
  [ ! -s "$root/etc/ssl/certs/ca-certificates.crt" ] ||
    dpkg-query -W -f '${Package}\t${Version}\t${Architecture}\t${source:Package}\n' ca-certificates
}

created=$(date -u ${SOURCE_DATE_EPOCH:+-d "@$SOURCE_DATE_EPOCH"} +%Y-%m-%dT%H:%M:%SZ)
digest=$(sha256sum "$root$path" | cut -d ' ' -f 1)
. /etc/os-release

{
  debian | sort -u | sed "s/^/DYNAMIC_LINK$tab/"
  [ -z "$components" ] || sed "s/^/STATIC_LINK$tab/" "$components"
} | awk -F "$tab" -v name="${path#/}" -v version="$version" -v digest="$digest" -v created="$created" -v distro="${ID:-debian}-${VERSION_ID:-}" '
  function quote(text) { gsub(/["\\]/, "\\\\&", text); return "\"" text "\"" }
  function id(text) { gsub(/[^A-Za-z0-9.-]/, "-", text); return "SPDXRef-" text }
  # Epochs have a colon, and versions a plus or a tilde.
  function escaped(text) { gsub(/%/, "%25", text); gsub(/:/, "%3A", text); gsub(/\+/, "%2B", text); return text }
  BEGIN {
    program = id("Program-" name)
    packages = sprintf("    {\"SPDXID\": %s, \"name\": %s, \"versionInfo\": %s, \"downloadLocation\": \"NOASSERTION\", \"filesAnalyzed\": false,\n" \
      "     \"licenseConcluded\": \"Apache-2.0\", \"licenseDeclared\": \"Apache-2.0\", \"copyrightText\": \"NOASSERTION\", \"primaryPackagePurpose\": \"APPLICATION\",\n" \
      "     \"checksums\": [{\"algorithm\": \"SHA256\", \"checksumValue\": %s}]}", quote(program), quote(name), quote(version), quote(digest))
    relations = sprintf("    {\"spdxElementId\": \"SPDXRef-DOCUMENT\", \"relationshipType\": \"DESCRIBES\", \"relatedSpdxElement\": %s}", quote(program))
  }
  # How, package, version, architecture, source package.
  {
    key = id("Package-" $2)
    packages = packages sprintf(",\n    {\"SPDXID\": %s, \"name\": %s, \"versionInfo\": %s, \"downloadLocation\": \"NOASSERTION\", \"filesAnalyzed\": false,\n" \
      "     \"licenseConcluded\": \"NOASSERTION\", \"licenseDeclared\": \"NOASSERTION\", \"copyrightText\": \"NOASSERTION\", \"sourceInfo\": %s,\n" \
      "     \"externalRefs\": [{\"referenceCategory\": \"PACKAGE-MANAGER\", \"referenceType\": \"purl\", \"referenceLocator\": %s}]}",
      quote(key), quote($2), quote($3), quote("Debian source package " $5),
      quote("pkg:deb/debian/" escaped($2) "@" escaped($3) "?arch=" $4 "&distro=" distro))
    # Data that is only read is contained.
    how = $2 == "ca-certificates" ? "CONTAINS" : $1
    relations = relations sprintf(",\n    {\"spdxElementId\": %s, \"relationshipType\": \"%s\", \"relatedSpdxElement\": %s}", quote(program), how, quote(key))
  }
  END {
    printf "{\n  \"spdxVersion\": \"SPDX-2.3\", \"dataLicense\": \"CC0-1.0\", \"SPDXID\": \"SPDXRef-DOCUMENT\", \"name\": %s,\n", quote(name "-" version)
    printf "  \"documentNamespace\": %s,\n", quote("https://spdx.org/spdxdocs/" name "-" digest)
    printf "  \"creationInfo\": {\"created\": %s, \"creators\": [\"Tool: sbom.sh\"]},\n", quote(created)
    printf "  \"packages\": [\n%s\n  ],\n  \"relationships\": [\n%s\n  ]\n}\n", packages, relations
  }' >"$root/sbom.spdx.json"

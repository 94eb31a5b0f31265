#!/bin/bash
# Serves a directory with one user: alice, 5001, of the groups alice (5001) and lab (5002).
set -euo pipefail

directory=/tmp/ldap
mkdir -p $directory/data
cat >$directory/slapd.conf <<'END'
include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/nis.schema
include /etc/ldap/schema/inetorgperson.schema
modulepath /usr/lib/ldap
moduleload back_mdb
database mdb
suffix dc=example,dc=com
rootdn cn=admin,dc=example,dc=com
directory /tmp/ldap/data
END
slapadd -q -f $directory/slapd.conf <<'END'
dn: dc=example,dc=com
objectClass: dcObject
objectClass: organization
o: example
dc: example

dn: uid=alice,dc=example,dc=com
objectClass: inetOrgPerson
objectClass: posixAccount
uid: alice
cn: Alice
sn: Example
uidNumber: 5001
gidNumber: 5001
homeDirectory: /home/alice
loginShell: /bin/bash

dn: cn=alice,dc=example,dc=com
objectClass: posixGroup
cn: alice
gidNumber: 5001

dn: cn=lab,dc=example,dc=com
objectClass: posixGroup
cn: lab
gidNumber: 5002
memberUid: alice
END
exec slapd -d 0 -h ldap:/// -f $directory/slapd.conf

#!/bin/bash
# Serves a directory with two users: alice, 5001, of the groups alice (5001) and lab (5002); and bob, 5011, of the group bob alone. Neither
# has an SSH key until root of this container gives them one: ldapmodify -Y EXTERNAL -H ldapi:///, attribute sshPublicKey.
set -euo pipefail

directory=/tmp/ldap
mkdir -p $directory/data /var/run/slapd
cat >$directory/slapd.conf <<'END'
include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/nis.schema
include /etc/ldap/schema/inetorgperson.schema
# As SSSD looks for it. No schema of Debian's slapd has it.
attributetype ( 1.3.6.1.4.1.24552.500.1.1.1.13 NAME 'sshPublicKey'
  EQUALITY octetStringMatch SYNTAX 1.3.6.1.4.1.1466.115.121.1.40 )
objectclass ( 1.3.6.1.4.1.24552.500.1.1.2.0 NAME 'ldapPublicKey' SUP top AUXILIARY
  MAY ( sshPublicKey $ uid ) )
modulepath /usr/lib/ldap
moduleload back_mdb
database mdb
suffix dc=example,dc=com
rootdn "gidNumber=0+uidNumber=0,cn=peercred,cn=external,cn=auth"
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
objectClass: ldapPublicKey
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

dn: uid=bob,dc=example,dc=com
objectClass: inetOrgPerson
objectClass: posixAccount
objectClass: ldapPublicKey
uid: bob
cn: Bob
sn: Example
uidNumber: 5011
gidNumber: 5011
homeDirectory: /home/bob
loginShell: /bin/bash

dn: cn=bob,dc=example,dc=com
objectClass: posixGroup
cn: bob
gidNumber: 5011

dn: cn=lab,dc=example,dc=com
objectClass: posixGroup
cn: lab
gidNumber: 5002
memberUid: alice
END
exec slapd -d 0 -h "ldap:/// ldapi:///" -f $directory/slapd.conf

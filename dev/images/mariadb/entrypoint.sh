#!/bin/bash
# Serves a database to one user: $MARIADB_USER with $MARIADB_PASSWORD has all rights on $MARIADB_DATABASE, which need not exist. Makes
# MariaDB's own tables where there are none.
set -euo pipefail

data=/var/lib/mysql
# As slurmdbd wants them; and a conflicting read must not end it, as it does with MariaDB's own from 11.6.2 on. The memory is used as the
# tables grow.
options=(--no-defaults "--datadir=$data" --innodb-buffer-pool-size=2G --innodb-log-file-size=64M --innodb-lock-wait-timeout=900
  --max-allowed-packet=16M --loose-innodb-snapshot-isolation=OFF)
if [[ ! -d $data/mysql ]]; then
  tables=(/usr/share/{mariadb,mysql}/{mariadb,mysql}_system_tables{,_data}.sql)
  for file in "${tables[@]}"; do [[ ! -f $file ]] || found+=("$file"); done
  { printf '%s\n' 'create database mysql;' 'use mysql;'; cat "${found[@]}"; } | mariadbd "${options[@]}" --bootstrap
fi
quoted=${MARIADB_PASSWORD//\\/\\\\}
quoted=${quoted//\'/\\\'}
{
  printf "create user if not exists '%s'@'%%' identified by '%s';\n" "$MARIADB_USER" "$quoted"
  printf "alter user '%s'@'%%' identified by '%s';\n" "$MARIADB_USER" "$quoted"
  printf "grant all on \`%s\`.* to '%s'@'%%';\n" "$MARIADB_DATABASE" "$MARIADB_USER"
} >/tmp/users.sql
exec mariadbd "${options[@]}" --socket=/tmp/mariadb.sock --skip-name-resolve --init-file=/tmp/users.sql

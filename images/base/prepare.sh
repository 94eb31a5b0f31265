#!/bin/sh
# Turns a Debian with the packages of ./packages into the base of the Slurm images. Runs as root inside of it, once.
set -eu

# The public Slurm images, and so the pods that operators make, know user and group slurm as 401. Debian has 64030.
old_uid=$(id -u slurm)
old_gid=$(getent group slurm | cut -d: -f3)
sed -i "s/^slurm:\([^:]*\):$old_uid:$old_gid:/slurm:\1:401:401:/" /etc/passwd
sed -i "s/^slurm:\([^:]*\):$old_gid:/slurm:\1:401:/" /etc/group
[ "$(id -u slurm):$(id -g slurm)" = 401:401 ]
find / -xdev -uid "$old_uid" -exec chown -h slurm {} +
find / -xdev -gid "$old_gid" -exec chgrp -h slurm {} +

# Pods mount their own /etc/slurm, with every file they want in it.
rm -rf /etc/slurm
mkdir -p /etc/slurm

# Directories of a slurmctld, slurmdbd or sackd that runs as 401 and never was root. A volume may cover each.
for directory in /run/slurm /run/slurmctld /run/slurmdbd /var/spool/slurmctld /var/log/slurm; do
  mkdir -p "$directory"
  chown slurm:slurm "$directory"
  chmod 0755 "$directory"
done
mkdir -p /var/spool/slurmd /run/sshd
chmod 0755 /var/spool/slurmd /run/sshd

# Host keys belong to a deployment, never to an image.
rm -f /etc/ssh/ssh_host_*

# What no container needs.
rm -rf /usr/share/doc /usr/share/man /usr/share/info /usr/share/locale /usr/share/lintian /usr/share/bug \
  /usr/share/common-licenses /usr/share/X11 /usr/lib/*-linux-gnu/gconv \
  /var/lib/apt/lists /var/cache/apt /var/cache/debconf /var/cache/ldconfig \
  /var/log/apt /var/log/dpkg.log /var/log/alternatives.log /var/log/bootstrap.log /etc/init.d /etc/logrotate.d
mkdir -p /var/lib/apt/lists/partial /var/cache/apt/archives/partial
find / -xdev -name '*.pyc' -delete
: >/etc/machine-id
rm -f /var/lib/dbus/machine-id

#!/bin/bash
# Starts a login node: sackd, which fetches the configuration and keeps the credentials, and sshd beside it.
#
# The container's arguments follow SACKD_OPTIONS; together they are read as shell words. SSHD_OPTIONS goes to sshd, and
# SSSD_OPTIONS to sssd, where that is installed and has a configuration. Each of them is started again when it ends, for the
# container's end would end the sessions on it.
set -euo pipefail

set -f +u
eval "options=(${SACKD_OPTIONS-} $*)"
eval "ssh_options=(${SSHD_OPTIONS-})"
eval "sss_options=(${SSSD_OPTIONS-})"
set +f -u

mkdir -p /run/sshd /run/slurm
chown slurm:slurm /run/slurm
# A container before this one may have left it, and who sees it takes sackd for running.
rm -f /run/slurm/sack.socket

# Runs a command again whenever it ends.
keep() {
  while true; do
    "$@" || true
    sleep 2
  done
}

# What is not mounted is made, as in a container without an operator.
ssh-keygen -A >&2
keep /usr/sbin/sshd -D -e ${ssh_options[@]+"${ssh_options[@]}"} &

if [[ -s /etc/sssd/sssd.conf ]]; then
  if command -v sssd >/dev/null; then
    keep sssd -i ${sss_options[@]+"${sss_options[@]}"} &
  else
    echo "entrypoint: there is an sssd.conf, but this image does not have sssd" >&2
  fi
fi

cd /run/slurm
keep setpriv --reuid=slurm --regid=slurm --init-groups \
  notify-init sackd --systemd ${options[@]+"${options[@]}"} &

# As the first process of the container it ends all others with itself.
trap 'exit 0' TERM INT
wait

#!/bin/bash
# Starts a login node: sackd, which fetches the configuration and keeps the credentials, and sshd beside it.
#
# The container's arguments follow SACKD_OPTIONS; together they are read as shell words. SSHD_OPTIONS goes to sshd, and
# SSSD_OPTIONS to sssd, where that is installed and has a configuration. The container ends with sackd.
set -euo pipefail

set -f +u
eval "options=(${SACKD_OPTIONS-} $*)"
eval "ssh_options=(${SSHD_OPTIONS-})"
eval "sss_options=(${SSSD_OPTIONS-})"
set +f -u

mkdir -p /run/sshd /run/slurm
chown slurm:slurm /run/slurm

# Runs a command again whenever it ends.
keep() {
  while true; do
    "$@" || true
    sleep 2
  done
}

serve_ssh() {
  ssh-keygen -A >&2
  keep /usr/sbin/sshd -D -e ${ssh_options[@]+"${ssh_options[@]}"}
}
serve_ssh &

if [[ -s /etc/sssd/sssd.conf ]] && command -v sssd >/dev/null; then
  keep sssd -i ${sss_options[@]+"${sss_options[@]}"} &
fi

cd /run/slurm
exec setpriv --reuid=slurm --regid=slurm --init-groups \
  notify-init sackd --systemd ${options[@]+"${options[@]}"}

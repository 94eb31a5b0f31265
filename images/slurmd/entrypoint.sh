#!/bin/bash
# Starts slurmd, fitted to the pod it runs in.
#
# The container's arguments follow SLURMD_OPTIONS; together they are read as shell words, so that
# `--conf 'Features=a CPUs=2'` carries its own quotes.
#
#   POD_CPUS      CPUs of the pod; the rest of the machine becomes CoreSpecCount
#   POD_MEMORY    memory of the pod in MiB; the rest of the machine becomes MemSpecLimit
#   POD_TOPOLOGY  becomes Topology
#   SSHD_OPTIONS  arguments of sshd, which runs beside slurmd when something is mounted below /etc/ssh
#   PAM_SLURM_ADOPT_OPTIONS  how strictly sshd keeps people without a job out
#   WORKER_NAME   the node's name in Slurm, where that need not be the host's: the operator passes it to slurmd as -N, too
#   SSSD_OPTIONS  arguments of sssd, which runs beside slurmd when it has a configuration, where the image has it
#
# What --conf already says about a thing wins: CPUs, Boards, Sockets, CoreSpecCount and so on leave no room for a computed
# CoreSpecCount, RealMemory none for MemSpecLimit. An empty value (`Topology=`) is dropped: slurmd would not start.
set -euo pipefail

set -f +u
eval "options=(${SLURMD_OPTIONS-} $*)"

# Takes --conf out of the options; what is in it is kept as one string.
conf=''
others=()
while ((${#options[@]} > 0)); do
  case "${options[0]}" in
    --conf)
      conf+=" ${options[1]-}"
      options=("${options[@]:1}")
      ;;
    --conf=*) conf+=" ${options[0]#--conf=}" ;;
    *) others+=("${options[0]}") ;;
  esac
  options=("${options[@]:1}")
done

# Slurm separates by blanks, and a value with blanks in it stands in double quotes: Reason="a b".
words=()
pattern='^[[:space:]]*(([^[:space:]"]|"[^"]*")+)([[:space:]].*)?$'
while [[ $conf =~ $pattern ]]; do
  word=${BASH_REMATCH[1]}
  conf=${BASH_REMATCH[3]}
  [[ $word == *= || $word == *=\"\" ]] || words+=("$word")
done
# What cannot be taken apart is slurmd's to complain about.
[[ $conf =~ ^[[:space:]]*$ ]] || words+=("${conf# }")
set +f -u

# Whether --conf has one of the given keys. Slurm's keys know no case.
has() {
  local word key
  for word in ${words[@]+"${words[@]}"}; do
    for key in "$@"; do
      [[ ${word,,} == "${key,,}="* ]] && return 0
    done
  done
  return 1
}

# One number out of what slurmd sees of the machine.
detected() {
  [[ $machine =~ (^|[[:space:]])$1=([0-9]+) ]] && echo "${BASH_REMATCH[2]}"
}

pod_cpus=${POD_CPUS:-0}
pod_memory=${POD_MEMORY:-0}
[[ $pod_cpus =~ ^[0-9]+$ ]] || { echo "entrypoint: POD_CPUS is no number: $pod_cpus" >&2; pod_cpus=0; }
[[ $pod_memory =~ ^[0-9]+$ ]] || { echo "entrypoint: POD_MEMORY is no number: $pod_memory" >&2; pod_memory=0; }
if has CPUs Procs Boards Sockets SocketsPerBoard CoresPerSocket ThreadsPerCore CoreSpecCount CpuSpecList; then pod_cpus=0; fi
if has RealMemory MemSpecLimit; then pod_memory=0; fi

if ((pod_cpus > 0 || pod_memory > 0)); then
  machine=$(slurmd -C)
  if ((pod_cpus > 0)); then
    threads=$(detected ThreadsPerCore)
    cores=$(($(detected Boards) * $(detected SocketsPerBoard) * $(detected CoresPerSocket)))
    # Slurm gives out whole cores. Round down, but leave one.
    usable=$((pod_cpus / threads))
    ((usable > 0)) || usable=1
    ((cores <= usable)) || words+=("CoreSpecCount=$((cores - usable))")
  fi
  if ((pod_memory > 0)); then
    memory=$(detected RealMemory)
    ((memory <= pod_memory)) || words+=("MemSpecLimit=$((memory - pod_memory))")
  fi
fi
if [[ -n ${POD_TOPOLOGY-} ]] && ! has Topology; then words+=("Topology=$POD_TOPOLOGY"); fi
if ((${#words[@]} > 0)); then others+=(--conf "${words[*]}"); fi

# slurmd 26.05 does not start when /run/slurm is anybody else's.
install -d -o root -g root -m 0755 /run/slurm /var/spool/slurmd

# Runs a command again whenever it ends.
keep() {
  while true; do
    "$@" || true
    sleep 2
  done
}

# A job's user may look at a node where the job runs, and nobody else.
serve_ssh() {
  local -a ssh_options
  eval "ssh_options=(${SSHD_OPTIONS-})"
  local rule="account required pam_slurm_adopt.so ${PAM_SLURM_ADOPT_OPTIONS:-action_adopt_failure=deny action_generic_failure=deny}"
  # Else it looks for the jobs of a node that is called like the host.
  rule+=${WORKER_NAME:+ nodename=$WORKER_NAME}
  local asked='^account[^#]*pam_slurm_adopt\.so'
  grep -q "$asked" /etc/pam.d/sshd || sed -i "s|^@include common-account|$rule\n&|" /etc/pam.d/sshd || true
  if ! grep -q "$asked" /etc/pam.d/sshd; then
    echo "entrypoint: sshd does not start: /etc/pam.d/sshd has no line for pam_slurm_adopt.so, nor a place for one" >&2
    return
  fi
  mkdir -p /run/sshd
  ssh-keygen -A >&2
  keep /usr/sbin/sshd -D -e ${ssh_options[@]+"${ssh_options[@]}"}
}
if [[ -n ${SSHD_OPTIONS-} ]] || grep -q ' /etc/ssh' /proc/self/mountinfo; then
  serve_ssh &
fi

# Who users are.
if [[ -n ${SSSD_OPTIONS-} || -s /etc/sssd/sssd.conf ]]; then
  sss_options=()
  eval "sss_options=(${SSSD_OPTIONS-})"
  if command -v sssd >/dev/null; then
    keep sssd -i ${sss_options[@]+"${sss_options[@]}"} &
  else
    echo "entrypoint: sssd is asked for, but this image does not have it" >&2
  fi
fi

exec notify-init slurmd --systemd ${others[@]+"${others[@]}"}

#!/bin/sh
# Waits while the node may run pods of external jobs that have ended. The bridge notes in `extra` of the node the jobs that it may
# run pods of: {"slurm-bridge": "12 13", "slurm-bridge-cluster": "UID"}. While Slurm does not answer, nothing is known, and the job
# waits.
PATH=$PATH:/usr/bin:/bin:/usr/local/bin:/opt/slurm/bin
while :; do
  if node=$(scontrol --oneliner show node "$SLURMD_NODENAME" 2>/dev/null) && [ -n "$node" ]; then
    noted=$(printf '%s\n' "$node" | sed -n 's/.*Extra={"slurm-bridge": *"\([0-9 ]*\)"[,}].*/\1/p')
    [ -n "$noted" ] || exit 0
    if alive=$(squeue --noheader --states=RUNNING,SUSPENDED,CONFIGURING --nodelist="$SLURMD_NODENAME" --format=%A 2>/dev/null); then
      waits=
      for job in $noted; do
        printf '%s\n' "$alive" | tr -d ' ' | grep -qx "$job" || waits=$job
      done
      [ -n "$waits" ] || exit 0
    fi
  fi
  sleep 1
done

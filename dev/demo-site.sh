#!/bin/bash
# A whole site, from nothing: one `helm install` of the chart `slurm` with accounting, workers of both modes and login nodes, for users of
# an LDAP directory. One of them logs in by ssh and submits a job, and sacct has its record. Usage: dev/demo-site.sh [SLURM RELEASE]
. "$(dirname "$0")/lib.sh"
. "$DEV/demo-lib.sh"

namespace=site controller=slurm
login=slurm-login-slinky
demo_begin demo-site "$@"

kinds=controllers,accountings,restapis,nodesets,loginsets,tokens
client() { k exec client -- "$@"; }
# as USER COMMAND: on a login node. The command is one for a shell.
as() { client ssh -o LogLevel=ERROR -o BatchMode=yes -o ConnectTimeout=10 "$1@$login" "$2"; }
# key_in_directory USER: a key that the client has made, or had.
key_in_directory() {
  local public
  # shellcheck disable=SC2016
  public=$(client sh -c '[ -f ~/.ssh/"$1" ] || ssh-keygen -q -t ed25519 -N "" -C "$1" -f ~/.ssh/"$1"; cat ~/.ssh/"$1".pub' - "$1")
  printf '%s\n' "dn: uid=$1,dc=example,dc=com" "changetype: modify" "replace: sshPublicKey" "sshPublicKey: $public" |
    k exec -i ldap -- ldapmodify -Q -Y EXTERNAL -H ldapi:/// >/dev/null
}

step "making an image of MariaDB and loading it into the nodes"
database_image

step "what a site has beside Slurm: a directory (slapd), a database, a volume for homes, and a user's machine"
make_namespace
database_password
apply "$DEV/demo/mariadb.yaml"
apply "$DEV/demo/site.yaml"
k wait --for=condition=Ready --timeout=180s pod/ldap pod/client >/dev/null || {
  k get pods >&2
  die "the directory does not start" "kubectl describe -n $namespace pod/ldap pod/client"
}
for user in alice bob; do key_in_directory $user; done

step "helm install slurm charts/slurm -f dev/demo/site-values.yaml (Slurm $tag)"
installed=${EPOCHREALTIME/./}
filled "$DEV/demo/site-values.yaml" | helm upgrade --install slurm "$TOP/charts/slurm" --namespace $namespace --values - >/dev/null

step "waiting until all of it is Ready"
k wait --for=condition=Ready --all --timeout=300s "$(sed -E 's/(,|$)/.slinky.slurm.net\1/g' <<<"$kinds")" | indented || {
  k get "$kinds,pods" >&2
  die "not all of the site is Ready" "kubectl describe -n $namespace $kinds"
}
ready=$(((${EPOCHREALTIME/./} - installed) / 100000))
ctld sinfo --partition=cpu,host,all --format='%12P %.5a %.6D %6t %N' | indented

step "sacctmgr: an account, and alice in it"
listed() { [[ -n $(ctld sacctmgr --noheader list association where "$@") ]]; }
listed account=physics || ctld sacctmgr --immediate add account physics >/dev/null
listed account=physics user=alice || ctld sacctmgr --immediate add user alice account=physics >/dev/null
ctld sacctmgr --noheader --parsable2 list association format=cluster,account,user | indented

step "ssh alice@$login: her key is in the directory, her home on the volume"
wait_for 60 "" as alice true || { as alice true || true; die "alice cannot log in" "kubectl logs -n $namespace deployment/$login"; }
as alice 'id; pwd' | indented

step "srun from there: workers of both modes"
as alice 'srun -N5 --immediate=60 hostname' | sort | indented

step "sbatch from there, and sacct"
job=$(as alice "sbatch --parsable -N2 --output=job.out --wrap 'srun hostname; echo I am \$(whoami)'")
wait_for 120 "" recorded "$job" 'COMPLETED|physics' || die "slurmdbd has no record of job $job" "kubectl exec -n $namespace client -- ssh alice@$login sacct"
as alice 'cat job.out' | indented
as alice 'sacct --allocations --format=jobid,user,account,partition,state,nodelist' | indented
[[ $(as alice "sacct --allocations --noheader --parsable2 --jobs=$job --format=user,state") == "alice|COMPLETED" ]] ||
  die "sacct on the login node does not show her job $job"

step "ssh bob@$login: he has a key in the directory, but is not in the group that sssd.conf names"
! as bob true 2>/dev/null || die "bob, who is not in the group lab, could log in"
say "               refused"
echo
echo "The demo works: a user of the directory logged in and ran a job, and sacct has its record. The site was ready" \
  "$((ready / 10)).$((ready % 10)) s after helm install."
printf '  %-77s %s\n' "kubectl -n $namespace exec -it client -- ssh alice@$login" "log in as she does" \
  "kubectl -n $namespace get $kinds" "what was made" \
  "helm -n $namespace get values slurm" "of what" \
  "make down" "leave nothing behind"

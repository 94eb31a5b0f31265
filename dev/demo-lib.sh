# What the demos have in common. Sourced after lib.sh.  $namespace is where the demo's cluster is, $controller the name of its Controller.
# shellcheck shell=bash disable=SC2154
. "$DEV/cgroup.sh"

# demo_begin DEMO [SLURM RELEASE]: the local cluster, and the operator in it. $tag is then the release: that which is asked for, or 26.05
# where there are images of it, else the newest.
demo_begin() {
  local made
  need_root "make $1"
  GOAL=demo "$DEV/up.sh"
  STEP=0 STARTED=${EPOCHREALTIME/./}
  export KUBECONFIG=$LOCAL/kubeconfig
  made=$(slurm_releases made)
  slurm_releases skipped | while read -r line; do warn "there are no images of Slurm $line"; done
  tag=${2:-${SLURM:-}}
  : "${tag:=${made%%$'\n'*}}"
  grep -qxF "$tag" <<<"$made" || die "there are no images of Slurm $tag; there are of: ${made//$'\n'/ }" "SLURM=${made%%$'\n'*} make $1"
  "$DEV/operator.sh" install
}

indented() { sed 's/^/               /'; }
k() { kubectl -n "$namespace" "$@"; }
ctld() { k exec "$controller-controller-0" -c slurmctld -- "$@"; }

# filled FILE: a manifest with what stands in it as ${TAG} and ${CGROUP_PLUGIN}.
filled() { sed -e "s|\${TAG}|$tag|; s|\${CGROUP_PLUGIN}|$(slurm_cgroup_plugin "$(cgroup_version "$(cat /proc/mounts)")")|" "$1"; }
apply() { filled "$1" | k apply -f - | indented; }
make_namespace() { kubectl create namespace "$namespace" --dry-run=client -o yaml | kubectl apply -f - >/dev/null; }

# wait_ready KIND/NAME [CONDITION]
wait_ready() {
  k wait --for="condition=${2:-Ready}" --timeout="${WAIT:-180s}" "${1%/*}.slinky.slurm.net/${1#*/}" >/dev/null || {
    k get accountings,controllers,restapis,nodesets,loginsets,pods >&2
    die "$1 is not ${2:-Ready}" "kubectl describe -n $namespace $1"
  }
}

# database_image: of MariaDB, into the nodes.
database_image() {
  local tar
  tar=$("$DEV/images/build.sh" --database 2>"$LOCAL/database-image.log" | sed -n 's/^image-tar: //p') ||
    die "the image could not be made" "see $LOCAL/database-image.log"
  "$DEV/load-image.sh" "$tar" >"$LOCAL/database-image.log" 2>&1 || die "the image could not be loaded" "see $LOCAL/database-image.log"
}
database_password() {
  k get secret mariadb-password >/dev/null 2>&1 ||
    k create secret generic mariadb-password --from-literal=password="$(openssl rand -hex 16)" >/dev/null
}

# recorded JOB STATE|ACCOUNT: as slurmdbd has them.
recorded() { [[ $(ctld sacct --allusers --noheader --parsable2 --allocations --jobs="$1" --format=state,account) == "$2" ]]; }

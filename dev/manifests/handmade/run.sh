#!/bin/bash
# Proves the Slurm images on the local cluster with manifests written by hand, without the operator: a cluster of two workers
# and a login node, a job over both workers, REST from outside, reconfigures good and bad, and how fast each daemon stops.
# Usage: dev/manifests/handmade/run.sh [VERSION, as make demo by default] [--keep]; ends with "N passed, N failed", and stops at the first failure.
. "$(dirname "$0")/../../lib.sh"
. "$DEV/cluster.sh"

version=${1:-}
: "${version:=$(slurm_releases made | head -n1)}"
here=$DEV/manifests/handmade
namespace=handmade-${version/./-}
export KUBECONFIG=${KUBECONFIG:-$LOCAL/kubeconfig}

k() { kubectl -n "$namespace" "$@"; }
ctld() { k exec slurmctld-0 -- "$@"; }
passed=0
result() { # of a check that held
  say "               $*"
  passed=$((passed + 1))
}

clean() {
  local status=$?
  [[ -z $database ]] || { kill -KILL "$database" && wait "$database"; } 2>/dev/null || true
  [[ -z $database ]] || rm -f "$RUNTIME/survivor.mariadb"
  rm -rf "$scratch"
  if ((status != 0)); then
    k get pods -o wide >&2 || true
    k get pods -o name | while read -r pod; do
      say "--- $pod" >&2
      k logs --all-containers --tail=15 "$pod" >&2 || true
    done || true
  fi
  if [[ $keep == no ]]; then kubectl delete namespace "$namespace" --ignore-not-found --wait=false >/dev/null || status=1; fi
  say "$passed passed, $((status != 0)) failed"
  exit $((status != 0))
}
keep=no
[[ ${2:-} != --keep ]] || keep=yes
database= database_port=24306
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
survivors_end

step "images of Slurm $version"
if ! tar=$("$DEV/images/build.sh" "$version" 2>"$scratch/log" | sed -n 's/^image-tar: //p') || [[ -z $tar ]]; then
  die "there are no images of $version: $(tail -n1 "$scratch/log")" "dev/images/build.sh $version"
fi
# shellcheck disable=SC2086  # one archive a line
"$DEV/load-image.sh" $tar >/dev/null

trap clean EXIT
step "applying the manifests in $namespace"
kubectl delete namespace "$namespace" --ignore-not-found >/dev/null
kubectl create namespace "$namespace" >/dev/null
head -c 1024 /dev/urandom >"$scratch/slurm.key"
head -c 32 /dev/urandom >"$scratch/jwt.key"
password=$(openssl rand -hex 16)
k create secret generic slurm-keys --from-file="$scratch/slurm.key" --from-file="$scratch/jwt.key" >/dev/null
applied=${EPOCHREALTIME/./}
{
  for name in cpu-0 cpu-1; do
    sed "s/@NAME@/$name/" "$here/worker.yaml"
    echo ---
  done
  cat "$here/cluster.yaml"
  echo ---
  cat "$here/login.yaml"
  echo ---
  sed "s/@DATABASE_HOST@/$HOST_IP/; s/@DATABASE_PORT@/$database_port/; s/@DATABASE_PASSWORD@/$password/" "$here/slurmdbd.yaml"
} | sed "s/@VERSION@/$version/; s/@NAMESPACE@/$namespace/" | k apply -f - >/dev/null

step "waiting for both workers to be idle"
idle() { (($(ctld sinfo --noheader --Node --states=idle --format=%N | wc -l) == 2)); }
wait_for 180 "idle workers" idle || die "the workers did not become idle within 180 s"
result "$(((${EPOCHREALTIME/./} - applied) / 1000)) ms after apply"
say "               $(ctld scontrol show nodes --oneliner | grep -oE '(NodeName|CPUEfctv|RealMemory|MemSpecLimit|CoreSpecCount|Version)=[^ ]+' | paste -sd' ')"

# job POD COMMAND...: what a job over both workers says.
job() {
  local output
  output=$(k exec "$1" -- "${@:2}" srun -N2 --immediate=120 hostname | sort | paste -sd' ')
  [[ $output == "cpu-0 cpu-1" ]] || die "srun -N2 hostname in $1 said '$output'"
  result "$1: $output"
}
step "srun -N2 hostname"
job slurmctld-0
k wait --for=condition=Ready --timeout=180s pod/login >/dev/null
job login
# A job that has to wait is one that slurmctld calls back about.
k exec slurmctld-0 -- sbatch -N2 --exclusive --output=/dev/null --wrap 'sleep 3' >/dev/null
job login setpriv --reuid=1 --regid=1 --clear-groups

step "ssh to the login node"
banner() { bash -c "exec 3<>/dev/tcp/$(k get pod login -o jsonpath='{.status.podIP}')/22; head -n 1 <&3" | grep '^SSH-2.0-'; }
wait_for 60 "" banner || die "sshd of the login node does not answer"
result "login: $(banner)"

step "REST from outside of the cluster"
k rollout status deployment/slurmrestd --timeout=180s >/dev/null
url=http://$(k get service slurmrestd -o jsonpath='{.spec.clusterIP}'):6820
token=$(ctld scontrol token username=slurm lifespan=600 | sed -n 's/^SLURM_JWT=//p')
rest() { curl -sS --max-time 10 -H "X-SLURM-USER-TOKEN: $token" "$url$1"; }
# kube-proxy may be a moment behind the pod.
reached() { curl -s --connect-timeout 1 -o /dev/null "$url/"; }
wait_for 120 "" reached || die "slurmrestd is not reached at $url"
parser=$(rest /openapi/v3 | jq -r '.paths | keys[]' | sed -n 's|^/slurm/\(v[0-9.]*\)/ping/*$|\1|p' | sort -V | tail -n1)
[[ -n $parser ]] || die "no version in /openapi/v3"
wait_for 60 "" idle || true # after the jobs
ping=$(rest "/slurm/$parser/ping" | jq -r '.pings[0].responding')
nodes=$(rest "/slurm/$parser/nodes" | jq -r '[.nodes[] | .name + "=" + (.state | join("+"))] | sort | join(" ")')
[[ $ping == true && $nodes == *cpu-0=IDLE*cpu-1=IDLE* ]] || die "REST said ping=$ping nodes=$nodes"
result "$parser ping=$ping $nodes"

step "slurmdbd and its database"
"$DEV/deps.sh" database
dbd() { k exec slurmdbd -c slurmdbd -- "$@"; }
waits() { grep -qi 'database must be up' <<<"$(k logs slurmdbd -c slurmdbd)"; }
wait_for 120 "" waits || die "slurmdbd does not wait for its database"
result "it waits for it"
# Not root's and not the machine's: a MariaDB with nothing but this database.
mkdir "$scratch/database"
mariadb() { exec setpriv --reuid=65534 --regid=65534 --clear-groups mariadbd --no-defaults --datadir="$scratch/database" "$@"; }
printf '%s\n' "create user slurm@'%' identified by '$password';" "grant all on slurm_acct_db.* to slurm@'%';" >"$scratch/database/users.sql"
chown -R 65534:65534 "$scratch/database"
chmod 711 "$scratch"
chmod 600 "$scratch"/*.key
{ printf '%s\n' 'create database mysql;' 'use mysql;'; cat /usr/share/mysql/mysql_system_tables{,_data}.sql; } |
  mariadb --bootstrap >"$scratch/log" 2>&1 || die "MariaDB's own tables could not be made: $(grep ERROR "$scratch/log")"
mariadb --socket="$scratch/database/socket" --bind-address="$HOST_IP" --port=$database_port --skip-name-resolve \
  --init-file="$scratch/database/users.sql" >"$scratch/log" 2>&1 </dev/null &
database=$!
survivor_note mariadb $database
k wait --for=condition=Ready --timeout=180s pod/slurmdbd >/dev/null || die "slurmdbd is not ready; MariaDB says: $(tail -n3 "$scratch/log")"
dbd sacctmgr --immediate add account physics >/dev/null
accounts=$(dbd sacctmgr --noheader --parsable2 list account format=account | sort | paste -sd' ')
[[ $accounts == "physics root" ]] || die "sacctmgr lists the accounts '$accounts'"
result "accounts: $accounts"

step "reconfigure: good, bad, mended"
# configure SED-EXPRESSION MARK: changes slurm.conf and waits until the pod has a file with that mark.
configure() {
  k get configmap slurm-config -o json | jq --arg from "$1" --arg to "$2" '.data["slurm.conf"] |= sub($from; $to)' | k apply -f - >/dev/null 2>&1
  # The kubelet looks at the volumes of a pod when the pod changes.
  wait_for 120 "the new slurm.conf" arrived "$2" || die "slurm.conf did not arrive in the pod"
}
arrived() {
  k annotate --overwrite pod slurmctld-0 "tick=$((++tick))" >/dev/null
  sleep 0.3
  ctld grep -qF "$1" /etc/slurm/slurm.conf
}
tick=0
reconfigure() { ctld scontrol reconfigure >"$scratch/out" 2>&1; }
max_nodes() { ctld scontrol show config | sed -n 's/^MaxNodeCount *= *//p'; }
configure 'MaxNodeCount=1024' 'MaxNodeCount=900'
reconfigure || die "a good reconfigure failed: $(cat "$scratch/out")"
[[ $(max_nodes) == 900 ]] || die "MaxNodeCount is $(max_nodes) after the reconfigure"
result "taken: MaxNodeCount=900"
# This one the client cannot tell: slurmctld has to refuse it, and to live on.
configure 'Nodes=cpu ' 'Nodes=nosuch '
reconfigure && die "a bad slurm.conf was accepted"
result "refused: $(head -n1 "$scratch/out")"
configure 'Nodes=nosuch ' 'Nodes=cpu '
configure 'MaxNodeCount=900' 'MaxNodeCount=800'
reconfigure || die "the mended reconfigure failed: $(cat "$scratch/out")"
[[ $(max_nodes) == 800 ]] || die "MaxNodeCount is $(max_nodes) after the mended reconfigure"
restarts=$(k get pod slurmctld-0 -o jsonpath='{.status.containerStatuses[0].restartCount}')
[[ $restarts == 0 ]] || die "slurmctld restarted $restarts times"
result "mended: MaxNodeCount=800, no restart"
job slurmctld-0

step "stopping"
for pod in login slurmdbd cpu-0 "$(k get pod -l app=slurmrestd -o jsonpath='{.items[0].metadata.name}')" slurmctld-0; do
  uid=$(k get pod "$pod" -o jsonpath='{.metadata.uid}')
  begun=${EPOCHREALTIME/./}
  k delete pod "$pod" --wait=false >/dev/null
  gone() { [[ $(k get pod "$pod" -o jsonpath='{.metadata.uid}' 2>/dev/null) != "$uid" ]]; }
  wait_for 40 "the end of $pod" gone || die "$pod did not stop within 40 s"
  result "$pod: $(((${EPOCHREALTIME/./} - begun) / 1000)) ms"
done

#!/bin/bash
# Brings the local cluster up. It can be interrupted and run again at any point.
. "$(dirname "$0")/lib.sh"
. "$DEV/cluster.sh"
. "$DEV/images.sh"
. "$DEV/machine.sh"

# ---- Can it work here? -----------------------------------------------------------------------------------------------

need_root "make up"
lock up
check_owner

all_alive() {
  local name
  for name in control gateway "${NODES[@]}"; do capsule_alive "$name" || return 1; done
}
# What the API says may be of the time before: a node that we started must have renewed its lease since.
nodes_fresh() {
  local node lease
  for node in "${NODES[@]}"; do
    lease=$(kube get lease "$node" -n kube-node-lease -o jsonpath='{.spec.renewTime}') && [[ $lease > $since ]] || return 1
  done
}
since=
nodes_ready() { [[ $(kube get nodes "${NODES[@]}" -o jsonpath='{range .items[*]}{.status.conditions[?(@.type=="Ready")].status} {end}') == "True True True " ]]; }

check_addresses() {
  local routes other
  routes=$(ip -4 route show)
  other=$(routes_in "$(net_ranges "$NET")" "$routes" "$LINK")
  [[ -z $other ]] ||
    die "the addresses ${other%%: *} are used here: ${other#*: }" "choose three others that follow each other: SLURM_OPERATOR_NET=$(net_free "$routes" "$LINK" | grep . || echo A.B) make up"
}

if [[ -f $STATE/etcd-kind && $(cat "$STATE/etcd-kind") != "$ETCD" ]]; then
  die "the cluster was made with ETCD=$(cat "$STATE/etcd-kind")." "make down, then make up with ETCD=$ETCD"
fi
if all_alive && [[ -f $STATE/complete ]] && nodes_ready; then
  say "the cluster is up already"
  exec "$DEV/status.sh" 9>&-
fi

step "checking the machine"
check_machine
"$DEV/estimate.sh" "${GOAL:-up}"
capsule_alive control || check_ports

step "packages"
"$DEV/deps.sh" cluster 9>&-
capsule_alive control || check_addresses

step "programs"
"$DEV/build.sh" cluster 9>&- # one that outlives a kill keeps no lock
mkdir -p "$LOGS"

# ---- Images ----------------------------------------------------------------------------------------------------------

step "images"
cached pause-image "$DEV/pause" "$DEV/images.sh" -- pause_image
images=("$CACHED/pause.tar")
if [[ -x $DEV/images/build.sh ]]; then
  # It says on its last lines what it has made:  image-tar: PATH
  "$DEV/images/build.sh" 9>&- | tee "$LOGS/images.log" | sed -u '/^image-tar: /d; s/^/               /'
  while read -r tar; do images+=("$tar"); done < <(sed -n 's/^image-tar: //p' "$LOGS/images.log")
fi
store_images "${images[@]}"

# ---- State -----------------------------------------------------------------------------------------------------------

boot=$(cat /proc/sys/kernel/random/boot_id)
if [[ -d $STATE && $(cat "$STATE/boot" 2>/dev/null) != "$boot" ]]; then
  step "the machine was started anew since the last run: so is the cluster"
  rm -rf "$STATE"
fi
[[ -d $STATE ]] || rm -f "$LOCAL"/audit*.log
mkdir -p "$STATE/volumes" "$RUNTIME"
echo "$boot" >"$STATE/boot"
echo "$TOP" >"$RUNTIME/owner"

debian_etcd() {
  (cd "$OUT" && apt-get -q download etcd-server >"$CACHE/apt.log" 2>&1 && dpkg -x etcd-server_*.deb . && rm ./*.deb) ||
    die "apt could not download etcd-server." "see $CACHE/apt.log"
}
if [[ $ETCD == debian ]]; then
  cached debian-etcd "$(. /etc/os-release && echo "$VERSION_ID")" -- debian_etcd
  echo "$CACHED/usr/bin/etcd" >"$STATE/etcd-program"
fi
echo "$ETCD" >"$STATE/etcd-kind"
make_pki
kubeconfig "$LOCAL/kubeconfig" admin
corefile >"$STATE/Corefile"

# ---- Start -----------------------------------------------------------------------------------------------------------

step "control plane"
sysctls_save
capsule_alive gateway || capsule_start gateway --net
gateway_network
capsule_alive control || capsule_start control
for node in "${NODES[@]}"; do
  capsule_alive "$node" || node_images_whole "$node" || node_images "$node"
  if capsule_alive "$node"; then
    node_network "$node"
  else
    since=$(date -u +%FT%T)
    start_node "$node"
  fi
done
wait_for 180 "" api_ready || die "the API server is not ready after three minutes." "see $LOGS/kube-apiserver.log and $LOGS/etcd.log"
check_firewall 20

step "cluster DNS, storage class"
apply_base() {
  kube apply --server-side --force-conflicts -f - <<EOF
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: standard, annotations: {storageclass.kubernetes.io/is-default-class: "true"}}
provisioner: slurm-operator/dev
reclaimPolicy: Delete
volumeBindingMode: Immediate
---
apiVersion: v1
kind: Service
metadata: {name: kube-dns, namespace: kube-system}
spec:
  clusterIP: $DNS_IP
  ports: [{name: dns, port: 53, protocol: UDP}, {name: dns-tcp, port: 53, protocol: TCP}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: kube-dns, namespace: kube-system, labels: {kubernetes.io/service-name: kube-dns}}
addressType: IPv4
endpoints: [{addresses: ["$HOST_IP"], conditions: {ready: true}}]
ports: [{name: dns, port: 53, protocol: UDP}, {name: dns-tcp, port: 53, protocol: TCP}]
EOF
}
wait_for 60 "" apply_base || { apply_base; die "the cluster does not take its first objects." "see $LOGS/kube-apiserver.log"; }

step "nodes"
for node in "${NODES[@]}"; do
  wait_for 180 "" within "$node" ctr -a /run/containerd/containerd.sock version || die "containerd of $node does not start." "see $LOGS/$node-containerd.log"
  load_images "$node" "${images[@]}" || die "images could not be loaded into $node." "see $LOGS/$node-images.log"
done
if ! wait_for 180 "" nodes_fresh || ! wait_for 180 "" nodes_ready; then
  die "not all nodes are ready." "kubectl describe nodes; see $LOGS/node-*-kubelet.log"
fi
wait_for 120 "" kube get serviceaccount default -n default || die "the controller manager does not work." "see $LOGS/kube-controller-manager.log"
touch "$STATE/complete"
step "up"
say ""
say "  . dev/env.sh         # kubectl and helm for this cluster"
say "  make status          # what runs"

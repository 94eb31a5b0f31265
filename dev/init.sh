#!/bin/bash
# The first process of a capsule (see cluster.sh): it starts the programs of that capsule, and starts again the ones that end.
. "$(dirname "$0")/lib.sh"
. "$DEV/cluster.sh"
name=$1

# This /proc still is the machine's: it tells the pid by which others know us.
read -r pid _ </proc/self/stat
echo "$pid $(process_start "$pid")" >"$RUNTIME/$name.init.temp"
mv "$RUNTIME/$name.init.temp" "$RUNTIME/$name.init"
mount -t proc proc /proc

# supervise NAME COMMAND...
supervise() {
  local what=$1
  shift
  while :; do
    "$@" >>"$LOGS/$what.log" 2>&1 </dev/null || true
    echo "$(date +%FT%T) $what ended; it starts again" | tee -a "$LOGS/$what.log"
    sleep 1
  done &
}

wait_for_api() { until api_ready; do sleep 0.1; done; }

control() {
  case $ETCD in
    debian) etcd=$(cat "$STATE/etcd-program") etcd_flags=() ;;
    # Speed for safety that a dev cluster does not need: after a crash of the machine `make up` starts anew.
    *) etcd=$LOCAL/bin/etcd etcd_flags=(--unsafe-no-fsync) ;;
  esac
  supervise etcd "$etcd" --data-dir "$STATE/etcd" --log-level warn "${etcd_flags[@]}" \
    --listen-client-urls https://127.0.0.1:2379 --advertise-client-urls https://127.0.0.1:2379 \
    --listen-peer-urls http://127.0.0.1:2380 --initial-advertise-peer-urls http://127.0.0.1:2380 \
    --initial-cluster default=http://127.0.0.1:2380 \
    --cert-file "$PKI/etcd.crt" --key-file "$PKI/etcd.key" --trusted-ca-file "$PKI/ca.crt" --client-cert-auth
  supervise kube-apiserver kube-apiserver \
    --etcd-servers https://127.0.0.1:2379 --etcd-cafile "$PKI/ca.crt" \
    --etcd-certfile "$PKI/apiserver-client.crt" --etcd-keyfile "$PKI/apiserver-client.key" \
    --bind-address "$HOST_IP" --advertise-address "$HOST_IP" --secure-port 6443 \
    --tls-cert-file "$PKI/apiserver.crt" --tls-private-key-file "$PKI/apiserver.key" --client-ca-file "$PKI/ca.crt" \
    --kubelet-client-certificate "$PKI/apiserver-client.crt" --kubelet-client-key "$PKI/apiserver-client.key" \
    --kubelet-preferred-address-types InternalIP \
    --requestheader-client-ca-file "$PKI/ca.crt" --requestheader-allowed-names front-proxy --enable-aggregator-routing \
    --requestheader-username-headers X-Remote-User --requestheader-group-headers X-Remote-Group \
    --requestheader-extra-headers-prefix X-Remote-Extra- \
    --proxy-client-cert-file "$PKI/front-proxy.crt" --proxy-client-key-file "$PKI/front-proxy.key" \
    --service-cluster-ip-range "$SERVICE_CIDR" \
    --service-account-issuer https://kubernetes.default.svc.cluster.local \
    --service-account-key-file "$PKI/service-account.key" --service-account-signing-key-file "$PKI/service-account.key" \
    --authorization-mode Node,RBAC --enable-admission-plugins NodeRestriction --allow-privileged \
    --audit-policy-file "$DEV/audit-policy.yaml" --audit-log-path "$LOCAL/audit.log" --audit-log-maxsize 100 --audit-log-maxbackup 2
  wait_for_api
  supervise kube-controller-manager kube-controller-manager --kubeconfig "$PKI/controller-manager.kubeconfig" \
    --secure-port 0 --leader-elect=false --use-service-account-credentials \
    --root-ca-file "$PKI/ca.crt" --service-account-private-key-file "$PKI/service-account.key" \
    --cluster-signing-cert-file "$PKI/ca.crt" --cluster-signing-key-file "$PKI/ca.key"
  supervise kube-scheduler kube-scheduler --kubeconfig "$PKI/scheduler.kubeconfig" --secure-port 0 --leader-elect=false
  supervise coredns coredns -conf "$STATE/Corefile"
  supervise volumes volumes --kubeconfig "$PKI/dev.kubeconfig" --class standard --dir "$STATE/volumes"
}

proxy() { # NAME NODE
  supervise "$1" kube-proxy --kubeconfig "$PKI/proxy.kubeconfig" --hostname-override "$2" --proxy-mode iptables \
    --cluster-cidr "$POD_CIDR" --metrics-bind-address 127.0.0.1:10249 \
    --conntrack-max-per-core 0 --conntrack-tcp-timeout-established 0s --conntrack-tcp-timeout-close-wait 0s
}

gateway() {
  mount -t tmpfs tmpfs /run
  ip link set lo up
  ip link add switch type bridge
  echo 1 >/proc/sys/net/ipv4/ip_forward
  ip address add "$GATEWAY_IP/24" dev switch
  ip link set switch up
  ip route add blackhole "$POD_CIDR"
  ip route add blackhole "$SERVICE_CIDR"
  for node in "${NODES[@]}"; do ip route add "$(node_pods "$node")" via "$(node_ip "$node")"; done
  wait_for_api
  # As the node that it is not: kube-proxy wants one, and which one matters to "local" traffic policies only.
  proxy gateway-proxy node-1
}

node() {
  local dir=$STATE/nodes/$name cni=/usr/lib/cni
  [[ -x $cni/ptp ]] || cni=/opt/cni/bin
  hostname "$name"
  # What a container mounts here must not show on the machine, but containers may share mounts with the node.
  mount --make-rshared /
  mount --bind "$dir/kubelet" /var/lib/kubelet
  mount --bind "$dir/containerd" /var/lib/containerd
  # Own sockets, shims and pod networks; empty after every start, as after a reboot.
  mount -t tmpfs -o mode=755 tmpfs /run
  mount -t tmpfs -o mode=755 tmpfs /var/lib/cni
  mkdir -p /run/netns /run/cni/conf /run/lock
  local logs=$dir/logs
  exec 8<"$logs"
  mount -t tmpfs -o mode=755 tmpfs /var/log
  mkdir -p /var/log/pods /var/log/containers
  mount --bind "/proc/self/fd/8" /var/log/pods
  exec 8<&-

  cat >/run/containerd.toml <<EOF
version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs", "io.containerd.internal.v1.opt", "io.containerd.tracing.processor.v1.otlp"]
[grpc]
  address = "/run/containerd/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "$PAUSE"
  restrict_oom_score_adj = true # without CAP_SYS_RESOURCE a sandbox cannot lower its own
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "$cni"
    conf_dir = "/run/cni/conf"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
EOF
  # ptp and not bridge: all between pods is routed, so that Services work without br_netfilter.
  cat >/run/cni/conf/10-pods.conflist <<EOF
{"cniVersion": "0.4.0", "name": "pods", "plugins": [
  {"type": "ptp", "ipMasq": false, "ipam": {"type": "host-local", "dataDir": "/run/cni/addresses",
   "ranges": [[{"subnet": "$(node_pods "$name")"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}
EOF
  echo "nameserver $HOST_IP" >/run/resolv.conf
  cat >/run/kubelet.yaml <<EOF
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {x509: {clientCAFile: "$PKI/ca.crt"}, anonymous: {enabled: false}, webhook: {enabled: true}}
authorization: {mode: Webhook}
cgroupDriver: $(kubelet_cgroup_driver "$(cgroup_version "$(</proc/mounts)")")
cgroupRoot: $(kubelet_cgroup_root "$name")
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
clusterDNS: [$DNS_IP]
clusterDomain: cluster.local
resolvConf: /run/resolv.conf
failSwapOn: false
volumePluginDir: /var/lib/kubelet/volume-plugins
# Images come from no registry: one that is collected would be lost. And a machine's disk is not ours to judge by percent.
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
evictionHard: {memory.available: 100Mi, nodefs.available: 500Mi, imagefs.available: 500Mi, nodefs.inodesFree: "1%", imagefs.inodesFree: "1%"}
EOF
  until [[ -n $(ip -4 -brief address show dev eth0 2>/dev/null | awk '{ print $3 }') ]]; do sleep 0.05; done
  supervise "$name-containerd" containerd --config /run/containerd.toml --log-level warn
  wait_for_api
  proxy "$name-proxy" "$name"
  supervise "$name-kubelet" kubelet --config /run/kubelet.yaml --kubeconfig "$PKI/$name.kubeconfig" \
    --hostname-override "$name" --node-ip "$(node_ip "$name")"
}

case $name in
  control | gateway) "$name" ;;
  *) node ;;
esac
# Until it is killed; and it reaps what is left to it.
while :; do wait || true; sleep 1; done

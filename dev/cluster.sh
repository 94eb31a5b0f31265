# The parts of the local cluster. Sourced by up.sh, down.sh, status.sh, node.sh, load-image.sh and init.sh, after lib.sh.
# shellcheck shell=bash
#
# Five capsules, each a process tree in namespaces of its own. When the first process of one is killed, the kernel ends all of it, with
# its mounts, links, routes and rules:
#   control   etcd, kube-apiserver, controller-manager, scheduler, CoreDNS, volume provisioner. In the machine's network.
#   gateway   the switch that joins the nodes and the machine, and a kube-proxy through which the machine reaches Services.
#   node-1..3 containerd, kubelet, kube-proxy. Own network, mounts, processes, host name.
# On the machine itself there is one link, and below each cgroup hierarchy one directory.

. "$DEV/cgroup.sh"

NODES=(node-1 node-2 node-3)
NET=${SLURM_OPERATOR_NET:-10.214} # and the two after it: see below
net_valid "$NET" ||
  die "SLURM_OPERATOR_NET=$NET is not the beginning of an address, with room for the two networks after it." "two numbers, the second at most 253: SLURM_OPERATOR_NET=10.100"
HOST_IP=$NET.0.1
GATEWAY_IP=$NET.0.2
{ read -r NODE_CIDR; read -r POD_CIDR; read -r SERVICE_CIDR; } < <(net_ranges "$NET")
POD_NET=${POD_CIDR%.0.0/16}
SERVICE_NET=${SERVICE_CIDR%.0.0/16}
DNS_IP=$SERVICE_NET.0.10
DNS_LOCAL=127.0.0.10 # the same names, for programs of the machine
API=https://$HOST_IP:6443
LINK=slurmop0
STATE=$LOCAL/state
PKI=$STATE/pki
LOGS=$LOCAL/logs
PAUSE=localhost/pause:1
ETCD=${ETCD:-module}
[[ $ETCD == module || $ETCD == debian ]] ||
  die "unknown ETCD: $ETCD" "ETCD=module (3.6, as Kubernetes ships it) or ETCD=debian (3.4, without WatchList)"

node_number() { echo "${1#node-}"; }
node_ip() { echo "$NET.0.1${1#node-}"; }
node_pods() { echo "$POD_NET.${1#node-}.0/24"; }

# ---- Capsules --------------------------------------------------------------------------------------------------------

capsule_init() { process_of "$RUNTIME/$1.init"; } # its first process, to enter its namespaces
capsule_alive() { [[ -n $(process_of "$RUNTIME/$1.pid") && -n $(capsule_init "$1") ]]; }

# capsule_start NAME UNSHARE-FLAG...
capsule_start() {
  local name=$1
  shift
  capsule_stop "$name"
  mkdir -p "$RUNTIME" "$LOGS"
  # The file is there before the process can do anything; it dies with the outer process (--kill-child).
  # shellcheck disable=SC2016
  setsid bash -c '. "$1/lib.sh"; . "$1/cluster.sh"; name=$2; shift 2
      echo "$$ $(process_start $$)" >"$RUNTIME/$name.pid"
      exec unshare --fork --kill-child=SIGKILL --pid --mount --propagation slave "$@" -- "$DEV/init.sh" "$name"' \
    - "$DEV" "$name" "$@" </dev/null >>"$LOGS/$name.log" 2>&1 9>&- &
  wait_for 60 "" capsule_alive "$name" || die "the $name capsule does not start." "see $LOGS/$name.log"
}

capsule_stop() {
  local file pid
  for file in "$RUNTIME/$1.pid" "$RUNTIME/$1.init"; do
    if pid=$(process_of "$file"); then
      kill -KILL "$pid" 2>/dev/null || true
    fi
  done
  wait_for 60 "" capsule_gone "$1" || die "the $1 capsule does not end." "look at its processes with ps -ef"
  rm -f "$RUNTIME/$1.pid" "$RUNTIME/$1.init"
}
capsule_gone() { [[ -z $(process_of "$RUNTIME/$1.pid") && -z $(capsule_init "$1") ]]; }

# within NAME COMMAND...: in the network and the mounts of a capsule. `nsenter --net` and not `ip netns exec`, which hides the cgroups and,
# by copying the mount table, keeps the network namespaces of pods busy.
within() {
  local name=$1 pid
  shift
  pid=$(capsule_init "$name") || die "$name is not running." "make up, or dev/node.sh start $name"
  nsenter --target "$pid" --net --mount -- "$@"
}

# ---- Who runs the machine's cluster ----------------------------------------------------------------------------------

# A clone may only touch what it started itself; one cluster a machine. What a clone that is gone has left, `make down` of any other removes.
check_owner() {
  local owner
  owner=$(other_owner) || return 0
  owner_gone "$owner" || die "the cluster of another clone is running: $owner" "make -C $owner down"
  [[ ${1:-} == gone-too ]] || die "the cluster of a clone that is gone is running: $owner" "make down, which removes it"
}
owner_gone() { [[ ! -x $1/dev/down.sh ]]; }
# The clone whose cluster runs, if that is another one.
other_owner() {
  local owner name
  owner=$(cat "$RUNTIME/owner" 2>/dev/null) && [[ $owner != "$TOP" ]] || return 1
  for name in control gateway "${NODES[@]}"; do
    ! capsule_alive "$name" || { echo "$owner"; return 0; }
  done
  return 1
}

# ---- Certificates ----------------------------------------------------------------------------------------------------

# certificate FILE CN ORGANISATION [SUBJECT-ALT-NAME]
certificate() {
  openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$PKI/$1.key" -subj "/O=$3/CN=$2" 2>/dev/null |
    openssl x509 -req -CA "$PKI/ca.crt" -CAkey "$PKI/ca.key" -set_serial "0x$(openssl rand -hex 16)" -days 3650 -out "$PKI/$1.crt" \
      -extfile <(printf 'extendedKeyUsage=serverAuth,clientAuth\n%s\n' "${4:+subjectAltName=$4}") 2>/dev/null
}

# kubeconfig FILE CERTIFICATE
kubeconfig() {
  (
    umask 077
    cat >"$1" <<EOF
apiVersion: v1
kind: Config
clusters: [{name: local, cluster: {server: "$API", certificate-authority-data: $(base64 -w0 "$PKI/ca.crt")}}]
users: [{name: $2, user: {client-certificate-data: $(base64 -w0 "$PKI/$2.crt"), client-key-data: $(base64 -w0 "$PKI/$2.key")}}]
contexts: [{name: local, context: {cluster: local, user: $2}}]
current-context: local
EOF
  )
}

make_pki() {
  local node
  [[ ! -f $PKI/complete ]] || return 0
  rm -rf "$PKI"
  mkdir -p -m 700 "$PKI"
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$PKI/ca.key" -out "$PKI/ca.crt" -days 3650 \
    -subj /CN=slurm-operator-dev 2>/dev/null
  openssl ecparam -name prime256v1 -genkey -noout -out "$PKI/service-account.key"
  certificate apiserver kube-apiserver system \
    "IP:$HOST_IP,IP:127.0.0.1,IP:$SERVICE_NET.0.1,DNS:localhost,DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,DNS:kubernetes.default.svc.cluster.local"
  certificate etcd etcd system IP:127.0.0.1
  certificate apiserver-client kube-apiserver system:masters # to etcd and the kubelets
  certificate front-proxy front-proxy system
  certificate admin admin system:masters
  certificate controller-manager system:kube-controller-manager system
  certificate scheduler system:kube-scheduler system
  certificate proxy system:kube-proxy system
  certificate dev slurm-operator-dev system:masters # DNS and volumes
  for node in "${NODES[@]}"; do certificate "$node" "system:node:$node" system:nodes; done
  for node in controller-manager scheduler proxy dev "${NODES[@]}"; do kubeconfig "$PKI/$node.kubeconfig" "$node"; done
  touch "$PKI/complete"
}

# ---- DNS -------------------------------------------------------------------------------------------------------------

# Its plugins are those that dev/kube/coredns has.
corefile() {
  cat <<EOF
cluster.local in-addr.arpa ip6.arpa {
  bind $HOST_IP $DNS_LOCAL
  errors
  # No cache: Services come and go.
  kubernetes cluster.local in-addr.arpa ip6.arpa {
    kubeconfig "$PKI/dev.kubeconfig"
    pods insecure
    ttl 1
  }
}
. {
  bind $HOST_IP $DNS_LOCAL
  errors
  template ANY ANY {
    rcode NXDOMAIN
  }
}
EOF
}

# ---- Network ---------------------------------------------------------------------------------------------------------

in_net() { nsenter --target "$(capsule_init "$1")" --net -- "${@:2}"; }

# The machine and the gateway: one link, and all routes on it, so that they go when the gateway does.
gateway_network() {
  local node
  ! ip link show "$LINK" &>/dev/null || in_net gateway ip link show host &>/dev/null || ip link delete "$LINK"
  if ! ip link show "$LINK" &>/dev/null; then
    ip link add "$LINK" type veth peer name host netns "$(capsule_init gateway)"
  fi
  ip address replace "$HOST_IP/24" dev "$LINK"
  echo 1 >"/proc/sys/net/ipv6/conf/$LINK/disable_ipv6" 2>/dev/null || true
  ip link set "$LINK" up
  in_net gateway ip link set host master switch up
  # Pods and Services that exist are reached; those that do not exist are lost in the gateway, and never leave the machine.
  for node in "${NODES[@]}"; do ip route replace "$(node_pods "$node")" via "$(node_ip "$node")"; done
  ip route replace "$POD_CIDR" via "$GATEWAY_IP"
  ip route replace "$SERVICE_CIDR" via "$GATEWAY_IP"
}

# A node and the gateway. No default route: nothing of a pod reaches beyond the machine.
node_network() {
  local node=$1 other
  in_net gateway ip link show "$node" &>/dev/null ||
    in_net gateway ip link add "$node" type veth peer name eth0 netns "$(capsule_init "$node")"
  in_net gateway ip link set "$node" master switch up
  in_net "$node" bash -c 'echo 1 >/proc/sys/net/ipv4/ip_forward
    for file in /proc/sys/net/ipv6/conf/{all,default}/disable_ipv6; do [[ ! -e $file ]] || echo 1 >$file; done'
  in_net "$node" ip link set lo up
  in_net "$node" ip link set eth0 up
  in_net "$node" ip route replace blackhole "$POD_CIDR"
  # Where kube-proxy does not know a service's address, nobody answers on this link either.
  in_net "$node" ip address replace "$(node_ip "$node")/24" dev eth0
  in_net "$node" ip route replace "$SERVICE_CIDR" dev eth0
  for other in "${NODES[@]}"; do
    [[ $other == "$node" ]] || in_net "$node" ip route replace "$(node_pods "$other")" via "$(node_ip "$other")"
  done
}

# ---- Control groups --------------------------------------------------------------------------------------------------

cgroup_make() { # NODE
  local mounts mount root
  mounts=$(</proc/mounts)
  root=$(kubelet_cgroup_root "$1")
  for mount in $(cgroup_mounts "$mounts"); do
    mkdir -p "$mount$root"
    if [[ -f $mount$root/cpuset.cpus && -f $mount/cpuset.mems ]]; then # v1: children start empty, and refuse processes
      cat "$mount/cpuset.cpus" >"$mount${root%/*}/cpuset.cpus"
      cat "$mount/cpuset.mems" >"$mount${root%/*}/cpuset.mems"
      cat "$mount/cpuset.cpus" >"$mount$root/cpuset.cpus"
      cat "$mount/cpuset.mems" >"$mount$root/cpuset.mems"
    fi
    if [[ $(cgroup_version "$mounts") == v2 ]]; then
      for controller in cpuset cpu io memory pids hugetlb; do
        for dir in "$mount" "$mount${root%/*}" "$mount$root"; do
          echo "+$controller" >"$dir/cgroup.subtree_control" 2>/dev/null || true
        done
      done
    fi
  done
}

cgroup_remove() { # NODE, or nothing for all
  local mount root
  root=$(kubelet_cgroup_root "${1:-all}")
  [[ -n ${1:-} ]] || root=${root%/*}
  for mount in $(cgroup_mounts "$(</proc/mounts)"); do
    [[ ! -d $mount$root ]] || find "$mount$root" -depth -type d -exec rmdir {} + 2>/dev/null || return 1
  done
}

# ---- Settings of the kernel that a kubelet changes ------------------------------------------------------------------

SYSCTLS=(vm/overcommit_memory vm/panic_on_oom kernel/panic kernel/panic_on_oops kernel/keys/root_maxkeys kernel/keys/root_maxbytes)

sysctls_save() {
  local name
  [[ ! -f $RUNTIME/sysctls ]] || return 0
  for name in "${SYSCTLS[@]}"; do
    [[ ! -r /proc/sys/$name ]] || echo "$name $(cat "/proc/sys/$name")"
  done >"$RUNTIME/sysctls.temp"
  mv "$RUNTIME/sysctls.temp" "$RUNTIME/sysctls"
}

sysctls_restore() {
  local name value
  [[ -f $RUNTIME/sysctls ]] || return 0
  while read -r name value; do
    echo "$value" >"/proc/sys/$name" 2>/dev/null || true
  done <"$RUNTIME/sysctls"
  rm -f "$RUNTIME/sysctls"
}

# ---- Nodes -----------------------------------------------------------------------------------------------------------

# start_node NODE: as after a reboot, if its disk is still there.
start_node() {
  local node=$1
  cgroup_remove "$node" || true # an unclean stop leaves those of its pods
  cgroup_make "$node"
  mkdir -p "$STATE/nodes/$node"/{kubelet,containerd,logs} /var/lib/{kubelet,containerd,cni}
  capsule_start "$node" --net --uts --ipc
  node_network "$node"
}

kube() { kubectl --kubeconfig "$LOCAL/kubeconfig" "$@"; }
api_request=(curl -fsS --max-time 2 --cacert "$PKI/ca.crt" "$API/readyz")
api_ready() { "${api_request[@]}" &>/dev/null; }

# check_firewall SECONDS: where the machine reaches the API server, a node does. Else none of them would be ready, for no reason of its own.
check_firewall() {
  wait_for "$1" "" within node-1 "${api_request[@]}" ||
    die "a firewall keeps the nodes ($LINK) from $HOST_IP: this machine reaches its API server there, and node-1 does not." \
      "let in what comes from $LINK (ufw allow in on $LINK; or iptables -I INPUT -i $LINK -j ACCEPT; or, in your nftables, iifname $LINK accept), then make up"
}

# A firewall that lets nothing of the nodes in, for a test: -I, or -D to take it away. Its comment says whose it is.
firewall() { iptables "$1" INPUT -i "$LINK" -m comment --comment slurm-operator-test -j DROP; }
firewall_left() { firewall -C 2>/dev/null; }

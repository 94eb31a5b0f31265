#!/bin/bash
# Does the local cluster do what a cluster does? Pods on each node, pod to pod, Services, DNS, volumes, logs, exec.
. "$(dirname "$0")/lib.sh"
. "$DEV/cluster.sh"
. "$DEV/images.sh"
. "$DEV/env.sh"

namespace=smoke
passed=0 failed=0
soon() { check "$1" wait_for 120 "" "${@:2}"; } # WHAT COMMAND...: within two minutes, on a busy machine

busybox_image() {
  mkdir -p "$OUT/root"/{bin,etc,tmp}
  cp "$(command -v busybox)" "$OUT/root/bin/busybox"
  for name in sh timeout wget nslookup httpd sleep cat id ping nc; do ln -s busybox "$OUT/root/bin/$name"; done
  image_tar "$OUT/root" local/busybox:1 '{"Cmd": ["/bin/sh"], "Env": ["PATH=/bin"]}' "$OUT/busybox.tar"
}

"$DEV/deps.sh" smoke
cached busybox "$(sha256sum <"$(command -v busybox)")" "$DEV/images.sh" "$(declare -f busybox_image)" -- busybox_image
"$DEV/load-image.sh" "$CACHED/busybox.tar"

kubectl delete namespace $namespace --ignore-not-found >/dev/null
kubectl create namespace $namespace >/dev/null
trap 'kubectl delete namespace $namespace --wait=false >/dev/null 2>&1' EXIT
# A pod a node, each a web server that says its name.
for node in "${NODES[@]}"; do
  cat <<EOF
---
apiVersion: v1
kind: Pod
metadata: {name: $node, labels: {app: web}}
spec:
  nodeSelector: {kubernetes.io/hostname: $node} # and not nodeName: only the scheduler waits for volumes
  terminationGracePeriodSeconds: 0
  securityContext: {runAsUser: 401, fsGroup: 401}
  containers:
    - name: web
      image: local/busybox:1
      command: [sh, -c, 'echo "hello from $node" | tee /data/$node >/tmp/index.html; cat /tmp/index.html; exec httpd -f -p 8080 -h /tmp']
      volumeMounts: [{name: data, mountPath: /data}, {name: tmp, mountPath: /tmp}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: data}}, {name: tmp, emptyDir: {}}]
EOF
done >/tmp/smoke.$$.yaml
cat >>/tmp/smoke.$$.yaml <<EOF
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteMany], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: v1
kind: Service
metadata: {name: each}
spec: {clusterIP: None, selector: {app: web}, ports: [{port: 8080}]}
EOF
kube() { kubectl -n $namespace "$@"; }
pod_ip() { kube get pod "$1" -o jsonpath='{.status.podIP}'; }
phase() { [[ $(kube get "$1" -o jsonpath="{.status.phase}") == "$2" ]]; }
fails() { ! "$@"; }
says() { grep -q "$1" <<<"$("${@:2}" 2>&1)"; }

kube apply -f /tmp/smoke.$$.yaml >/dev/null
rm /tmp/smoke.$$.yaml
soon "the claim is bound" phase pvc/data Bound
for node in "${NODES[@]}"; do soon "a pod on $node runs" phase "pod/$node" Running; done
for from in "${NODES[@]}"; do
  for to in "${NODES[@]}"; do
    soon "pod on $from to pod on $to" kube exec "$from" -- timeout 3 wget -q -O- "http://$(pod_ip "$to"):8080/"
  done
  soon "pod on $from to Service by name" says "hello from" kube exec "$from" -- timeout 3 wget -q -O- http://web/
  soon "pod on $from finds a headless Service" says "$(pod_ip node-3)" kube exec "$from" -- nslookup each.$namespace.svc.cluster.local
  soon "pod on $from does not reach beyond" fails kube exec "$from" -- timeout 3 wget -O- http://192.0.2.1/
  soon "logs of the pod on $from" says "hello from $from" kube logs "$from"
done
soon "the machine to a pod" curl -fsS -m 2 "http://$(pod_ip node-2):8080/"
soon "the machine to a Service" curl -fsS -m 2 "http://$(kube get service web -o jsonpath='{.spec.clusterIP}')/"
soon "the machine asks the cluster's DNS" says "$(kube get service web -o jsonpath='{.spec.clusterIP}')" \
  busybox nslookup "web.$namespace.svc.cluster.local" "$DNS_LOCAL"
soon "a volume is shared by nodes, and written as fsGroup" says "hello from node-3" kube exec node-1 -- cat /data/node-3
soon "a pod reaches the API server" says "Unauthorized\|Forbidden\|401\|403" kube exec node-1 -- sh -c 'timeout 3 wget --no-check-certificate -O- https://kubernetes.default/api'
volume=$STATE/volumes/pvc-$(kube get pvc data -o jsonpath='{.metadata.uid}')
soon "the volume is a directory" test -d "$volume"
kube delete pod --all >/dev/null
kube delete pvc data >/dev/null
soon "its data goes with the claim" test ! -e "$volume"
echo "$passed passed, $failed failed"
((failed == 0))

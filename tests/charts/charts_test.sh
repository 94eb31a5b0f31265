#!/bin/bash
# Tests the charts without a cluster: what they render for which values, and which values they refuse. Needs helm, promtool and
# python3-yaml.
# Usage: tests/charts/charts_test.sh          Ends with "N passed, N failed"; exits 1 when something failed.
set -uo pipefail
top=$(cd "$(dirname "$0")/../.." && pwd -P)
PATH=$top/.local/bin:$PATH
passed=0 failed=0

pass() { passed=$((passed + 1)); }
fail() {
  failed=$((failed + 1))
  printf 'FAIL %s\n     %s\n' "$1" "${2//$'\n'/$'\n     '}"
}

render() { # chart values...; the release is called RELEASE, else as the chart
  local chart=$1
  shift
  helm template "${RELEASE:-$chart}" "$top/charts/$chart" --namespace ns --kube-version 1.34 "$@" 2> >(grep -v 'found symbolic link' >&2)
}

# shows CHART EXPRESSION EXPECTED VALUES...: expects this JSON as the value of the Python expression over "o", which maps
# KIND/NAME to the rendered objects.
shows() {
  local chart=$1 expression=$2 expected=$3 out
  shift 3
  out=$(render "$chart" "$@" 2>&1 | python3 -c '
import json, sys, yaml
all = [d for d in yaml.safe_load_all(sys.stdin) if d]
o = {d["kind"] + "/" + d["metadata"]["name"]: d for d in all}
assert len(o) == len(all), "an object stands there twice"
print(json.dumps(eval(sys.argv[1]), sort_keys=True))' "$expression" 2>&1)
  if [[ $out == "$expected" ]]; then pass; else fail "$chart $* $expression" "expected: $expected"$'\n'"have:     $out"; fi
}

# refuses CHART WORDS VALUES...: expects that rendering fails with a message that contains the words.
refuses() {
  local chart=$1 words=$2 out
  shift 2
  if out=$(render "$chart" "$@" 2>&1); then
    fail "$chart $*" "was accepted"
  elif [[ $out == *"$words"* ]]; then
    pass
  else
    fail "$chart $*" "expected: $words"$'\n'"have:     $out"
  fi
}

# tells CHART WORDS VALUES...: expects that the notes after an install end with the words. Helm shows notes only with a cluster,
# so they are rendered here as an object.
tells() {
  local chart=$1 words=$2 out
  shift 2
  rm -rf "$temp/chart"
  cp -rL "$top/charts/$chart" "$temp/chart"
  {
    echo '{{- define "notes" }}'
    cat "$temp/chart/templates/NOTES.txt"
    printf '{{- end }}\nkind: ConfigMap\nmetadata: {name: notes}\ndata: {notes: {{ include "notes" . | toJson }}}\n'
  } >"$temp/chart/templates/notes.yaml"
  out=$(helm template "$chart" "$temp/chart" --namespace ns --kube-version 1.34 -s templates/notes.yaml "$@" 2>&1)
  if [[ $out == *"$words\"}" ]]; then pass; else fail "notes of $chart $*" "expected: $words"$'\n'"have:     $out"; fi
}
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT

for chart in slurm-operator-crds slurm-operator slurm slurm-bridge; do
  if out=$(helm lint --strict --kube-version 1.34 "$top/charts/$chart" 2>&1); then pass; else fail "lint $chart" "$out"; fi
done

deployment='o["Deployment/slurm-operator"]["spec"]["template"]'
container="${deployment}[\"spec\"][\"containers\"][0]"
shows slurm-operator 'sorted(o)' '["ClusterRole/slurm-operator", "ClusterRole/slurm-operator-uninstall", "ClusterRoleBinding/slurm-operator", "ClusterRoleBinding/slurm-operator-uninstall", "Deployment/slurm-operator", "FlowSchema/slurm-operator", "Job/slurm-operator-uninstall", "PriorityClass/slurm-operator-workers", "Role/slurm-operator", "Role/slurm-operator-uninstall-looks", "RoleBinding/slurm-operator", "RoleBinding/slurm-operator-uninstall-looks", "Service/slurm-operator", "ServiceAccount/slurm-operator", "ServiceAccount/slurm-operator-uninstall", "ValidatingAdmissionPolicy/slurm-operator-cluster-names", "ValidatingAdmissionPolicy/slurm-operator-clusters", "ValidatingAdmissionPolicy/slurm-operator-deletion", "ValidatingAdmissionPolicy/slurm-operator-normal-qos", "ValidatingAdmissionPolicy/slurm-operator-preemption", "ValidatingAdmissionPolicy/slurm-operator-restapis", "ValidatingAdmissionPolicy/slurm-operator-root-account", "ValidatingAdmissionPolicy/slurm-operator-slurmrestd", "ValidatingAdmissionPolicy/slurm-operator-workers", "ValidatingAdmissionPolicyBinding/slurm-operator-cluster-names", "ValidatingAdmissionPolicyBinding/slurm-operator-clusters", "ValidatingAdmissionPolicyBinding/slurm-operator-deletion", "ValidatingAdmissionPolicyBinding/slurm-operator-normal-qos", "ValidatingAdmissionPolicyBinding/slurm-operator-preemption", "ValidatingAdmissionPolicyBinding/slurm-operator-restapis", "ValidatingAdmissionPolicyBinding/slurm-operator-root-account", "ValidatingAdmissionPolicyBinding/slurm-operator-slurmrestd", "ValidatingAdmissionPolicyBinding/slurm-operator-workers"]'
shows slurm-operator "${container}['args']" '["--leader-elect=true", "--leader-elect-namespace=ns", "--health-addr=:8081", "--metrics-addr=:8080", "--drain-taints=ToBeDeletedByClusterAutoscaler,karpenter.sh/disrupted", "--worker-priority-class=slurm-operator-workers", "--log-level=info"]'
# Several operators in one namespace, each with a release of its own, act on different namespaces. Each has its own Lease.
for release in a b; do
  RELEASE=$release shows slurm-operator "o['Deployment/$release-slurm-operator']['spec']['template']['spec']['containers'][0]['args'][2]" \
    "\"--leader-elect-name=$release-slurm-operator\""
done
shows slurm-operator "${container}['args'][4]" '"--namespaces=a,b"' --set 'operator.namespaces={a,b}'
shows slurm-operator "${container}['args'][4]" '"--namespaces=a,b"' --set 'operator.namespaces=a\, b'
shows slurm-operator 'o["ValidatingAdmissionPolicyBinding/slurm-operator-workers"]["spec"]["matchResources"]["namespaceSelector"]["matchExpressions"][0]["values"]' '["a", "b"]' --set 'operator.namespaces={a,b}'
shows slurm-operator "${container}['image']" '"local/slurm-operator:dev"'
shows slurm-operator "${container}['image']" '"r/o@sha256:x"' --set operator.image.repository=r/o,operator.image.digest=sha256:x
shows slurm-operator "${container}['image']" '"r/o:7"' --set operator.image=r/o:7
shows slurm-operator "${container}['image']" '"r/o:dev"' --set operator.image.repository=r/o
shows slurm-operator "${container}['image']" '"r/o:0.1.0"' --set operator.image.repository=r/o,operator.image.tag=null
shows slurm-operator "${deployment}['metadata']['labels']['app.kubernetes.io/name']" '"slurm-operator"' --set nameOverride=x,fullnameOverride=slurm-operator
shows slurm-operator "[${deployment}['spec']['securityContext']['runAsUser'], ${container}['securityContext']]" '[65532, {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": true}]'
# The operator may use 1 GiB of its memory limit for answers of Slurm.
shows slurm-operator "${container}['resources']['limits']" '{"memory": "4Gi"}'
shows slurm-operator "['Service/slurm-operator' in o, ${container}['args'][3], len(${container}['ports'])]" '[false, "--metrics-addr=0", 1]' --set operator.metricsPort=0
shows slurm-operator "[${container}['args'][4], ${container}['volumeMounts'][0]['mountPath'], ${deployment}['spec']['volumes'][0]['secret']['secretName']]" '["--metrics-token-file=/run/metrics-token/token", "/run/metrics-token", "scrapers"]' --set operator.metricsTokenSecret=scrapers
shows slurm-operator 'o["PodDisruptionBudget/slurm-operator"]["spec"]["minAvailable"]' 1 --set operator.pdb.enabled=true
kinds=("$top"/charts/slurm-operator-crds/templates/slinky.slurm.net_*.yaml)
shows slurm-operator 'len([k for k in o if k.startswith("CustomResourceDefinition")])' ${#kinds[@]} --set crds.enabled=true
shows slurm-operator 'len(o)' 0 --set operator.enabled=false
shows slurm-operator '[k for k in o if k.startswith("ValidatingAdmissionPolicy/")]' '["ValidatingAdmissionPolicy/slurm-operator-normal-qos", "ValidatingAdmissionPolicy/slurm-operator-root-account", "ValidatingAdmissionPolicy/slurm-operator-cluster-names"]' --set workerProtection.enabled=false
shows slurm-operator '{len(o["ValidatingAdmissionPolicyBinding/slurm-operator-" + n]["spec"]["matchResources"]["namespaceSelector"]["matchExpressions"]) for n in ("clusters", "restapis", "slurmrestd")} == {1}' true --set 'operator.namespaces={a,b}'
shows slurm-operator 'o["ConfigMap/ns"]["data"]' '{"a": "slurm-operator"}' --set-json 'extraObjects=[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"{{ .Release.Namespace }}"},"data":{"a":"{{ .Release.Name }}"}}]'
# An operator of one namespace needs only a Role, if nothing cluster-wide is installed. The Role grants everything except
# Kubernetes nodes.
namespaced=(--set 'operator.clusterRole=false,operator.namespaces=a')
shows slurm-operator 'sorted(o)' '["Deployment/slurm-operator", "Job/slurm-operator-uninstall", "Role/slurm-operator", "Role/slurm-operator-clusters", "Role/slurm-operator-uninstall", "Role/slurm-operator-uninstall-looks", "RoleBinding/slurm-operator", "RoleBinding/slurm-operator-clusters", "RoleBinding/slurm-operator-uninstall", "RoleBinding/slurm-operator-uninstall-looks", "Service/slurm-operator", "ServiceAccount/slurm-operator", "ServiceAccount/slurm-operator-uninstall"]' "${namespaced[@]}"
shows slurm-operator "${container}['args'][4:]" '["--namespaces=a", "--without-kubernetes-nodes", "--log-level=info"]' "${namespaced[@]}"
shows slurm-operator "[a for a in ${container}['args'] if 'priority' in a]" '["--worker-priority-class=p"]' "${namespaced[@]}" --set workerPriorityClass.create=false,workerPriorityClass.name=p
shows slurm-operator 'sorted({d["metadata"]["namespace"] for k, d in o.items() if k.endswith(("-clusters", "/slurm-operator-uninstall")) and k.startswith("Role")})' '["a"]' "${namespaced[@]}"
shows slurm-operator '[o["RoleBinding/slurm-operator-clusters"][k] for k in ("roleRef", "subjects")]' '[{"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "slurm-operator-clusters"}, [{"kind": "ServiceAccount", "name": "slurm-operator", "namespace": "ns"}]]' "${namespaced[@]}"
rules=$(render slurm-operator 2>/dev/null | python3 -c '
import json, sys, yaml
(role,) = [d for d in yaml.safe_load_all(sys.stdin) if d and d["kind"] == "ClusterRole" and d["metadata"]["name"] == "slurm-operator"]
for rule in role["rules"]:
    rule["resources"] = [r for r in rule["resources"] if r != "nodes"]
print(json.dumps([rule for rule in role["rules"] if rule["resources"]], sort_keys=True))')
shows slurm-operator 'o["Role/slurm-operator-clusters"]["rules"]' "$rules" "${namespaced[@]}"
for several in '' a,b; do
  refuses slurm-operator "operator.namespaces: \"$several\", must be one namespace" --set operator.clusterRole=false,"operator.namespaces={$several}"
done
# The taints that drain workers, and the node conditions that are added to the reasons.
drains="[a for a in ${container}['args'] if 'drain' in a or 'propagated' in a]"
shows slurm-operator "$drains" '["--drain-taints=a,b", "--propagated-node-conditions=CPUProblem,GPUProblem"]' --set 'drainTaints={a,b},propagatedNodeConditions={CPUProblem,GPUProblem}'
shows slurm-operator "$drains" '["--drain-taints="]' --set-json 'drainTaints=[]'
# The priority of workers, and who may not delete busy workers.
priority="[[k for k in o if k.startswith('PriorityClass/')], [a for a in ${container}['args'] if 'priority' in a]]"
shows slurm-operator "$priority" '[[], ["--worker-priority-class=mine"]]' --set workerPriorityClass.create=false,workerPriorityClass.name=mine
shows slurm-operator "$priority" '[[], []]' --set workerPriorityClass.enabled=false
shows slurm-operator '[o["PriorityClass/slurm-operator-workers"][k] for k in ("value", "preemptionPolicy")]' '[5, "Never"]' --set workerPriorityClass.value=5
binding() { echo "o[\"ValidatingAdmissionPolicyBinding/slurm-operator-$1\"][\"spec\"]"; }
shows slurm-operator "$(binding deletion)['validationActions']" '["Deny"]'
shows slurm-operator "$(binding preemption)['validationActions']" '["Deny"]'
shows slurm-operator "$(binding deletion)['validationActions']" '["Warn"]' --set workerProtection.deletionByUsers=Warn
shows slurm-operator '[k for k in o if k.endswith("-deletion")]' '[]' --set workerProtection.deletionByUsers=Allow
refuses slurm-operator "at '/workerProtection/deletionByUsers': value must be one of 'Deny', 'Warn', 'Allow'" --set workerProtection.deletionByUsers=No
who='o["ValidatingAdmissionPolicy/slurm-operator-%s"]["spec"]["matchConditions"][0]["expression"]'
shows slurm-operator "${who/\%s/preemption}" '"request.userInfo.username in [\"s\"]"' --set 'workerProtection.schedulers={s}'
shows slurm-operator "[u in ${who/\%s/deletion} for u in ('system:serviceaccount:ns:slurm-operator', 'system:kube-scheduler', 'pod-garbage-collector', 'system:nodes')]" '[true, true, true, true]'
# The FlowSchema covers only the Lease: for the service account of the Deployment, in the namespace of the Lease.
flow='o["FlowSchema/slurm-operator"]["spec"]'
shows slurm-operator "[$flow['priorityLevelConfiguration']['name'], $flow['rules'][0]['resourceRules']]" '["leader-election", [{"apiGroups": ["coordination.k8s.io"], "namespaces": ["ns"], "resources": ["leases"], "verbs": ["get", "create", "update"]}]]'
shows slurm-operator "[$flow['rules'][0]['subjects'], $deployment['spec']['serviceAccountName']]" '[[{"kind": "ServiceAccount", "serviceAccount": {"name": "mine", "namespace": "ns"}}], "mine"]' --set operator.serviceAccount.name=mine
shows slurm-operator '[k for k in o if k.startswith("FlowSchema")]' '[]' --set operator.leaderElection=false
shows slurm-operator '[k for k in o if k.startswith("FlowSchema")]' '[]' --set flowSchema.enabled=false
# The operator's ServiceMonitor.
monitor="o['ServiceMonitor/slurm-operator']"
shows slurm-operator "[k for k in o if k.startswith('ServiceMonitor')]" '[]'
shows slurm-operator "[$monitor['metadata']['labels']['release'], $monitor['spec']['endpoints'], $monitor['spec']['selector']['matchLabels'].items() <= o['Service/slurm-operator']['metadata']['labels'].items()]" '["prom", [{"interval": "15s", "path": "/metrics", "port": "metrics"}], true]' --set operator.serviceMonitor.enabled=true,operator.serviceMonitor.labels.release=prom,operator.serviceMonitor.interval=15s
shows slurm-operator "$monitor['spec']['endpoints'][0]['authorization']['credentials']" '{"key": "token", "name": "scrapers"}' --set operator.serviceMonitor.enabled=true,operator.metricsTokenSecret=scrapers
refuses slurm-operator 'operator.serviceMonitor.enabled: there are no metrics' --set operator.serviceMonitor.enabled=true,operator.metricsPort=0

# Dashboards and alerts.
shows slurm-operator "[k for k in o if 'dashboard' in k or k.startswith('PrometheusRule')]" '[]'
shows slurm-operator "{k: [d['metadata']['labels']['grafana_dashboard'], [json.loads(t)['title'] for t in d['data'].values()]] for k, d in o.items() if 'dashboard' in k}" '{"ConfigMap/slurm-operator-dashboard-cluster": ["1", ["Slurm cluster"]], "ConfigMap/slurm-operator-dashboard-operator": ["1", ["slurm-operator"]]}' --set dashboards.enabled=true
shows slurm-operator "[o['PrometheusRule/slurm-operator']['metadata']['labels']['release'], o['PrometheusRule/slurm-operator']['spec'] == yaml.safe_load(open('$top/charts/slurm-operator/files/alerts.yaml'))]" '["prom", true]' --set alerts.enabled=true,alerts.labels.release=prom

if out=$("$top/tests/e2e/metrics_of.py" 2>&1); then pass; else fail "the metrics of dashboards and alerts" "$out"; fi
for check in "check rules $top/charts/slurm-operator/files/alerts.yaml" "test rules $top/tests/charts/alerts_test.yaml"; do
  # shellcheck disable=SC2086
  if out=$(promtool $check 2>&1); then pass; else fail "promtool $check" "$out"; fi
done

# The operator's ports: only those who may read metrics reach one.
policy='o["NetworkPolicy/slurm-operator"]["spec"]'
shows slurm-operator '[k for k in o if k.startswith("NetworkPolicy")]' '[]'
shows slurm-operator "$policy" '{"ingress": [], "podSelector": {"matchLabels": {"app.kubernetes.io/instance": "slurm-operator", "app.kubernetes.io/name": "slurm-operator"}}, "policyTypes": ["Ingress"]}' --set networkPolicy.enabled=true
shows slurm-operator "[$policy['ingress'], [p['name'] for p in ${container}['ports']]]" '[[{"from": [{"namespaceSelector": {}}], "ports": [{"port": "metrics", "protocol": "TCP"}]}], ["health", "metrics"]]' --set networkPolicy.enabled=true --set-json 'networkPolicy.metricsFrom=[{"namespaceSelector":{}}]'
shows slurm-operator "$policy['ingress']" '[]' --set networkPolicy.enabled=true,operator.metricsPort=0 --set-json 'networkPolicy.metricsFrom=[{"namespaceSelector":{}}]'
# The operator must not get more rights than it uses. Maps each resource to the first letters of its verbs.
rights='{"/".join(filter(None, [g, r])): "".join(sorted(v[0] for v in rule["verbs"])) for rule in ROLE["rules"] for g in rule["apiGroups"] for r in rule["resources"]}'
others='{k: v for k, v in RIGHTS.items() if not k.startswith("slinky.slurm.net/")}'
of_ours='sorted({(k.partition("/")[2].partition("/")[2], v) for k, v in RIGHTS.items() if k.startswith("slinky.slurm.net/")})'
role=${rights/ROLE/o[\"ClusterRole/slurm-operator\"]}
shows slurm-operator "${others/RIGHTS/$role}" '{"apiextensions.k8s.io/customresourcedefinitions": "glw", "apps/controllerrevisions": "cdglpw", "apps/deployments": "cdglpw", "apps/statefulsets": "cdglpw", "configmaps": "cdglpw", "discovery.k8s.io/endpointslices": "cdglpw", "events.k8s.io/events": "clp", "monitoring.coreos.com/servicemonitors": "cdglpw", "nodes": "glw", "persistentvolumeclaims": "cdglpw", "pods": "cdglpw", "pods/ephemeralcontainers": "p", "pods/log": "g", "pods/status": "p", "policy/poddisruptionbudgets": "cdglpw", "secrets": "cdglpw", "services": "cdglpw"}'
# Each of our kinds is read and patched. So is its status, and its finalizers are updated.
shows slurm-operator "${of_ours/RIGHTS/$role}" '[["", "glpw"], ["finalizers", "u"], ["status", "gp"]]'
lease='[[r["resources"], r.get("resourceNames"), r["verbs"]] for r in ROLE["rules"]]'
shows slurm-operator "${lease/ROLE/o[\"Role/slurm-operator\"]}" '[[["leases"], ["slurm-operator"], ["get", "update"]], [["leases"], null, ["create"]]]'
shows slurm-operator "${rights/ROLE/o[\"ClusterRole/slurm-operator-uninstall\"]}" '{"policy/poddisruptionbudgets": "dl"}'
# Only the uninstall Job has the rights that it needs. The Job looks for the operator of its own release.
shows slurm-operator "${rights/ROLE/o[\"Role/slurm-operator-uninstall-looks\"]}" '{"apps/deployments": "g", "coordination.k8s.io/leases": "g"}'
shows slurm-operator '[r["resourceNames"] for r in o["Role/x-slurm-operator-uninstall-looks"]["rules"]] + o["Job/x-slurm-operator-uninstall"]["spec"]["template"]["spec"]["containers"][0]["args"]' \
  '[["x-slurm-operator"], ["x-slurm-operator"], "--remove-budgets", "--unless-operator=ns/x-slurm-operator"]' --set fullnameOverride=x-slurm-operator
shows slurm-operator '[o["Deployment/x-slurm-operator"]["metadata"]["name"], [a for a in o["Deployment/x-slurm-operator"]["spec"]["template"]["spec"]["containers"][0]["args"] if "elect-name=" in a]]' \
  '["x-slurm-operator", ["--leader-elect-name=x-slurm-operator"]]' --set fullnameOverride=x-slurm-operator
shows slurm-operator 'sorted({d["metadata"].get("annotations", {}).get("helm.sh/hook") for k, d in o.items() if "-uninstall" in k})' '["post-delete"]'
shows slurm-operator '[k for k in o if "-uninstall" in k]' '[]' --set uninstall.removeBudgets=false
shows slurm-operator '[r for r in o["ClusterRole/slurm-operator"]["rules"] if "*" in r["verbs"] + r["resources"] + r["apiGroups"] or {"escalate", "bind", "impersonate", "deletecollection"} & set(r["verbs"])]' '[]'
refuses slurm-operator 'operator.metricsPort: 70000, must be from 0 to 65535' --set operator.metricsPort=70000
refuses slurm-operator 'operator.healthPort: x, must be from 0 to 65535' --set operator.healthPort=x
refuses slurm-operator 'operator.healthPort: 0, must be from 1 to 65535' --set operator.healthPort=0
refuses slurm-operator 'operator.pdb: minAvailable and maxUnavailable cannot both be set' --set operator.pdb.enabled=true,operator.pdb.maxUnavailable=1

# served OBJECTS COMMAND...: runs the command with a cluster that has these objects (JSON). Each belongs to the release with the
# name of the chart, unless it says otherwise.
served() {
  local server
  python3 "$top/tests/charts/api_server.py" "$temp/kubeconfig" "$1" &
  server=$!
  for _ in {1..600}; do [[ -e $temp/kubeconfig ]] || sleep 0.1; done
  KUBECONFIG=$temp/kubeconfig "${@:2}" --dry-run=server
  kill $server
  wait $server 2>/dev/null
  rm -f "$temp/kubeconfig"
}
released() { # RELEASE [ANNOTATIONS]: the metadata of an object of that release
  echo "\"annotations\": {\"meta.helm.sh/release-name\": \"$1\", \"meta.helm.sh/release-namespace\": \"ns\"${2:+, $2}}"
}
kept='"helm.sh/resource-policy": "keep"'

# The operator's chart can contain the definitions itself. An upgrade of the release keeps them, whether slurm-operator 1.x or
# this chart installed it.
definitions() { # RELEASE [ANNOTATIONS]: two of them
  local IFS=, name all=()
  for name in nodesets.slinky.slurm.net accountings.slinky.slurm.net; do
    all+=("{\"apiVersion\": \"apiextensions.k8s.io/v1\", \"kind\": \"CustomResourceDefinition\", \"metadata\": {\"name\": \"$name\", $(released "$@")}}")
  done
  echo "[${all[*]}]"
}
for off in crds.enabled=false operator.enabled=false; do
  served "$(definitions slurm-operator)" refuses slurm-operator \
    'crds.enabled: must be true: this release contains the definitions accountings.slinky.slurm.net, nodesets.slinky.slurm.net, and the upgrade would delete them with every cluster; to take them out of the release first, run: kubectl annotate crd accountings.slinky.slurm.net nodesets.slinky.slurm.net helm.sh/resource-policy=keep' \
    --is-upgrade --set $off
done
served "$(definitions slurm-operator "$kept")" shows slurm-operator 'len(o) > 0' true --is-upgrade
served "$(definitions other)" shows slurm-operator 'len(o) > 0' true --is-upgrade
served "$(definitions slurm-operator)" shows slurm-operator 'len(o) > 0' true
served "$(definitions slurm-operator "$kept")" shows slurm-operator 'len([k for k in o if k.startswith("CustomResourceDefinition")])' ${#kinds[@]} \
  --is-upgrade --set crds.enabled=true

spec='o["Controller/slurm"]["spec"]'
nodeset='o["NodeSet/slurm-worker-cpu"]["spec"]'
shows slurm 'sorted(o)' '["Controller/slurm", "RestApi/slurm"]'
shows slurm "[$spec['metrics']['enabled'], $spec['metrics']['serviceMonitor']['enabled'], $spec['metrics']['serviceMonitor']['tokenSecretRef']['name']]" '[true, true, "t"]' --set controller.metrics.enabled=true,controller.metrics.serviceMonitor.enabled=true --set-json 'controller.metrics.serviceMonitor.tokenSecretRef={"name":"t","key":"k"}'
shows slurm "[k for k in ('slurmKeyRef', 'jwtKeyRef', 'clusterName', 'metrics', 'external') if k in $spec]" '[]'
shows slurm "$spec['slurmKeyRef']" '{"key": "slurm.key", "name": "mine"}' --set slurmKey.create=false,slurmKey.secretRef.name=mine
shows slurm "$spec['jwtKeyRef']" '{"key": "k", "name": "mine"}' --set jwtKey.secretRef.name=mine,jwtKey.secretRef.key=k
# Keys that a release of slurm-operator 1.x made stay part of the release, whatever their names: otherwise Helm would delete
# them.
key() { # NAME KEY [METADATA]
  echo "{\"apiVersion\": \"v1\", \"kind\": \"Secret\", \"metadata\": {\"name\": \"$1\", \"namespace\": \"ns\"${3:+, $3}}, \"type\": \"Opaque\", \"data\": {\"$2\": \"eA==\"}}"
}
secrets='{k: [d["metadata"]["annotations"], d["data"], d["immutable"]] for k, d in o.items() if k.startswith("Secret")}'
whole() { echo "{\"Secret/$1\": [{$kept}, {\"$2\": \"eA==\"}, true]}"; }
for create in true false; do
  served "[$(key prod-key k "$(released slurm)")]" shows slurm "$secrets" "$(whole prod-key k)" \
    --set slurmKey.create=$create,slurmKey.secretRef.name=prod-key,slurmKey.secretRef.key=k
  served "[$(key slurm-auth-jwt jwt.key "$(released slurm)")]" shows slurm "[$secrets, $spec['jwtKeyRef']]" \
    "[$(whole slurm-auth-jwt jwt.key), {\"key\": \"jwt.key\", \"name\": \"slurm-auth-jwt\"}]" --set jwtKey.create=$create
done
served "[$(key slurm-auth-slurm k "$(released slurm)")]" shows slurm "$spec['slurmKeyRef']" '{"key": "k", "name": "slurm-auth-slurm"}' \
  --set slurmKey.secretRef.key=k
served "[$(key prod-key k "$(released other)")]" shows slurm "[$secrets, $spec['slurmKeyRef']]" '[{}, {"key": "k", "name": "prod-key"}]' \
  --set slurmKey.secretRef.name=prod-key,slurmKey.secretRef.key=k
served "[$(key slurm-auth-slurm slurm.key)]" shows slurm "[$secrets, $spec['slurmKeyRef']]" '[{}, {"key": "slurm.key", "name": "slurm-auth-slurm"}]'
# Both keys in one Secret. And a Secret that the values define completely: users may change it.
served "[$(key both a "$(released slurm)")]" shows slurm "$secrets" "$(whole both a)" \
  --set slurmKey.secretRef.name=both,slurmKey.secretRef.key=a,jwtKey.secretRef.name=both,jwtKey.secretRef.key=b
served "[$(key slurm-both a "$(released slurm)")]" shows slurm "[k for k in o if k.startswith('Secret')], o['Secret/slurm-both'].get('immutable')" \
  '[["Secret/slurm-both"], null]' --set slurmKey.secretRef.name=slurm-both,slurmKey.secretRef.key=a \
  --set-json 'extraObjects=[{"apiVersion":"v1","kind":"Secret","metadata":{"name":"{{ .Release.Name }}-both"},"data":{"a":"eA=="}}]'
extra() { # KIND NAME METADATA
  echo "{\"apiVersion\": \"slinky.slurm.net/v1beta1\", \"kind\": \"$1\", \"metadata\": {\"name\": \"$2\", \"namespace\": \"ns\", $3}}"
}
has=()
# An upgrade is refused if it would delete a cluster because of another name or namespace.
has+=(--api-versions slinky.slurm.net/v1beta1/Controller)
renamed() { served "[$(extra Controller "$1" "$(released slurm ${2:+"$2"})")]" "${@:3}" --is-upgrade "${has[@]}"; }
renamed slurm '' shows slurm 'len(o)' 2
renamed other '' refuses slurm 'controllers/other in namespace ns: part of this release; the upgrade would delete it with all of its jobs'
renamed slurm '' refuses slurm 'namespaceOverride cannot be changed' --set namespaceOverride=b
renamed other "$kept" shows slurm 'len(o)' 2
served "[$(extra Controller other "$(released other)")]" shows slurm 'len(o)' 2 --is-upgrade "${has[@]}"
shows slurm "$spec['persistence']" '{"accessModes": ["ReadWriteOnce"], "enabled": true, "resources": {"requests": {"storage": "4Gi"}}}'
shows slurm "$spec['persistence']['storageClassName']" '""' --set controller.persistence.storageClassName=-
shows slurm "$spec['extraConf']" '"A=1\nB=x y\nPartitionName=all Nodes=ALL Default=YES MaxTime=UNLIMITED\n"' \
  --set-json 'controller.extraConfMap={"A":1,"B":"x y"}' --set partitions.all.enabled=true
# Helm holds numbers as floats, but all digits are rendered. Empty values give no line.
shows slurm "$spec['extraConf']" '"DefMemPerNode=1228800\nMaxArraySize=1000001\nNegative=-2000000\nPriorityDecayHalfLife=0.5\nSelf=NO\nSlurmdParameters=1048576,x\nYes=YES\n"' \
  --set-json 'controller.extraConfMap={"DefMemPerNode":1228800,"MaxArraySize":1000001,"Negative":-2000000,"PriorityDecayHalfLife":0.5,"SlurmdParameters":[1048576,"x"],"Self":false,"Yes":true,"MCSPlugin":[],"Nothing":"","Null":null}'
refuses slurm 'controller.extraConfMap.A: 9007199254740992 has more digits than Helm keeps of a number: quote it' --set-json 'controller.extraConfMap={"A":9007199254740993}'
shows slurm "[$nodeset['extraConf'], $nodeset['partition']['config']]" '["RealMemory=2063000", "DefMemPerCPU=4000000 Hidden=YES"]' \
  --set-json 'nodesets.cpu={"extraConfMap":{"RealMemory":2063000},"partition":{"enabled":true,"configMap":{"DefMemPerCPU":4000000,"Hidden":true}}}'
shows slurm "$spec['extraConf']" '"PartitionName=all Nodes=ALL Default=YES MaxMemPerNode=2063000 MaxTime=UNLIMITED\n"' \
  --set-json 'partitions.all={"enabled":true,"configMap":{"MaxMemPerNode":2063000}}'
shows slurm "$nodeset['slurmd']['image']" '"r/slurmd:20260616"' --set-json 'nodesets.cpu.slurmd.image={"repository":"r/slurmd","tag":20260616}'
for tag in 26.1 26.0 1e300; do
  refuses slurm 'nodesets.cpu.slurmd.image.tag: ' --set-json "nodesets.cpu.slurmd.image={\"repository\":\"r/slurmd\",\"tag\":$tag}"
done
refuses slurm-operator 'operator.image.tag: 0.1 is a number' --set-json operator.image.tag=0.1
# Other numbers keep all their digits as well.
shows slurm "$spec['template']['spec']['tolerations']" '[{"tolerationSeconds": 1000001}, {"tolerationSeconds": 9007199254740991}]' \
  --set-json 'controller.podSpec.tolerations=[{"tolerationSeconds":1000001},{"tolerationSeconds":9007199254740991}]'
shows slurm 'o["ConfigMap/x"]["x"]' 0.5 --set-json 'extraObjects=[{"kind":"ConfigMap","metadata":{"name":"x"},"x":0.5}]'
for chart in slurm slurm-operator; do
  refuses $chart 'extraObjects[0].a: 9007199254740992 has more digits than Helm keeps of a number: quote it' --set-json 'extraObjects=[{"a":9007199254740993}]'
done
refuses slurm 'nodesets.cpu.podSpec.priority: -9007199254740992 has more digits' --set nodesets.cpu.podSpec.priority=-9007199254740992
refuses slurm 'controller.extraConfMap.A: 0.12345678901234568 has more digits' --set-json controller.extraConfMap.A=0.1234567890123456789
shows slurm "[o['RestApi/slurm']['spec']['replicas'], o['LoginSet/slurm-login-a']['spec']['replicas'], o['PodDisruptionBudget/slurm-restapi']['spec']['minAvailable'], o['PriorityClass/slurm-system-critical']['value']]" \
  '[1000001, 1000002, 1000003, 1000004]' --set-json 'restapi={"replicas":1000001,"pdb":{"enabled":true,"minAvailable":1000003}}' \
  --set-json 'loginsets.a.replicas=1000002,priorityClass={"enabled":true,"create":true,"value":1000004}'
shows slurm-operator "[o['Deployment/slurm-operator']['spec']['replicas'], o['PodDisruptionBudget/slurm-operator']['spec']['minAvailable'], o['PriorityClass/slurm-operator-workers']['value']]" \
  '[1000001, 1000002, 1000003]' --set-json 'operator={"replicas":1000001,"pdb":{"enabled":true,"minAvailable":1000002}},workerPriorityClass.value=1000003'
refuses slurm-operator 'operator.metricsPort: 1000001, must be from 0 to 65535' --set-json operator.metricsPort=1000001
# 0 is kept as a number, and percentages are strings.
shows slurm 'o["PodDisruptionBudget/slurm-restapi"]["spec"]["maxUnavailable"]' 0 --set restapi.pdb.enabled=true,restapi.pdb.maxUnavailable=0
shows slurm 'o["PodDisruptionBudget/slurm-restapi"]["spec"]["minAvailable"]' '"50%"' --set restapi.pdb.enabled=true,restapi.pdb.minAvailable=50%
shows slurm-operator 'o["PodDisruptionBudget/slurm-operator"]["spec"]["maxUnavailable"]' 0 --set operator.pdb.enabled=true,operator.pdb.minAvailable=null,operator.pdb.maxUnavailable=0
# YAML turns some words into booleans. In a list, they are probably names.
refuses slurm 'nodesets.cpu.extraConfMap.Features: true in a list, which may have been written as another word, such as on: quote it' --set-json 'nodesets.cpu.extraConfMap.Features=["a",true]'
refuses slurm "at '/controller/extraConfMap/A/0': got array" --set-json 'controller.extraConfMap.A=[[1]]'
shows slurm "$spec['topology']" '{"nodeLabels": ["zone", "rack"], "type": "Tree"}' \
  --set-json 'controller.topology={"type":"Tree","nodeLabels":["zone","rack"]}'
refuses slurm "additional properties 'labels' not allowed" --set-json 'controller.topology={"labels":["zone"]}'
shows slurm "[$spec['configFileRefs'], o['ConfigMap/slurm-config-extra']['data']]" '[[{"name": "slurm-config-extra"}, {"name": "mine"}], {"gres.conf": "AutoDetect=off"}]' \
  --set 'configFiles.gres\.conf=AutoDetect=off,configFileRefs[0].name=mine'
# As in slurm-operator 1.x: file names get a prefix by kind, because all files are in one directory, and the text stays as it
# is.
shows slurm '{k.split("/")[1]: d["data"] for k, d in o.items() if k.startswith("ConfigMap")}' \
  '{"slurm-config-extra": {"a": "{{.ID}}"}, "slurm-epilog-scripts": {"epilog-a": "e"}, "slurm-epilog-slurmctld-scripts": {"epilog-slurmctld-a": "s"}, "slurm-prolog-scripts": {"prolog-a": "{{ .Values.x }}\n"}, "slurm-prolog-slurmctld-scripts": {"prolog-slurmctld-a": "c"}}' \
  --set-json 'configFiles.a="{{.ID}}",prologScripts.a="{{ .Values.x }}\n"' --set epilogScripts.a=e,prologSlurmctldScripts.a=c,epilogSlurmctldScripts.a=s
shows slurm "[$nodeset[k] for k in ('replicas', 'scalingMode', 'extraConf', 'partition', 'oversubscribeNode')]" \
  '[3, "DaemonSet", "Features=a,b Weight=2", {"config": "MaxTime=1 State=UP", "enabled": true}, true]' \
  --set-json 'nodesets.cpu={"replicas":3,"scalingMode":"DaemonSet","extraConfMap":{"Weight":2,"Features":["a","b"]},"partition":{"enabled":true,"configMap":{"State":"UP","MaxTime":1}},"oversubscribeNode":true}'
# Names that look like numbers stay strings in every object.
names='[*{type(d["metadata"].get(k, "")).__name__ for d in o.values() for k in ("name", "namespace")}]'
RELEASE=12 shows slurm "[$names, sorted(o), o['RestApi/no']['spec']['controllerRef'], o['Controller/no']['spec']['slurmKeyRef'], o['Controller/no']['metadata']['namespace']]" \
  '[["str"], ["Controller/no", "RestApi/no"], {"name": "no"}, {"key": "2", "name": "1"}, "7"]' \
  --set-string fullnameOverride=no,namespaceOverride=7,slurmKey.secretRef.name=1,slurmKey.secretRef.key=2
RELEASE=12 shows slurm-operator "[$names, o['Deployment/no']['spec']['selector']['matchLabels']['app.kubernetes.io/instance'], o['Deployment/no']['spec']['template']['spec']['serviceAccountName'], o['ClusterRoleBinding/no']['subjects'][0]['namespace']]" \
  '[["str"], "12", "no", "7"]' --set-string fullnameOverride=no,namespaceOverride=7
# A name that is not valid is refused, with the value that it comes from.
for name in GPU_a a.b -a a-; do
  refuses slurm "nodesets.$name: the name must consist of a-z, 0-9 and '-'" --set-json "nodesets={\"$name\":{}}"
  refuses slurm "loginsets.$name: the name must consist of a-z, 0-9 and '-'" --set-json "loginsets={\"$name\":{}}"
done
shows slurm 'sorted(o)' '["Controller/slurm", "NodeSet/slurm-worker-0", "RestApi/slurm"]' --set-json 'nodesets={"0":{},"GPU_a":{"enabled":false}}'
long=$(printf 'x%.0s' {1..48})
shows slurm "'NodeSet/slurm-worker-$long' in o" true --set "nodesets.$long.replicas=1"
refuses slurm "nodesets.x$long: its object's name, slurm-worker-x$long, has 62 characters, but at most 61 are allowed" --set "nodesets.x$long.replicas=1"
shows slurm "'NodeSet/slurm-worker-x$long' in o" true --set "nodesets.x$long.replicas=1" --is-upgrade
refuses slurm "loginsets.xxxx$long: its object's name, slurm-login-xxxx$long, has 64 characters, but at most 63 are allowed" --set "loginsets.xxxx$long.replicas=1"
RELEASE=12 refuses slurm "the name of the cluster's objects, 12-slurm, must consist of a-z, 0-9 and '-', begin with a letter"
refuses slurm "the name of the cluster's objects, My_Cluster, must" --set fullnameOverride=My_Cluster
RELEASE=12 refuses slurm-operator 'the name of the Service, 12-slurm-operator, must begin with a letter: set fullnameOverride'
RELEASE=12 shows slurm-operator '"Deployment/12-slurm-operator" in o' true --set operator.metricsPort=0
# The names of Jobs, and the labels that contain them, are cut to 63 characters.
job='[[len(k.partition("/")[2]), d["metadata"]["name"] == d["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/name"]] for k, d in o.items() if k.startswith("Job/")]'
shows slurm-operator "$job" '[[63, true]]' --set "fullnameOverride=xxxxx$long"
shows slurm-operator "$job" '[[63, true]]' --set "fullnameOverride=xxxxxx$long"
shows slurm-operator "$job" '[[63, true]]' --set "fullnameOverride=xxxxxxxxxxxxxxx$long"
# The stop switch is set on the Controller and not on its pods, because switching it must not replace them. The chart uses the
# operator's annotation.
switch=$(sed -n 's/.*kAnnotationStopDeletions = "\(.*\)";/\1/p' "$top/src/api/well_known.hpp")
shows slurm "[o['Controller/slurm']['metadata'].get('annotations'), $spec['template']['metadata']]" '[null, {}]'
shows slurm "[o['Controller/slurm']['metadata']['annotations'], $spec['template']['metadata']]" \
  "[{\"$switch\": \"true\", \"x\": \"y\"}, {\"annotations\": {\"x\": \"y\"}}]" --set controller.stopDeletions=true,controller.metadata.annotations.x=y
shows slurm "$nodeset['replicas']" 0 --set nodesets.cpu.replicas=0
shows slurm "$nodeset['template']['spec']" '{"hostname": "cpu-", "imagePullSecrets": [{"name": "r"}], "nodeSelector": {"kubernetes.io/os": "linux"}, "priorityClassName": "slurm-system-critical"}' \
  --set nodesets.cpu.replicas=1,priorityClass.enabled=true --set-json 'imagePullSecrets=[{"name":"r"}]'
shows slurm "$nodeset['template']['spec']" '{"automountServiceAccountToken": false, "hostname": "cpu-", "terminationGracePeriodSeconds": 0}' \
  --set-json 'nodesets.cpu={"podSpec":{"terminationGracePeriodSeconds":0,"automountServiceAccountToken":false,"nodeSelector":null,"schedulerName":"","tolerations":[],"affinity":{}}}'
shows slurm "$nodeset['slurmd']" '{"image": "r/slurmd@sha256:x", "imagePullPolicy": "Always"}' \
  --set nodesets.cpu.slurmd.image.repository=r/slurmd,nodesets.cpu.slurmd.image.digest=sha256:x,imagePullPolicy=Always
shows slurm "$nodeset['slurmd']['image']" '"one:2"' --set nodesets.cpu.slurmd.image=one:2
# An image can be given as one string. (Helm prints no warning, which would not be YAML.) The defaults are the same for all
# other images.
images='{k: c["image"] for k, d in o.items() for c in [d["spec"], d["spec"].get("storageConfig", {})] for k, c in c.items() if isinstance(c, dict) and "image" in c}'
managed=(--set accounting.enabled=true,accounting.storageConfig.managed=true,nodesets.a.enabled=true,loginsets.a.enabled=true)
shows slurm "$images" '{"login": "ghcr.io/slinkyproject/login:26.05-ubuntu26.04", "mariadb": "docker.io/library/mariadb:11.8", "slurmctld": "ghcr.io/slinkyproject/slurmctld:26.05-ubuntu26.04", "slurmd": "ghcr.io/slinkyproject/slurmd:26.05-ubuntu26.04", "slurmdbd": "ghcr.io/slinkyproject/slurmdbd:26.05-ubuntu26.04", "slurmrestd": "ghcr.io/slinkyproject/slurmrestd:26.05-ubuntu26.04"}' "${managed[@]}"
shows slurm "$images" '{"login": "b:1", "mariadb": "f:1", "slurmctld": "c:1", "slurmd": "d:1", "slurmdbd": "e:1", "slurmrestd": "g:1"}' "${managed[@]}" \
  --set loginsetDefaults.login.image=b:1,controller.slurmctld.image=c:1,nodesetDefaults.slurmd.image=d:1,accounting.slurmdbd.image=e:1 \
  --set accounting.storageConfig.mariadb.image=f:1,restapi.slurmrestd.image=g:1
shows slurm "$nodeset['slurmd']['image']" '"r:2"' --set nodesetDefaults.slurmd.image.repository=r --set-string nodesets.cpu.slurmd.image.tag=2
refuses slurm 'nodesets.cpu.slurmd.image.repository: required' --set nodesetDefaults.slurmd.image=one:2,nodesets.cpu.slurmd.image.tag=v3
refuses slurm 'controller.slurmctld.image.tag: required, unless there is a digest' --set controller.slurmctld.image.tag=null
shows slurm '[k for k in o if k.startswith("NodeSet")]' '[]' --set nodesets.cpu.enabled=false
# A new version of a chart must not replace pods, so no pod template contains the chart's version.
shows slurm '"helm.sh" in str([d for k, d in o.items() if not k.startswith("ConfigMap")])' false --set nodesets.cpu.replicas=1
shows slurm 'o["PodDisruptionBudget/slurm-restapi"]["spec"]["selector"]["matchLabels"]' '{"app.kubernetes.io/instance": "slurm", "app.kubernetes.io/name": "slurmrestd"}' --set restapi.pdb.enabled=true
accounting='o["Accounting/slurm"]["spec"]'
shows slurm "$accounting" \
  '{"slurmdbd": {"image": "ghcr.io/slinkyproject/slurmdbd:26.05-ubuntu26.04", "imagePullPolicy": "IfNotPresent"}, "storageConfig": {"database": "slurm_acct_db", "host": "mariadb", "passwordKeyRef": {"key": "password", "name": "mariadb-password"}, "port": 3306, "username": "slurm"}, "template": {"metadata": {}, "spec": {"nodeSelector": {"kubernetes.io/os": "linux"}}}}' \
  --set accounting.enabled=true
shows slurm "[$accounting, $spec['accountingRef']]" '[{"external": true, "externalConfig": {"host": "h", "port": 6819}}, {"name": "slurm"}]' \
  --set accounting.enabled=true,accounting.external=true,accounting.externalConfig.host=h
shows slurm "[$accounting[k] == $spec[k] for k in ('slurmKeyRef', 'jwtKeyRef', 'jwksKeyRef')]" '[true, true, true]' \
  --set accounting.enabled=true,slurmKey.secretRef.name=a,jwtKey.secretRef.name=b,jwksKeys.enabled=true
shows slurm "[$accounting['storageConfig'][k] for k in ('managed', 'database', 'username', 'mariadb', 'template', 'persistence')] + ['host' in $accounting['storageConfig']]" \
  '[true, "slurm_acct_db", "slurm", {"image": "docker.io/library/mariadb:11.8", "imagePullPolicy": "IfNotPresent"}, {"metadata": {}, "spec": {"imagePullSecrets": [{"name": "s"}]}}, {"storageClassName": "fast"}, false]' \
  --set accounting.enabled=true,accounting.storageConfig.managed=true,accounting.storageConfig.persistence.storageClassName=fast,imagePullSecrets[0].name=s
refuses slurm 'accounting.storageConfig.mariadb.image.tag' --set accounting.enabled=true,accounting.storageConfig.managed=true \
  --set-json accounting.storageConfig.mariadb.image.tag=11.8
qos='o["SlurmQos/gpu"]'
shows slurm "[$qos['metadata']['name'], $qos['metadata']['labels']['a'], $qos['spec']]" \
  '["gpu", "b", {"accountingRef": {"name": "slurm"}, "limits": {"grpTRES": {"gres/gpu": 8}}, "priority": 5}]' \
  --set accounting.enabled=true,qos.gpu.priority=5,qos.gpu.metadata.labels.a=b,qos.gpu.limits.grpTRES.gres/gpu=8
shows slurm "[$qos['spec'], 'SlurmQos/none' in o]" '[{"accountingRef": {"name": "slurm"}, "config": {"priority": 1}}, false]' \
  --set accounting.enabled=true,qos.gpu.config.priority=1,qos.none=null
shows slurm "$qos['spec']" '{"accountingRef": {"name": "slurm"}}' --set accounting.enabled=true --set-json 'qos.gpu={}'
refuses slurm 'qos.gpu: needs accounting.enabled' --set qos.gpu.priority=5
refuses slurm 'prio' --set accounting.enabled=true,qos.gpu.prio=5
refuses slurm 'GPU' --set accounting.enabled=true,qos.GPU.priority=5
account='o["SlurmAccount/physics"]'
shows slurm "[$account['metadata']['name'], $account['metadata']['labels']['a'], $account['spec'], 'SlurmAccount/none' in o]" \
  '["physics", "b", {"accountingRef": {"name": "slurm"}, "fairShare": "parent", "limits": {"grpTRES": {"gres/gpu": 8}}, "qos": ["gpu"]}, false]' \
  --set accounting.enabled=true,accounts.physics.fairShare=parent,accounts.physics.metadata.labels.a=b,accounts.none=null \
  --set 'accounts.physics.limits.grpTRES.gres/gpu=8,accounts.physics.qos={gpu}'
shows slurm "[o['SlurmUser/ann']['spec'], 'SlurmUser/none' in o]" \
  '[{"accountingRef": {"name": "slurm"}, "adminLevel": "None", "associations": [{"account": "physics", "fairShare": 3}], "name": "Ann"}, false]' \
  --set accounting.enabled=true,users.ann.name=Ann,users.ann.adminLevel=None,users.ann.associations[0].account=physics \
  --set users.ann.associations[0].fairShare=3,users.none=null
shows slurm "[$account['spec']['accountingRef'], o['SlurmQos/gpu']['spec']['accountingRef']]" '[{"name": "slurm"}, {"name": "slurm"}]' \
  --set accounting.enabled=true --set-json 'accounts.physics={},qos.gpu={}'
shows slurm "[k for k in o if k.startswith('Slurm')]" '[]' --set accounting.enabled=true,accounts=null,users=null,qos=null
refuses slurm 'accounts.physics: needs accounting.enabled' --set accounts.physics.fairShare=5
refuses slurm 'users.ann: needs accounting.enabled' --set users.ann.associations[0].account=physics
refuses slurm 'share' --set accounting.enabled=true,accounts.physics.share=5
refuses slurm 'share' --set accounting.enabled=true,users.ann.associations[0].share=5
refuses slurm 'Ann' --set accounting.enabled=true,users.Ann.adminLevel=None
refuses slurm 'accounting.externalConfig.host: required when accounting.external is true' --set accounting.enabled=true,accounting.external=true
refuses slurm 'loginsets.a.login.image.tag: required, unless there is a digest' --set loginsets.a.login.image.tag=null
login='o["LoginSet/slurm-login-a"]["spec"]'
shows slurm "[$login, [k for k in o if k.startswith('Secret')]]" \
  '[{"controllerRef": {"name": "slurm"}, "login": {"image": "ghcr.io/slinkyproject/login:26.05-ubuntu26.04", "imagePullPolicy": "IfNotPresent", "securityContext": {"privileged": false}}, "replicas": 1, "service": {"spec": {"type": "LoadBalancer"}}, "template": {"metadata": {}, "spec": {"nodeSelector": {"kubernetes.io/os": "linux"}}}}, []]' \
  --set-json 'loginsets.a={}'
shows slurm "[$login[k] for k in ('replicas', 'rootSshAuthorizedKeys', 'authorizedKeysRefs', 'extraSshdConfig', 'strategy', 'service', 'initconf', 'sssdConfRef')]" \
  '[0, "k\n", [{"name": "people"}], "Port 2222", {"type": "Recreate"}, {"port": 2222, "spec": {"type": "ClusterIP"}}, {"image": "i:1", "imagePullPolicy": "IfNotPresent"}, {"key": "sssd.conf", "name": "slurm-sssd-conf"}]' \
  --set-json 'loginsetDefaults.strategy={"type":"Recreate"},loginsets.a={"replicas":0,"rootSshAuthorizedKeys":"k\n","authorizedKeysRefs":[{"name":"people"}],"extraSshdConfig":"Port 2222","service":{"port":2222,"spec":{"type":"ClusterIP"}},"initconf":{"image":"i:1"}}' \
  --set sssd.conf=x
shows slurm "o['Secret/slurm-sssd-conf']['stringData']" '{"sssd.conf": "[sssd]\n"}' --set-json 'sssd.conf="[sssd]\n"'
shows slurm "[$login['sssdConfRef'], [k for k in o if k.startswith('Secret')]]" '[{"key": "k", "name": "mine"}, []]' \
  --set sssd.conf=x,sssd.secretRef.name=mine,sssd.secretRef.key=k,loginsets.a.enabled=true
shows slurm '[k for k in o if k.startswith("LoginSet")]' '[]' --set loginsets.a.enabled=false
shows slurm '"helm.sh" in str(o["LoginSet/slurm-login-a"])' false --set loginsets.a.replicas=1
refuses slurm 'partitions.p.nodesets: x, must be one of: ALL, cpu' --set nodesets.cpu.replicas=1,partitions.p.enabled=true,partitions.p.nodesets={x}
refuses slurm 'partitions.p.nodesets: must name a nodeset, or ALL' --set partitions.p.enabled=true
refuses slurm 'jwtKey.secretRef.name: required, unless jwtKey.create is true' --set jwtKey.create=false
refuses slurm "configFiles.slurm.conf: the operator writes this file; use controller.extraConf" --set 'configFiles.slurm\.conf=x'
refuses slurm "configFiles.slurmdbd.conf: the operator writes this file; use accounting.extraConf" --set 'configFiles.slurmdbd\.conf=x'
refuses slurm 'nodesets.a.slurmd.image.tag: required, unless there is a digest' --set nodesets.a.slurmd.image.tag=null
refuses slurm 'controller.externalConfig: required when controller.external is true' --set controller.external=true
refuses slurm 'sssd.secretRef.name: required with sssd.secretRef.key' --set sssd.secretRef.key=k
refuses slurm 'sssd.secretRef.key: must not be set beside sssd.conf' --set sssd.conf=x,sssd.secretRef.key=k
daemons="[(o[k + '/slurm']['spec'].get('sssdConfRef') or {}).get('name') for k in ('Controller', 'RestApi')]"
shows slurm "$daemons" '[null, null]' --set sssd.conf=x
shows slurm "$daemons" '[null, null]' --set sssd.daemons=true
shows slurm "$daemons" '["slurm-sssd-conf", "slurm-sssd-conf"]' --set sssd.conf=x,sssd.daemons=true
shows slurm "$daemons" '[null, null]' --set sssd=null
ssh="o['NodeSet/slurm-worker-a']['spec']['ssh']"
shows slurm "$ssh['enabled'], 'sssdConfRef' in $ssh" '[true, false]' --set nodesets.a.ssh.enabled=true
shows slurm "$ssh['sssdConfRef']['name']" '"s"' --set sssd.conf=x,nodesets.a.ssh.enabled=true,nodesets.a.ssh.sssdConfRef.name=s
shows slurm "$ssh['sssdConfRef']" '{"key": "sssd.conf", "name": "mine"}' --set sssd.secretRef.name=mine,nodesets.a.replicas=1,nodesetDefaults.ssh.enabled=true
tells slurm 'It has no workers yet: define some under nodesets.'
tells slurm 'are not used: asciiArt, jwtKey.annotations, nodesets.a.taintKubeNodes, slurmKey.annotations.' \
  --set asciiArt=true,slurmKey.annotations.a=b,jwtKey.annotations.a=b,nodesets.a.taintKubeNodes=true
tells slurm 'are not used: loginsets.a.service.spec.externalIPs, restapi.service.spec.externalIPs.' \
  --set 'restapi.service.spec.externalIPs={192.0.2.1},loginsetDefaults.service.spec.externalIPs={192.0.2.1},loginsets.a.enabled=true'
tells slurm-operator 'deployment/slurm-operator\n\nIt needs the custom resource definitions of the chart slurm-operator-crds.'
tells slurm-operator "preempt them.\n  - The FlowSchema of the operator's Lease." "${namespaced[@]}"
tells slurm-operator 'are not used: webhook, operator.metricsSecure.' --set webhook.enabled=true,operator.metricsSecure=true

# slurm-bridge.
bridged=(--set sharedConfig.cluster=slurm/demo)
direct=(--set 'sharedConfig.slurmRestApi=http://h:6820,sharedConfig.slurmKeyRef.namespace=keys,sharedConfig.slurmKeyRef.name=s,sharedConfig.slurmKeyRef.key=k')
pod='o["Deployment/slurm-bridge"]["spec"]["template"]["spec"]'
args="${pod}['containers'][0]['args']"
shows slurm-bridge 'sorted(o)' '["ClusterRole/slurm-bridge", "ClusterRoleBinding/slurm-bridge", "ConfigMap/slurm-bridge-prolog", "Deployment/slurm-bridge", "FlowSchema/slurm-bridge", "MutatingWebhookConfiguration/slurm-bridge", "PriorityClass/slurm-bridge", "Role/slurm-bridge", "Role/slurm-bridge-admission", "Role/slurm-bridge-key", "RoleBinding/slurm-bridge", "RoleBinding/slurm-bridge-admission", "RoleBinding/slurm-bridge-key", "Service/slurm-bridge", "ServiceAccount/slurm-bridge", "ValidatingAdmissionPolicy/slurm-bridge", "ValidatingAdmissionPolicy/slurm-bridge-record", "ValidatingAdmissionPolicyBinding/slurm-bridge", "ValidatingAdmissionPolicyBinding/slurm-bridge-record"]' "${bridged[@]}"
without=(--set admission.enabled=false)
shows slurm-bridge 'sorted(o)' '["ClusterRole/slurm-bridge", "ClusterRoleBinding/slurm-bridge", "ConfigMap/slurm-bridge-prolog", "Deployment/slurm-bridge", "FlowSchema/slurm-bridge", "Role/slurm-bridge", "Role/slurm-bridge-key", "RoleBinding/slurm-bridge", "RoleBinding/slurm-bridge-key", "Service/slurm-bridge", "ServiceAccount/slurm-bridge"]' "${bridged[@]}" "${without[@]}"
shows slurm-bridge "$args" '["--leader-elect=true", "--leader-elect-namespace=ns", "--health-addr=:8081", "--metrics-addr=:8080", "--cluster=slurm/demo", "--managed-namespaces=slurm-bridge", "--partition=slurm-bridge", "--mcs-label=kubernetes", "--node-silence-limit=10", "--pod-outlive-limit=5", "--admission-addr=:9443", "--admission-name=slurm-bridge", "--scheduler-name=slurm-bridge-scheduler", "--log-level=info"]' "${bridged[@]}"
shows slurm-bridge "[a for a in $args if a.split('=')[0] in ('--slurmrestd', '--slurm-key', '--cluster')]" '["--slurmrestd=h:6820", "--slurm-key=keys/s/k"]' "${direct[@]}"
shows slurm-bridge "$args[5:]" '["--managed-namespaces=a,b", "--node-silence-limit=5", "--pod-outlive-limit=30", "--shared-nodes", "--trust-identities", "--log-level=info", "--x"]' "${bridged[@]}" "${without[@]}" \
  --set 'admission.managedNamespaces={a,b},schedulerConfig.partition=,schedulerConfig.mcsLabel=,schedulerConfig.sharedNodes=true,schedulerConfig.trustIdentities=true,schedulerConfig.nodeSilenceMinutes=5,schedulerConfig.podOutliveMinutes=30,controllers.extraArgs={--x}'
shows slurm-bridge "[$pod['securityContext']['runAsNonRoot'], $pod['containers'][0]['securityContext'], [p['name'] for p in $pod['containers'][0]['ports']], $pod['containers'][0]['readinessProbe']['httpGet']['path']]" \
  '[true, {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": true}, ["health", "metrics", "webhook"], "/readyz"]' "${bridged[@]}"
shows slurm-bridge '[o["Deployment/a-slurm-bridge"]["metadata"]["name"], [a for a in o["Deployment/a-slurm-bridge"]["spec"]["template"]["spec"]["containers"][0]["args"] if "elect-name=" in a]]' \
  '["a-slurm-bridge", ["--leader-elect-name=a-slurm-bridge"]]' "${bridged[@]}" --set fullnameOverride=a-slurm-bridge
# Without an election, the old pod ends before the new one begins.
shows slurm-bridge "[o['Deployment/slurm-bridge']['spec'].get('strategy'), [k for k in o if k.startswith('FlowSchema')]]" '[{"type": "Recreate"}, []]' "${bridged[@]}" --set controllers.leaderElect=false
shows slurm-bridge "o['Deployment/slurm-bridge']['spec'].get('strategy')" null "${bridged[@]}" --set controllers.replicas=2
# Of Secrets, the key alone.
key='[{k: r[k] for k in ("resourceNames", "verbs")} for r in o["Role/slurm-bridge-key"]["rules"]] + [o["Role/slurm-bridge-key"]["metadata"]["namespace"]]'
shows slurm-bridge "$key" '[{"resourceNames": ["demo-jwt-key"], "verbs": ["get"]}, "slurm"]' "${bridged[@]}"
shows slurm-bridge "$key" '[{"resourceNames": ["mine"], "verbs": ["get"]}, "slurm"]' "${bridged[@]}" --set sharedConfig.clusterKeySecret=mine
shows slurm-bridge "$key" '[{"resourceNames": ["s"], "verbs": ["get"]}, "keys"]' "${direct[@]}"
bridge_rights=${rights/ROLE/o[\"ClusterRole/slurm-bridge\"]}
shows slurm-bridge "$bridge_rights" '{"batch/jobs": "g", "namespaces": "glw", "nodes": "glpw", "nodes/status": "p", "pods": "dglpw", "pods/eviction": "c", "pods/status": "p", "scheduler.slinky.slurm.net/pods": "p", "scheduling.x-k8s.io/podgroups": "g", "slinky.slurm.net/controllers": "glw", "slinky.slurm.net/restapis": "glw"}' "${bridged[@]}" "${without[@]}"
shows slurm-bridge "{k: v for k, v in $bridge_rights.items() if '.k8s.io/' in k}" '{"admissionregistration.k8s.io/mutatingwebhookconfigurations": "gp", "scheduling.k8s.io/priorityclasses": "glw"}' "${bridged[@]}"
shows slurm-bridge '[r.get("resourceNames") for n in ("ClusterRole/slurm-bridge", "Role/slurm-bridge-admission") for r in o[n]["rules"] if r["resources"][0] in ("mutatingwebhookconfigurations", "secrets") and r["verbs"] != ["create"]]' '[["slurm-bridge"], ["slurm-bridge"]]' "${bridged[@]}"
shows slurm-bridge "[{k: v for k, v in $bridge_rights.items() if k.startswith('nodes')}, $args[-2:]]" '[{"nodes": "glw"}, ["--no-nodes", "--log-level=info"]]' "${bridged[@]}" "${without[@]}" --set nodes.enabled=false
shows slurm-bridge "[o['ConfigMap/slurm-bridge-prolog']['metadata']['namespace'], o['ConfigMap/slurm-bridge-prolog']['data']['90-slurm-bridge.sh'] == open('$top/charts/slurm-bridge/files/prolog.sh').read().strip() + '\n']" '["slurm", true]' "${bridged[@]}"
shows slurm-bridge 'o["ConfigMap/slurm-bridge-prolog"]["metadata"]["annotations"]' '{"helm.sh/resource-policy": "keep"}' "${bridged[@]}"
shows slurm-bridge '[k for k in o if k.startswith("ConfigMap")]' '[]' "${bridged[@]}" --set nodes.enabled=false
shows slurm-bridge '[k for k in o if k.startswith("ConfigMap")]' '[]' "${direct[@]}"
shows slurm-bridge 'len({(g, r) for rule in o["ClusterRole/slurm-bridge"]["rules"] for g in rule["apiGroups"] for r in rule["resources"]}) == len(o["ClusterRole/slurm-bridge"]["rules"])' true "${bridged[@]}"
shows slurm-bridge "[k for k in $bridge_rights if k.startswith('slinky')]" '[]' "${direct[@]}"
# The right by which policies tell a bridge from others, and none that only administrators have.
shows slurm-bridge "[r['verbs'] for r in o['ClusterRole/slurm-bridge']['rules'] if r['apiGroups'] == ['scheduler.slinky.slurm.net']]" '[["place"]]' "${bridged[@]}" "${without[@]}"
shows slurm-bridge "${lease/ROLE/o[\"Role/slurm-bridge\"]}" '[[["leases"], ["slurm-bridge"], ["get", "update"]], [["leases"], null, ["create"]]]' "${bridged[@]}"
shows slurm-bridge '{(s["kind"], s["name"], s["namespace"]) for k, d in o.items() for s in d.get("subjects", []) if "RoleBinding/" in k} == {("ServiceAccount", "mine", "ns")}' true "${bridged[@]}" --set controllers.serviceAccount.name=mine
# Metrics and budgets, as for the operator.
shows slurm-bridge "['Service/slurm-bridge' in o, 'NetworkPolicy/slurm-bridge' in o]" '[false, false]' "${bridged[@]}" "${without[@]}" --set controllers.metricsPort=0
shows slurm-bridge 'o["NetworkPolicy/slurm-bridge"]["spec"]["ingress"]' '[{"from": [{"namespaceSelector": {}}], "ports": [{"port": "metrics", "protocol": "TCP"}]}]' "${bridged[@]}" "${without[@]}" --set networkPolicy.enabled=true --set-json 'networkPolicy.metricsFrom=[{"namespaceSelector":{}}]'
shows slurm-bridge 'o["ServiceMonitor/slurm-bridge"]["spec"]["selector"]["matchLabels"]' '{"app.kubernetes.io/instance": "slurm-bridge", "app.kubernetes.io/name": "slurm-bridge"}' "${bridged[@]}" --set controllers.serviceMonitor.enabled=true
refuses slurm-bridge 'controllers.serviceMonitor.enabled: there are no metrics' "${bridged[@]}" --set controllers.serviceMonitor.enabled=true,controllers.metricsPort=0
refuses slurm-bridge 'sharedConfig: exactly one of cluster and slurmRestApi must be set'
refuses slurm-bridge 'sharedConfig: exactly one of cluster and slurmRestApi must be set' "${bridged[@]}" "${direct[@]}"
refuses slurm-bridge 'sharedConfig.slurmKeyRef.key: must be set with slurmRestApi' "${direct[@]}" --set sharedConfig.slurmKeyRef.key=
refuses slurm-bridge "at '/sharedConfig/cluster': 'demo' does not match pattern" --set sharedConfig.cluster=demo
refuses slurm-bridge 'admission.managedNamespaces: empty, must name at least one namespace' "${bridged[@]}" --set-json 'admission.managedNamespaces=[]'
refuses slurm-bridge 'admission.managedNamespaces: slurm, must not be the namespace of sharedConfig.cluster' "${bridged[@]}" --set 'admission.managedNamespaces={a,slurm}'
refuses slurm-bridge 'admission.managedNamespaces: ns, must not be the namespace of the bridge itself' "${bridged[@]}" --set 'admission.managedNamespaces={a,ns}'
refuses slurm-bridge 'admission.managedNamespaces: kube-system, must not be the namespace of Kubernetes' "${bridged[@]}" --set 'admission.managedNamespaces={kube-system}'
shows slurm-bridge "[a for a in $args if 'managed' in a]" '["--managed-namespaces=ns"]' "${bridged[@]}" "${without[@]}" --set 'admission.managedNamespaces={ns}'
refuses slurm-bridge 'admission.port: 0, must be from 1 to 65535' "${bridged[@]}" --set admission.port=0
# The webhook is asked for pods of Slurm alone.
managed_by=".metadata.?annotations.orValue({})[?'slinky.slurm.net/slurm-managed-by'].orValue('') == "
hooks='o["MutatingWebhookConfiguration/slurm-bridge"]["webhooks"]'
shows slurm-bridge "[[h['clientConfig']['service']['name'], h['failurePolicy'], h['namespaceSelector']['matchExpressions'][0]] for h in $hooks]" \
  '[["slurm-bridge", "Fail", {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["a", "b"]}], ["slurm-bridge", "Fail", {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["a", "b", "kube-system", "ns"]}]]' \
  "${bridged[@]}" --set 'admission.managedNamespaces={a,b}'
shows slurm-bridge "[h['matchConditions'][0]['expression'] for h in $hooks[1:]]" "[\"object.spec.?schedulerName.orValue('') == 'mine' || object${managed_by}'slurm/demo'\"]" "${bridged[@]}" --set schedulerConfig.schedulerName=mine
shows slurm-bridge "[h['matchConditions'][0]['expression'].rsplit(' ', 1)[1] for h in $hooks[1:]]" "[\"'h:6820'\"]" "${direct[@]}"
shows slurm-bridge "'system:serviceaccount:kube-system:daemon-set-controller' in $hooks[0]['matchConditions'][0]['expression']" true "${bridged[@]}"
shows slurm-bridge "$pod['tolerations']" '[{"key": "slinky.slurm.net/managed-node", "operator": "Exists"}]' "${bridged[@]}"
shows slurm-bridge "[t['key'] for t in $pod['tolerations']]" '["a", "slinky.slurm.net/managed-node"]' "${bridged[@]}" --set-json 'controllers.tolerations=[{"key":"a"}]'
shows slurm-bridge "[len($hooks), [a for a in $args if 'scheduler-name' in a]]" '[1, []]' "${bridged[@]}" --set schedulerConfig.schedulerName=
shows slurm-bridge 'o["ValidatingAdmissionPolicy/slurm-bridge"]["spec"]["matchConditions"][0]["expression"]' "\"request.userInfo.username != 'system:serviceaccount:ns:mine'\"" "${bridged[@]}" --set controllers.serviceAccount.name=mine
# The policy concerns the managed namespaces, and pods elsewhere that the webhook took in.
concerns='o["ValidatingAdmissionPolicy/slurm-bridge"]["spec"]["matchConditions"][1]["expression"]'
shows slurm-bridge "$concerns" "\"request.namespace in [\\\"a\\\",\\\"b\\\"] || object${managed_by}'slurm/demo' || (oldObject != null && oldObject${managed_by}'slurm/demo')\"" "${bridged[@]}" --set 'admission.managedNamespaces={a,b}'
shows slurm-bridge "$concerns" '"request.namespace in [\"slurm-bridge\"]"' "${bridged[@]}" --set schedulerConfig.schedulerName=
shows slurm-bridge '[sorted(d["spec"]) for k, d in o.items() if k.startswith("ValidatingAdmissionPolicyBinding/")]' '[["policyName", "validationActions"], ["policyName", "validationActions"]]' "${bridged[@]}"
# Nobody but a bridge writes the record of a job, in any namespace.
record='o["ValidatingAdmissionPolicy/slurm-bridge-record"]["spec"]'
shows slurm-bridge "[$record['failurePolicy'], len($record['matchConditions']), $record['validations'][0]['expression'].split('||')[0]]" "[\"Fail\", 1, \"oldObject != null && (request.userInfo.username == 'system:serviceaccount:ns:mine' \"]" "${bridged[@]}" --set controllers.serviceAccount.name=mine
shows slurm-bridge '[o["PriorityClass/slurm-bridge"][k] for k in ("preemptionPolicy", "value")]' '["Never", 0]' "${bridged[@]}" --set fullnameOverride=other
shows slurm-bridge '[k for k in o if k.startswith("PriorityClass")]' '[]' "${bridged[@]}" --set admission.priorityClass.create=false
shows slurm-bridge "[[p['name'], p['port']] for p in o['Service/slurm-bridge']['spec']['ports']]" '[["metrics", 8080], ["webhook", 443]]' "${bridged[@]}"
shows slurm-bridge "[[p['name'] for p in o['Service/slurm-bridge']['spec']['ports']], $pod['containers'][0]['lifecycle']]" '[["webhook"], {"preStop": {"sleep": {"seconds": 5}}}]' "${bridged[@]}" --set controllers.metricsPort=0
shows slurm-bridge 'o["NetworkPolicy/slurm-bridge"]["spec"]["ingress"]' '[{"ports": [{"port": "webhook", "protocol": "TCP"}]}]' "${bridged[@]}" --set networkPolicy.enabled=true
# A bridge that retires sends no more pods to itself, and keeps its rights.
retiring=("${bridged[@]}" --set retire=true)
shows slurm-bridge 'sorted(o)' '["ClusterRole/slurm-bridge", "ClusterRoleBinding/slurm-bridge", "ConfigMap/slurm-bridge-prolog", "FlowSchema/slurm-bridge", "Job/slurm-bridge-retire", "PriorityClass/slurm-bridge", "Role/slurm-bridge", "Role/slurm-bridge-admission", "Role/slurm-bridge-key", "RoleBinding/slurm-bridge", "RoleBinding/slurm-bridge-admission", "RoleBinding/slurm-bridge-key", "ServiceAccount/slurm-bridge", "ValidatingAdmissionPolicy/slurm-bridge", "ValidatingAdmissionPolicy/slurm-bridge-record", "ValidatingAdmissionPolicyBinding/slurm-bridge", "ValidatingAdmissionPolicyBinding/slurm-bridge-record"]' "${retiring[@]}" --set networkPolicy.enabled=true,controllers.pdb.enabled=true,controllers.serviceMonitor.enabled=true
shows slurm-bridge "[o['Job/slurm-bridge-retire']['spec']['template']['spec'][k] for k in ('restartPolicy', 'serviceAccountName')] + o['Job/slurm-bridge-retire']['spec']['template']['spec']['containers'][0]['args'][4:]" \
  '["OnFailure", "slurm-bridge", "--cluster=slurm/demo", "--managed-namespaces=slurm-bridge", "--partition=slurm-bridge", "--mcs-label=kubernetes", "--node-silence-limit=10", "--pod-outlive-limit=5", "--scheduler-name=slurm-bridge-scheduler", "--retire", "--log-level=info"]' "${retiring[@]}"
shows slurm-bridge "[t['key'] for t in o['Job/slurm-bridge-retire']['spec']['template']['spec']['tolerations']]" '["slinky.slurm.net/managed-node"]' "${retiring[@]}"
tells slurm-bridge 'helm uninstall slurm-bridge --namespace ns' "${retiring[@]}"
tells slurm-bridge 'are not used: scheduler, admission.certManager, admission.replicas.' "${bridged[@]}" --set scheduler.replicaCount=1,admission.replicas=1,admission.certManager.enabled=true

# A misspelt value is refused by its name, at any depth. The schema knows each value of values.yaml by its name. A value that
# allows only some words allows those of the definition, and a value with a range or format has those of the definition.
while IFS=$'\t' read -r verdict chart path detail; do
  if [[ $verdict == closed || $verdict == limited ]]; then pass; else fail "$chart $path" "$detail"; fi
done < <(python3 "$top/tests/charts/schema.py" "$top/charts" || printf 'broken\tschemas\t\tschema.py failed\n')

# The types of Kubernetes in the schemas: field names, types and enums. null means unset.
if out=$("$top/dev/values-schema.sh" check 2>&1); then pass; else fail "the generated part of the schemas" "$out"; fi
refuses slurm "at '/nodesets/cpu/replicas': minimum: got -1, want 0" --set nodesets.cpu.replicas=-1
refuses slurm "at '/restapi/service/port': maximum: got 70,000, want 65,535" --set restapi.service.port=70000
refuses slurm "at '/clusterName': 'a b' does not match pattern" --set clusterName='a b'
refuses slurm "at '/controller/persistence/resources/requests/storage': '100Megs' does not match pattern" \
  --set controller.persistence.resources.requests.storage=100Megs
refuses slurm-operator "at '/operator/resources/limits/memory': '1 Gi' does not match pattern" --set operator.resources.limits.memory='1 Gi'
refuses slurm "at '/nodesets/cpu/podSpec': additional properties 'nodeselector' not allowed" --set nodesets.cpu.podSpec.nodeselector.a=b
refuses slurm "at '/nodesets/cpu/slurmd': additional properties 'resource' not allowed" --set nodesets.cpu.slurmd.resource.limits.cpu=1
refuses slurm "at '/controller/podSpec/containers/0/env': got object, want null or array" --set 'controller.podSpec.containers[0].env.A=b'
refuses slurm "at '/nodesets/cpu/slurmd/env/0/value': got number, want null or string" --set 'nodesets.cpu.slurmd.env[0].value=1'
refuses slurm "at '/restapi/slurmrestd/imagePullPolicy': value must be one of 'Always', 'IfNotPresent', 'Never'" --set restapi.slurmrestd.imagePullPolicy=always
refuses slurm "at '/nodesets/cpu/scalingMode': value must be one of 'DaemonSet', 'StatefulSet'" --set nodesets.cpu.scalingMode=Daemonset
refuses slurm-operator "at '/operator/resources': additional properties 'limit' not allowed" --set operator.resources.limit.cpu=1
shows slurm "$nodeset['template']['spec'], $nodeset['slurmd']['resources']" '[{"hostname": "cpu-", "nodeSelector": {"a": "b", "kubernetes.io/os": null}, "securityContext": {"fsGroup": null}}, {"limits": {"cpu": 1, "example.com/gpu": "2", "memory": null}}]' \
  --set-json 'nodesets.cpu={"scalingMode":null,"podSpec":{"nodeSelector":{"a":"b","kubernetes.io/os":null},"tolerations":null,"securityContext":{"fsGroup":null}},"slurmd":{"env":null,"resources":{"limits":{"cpu":1,"example.com/gpu":"2","memory":null}}}}'
shows slurm "$nodeset['template']['spec']['newField']" 1 --set nodesets.cpu.podSpec.newField=1 --skip-schema-validation

# The values of the Slinky operator's charts, one by one.
while IFS= read -r line; do
  if [[ $line =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed$ ]]; then
    passed=$((passed + BASH_REMATCH[1])) failed=$((failed + BASH_REMATCH[2])) keys=done
  else
    echo "$line"
  fi
done < <(python3 "$top/tests/charts/go_values.py" "$top/charts" 2>&1)
[[ ${keys:-} ]] || fail go_values.py "it did not end"

echo "$passed passed, $failed failed"
[[ $failed -eq 0 ]]

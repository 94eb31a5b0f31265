#!/bin/bash
# Tests the custom resource definitions against a real API server: what it accepts, what it defaults, and that a refusal names
# the path and what is allowed. Uses the cluster of KUBECONFIG, and a namespace of its own, which it removes.
# Usage: tests/conformance/crd_test.sh          Ends with "N passed, N failed"; exits 1 when something failed.
set -uo pipefail
top=$(cd "$(dirname "$0")/../.." && pwd -P)
export KUBECONFIG=${KUBECONFIG:-$top/.local/kubeconfig}
PATH=$top/.local/bin:$PATH
namespace=crd-test-$$
passed=0 failed=0

installed=()

finish() {
  kubectl delete namespace "$namespace" --wait=false >/dev/null 2>&1
  for file in "${installed[@]}"; do kubectl delete -f "$file" --wait=false >/dev/null 2>&1; done
}
trap finish EXIT

pass() { passed=$((passed + 1)); }
fail() {
  failed=$((failed + 1))
  printf 'FAIL %s\n     %s\n' "$1" "${2//$'\n'/$'\n     '}"
}

manifest() { # kind spec [name]
  printf 'apiVersion: slinky.slurm.net/v1beta1\nkind: %s\nmetadata: {name: %s, namespace: %s}\nspec: %s\n' \
    "$1" "${3:-test}" "$namespace" "$2"
}

# accept KIND SPEC [NAME]: expects that the API server accepts the object.
accept() {
  local out
  if out=$(manifest "$1" "$2" "${3:-}" | kubectl create --dry-run=server --validate=strict -f - 2>&1); then pass; else fail "accept $1 $2" "$out"; fi
}

# refuse KIND SPEC PATH WORDS [NAME]: expects that the API server refuses the object with a message that contains the path and
# the words.
refuse() {
  local out
  if out=$(manifest "$1" "$2" "${5:-}" | kubectl create --dry-run=server -f - 2>&1); then
    fail "refuse $1 $2" "was accepted"
  elif [[ $out == *"$3: "*"$4"* ]]; then
    pass
  else
    fail "refuse $1 $2" "expected: $3: ... $4"$'\n'"message:  $out"
  fi
}

# change KIND PATCH [PATH WORDS [NAME]]: expects that the patch of the object (default: "test") is accepted, or is refused with
# a message that contains the path and the words.
change() {
  local out
  if out=$(kubectl -n "$namespace" patch "$1" "${5:-test}" --type=merge --dry-run=server -p "$2" 2>&1); then
    if [[ -z ${3:-} ]]; then pass; else fail "change $1 $2" "was accepted"; fi
  elif [[ -n ${3:-} && $out == *"$3: "*"$4"* ]]; then
    pass
  else
    fail "change $1 $2" "expected: ${3:-to be accepted}: ... ${4:-}"$'\n'"message:  $out"
  fi
}

# columns KIND EXPECTED: expects these columns of kubectl get.
columns() {
  local out
  out=$(kubectl -n "$namespace" get "$1" test -o wide 2>&1 | head -1 | xargs)
  if [[ $out == "$2" ]]; then pass; else fail "columns of $1" "expected: $2"$'\n'"have:     $out"; fi
}

definitions() {
  local file out
  for file in "$top"/charts/slurm-operator-crds/templates/*.yaml; do
    # The API server checks each rule and its maximum cost.
    if out=$(kubectl apply --server-side --force-conflicts --dry-run=server -f "$file" 2>&1); then pass; else fail "$file" "$out"; fi
    if ! kubectl get -f "$file" >/dev/null 2>&1; then
      kubectl apply --server-side -f "$file" >/dev/null && installed+=("$file")
    fi
  done
  kubectl wait --for=condition=Established --timeout=120s \
    crd/{controllers,restapis,nodesets,loginsets,accountings,slurmqoses,slurmaccounts,slurmusers,slurmassociations,tokens}.slinky.slurm.net >/dev/null || fail "definitions" "not established"
}

controllers() {
  local name40=aaaaaaaaaabbbbbbbbbbccccccccccdddddddddd
  accept Controller '{}'
  accept Controller "{clusterName: $name40}"
  accept Controller '{slurmKeyRef: {name: s, key: slurm.key}, jwtKeyRef: {name: j, key: jwt.key}}'
  accept Controller '{jwtHs256KeyRef: {name: j, key: jwt.key, optional: false}}'
  accept Controller '{external: true, externalConfig: {host: h, port: 6817}, jwtKeyRef: {name: j, key: k}}'
  accept Controller '{slurmctld: {image: i, args: [-vv], resources: {limits: {cpu: 1}}}, logfile: {image: i}, reconfigure: {}}'
  accept Controller '{template: {metadata: {labels: {a: b}, annotations: null}, spec: {tolerations: [{operator: Exists}], hostname: null}}}'
  accept Controller '{configFileRefs: null, prologScriptRefs: [{name: p}], epilogSlurmctldScriptRefs: []}'
  accept Controller '{persistence: {storageClassName: s, accessModes: [ReadWriteOnce], resources: {requests: {storage: 4Gi}}}}'
  accept Controller '{persistence: {enabled: false}, service: {port: 0, spec: {type: NodePort}}, deletionPolicy: Drain}'
  accept Controller '{persistence: {enabled: true, existingClaim: c}, ha: {enabled: true, backups: 2}}'
  accept Controller '{metrics: {enabled: true, serviceMonitor: {enabled: true, interval: 1m30s, endpoints: [{path: /m, interval: "0"}]}}}'
  accept Controller '{metrics: {serviceMonitor: null}, extraConf: "A=1\nB=2\n"}'
  refuse Controller "{clusterName: ${name40}x}" spec.clusterName 'may not be more than 40'
  refuse Controller '{clusterName: "a b"}' spec.clusterName "should match '^[A-Za-z0-9_.-]*\$'"
  refuse Controller '{clusterName: 7}' spec.clusterName 'must be of type string'
  accept Controller '{sssdConfRef: {name: s, key: sssd.conf}}'
  accept Controller '{sssdConfRef: null}'
  refuse Controller '{sssdConfRef: {key: k}}' spec.sssdConfRef.name 'must not be empty'
  refuse Controller '{slurmKeyRef: {name: s}}' spec.slurmKeyRef.key 'Required value'
  refuse Controller '{slurmKeyRef: {key: k}}' spec.slurmKeyRef.name 'must not be empty'
  refuse Controller '{jwtKeyRef: {name: "", key: k}}' spec.jwtKeyRef.name 'must not be empty'
  refuse Controller '{external: true}' spec.externalConfig 'required when external is true'
  refuse Controller '{external: true, externalConfig: {host: h, port: 0}}' spec.externalConfig.port 'should be greater than or equal to 1'
  refuse Controller '{service: {port: 65536}}' spec.service.port 'should be less than or equal to 65535'
  refuse Controller '{ha: {enabled: true}}' spec.persistence.existingClaim 'required when ha.enabled is true'
  refuse Controller '{ha: {backups: 0}}' spec.ha.backups 'should be greater than or equal to 1'
  refuse Controller '{deletionPolicy: Later}' spec.deletionPolicy 'supported values: "Immediate", "Drain"'
  refuse Controller '{inplaceReconfigure: "yes"}' spec.inplaceReconfigure 'must be of type boolean'
  refuse Controller '{configFileRefs: a}' spec.configFileRefs 'must be of type array'
  refuse Controller '{persistence: {resources: {requests: {storage: 4Gigs}}}}' spec.persistence.resources.requests.storage 'should match'
  refuse Controller '{template: {spec: {hostname: "Bad_Name"}}}' spec.template.spec.hostname 'should match'
  refuse Controller '{slurmctld: {args: -v}}' spec.slurmctld.args 'must be of type array'
  accept Controller '{slurmctld: {image: null, args: null, env: null, livenessProbe: null}, logfile: {args: []}, service: {spec: {ports: null}}}'
  # clusterName is set, because the policy of an installed operator refuses a default name of this length.
  accept Controller '{clusterName: c}' "${name40}x"
  refuse Controller '{}' metadata.name 'must have at most 41 characters of a-z' "${name40}xx"
  refuse Controller '{}' metadata.name 'begin with a letter' a.b
  refuse Controller '{}' metadata.name 'begin with a letter' 7a

  manifest Controller '{clusterName: one, slurmKeyRef: {name: s, key: k}, jwtHs256KeyRef: {name: j, key: k}, external: true,
    externalConfig: {host: h, port: 1}}' | kubectl create -f - >/dev/null || fail "create a Controller" ""
  change controllers '{"spec":{"extraConf":"A=1","deletionPolicy":"Drain","slurmKeyRef":{"key":"other"}}}'
  change controllers '{"spec":{"jwtHs256KeyRef":null,"jwtKeyRef":{"name":"j","key":"k"}}}'
  change controllers '{"spec":{"clusterName":"two"}}' spec.clusterName 'cannot be changed'
  change controllers '{"spec":{"clusterName":null}}' spec.clusterName 'cannot be changed'
  change controllers '{"spec":{"slurmKeyRef":{"name":"other"}}}' spec.slurmKeyRef.name 'cannot be changed, added or removed'
  change controllers '{"spec":{"slurmKeyRef":null}}' spec.slurmKeyRef.name 'cannot be changed, added or removed'
  change controllers '{"spec":{"jwtKeyRef":{"name":"j","key":"other"}}}' spec.jwtKeyRef 'cannot be changed, added or removed'
  change controllers '{"spec":{"persistence":{"enabled":false}}}' spec.persistence.enabled 'cannot be changed'
  change controllers '{"spec":{"persistence":{"existingClaim":"c"}}}' spec.persistence.existingClaim 'cannot be changed'
  change controllers '{"spec":{"ha":{"enabled":true}}}' spec.ha 'cannot be changed'
  columns controllers 'NAME READY AGE'
  columns slurmctld 'NAME READY AGE'

  # The name that is used by default may be set explicitly later, but no other name.
  manifest Controller '{external: true, externalConfig: {host: h, port: 1}}' unnamed | kubectl create -f - >/dev/null
  local out
  out=$(kubectl -n "$namespace" patch controllers unnamed --type=merge --dry-run=server -p "{\"spec\":{\"clusterName\":\"${namespace}_unnamed\"}}" 2>&1) ||
    fail "giving the default name" "$out"
  kubectl -n "$namespace" patch controllers unnamed --type=merge --dry-run=server -p '{"spec":{"clusterName":"x"}}' >/dev/null 2>&1 &&
    fail "giving another name" "was accepted"
  pass
}

loginsets() {
  accept LoginSet '{controllerRef: {name: c}}'
  accept LoginSet '{controllerRef: {name: c}, replicas: 0, login: {image: i}, initconf: {image: i}, template: {spec: {}}, service: {nodePort: 30000}, sssdConfRef: {name: s, key: sssd.conf}, rootSshAuthorizedKeys: k, extraSshdConfig: c, authorizedKeysRefs: [{name: a}]}'
  accept LoginSet '{controllerRef: {name: c}, strategy: {type: Recreate, rollingUpdate: null}, authorizedKeysRefs: null}'
  accept LoginSet '{controllerRef: {name: c}, strategy: {rollingUpdate: {maxSurge: 100%, maxUnavailable: 0}}}'
  refuse LoginSet '{}' spec.controllerRef 'Required value'
  refuse LoginSet '{controllerRef: {name: c}, sssdConfRef: {name: s}}' spec.sssdConfRef.key 'Required value'
  refuse LoginSet '{controllerRef: {name: c}, sssdConfRef: {key: k}}' spec.sssdConfRef.name 'must not be empty'
  refuse LoginSet '{controllerRef: {name: c}, strategy: {type: OnDelete}}' spec.strategy.type 'supported values: "RollingUpdate", "Recreate"'
  refuse LoginSet '{controllerRef: {name: c}, strategy: {rollingUpdate: {maxSurge: some}}}' spec.strategy.rollingUpdate.maxSurge 'should match'
  refuse LoginSet '{controllerRef: {name: c}, replicas: -1}' spec.replicas 'should be greater than or equal to 0'
  refuse LoginSet '{controllerRef: {name: c}}' metadata.name 'begin with a letter' 7a
  manifest LoginSet '{controllerRef: {name: none}, replicas: 0}' | kubectl create -f - >/dev/null || fail "create a LoginSet" ""
  change loginsets '{"spec":{"replicas":1}}'
  change loginsets '{"spec":{"controllerRef":{"name":"other"}}}' spec.controllerRef 'cannot be changed'
  columns loginsets 'NAME REPLICAS READY AGE'
}

accountings() {
  local storage='storageConfig: {host: db, passwordKeyRef: {name: p, key: k}}'
  accept Accounting "{$storage}"
  accept Accounting '{storageConfig: {host: 10.0.0.1, port: 3307, database: a_b$1, username: "u@x", passwordKeyRef: {name: p, key: k}}, slurmKeyRef: {name: s, key: k}, jwtKeyRef: {name: j, key: k}, jwksKeyRef: {name: w, key: k}, slurmdbd: {image: i}, template: {spec: {}}, extraConf: A=1, service: {nodePort: 30000}}'
  accept Accounting '{external: true, externalConfig: {host: h, port: 6819}}'
  refuse Accounting '{}' spec.storageConfig 'required when external is false'
  refuse Accounting '{external: true}' spec.externalConfig 'required when external is true'
  accept Accounting '{storageConfig: {managed: true, mariadb: {image: i}, template: {spec: {}}, persistence: {storageClassName: fast, resources: {requests: {storage: 9Gi}}}}}'
  refuse Accounting '{storageConfig: {host: db}}' spec.storageConfig.passwordKeyRef 'required when managed is false'
  refuse Accounting '{storageConfig: {passwordKeyRef: {name: p, key: k}}}' spec.storageConfig.host 'required when managed is false'
  refuse Accounting '{storageConfig: {host: db, passwordKeyRef: {key: k}}}' spec.storageConfig.passwordKeyRef.name 'must not be empty'
  refuse Accounting '{storageConfig: {host: "a b", passwordKeyRef: {name: p, key: k}}}' spec.storageConfig.host 'should match'
  refuse Accounting '{storageConfig: {host: db, database: a-b, passwordKeyRef: {name: p, key: k}}}' spec.storageConfig.database 'should match'
  refuse Accounting '{storageConfig: {host: db, port: 0, passwordKeyRef: {name: p, key: k}}}' spec.storageConfig.port 'should be greater than or equal to 1'
  refuse Accounting "{$storage, slurmKeyRef: {key: k}}" spec.slurmKeyRef.name 'must not be empty'
  refuse Accounting "{$storage}" metadata.name 'at most 41 characters' a12345678901234567890123456789012345678901
  manifest Accounting "{$storage}" | kubectl create -f - >/dev/null || fail "create an Accounting" ""
  change accountings '{"spec":{"storageConfig":{"host":"other"}}}'
  change accountings '{"spec":{"storageConfig":{"managed":true}}}' spec.storageConfig.managed 'cannot be changed'
  change accountings '{"spec":{"external":true,"externalConfig":{"host":"h","port":1}}}' spec.external 'cannot be changed'
  columns accountings 'NAME READY AGE'
}

slurmqoses() {
  local ref='accountingRef: {name: a}'
  accept SlurmQos "{$ref}"
  accept SlurmQos "{$ref, name: gpu_a, description: d, priority: 5, flags: [DenyOnLimit, NoDecay], graceTime: 90s, usageFactor: '1.5', usageThreshold: default, limitFactor: 2, preempt: [b], preemptMode: Requeue, preemptExemptTime: '00:01:30', adoption: Adopt, policy: Observe, deletionPolicy: Orphan}"
  accept SlurmQos "{$ref, limits: {grpJobs: 4, grpWall: 3-00:00:00, maxWallDurationPerJob: '72:00:00', maxJobsPerUser: unlimited, grpTRES: {cpu: 64, mem: 100G, gres/gpu: unlimited}}}"
  accept SlurmQos "{$ref, capacityCluster: slurm, limits: {grpTRES: {cpu: 50%, mem: 'min(all, partition(gpu)) - 1024', node: all * 0.5}}}"
  accept SlurmQos "{$ref, config: {limits: {max: {jobs: {per: {user: {set: true, number: 4}}}}}}, configVersion: v0.0.44}"
  refuse SlurmQos '{}' spec.accountingRef 'Required value'
  refuse SlurmQos '{accountingRef: {}}' spec.accountingRef.name 'Required value'
  refuse SlurmQos "{$ref, name: GPU}" spec.name 'should match'
  refuse SlurmQos "{$ref, flags: [DENY_LIMIT]}" 'spec.flags[0]' 'Unsupported value'
  refuse SlurmQos "{$ref, priority: unlimited}" spec.priority 'should match'
  refuse SlurmQos "{$ref, priority: -1}" spec.priority 'should be greater than or equal to 0'
  refuse SlurmQos "{$ref, graceTime: '90'}" spec.graceTime 'should match'
  refuse SlurmQos "{$ref, limits: {grpJobs: many}}" spec.limits.grpJobs 'should match'
  refuse SlurmQos "{$ref, limits: {grpTRES: {cpu: half}}}" spec.limits.grpTRES.cpu 'should match'
  refuse SlurmQos "{$ref, limits: {grpTRES: {cpu: all / 2}}}" spec.limits.grpTRES.cpu 'should match'
  refuse SlurmQos "{$ref, limits: {grpTRES: {cpu: 50% of all}}}" spec.limits.grpTRES.cpu 'should match'
  refuse SlurmQos "{$ref, capacityCluster: ''}" spec.capacityCluster 'should be at least 1'
  refuse SlurmQos "{$ref, limits: {maxWallDurationPerJob: 3d}}" spec.limits.maxWallDurationPerJob 'should match'
  refuse SlurmQos "{$ref, configVersion: v44}" spec.configVersion 'should match'
  refuse SlurmQos "{$ref, deletionPolicy: Retain}" spec.deletionPolicy 'Unsupported value'
  manifest SlurmQos "{$ref}" | kubectl create -f - >/dev/null || fail "create a SlurmQos" ""
  change slurmqoses '{"spec":{"limits":{"grpJobs":4}}}'
  change slurmqoses '{"spec":{"accountingRef":{"name":"b"}}}' spec.accountingRef 'cannot be changed'
  change slurmqoses '{"spec":{"name":"other"}}' spec.name 'cannot be changed, added or removed'
  columns slurmqoses 'NAME ACCOUNTING ID SYNCED REASON READY AGE'
}

slurmaccounts() {
  local ref='accountingRef: {name: a}'
  accept SlurmAccount "{$ref}"
  accept SlurmAccount "{$ref, name: Phys_ics.2+3-x, parent: Science, description: d, organization: o, coordinators: [Ann, bob], clusters: [a_b], fairShare: 2147483646, priority: 5, defaultQOS: gpu, qos: [gpu, normal], adoption: Adopt, policy: Observe, deletionPolicy: Orphan}"
  accept SlurmAccount "{$ref, coordinators: [], clusters: [], fairShare: parent, priority: default, defaultQOS: gpu}"
  accept SlurmAccount "{$ref, limits: {grpJobs: 4, maxJobs: unlimited, grpWall: 3-00:00:00, maxWallDurationPerJob: '72:00:00', minPrioThreshold: default, grpTRES: {cpu: 64, mem: 100G, gres/gpu: unlimited}}}"
  accept SlurmAccount "{$ref, name: root}"
  refuse SlurmAccount '{}' spec.accountingRef 'Required value'
  refuse SlurmAccount "{$ref, name: 'a b'}" spec.name 'should match'
  refuse SlurmAccount "{$ref, name: _a}" spec.name 'should match'
  refuse SlurmAccount "{$ref, name: ''}" spec.name 'should be at least 1'
  refuse SlurmAccount "{$ref, name: a, parent: A}" spec.parent 'must not be the account itself'
  refuse SlurmAccount "{$ref, parent: TEST}" spec.parent 'must not be the account itself'
  refuse SlurmAccount "{$ref, coordinators: ['a,b']}" 'spec.coordinators[0]' 'should match'
  refuse SlurmAccount "{$ref, clusters: [Site]}" 'spec.clusters[0]' 'should match'
  refuse SlurmAccount "{$ref, fairShare: 2147483647}" spec.fairShare 'should be less than or equal to 2147483646'
  refuse SlurmAccount "{$ref, fairShare: unlimited}" spec.fairShare 'should match'
  refuse SlurmAccount "{$ref, priority: parent}" spec.priority 'should match'
  refuse SlurmAccount "{$ref, qos: []}" spec.qos 'should have at least 1 items'
  refuse SlurmAccount "{$ref, qos: [GPU]}" 'spec.qos[0]' 'should match'
  refuse SlurmAccount "{$ref, qos: [normal], defaultQOS: gpu}" spec.defaultQOS 'must be in qos'
  refuse SlurmAccount "{$ref, limits: {maxJobs: many}}" spec.limits.maxJobs 'should match'
  refuse SlurmAccount "{$ref, limits: {maxTRESPerJob: {cpu: 50%}}}" spec.limits.maxTRESPerJob.cpu 'should match'
  refuse SlurmAccount "{$ref, deletionPolicy: Retain}" spec.deletionPolicy 'Unsupported value'
  manifest SlurmAccount "{$ref}" | kubectl create -f - >/dev/null || fail "create a SlurmAccount" ""
  change slurmaccounts '{"spec":{"parent":"science"}}'
  change slurmaccounts '{"spec":{"parent":"Test"}}' spec.parent 'must not be the account itself'
  change slurmaccounts '{"spec":{"accountingRef":{"name":"b"}}}' spec.accountingRef 'cannot be changed'
  change slurmaccounts '{"spec":{"name":"other"}}' spec.name 'cannot be changed, added or removed'
  columns slurmaccounts 'NAME ACCOUNTING PARENT SYNCED REASON READY AGE'
}

slurmassociations() {
  local ref='accountingRef: {name: a}, account: physics'
  accept SlurmAssociation "{$ref}"
  accept SlurmAssociation "{$ref, user: ann, partition: debug, clusters: [site], fairShare: 3, priority: 4, defaultQOS: gpu, qos: [gpu], limits: {maxJobs: 4}}"
  refuse SlurmAssociation '{accountingRef: {name: a}}' spec.account 'Required value'
  refuse SlurmAssociation "{$ref, partition: debug}" spec.partition 'needs user'
  refuse SlurmAssociation "{$ref, user: 'a b'}" spec.user 'should match'
  manifest SlurmAssociation "{$ref, user: ann}" | kubectl create -f - >/dev/null || fail "create a SlurmAssociation" ""
  change slurmassociations '{"spec":{"limits":{"maxJobs":4}}}'
  change slurmassociations '{"spec":{"account":"b"}}' spec.account 'cannot be changed'
  change slurmassociations '{"spec":{"user":"bob"}}' spec.user 'cannot be changed, added or removed'
  change slurmassociations '{"spec":{"partition":"debug"}}' spec.partition 'cannot be changed, added or removed'
  columns slurmassociations 'NAME ACCOUNTING ACCOUNT USER PARTITION SYNCED REASON READY AGE'
}

slurmusers() {
  local ref='accountingRef: {name: a}' in='associations: [{account: physics}]'
  accept SlurmUser "{$ref, $in}"
  accept SlurmUser "{$ref, $in, name: Ann, adminLevel: Operator, defaultAccount: Physics, adoption: Adopt, policy: Observe, deletionPolicy: Orphan}"
  accept SlurmUser "{$ref, associations: [{account: a, partition: debug, clusters: [site], fairShare: default, priority: 3, defaultQOS: gpu, qos: [gpu], limits: {maxJobs: 4, maxTRESPerNode: {cpu: default}}}, {account: a}]}"
  refuse SlurmUser "{$ref}" spec.associations 'Required value'
  refuse SlurmUser "{$ref, associations: []}" spec.associations 'should have at least 1 items'
  refuse SlurmUser "{$ref, associations: [{}]}" 'spec.associations[0].account' 'Required value'
  refuse SlurmUser "{$ref, associations: [{account: ''}]}" 'spec.associations[0].account' 'should be at least 1'
  refuse SlurmUser "{$ref, associations: [{account: a, partition: 'a,b'}]}" 'spec.associations[0].partition' 'should match'
  refuse SlurmUser "{$ref, associations: [{account: a, qos: [normal], defaultQOS: gpu}]}" 'spec.associations[0].defaultQOS' 'must be in qos'
  refuse SlurmUser "{$ref, $in, adminLevel: operator}" spec.adminLevel 'Unsupported value'
  refuse SlurmUser "{$ref, $in, defaultAccount: 'a b'}" spec.defaultAccount 'should match'
  manifest SlurmUser "{$ref, $in}" | kubectl create -f - >/dev/null || fail "create a SlurmUser" ""
  change slurmusers '{"spec":{"associations":[{"account":"chemistry"}]}}'
  change slurmusers '{"spec":{"accountingRef":{"name":"b"}}}' spec.accountingRef 'cannot be changed'
  change slurmusers '{"spec":{"name":"other"}}' spec.name 'cannot be changed, added or removed'
  columns slurmusers 'NAME ACCOUNTING DEFAULT ACCOUNT SYNCED REASON READY AGE'
}

restapis() {
  accept RestApi '{controllerRef: {name: c}}'
  accept RestApi '{controllerRef: {name: c}, replicas: 0, slurmrestd: {image: i}, template: {spec: {}}, service: {nodePort: 30000}}'
  accept RestApi '{controllerRef: {name: c}, sssdConfRef: {name: s, key: sssd.conf}}'
  refuse RestApi '{controllerRef: {name: c}, sssdConfRef: {key: k}}' spec.sssdConfRef.name 'must not be empty'
  refuse RestApi '{}' spec.controllerRef 'Required value'
  refuse RestApi '{controllerRef: {}}' spec.controllerRef.name 'Required value'
  refuse RestApi '{controllerRef: {name: ""}}' spec.controllerRef.name 'should be at least 1 chars long'
  refuse RestApi '{controllerRef: {name: c}, replicas: -1}' spec.replicas 'should be greater than or equal to 0'
  refuse RestApi '{controllerRef: {name: c}, replicas: two}' spec.replicas 'must be of type integer'
  refuse RestApi '{controllerRef: {name: c}, service: {spec: {selector: x}}}' spec.service.spec.selector 'must be of type object'
  local name50=aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeee
  accept RestApi '{controllerRef: {name: c}}' "${name50}fffff"
  refuse RestApi '{controllerRef: {name: c}}' metadata.name 'must have at most 55 characters of a-z' "${name50}ffffff"
  refuse RestApi '{controllerRef: {name: c}}' metadata.name 'begin with a letter' 7a
  manifest RestApi '{controllerRef: {name: none}, replicas: 0}' | kubectl create -f - >/dev/null || fail "create a RestApi" ""
  change restapis '{"spec":{"replicas":0,"slurmrestd":{"image":"i"}}}'
  change restapis '{"spec":{"controllerRef":{"name":"other"}}}' spec.controllerRef 'cannot be changed'
  columns restapis 'NAME READY AGE'
}

nodesets() {
  local ref='controllerRef: {name: c}' name60=aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffff
  accept NodeSet "{$ref}"
  accept NodeSet "{$ref, replicas: 0, scalingMode: DaemonSet, slurmd: {image: i}, logfile: {}, oversubscribeNode: true}"
  accept NodeSet "{$ref, template: {spec: {hostname: cpu-, priorityClassName: p}}, extraConf: 'Features=a Weight=2'}"
  accept NodeSet "{$ref, partition: {enabled: true, config: 'State=UP Default=YES'}, ssh: {enabled: false, sssdConfRef: {key: k}}}"
  accept NodeSet "{$ref, ssh: {enabled: true, extraSshdConfig: c, sssdConfRef: {name: s, key: k}}}"
  accept NodeSet "{$ref, ssh: {enabled: true}}"
  accept NodeSet "{$ref, ssh: {enabled: true, sssdConfRef: null}}"
  accept NodeSet "{$ref, partition: {enabled: false, config: null}, volumeClaimTemplates: null}"
  accept NodeSet "{$ref, volumeClaimTemplates: [{metadata: {name: a}, spec: {accessModes: [ReadWriteOnce]}}]}"
  accept NodeSet "{$ref, updateStrategy: {type: OnDelete, rollingUpdate: {maxUnavailable: 1}}}"
  accept NodeSet "{$ref, updateStrategy: {rollingUpdate: {maxUnavailable: 100%}, scheduledUpdate: {flags: null}}}"
  accept NodeSet "{$ref, updateStrategy: {type: ScheduledUpdate, scheduledUpdate: {startTime: '2026-01-02T03:04:05Z', duration: 1h30m}}}"
  accept NodeSet "{$ref, persistentVolumeClaimRetentionPolicy: {whenScaled: Delete}, revisionHistoryLimit: 5, minReadySeconds: 3}"
  accept NodeSet "{$ref, ordinalPadding: 10, pinToNode: true, workloadDisruptionProtection: false, pruneSlurmNodeRecords: NodeNotFound}"
  refuse NodeSet '{replicas: 1}' spec.controllerRef 'Required value'
  refuse NodeSet '{controllerRef: {name: ""}}' spec.controllerRef.name 'should be at least 1 chars long'
  refuse NodeSet "{$ref, replicas: -1}" spec.replicas 'should be greater than or equal to 0'
  refuse NodeSet "{$ref, replicas: 3000000000}" spec.replicas 'should be less than or equal to 2147483647'
  refuse NodeSet "{$ref, scalingMode: Deployment}" spec.scalingMode 'supported values: "DaemonSet", "StatefulSet"'
  refuse NodeSet "{$ref, partition: {enabled: true, config: \"a\\nb\"}}" spec.partition.config 'should match'
  refuse NodeSet "{$ref, partition: {enabled: true, config: ''}}" spec.partition.config 'should match'
  refuse NodeSet "{$ref, template: {spec: {hostname: -cpu}}}" spec.template.spec.hostname 'should match'
  refuse NodeSet "{$ref, template: {spec: {hostname: cpu.a}}}" spec.template.spec.hostname 'should match'
  refuse NodeSet "{$ref, template: {spec: {hostname: ${name60}aaa}}}" spec.template.spec.hostname 'may not be more than 62'
  refuse NodeSet "{$ref, template: {metadata: {labels: {a: 1}}}}" spec.template.metadata.labels.a 'must be of type string'
  refuse NodeSet "{$ref, template: {spec: {affinity: x}}}" spec.template.spec.affinity 'must be of type object'
  refuse NodeSet "{$ref, template: {spec: {containers: [{env: [x]}]}}}" 'spec.template.spec.containers[0].env[0]' 'must be of type object'
  accept NodeSet "{$ref, template: {spec: {affinity: null, tolerations: [], volumes: null, containers: null, imagePullSecrets: null}}}"
  refuse NodeSet "{$ref, updateStrategy: {type: Fast}}" spec.updateStrategy.type 'supported values: "RollingUpdate", "OnDelete", "ScheduledUpdate"'
  refuse NodeSet "{$ref, updateStrategy: {rollingUpdate: {maxUnavailable: 0}}}" spec.updateStrategy.rollingUpdate.maxUnavailable 'greater than or equal to 1'
  refuse NodeSet "{$ref, updateStrategy: {rollingUpdate: {maxUnavailable: 0%}}}" spec.updateStrategy.rollingUpdate.maxUnavailable 'should match'
  refuse NodeSet "{$ref, updateStrategy: {rollingUpdate: {maxUnavailable: -5%}}}" spec.updateStrategy.rollingUpdate.maxUnavailable 'should match'
  refuse NodeSet "{$ref, updateStrategy: {rollingUpdate: {maxUnavailable: 101%}}}" spec.updateStrategy.rollingUpdate.maxUnavailable 'should match'
  refuse NodeSet "{$ref, updateStrategy: {type: ScheduledUpdate}}" spec.updateStrategy.scheduledUpdate.startTime 'required when type is ScheduledUpdate'
  refuse NodeSet "{$ref, updateStrategy: {scheduledUpdate: {duration: 59s}}}" spec.updateStrategy.scheduledUpdate.duration 'must be 1m or more'
  refuse NodeSet "{$ref, updateStrategy: {scheduledUpdate: {duration: soon}}}" spec.updateStrategy.scheduledUpdate.duration 'should match'
  refuse NodeSet "{$ref, updateStrategy: {scheduledUpdate: {startTime: noon}}}" spec.updateStrategy.scheduledUpdate.startTime 'date-time'
  refuse NodeSet "{$ref, revisionHistoryLimit: -1}" spec.revisionHistoryLimit 'should be greater than or equal to 0'
  refuse NodeSet "{$ref, minReadySeconds: -1}" spec.minReadySeconds 'should be greater than or equal to 0'
  refuse NodeSet "{$ref, ordinalPadding: 11}" spec.ordinalPadding 'should be less than or equal to 10'
  refuse NodeSet "{$ref, pruneSlurmNodeRecords: Always}" spec.pruneSlurmNodeRecords 'supported values: "Never", "NodeNotFound"'
  refuse NodeSet "{$ref, persistentVolumeClaimRetentionPolicy: {whenDeleted: Keep}}" spec.persistentVolumeClaimRetentionPolicy.whenDeleted 'supported values: "Retain", "Delete"'
  refuse NodeSet "{$ref, ssh: {enabled: true, sssdConfRef: {key: k}}}" spec.ssh.sssdConfRef.name 'must not be empty'

  accept NodeSet "{$ref}" "${name60}a"
  accept NodeSet "{$ref}" 7a
  refuse NodeSet "{$ref}" metadata.name 'must have at most 61 characters of a-z' "${name60}aa"
  refuse NodeSet "{$ref}" metadata.name 'must have at most 61 characters of a-z' a.b
  refuse NodeSet "{$ref}" metadata.name "must not be 'all' or 'default'" all
  refuse NodeSet "{$ref, template: {spec: {hostname: null}}}" metadata.name "must not be 'all' or 'default'" default
  refuse NodeSet "{$ref, template: {spec: {hostname: ''}}}" metadata.name "must not be 'all' or 'default'" default
  refuse NodeSet "{$ref, template: {spec: {hostname: all}}}" spec.template.spec.hostname "must not be 'all' or 'default'"
  refuse NodeSet "{$ref, template: {spec: {hostname: default-}}}" spec.template.spec.hostname "must not be 'all' or 'default'"
  accept NodeSet "{$ref, template: {spec: {hostname: cpu-}}}" default
  accept NodeSet "{$ref, template: {spec: {hostname: all-cpus-}}}" all-cpus

  manifest NodeSet '{controllerRef: {name: none}, replicas: 0, volumeClaimTemplates: [{metadata: {name: a}, spec: {volumeName: x}}]}' |
    kubectl create -f - >/dev/null || fail "create a NodeSet" ""
  change nodesets '{"spec":{"partition":{"enabled":true},"slurmd":{"image":"i"}}}'
  change nodesets '{"spec":{"controllerRef":{"name":"other"}}}' spec.controllerRef 'cannot be changed'
  change nodesets '{"spec":{"volumeClaimTemplates":[{"metadata":{"name":"a"},"spec":{"volumeName":"y"}}]}}' spec.volumeClaimTemplates 'cannot be changed'
  change nodesets '{"spec":{"template":{"spec":{"hostname":"cpu-"}}}}' spec.template.spec.hostname 'cannot be changed, added or removed'
  change nodesets '{"spec":{"template":{"spec":{"hostname":null,"priorityClassName":"p"}}}}'
  columns nodesets 'NAME DESIRED REPLICAS UPDATED READY IDLE ALLOCATED DOWN DRAIN AGE'
  columns nss 'NAME DESIRED REPLICAS UPDATED READY IDLE ALLOCATED DOWN DRAIN AGE'
  manifest NodeSet '{controllerRef: {name: none}, replicas: 0, template: {spec: {hostname: cpu-}}}' named | kubectl create -f - >/dev/null ||
    fail "create a NodeSet with a hostname" ""
  change nodesets '{"spec":{"template":{"spec":{"hostname":"gpu-"}}}}' spec.template.spec.hostname 'cannot be changed, added or removed' named
  change nodesets '{"spec":{"template":null}}' spec.template.spec.hostname 'cannot be changed, added or removed' named
  change nodesets '{"spec":{"minReadySeconds":1}}' '' '' named
  local out
  if out=$(kubectl -n "$namespace" scale nodesets test --replicas=0 2>&1); then pass; else fail "scale" "$out"; fi
}

tokens() {
  local ref='jwtKeyRef: {name: j, key: jwt.key}' name60=aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffff
  accept Token "{$ref, username: alice}"
  accept Token '{jwtHs256KeyRef: {name: j, key: k}, username: alice, lifetime: 1h0m0s, refresh: false, secretRef: {name: s, key: t}}'
  refuse Token '{username: alice}' spec.jwtKeyRef 'required'
  refuse Token "{$ref}" spec.username 'Required value'
  refuse Token "{$ref, username: ''}" spec.username 'should be at least 1 chars long'
  accept Token "{$ref, username: a, lifetime: 10s}"
  refuse Token "{$ref, username: a, lifetime: 9s}" spec.lifetime 'must be 10s or more'
  refuse Token "{$ref, username: a, lifetime: -5m}" spec.lifetime 'should match'
  refuse Token "{$ref, username: a, lifetime: 15}" spec.lifetime 'must be of type string'
  accept Token "{$ref, username: a}" "a.${name60}a"
  refuse Token "{$ref, username: a}" metadata.name 'must have at most 63 characters' "${name60}aaaa"
  refuse Token "{$ref, username: a, secretRef: {key: k}}" spec.secretRef.name 'must not be empty'
  manifest Token '{jwtKeyRef: {name: none, key: k}, username: alice}' | kubectl create -f - >/dev/null || fail "create a Token" ""
  change tokens '{"spec":{"lifetime":"5m"}}'
  change tokens '{"spec":{"jwtKeyRef":{"name":"other"}}}' spec.jwtKeyRef 'cannot be changed'
  columns tokens 'NAME USER IAT AGE'
}

# defaults KIND SPEC JSONPATH EXPECTED: expects this default value from the API server.
defaults() {
  local out
  out=$(manifest "$1" "$2" defaults | kubectl create --dry-run=server -o "jsonpath=$3" -f - 2>&1)
  if [[ $out == "$4" ]]; then pass; else fail "defaults of $1 $3" "expected: $4"$'\n'"have:     $out"; fi
}

all_defaults() {
  local ref='controllerRef: {name: c}'
  defaults Controller '{}' '{.spec}' '{"deletionPolicy":"Immediate","external":false,"inplaceReconfigure":false}'
  defaults Controller '{persistence: {}, metrics: {serviceMonitor: {}}, ha: {}}' '{.spec.persistence.enabled} {.spec.metrics} {.spec.ha}' \
    'true {"enabled":false,"serviceMonitor":{"enabled":false}} {"backups":1,"enabled":false}'
  defaults LoginSet "{$ref}" '{.spec.replicas}' 1
  defaults Accounting '{storageConfig: {host: db, passwordKeyRef: {name: p, key: k}}}' '{.spec.external} {.spec.storageConfig.managed} {.spec.storageConfig.port} {.spec.storageConfig.database}' \
    'false false 3306 slurm_acct_db'
  defaults RestApi "{$ref}" '{.spec.replicas}' 1
  defaults NodeSet "{$ref}" '{.spec.replicas} {.spec.scalingMode} {.spec.workloadDisruptionProtection} {.spec.pruneSlurmNodeRecords} {.spec.pinToNode} {.spec.oversubscribeNode} {.spec.ordinalPadding} {.spec.revisionHistoryLimit}' \
    '1 StatefulSet true Never false false 0 0'
  defaults NodeSet "{$ref, updateStrategy: {rollingUpdate: {}, scheduledUpdate: {}}, persistentVolumeClaimRetentionPolicy: {}}" \
    '{.spec.updateStrategy} {.spec.persistentVolumeClaimRetentionPolicy}' \
    '{"rollingUpdate":{"maxUnavailable":"25%"},"scheduledUpdate":{"duration":"30m"},"type":"RollingUpdate"} {"whenDeleted":"Retain","whenScaled":"Retain"}'
  defaults SlurmQos '{accountingRef: {name: a}}' '{.spec.adoption} {.spec.policy} {.spec.deletionPolicy}' 'Never Enforce Delete'
  defaults SlurmAccount '{accountingRef: {name: a}}' '{.spec}' '{"accountingRef":{"name":"a"},"adoption":"Never","deletionPolicy":"Delete","policy":"Enforce"}'
  defaults SlurmUser '{accountingRef: {name: a}, associations: [{account: a}]}' '{.spec.associations} {.spec.adoption} {.spec.policy} {.spec.deletionPolicy}' \
    '[{"account":"a"}] Never Enforce Delete'
  defaults Token '{jwtKeyRef: {name: j, key: k}, username: u}' '{.spec.refresh}' true
}

kubectl version >/dev/null || exit 1
definitions
kubectl create namespace "$namespace" >/dev/null || exit 1
controllers
accountings
loginsets
restapis
nodesets
slurmqoses
slurmaccounts
slurmusers
slurmassociations
tokens
all_defaults
echo "$passed passed, $failed failed"
[[ $failed -eq 0 ]]

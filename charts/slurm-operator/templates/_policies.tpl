{{- /*
An admission policy of files/admission-policies.yaml, and its binding. Takes a list: the chart's context, the policy's name there, and
its action. Who is meant, by names of users, and where, is of the values.
*/}}
{{- define "slurm-operator.policy" -}}
{{- $top := index . 0 }}
{{- $values := $top.Values.workerProtection }}
{{- $policy := index ($top.Files.Get "files/admission-policies.yaml" | fromYaml) (index . 1) }}
{{- $name := printf "%s-%s" (include "program.fullname" $top) (index . 1) }}
{{- $operator := printf "system:serviceaccount:%s:%s" (include "program.namespace" $top) (include "program.serviceAccountName" (list $top "operator")) }}
{{- $exempt := concat $values.exempt $values.schedulers (list $operator) }}
{{- $deleters := dict
  "cleaners" (list "cleaning-by-kubernetes" (printf "request.userInfo.username in %s" (toJson $values.requesters)))
  "schedulers" (list "who" (printf "request.userInfo.username in %s" (toJson $values.schedulers)))
  "users" (list "who" (printf "!('system:nodes' in request.userInfo.?groups.orValue([])) && !(request.userInfo.username in %s)" (toJson $exempt))) }}
{{- $who := index $deleters $policy.deleters }}
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: {{ $name }}
  labels:
    {{- include "program.labels" $top | nindent 4 }}
spec:
  failurePolicy: {{ ternary "Ignore" "Fail" $policy.failsOpen }}
  {{- with $policy.paramKind }}
  paramKind:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  matchConstraints:
    {{- with $policy.objectSelector }}
    objectSelector:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    resourceRules:
      - operations: [DELETE]
        scope: Namespaced
        {{- toYaml $policy.rule | nindent 8 }}
  matchConditions:
    - name: {{ first $who }}
      expression: >-
        {{ last $who }}
    {{- with $policy.conditions }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with $policy.variables }}
  variables:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  validations:
    - expression: {{ $policy.allowed | quote }}
      reason: Forbidden
      messageExpression: {{ $policy.message | quote }}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: {{ $name }}
  labels:
    {{- include "program.labels" $top | nindent 4 }}
spec:
  policyName: {{ $name }}
  validationActions: [{{ index . 2 }}]
  {{- if $policy.paramKind }}
  paramRef:
    # Those of the object's namespace.
    selector: {}
    parameterNotFoundAction: Allow
  {{- end }}
  {{- with include "slurm-operator.namespaces" $top }}
  # Elsewhere nobody would release a worker.
  matchResources:
    namespaceSelector:
      matchExpressions:
        - key: kubernetes.io/metadata.name
          operator: In
          values: {{ splitList "," . | toJson }}
  {{- end }}
{{- end }}

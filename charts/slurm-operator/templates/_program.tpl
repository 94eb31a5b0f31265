{{- /*
What the charts of our programs share. The chart slurm-bridge has a link to this file. Where a template takes a list, it is the chart's
context and the name of the value with the settings of the program: operator, for example.
*/}}

{{- define "program.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "program.fullname" -}}
{{- $name := include "program.name" . }}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else if contains $name .Release.Name }}
{{- .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "program.namespace" -}}
{{- default .Release.Namespace .Values.namespaceOverride }}
{{- end }}

{{- /* The name is fixed: dashboards and network policies select the program's pods by it. */}}
{{- define "program.selectorLabels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- define "program.labels" -}}
{{ include "program.selectorLabels" . }}
app.kubernetes.io/part-of: slurm-operator
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- /* Name, namespace and labels of an object of the program. Takes the chart's context. */}}
{{- define "program.metadata" -}}
name: {{ include "program.fullname" . | quote }}
namespace: {{ include "program.namespace" . | quote }}
labels:
  {{- include "program.labels" . | nindent 2 }}
{{- end }}

{{- define "program.serviceAccountName" -}}
{{- $top := first . }}
{{- $account := (index $top.Values (last .)).serviceAccount }}
{{- if $account.create }}
{{- default (include "program.fullname" $top) $account.name }}
{{- else }}
{{- default "default" $account.name }}
{{- end }}
{{- end }}

{{- /* What it does not say is no default in values.yaml: Helm would warn of one that is a reference, that it cannot overwrite a map. */}}
{{- define "program.image" -}}
{{- $top := first . }}
{{- $image := deepCopy ((index $top.Values (last .)).image | default dict) }}
{{- if kindIs "map" $image }}
{{- range $key, $value := dict "repository" (printf "local/%s" $top.Chart.Name) "tag" "dev" }}
{{- if not (hasKey $image $key) }}{{ $_ := set $image $key $value }}{{ end }}
{{- end }}
{{- end }}
{{- if kindIs "string" $image }}
{{- $image }}
{{- else if $image.digest }}
{{- printf "%s@%s" $image.repository $image.digest }}
{{- else }}
{{- $tag := default $top.Chart.AppVersion $image.tag }}
{{- if kindIs "float64" $tag }}
{{- fail (printf "%s.image.tag: %v is a number, and may have been written in another way: quote it" (last .) $tag) }}
{{- end }}
{{- printf "%s:%s" $image.repository (toString $tag) }}
{{- end }}
{{- end }}

{{- /*
Refuses an image that values files of Slinky's charts name. A list: the context, the program's value, the name of that image, and the program
that it is of.
*/}}
{{- define "program.checkImage" -}}
{{- $image := (index (first .).Values (index . 1)).image | default dict }}
{{- $path := printf "%s.image%s" (index . 1) (ternary "" ".repository" (kindIs "string" $image)) }}
{{- $image = ternary $image (get (ternary dict $image (kindIs "string" $image)) "repository") (kindIs "string" $image) }}
{{- if regexMatch (printf "(^|/)slinkyproject/%s([:@]|$)" (index . 2)) (toString $image) }}
{{- fail (printf "%s: %s, must be the image that you built: it is that of %s" $path $image (last .)) }}
{{- end }}
{{- end }}

{{- /* A port of values, checked: 0 to 65535. A list: its name and its value. */}}
{{- define "program.port" -}}
{{- $name := index . 0 }}
{{- $value := index . 1 | default 0 }}
{{- $value = kindIs "string" $value | ternary $value (toJson $value) }}
{{- if not (regexMatch "^(0|[1-9][0-9]{0,4})$" $value) }}
{{- fail (printf "%s: %s, must be from 0 to 65535" $name $value) }}
{{- end }}
{{- if gt (atoi $value) 65535 }}
{{- fail (printf "%s: %s, must be from 0 to 65535" $name $value) }}
{{- end }}
{{- $value }}
{{- end }}

{{- /* The port of metrics, or 0. */}}
{{- define "program.metricsPort" -}}
{{- include "program.port" (list (printf "%s.metricsPort" (last .)) (index (first .).Values (last .)).metricsPort) }}
{{- end }}

{{- define "program.serviceAccount" -}}
{{- $top := first . }}
{{- with (index $top.Values (last .)).serviceAccount }}
{{- if .create }}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ include "program.serviceAccountName" $ | quote }}
  namespace: {{ include "program.namespace" $top | quote }}
  labels:
    {{- include "program.labels" $top | nindent 4 }}
  {{- with .annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- /* A subject of a binding: the program. */}}
{{- define "program.subject" -}}
kind: ServiceAccount
name: {{ include "program.serviceAccountName" . | quote }}
namespace: {{ include "program.namespace" (first .) | quote }}
{{- end }}

{{- /* The right to the Lease, in the program's own namespace. */}}
{{- define "program.leaseRole" -}}
{{- $top := first . }}
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  {{- include "program.metadata" $top | nindent 2 }}
rules:
  - apiGroups: [coordination.k8s.io]
    resources: [leases]
    resourceNames: [{{ include "program.fullname" $top | quote }}]
    verbs: [get, update]
  # A rule cannot name what is to be created.
  - apiGroups: [coordination.k8s.io]
    resources: [leases]
    verbs: [create]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  {{- include "program.metadata" $top | nindent 2 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: {{ include "program.fullname" $top | quote }}
subjects:
  - {{- include "program.subject" . | nindent 4 }}
{{- end }}

{{- /* The Lease is renewed beside elections of the cluster's own, not behind other requests of service accounts, the program's included. */}}
{{- define "program.flowSchema" -}}
{{- $top := first . }}
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata:
  name: {{ include "program.fullname" $top | quote }}
  labels:
    {{- include "program.labels" $top | nindent 4 }}
spec:
  priorityLevelConfiguration:
    name: leader-election
  # Before service-accounts (9000), after workload-leader-election (200).
  matchingPrecedence: 250
  distinguisherMethod:
    type: ByUser
  rules:
    - subjects:
        - kind: ServiceAccount
          serviceAccount:
            name: {{ include "program.serviceAccountName" . | quote }}
            namespace: {{ include "program.namespace" $top | quote }}
      resourceRules:
        - apiGroups: [coordination.k8s.io]
          resources: [leases]
          namespaces: [{{ include "program.namespace" $top | quote }}]
          verbs: [get, create, update]
{{- end }}

{{- /* Those of values, and that of the taint of slurm-bridge, which may manage all nodes. */}}
{{- define "program.tolerations" -}}
tolerations:
  {{- with . }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
  - key: slinky.slurm.net/managed-node
    operator: Exists
{{- end }}

{{- /*
The spec of a pod of the program. Takes a dict: root, path (the name of the program's value), leaderElection, pullPolicy, priorityClassName,
args (those between the common ones), ports (further ports of the container, by name), and preStop: for how many seconds a pod that ends
still answers.
*/}}
{{- define "program.podSpec" -}}
{{- $top := .root }}
{{- $program := list .root .path }}
{{- $values := index .root.Values .path }}
{{- $health := include "program.port" (list (printf "%s.healthPort" .path) $values.healthPort) }}
{{- $metrics := include "program.metricsPort" $program }}
{{- if eq $health "0" }}
{{- fail (printf "%s.healthPort: 0, must be from 1 to 65535: the probes need it" .path) }}
{{- end }}
serviceAccountName: {{ include "program.serviceAccountName" $program | quote }}
{{- with $top.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- with $values.podSecurityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
terminationGracePeriodSeconds: 30
containers:
  - name: {{ $top.Chart.Name }}
    image: {{ include "program.image" $program }}
    imagePullPolicy: {{ .pullPolicy }}
    args:
      - --leader-elect={{ .leaderElection }}
      - --leader-elect-namespace={{ include "program.namespace" $top }}
      {{- with include "program.fullname" $top }}
      {{- if ne . $top.Chart.Name }}
      - --leader-elect-name={{ . }}
      {{- end }}
      {{- end }}
      - --health-addr=:{{ $health }}
      - --metrics-addr={{ if eq $metrics "0" }}0{{ else }}:{{ $metrics }}{{ end }}
      {{- if $values.metricsTokenSecret }}
      - --metrics-token-file=/run/metrics-token/token
      {{- end }}
      {{- with .args }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
      - --log-level={{ $values.logLevel }}
      {{- with $values.extraArgs }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
    env:
      - name: POD_NAME
        valueFrom:
          fieldRef:
            fieldPath: metadata.name
      - name: POD_NAMESPACE
        valueFrom:
          fieldRef:
            fieldPath: metadata.namespace
    ports:
      - name: health
        containerPort: {{ $health }}
      {{- if ne $metrics "0" }}
      - name: metrics
        containerPort: {{ $metrics }}
      {{- end }}
      {{- range $name, $port := .ports }}
      - name: {{ $name }}
        containerPort: {{ $port }}
      {{- end }}
    {{- with .preStop }}
    lifecycle:
      preStop:
        sleep:
          seconds: {{ . }}
    {{- end }}
    livenessProbe:
      httpGet:
        path: /healthz
        port: health
      initialDelaySeconds: 10
      periodSeconds: 10
      failureThreshold: 3
    readinessProbe:
      httpGet:
        path: /readyz
        port: health
      periodSeconds: 2
    {{- with $values.resources }}
    resources:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    {{- with $values.securityContext }}
    securityContext:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    {{- if $values.metricsTokenSecret }}
    volumeMounts:
      - name: metrics-token
        mountPath: /run/metrics-token
        readOnly: true
    {{- end }}
{{- with $values.metricsTokenSecret }}
volumes:
  - name: metrics-token
    secret:
      secretName: {{ . | quote }}
{{- end }}
{{- with $values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{ include "program.tolerations" $values.tolerations }}
{{- with $values.topologySpreadConstraints }}
topologySpreadConstraints:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- /* The Deployment. Takes what the template above takes. */}}
{{- define "program.deployment" -}}
{{- $top := .root }}
{{- $values := index .root.Values .path }}
apiVersion: apps/v1
kind: Deployment
metadata:
  {{- include "program.metadata" $top | nindent 2 }}
spec:
  replicas: {{ toJson $values.replicas }}
  revisionHistoryLimit: 3
  {{- if not .leaderElection }}
  # Without an election, two must not run at the same time.
  strategy:
    type: Recreate
  {{- end }}
  selector:
    matchLabels:
      {{- include "program.selectorLabels" $top | nindent 6 }}
  template:
    metadata:
      labels:
        {{- with $values.podLabels }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
        {{- include "program.selectorLabels" $top | nindent 8 }}
      {{- with $values.podAnnotations }}
      annotations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
    spec:
      {{- include "program.podSpec" . | nindent 6 }}
{{- end }}

{{- /* If maxUnavailable is set, it counts. */}}
{{- define "program.budget" -}}
{{- $pdb := (index (first .).Values (last .)).pdb }}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  {{- include "program.metadata" (first .) | nindent 2 }}
spec:
  {{- if kindIs "invalid" $pdb.maxUnavailable }}
  minAvailable: {{ toJson $pdb.minAvailable }}
  {{- else }}
  maxUnavailable: {{ toJson $pdb.maxUnavailable }}
  {{- end }}
  selector:
    matchLabels:
      {{- include "program.selectorLabels" (first .) | nindent 6 }}
{{- end }}

{{- /* The Service. A list: the context, the program's value, and further ports of the container: a list of {name, port}. */}}
{{- define "program.service" -}}
{{- $top := first . }}
{{- $metrics := include "program.metricsPort" (list $top (index . 1)) }}
{{- $ports := ternary (list (dict "name" "metrics" "port" $metrics)) list (ne $metrics "0") }}
{{- with concat $ports (last .) }}
{{- if not (regexMatch "^[a-z]" (include "program.fullname" $top)) }}
{{- fail (printf "the name of the Service, %s, must begin with a letter: set fullnameOverride" (include "program.fullname" $top)) }}
{{- end }}
apiVersion: v1
kind: Service
metadata:
  {{- include "program.metadata" $top | nindent 2 }}
spec:
  type: ClusterIP
  selector:
    {{- include "program.selectorLabels" $top | nindent 4 }}
  ports:
    {{- range . }}
    - name: {{ .name }}
      port: {{ .port }}
      targetPort: {{ .name }}
      protocol: TCP
    {{- end }}
{{- end }}
{{- end }}

{{- define "program.serviceMonitor" -}}
{{- $top := first . }}
{{- $path := last . }}
{{- $values := index $top.Values $path }}
{{- with $values.serviceMonitor }}
{{- if .enabled }}
{{- if eq (include "program.metricsPort" $) "0" }}
{{- fail (printf "%s.serviceMonitor.enabled: there are no metrics, because %s.metricsPort is 0" $path $path) }}
{{- end }}
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata:
  name: {{ include "program.fullname" $top | quote }}
  namespace: {{ include "program.namespace" $top | quote }}
  labels:
    {{- include "program.labels" $top | nindent 4 }}
    {{- with .labels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with .annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  selector:
    matchLabels:
      {{- include "program.selectorLabels" $top | nindent 6 }}
  namespaceSelector:
    matchNames:
      - {{ include "program.namespace" $top | quote }}
  endpoints:
    - port: metrics
      path: /metrics
      {{- with .interval }}
      interval: {{ . | quote }}
      {{- end }}
      {{- with .scrapeTimeout }}
      scrapeTimeout: {{ . | quote }}
      {{- end }}
      {{- with $values.metricsTokenSecret }}
      authorization:
        type: Bearer
        credentials:
          name: {{ . | quote }}
          key: token
      {{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- /*
Nobody else opens connections to the program. Probes come from the pod's own node, which no policy keeps out. Takes a list: the context, the
program's value, and names of ports that all may reach.
*/}}
{{- define "program.networkPolicy" -}}
{{- $top := first . }}
{{- $metrics := include "program.metricsPort" (list $top (index . 1)) }}
{{- $from := $top.Values.networkPolicy.metricsFrom }}
{{- $readers := and (ne $metrics "0") $from }}
{{- $open := last . }}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  {{- include "program.metadata" $top | nindent 2 }}
spec:
  podSelector:
    matchLabels:
      {{- include "program.selectorLabels" $top | nindent 6 }}
  policyTypes: [Ingress]
  {{- if or $readers $open }}
  ingress:
    {{- if $readers }}
    - from:
        {{- toYaml $from | nindent 8 }}
      ports:
        - port: metrics
          protocol: TCP
    {{- end }}
    {{- range $open }}
    - ports:
        - port: {{ . }}
          protocol: TCP
    {{- end }}
  {{- else }}
  ingress: []
  {{- end }}
{{- end }}

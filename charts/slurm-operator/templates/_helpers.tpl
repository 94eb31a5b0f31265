{{- define "slurm-operator.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "slurm-operator.fullname" -}}
{{- $name := include "slurm-operator.name" . }}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else if contains $name .Release.Name }}
{{- .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "slurm-operator.namespace" -}}
{{- default .Release.Namespace .Values.namespaceOverride }}
{{- end }}

{{- /* The name is fixed: dashboards and network policies select the operator's pods by it. */}}
{{- define "slurm-operator.selectorLabels" -}}
app.kubernetes.io/name: slurm-operator
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- define "slurm-operator.labels" -}}
{{ include "slurm-operator.selectorLabels" . }}
app.kubernetes.io/part-of: slurm-operator
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "slurm-operator.serviceAccountName" -}}
{{- if .Values.operator.serviceAccount.create }}
{{- default (include "slurm-operator.fullname" .) .Values.operator.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.operator.serviceAccount.name }}
{{- end }}
{{- end }}

{{- /* What it does not say is no default in values.yaml: Helm would warn of one that is a reference, that it cannot overwrite a map. */}}
{{- define "slurm-operator.image" -}}
{{- $image := deepCopy (.Values.operator.image | default dict) }}
{{- if kindIs "map" $image }}
{{- range $key, $value := dict "repository" "local/slurm-operator" "tag" "dev" }}
{{- if not (hasKey $image $key) }}{{ $_ := set $image $key $value }}{{ end }}
{{- end }}
{{- end }}
{{- if kindIs "string" $image }}
{{- $image }}
{{- else if $image.digest }}
{{- printf "%s@%s" $image.repository $image.digest }}
{{- else }}
{{- $tag := default .Chart.AppVersion $image.tag }}
{{- if kindIs "float64" $tag }}
{{- fail (printf "operator.image.tag: %v is a number, and may have been written in another way: quote it" $tag) }}
{{- end }}
{{- printf "%s:%s" $image.repository (toString $tag) }}
{{- end }}
{{- end }}

{{- /* A port of values, checked: 0 to 65535. */}}
{{- define "slurm-operator.port" -}}
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

{{- /* The namespaces of values, a list or a string, separated by commas. */}}
{{- define "slurm-operator.namespaces" -}}
{{- $namespaces := .Values.operator.namespaces | default list }}
{{- if kindIs "string" $namespaces }}
{{- $namespaces = splitList "," ($namespaces | nospace) }}
{{- end }}
{{- join "," (compact $namespaces) }}
{{- end }}

{{- /* What it may do: in all namespaces, or in the one that it acts in. */}}
{{- define "slurm-operator.role" -}}
{{- ternary "ClusterRole" "Role" .Values.operator.clusterRole }}
{{- end }}

{{- /* A name of its own: the Role for the Lease may stand in the same namespace. */}}
{{- define "slurm-operator.roleName" -}}
{{- include "slurm-operator.fullname" . }}{{ ternary "" "-clusters" .Values.operator.clusterRole }}
{{- end }}

{{- /* Name, and namespace where it has one, of the roles above and their bindings. Arguments: root, name. */}}
{{- define "slurm-operator.roleMetadata" -}}
name: {{ .name | quote }}
{{- if not .root.Values.operator.clusterRole }}
namespace: {{ include "slurm-operator.namespaces" .root | quote }}
{{- end }}
{{- end }}

{{- /* "true" where workers get a PriorityClass: of this release, unless it may not install one, or of another. */}}
{{- define "slurm-operator.usesPriorityClass" -}}
{{- if and .Values.workerPriorityClass.enabled (or .Values.operator.clusterRole (not .Values.workerPriorityClass.create)) }}true{{ end }}
{{- end }}

{{- define "slurm-operator.workerPriorityClass" -}}
{{- .Values.workerPriorityClass.name | default (printf "%s-workers" (include "slurm-operator.fullname" .)) }}
{{- end }}

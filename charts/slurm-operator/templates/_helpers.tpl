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
{{- include "program.fullname" . }}{{ ternary "" "-clusters" .Values.operator.clusterRole }}
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
{{- .Values.workerPriorityClass.name | default (printf "%s-workers" (include "program.fullname" .)) }}
{{- end }}

{{- /* The Secret with the key that signs tokens: namespace, name and key, as YAML. */}}
{{- define "slurm-bridge.key" -}}
{{- with .Values.sharedConfig }}
{{- if .cluster }}
{{- $controller := splitList "/" .cluster }}
namespace: {{ first $controller | quote }}
name: {{ .clusterKeySecret | default (printf "%s-jwt-key" (last $controller)) | quote }}
{{- else }}
{{- toYaml .slurmKeyRef }}
{{- end }}
{{- end }}
{{- end }}

{{- /* "true" where new pods are sent to the bridge: not while it retires, for no more pods shall wait then. */}}
{{- define "slurm-bridge.servesWebhook" -}}
{{- if and .Values.admission.enabled (not .Values.retire) }}true{{ end }}
{{- end }}

{{- /*
CEL: the webhook has noted on the pod that this bridge manages it, though its namespace is not managed. A list: the context, and the name of
the pod's variable. The value is that of bridge::Settings::cluster.
*/}}
{{- define "slurm-bridge.managedBy" -}}
{{- $cluster := "" }}
{{- with (first .).Values.sharedConfig }}
{{- $cluster = .cluster | default (regexReplaceAll "^http://|/$" .slurmRestApi "") }}
{{- end }}
{{- last . }}.metadata.?annotations.orValue({})[?'slinky.slurm.net/slurm-managed-by'].orValue('') == {{ squote $cluster }}
{{- end }}

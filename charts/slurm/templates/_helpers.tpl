{{- define "slurm.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "slurm.fullname" -}}
{{- $name := include "slurm.name" . }}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 41 | trimSuffix "-" }}
{{- else if contains $name .Release.Name }}
{{- .Release.Name | trunc 41 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 41 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "slurm.namespace" -}}
{{- default .Release.Namespace .Values.namespaceOverride }}
{{- end }}

{{- /* No version of the chart or of Slurm: the operator copies labels to pods, and each new chart would replace every pod. */}}
{{- define "slurm.labels" -}}
app.kubernetes.io/part-of: slurm
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- /* metadata: of an object. Arguments: root, name, metadata (labels, annotations). */}}
{{- define "slurm.metadata" -}}
{{- $metadata := .metadata | default dict -}}
name: {{ .name | quote }}
namespace: {{ include "slurm.namespace" .root | quote }}
labels:
  {{- merge (deepCopy ($metadata.labels | default dict)) (fromYaml (include "slurm.labels" .root)) | toYaml | nindent 2 }}
{{- with $metadata.annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- /* "true" where an object that Kubernetes has is of this release, else nothing. Arguments: root, object. */}}
{{- define "slurm.ours" -}}
{{- $notes := .object.metadata.annotations | default dict }}
{{- if and (eq (get $notes "meta.helm.sh/release-name") .root.Release.Name) (eq (get $notes "meta.helm.sh/release-namespace") .root.Release.Namespace) }}
{{- true }}
{{- end }}
{{- end }}

{{- /* Takes out of a map what says nothing; 0 and false do. */}}
{{- define "slurm.unsetEmpty" -}}
{{- range $key, $value := . }}
{{- if and (not $value) (has (kindOf $value) (list "invalid" "string" "slice" "map")) }}
{{- $_ := unset $ $key }}
{{- end }}
{{- end }}
{{- end }}

{{- /*
A container, with what its image does not say. These are not defaults in values.yaml: Helm would warn of an image that is one reference, that it
cannot overwrite a map. Arguments: container, name.
*/}}
{{- define "slurm.withImage" -}}
{{- $container := deepCopy .container }}
{{- $images := dict
  "slurmctld" (dict "repository" "ghcr.io/slinkyproject/slurmctld" "tag" "26.05-ubuntu26.04")
  "slurmrestd" (dict "repository" "ghcr.io/slinkyproject/slurmrestd" "tag" "26.05-ubuntu26.04")
  "slurmd" (dict "repository" "ghcr.io/slinkyproject/slurmd" "tag" "26.05-ubuntu26.04")
  "login" (dict "repository" "ghcr.io/slinkyproject/login" "tag" "26.05-ubuntu26.04")
  "slurmdbd" (dict "repository" "ghcr.io/slinkyproject/slurmdbd" "tag" "26.05-ubuntu26.04")
  "mariadb" (dict "repository" "docker.io/library/mariadb" "tag" "11.8") }}
{{- if not (kindIs "string" $container.image) }}
{{- $image := $container.image | default dict }}
{{- range $key, $value := get $images .name }}
{{- if not (hasKey $image $key) }}{{ $_ := set $image $key $value }}{{ end }}
{{- end }}
{{- $_ := set $container "image" $image }}
{{- end }}
{{- toYaml $container }}
{{- end }}

{{- /* A container: its image as one reference, and the pull policy. Arguments: root, container, path, and the name of one with a default image. */}}
{{- define "slurm.container" -}}
{{- $container := deepCopy (.container | default dict) }}
{{- if and .name $container }}
{{- $container = fromYaml (include "slurm.withImage" (dict "container" $container "name" .name)) }}
{{- end }}
{{- $image := $container.image }}
{{- if kindIs "map" $image }}
{{- if not $image.repository }}
{{- fail (printf "%s.image.repository: required" .path) }}
{{- end }}
{{- if $image.digest }}
{{- $image = printf "%s@%s" $image.repository $image.digest }}
{{- else if $image.tag }}
{{- $image = printf "%s:%s" $image.repository (include "slurm.tag" (dict "value" $image.tag "path" (printf "%s.image.tag" .path))) }}
{{- else }}
{{- fail (printf "%s.image.tag: required, unless there is a digest" .path) }}
{{- end }}
{{- end }}
{{- if $image }}
{{- $_ := set $container "image" $image }}
{{- $_ := set $container "imagePullPolicy" ($container.imagePullPolicy | default .root.Values.imagePullPolicy) }}
{{- end }}
{{- include "slurm.unsetEmpty" $container }}
{{- toYaml $container }}
{{- end }}

{{- /* template: of a custom resource. Arguments: root, metadata, podSpec. */}}
{{- define "slurm.podTemplate" -}}
{{- $metadata := .metadata | default dict }}
{{- $spec := deepCopy (.podSpec | default dict) }}
{{- with concat ($spec.imagePullSecrets | default list) (.root.Values.imagePullSecrets | default list) }}
{{- $_ := set $spec "imagePullSecrets" . }}
{{- end }}
{{- if .root.Values.priorityClass.enabled }}
{{- $_ := set $spec "priorityClassName" ($spec.priorityClassName | default .root.Values.priorityClass.name) }}
{{- end }}
{{- include "slurm.unsetEmpty" $spec -}}
metadata:
  {{- toYaml (pick $metadata "labels" "annotations") | nindent 2 }}
spec:
  {{- toYaml $spec | nindent 2 }}
{{- end }}

{{- /*
A value as Slurm and Kubernetes are to read it: Helm holds each number as a float, which it would print as 2.063e+06. Booleans become
YES and NO, and lists are separated by commas. YAML makes booleans of words such as on, which in a list are names. Arguments: value, path.
*/}}
{{- define "slurm.text" -}}
{{- $path := .path }}
{{- if kindIs "slice" .value }}
{{- $items := list }}
{{- range .value }}
{{- if kindIs "bool" . }}
{{- fail (printf "%s: %v in a list, which may have been written as another word, such as on: quote it" $path .) }}
{{- end }}
{{- $items = append $items (include "slurm.text" (dict "value" . "path" $path)) }}
{{- end }}
{{- join "," (compact $items) }}
{{- else if kindIs "bool" .value }}
{{- ternary "YES" "NO" .value }}
{{- else if kindIs "float64" .value }}
{{- eq .value (floor .value) | ternary (printf "%.0f" .value) (toString .value) }}
{{- else if not (kindIs "invalid" .value) }}
{{- toString .value }}
{{- end }}
{{- end }}

{{- /*
The tag of an image. A number may not be what was written: 26.10 is the same one as 26.1, and 26.0 as 26. Arguments: value, path.
*/}}
{{- define "slurm.tag" -}}
{{- if kindIs "float64" .value }}
{{- if or (lt .value 1000.0) (ne .value (floor .value)) }}
{{- fail (printf "%s: %v is a number, and may have been written in another way: quote it" .path .value) }}
{{- end }}
{{- end }}
{{- include "slurm.text" . }}
{{- end }}

{{- /* Key=Value pairs of a map, without those whose value is empty. Arguments: map, separator, path. */}}
{{- define "slurm.pairs" -}}
{{- $pairs := list }}
{{- $path := .path }}
{{- range $key, $value := .map }}
{{- with include "slurm.text" (dict "value" $value "path" (printf "%s.%s" $path $key)) }}
{{- $pairs = append $pairs (printf "%s=%s" $key .) }}
{{- end }}
{{- end }}
{{- join .separator $pairs }}
{{- end }}

{{- /* nodesetDefaults or loginsetDefaults, with the image of their container. Arguments: values, name. */}}
{{- define "slurm.setDefaults" -}}
{{- $values := deepCopy (.values | default dict) }}
{{- with get $values .name }}
{{- $_ := set $values $.name (fromYaml (include "slurm.withImage" (dict "container" . "name" $.name))) }}
{{- end }}
{{- toYaml $values }}
{{- end }}

{{- /* The enabled nodesets with their defaults, as a map. */}}
{{- define "slurm.nodesets" -}}
{{- $all := dict }}
{{- $defaults := include "slurm.setDefaults" (dict "values" .Values.nodesetDefaults "name" "slurmd") | fromYaml }}
{{- range $name, $nodeset := .Values.nodesets }}
{{- $nodeset = mergeOverwrite (deepCopy $defaults) (deepCopy ($nodeset | default dict)) }}
{{- if $nodeset.enabled }}
{{- $_ := set $all $name $nodeset }}
{{- end }}
{{- end }}
{{- toYaml $all }}
{{- end }}

{{- /* The enabled loginsets with their defaults, as a map. */}}
{{- define "slurm.loginsets" -}}
{{- $all := dict }}
{{- $defaults := include "slurm.setDefaults" (dict "values" .Values.loginsetDefaults "name" "login") | fromYaml }}
{{- range $name, $loginset := .Values.loginsets }}
{{- $loginset = mergeOverwrite (deepCopy $defaults) (deepCopy ($loginset | default dict)) }}
{{- if $loginset.enabled }}
{{- $_ := set $all $name $loginset }}
{{- end }}
{{- end }}
{{- toYaml $all }}
{{- end }}

{{- /* The lines that values add to slurm.conf: extraConf, and the partitions. */}}
{{- define "slurm.extraConf" -}}
{{- $lines := list }}
{{- if .Values.controller.extraConf }}
{{- $lines = append $lines (trimSuffix "\n" .Values.controller.extraConf) }}
{{- else if .Values.controller.extraConfMap }}
{{- $lines = append $lines (include "slurm.pairs" (dict "map" .Values.controller.extraConfMap "separator" "\n" "path" "controller.extraConfMap")) }}
{{- end }}
{{- $nodesets := keys (fromYaml (include "slurm.nodesets" .)) }}
{{- range $name, $partition := .Values.partitions }}
{{- if $partition.enabled }}
{{- $members := $partition.nodesets | default list | uniq | sortAlpha }}
{{- if not $members }}
{{- fail (printf "partitions.%s.nodesets: must name a nodeset, or ALL" $name) }}
{{- end }}
{{- range $members }}
{{- if and (ne . "ALL") (not (has . $nodesets)) }}
{{- fail (printf "partitions.%s.nodesets: %s, must be one of: %s" $name . (join ", " (concat (list "ALL") (sortAlpha $nodesets)))) }}
{{- end }}
{{- end }}
{{- $options := $partition.config | default (include "slurm.pairs" (dict "map" $partition.configMap "separator" " " "path" (printf "partitions.%s.configMap" $name))) }}
{{- $lines = append $lines (printf "PartitionName=%s Nodes=%s %s" $name (join "," $members) $options | trim) }}
{{- end }}
{{- end }}
{{- join "\n" $lines }}
{{- end }}

{{- /*
The Secret of a key: the one that the values name, else the one that releases of the chart of slurm-operator 1.x made. Arguments: root,
part (slurm or jwt).
*/}}
{{- define "slurm.keySecret" -}}
{{- $ref := (get .root.Values (printf "%sKey" .part)).secretRef | default dict }}
{{- $ref.name | default (printf "%s-auth-%s" (include "slurm.fullname" .root) .part) }}
{{- end }}

{{- /* The reference of a key, or nothing where the operator generates it. Arguments: those of slurm.keySecret. */}}
{{- define "slurm.keyRef" -}}
{{- $path := printf "%sKey" .part }}
{{- $values := get .root.Values $path }}
{{- $ref := $values.secretRef | default dict }}
{{- $name := include "slurm.keySecret" . }}
{{- if or $ref.name (lookup "v1" "Secret" (include "slurm.namespace" .root) $name) }}
name: {{ $name | quote }}
key: {{ $ref.key | default (printf "%s.key" .part) | quote }}
{{- else if not $values.create }}
{{- fail (printf "%s.secretRef.name: required, unless %s.create is true" $path $path) }}
{{- end }}
{{- end }}

{{- /* The reference of the JWKS file, or nothing. */}}
{{- define "slurm.jwksKeyRef" -}}
{{- if .Values.jwksKeys.enabled }}
{{- $ref := .Values.jwksKeys.configMapRef | default dict }}
name: {{ $ref.name | default (printf "%s-auth-jwks" (include "slurm.fullname" .)) | quote }}
key: {{ $ref.key | default "jwks.json" | quote }}
{{- end }}
{{- end }}

{{- /* Where sssd.conf is, as the field sssdConfRef of a resource; nothing where the users of the image are all there are. */}}
{{- define "slurm.sssdConfRef" -}}
{{- $sssd := .Values.sssd | default dict }}
{{- $ref := $sssd.secretRef | default dict }}
{{- if $ref.name }}
sssdConfRef:
  name: {{ $ref.name | quote }}
  key: {{ $ref.key | default "sssd.conf" | quote }}
{{- else if $sssd.conf }}
sssdConfRef:
  name: {{ include "slurm.fullname" . }}-sssd-conf
  key: sssd.conf
{{- end }}
{{- end }}

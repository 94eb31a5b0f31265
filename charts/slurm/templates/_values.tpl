{{- /*
Refuses numbers that may not be what was written: Helm keeps each as a float64, which holds each integer below 2^53, and each number of 15
digits. A list: the path of a value, and the value. The chart of the operator has a link to this file.
*/}}
{{- define "values.check" -}}
{{- $path := first . }}
{{- $value := last . }}
{{- if kindIs "map" $value }}
{{- range $key, $below := $value }}
{{- include "values.check" (list (printf "%s.%s" $path $key | trimPrefix ".") $below) }}
{{- end }}
{{- else if kindIs "slice" $value }}
{{- range $index, $below := $value }}
{{- include "values.check" (list (printf "%s[%d]" $path $index) $below) }}
{{- end }}
{{- else if has (kindOf $value) (list "float64" "int64") }}
{{- $digits := regexReplaceAll "^-?0*|e.*" (replace "." "" (toJson $value)) "" }}
{{- $number := float64 $value }}
{{- if or (ge $number 9007199254740992.0) (le $number -9007199254740992.0) (and (ne (floor $number) $number) (gt (len $digits) 15)) }}
{{- fail (printf "%s: %s has more digits than Helm keeps of a number: quote it" $path (toJson $value)) }}
{{- end }}
{{- end }}
{{- end }}

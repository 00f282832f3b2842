{{/* Names, labels and images. */}}

{{- define "eni-tasks.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "eni-tasks.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "eni-tasks.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- required "serviceAccount.name: say which ServiceAccount to use, or let serviceAccount.create be true" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/* What never changes during a release. Takes root and component. */}}
{{- define "eni-tasks.selector" -}}
app.kubernetes.io/name: {{ default .root.Chart.Name .root.Values.nameOverride }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "eni-tasks.labels" -}}
{{ include "eni-tasks.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version }}
{{- end -}}

{{/* Takes image and defaultTag. */}}
{{- define "eni-tasks.image" -}}
{{- if .image.digest -}}
{{ .image.repository }}@{{ .image.digest }}
{{- else -}}
{{ .image.repository }}:{{ default .defaultTag .image.tag }}
{{- end -}}
{{- end -}}

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

{{- define "eni-tasks.ownLabels" -}}
{{ include "eni-tasks.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version }}
{{- end -}}

{{- define "eni-tasks.labels" -}}
{{- include "eni-tasks.ownLabels" . -}}
{{- with include "eni-tasks.addedLabels" (dict "parts" . "of" (dict "commonLabels" .root.Values.commonLabels)) }}
{{ . }}
{{- end -}}
{{- end -}}

{{/*
Labels that people add to those of the chart, never instead of them: selectors would no longer match. Takes the
parts of "eni-tasks.labels", and the labels by the value that they come from.
*/}}
{{- define "eni-tasks.addedLabels" -}}
{{- $own := include "eni-tasks.ownLabels" .parts | fromYaml -}}
{{- $added := dict -}}
{{- range $value, $labels := .of -}}
{{- range $key, $text := $labels -}}
{{- if hasKey $own $key -}}
{{- fail (printf "%s: the label %s is the chart's own; choose another key" $value $key) -}}
{{- end -}}
{{- $_ := set $added $key $text -}}
{{- end -}}
{{- end -}}
{{- with $added -}}
{{- toYaml . -}}
{{- end -}}
{{- end -}}

{{/* Takes parts with `values`, those of one process: its own labels replace those of all pods. */}}
{{- define "eni-tasks.podLabels" -}}
{{- include "eni-tasks.addedLabels" (dict "parts" . "of" (dict
  "podLabels" (merge (dict) (default (dict) .values.podLabels) .root.Values.podLabels .root.Values.commonLabels))) -}}
{{- end -}}

{{/* Takes image and defaultTag. */}}
{{- define "eni-tasks.image" -}}
{{- $_ := required "image.repository: name where the image of eni-tasks can be pulled; only a published chart knows" .image.repository -}}
{{- if .image.digest -}}
{{ .image.repository }}@{{ .image.digest }}
{{- else -}}
{{ .image.repository }}:{{ default .defaultTag .image.tag }}
{{- end -}}
{{- end -}}

{{- define "eni-tasks.pullSecrets" -}}
{{- with .Values.image.pullSecrets -}}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end -}}
{{- end -}}

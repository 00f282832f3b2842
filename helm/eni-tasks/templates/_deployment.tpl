{{/*
One Deployment of the image. Takes

  root       the top
  component  its name: watcher, worker-ec2, …
  values     its part of the values: resources, perhaps replicas
  args       of eni-tasks
  port       of what it serves; without one it is a process that works: on the node's network, with
             our rights, and with probes on files
  page       port of the status page, if it is to be reached
  health     path to ask whether it is well, with a port
  grace      seconds that it may take to end
  env        more variables, as text
*/}}
{{- define "eni-tasks.deployment" -}}
{{- $given := .root.Values -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "eni-tasks.fullname" .root }}-{{ .component }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "eni-tasks.labels" . | nindent 4 }}
spec:
  {{- if eq (dig "autoscaling" "by" "none" .values) "none" }}
  replicas: {{ ternary .values.replicas 1 (hasKey .values "replicas") }}
  {{- end }}
  # Unless told otherwise old and new ones work side by side, and capacity never falls.
  strategy:
    {{- toYaml (default (dict "rollingUpdate" (dict "maxSurge" 1 "maxUnavailable" 0)) .values.strategy) | nindent 4 }}
  selector:
    matchLabels:
      {{- include "eni-tasks.selector" . | nindent 6 }}
  template:
    metadata:
      labels:
        {{- include "eni-tasks.ownLabels" . | nindent 8 }}
        {{- with include "eni-tasks.podLabels" . }}
        {{- . | nindent 8 }}
        {{- end }}
      annotations:
        checksum/settings: {{ include "eni-tasks.settings" .root | sha256sum }}
        {{- with merge (dict) (default (dict) .values.podAnnotations) $given.podAnnotations }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    spec:
      {{- include "eni-tasks.pod" . | nindent 6 }}
{{- end -}}

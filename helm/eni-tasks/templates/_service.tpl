{{/* The Service of what has a port. Takes root, component, port, page. */}}
{{- define "eni-tasks.service" -}}
apiVersion: v1
kind: Service
metadata:
  name: {{ include "eni-tasks.fullname" .root }}-{{ .component }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "eni-tasks.labels" . | nindent 4 }}
spec:
  selector:
    {{- include "eni-tasks.selector" . | nindent 4 }}
  ports:
    - name: http
      port: {{ .port }}
      targetPort: http
      protocol: TCP
    {{- with .page }}
    - name: page
      port: {{ . }}
      targetPort: page
      protocol: TCP
    {{- end }}
{{- end -}}

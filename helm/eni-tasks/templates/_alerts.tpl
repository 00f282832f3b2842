{{/*
files/alerts.yaml, with what the values change: a number that the file marks with `# limits.NAME`, and of single rules the
time, the severity, or whether they are there at all. With the runbook's address each alert links to its entry.
*/}}
{{- define "eni-tasks.alerts" -}}
{{- $alerts := .Values.monitoring.alerts -}}
{{- $text := .Files.Get "files/alerts.yaml" -}}
{{- range $name, $limit := $alerts.limits -}}
{{- $text = regexReplaceAll (printf "[0-9.]+ # limits\\.%s\\b" $name) $text (toString $limit) -}}
{{- end -}}
{{- $groups := (fromYaml $text).groups -}}
{{- $known := list -}}
groups:
  {{- range $groups }}
  - name: {{ .name }}
    interval: {{ .interval }}
    rules:
      {{- range $rule := .rules }}
      {{- $known = append $known .alert }}
      {{- $change := default (dict) (get $alerts.rules .alert) }}
      {{- if dig "enabled" true $change }}
      {{- range $key := list "for" "expr" }}
      {{- with get $change $key }}{{ $_ := set $rule $key . }}{{ end }}
      {{- end }}
      {{- with $change.severity }}{{ $_ := set $rule.labels "severity" . }}{{ end }}
      {{- with $alerts.runbook }}
      {{- $_ := set $rule.annotations "runbook_url" (printf "%s#%s" . (lower $rule.alert)) }}
      {{- end }}
      - {{- toYaml $rule | nindent 8 }}
      {{- end }}
      {{- end }}
  {{- end }}
{{- range $name, $_ := $alerts.rules }}
{{- if not (has $name $known) }}
{{- fail (printf "monitoring.alerts.rules: there is no alert %s" $name) }}
{{- end }}
{{- end }}
{{- end -}}

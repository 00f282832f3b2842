{{/* Settings and Redis, as variables of the environment. */}}

{{/* The settings, one "NAME: value" a line: lists become a,b and maps k=v,k2=v2. */}}
{{- define "eni-tasks.settings" -}}
{{- $_ := required "settings.cluster: name the cluster; the name is in every Redis key and in the tags of every interface, and must not change later" .Values.settings.cluster -}}
{{- range $name, $value := .Values.settings }}
{{- if kindIs "map" $value }}
{{- $pairs := list }}
{{- range $key, $text := $value }}{{ $pairs = append $pairs (printf "%s=%v" $key $text) }}{{ end }}
ENI_TASKS_{{ upper $name }}: {{ join "," $pairs | quote }}
{{- else if kindIs "slice" $value }}
ENI_TASKS_{{ upper $name }}: {{ join "," $value | quote }}
{{- else }}
ENI_TASKS_{{ upper $name }}: {{ $value | quote }}
{{- end }}
{{- end }}
{{- end -}}

{{/* The status page's port, if other pods may reach it: nothing while it is bound to loopback. */}}
{{- define "eni-tasks.pagePort" -}}
{{- if not (has (default "127.0.0.1" .Values.settings.page_address) (list "127.0.0.1" "::1" "localhost")) -}}
9465
{{- end -}}
{{- end -}}

{{- define "eni-tasks.redisName" -}}
{{ include "eni-tasks.fullname" . }}-redis
{{- end -}}

{{/* "true" if the chart brings Redis. */}}
{{- define "eni-tasks.bundled" -}}
{{- if not .Values.redis.urlSecret.name -}}
{{- if .Values.redis.caSecret.name -}}
{{- fail "redis.caSecret is for a rediss:// server of yours: name its URL in redis.urlSecret" -}}
{{- end -}}
true
{{- end -}}
{{- end -}}

{{- define "eni-tasks.redisPasswordRef" -}}
{{- $secret := .Values.redis.bundled.passwordSecret -}}
name: {{ default (include "eni-tasks.redisName" .) $secret.name }}
key: {{ ternary $secret.key "password" (ne $secret.name "") }}
{{- end -}}

{{- define "eni-tasks.redisEnv" -}}
{{- if include "eni-tasks.bundled" . -}}
- name: REDIS_PASSWORD
  valueFrom:
    secretKeyRef:
      {{- include "eni-tasks.redisPasswordRef" . | nindent 6 }}
- name: ENI_TASKS_REDIS_URL
  value: redis://:$(REDIS_PASSWORD)@{{ include "eni-tasks.redisName" . }}.{{ .Release.Namespace }}.svc:6379/0
{{- else -}}
- name: ENI_TASKS_REDIS_URL
  valueFrom:
    secretKeyRef:
      name: {{ .Values.redis.urlSecret.name }}
      key: {{ .Values.redis.urlSecret.key }}
{{- if .Values.redis.caSecret.name }}
# Read by OpenSSL: every client of Redis trusts it, those of AWS and Kubernetes have CAs of their own.
- name: SSL_CERT_FILE
  value: /etc/eni-tasks/redis-ca/{{ .Values.redis.caSecret.key }}
{{- end }}
{{- end -}}
{{- end -}}

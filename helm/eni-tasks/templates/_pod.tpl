{{/*
The pod of one process, or of one command. Takes the parts of "eni-tasks.deployment", and

  once       "true" for a command that ends: it is not started again, and has no probes

Lists of the process are added to those of all pods, maps are merged with them, and everything else replaces what all
pods have.
*/}}
{{- define "eni-tasks.pod" -}}
{{- $given := .root.Values -}}
{{- $works := not .port -}}
{{- $all := ternary $given (dict) $works -}}
{{- with include "eni-tasks.pullSecrets" .root }}
{{- . }}
{{ end -}}
{{- if .once -}}
restartPolicy: Never
{{ end -}}
{{- if $works -}}
serviceAccountName: {{ include "eni-tasks.serviceAccountName" .root }}
hostNetwork: {{ $given.hostNetwork }}
dnsPolicy: {{ include "eni-tasks.dnsPolicy" .root }}
{{- else -}}
# Shows shared state only: no rights in Kubernetes or AWS.
automountServiceAccountToken: false
{{- end }}
# A Service called eni-tasks-… would become variables that look like settings.
enableServiceLinks: false
{{- with default (get $all "priorityClassName") .values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
terminationGracePeriodSeconds: {{ .grace }}
securityContext:
  {{- include "eni-tasks.podSecurity" 10001 | nindent 2 }}
{{- with merge (dict) (default (dict) .values.nodeSelector) $given.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- $tolerations := concat $given.tolerations (default (list) .values.tolerations) }}
{{- if and $works $given.hostNetwork }}
{{- $tolerations = concat $tolerations (include "eni-tasks.earlyTolerations" . | fromYamlArray) }}
{{- end }}
{{- with $tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with default $given.affinity .values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- if not .once }}
{{- with default $given.topologySpreadConstraints .values.topologySpreadConstraints }}
{{- $these := dict "labelSelector" (dict "matchLabels" (include "eni-tasks.selector" $ | fromYaml)) }}
topologySpreadConstraints:
  {{- range . }}
  - {{ toJson (hasKey . "labelSelector" | ternary . (merge (deepCopy .) $these)) }}
  {{- end }}
{{- end }}
{{- end }}
containers:
  - name: {{ .component }}
    image: {{ include "eni-tasks.image" (dict "image" $given.image "defaultTag" .root.Chart.AppVersion) }}
    imagePullPolicy: {{ $given.image.pullPolicy }}
    command: [eni-tasks]
    args: {{ toJson (concat .args (default (list) .values.extraArgs)) }}
    envFrom:
      - configMapRef:
          name: {{ include "eni-tasks.fullname" .root }}-settings
    env:
      {{- include "eni-tasks.redisEnv" .root | nindent 6 }}
      {{- if $works }}
      {{- include "eni-tasks.worksEnv" .root | nindent 6 }}
      {{- end }}
      {{- if not (or .port .once) }}
      - name: ENI_TASKS_PROBE_DIR
        value: /run/eni-tasks
      {{- end }}
      {{- with .env }}
      {{- . | nindent 6 }}
      {{- end }}
      {{- with concat (default (list) (get $all "extraEnv")) (default (list) .values.extraEnv) }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
    {{- if .port }}
    ports:
      - name: http
        containerPort: {{ .port }}
        protocol: TCP
      {{- with .page }}
      - name: page
        containerPort: {{ . }}
        protocol: TCP
      {{- end }}
    {{- include "eni-tasks.httpProbes" . | nindent 4 }}
    {{- else if not .once }}
    {{- include "eni-tasks.fileProbes" . | nindent 4 }}
    {{- end }}
    resources:
      {{- toYaml .values.resources | nindent 6 }}
    securityContext:
      {{- include "eni-tasks.containerSecurity" . | nindent 6 }}
    volumeMounts:
      - name: tmp
        mountPath: /tmp
      {{- if not (or .port .once) }}
      - name: probes
        mountPath: /run/eni-tasks
      {{- end }}
      {{- if $given.redis.caSecret.name }}
      - name: redis-ca
        mountPath: /etc/eni-tasks/redis-ca
        readOnly: true
      {{- end }}
      {{- with concat (default (list) (get $all "extraVolumeMounts")) (default (list) .values.extraVolumeMounts) }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
volumes:
  - name: tmp
    emptyDir: {sizeLimit: 64Mi}
  {{- if not (or .port .once) }}
  - name: probes
    emptyDir: {medium: Memory, sizeLimit: 1Mi}
  {{- end }}
  {{- if $given.redis.caSecret.name }}
  - name: redis-ca
    secret:
      secretName: {{ $given.redis.caSecret.name }}
  {{- end }}
  {{- with concat (default (list) (get $all "extraVolumes")) (default (list) .values.extraVolumes) }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{/* Nodes aren't ready before Cilium's agent runs, and that waits for us. */}}
{{- define "eni-tasks.earlyTolerations" -}}
- {key: node.cilium.io/agent-not-ready, operator: Exists}
- {key: node.kubernetes.io/not-ready, operator: Exists, effect: NoSchedule}
- {key: node.kubernetes.io/network-unavailable, operator: Exists, effect: NoSchedule}
- {key: node.cloudprovider.kubernetes.io/uninitialized, operator: Exists, effect: NoSchedule}
{{- end -}}

{{/* What only those that work need from the environment. */}}
{{- define "eni-tasks.worksEnv" -}}
# On their node's network all pods of a node have its host name: the names of workers must differ all the same.
- name: ENI_TASKS_POD_NAME
  valueFrom:
    fieldRef: {fieldPath: metadata.name}
{{- if .Values.aws.region }}
- name: AWS_REGION
  value: {{ .Values.aws.region | quote }}
{{- end }}
{{- if .Values.aws.ec2Endpoint }}
- name: AWS_ENDPOINT_URL_EC2
  value: {{ .Values.aws.ec2Endpoint | quote }}
{{- end }}
{{- if .Values.kubernetesApi.host }}
- name: KUBERNETES_SERVICE_HOST
  value: {{ .Values.kubernetesApi.host | quote }}
- name: KUBERNETES_SERVICE_PORT
  value: {{ default "443" .Values.kubernetesApi.port | quote }}
{{- end }}
{{- end -}}

{{/*
The process touches `alive` as long as its loop turns, and keeps `ready` while it serves. A shell looks,
not Python: a probe that imports Celery costs more than the work. Without Redis a process is alive and
not ready: starting it again would not help. How the fleet fares plays no part in it: an upgrade that waits
for its pods succeeds while nodes are in trouble.
*/}}
{{- define "eni-tasks.fileProbes" -}}
startupProbe:
  exec: {command: [test, -e, /run/eni-tasks/alive]}
  periodSeconds: 2
  failureThreshold: 150
livenessProbe:
  exec: {command: [sh, -c, 'test -n "$(find /run/eni-tasks/alive -mmin -1.5)"']}
  periodSeconds: 15
  timeoutSeconds: 5
  failureThreshold: 2
readinessProbe:
  exec: {command: [test, -e, /run/eni-tasks/ready]}
  periodSeconds: 5
  timeoutSeconds: 5
{{- end -}}

{{- define "eni-tasks.httpProbes" -}}
{{- $get := dict "path" .health "port" "http" -}}
startupProbe:
  httpGet: {{ toJson $get }}
  periodSeconds: 2
  failureThreshold: 60
livenessProbe:
  httpGet: {{ toJson $get }}
  periodSeconds: 20
  timeoutSeconds: 10
readinessProbe:
  httpGet: {{ toJson $get }}
  periodSeconds: 10
  timeoutSeconds: 10
{{- end -}}

{{- define "eni-tasks.dnsPolicy" -}}
{{- if .Values.dnsPolicy -}}
{{- .Values.dnsPolicy -}}
{{- else if not .Values.hostNetwork -}}
ClusterFirst
{{- else -}}
{{- /* The cluster's resolver is a pod that may be waiting for our work. */ -}}
{{- ternary "ClusterFirstWithHostNet" "Default" (eq (include "eni-tasks.bundled" .) "true") -}}
{{- end -}}
{{- end -}}

{{/* Takes the user's id. */}}
{{- define "eni-tasks.podSecurity" -}}
runAsNonRoot: true
runAsUser: {{ . }}
runAsGroup: {{ . }}
fsGroup: {{ . }}
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "eni-tasks.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

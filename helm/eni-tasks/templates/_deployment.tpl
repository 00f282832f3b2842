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
{{- $values := .root.Values -}}
{{- $works := not .port -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "eni-tasks.fullname" .root }}-{{ .component }}
  labels:
    {{- include "eni-tasks.labels" . | nindent 4 }}
spec:
  {{- if eq (dig "autoscaling" "by" "none" .values) "none" }}
  replicas: {{ ternary .values.replicas 1 (hasKey .values "replicas") }}
  {{- end }}
  # Old and new ones work side by side; capacity never falls.
  strategy:
    rollingUpdate: {maxSurge: 1, maxUnavailable: 0}
  selector:
    matchLabels:
      {{- include "eni-tasks.selector" . | nindent 6 }}
  template:
    metadata:
      labels:
        {{- include "eni-tasks.labels" . | nindent 8 }}
        {{- with $values.podLabels }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      annotations:
        checksum/settings: {{ include "eni-tasks.settings" .root | sha256sum }}
        {{- with $values.podAnnotations }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    spec:
      {{- with $values.image.pullSecrets }}
      imagePullSecrets:
        {{- range . }}
        - name: {{ . }}
        {{- end }}
      {{- end }}
      {{- if $works }}
      serviceAccountName: {{ include "eni-tasks.serviceAccountName" .root }}
      hostNetwork: {{ $values.hostNetwork }}
      dnsPolicy: {{ include "eni-tasks.dnsPolicy" .root }}
      {{- else }}
      # Shows shared state only: no rights in Kubernetes or AWS.
      automountServiceAccountToken: false
      {{- end }}
      # A Service called eni-tasks-… would become variables that look like settings.
      enableServiceLinks: false
      {{- if $works }}
      priorityClassName: {{ $values.priorityClassName }}
      {{- end }}
      terminationGracePeriodSeconds: {{ .grace }}
      securityContext:
        {{- include "eni-tasks.podSecurity" 10001 | nindent 8 }}
      {{- with $values.nodeSelector }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- $tolerations := $values.tolerations }}
      {{- if and $works $values.hostNetwork }}
      {{- $tolerations = concat $tolerations (include "eni-tasks.earlyTolerations" . | fromYamlArray) }}
      {{- end }}
      {{- with $tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      topologySpreadConstraints:
        {{- range list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
        - maxSkew: 1
          topologyKey: {{ . }}
          whenUnsatisfiable: ScheduleAnyway
          labelSelector:
            matchLabels:
              {{- include "eni-tasks.selector" $ | nindent 14 }}
        {{- end }}
      containers:
        - name: {{ .component }}
          image: {{ include "eni-tasks.image" (dict "image" $values.image "defaultTag" .root.Chart.AppVersion) }}
          imagePullPolicy: {{ $values.image.pullPolicy }}
          command: [eni-tasks]
          args: {{ toJson .args }}
          envFrom:
            - configMapRef:
                name: {{ include "eni-tasks.fullname" .root }}-settings
          env:
            {{- include "eni-tasks.redisEnv" .root | nindent 12 }}
            {{- if $works }}
            {{- include "eni-tasks.worksEnv" .root | nindent 12 }}
            {{- end }}
            {{- with .env }}
            {{- . | nindent 12 }}
            {{- end }}
          {{- if $works }}
          {{- include "eni-tasks.fileProbes" . | nindent 10 }}
          {{- else }}
          ports:
            - name: http
              containerPort: {{ .port }}
              protocol: TCP
            {{- with .page }}
            - name: page
              containerPort: {{ . }}
              protocol: TCP
            {{- end }}
          {{- include "eni-tasks.httpProbes" . | nindent 10 }}
          {{- end }}
          resources:
            {{- toYaml .values.resources | nindent 12 }}
          securityContext:
            {{- include "eni-tasks.containerSecurity" . | nindent 12 }}
          volumeMounts:
            - name: tmp
              mountPath: /tmp
            {{- if $works }}
            - name: probes
              mountPath: /run/eni-tasks
            {{- end }}
            {{- if $values.redis.caSecret.name }}
            - name: redis-ca
              mountPath: /etc/eni-tasks/redis-ca
              readOnly: true
            {{- end }}
      volumes:
        - name: tmp
          emptyDir: {sizeLimit: 64Mi}
        {{- if $works }}
        - name: probes
          emptyDir: {medium: Memory, sizeLimit: 1Mi}
        {{- end }}
        {{- if $values.redis.caSecret.name }}
        - name: redis-ca
          secret:
            secretName: {{ $values.redis.caSecret.name }}
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
- name: ENI_TASKS_PROBE_DIR
  value: /run/eni-tasks
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
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/*
The process touches `alive` as long as its loop turns, and keeps `ready` while it serves. A shell looks,
not Python: a probe that imports Celery costs more than the work. Without Redis a process is alive and
not ready: starting it again would not help.
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

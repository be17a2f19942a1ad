{{- /*
A Deployment of one process, with one container.

  root       the chart
  name       name of the process
  values     its values: replicas, resources, terminationGracePeriodSeconds
  container  additional fields of its container: command, ports, probes
  isTrusted  it accesses clusters: it gets the shared folder, the kubeconfigs and the service account
  hasHeartbeat  it touches /tmp/heartbeat while it works, for its liveness probe
  isOnly     never two pods at the same time, not even during an update
*/ -}}
{{- define "hekla.process" -}}
{{- $name := printf "%s-%s" (include "hekla.name" .root) .name -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ $name }}
  labels:
    {{- include "hekla.labels" .root | nindent 4 }}
    app.kubernetes.io/component: {{ .name }}
spec:
  replicas: {{ .values.replicas | default 1 }}
  revisionHistoryLimit: 3
  strategy:
    {{- if .isOnly }}
    type: Recreate
    {{- else }}
    type: RollingUpdate
    rollingUpdate: {maxSurge: 1, maxUnavailable: 0}
    {{- end }}
  selector:
    matchLabels:
      {{- include "hekla.selector" .root | nindent 6 }}
      app.kubernetes.io/component: {{ .name }}
  template:
    {{- include "hekla.pod" . | nindent 4 }}
{{- end -}}

{{- define "hekla.pod" -}}
metadata:
  labels:
    {{- include "hekla.labels" .root | nindent 4 }}
    app.kubernetes.io/component: {{ .name }}
    {{- with .root.Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    hekla.dev/secret-version: {{ .root.Values.secretVersion | quote }}
    {{- with .root.Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  {{- include "hekla.place" . | trim | nindent 2 }}
  {{- if .isTrusted }}
  serviceAccountName: {{ include "hekla.name" .root }}
  {{- end }}
  automountServiceAccountToken: {{ and .isTrusted .root.Values.jobs.enabled | default false }}
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ .values.terminationGracePeriodSeconds }}
  securityContext:
    {{- toYaml .root.Values.podSecurityContext | nindent 4 }}
  {{- with .root.Values.image.pullSecrets }}
  imagePullSecrets:
    {{- range . }}
    - name: {{ . | quote }}
    {{- end }}
  {{- end }}
  {{- if not .isJob }}
  initContainers:
    - name: wait-for-tables
      command: [sh, -c, until python -m django migrate --check; do sleep 5; done]
      {{- include "hekla.container" . | nindent 6 }}
  {{- end }}
  containers:
    - name: {{ .name }}
      {{- .container | nindent 6 }}
      {{- include "hekla.container" . | nindent 6 }}
  volumes:
    - name: tmp
      emptyDir: {}
    - name: home
      {{- if .isTrusted }}
      persistentVolumeClaim: {claimName: {{ include "hekla.claim" .root | quote }}}
      {{- else }}
      emptyDir: {}
      {{- end }}
    {{- if and .isTrusted .root.Values.kubeconfigsSecret }}
    - name: kubeconfigs
      secret: {secretName: {{ .root.Values.kubeconfigsSecret | quote }}, defaultMode: 0440}
    {{- end }}
{{- end -}}

{{- /* Common fields of all containers, including the init container. */ -}}
{{- define "hekla.container" -}}
image: {{ include "hekla.image" .root }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
env:
  {{- include "hekla.settings" .root | trim | nindent 2 }}
  {{- with .values.lockTimeoutSeconds }}
  - name: PGOPTIONS
    value: -c lock_timeout={{ . }}s
  {{- end }}
  {{- if .hasHeartbeat }}
  - name: HEKLA_HEARTBEAT
    value: /tmp/heartbeat
  {{- end }}
  {{- if and .root.Values.metrics.enabled .isMeasured }}
  - name: HEKLA_METRICS_HOST
    value: 0.0.0.0
  - name: HEKLA_METRICS_PORT
    value: {{ .root.Values.metrics.port | quote }}
  {{- end }}
resources:
  {{- toYaml .values.resources | nindent 2 }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
volumeMounts:
  - {name: tmp, mountPath: /tmp}
  - {name: home, mountPath: /var/lib/hekla}
  {{- if and .isTrusted .root.Values.kubeconfigsSecret }}
  - {name: kubeconfigs, mountPath: /var/lib/hekla/kubeconfigs, readOnly: true}
  {{- end }}
{{- end -}}

{{- define "hekla.place" -}}
{{- with .root.Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "hekla.selector" .root | nindent 8 }}
        app.kubernetes.io/component: {{ .name }}
{{- end -}}

{{- /* The metrics port of a worker. */ -}}
{{- define "hekla.figures" -}}
{{- if .Values.metrics.enabled }}
ports:
  - {name: metrics, containerPort: {{ .Values.metrics.port }}}
{{- end }}
{{- end -}}

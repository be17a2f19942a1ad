{{- /*
Environment variables of every process. They are in the pod templates, so that a change restarts the pods, and so that
the migration hook needs no object that does not exist yet.
*/ -}}
{{- define "hekla.settings" -}}
{{- with .Values.settings -}}
{{- if $.Values.metrics.enabled }}
- name: POD_IP
  valueFrom: {fieldRef: {fieldPath: status.podIP}}
{{- end }}
- name: HEKLA_PUBLIC_URL
  value: {{ $.Values.publicUrl | quote }}
- name: HEKLA_ALLOWED_HOSTS
  value: {{ include "hekla.allowedHosts" $ | quote }}
- name: HEKLA_TRUSTED_PROXIES
  value: {{ .trustedProxies | join "," | quote }}
- name: HEKLA_EXTENDERS
  value: {{ .extenders | join "," | quote }}
- name: HEKLA_HSTS_SECONDS
  value: {{ .hstsSeconds | int64 | quote }}
- name: HEKLA_RESTART_BACKOFF
  value: {{ .restartBackoff | quote }}
- name: HEKLA_KEEP_FAILED_GIB
  value: {{ .keepFailedGib | int64 | quote }}
- name: HEKLA_WORKBENCH_DOMAIN
  value: {{ .workbenchDomain | quote }}
- name: HEKLA_WORKBENCH_HOST
  value: {{ .workbenchHost | quote }}
- name: HEKLA_TIME_ZONE
  value: {{ .timeZone | quote }}
- name: HEKLA_TRIES_A_MINUTE
  value: {{ .triesAMinute | quote }}
- name: HEKLA_SESSION_HOURS
  value: {{ .sessionHours | quote }}
- name: HEKLA_DATABASE_POOL
  value: {{ .databasePool | quote }}
- name: HEKLA_SECOND_FACTOR_FOR
  value: {{ .secondFactorFor | quote }}
- name: HEKLA_WEBHOOKS_MAY_BE_PRIVATE
  value: {{ .webhooksMayBePrivate | quote }}
- name: HEKLA_LOG_FORMAT
  value: {{ .logFormat | quote }}
- name: HEKLA_TRACES_URL
  value: {{ .tracesUrl | quote }}
{{- end }}
{{- range list "HEKLA_SECRET_KEY" "DATABASE_URL" "VALKEY_URL" }}
- name: {{ . }}
  valueFrom: {secretKeyRef: {name: {{ $.Values.existingSecret | quote }}, key: {{ . }}}}
{{- end }}
{{- range list "HEKLA_SECRET_KEY_FALLBACKS" "HEKLA_MAIL_URL" "HEKLA_OIDC" }}
- name: {{ . }}
  valueFrom: {secretKeyRef: {name: {{ $.Values.existingSecret | quote }}, key: {{ . }}, optional: true}}
{{- end }}
{{- if .Values.metrics.enabled }}
- name: HEKLA_METRICS_TOKEN
  valueFrom: {secretKeyRef: {name: {{ .Values.existingSecret | quote }}, key: HEKLA_METRICS_TOKEN}}
{{- end }}
{{- end -}}

{{- /* Prometheus uses the IP address of a pod as the host name. */ -}}
{{- define "hekla.allowedHosts" -}}
{{- $hosts := concat (list (include "hekla.host" .) "localhost") .Values.settings.allowedHosts -}}
{{- if .Values.metrics.enabled }}{{ $hosts = append $hosts "$(POD_IP)" }}{{ end -}}
{{- join "," $hosts -}}
{{- end -}}

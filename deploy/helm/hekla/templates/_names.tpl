{{- define "hekla.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" }}
{{- end -}}
{{- end -}}

{{- /* Name of cluster-scoped objects: two namespaces can have releases of the same name. */ -}}
{{- define "hekla.nameInCluster" -}}
{{ .Release.Namespace }}:{{ include "hekla.name" . }}
{{- end -}}

{{- define "hekla.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "hekla.labels" -}}
{{ include "hekla.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{- define "hekla.host" -}}
{{ (urlParse .Values.publicUrl).hostname }}
{{- end -}}

{{- define "hekla.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "hekla.claim" -}}
{{ .Values.persistence.existingClaim | default (printf "%s-data" (include "hekla.name" .)) }}
{{- end -}}

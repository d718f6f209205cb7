{{/* Labels of every object. */}}
{{- define "headgate.labels" -}}
{{ include "headgate.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "headgate.selector" -}}
app.kubernetes.io/name: headgate
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* The settings of an agent: those of the values and those of its place in the cluster. */}}
{{- define "headgate.settings" -}}
{{ mergeOverwrite (deepCopy .Values.settings) (dict "inCluster" true "leaseNamespace" .Release.Namespace) | toYaml }}
{{- end }}

{{/* The Secret with the credentials of the links between nodes; empty for none. */}}
{{- define "headgate.credentials" -}}
{{- ternary .Values.bgp.credentialsSecret .Values.pair.credentialsSecret (not (empty .Values.bgp.nodes)) -}}
{{- end }}

{{/* The ConfigMap or Secret with further authorities; empty for none. */}}
{{- define "headgate.authorities" -}}
{{- or .Values.authorities.secret .Values.authorities.configMap -}}
{{- end }}

{{- define "headgate.image" -}}
{{ printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) | quote }}
{{- end }}

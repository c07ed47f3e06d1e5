{{- define "datasystem.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "datasystem.image" -}}
{{- $g := .Values.global -}}
{{- if $g.imageRegistry }}{{ trimSuffix "/" $g.imageRegistry }}/{{ end }}{{ $g.images.datasystem }}
{{- end }}

{{- /* Whether any NUMA option is set: its text, as worker_entry.sh reads it. */}}
{{- define "datasystem.numactl" -}}
{{- $numa := .Values.global.performance.numa -}}
{{- $words := list -}}
{{- range list "cpunodebind" "physcpubind" "membind" "preferred" "interleave" -}}
{{- $value := get $numa . -}}
{{- if $value }}{{ $words = append $words (printf "--%s=%s" . $value) }}{{ end -}}
{{- end -}}
{{- if $numa.localalloc }}{{ $words = append $words "--localalloc" }}{{ end -}}
{{- join " " $words -}}
{{- end }}

{{- /* User of the worker. Root only to lock memory for RDMA: a capability is of use to root alone. */}}
{{- define "datasystem.user" -}}
{{- $rdma := .Values.global.performance.rdma -}}
{{- if and .Values.global.performance.enableRdma (or (include "datasystem.privileged" .) $rdma.runAsRoot) }}0{{ else }}1002{{ end -}}
{{- end }}

{{- /* "true", or nothing. */}}
{{- define "datasystem.privileged" -}}
{{- $rdma := .Values.global.performance.rdma -}}
{{- $asked := toString $rdma.privileged -}}
{{- if and .Values.global.performance.enableRdma (or (eq $asked "true") (and (eq $asked "auto") (not $rdma.deviceResource))) }}true{{ end -}}
{{- end }}

{{- /* One class of nodes as YAML: name, nodeSelector, resources, sharedMemory. Arguments: root, entry
of multiSpec, or an empty one. */}}
{{- define "datasystem.spec" -}}
{{- $worker := .root.Values.global.resources.datasystemWorker -}}
{{- $own := .entry.resources | default dict -}}
{{- $label := .entry.affinityLabel | default dict -}}
{{- if kindIs "string" $label }}
{{- $parts := splitn "=" 2 $label }}{{ $label = dict $parts._0 $parts._1 }}
{{- end -}}
{{- $shared := (.entry.workerResources | default dict).sharedMemory | default $worker.sharedMemory -}}
name: {{ ternary (printf "ds-worker-%s" (.entry.name | default "")) "ds-worker" (hasKey .entry "name") }}
class: {{ .entry.name | default "" | quote }}
sharedMemory: {{ int64 $shared }}
nodeSelector: {{ merge (deepCopy $label) (.root.Values.global.affinity.nodeSelector | default dict) | toJson }}
resources:
  limits: {{ merge (deepCopy ($own.limits | default dict)) $worker.limits | toJson }}
  requests: {{ merge (deepCopy ($own.requests | default dict)) $worker.requests | toJson }}
{{- end }}

{{- /* MiB of a quantity such as 4Gi, rounded down. */}}
{{- define "datasystem.mib" -}}
{{- $text := toString . -}}
{{- $number := float64 (regexFind "^[0-9.]+" $text) -}}
{{- $bytes := dict "" 1 "k" 1000 "K" 1000 "M" 1000000 "G" 1000000000 "T" 1000000000000 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 -}}
{{- $unit := regexReplaceAll "^[0-9.]+" $text "" -}}
{{- if not (hasKey $bytes $unit) }}{{ fail (printf "global.resources: %s is no amount of memory; write one such as 4Gi" $text) }}{{ end -}}
{{- floor (divf (mulf $number (get $bytes $unit)) 1048576) | int64 -}}
{{- end }}

{{- /* What the schema cannot say. Argument: the root. */}}
{{- define "datasystem.checks" }}
{{- include "datasystem.refusals" . }}
{{- $g := .Values.global }}
{{- range $i, $mount := $g.mount }}
{{- if and (or $mount.hostPath $mount.mountPath) (not (and $mount.hostPath $mount.mountPath)) }}
{{- fail (printf "global.mount[%d]: hostPath and mountPath belong together; set both, or none" $i) }}
{{- end }}
{{- end }}
{{- $names := dict }}
{{- range $g.multiSpec }}
{{- if hasKey $names .name }}{{ fail (printf "global.multiSpec: there are two entries named %s; give each its own name" .name) }}{{ end }}
{{- $_ := set $names .name true }}
{{- end }}
{{- if and $g.performance.rdma.deviceResource (not $g.performance.enableRdma) }}
{{- fail "global.performance.rdma.deviceResource is set and enableRdma is not; set enableRdma: true, or leave it empty" }}
{{- end }}
{{- if and $g.etcd.enableEtcdAuth (not (and $g.etcd.etcdCa $g.etcd.etcdCert $g.etcd.etcdKey)) }}
{{- fail "global.etcd.enableEtcdAuth needs etcdCa, etcdCert and etcdKey, each a PEM file in base64: base64 -w0 FILE" }}
{{- end }}
{{- end }}

{{- /* One class of nodes: that its objects fit. Arguments: root, spec (see datasystem.spec), where. */}}
{{- define "datasystem.specChecks" }}
{{- $limits := .spec.resources.limits }}
{{- $huge := .root.Values.global.performance.enableHugeTlb }}
{{- $key := ternary "hugepages2Mi" "memory" $huge }}
{{- $limit := include "datasystem.mib" (get $limits $key) | int64 }}
{{- if gt (int64 .spec.sharedMemory) $limit }}
{{- fail (printf "%s: sharedMemory, %d MiB, is above the limit of %s, %s; lower it or raise the limit" .where (int64 .spec.sharedMemory) $key (toString (get $limits $key))) }}
{{- end }}
{{- if $huge }}
{{- if ne (include "datasystem.mib" $limits.hugepages2Mi) (include "datasystem.mib" .spec.resources.requests.hugepages2Mi) }}
{{- fail (printf "%s: request and limit of hugepages2Mi differ, which Kubernetes does not allow; set both to the same" .where) }}
{{- end }}
{{- end }}
{{- end }}

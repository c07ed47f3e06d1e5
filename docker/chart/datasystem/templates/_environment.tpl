{{- /* What worker_entry.sh, the probes and UCX read. Arguments: root, spec. */}}
{{- define "datasystem.env" -}}
{{- $g := .root.Values.global -}}
- name: POD_NAME
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
- name: NAMESPACE
  valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
- name: NODE_ID
  valueFrom: {fieldRef: {fieldPath: spec.nodeName}}
- name: WORKER_IP
  valueFrom: {fieldRef: {fieldPath: status.hostIP}}
- name: BIND_IP
  valueFrom: {fieldRef: {fieldPath: status.podIP}}
- name: WORKER_PORT
  value: "{{ int64 $g.port.datasystemWorker }}"
- name: POD_MEMORY_LIMIT_MB
  valueFrom: {resourceFieldRef: {resource: limits.memory, divisor: 1Mi}}
- name: SHARE_MEMORY_SIZE
  value: "{{ .spec.sharedMemory | int64 }}"
- name: WORKER_LOG_DIR
  value: /home/yuanrong/datasystem/logs/worker
- name: STATUS_FILE_PATH
  value: /home/yuanrong/datasystem/logs/worker-status
- name: HEALTH_CHECK_PATH
  value: /home/yuanrong/datasystem/health/healthy
- name: READY_CHECK_PATH
  value: /home/yuanrong/datasystem/health/ready
- name: LIVENESS_CHECK_PATH
  value: /home/yuanrong/datasystem/health/liveness
- name: SCALE_IN_TAINT
  value: {{ $g.gracefulShutdown.scaleInTaint | quote }}
- name: ENABLE_RDMA
  value: {{ $g.performance.enableRdma | quote }}
{{- if $g.performance.enableRdma }}
- name: UCX_TLS
  value: {{ $g.performance.ucxTransportLayerSelection | quote }}
{{- end }}
{{- if $g.log.enableUcxLog }}
- name: UCX_LOG_LEVEL
  value: {{ $g.log.ucxLogLevel | quote }}
- name: UCX_LOG_FILE
  value: /home/yuanrong/datasystem/logs/worker/ucx.log
{{- end }}
{{- with include "datasystem.numactl" .root }}
- name: NUMACTL_ARGS
  value: {{ . | quote }}
{{- end }}
{{- if $g.etcd.enableEtcdAuth }}
- name: ETCD_CERT_DIR
  value: {{ $g.etcd.etcdCertDir | quote }}
{{- end }}
{{- end }}

{{- /* The worker's container. Arguments: root, spec. */}}
{{- define "datasystem.container" -}}
{{- $g := .root.Values.global -}}
{{- $rdma := $g.performance.rdma -}}
{{- $health := "/home/yuanrong/datasystem/health" -}}
- name: ds-worker
  image: {{ include "datasystem.image" .root | quote }}
  imagePullPolicy: IfNotPresent
  command: ["/home/yuanrong/worker_entry.sh"]
  args:
    {{- include "datasystem.args" . | nindent 4 }}
  env:
    {{- include "datasystem.env" . | nindent 4 }}
  ports:
    - {name: worker, containerPort: {{ int64 $g.port.datasystemWorker }}, protocol: TCP}
  resources:
    {{- include "datasystem.resources" . | nindent 4 }}
  securityContext:
    {{- include "datasystem.containerSecurity" .root | nindent 4 }}
  startupProbe:
    exec:
      command: ["/home/yuanrong/file_check.sh", "startupProbe", "{{ $health }}/liveness"]
    initialDelaySeconds: 5
    periodSeconds: 5
    timeoutSeconds: 5
    failureThreshold: {{ max 12 (div (int64 $g.reliability.nodeDeadTimeoutS) 5) }}
  readinessProbe:
    exec:
      command: ["/home/yuanrong/file_check.sh", "readinessProbe", "{{ $health }}/healthy", "{{ $health }}/ready"]
    initialDelaySeconds: 1
    periodSeconds: 5
    timeoutSeconds: 5
    failureThreshold: 3
  livenessProbe:
    exec:
      command: ["/home/yuanrong/liveness_check.sh", "-f", "{{ $health }}/liveness", "-t", "{{ int64 $g.reliability.livenessProbeTimeoutS }}"]
    initialDelaySeconds: 1
    periodSeconds: 5
    timeoutSeconds: 5
    failureThreshold: 3
    {{- with $g.gracefulShutdown.livenessProbeTerminationGracePeriodSeconds }}
    terminationGracePeriodSeconds: {{ int64 . }}
    {{- end }}
  lifecycle:
    preStop:
      exec:
        command: ["/home/yuanrong/uninstall.sh", "-f", "/home/yuanrong/datasystem/logs/worker-status", "-t", "{{ max 1 (sub (int64 $g.terminationGracePeriodSeconds) 5) }}"]
  volumeMounts:
    {{- include "datasystem.mounts" .root | nindent 4 }}
{{- end }}

{{- define "datasystem.args" -}}
{{- $g := .root.Values.global -}}
- "-log_dir=/home/yuanrong/datasystem/logs/worker"
- "-logfile_mode=416"
- "-monitor_config_file=/home/yuanrong/config/datasystem.config"
- "-shared_memory_size_mb={{ .spec.sharedMemory | int64 }}"
{{- if $g.etcd.enableEtcdAuth }}
- "-enable_etcd_auth=true"
- "-etcd_ca={{ $g.etcd.etcdCertDir }}/ca.crt"
- "-etcd_cert={{ $g.etcd.etcdCertDir }}/client.crt"
- "-etcd_key={{ $g.etcd.etcdCertDir }}/client.key"
{{- if $g.etcd.passphraseValue }}
- "-etcd_passphrase_path={{ $g.etcd.etcdCertDir }}/passphrase"
{{- end }}
{{- with $g.etcd.etcdTargetNameOverride }}
- {{ printf "-etcd_target_name_override=%s" . | quote }}
{{- end }}
{{- end }}
{{- include "datasystem.flagArgs" .root }}
{{- end }}

{{- define "datasystem.containerSecurity" -}}
{{- $performance := .Values.global.performance -}}
{{- $user := include "datasystem.user" . | int -}}
{{- $add := list -}}
{{- /* Pages locked for RDMA, and huge pages, beyond the container runtime's limit. */ -}}
{{- if or $performance.enableRdma $performance.enableHugeTlb }}{{ $add = append $add "IPC_LOCK" }}{{ end -}}
{{- /* A container runtime's seccomp profile allows memory policies with it only. */ -}}
{{- if include "datasystem.numactl" . }}{{ $add = append $add "SYS_NICE" }}{{ end -}}
runAsUser: {{ $user }}
runAsGroup: {{ $user }}
runAsNonRoot: {{ ne $user 0 }}
{{- if include "datasystem.privileged" . }}
privileged: true
{{- else }}
privileged: false
allowPrivilegeEscalation: false
capabilities:
  drop: ["ALL"]
  {{- with $add }}
  add: {{ toJson . }}
  {{- end }}
{{- end }}
{{- end }}

{{- define "datasystem.resources" -}}
{{- $performance := .root.Values.global.performance -}}
{{- range $kind := list "limits" "requests" }}
{{- $amounts := get $.spec.resources $kind }}
{{- if eq $kind "requests" }}{{ "\n" }}{{ end }}
{{- $kind }}:
  cpu: {{ $amounts.cpu | toString | quote }}
  memory: {{ $amounts.memory | toString | quote }}
  {{- if $performance.enableHugeTlb }}
  hugepages-2Mi: {{ $amounts.hugepages2Mi | toString | quote }}
  {{- end }}
  {{- with $performance.rdma.deviceResource }}
  {{ . }}: "1"
  {{- end }}
{{- end }}
{{- end }}

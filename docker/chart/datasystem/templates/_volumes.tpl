{{- /* Volumes of a pod, and below the places where the worker's container has them. */}}
{{- define "datasystem.volumes" -}}
{{- $g := .Values.global -}}
- name: logs
  hostPath: {path: {{ $g.log.logDir | quote }}, type: DirectoryOrCreate}
- name: uds
  hostPath: {path: {{ $g.ipc.udsDir | quote }}, type: DirectoryOrCreate}
- name: health
  emptyDir: {}
- name: config
  configMap: {name: datasystem-configmap}
- name: localtime
  hostPath: {path: /etc/localtime}
{{- if $g.performance.enableRdma }}
- name: infiniband
  hostPath: {path: /dev/infiniband, type: Directory}
- name: infiniband-class
  hostPath: {path: /sys/class/infiniband, type: Directory}
{{- end }}
{{- if $g.performance.enableHugeTlb }}
- name: hugepages
  emptyDir: {medium: HugePages}
{{- end }}
{{- if $g.etcd.enableEtcdAuth }}
- name: etcd-certificates
  secret: {secretName: datasystem-etcd-certificates, defaultMode: 0440}
{{- end }}
{{- range $i, $mount := $g.mount }}
{{- if and $mount.hostPath $mount.mountPath }}
- name: mount-{{ $i }}
  hostPath:
    path: {{ $mount.hostPath | quote }}
    {{- with $mount.type }}
    type: {{ . }}
    {{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "datasystem.mounts" -}}
{{- $g := .Values.global -}}
- {name: logs, mountPath: /home/yuanrong/datasystem/logs}
- {name: uds, mountPath: {{ $g.ipc.udsDir | quote }}}
- {name: health, mountPath: /home/yuanrong/datasystem/health}
- {name: config, mountPath: /home/yuanrong/config, readOnly: true}
- {name: localtime, mountPath: /etc/localtime, readOnly: true}
{{- if $g.performance.enableRdma }}
- {name: infiniband, mountPath: /dev/infiniband}
- {name: infiniband-class, mountPath: /sys/class/infiniband, readOnly: true}
{{- end }}
{{- if $g.performance.enableHugeTlb }}
- {name: hugepages, mountPath: /dev/hugepages}
{{- end }}
{{- if $g.etcd.enableEtcdAuth }}
- {name: etcd-certificates, mountPath: {{ $g.etcd.etcdCertDir | quote }}, readOnly: true}
{{- end }}
{{- range $i, $mount := $g.mount }}
{{- if and $mount.hostPath $mount.mountPath }}
- name: mount-{{ $i }}
  mountPath: {{ $mount.mountPath | quote }}
  {{- if $mount.readOnly }}
  readOnly: true
  {{- end }}
{{- end }}
{{- end }}
{{- end }}

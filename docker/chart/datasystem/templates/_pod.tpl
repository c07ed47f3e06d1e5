{{- /* The pod of a class of nodes. Arguments: root, spec. */}}
{{- define "datasystem.podSpec" -}}
{{- $g := .root.Values.global -}}
{{- $user := include "datasystem.user" .root | int -}}
hostNetwork: true
dnsPolicy: ClusterFirstWithHostNet
serviceAccountName: ds-worker
# The token is for reading the taints of the node.
automountServiceAccountToken: {{ not (empty $g.gracefulShutdown.scaleInTaint) }}
priorityClassName: {{ ternary (printf "ds-worker-%s" $g.namespace) "system-cluster-critical" $g.enableNonPreemptive }}
terminationGracePeriodSeconds: {{ int64 $g.terminationGracePeriodSeconds }}
{{- with .spec.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $g.affinity.nodeAffinity }}
affinity:
  nodeAffinity:
    {{- toYaml . | nindent 4 }}
{{- end }}
{{- with $g.affinity.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  fsGroup: {{ int64 $g.fsGid }}
  seccompProfile:
    type: {{ ternary "Unconfined" "RuntimeDefault" (eq (include "datasystem.privileged" .root) "true") }}
initContainers:
  # A folder of the node that Kubernetes has just made belongs to root.
  - name: own-folders
    image: {{ include "datasystem.image" .root | quote }}
    imagePullPolicy: IfNotPresent
    command: ["/bin/chown", "-hR", "{{ $user }}:{{ $user }}"]
    args: ["/home/yuanrong/datasystem/logs", "/home/yuanrong/datasystem/health", {{ $g.ipc.udsDir | quote }}]
    securityContext:
      runAsUser: 0
      runAsGroup: 0
      allowPrivilegeEscalation: false
      readOnlyRootFilesystem: true
      capabilities:
        drop: ["ALL"]
        add: ["CHOWN", "DAC_OVERRIDE", "FOWNER"]
    resources:
      limits: {cpu: 500m, memory: 64Mi}
      requests: {cpu: 10m, memory: 16Mi}
    volumeMounts:
      - {name: logs, mountPath: /home/yuanrong/datasystem/logs}
      - {name: health, mountPath: /home/yuanrong/datasystem/health}
      - {name: uds, mountPath: {{ $g.ipc.udsDir | quote }}}
containers:
  {{- include "datasystem.container" . | nindent 2 }}
volumes:
  {{- include "datasystem.volumes" .root | nindent 2 }}
{{- end }}

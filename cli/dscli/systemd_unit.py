"""The systemd unit of a worker and the file with its settings.

The worker runs in the foreground, so systemd sees its end, its exit code and its output. The unit
is "started" when the worker's ready file exists, so units ordered after it find it serving.
"""

UNIT_NAME = "datasystem-worker.service"
ENVIRONMENT_NAME = "datasystem-worker.env"

# TimeoutStopSec: as long as dscli stop waits before it kills.
_UNIT = """\
# A datasystem worker. To install:
#   useradd --system --no-create-home {user}      (if that user does not exist)
#   install -D -m 640 {environment} /etc/datasystem/{environment}      (then edit it)
#   install -m 644 {unit} /etc/systemd/system/
#   systemctl daemon-reload && systemctl enable --now {name}
# Its output: journalctl -u {name}; its logs: /var/log/datasystem
[Unit]
Description=datasystem worker: this node's share of the distributed in-memory cache
Documentation=file:/etc/datasystem/{environment}
Wants=network-online.target
After=network-online.target etcd.service
# etcd may come up much later than this machine: never give up.
StartLimitIntervalSec=0

[Service]
Type=exec
User={user}
# The flags of the service itself come first: what {environment} repeats, wins.
EnvironmentFile=/etc/datasystem/{environment}
ExecStartPre=/bin/rm -f /run/datasystem/ready
ExecStart={binary} \\
    --unix_domain_socket_dir=/run/datasystem/uds \\
    --ready_check_path=/run/datasystem/ready \\
    --health_check_path=/run/datasystem/healthy \\
    --log_dir=/var/log/datasystem \\
    $WORKER_FLAGS
# Ready means started; a worker that ends before has failed to start.
ExecStartPost=/bin/sh -c '\\
    until [ -e /run/datasystem/ready ]; do kill -0 $$MAINPID || exit 1; sleep 0.1; done'
TimeoutStartSec=120
Restart=on-failure
RestartSec=5
KillSignal=SIGTERM
KillMode=mixed
TimeoutStopSec=180
RuntimeDirectory=datasystem
RuntimeDirectoryMode=0755
LogsDirectory=datasystem
LogsDirectoryMode=0750
WorkingDirectory=/
# Registered memory (RDMA) is locked memory; one descriptor per client, segment and peer.
LimitMEMLOCK=infinity
LimitNOFILE=1048576
OOMScoreAdjust=-500
{numa}
# No more than the worker needs. /dev stays visible: RDMA devices are there.
NoNewPrivileges=yes
ProtectSystem=full
ProtectHome=read-only
PrivateTmp=yes

[Install]
WantedBy=multi-user.target
"""

_NUMA_OFF = """\
# One NUMA node, here node 0: its memory, its CPUs (as dscli start --membind 0 --cpunodebind 0):
#NUMAPolicy=bind
#NUMAMask=0
#CPUAffinity=numa"""
_NUMA_ON = """\
NUMAPolicy=bind
NUMAMask={node}
CPUAffinity=numa"""

_ENVIRONMENT = """\
# Settings of datasystem-worker.service, installed as /etc/datasystem/datasystem-worker.env.
# WORKER_FLAGS: separated by spaces; `datasystem_worker --help` explains every flag. Anyone may see
# the command line of a process: keep secrets in files that flags name.
WORKER_FLAGS="--worker_address=127.0.0.1:31501 --etcd_address= --shared_memory_size_mb=1024"

# For UCX, which moves objects between nodes. docs/rdma.md says when to set them.
#UCX_TLS=rc_x
#UCX_NET_DEVICES=mlx5_0:1
#UCX_IB_GID_INDEX=3
#UCX_TCP_CM_ROUTE=y
#UCX_LOG_LEVEL=WARN
#UCX_LOG_FILE=/var/log/datasystem/ucx-%p.log
"""


def files(binary: str, user: str, numa_node: "int | None" = None) -> "dict[str, str]":
    """{name: text} of the unit and its environment file."""
    numa = _NUMA_OFF if numa_node is None else _NUMA_ON.format(node=numa_node)
    return {
        UNIT_NAME: _UNIT.format(binary=binary, user=user, numa=numa, unit=UNIT_NAME,
                                environment=ENVIRONMENT_NAME, name=UNIT_NAME[:-len(".service")]),
        ENVIRONMENT_NAME: _ENVIRONMENT,
    }

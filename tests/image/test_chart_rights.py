"""The chart's rarer users and options, with the worker really running under them."""

import os
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from cluster import free_port, wait_until
from kubelet import KubeletPod
from test_kubelet import CHART, HELM, NODES, etcd  # noqa: F401: a fixture

LOGS = "home/yuanrong/datasystem/logs"
_IPC_LOCK = 1 << 14


def rendered(etcd_address, port, *settings):
    if not os.path.exists(HELM):
        pytest.skip("there is no Helm; scripts/install_chart_tools.sh fetches it")
    words = [f"etcd.etcdAddress={etcd_address}", f"port.datasystemWorker={port}",
             "resources.datasystemWorker.sharedMemory=64", *settings]
    command = [HELM, "template", "ds", CHART, *(f"--set=global.{word}" for word in words)]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return list(filter(None, yaml.safe_load_all(text)))


@contextmanager
def ready_pod(image, objects, prepare=lambda host: None):
    """The pod on the first node; `prepare` gets what stands for the node's root folder."""
    daemon_set = next(item for item in objects if item["kind"] == "DaemonSet")
    with tempfile.TemporaryDirectory(prefix="ds-node-") as folder:
        Path(folder).chmod(0o755)
        prepare(Path(folder) / "host")
        pod = KubeletPod(image, objects, folder, NODES[0], daemon_set)
        try:
            pod.start()
            wait_until(lambda: pod.probe("readinessProbe")[0] == 0, 60, "readiness")
            yield pod
        finally:
            pod.end()


def logs_of_user_1002(host):
    folder = host / LOGS / "worker"
    folder.mkdir(parents=True)
    log = folder / "datasystem_worker.INFO.log"
    log.write_text("an earlier installation's\n")
    for path in (log, folder, folder.parent):
        path.chmod(0o700 if path.is_dir() else 0o600)
        os.chown(path, 1002, 1002)


def without_sysfs(objects):
    """This machine may have no /sys/class/infiniband to mount at, and UCX_TLS=tcp needs none."""
    for item in (item for item in objects if item["kind"] == "DaemonSet"):
        container, = item["spec"]["template"]["spec"]["containers"]
        container["volumeMounts"] = [row for row in container["volumeMounts"]
                                     if row["name"] != "infiniband-class"]
    return objects


def test_with_rdma_root_has_one_capability_and_uses_what_user_1002_left(image, etcd):  # noqa: F811
    port = free_port(NODES[0]["address"])
    objects = without_sysfs(rendered(etcd.address, port, "performance.enableRdma=true",
                                     "performance.rdma.privileged=false",
                                     "performance.ucxTransportLayerSelection=tcp"))
    with ready_pod(image, objects, logs_of_user_1002) as pod:
        status = Path(f"/proc/{pod.container.worker_pid()}/status").read_text()
        facts = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
        assert facts["Uid"].split()[1] == "0"
        assert int(facts["CapEff"], 16) == int(facts["CapBnd"], 16) == _IPC_LOCK
        assert pod.probe("livenessProbe") == (0, "")


def test_numa_options_and_the_ucx_log_reach_the_worker_of_user_1002(image, etcd):  # noqa: F811
    port = free_port(NODES[0]["address"])
    objects = rendered(etcd.address, port, "performance.numa.localalloc=true",
                       "log.enableUcxLog=true", "log.ucxLogLevel=INFO", "log.logDir=/data/logs")
    with ready_pod(image, objects) as pod:
        worker = pod.container.worker_pid()
        environment = Path(f"/proc/{worker}/environ").read_bytes().split(b"\0")
        assert b"NUMACTL_ARGS=--localalloc" in environment
        assert "local" in Path(f"/proc/{worker}/numa_maps").read_text()
        on_node = pod.folder_at("/home/yuanrong/datasystem/logs")
        assert str(on_node).endswith("/host/data/logs")
        assert (on_node / "worker" / "ucx.log").stat().st_uid == 1002

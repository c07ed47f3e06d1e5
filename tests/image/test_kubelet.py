"""Pods of a DaemonSet, run as kubelets of two nodes do, from a manifest and with a real etcd."""

import os
import shutil
import subprocess
import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import yaml

import rootfs
from cluster import Etcd, free_port, wait_until
from kubelet import KubeletPod

HERE = Path(__file__).resolve().parent
CHART = rootfs.SOURCE / "docker" / "chart" / "datasystem"
TOOLS = Path(os.environ.get("DATASYSTEM_TOOLS_DIR") or Path.home() / ".cache/datasystem-tools")
HELM = shutil.which("helm") or TOOLS / "helm" / "helm"
NODES = [{"name": "node-1", "address": "127.0.0.1"}, {"name": "node-2", "address": "127.0.0.2"}]
CLIENT = """
import sys
from yr.datasystem import KVClient
client = KVClient(sys.argv[1], int(sys.argv[2]))
client.init()
"""


@pytest.fixture
def etcd():
    with tempfile.TemporaryDirectory(prefix="ds-etcd-") as folder:
        etcd = Etcd(folder)
        yield etcd
        etcd.kill()


@contextmanager
def running_pod(image, objects, node):
    """The pod of the only DaemonSet on that node, its readiness probe green."""
    daemon_set = next(item for item in objects if item["kind"] == "DaemonSet")
    with tempfile.TemporaryDirectory(prefix="ds-node-") as folder:
        Path(folder).chmod(0o755)
        pod = KubeletPod(image, objects, folder, node, daemon_set)
        try:
            pod.start()
            for kind in ("startupProbe", "readinessProbe"):
                wait_until(lambda: pod.probe(kind)[0] == 0, 60, f"{kind} on {node['name']}")
            yield pod
        finally:
            pod.end()


def plain(etcd_address, port):
    text = (HERE / "worker_pod.yaml").read_text(encoding="utf-8")
    return text.replace("ETCD_ADDRESS", etcd_address).replace("31501", str(port))


def chart(etcd_address, port):
    if not CHART.exists() or not os.path.exists(HELM):
        pytest.skip("there is no chart, or no helm")
    settings = {"etcd.etcdAddress": etcd_address, "port.datasystemWorker": port,
                "resources.datasystemWorker.sharedMemory": 64}
    command = [HELM, "template", "ds", CHART]
    for name, value in settings.items():
        command += ["--set", f"global.{name}={value}"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("rendered", [plain, chart])
def test_two_nodes_serve_each_others_keys_and_leave_by_their_prestop(image, etcd, rendered):
    port = free_port(*(node["address"] for node in NODES))
    objects = list(filter(None, yaml.safe_load_all(rendered(etcd.address, port))))
    with ExitStack() as stack:
        first, second = (stack.enter_context(running_pod(image, objects, node)) for node in NODES)
        assert first.probe("livenessProbe") == (0, "")
        assert first.container.run("python3", "-c", CLIENT + "client.set('k', b'v' * 1000000)",
                                   "127.0.0.1", port) == (0, "")
        assert second.container.run(
            "python3", "-c", CLIENT + "print(client.get(['k']) == [b'v' * 1000000])", "127.0.0.2",
            port) == (0, "True\n")
        for check in (item["spec"]["containers"][0] for item in objects if item["kind"] == "Pod"):
            # `helm test`. There is no DNS that knows the workers: their addresses instead.
            check["args"][-1:] = [node["address"] for node in NODES]
            code, output = first.run_beside(check)
            assert code == 0 and "bytes from 127.0.0.1 through 127.0.0.2" in output, output
        for pod in (first, second):
            hook = pod.pre_stop()
            assert pod.container.wait(60) == 0
            hook.communicate(timeout=30)
            logs = pod.folder_at("/home/yuanrong/datasystem/logs") / "worker"
            assert "the worker ended, exit code 0" in (logs / "container.log").read_text()

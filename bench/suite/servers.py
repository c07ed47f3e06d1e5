"""What a run is measured against: etcd, workers, memcached, Redis. All are children of this process, with
sockets and files in one temporary folder, and end with it."""

import ctypes
import json
import signal
import socket
import subprocess
import time
import urllib.request
from pathlib import Path

from yr.datasystem.lib.libds_client_py import worker_report

_START_TIMEOUT_S = 60
_STOP_TIMEOUT_S = 10
_POLL_S = 0.001
_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None)


class BenchError(Exception):
    """The run cannot go on; the text says why."""


def die_with_parent():
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def free_port(host="127.0.0.1"):
    with socket.socket() as probe:
        probe.bind((host, 0))
        return probe.getsockname()[1]


def wait_until(condition, what, timeout_s=_START_TIMEOUT_S, poll_s=_POLL_S):
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise BenchError(f"{what} did not happen within {timeout_s} s")
        time.sleep(poll_s)


class Worker:
    def __init__(self, process, host, port, ready_after_s):
        self.process = process
        self.host = host
        self.port = port
        self.address = f"{host}:{port}"
        self.ready_after_s = ready_after_s

    def report(self):
        return json.loads(worker_report(self.host, self.port, 10000))

    def resident_bytes(self):
        return status_bytes(self.process.pid, "RssAnon") + status_bytes(self.process.pid, "RssShmem")

    def wait_until_populated(self):
        """Until all cache memory has been touched: nobody measures page faults by accident."""
        def populated():
            memory = self.report()["memory"]
            return memory["populated_bytes"] >= memory["size_bytes"]
        wait_until(populated, f"population of the memory of {self.address}", poll_s=0.05)


def status_bytes(pid, field):
    for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise BenchError(f"/proc/{pid}/status has no {field}")


class Servers:
    """Starts servers; stop() ends them, the last one first."""

    def __init__(self, folder, worker_binary, transport):
        self.folder = Path(folder)
        self._binary = worker_binary
        self._transport = transport
        self._processes = []
        self.etcd_address = ""

    def _launch(self, name, command, ready, env=None):
        log_path = self.folder / f"{name}.log"
        with open(log_path, "ab") as log:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env,
                                       cwd=self.folder, preexec_fn=die_with_parent)
        self._processes.append(process)

        def up():
            if process.poll() is not None:
                said = log_path.read_text(errors="replace")[-2000:]
                raise BenchError(f"{name} ended with code {process.returncode}: {said}")
            return ready()
        wait_until(up, f"start of {name} (log: {log_path})")
        return process

    def stop_one(self, process):
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(_STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._processes.remove(process)

    def stop(self):
        for process in reversed(self._processes.copy()):
            self.stop_one(process)

    def start_etcd(self):
        client, peer = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
        self._launch("etcd", [
            "etcd", "--data-dir", str(self.folder / "etcd"), "--log-level", "error",
            "--listen-client-urls", client, "--advertise-client-urls", client,
            "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
            "--initial-cluster", f"default={peer}"], lambda: _healthy(client))
        self.etcd_address = client.removeprefix("http://")

    def worker_flags(self, folder, host, port, cluster, size_mb):
        return {"worker_address": f"{host}:{port}", "etcd_address": self.etcd_address, "cluster_name": cluster,
                "shared_memory_size_mb": size_mb, "enable_rdma": str(self._transport.enable_rdma).lower(),
                "log_dir": folder / "logs", "unix_domain_socket_dir": folder / "uds",
                "ready_check_path": folder / "ready", "health_check_path": folder / "health",
                "liveness_check_path": folder / "live"}

    def start_worker(self, host, cluster, size_mb):
        port = free_port(host)
        name = f"{cluster}-{host}"
        folder = self.folder / name
        folder.mkdir()
        flags = self.worker_flags(folder, host, port, cluster, size_mb)
        start = time.monotonic()
        process = self._launch(name, [self._binary, *(f"--{k}={v}" for k, v in flags.items())],
                               (folder / "ready").exists, env=self._transport.worker_environment())
        return Worker(process, host, port, time.monotonic() - start)

    def start_memcached(self, name, memory_mb):
        """(process, path of the socket). -I: the largest value; -m: room for all that is set."""
        path = self.folder / f"{name}.sock"
        process = self._launch(name, ["memcached", "-u", "root", "-s", str(path), "-m", str(memory_mb),
                                      "-I", "128m", "-t", "2"], lambda: _accepts(path))
        return process, str(path)

    def start_redis(self, name, memory_mb):
        path = self.folder / f"{name}.sock"
        process = self._launch(name, ["redis-server", "--port", "0", "--unixsocket", str(path), "--save", "",
                                      "--appendonly", "no", "--maxmemory", f"{memory_mb}mb",
                                      "--dir", str(self.folder)], lambda: _accepts(path))
        return process, str(path)


def _healthy(url):
    try:
        with urllib.request.urlopen(url + "/health", timeout=1):
            return True
    except OSError:
        return False


def _accepts(path):
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))
            return True
        except OSError:
            return False

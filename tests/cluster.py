"""etcd and workers as real processes, for tests of whole clusters.

Whatever a Cluster starts ends with it, by process id, also when the test fails. Files lie in the cluster's
folder; `diagnosis()` returns what the processes said.
"""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from yr.datasystem import KVClient
from yr.datasystem.cli.package import worker_binary
from yr.datasystem.lib.libds_client_py import worker_report

DSCLI = [sys.executable, "-m", "yr.datasystem.cli"]
_TAIL_BYTES = 3000


def wait_until(condition, deadline_s=20.0, what="the condition"):
    """The first true value of `condition`, which is asked again and again."""
    end = time.monotonic() + deadline_s
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < end, f"{what} did not come true within {deadline_s} s"
        time.sleep(0.01)


def free_port(*hosts):
    """A port that is free on all of the addresses."""
    while True:
        with socket.socket() as first:
            first.bind((hosts[0], 0))
            port = first.getsockname()[1]
            try:
                for host in hosts[1:]:
                    with socket.socket() as other:
                        other.bind((host, port))
                return port
            except OSError:
                continue


def listening_ports(pid):
    """(host, port) of every TCP socket on which the process listens (IPv4)."""
    inodes = set()
    for link in Path(f"/proc/{pid}/fd").iterdir():
        try:
            inodes.add(os.readlink(link))
        except FileNotFoundError:
            pass
    ports = []
    for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[3] == "0A" and f"socket:[{fields[9]}]" in inodes:
            address, port = fields[1].split(":")
            host = socket.inet_ntoa(bytes.fromhex(address)[::-1])
            ports.append((host if host != "0.0.0.0" else "127.0.0.1", int(port, 16)))
    return ports


class Etcd:
    """One etcd server. Its data and address stay the same when it is started again."""

    def __init__(self, folder):
        self._folder = Path(folder)
        self.port = free_port("127.0.0.1")
        self._peer_port = free_port("127.0.0.1")
        self.address = f"127.0.0.1:{self.port}"
        self.process = None
        self.start()

    def start(self):
        client, peer = f"http://{self.address}", f"http://127.0.0.1:{self._peer_port}"
        with open(self._folder / "etcd.log", "ab") as log:
            self.process = subprocess.Popen(
                ["etcd", "--data-dir", self._folder / "etcd",
                 "--listen-client-urls", client, "--advertise-client-urls", client,
                 "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                 "--initial-cluster", f"default={peer}"], stdout=log, stderr=log)
        try:
            wait_until(self._healthy, 60, "etcd's health")
        except AssertionError:
            self.kill()
            raise

    def _healthy(self):
        assert self.process.poll() is None, f"etcd ended with {self.process.returncode}"
        try:
            return urllib.request.urlopen(f"http://{self.address}/health", timeout=2).status == 200
        except OSError:
            return False

    def kill(self):
        self.process.kill()
        self.process.wait()


class Worker:
    """A worker started by its binary: exit codes and signals are the process's own."""

    def __init__(self, folder, address, flags, environment):
        self.address = address
        self.host, port = address.rsplit(":", 1)
        self.port = int(port)
        self.folder = Path(folder)
        self.unix_socket = self.folder / "uds" / f"{self.host}-{self.port}.sock"
        self._ready = self.folder / "ready"
        self._clients = []
        self.folder.mkdir()
        own = {"worker_address": address, "log_dir": self.folder / "log",
               "unix_domain_socket_dir": self.folder / "uds", "ready_check_path": self._ready, **flags}
        self._flags = [f"--{name}={value}" for name, value in own.items()]
        self._environment = {**os.environ, **environment}
        self.launch()

    def launch(self):
        """Also for another life at the same address, after the last one has ended."""
        self._ready.unlink(missing_ok=True)
        with open(self.folder / "output", "ab") as output:
            self.process = subprocess.Popen([worker_binary(), *self._flags], cwd=self.folder, env=self._environment,
                                            stdout=output, stderr=output)
        self.pid = self.process.pid

    def is_ready(self):
        assert self.process.poll() is None, f"worker {self.address} ended: {self.output()}"
        return self._ready.exists()

    def client(self, timeout_ms=20000, request_timeout_ms=20000):
        client = KVClient(self.host, self.port, timeout_ms=timeout_ms, req_timeout_ms=request_timeout_ms)
        client.init()
        self._clients.append(client)
        return client

    def status(self):
        return json.loads(worker_report(self.host, self.port, 10000))

    def members(self):
        return {member["address"] for member in self.status()["cluster"]["members"]}

    def log(self):
        return (self.folder / "log" / "datasystem_worker.INFO.log").read_text(errors="replace")

    def output(self):
        return (self.folder / "output").read_text(errors="replace")

    def kill(self, how=signal.SIGKILL):
        self.process.send_signal(how)

    def stop(self, deadline_s=20):
        """SIGTERM; the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(deadline_s)

    def end(self):
        for client in self._clients:
            client.close()
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


class Cluster:
    """Workers around one etcd, on 127.0.0.1, 127.0.0.2 and so on."""

    def __init__(self, folder, **flags):
        self.folder = Path(folder)
        self._flags = {"shared_memory_size_mb": 64, **flags}
        self._all = []
        self.etcd = Etcd(self.folder)

    def start(self, count=1, environment=None, **flags):
        """`count` further workers, once all of the cluster know each other."""
        started = []
        for _ in range(count):
            number = len(self._all) + 1
            host = f"127.0.0.{number}"
            worker = Worker(self.folder / f"worker{number}", f"{host}:{free_port(host)}",
                            {"etcd_address": self.etcd.address, **self._flags, **flags}, environment or {})
            self._all.append(worker)
            started.append(worker)
        for worker in started:
            wait_until(worker.is_ready, 60, f"readiness of {worker.address}")
        self.wait_for_members(self.running())
        return started

    def running(self):
        return [worker for worker in self._all if worker.process.poll() is None]

    def wait_for_members(self, workers, deadline_s=30):
        """Until the workers know each other, nobody else, and have collected their directory."""
        expected = {worker.address for worker in workers}

        def agreed():
            reports = [worker.status() for worker in workers]
            return all({m["address"] for m in report["cluster"]["members"]} == expected and
                       report["directory"]["complete"] for report in reports)
        wait_until(agreed, deadline_s, f"a cluster of {sorted(expected)}")

    def diagnosis(self):
        texts = []
        for worker in self._all:
            texts.append(f"--- {worker.address}, exit code {worker.process.poll()}\n{tail(worker.folder / 'output')}"
                         f"{tail(worker.folder / 'log' / 'datasystem_worker.INFO.log')}")
        return "\n".join(texts)

    def end(self):
        for worker in self._all:
            worker.end()
        self.etcd.kill()


def tail(path):
    try:
        return Path(path).read_bytes()[-_TAIL_BYTES:].decode(errors="replace")
    except FileNotFoundError:
        return ""


class Dscli:
    """dscli in a folder of its own; the workers it started end with it."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self._pids = []

    def __call__(self, *arguments, **environment):
        result = subprocess.run([*DSCLI, *arguments], cwd=self.folder, env={**os.environ, **environment},
                                capture_output=True, text=True, timeout=120)
        self._pids += [int(pid) for pid in re.findall(r"Starting worker service with PID: (\d+)", result.stdout)]
        return result

    def start_fails(self, *flags, **environment):
        """The error text of a start that must fail, and must leave nothing behind."""
        result = self("start", "-w", "--shared_memory_size_mb", "64", *flags, **environment)
        assert result.returncode == 1, result.stdout + result.stderr
        assert "Start failed: The worker service exited abnormally" in result.stderr
        for pid in self._pids:
            assert not Path(f"/proc/{pid}").exists()
        return result.stderr

    def end(self):
        for pid in self._pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

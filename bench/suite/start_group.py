"""How long a start takes: of the worker itself, and of dscli around it. 1 GiB of memory, etcd running."""

import os
import subprocess
import sys
import time

from .servers import free_port
from .table import Row, Target, time_text

_CACHE_MB = 1024
_LIMIT_NS = 1e9


class StartGroup:
    name = "start"

    def __init__(self, setup):
        self._servers = setup.servers
        self._environment = setup.transport.worker_environment() | {"DATASYSTEM_WORKER_BINARY": setup.worker_binary}

    def start(self):
        pass

    def run(self, number, samples):
        worker = self._servers.start_worker("127.0.0.1", f"start{number}", _CACHE_MB)
        samples.add("start/worker", {"ns": worker.ready_after_s * 1e9})
        self._servers.stop_one(worker.process)

        folder = self._servers.folder / f"dscli-{number}"
        flags = self._servers.worker_flags(folder, "127.0.0.1", free_port(), f"dscli{number}", _CACHE_MB)
        start = time.monotonic()
        self._dscli("start", "-w", *(word for name, value in flags.items() for word in (f"--{name}", str(value))))
        samples.add("start/dscli", {"ns": (time.monotonic() - start) * 1e9})
        self._dscli("stop", "--worker_address", flags["worker_address"])

    def _dscli(self, *words):
        subprocess.run([sys.executable, "-m", "yr.datasystem.cli", *words], env=os.environ | self._environment,
                       cwd=self._servers.folder, stdout=subprocess.DEVNULL, check=True)

    def stop(self):
        pass

    def rows(self, samples):
        for name, what in (("worker", "worker, start to ready, 1 GiB"), ("dscli", "dscli start, 1 GiB")):
            ns = samples.median(f"start/{name}", "ns")
            yield Row(what, time_text(ns), time_text(_LIMIT_NS), "limit", ns / _LIMIT_NS, Target(1))

"""The transport between workers, and ucx_perftest over the same one."""

import os
import subprocess
import time

from .servers import BenchError, die_with_parent, free_port

_DEFAULTS = {"UCX_NET_DEVICES": "lo", "UCX_TCP_TX_SEG_SIZE": "256k", "UCX_TCP_RX_SEG_SIZE": "256k"}
_TIMEOUT_S = 60
_CONNECT_ATTEMPTS = 100
_CONNECT_PAUSE_S = 0.02


class Transport:
    """UCX settings of workers and perftest alike: those of the environment; without UCX_TLS there, tcp over
    the loopback device with the worker's segment sizes."""

    def __init__(self):
        self.enable_rdma = "UCX_TLS" in os.environ
        self._settings = {} if self.enable_rdma else {"UCX_TLS": "tcp"}
        if not self.enable_rdma or os.environ["UCX_TLS"] == "tcp":
            self._settings.update({k: v for k, v in _DEFAULTS.items() if k not in os.environ})

    def __str__(self):
        settings = {k: v for k, v in os.environ.items() if k.startswith("UCX_")} | self._settings
        return " ".join(f"{name}={value}" for name, value in sorted(settings.items()))

    def worker_environment(self):
        return os.environ | self._settings

    def round_trip_ns(self, size, count):
        """Median round trip of active messages: perftest reports half of it."""
        return 2 * self._perftest("ucp_am_lat", size, count)["50.0_percentile_lat"] * 1000

    def bandwidth(self, test, size, count):
        """Bytes per second."""
        return self._perftest(test, size, count)["overall_bw"] * 2**20

    def _perftest(self, test, size, count):
        port = free_port()
        options = ["-t", test, "-s", str(size), "-n", str(count), "-w", str(max(2, count // 10))]
        server = subprocess.Popen(["ucx_perftest", "-p", str(port)], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL, env=self.worker_environment(),
                                  preexec_fn=die_with_parent)
        try:
            for _ in range(_CONNECT_ATTEMPTS):
                time.sleep(_CONNECT_PAUSE_S)
                client = subprocess.run(["ucx_perftest", "127.0.0.1", "-p", str(port), *options, "-f", "-v"],
                                        env=self.worker_environment(), capture_output=True, text=True,
                                        timeout=_TIMEOUT_S, check=False)
                if client.returncode == 0:
                    names, *rows = client.stdout.strip().splitlines()
                    return dict(zip(names.split(","), map(float, rows[-1].split(","))))
                if server.poll() is not None:
                    break
            raise BenchError(f"ucx_perftest -t {test} -s {size}: {client.stdout}{client.stderr}")
        finally:
            server.kill()
            server.wait()

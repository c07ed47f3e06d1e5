"""What a transport can do without us: the rate of its link, UCX's own test between two processes.

ucx_perftest (package ucx-utils) needs one process on each side. Both run on this machine here: the
figures are those of the transport and its card, without the network in between.
"""

import os
import shutil
import socket
import subprocess
import time
from dataclasses import dataclass
from typing import Dict, Iterator, List, Optional, Tuple

from . import rdma
from .finding import Finding, duration, ok
from .system import System

_LATENCY_BYTES = 64
_BANDWIDTH_BYTES = 1 << 20
_TEST_MAX_S = 15
# What UCX_TLS calls them, with the transports that help to connect.
_NAMES = {
    "rc_verbs": "rc_v",
    "rc_mlx5": "rc_x",
    "ud_verbs": "ud_v",
    "ud_mlx5": "ud_x",
    "dc_mlx5": "dc_x",
}
# As the worker sets them.
_TCP_SETTINGS = {"UCX_TCP_TX_SEG_SIZE": "256k", "UCX_TCP_RX_SEG_SIZE": "256k"}


@dataclass(frozen=True)
class Figures:
    round_trip_s: float
    bytes_per_s: float


def check(lane: str, system: System) -> Iterator[Finding]:
    """Of a lane as the status has it, "rc_verbs/rxe0:1,tcp/eth0", and of tcp beside RDMA."""
    tool = shutil.which("ucx_perftest")
    for transport, device in transports(lane, system):
        told = f"{transport}/{device}, {link_rate(device, system)}"
        if not tool:
            yield ok(
                "raw figure",
                f"{told}. ucx_perftest, which would measure it, is not installed (ucx-utils)",
            )
            continue
        figures = measure(tool, transport, device)
        if figures is None:
            yield ok("raw figure", f"{told}. ucx_perftest gives no figures for it here")
            continue
        yield ok(
            "raw figure",
            (
                f"{told}; UCX between two processes here: {_LATENCY_BYTES} B there and back in"
                f" {duration(figures.round_trip_s)}, {figures.bytes_per_s / 1e9:.3g} GB/s"
            ),
        )


def transports(lane: str, system: System) -> List[Tuple[str, str]]:
    found = [
        (each.partition("/")[0], each.partition("/")[2]) for each in lane.split(",") if "/" in each
    ]
    for port in rdma.ports(system):
        if any(device == port.name for _, device in found) and port.interface:
            found.append(("tcp", port.interface))
    return list(dict.fromkeys(found))


def link_rate(device: str, system: System) -> str:
    name, _, port = device.partition(":")
    rate = system.text(f"/sys/class/infiniband/{name}/ports/{port or 1}/rate").partition(" (")[0]
    if not rate:
        megabits = system.number(f"/sys/class/net/{name}/speed") or 0
        rate = f"{megabits / 1000:g} Gb/sec" if megabits > 0 else ""
    return f"a link of {rate}" if rate else "a link without a rate of its own"


def measure(tool: str, transport: str, device: str) -> Optional[Figures]:
    """None if the test does not work, or not in time."""
    environment = {
        **os.environ,
        **_TCP_SETTINGS,
        "UCX_TLS": _NAMES.get(transport, transport),
        "UCX_NET_DEVICES": device,
        "UCX_WARN_UNUSED_ENV_VARS": "n",
    }
    latency = _run(
        tool, environment, ["-t", "ucp_am_lat", "-s", str(_LATENCY_BYTES), "-n", "200", "-w", "20"]
    )
    bandwidth = _run(
        tool, environment, ["-t", "ucp_am_bw", "-s", str(_BANDWIDTH_BYTES), "-n", "60", "-w", "6"]
    )
    if not latency or not bandwidth:
        return None
    try:
        # One way, in microseconds; and MiB a second.
        return Figures(
            2 * float(latency["50.0_percentile_lat"]) / 1e6,
            float(bandwidth["overall_bw"]) * (1 << 20),
        )
    except (KeyError, ValueError):
        return None


def _run(tool: str, environment: Dict[str, str], test: List[str]) -> Dict[str, str]:
    """The last line of its table, by the names of the columns; empty if there is none."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    quiet = {"stdin": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": environment}
    server = subprocess.Popen([tool, "-p", port], stdout=subprocess.DEVNULL, **quiet)
    end = time.monotonic() + _TEST_MAX_S
    try:
        # Until the server listens, it ends at once; to try to connect would already be a test.
        while time.monotonic() < end and server.poll() is None:
            client = subprocess.run(
                [tool, "127.0.0.1", "-p", port, "-f", "-v", *test],
                stdout=subprocess.PIPE,
                text=True,
                check=False,
                timeout=max(0.1, end - time.monotonic()),
                **quiet,
            )
            lines = [line.split(",") for line in client.stdout.splitlines() if "," in line]
            if client.returncode == 0 and len(lines) >= 2:
                return dict(zip(lines[0], (value.strip() for value in lines[-1])))
            time.sleep(0.02)
    except subprocess.TimeoutExpired:
        pass
    finally:
        server.kill()
        server.wait()
    return {}

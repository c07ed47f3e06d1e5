"""Values move between a worker of this machine and another one: whether, by which lane, how fast.

Through the cache itself: a value is set on one worker and read on the other, whose first read
fetches it. So what is measured is what users get, over the lane that both workers have chosen, and
neither joins or leaves anything.
"""

import hashlib
import json
import secrets
import socket
import statistics
import time
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List

from ...kv_client import KVClient
from ...lib.libds_client_py import worker_report
from ..console import CommandError
from ..validation import split_address
from . import raw
from .finding import Finding, duration, failure, ok, size, warning
from .system import System

_TIMEOUT_MS = 20_000
# Bytes of a value -> rounds, fewer when they take longer than _SECONDS_PER_SIZE.
_ROUNDS = ((64, 50), (1 << 20, 20), (64 << 20, 5))
_SECONDS_PER_SIZE = 3.0
# Of the free memory of either worker: nothing is evicted for a measurement.
_SHARE_OF_FREE = 4
# If we are killed, what is left goes by itself.
_TIME_TO_LIVE_S = 60
_HANDSHAKES = 5


@dataclass(frozen=True)
class Measurement:
    value_bytes: int
    seconds: List[float]

    def words(self) -> str:
        median = statistics.median(self.seconds)
        told = f"a get of {_amount(self.value_bytes)} takes {duration(median)}"
        told += f", {duration(max(self.seconds))} at worst"
        if self.value_bytes >= 1 << 20:
            told += f": {self.value_bytes / median / 1e9:.3g} GB/s"
        return f"{told} (median of {len(self.seconds)})"


def check(local: str, peer: str, system: System) -> Iterator[Finding]:
    """`local` and `peer` are addresses of running workers."""
    try:
        yield from _check(local, peer, system)
    except (KeyError, TypeError, AttributeError) as reason:
        yield failure(
            "peer",
            f"the status of {local} or {peer} lacks {reason}: are they of another version?",
            f"dscli status --json -w {peer}",
        )
    except (CommandError, RuntimeError, OSError) as reason:
        yield failure("peer", str(reason), f"dscli status -w {peer}")


def _check(local: str, peer: str, system: System) -> Iterator[Finding]:
    if local == peer:
        yield failure(
            "peer", f"{peer} is the worker of this machine itself", "dscli status -w " + local
        )
        return
    reports = {address: _report(address) for address in (local, peer)}
    refused = not_together(local, peer, reports)
    if refused:
        yield refused
        return
    yield ok(
        "peer", f"{peer}: version {reports[peer]['version']}, ready, in the cluster of {local}"
    )
    yield ok("round trip", f"a TCP handshake with {peer} takes {duration(_handshake_s(peer))}")
    yield from _transfer(local, peer, reports, system)


def not_together(local: str, peer: str, reports: Dict[str, Dict[str, Any]]) -> "Finding | None":
    for address, other in ((local, peer), (peer, local)):
        report = reports[address]
        if not report["serving"] or not report["ready"]:
            why = report["not_serving_because"] or "its part of the directory is not complete"
            return failure("peer", f"{address} does not serve: {why}", f"dscli status -w {address}")
        members = [member["address"] for member in report["cluster"]["members"]]
        if other not in members:
            return failure(
                "peer",
                (
                    f"{other} is no member of the cluster of {address}: the same etcd_address and"
                    f" cluster_name? Members are {', '.join(members)}"
                ),
                f"dscli status -w {other}",
            )
    return None


def _transfer(
    local: str, peer: str, before: Dict[str, Dict[str, Any]], system: System
) -> Iterator[Finding]:
    free = (
        min(report["memory"]["largest_free_bytes"] for report in before.values()) // _SHARE_OF_FREE
    )
    sizes = [(value_bytes, rounds) for value_bytes, rounds in _ROUNDS if value_bytes <= free]
    if not sizes:
        yield failure(
            "transfer", f"one of the workers has only {_amount(free)} to spare", "dscli status"
        )
        return
    with ExitStack() as stack:
        here = stack.enter_context(KVClient(*split_address(local), timeout_ms=_TIMEOUT_MS))
        there = stack.enter_context(KVClient(*split_address(peer), timeout_ms=_TIMEOUT_MS))
        measured = [_measure(here, there, value_bytes, rounds) for value_bytes, rounds in sizes]
        _measure(there, here, sizes[-1][0], 1)
    after = _report(local)
    of_peer = _peer_of(after, peer)
    yield judge_lane(
        after,
        of_peer,
        _peer_of(before[local], peer),
        sum(m.value_bytes * len(m.seconds) for m in measured),
    )
    for each in measured:
        yield ok("transfer", f"from {peer}: {each.words()}")
    yield ok("transfer", f"to {peer}: {_amount(sizes[-1][0])} arrived whole")
    yield from raw.check(of_peer["lane"], system)


def _measure(reader: KVClient, writer: KVClient, value_bytes: int, rounds: int) -> Measurement:
    """RuntimeError if a value does not arrive as it was."""
    block = hashlib.sha256(str(value_bytes).encode()).digest()
    value = (block * (value_bytes // len(block) + 1))[:value_bytes]
    seconds: List[float] = []
    end = time.monotonic() + _SECONDS_PER_SIZE
    while len(seconds) < rounds and (not seconds or time.monotonic() < end):
        key = f"doctor-{secrets.token_hex(12)}"
        writer.set(key, value, ttl_second=_TIME_TO_LIVE_S)
        try:
            begin = time.monotonic()
            found = reader.get_read_only_buffers([key])[0]
            seconds.append(time.monotonic() - begin)
            if found is None or found.immutable_data() != value:
                raise RuntimeError(f"a value of {value_bytes} bytes did not arrive as it was set")
        finally:
            found = None
            reader.delete([key])
    return Measurement(value_bytes, seconds)


def judge_lane(
    report: Dict[str, Any], now: Dict[str, Any], before: Dict[str, Any], moved_bytes: int
) -> Finding:
    lane = now["lane"] or "no lane"
    arrived = now["payload_bytes_received"] - before["payload_bytes_received"]
    told = f"{lane} carried {_amount(arrived)}"
    if arrived < moved_bytes:
        return failure(
            "lane", f"{told}, less than the {_amount(moved_bytes)} that were read", "dscli status"
        )
    if report["enable_rdma"] and lane.startswith("tcp"):
        return warning(
            "lane",
            f"{told}, though enable_rdma is true: UCX_TLS named tcp, or nothing that both have",
            "export UCX_TLS=rc_x, then start both workers again",
        )
    return ok("lane", told)


def _report(address: str) -> Dict[str, Any]:
    try:
        return json.loads(worker_report(*split_address(address), _TIMEOUT_MS))
    except (RuntimeError, ValueError) as reason:
        raise CommandError(str(reason)) from reason


def _peer_of(report: Dict[str, Any], address: str) -> Dict[str, Any]:
    nothing = {"lane": "", "payload_bytes_received": 0}
    return next((peer for peer in report["peers"] if peer["address"] == address), nothing)


def _handshake_s(address: str) -> float:
    taken = []
    for _ in range(_HANDSHAKES):
        begin = time.monotonic()
        with socket.create_connection(split_address(address), timeout=_TIMEOUT_MS / 1000):
            taken.append(time.monotonic() - begin)
    return statistics.median(taken)


def _amount(count: int) -> str:
    return f"{count} B" if count < 1 << 10 else size(count)

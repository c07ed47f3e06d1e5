"""Limits: locked memory against what the cards lock, what a card registers, open files."""

import resource
from typing import Iterator, Optional

from . import verbs
from .asking import Answer
from .finding import Finding, failure, ok, size, warning
from .plan import Plan
from .system import System

_CAP_IPC_LOCK = 14
# Queues and buffers that UCX registers by itself.
_UCX_OWN_BYTES = 64 << 20
# A client has a socket and pooled connections; the rest is for peers, etcd, memory files, logs.
_FILES_PER_CLIENT = 4
_FILES_OTHERWISE = 512


def check(plan: Plan, system: System, answer: Answer) -> Iterator[Finding]:
    if plan.rdma:
        # The worker says it first if its own check of this failed.
        if not answer.errors.get("transport", "").startswith("RDMA has to lock"):
            yield locked_memory(
                plan, system, answer, resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
            )
        for device in cards(plan, answer):
            facts = verbs.query(device)
            if facts:
                yield registration(plan, device, facts.max_mr_bytes)
    yield open_files(plan, resource.getrlimit(resource.RLIMIT_NOFILE)[1])


def cards(plan: Plan, answer: Answer) -> "list[str]":
    """The cards that register the memory: the chosen one, or all that UCX finds."""
    chosen = plan.environment.get("UCX_NET_DEVICES") or answer.transport.get("device", "")
    found = answer.rdma_devices()
    used = [device for device in found if device in chosen.split(",")] or found
    return list(dict.fromkeys(device.partition(":")[0] for device in used))


def locked_memory(plan: Plan, system: System, answer: Answer, limit: int) -> Finding:
    """`limit` as getrlimit() has it."""
    count = max(1, len(cards(plan, answer)))
    needed = count * plan.memory_bytes + _UCX_OWN_BYTES
    what = (
        f"{size(needed)} are to be locked: {count} × {size(plan.memory_bytes)} and"
        f" {size(_UCX_OWN_BYTES)} of UCX"
    )
    if system.has_capability(_CAP_IPC_LOCK):
        return ok("locked memory", f"{what}; this user is exempt from the limit (CAP_IPC_LOCK)")
    if limit == resource.RLIM_INFINITY:
        return ok("locked memory", f"{what}; there is no limit")
    if limit >= needed:
        return ok("locked memory", f"{what}; the limit is {size(limit)}")
    return failure(
        "locked memory",
        (
            f"{what}, but the limit is {size(limit)}. In a systemd unit: "
            "LimitMEMLOCK=infinity; in a container: the capability IPC_LOCK"
        ),
        "ulimit -l unlimited",
    )


def registration(plan: Plan, device: str, max_mr_bytes: int) -> Finding:
    if max_mr_bytes >= plan.memory_bytes:
        largest = "any size" if max_mr_bytes >= 1 << 60 else size(max_mr_bytes)
        return ok("registration", f"{device} registers {largest} in one piece")
    return failure(
        "registration",
        (
            f"the cache memory of {size(plan.memory_bytes)} is registered in one piece, of which "
            f"{device} takes {size(max_mr_bytes)} at most (max_mr_size)"
        ),
        f"--shared_memory_size_mb {max_mr_bytes >> 20}",
    )


def open_files(plan: Plan, hard_limit: int) -> Finding:
    needed = plan.clients_max * _FILES_PER_CLIENT + _FILES_OTHERWISE
    if hard_limit in (resource.RLIM_INFINITY, -1) or hard_limit >= needed:
        shown = "unlimited" if hard_limit in (resource.RLIM_INFINITY, -1) else str(hard_limit)
        return ok(
            "open files",
            f"the hard limit is {shown}, {needed} are enough for {plan.clients_max} clients",
        )
    return warning(
        "open files",
        (
            f"the hard limit is {hard_limit}, but {plan.clients_max} clients (max_client_num) may"
            f" need {needed}. In a systemd unit: LimitNOFILE={needed}"
        ),
        f"ulimit -Hn {needed}",
    )

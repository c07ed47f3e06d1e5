"""Huge pages free and needed; the cache's size against machine and control groups."""

from typing import Iterator, List, Optional, Tuple

from .asking import Answer
from .cgroups import Group, groups
from .finding import Finding, failure, ok, refusal, size, warning
from .plan import Plan
from .system import System

_KIB = 1 << 10
# Beside the cache: keys and records, half of its size at most, and the process itself.
_INDEX_SHARE = 2
_PROCESS_BYTES = 128 << 20


def check(plan: Plan, system: System, answer: Answer) -> Iterator[Finding]:
    error = answer.errors.get("memory", "")
    if plan.huge_pages:
        yield refusal("huge pages", error) if error else huge_pages(plan, system)
        found = hugetlb_limit(plan, system)
        if found:
            yield found
    elif error:
        yield refusal("shared memory", error)
    else:
        yield machine(plan, system)
    yield container(plan, groups(system, "memory"))


def huge_pages(plan: Plan, system: System) -> Finding:
    page = system.meminfo("Hugepagesize") * _KIB
    if page == 0:
        return failure("huge pages", "this kernel has none", "--enable_huge_tlb false")
    needed = plan.memory_bytes // page
    available = max(0, system.meminfo("HugePages_Free") - system.meminfo("HugePages_Rsvd"))
    told = f"{needed} of {size(page)} needed, {available} available"
    if needed > available:
        total = system.meminfo("HugePages_Total") + needed - available
        return failure("huge pages", told, f"sysctl -w vm.nr_hugepages={total}")
    return ok("huge pages", told)


def hugetlb_limit(plan: Plan, system: System) -> Optional[Finding]:
    """A container has a limit of its own, which the machine's free pages do not show."""
    page_kib = system.meminfo("Hugepagesize")
    name = f"{page_kib // _KIB}MB" if page_kib < _KIB * _KIB else f"{page_kib // _KIB // _KIB}GB"
    limits = [
        limit
        for limit in (_hugetlb_of(system, each, name) for each in groups(system, "hugetlb"))
        if limit is not None
    ]
    if not limits or min(limits) >= plan.memory_bytes:
        return None
    return failure(
        "huge pages",
        f"the container may use {size(min(limits))} of them, {size(plan.memory_bytes)} are needed",
        (
            f"in the pod's resources, limits: hugepages-{page_kib // _KIB}Mi:"
            f" {plan.memory_bytes >> 20}Mi"
        ),
    )


def machine(plan: Plan, system: System) -> Finding:
    available = system.meminfo("MemAvailable") * _KIB
    told = (
        f"{size(plan.memory_bytes)} of cache memory, {size(available)} are available on this"
        " machine"
    )
    if plan.memory_bytes <= available:
        return ok("shared memory", f"{told}. It is memory files, /dev/shm is not used")
    remedy = f"--shared_memory_size_mb {_fitting_mb(available)}"
    if plan.all_pages_at_start:
        return failure(
            "shared memory", f"{told}, and all of it has to be there at the start", remedy
        )
    return warning("shared memory", f"{told}: sets will fail before the cache is full", remedy)


def container(plan: Plan, found: List[Group]) -> Finding:
    tightest = _tightest(found)
    if tightest is None:
        return ok("container", "no control group limits memory")
    group, limit = tightest
    if plan.huge_pages:  # those are accounted for elsewhere
        needed, what = (
            plan.memory_bytes // _INDEX_SHARE + _PROCESS_BYTES,
            "the worker beside its huge pages",
        )
    else:
        needed, what = plan.memory_bytes + _PROCESS_BYTES, "cache and worker"
    told = (
        f"{what} need {size(needed)}, the control group {group.path} (version {group.version})"
        f" allows {size(limit)}"
    )
    if needed <= limit:
        return ok("container", told)
    remedy = (
        f"a limit of at least {needed >> 20} MiB, or --shared_memory_size_mb {_fitting_mb(limit)}"
    )
    if plan.all_pages_at_start and not plan.huge_pages:
        return failure(
            "container", f"{told}: the kernel would kill the worker at its start", remedy
        )
    return warning("container", f"{told}: sets will fail before the cache is full", remedy)


def _fitting_mb(available_bytes: int) -> int:
    return max(0, available_bytes - _PROCESS_BYTES) * 9 // 10 >> 20


def _tightest(found: List[Group]) -> Optional[Tuple[Group, int]]:
    limited = [
        (group, limit)
        for group, limit in ((group, group.memory_limit()) for group in found)
        if limit
    ]
    return min(limited, key=lambda each: each[1], default=None)


def _hugetlb_of(system: System, group: Group, name: str) -> Optional[int]:
    file = f"hugetlb.{name}.max" if group.version == 2 else f"hugetlb.{name}.limit_in_bytes"
    limit = system.number(f"{group.folder}/{file}")
    return None if limit is None or limit >= 1 << 62 else limit

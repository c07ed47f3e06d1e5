"""Huge pages and NUMA for real: the kernel does what was asked for, and the status says so."""

import json
import os
import shutil
from pathlib import Path

import pytest

from cluster import free_port

COUNT = Path("/proc/sys/vm/nr_hugepages")
PAGES = 48


@pytest.fixture
def address():
    return f"127.0.0.1:{free_port('127.0.0.1')}"


@pytest.fixture
def huge_pages():
    """PAGES more huge pages than there were; skips where they cannot be had."""
    before = int(COUNT.read_text())
    try:
        COUNT.write_text(str(before + PAGES))
    except OSError as reason:
        pytest.skip(f"vm.nr_hugepages cannot be set: {reason}")
    try:
        if int(COUNT.read_text()) < before + PAGES:
            pytest.skip("the kernel finds no room for huge pages")
        yield huge_page_bytes()
    finally:
        COUNT.write_text(str(before))


def huge_page_bytes():
    (line,) = [
        line
        for line in Path("/proc/meminfo").read_text().splitlines()
        if line.startswith("Hugepagesize:")
    ]
    return int(line.split()[1]) << 10


def start(dscli, address, *flags, before=()):
    started = dscli("start", *before, "-w", "--worker_address", address, *flags)
    assert started.returncode == 0, started.stderr
    return int(started.stdout.split()[-1])


def memory_of(dscli, address):
    return json.loads(dscli("status", "-w", address, "--json").stdout)["memory"]


def mappings(pid, field):
    """Of the cache memory, in /proc/PID/smaps."""
    found, inside = [], False
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        if "-" in line.split()[0] and ":" not in line.split()[0]:
            inside = "memfd:datasystem-cache" in line
        elif inside and line.startswith(f"{field}:"):
            found.append(line.split()[1])
    return found


def test_huge_pages_are_used_and_told_by_doctor_and_status(dscli, address, huge_pages):
    size_mb = (PAGES - 1) * huge_pages >> 20
    flags = ("--enable_huge_tlb", "true", "--shared_memory_size_mb", str(size_mb))
    (told,) = [
        check
        for check in json.loads(
            dscli("doctor", "--json", "--worker_address", address, *flags).stdout
        )["checks"]
        if check["check"] == "huge pages"
    ]
    assert told["level"] == "ok"
    pid = start(dscli, address, *flags)
    assert memory_of(dscli, address)["page_bytes"] == huge_pages
    log = (Path(dscli.folder) / "datasystem/logs/datasystem_worker.INFO.log").read_text()
    assert f"cache memory page_bytes={huge_pages} network_device=lo" in log
    assert mappings(pid, "KernelPageSize") == [str(huge_pages >> 10)]


def test_without_huge_pages_the_status_has_the_machines_page_size(dscli, address):
    start(dscli, address, "--shared_memory_size_mb", "64")
    memory = memory_of(dscli, address)
    assert memory["page_bytes"] == os.sysconf("SC_PAGESIZE")
    assert memory["network_device"] == "lo" and memory["network_device_node"] is None


def test_the_status_tells_the_node_of_the_memory(dscli, address):
    start(
        dscli,
        address,
        "--shared_memory_size_mb",
        "64",
        "--shared_memory_populate",
        "true",
        "--enable_fallocate",
        "false",
        "--arena_per_tenant",
        "1",
    )
    nodes = memory_of(dscli, address)["nodes"]
    online = Path("/sys/devices/system/node/online").read_text().strip()
    assert sum(node["share_percent"] for node in nodes) in (99, 100)
    if online == "0":
        assert nodes == [{"node": 0, "share_percent": 100}]


@pytest.mark.skipif(not shutil.which("numactl"), reason="numactl is not installed")
@pytest.mark.parametrize(
    "options, policy",
    [
        (("--cpunodebind", "0", "--localalloc"), "local"),
        (("--membind", "0"), "bind:0"),
        (("--interleave", "0"), "interleave:0"),
        (("--preferred", "0"), "prefer:0"),
        (("--physcpubind", "0", "-m", "0"), "bind:0"),
    ],
)
def test_numa_options_reach_the_worker_through_numactl(dscli, address, options, policy):
    flags = ("--shared_memory_size_mb", "64")
    doctor = dscli("doctor", *options, "-w", "--worker_address", address, *flags)
    assert doctor.returncode == 0, doctor.stdout + doctor.stderr
    pid = start(dscli, address, *flags, before=options)
    maps = Path(f"/proc/{pid}/numa_maps").read_text().splitlines()
    cache = [line.split()[1] for line in maps if "memfd:datasystem-cache" in line]
    assert cache and all(found.startswith(policy) for found in cache)
    if "--physcpubind" in options:
        assert os.sched_getaffinity(pid) == {0}


@pytest.mark.skipif(not shutil.which("numactl"), reason="numactl is not installed")
@pytest.mark.parametrize("option", [("--membind", "77"), ("--cpunodebind", "x"), ("-C", "4096")])
def test_what_numactl_refuses_is_told_without_its_help(dscli, address, option):
    for command in ("start", "doctor"):
        refused = dscli(command, *option, "-w", "--worker_address", address)
        assert refused.returncode == 1
        assert f"{command.capitalize()} failed: numactl refuses --" in refused.stderr
        assert option[1] in refused.stderr and "`numactl --hardware`" in refused.stderr
        assert "usage" not in refused.stderr and len(refused.stderr.splitlines()) == 1

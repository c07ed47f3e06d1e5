"""A container that is smaller than the cache it was given: errors and evictions, never a dead process.

The container is a memory control group of the kernel, of version 1 or 2, made below this process's own.
"""

import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from cluster import wait_until
from yr.datasystem.cli.package import worker_binary

MIB = 1 << 20
LIMIT_MIB = 256
CACHE_MIB = 1024
VALUE_MIB = 4


class Container:
    def __init__(self, folder, unified):
        self.folder, self._unified = folder, unified

    def limit(self, limit_mib):
        (self.folder / ("memory.max" if self._unified else "memory.limit_in_bytes")).write_text(str(limit_mib * MIB))

    def used(self):
        return int((self.folder / ("memory.current" if self._unified else "memory.usage_in_bytes")).read_text())

    def kills(self):
        """Processes that the kernel has killed for want of memory."""
        events = (self.folder / ("memory.events" if self._unified else "memory.oom_control")).read_text()
        return int(dict(line.split() for line in events.splitlines())["oom_kill"])

    def wrapped(self, script, program):
        """A script that runs the program in the container."""
        script.write_text(f'#!/bin/sh\necho $$ > {self.folder}/cgroup.procs || exit 99\nexec {program} "$@"\n')
        script.chmod(0o755)
        return str(script)


def _own_group():
    """The folder of this process's memory control group, and whether it is of version 2."""
    groups = dict(line.split(":", 2)[1:] for line in Path("/proc/self/cgroup").read_text().splitlines())
    for controllers, path in groups.items():
        if "memory" in controllers.split(","):
            return Path("/sys/fs/cgroup/memory" + path), False
    return Path("/sys/fs/cgroup" + groups.get("", "/")), True


@contextmanager
def _container(limit_mib):
    parent, unified = _own_group()
    group = parent / f"ds-test-{os.getpid()}"
    try:
        group.mkdir()
        container = Container(group, unified)
        container.limit(limit_mib)
        container.kills()
    except (OSError, KeyError) as error:
        if group.exists():
            group.rmdir()
        pytest.skip(f"no memory control group can be made here, so no limit can be tested: {error}")
    try:
        yield container
    finally:
        def remove():
            try:
                group.rmdir()
            except OSError:  # the last process is just going
                return False
            return True
        wait_until(remove, what="the end of the container")


@pytest.fixture
def container():
    with _container(LIMIT_MIB) as made:
        yield made


@pytest.fixture
def worker(container, folder, new_cluster, monkeypatch):
    """A worker in the container, with a cache four times as large."""
    monkeypatch.setenv("DATASYSTEM_WORKER_BINARY", container.wrapped(folder / "worker.sh", worker_binary()))
    started, = new_cluster(shared_memory_size_mb=CACHE_MIB).start(1)
    return started


WRITER = """
import sys
from yr.datasystem import KVClient, WriteMode
host, port, mode, values = sys.argv[1], int(sys.argv[2]), getattr(WriteMode, sys.argv[3]), int(sys.argv[4])
value = bytes(%d << 20)
with KVClient(host, port, timeout_ms=20000, req_timeout_ms=20000) as client:
    client.init()
    for i in range(values):
        try:
            client.set(f"key{i}", value, mode)
        except RuntimeError as error:
            print(i, error)
            break
    else:
        print(values, "all written")
""" % VALUE_MIB


def write_in(container, folder, worker, mode, values):
    """Has a client in the container write; how many values went in, and the error."""
    python = container.wrapped(folder / "client.sh", sys.executable)
    result = subprocess.run([python, "-c", WRITER, worker.host, str(worker.port), mode, str(values)],
                            capture_output=True, text=True, timeout=100)
    assert result.returncode == 0, result.stdout + result.stderr
    count, text = result.stdout.strip().split(" ", 1)
    return int(count), text


def test_writing_until_the_container_is_full_is_out_of_memory_and_everybody_lives(container, folder, worker):
    written, error = write_in(container, folder, worker, "NONE_L2_CACHE", CACHE_MIB // VALUE_MIB)
    assert "code: [Out of memory]" in error
    assert "the container has only" in error and f"of its {LIMIT_MIB} MiB" in error
    assert f"it is configured for {CACHE_MIB} MiB" in error
    assert LIMIT_MIB // 2 <= written * VALUE_MIB < LIMIT_MIB
    # Once more from outside the container, whose memory would not be short.
    client = worker.client()
    with pytest.raises(RuntimeError, match=r"^code: \[Out of memory\]"):
        client.set("one-more", bytes(64 * MIB))
    assert client.get(["key0"]) == [bytes(VALUE_MIB * MIB)]
    assert client.delete([f"key{i}" for i in range(written)]) == []
    client.set("small", b"fits again")
    client.set("large", bytes(64 * MIB))
    assert client.get(["small"]) == [b"fits again"]
    assert container.kills() == 0
    assert worker.process.poll() is None


def test_evictable_values_of_many_times_the_containers_size_all_go_in(container, folder, worker):
    values = 3 * LIMIT_MIB // VALUE_MIB
    written, text = write_in(container, folder, worker, "NONE_L2_CACHE_EVICT", values)
    assert written == values, text
    client = worker.client()
    assert client.get([f"key{values - 1}"]) == [bytes(VALUE_MIB * MIB)]
    for size in (100, 5000, 300_000, 32 * MIB):  # other shapes in the memory that the first left
        client.set("other", bytes(size))
        assert client.get(["other"]) == [bytes(size)]
    assert container.kills() == 0
    assert worker.process.poll() is None


def test_the_start_says_that_the_container_is_smaller_than_the_cache(container, worker):
    assert (f"shared memory is configured for {CACHE_MIB} MiB, but this container's memory limit is {LIMIT_MIB} MiB"
            in worker.output() + worker.log())


def test_population_at_start_that_the_container_cannot_hold_is_refused(container, folder, dscli, monkeypatch):
    monkeypatch.setenv("DATASYSTEM_WORKER_BINARY", container.wrapped(folder / "worker.sh", worker_binary()))
    result = dscli("start", "-w", "--worker_address", "127.0.0.1:31599", "--shared_memory_size_mb", str(CACHE_MIB),
                   "--shared_memory_populate", "true", "--enable_fallocate", "false")
    assert result.returncode == 1
    assert "could be populated: the container has only" in result.stderr
    assert "raise the memory limit" in result.stderr
    assert container.kills() == 0


def test_memory_that_stays_free_goes_back_to_the_container(container, folder, new_cluster, monkeypatch):
    monkeypatch.setenv("DATASYSTEM_WORKER_BINARY", container.wrapped(folder / "worker.sh", worker_binary()))
    worker, = new_cluster(shared_memory_size_mb=64).start(1, memory_reclamation_time_second=1)
    client = worker.client()
    for i in range(12):
        client.set(f"key{i}", bytes(VALUE_MIB * MIB))
    full = container.used()
    assert client.delete([f"key{i}" for i in range(12)]) == []
    wait_until(lambda: container.used() < full - 40 * MIB, what="the return of idle memory")
    assert container.kills() == 0

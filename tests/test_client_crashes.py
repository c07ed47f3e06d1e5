"""Clients die at any instruction, or write garbage over all that they can: the worker and all others go on."""

import mmap
import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from cluster import wait_until
from crashing_clients import KEYS, is_whole
from session_wire import CONTROL, DATA, INDEX, MARKS, Session

ROUNDS = 500
_STALL_MAX_S = 2  # a bound that shows a worker that hangs; how quick it is, the benchmark measures


@pytest.fixture
def seed():
    number = int(os.environ.get("DATASYSTEM_TEST_SEED", random.randrange(1 << 32)))
    print(f"DATASYSTEM_TEST_SEED={number}")
    return number


class Others:
    """Clients that go on meanwhile, each in a thread."""

    def __init__(self):
        self._stop = threading.Event()
        self._threads = []
        self.failures = []

    def run(self, step):
        def loop():
            try:
                while not self._stop.is_set():
                    step()
            except BaseException as error:  # shown by the test
                self.failures.append(error)
        self._threads.append(threading.Thread(target=loop))
        self._threads[-1].start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._stop.set()
        for thread in self._threads:
            thread.join()


def reading(worker):
    """Looks at each value when it comes, and again later while it is held."""
    client = worker.client()
    held = []

    def step():
        for key in KEYS:
            try:
                held.extend(client.get_read_only_buffers([key]))
            except RuntimeError as error:
                assert "not found" in str(error)
        assert all(is_whole(buffer.immutable_data()) for buffer in held)
        del held[:-20]
    return step


def steady(worker, gaps, key="steady"):
    client = worker.client()

    def step():
        begun = time.monotonic()
        value = b"%f" % begun
        client.set(key, value)
        assert client.get([key]) == [value]
        gaps.append(time.monotonic() - begun)
        time.sleep(0.002)
    return step


def holdings(worker):
    """What must be as it was when all clients of a test are gone."""
    status = worker.status()
    return {"memory": status["memory"]["allocated_bytes"], "records": status["index"]["record_bytes"],
            "pinned": status["index"]["pinned"], "retired": status["objects"]["retired"],
            "clients": {name: status["clients"][name] for name in ("count", "pins", "unpublished_bytes", "leased_bytes")},
            "descriptors": len(list(Path(f"/proc/{worker.pid}/fd").iterdir()))}


def wait_for_holdings(worker, before):
    try:
        wait_until(lambda: holdings(worker) == before)
    except AssertionError:
        assert holdings(worker) == before  # shows what is different
        raise


def test_killed_clients_leave_nothing_behind_and_others_notice_nothing(cluster, seed):
    worker, = cluster.start(1, shared_memory_size_mb=256)
    client = worker.client()
    client.set("steady", b"x")
    client.delete(["steady"])
    before = holdings(worker)
    gaps = []
    with Others() as others:
        others.run(reading(worker))
        others.run(steady(worker, gaps))
        killing = subprocess.run([sys.executable, Path(__file__).with_name("crashing_clients.py"), worker.host,
                                  str(worker.port), str(ROUNDS), str(seed)], timeout=300, check=False,
                                 capture_output=True, text=True)
    assert killing.returncode == 0, killing.stderr + killing.stdout
    assert not others.failures, others.failures
    assert max(gaps) < _STALL_MAX_S
    for each in worker._clients[1:]:
        each.close()
    client.delete([*KEYS, "steady"])
    wait_for_holdings(worker, before)


def test_the_index_cannot_be_written_and_no_segment_be_cut(pair):
    session = Session(pair[0], unix_socket=True)
    segments = session.segments()
    assert set(segments) == {DATA, INDEX, MARKS, CONTROL}
    index, index_size = segments[INDEX]
    with pytest.raises(PermissionError):
        mmap.mmap(index, index_size, prot=mmap.PROT_READ | mmap.PROT_WRITE)
    with pytest.raises(PermissionError):
        os.pwrite(index, b"x", 0)
    # Not by another way to the same file either.
    path = f"/proc/self/fd/{index}"
    with open(path, "r+b", buffering=0) as again, pytest.raises(PermissionError):
        again.write(b"x")
    with open(path, "r+b", buffering=0) as again, pytest.raises(PermissionError):
        mmap.mmap(again.fileno(), index_size, prot=mmap.PROT_READ | mmap.PROT_WRITE)
    for descriptor, size in segments.values():
        for length in (0, size - 4096, size + 4096):
            with pytest.raises(PermissionError):
                os.ftruncate(descriptor, length)
    session.close()


@pytest.mark.parametrize("kinds", [(CONTROL, MARKS), (CONTROL, MARKS, DATA)], ids=["but values", "and values"])
def test_garbage_over_all_that_a_client_can_write_harms_nobody_else(cluster, seed, kinds):
    worker, = cluster.start(1)
    before = holdings(worker)
    rng = random.Random(seed)
    victim = worker.client()
    vandal = Session(worker, unix_socket=True)
    segments = vandal.segments()
    views = [mmap.mmap(segments[kind][0], segments[kind][1]) for kind in kinds]
    names = [f"victim-{i}" for i in range(50)]
    with Others() as others:
        gaps = []
        if DATA not in kinds:
            others.run(steady(worker, gaps))
        for number in range(200):
            for view in views:
                for _ in range(20):
                    length = rng.choice((1, 4, 8, 4096, 1 << 20))
                    at = rng.randrange(max(1, len(view) - length))
                    view[at:at + min(length, len(view) - at)] = rng.randbytes(min(length, len(view) - at))
            value = b"%d" % number * rng.choice((1, 100, 100_000))
            name = rng.choice(names)
            victim.set(name, value)
            got, = victim.get([name])
            assert len(got) == len(value) and (DATA in kinds or got == value)
            if rng.random() < 0.5:
                assert victim.delete([name]) == [] and victim.exist([name]) == [False]
            if number % 20 == 0:
                vandal.create(600_000)  # its own books go on, too
    assert not others.failures, others.failures
    vandal.close()
    for view in views:
        view.close()
    victim.delete([*names, "steady"])
    for each in worker._clients:
        each.close()
    wait_until(lambda: holdings(worker)["memory"] == before["memory"], what="release of all memory")
    assert worker.process.poll() is None

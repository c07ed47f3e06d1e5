"""A worker that is killed and started again at the same address, while clients are busy with it."""

import asyncio
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cluster import wait_until
from yr.datasystem.aio import AsyncKVClient

LOAD = Path(__file__).with_name("restarted_worker_load.py")
LIVES = 6
# Values, index, marks, and the pins of one session.
FILES_OF_A_WORKER = 4


def start_again(worker, how=signal.SIGKILL):
    worker.kill(how)
    worker.process.wait()
    worker.launch()
    wait_until(worker.is_ready, 60, "readiness")


def test_busy_clients_survive_every_restart_and_map_one_worker_at_a_time(cluster):
    seed = int(os.environ.get("DATASYSTEM_TEST_SEED", random.randrange(1 << 32)))
    print(f"DATASYSTEM_TEST_SEED={seed}")
    worker, = cluster.start(1)
    clients = [subprocess.Popen([sys.executable, LOAD, worker.host, str(worker.port), str(seed + 10 * number)],
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
               for number in range(3)]
    try:
        assert [client.stdout.readline() for client in clients] == ["ready\n"] * 3
        for life in range(LIVES):
            start_again(worker, signal.SIGTERM if life % 3 == 2 else signal.SIGKILL)
            wait_until(lambda: worker.status()["clients"]["count"] == 3 and worker.status()["requests"]["sets"] > 20,
                       30, "the return of all clients")
        for client in clients:
            output, errors = client.communicate("", 60)
            assert client.returncode == 0, errors
            assert output.split() == [str(FILES_OF_A_WORKER), "0"]
    finally:
        for client in clients:
            client.kill()
            client.wait()
    wait_until(lambda: worker.status()["clients"] == {**worker.status()["clients"], "count": 0, "pins": 0,
                                                      "unpublished_bytes": 0, "leased_bytes": 0},
               what="the end of all sessions")
    names = [f"key-{i}" for i in range(20)] + ["alive"]
    worker.client().delete(names)
    wait_until(lambda: worker.status()["memory"]["allocated_bytes"] == 0, what="release of all memory")


def test_a_buffer_that_was_made_before_the_restart_is_refused_with_the_remedy(cluster):
    worker, = cluster.start(1)
    client = worker.client()
    large, = client.mcreate(["large"], [600_000])
    small, = client.mcreate(["small"], [100])
    large.memory_copy(b"l" * 600_000)
    small.memory_copy(b"s" * 100)
    start_again(worker)
    for _ in range(2):
        with pytest.raises(RuntimeError, match=r"^code: \[Invalid parameter\].*create a new buffer"):
            client.mset_buffer([large])
    client.mset_buffer([small])  # its memory is the client's own
    assert client.get(["small"]) == [b"s" * 100] and client.exist(["large"]) == [False]
    large.memory_copy(b"L" * 600_000)  # still its own to write, whoever has the memory now
    client.set("other", b"o" * 600_000)
    assert client.get(["other"]) == [b"o" * 600_000]


def test_an_asyncio_client_finds_its_worker_again(cluster):
    worker, = cluster.start(1)

    async def use():
        async with AsyncKVClient(worker.host, worker.port, timeout_ms=20000) as client:
            await client.set("key", b"old")
            waiting = asyncio.create_task(client.get(["never"], False, 15000))
            await asyncio.sleep(0)
            await asyncio.to_thread(start_again, worker)
            with pytest.raises(RuntimeError):
                await waiting
            await client.set("key", b"new")
            assert await client.get(["key"]) == [b"new"]
    asyncio.run(use())

"""What one worker promises its clients: what is held stays, memory comes back and is never exceeded, nobody is in
anybody's way."""

import os
import random
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cluster import wait_until
from yr.datasystem import KVClient, WriteMode
from yr.datasystem.kv_client import ExistenceOpt, ReadParam

KIB, MIB = 1 << 10, 1 << 20
EVICT = WriteMode.NONE_L2_CACHE_EVICT
# Where something changes: slab to pages, in the message to in place, one thread to several that copy.
THRESHOLDS = (14 * KIB, 500 * KIB, 8 * MIB)
INTERFACES = {"shared memory": {}, "tcp": {"ipc_through_shared_memory": "false"}}


def allocated(worker):
    return worker.status()["memory"]["allocated_bytes"]


def maps(pid="self"):
    """The memory files of workers that the process has mapped: their inodes."""
    return set(re.findall(r" (\d+) +/memfd:datasystem", Path(f"/proc/{pid}/maps").read_text()))


def error_of(call):
    with pytest.raises(RuntimeError) as failure:
        call()
    return re.sub(r", traceId: .*|\d+\.\d+\.\d+\.\d+:\d+", "", str(failure.value))


@pytest.fixture(params=INTERFACES)
def any_worker(request, cluster):
    """Clients of it get the same interface over either way."""
    worker, = cluster.start(1, **INTERFACES[request.param])
    assert bool(worker.unix_socket.exists()) == (request.param == "shared memory")
    return worker


def test_values_around_every_threshold_come_and_go_whole(any_worker):
    writer, reader = any_worker.client(), any_worker.client()
    for size in [1, *(threshold + step for threshold in THRESHOLDS for step in (-1, 0, 1))]:
        value = random.Random(size).randbytes(size)
        writer.set("value", value)
        assert reader.get(["value"]) == [value]
        buffers = writer.mcreate(["made"], [size])
        buffers[0].memory_copy(value)
        writer.mset_buffer(buffers)
        view = reader.get_read_only_buffers(["made"])[0]
        # What is held stays, whatever becomes of the key.
        writer.set("made", b"x" * size)
        writer.delete(["made", "value"])
        assert view.immutable_data() == value
    del view
    wait_until(lambda: allocated(any_worker) == 0, what="release of all memory")


def test_the_whole_interface_has_the_same_results_and_errors_either_way(any_worker):
    client = any_worker.client()
    client.set("key", b"0123456789")
    assert client.mset(["a", "b"], [b"1", b"2"]) == []
    client.msettx(["c", "d"], [b"3", b"4"], existence_opt=ExistenceOpt.NX)
    assert client.get(["a", "b", "c", "d", "none"]) == [b"1", b"2", b"3", b"4", None]
    assert client.read([ReadParam("key", 2, 3)])[0].immutable_data() == b"234"
    assert client.expire(["a", "none"], 100) == ["none"]
    assert client.exist(["a", "none"]) == [True, False]
    assert client.mset(["a"], [b"new"], existence_opt=ExistenceOpt.NX) == []
    assert client.get(["a"]) == [b"1"]
    assert error_of(lambda: client.get(["none"])) == "code: [Key not found], msg: [Cannot get objects from worker"
    assert error_of(lambda: client.msettx(["a", "x"], [b"1"] * 2, existence_opt=ExistenceOpt.NX)) == (
        "code: [Object already exist error], msg: [key a exists already")
    assert error_of(lambda: client.read([ReadParam("key", 10, 1)])).startswith(
        "code: [Out of range], msg: [offset 10 is at or after the end")
    assert error_of(lambda: client.set("key", b"")) == (
        "code: [Invalid parameter], msg: [The dataSize value should be bigger than zero.")
    assert "Out of memory" in error_of(lambda: client.set("big", bytes(65 * MIB)))
    assert client.delete(["a", "none"]) == []


def test_a_time_to_live_is_kept_by_readers_and_its_memory_comes_back(cluster):
    worker, = cluster.start(1)
    client = worker.client()
    client.set("short", bytes(MIB), ttl_second=1)
    view = client.get_read_only_buffers(["short"])[0]
    sets = worker.status()["requests"]
    wait_until(lambda: client.exist(["short"]) == [False], 5, "the end of the value")
    assert "Key not found" in error_of(lambda: client.get(["short"]))
    assert bytes(view.immutable_data()) == bytes(MIB)
    assert allocated(worker) >= MIB
    del view
    wait_until(lambda: allocated(worker) == 0, 5, "release of the memory")
    assert worker.status()["requests"]["sets"] == sets["sets"]


CONTENDER = """
import sys
from yr.datasystem import KVClient
from yr.datasystem.kv_client import ExistenceOpt
client = KVClient(sys.argv[1], int(sys.argv[2]))
client.init()
print("ready", flush=True)
for line in sys.stdin:
    number = int(line)
    client.set(f"shared-{number}", sys.argv[3].encode() * 100)
    try:
        client.msettx([f"once-{number}"], [sys.argv[3].encode()], existence_opt=ExistenceOpt.NX)
        print("created", flush=True)
    except RuntimeError as error:
        print("exists" if "already exist" in str(error) else error, flush=True)
"""


def test_of_eight_processes_that_set_a_key_at_once_none_fails_and_one_wins_everywhere(pair):
    processes = [subprocess.Popen([sys.executable, "-c", CONTENDER, worker.host, str(worker.port), str(number)],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
                 for number in range(4) for worker in pair]
    try:
        assert [process.stdout.readline() for process in processes] == ["ready\n"] * 8
        clients = [worker.client() for worker in pair]
        for number in range(30):
            for process in processes:
                process.stdin.write(f"{number}\n")
                process.stdin.flush()
            outcomes = sorted(process.stdout.readline() for process in processes)
            assert outcomes == ["created\n"] + ["exists\n"] * 7
            for key in (f"shared-{number}", f"once-{number}"):
                here, there = (client.get([key]) for client in clients)
                assert here == there and len(set(here[0])) == 1
    finally:
        for process in processes:
            process.kill()
            process.wait()


def test_a_client_that_holds_more_views_than_it_has_pins_can_still_read(cluster):
    worker, = cluster.start(1)
    client = worker.client()
    names = [f"pinned-{i}" for i in range(50)]
    client.mset(names, [name.encode() for name in names])
    held = [buffer for _ in range(90) for buffer in client.get_read_only_buffers(names)]
    status = worker.status()
    assert (len(held), status["index"]["pinned"], status["clients"]["pins"]) == (4500, 4096, 0)
    client.set("large", bytes(600 * KIB))
    assert client.get(["large", names[7]]) == [bytes(600 * KIB), names[7].encode()]
    client.mset(names, [b"new"] * 50)
    assert all(bytes(buffer.immutable_data()) == names[i % 50].encode() for i, buffer in enumerate(held))
    del held
    client.delete([*names, "large"])
    wait_until(lambda: allocated(worker) == 0, what="release of all memory")


def test_a_full_index_refuses_what_must_stay_and_evicts_what_may_go(cluster):
    worker, = cluster.start(1)
    client = worker.client()
    bound = worker.status()["index"]["bytes_max"]
    long_key = "k" * 1000
    count = 0
    with pytest.raises(RuntimeError, match=r"^code: \[Out of memory\].*the index is full"):
        while True:
            batch = [f"{count + i}{long_key}" for i in range(1000)]
            failed = client.mset(batch, [b"v"] * 1000)
            count += 1000
            if failed:
                client.set(failed[0], b"v")
    assert worker.status()["index"]["record_bytes"] <= bound
    assert client.get([f"0{long_key}"]) == [b"v"]
    for begin in range(0, count, 10_000):
        client.delete([f"{i}{long_key}" for i in range(begin, min(count, begin + 10_000))])
    for begin in range(0, 2 * count, 10_000):
        assert client.mset([f"e{begin + i}{long_key}" for i in range(10_000)], [b"v"] * 10_000, EVICT) == []
    status = worker.status()
    assert status["objects"]["evictions"] > 0 and status["index"]["record_bytes"] <= bound


def test_three_times_the_memory_of_evictable_values_of_all_sizes_goes_in(cluster):
    worker, = cluster.start(1, shared_memory_size_mb=256)
    client = worker.client()
    rng = random.Random(4711)
    source = rng.randbytes(64 * MIB)
    written = 0
    number = 0
    while written < 3 * 256 * MIB:
        size = min(64 * MIB, int(KIB * 2 ** rng.uniform(0, 16)))
        client.set(f"mixed-{number}", memoryview(source)[:size], EVICT)
        assert client.get([f"mixed-{number}"])[0] == source[:size]
        written += size
        number += 1
        if number % 50 == 0:
            memory = worker.status()["memory"]
            assert memory["reserved_bytes"] <= memory["size_bytes"] == 256 * MIB
    assert worker.status()["objects"]["evictions"] > 0


def test_what_may_not_be_evicted_stays_and_the_refusal_says_what_would_fit(cluster):
    worker, = cluster.start(1)
    client = worker.client()
    count = 0
    with pytest.raises(RuntimeError, match=r"no cache memory for 5242880 bytes: the largest value that would fit has "):
        while True:
            client.set(f"stays-{count}", bytes([count + 1]) * (5 * MIB))
            count += 1
    assert count >= 11
    fits = int(re.search(r"fit has (\d+) bytes", error_of(lambda: client.set("more", bytes(5 * MIB)))).group(1))
    client.set("more", bytes(fits))
    assert all(client.get([f"stays-{i}"]) == [bytes([i + 1]) * (5 * MIB)] for i in range(count))


def test_a_client_finds_its_worker_again_and_lets_go_of_the_old_memory(cluster):
    worker, = cluster.start(1)
    of_other_tests = maps()
    client = KVClient(worker.host, worker.port, timeout_ms=20000)
    client.init()
    client.set("key", bytes(MIB))
    view = client.get_read_only_buffers(["key"])[0]
    old = maps() - of_other_tests
    assert old
    worker.kill()
    worker.process.wait()
    worker.launch()
    wait_until(worker.is_ready, 60, "readiness")
    client.set("key", b"1" * MIB)  # by itself
    assert client.get(["key"]) == [b"1" * MIB]
    assert bytes(view.immutable_data()) == bytes(MIB)
    new = maps() - of_other_tests - old
    assert new and old <= maps()
    del view
    client.get(["key"])
    wait_until(lambda: not old & maps(), what="the end of the old mappings")
    assert new <= maps()
    client.close()
    assert not new & maps()


def test_a_set_goes_on_when_its_worker_is_started_again_during_the_call(cluster):
    worker, = cluster.start(1)
    client = worker.client()
    client.set("before", b"1")
    worker.kill(signal.SIGKILL)
    worker.process.wait()
    pid = os.fork()
    if pid == 0:
        worker.launch()
        os._exit(0)
    try:
        client.set("after", b"2")
        assert client.get(["after"]) == [b"2"] and client.exist(["before"]) == [False]
    finally:
        os.waitpid(pid, 0)
        os.kill(worker.status()["pid"], signal.SIGKILL)

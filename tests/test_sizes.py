"""Values of every size cross from one node to the other intact."""

import hashlib
import mmap
import random

import pytest

from cluster import wait_until

THRESHOLD = 500 << 10  # from this size on, values pass through shared memory between client and worker
SIZES = [1, 2, 63, 64, 65, 4095, 4096, 4097, 65537, THRESHOLD - 1, THRESHOLD, THRESHOLD + 1, (1 << 20) + 3, 64 << 20,
         512 << 20]


def value_of(size):
    """Bytes that do not repeat at any power of two: a misplaced piece changes the digest."""
    piece = random.Random(size).randbytes(min(size, (1 << 20) + 7))
    return (piece * (size // len(piece) + 1))[:size]


@pytest.fixture(scope="module")
def large_pair(module_cluster):
    return module_cluster(shared_memory_size_mb=2048).start(2)


@pytest.mark.parametrize("size", SIZES)
def test_a_value_of_any_size_crosses_intact_and_gives_its_memory_back(large_pair, size):
    first, second = large_pair
    value = value_of(size)
    writer, reader = first.client(60000, 60000), second.client(60000, 60000)
    writer.set("sized", value)
    expected = hashlib.sha1(value).hexdigest()
    del value
    for client in (reader, writer):
        buffer, = client.get_read_only_buffers(["sized"])
        assert len(buffer) == size
        assert hashlib.sha1(buffer.immutable_data()).hexdigest() == expected
        del buffer
    assert reader.delete(["sized"]) == []
    for worker in large_pair:
        wait_until(lambda: worker.status()["memory"]["allocated_bytes"] == 0, what="release of the memory")


def test_a_value_that_cannot_fit_is_out_of_memory_and_both_workers_live_on(large_pair):
    first, second = large_pair
    client = first.client(60000, 60000)
    client.set("before", b"still here")
    with mmap.mmap(-1, 2100 << 20) as untouched, memoryview(untouched) as too_large:
        with pytest.raises(RuntimeError, match=r"^code: \[Out of memory\]"):
            client.set("too-large", too_large)
    assert client.exist(["too-large"]) == [False]
    assert second.client().get(["before"]) == [b"still here"]
    client.delete(["before"])


def test_a_reader_without_room_is_told_so_and_both_workers_live_on(cluster):
    large, = cluster.start(1)
    small, = cluster.start(1, shared_memory_size_mb=8)
    large.client().set("wide", bytes(16 << 20))
    with pytest.raises(RuntimeError, match="Out of memory"):
        small.client().get(["wide"])
    small.client().set("narrow", b"fits")
    assert large.client().get(["narrow"]) == [b"fits"]

"""What one node wrote is what every node reads: no stale values, no torn ones."""

import hashlib
import random
import threading

import pytest

from cluster import wait_until
from session_wire import Session


@pytest.fixture
def clients(pair):
    return [worker.client() for worker in pair]


def value_of(client, key):
    """None for a key that does not exist."""
    try:
        return client.get([key])[0]
    except RuntimeError as error:
        assert str(error).startswith("code: [Key not found]"), error
        return None


@pytest.mark.parametrize("size", [8, 100_000, 1 << 20])
def test_the_last_set_is_what_both_nodes_read(clients, size):
    first, second = clients
    for i in range(50):
        key, old, new = f"last-{size}-{i % 5}", b"a%7d" % i * (size // 8), b"b%7d" % i * (size // 8)
        first.set(key, old)
        second.set(key, new)
        assert first.get([key]) == second.get([key]) == [new]


@pytest.mark.parametrize("size", [8, 1 << 20])
def test_an_overwrite_reaches_a_node_that_holds_a_replica(clients, size):
    first, second = clients
    for i in range(50):
        value = bytes([i]) * size
        first.set("replicated", value)
        assert second.get(["replicated"]) == [value]
        assert second.get(["replicated"]) == [value]  # now from the replica


def test_a_held_view_keeps_its_bytes_when_another_node_overwrites_and_deletes(clients):
    first, second = clients
    first.set("held", b"1" * (1 << 20))
    held, = second.get_read_only_buffers(["held"])
    first.set("held", b"2" * (1 << 20))
    assert second.get(["held"]) == [b"2" * (1 << 20)]
    first.delete(["held"])
    assert bytes(held.immutable_data()) == b"1" * (1 << 20)


def test_a_delete_is_seen_on_both_nodes(clients):
    first, second = clients
    for i in range(20):
        key = f"deleted-{i}"
        second.set(key, b"x")
        assert first.get([key]) == [b"x"]
        assert first.delete([key]) == []
        assert second.exist([key]) == first.exist([key]) == [False]
        assert value_of(second, key) is None and value_of(first, key) is None


def test_the_end_of_a_ttl_is_seen_on_both_nodes(clients):
    first, second = clients
    first.set("short-lived", b"x", ttl_second=1)
    assert second.get(["short-lived"]) == [b"x"]
    for client in clients:
        wait_until(lambda: value_of(client, "short-lived") is None, 10, "the end of the key")
        assert client.exist(["short-lived"]) == [False]


def test_a_set_without_a_ttl_takes_the_old_one_away(clients):
    first, second = clients
    first.set("renewed", b"old", ttl_second=1)
    first.set("witness", b"x", ttl_second=1)
    second.set("renewed", b"new")
    wait_until(lambda: value_of(first, "witness") is None, 10, "the end of the witness")
    assert first.get(["renewed"]) == second.get(["renewed"]) == [b"new"]


def test_a_get_that_waits_is_woken_by_a_set_on_the_other_node(clients, pair):
    for i, (waiting, setting) in enumerate([(0, 1), (1, 0)] * 3):
        key, got = f"awaited-{i}", []
        waiter = threading.Thread(target=lambda: got.extend(clients[waiting].get([key], False, 15000)))
        waiter.start()
        clients[setting].set(key, b"at last")
        waiter.join(20)
        assert got == [b"at last"]


def test_of_many_sets_of_an_absent_key_exactly_one_wins(pair, clients):
    sessions = [Session(pair[i % 2]) for i in range(8)]
    for turn in range(20):
        key, reasons = f"contested-{turn}", {}
        start = threading.Barrier(len(sessions))

        def contend(number):
            start.wait()
            reasons[number] = sessions[number].set_if_absent(key.encode(), b"%d" % number)

        threads = [threading.Thread(target=contend, args=[i]) for i in range(len(sessions))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert len(reasons) == len(sessions)
        winners = [number for number, reason in reasons.items() if not reason]
        assert len(winners) == 1
        assert all("exist" in reason for number, reason in reasons.items() if number not in winners), reasons
        assert clients[0].get([key]) == clients[1].get([key]) == [b"%d" % winners[0]]
    for session in sessions:
        session.close()


def test_a_batch_of_keys_from_both_nodes_comes_back_in_order(clients):
    first, second = clients
    keys = [f"batch-{i}" for i in range(500)]
    random.Random(1).shuffle(keys)
    for i, key in enumerate(keys):
        clients[i % 2].set(key, hashlib.sha1(key.encode()).digest())
    wanted = keys + ["batch-missing"]
    expected = [hashlib.sha1(key.encode()).digest() for key in keys] + [None]
    assert first.get(wanted) == second.get(wanted) == expected
    assert first.exist(wanted) == second.exist(wanted) == [True] * 500 + [False]
    assert second.delete(keys) == []
    assert first.exist(keys) == [False] * 500

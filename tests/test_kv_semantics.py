"""What the calls mean, seen from two nodes: time to live and its changes, batches larger than a message, keys that occur
twice, keys that are illegal."""

import threading
import time

import pytest

from cluster import wait_until
from yr.datasystem.kv_client import ExistenceOpt, ReadParam

MANY = 10_001  # more than one message may name
TTL_MAX = (1 << 32) - 1


@pytest.fixture
def clients(pair):
    return [worker.client() for worker in pair]


def found(client, key):
    try:
        return client.get([key])[0]
    except RuntimeError as error:
        assert str(error).startswith("code: [Key not found]"), error
        return None


@pytest.mark.parametrize("by", [0, 1], ids=["owner", "other"])
def test_a_shorter_time_to_live_ends_all_copies(clients, by):
    first, second = clients
    names = [f"shortened-{by}-{i}" for i in range(50)]
    first.mset(names, [b"value"] * 50)
    assert second.get(names) == [b"value"] * 50  # copies, which are read without asking anybody
    begun = time.monotonic()
    assert clients[by].expire(names, 1) == []
    wait_until(lambda: time.monotonic() > begun + 1.05)
    for client in clients:
        assert client.exist(names) == [False] * 50
        assert all(found(client, name) is None for name in names)


@pytest.mark.parametrize("ttl", [0, 100, TTL_MAX])
def test_a_longer_time_to_live_counts_for_all_copies(clients, ttl):
    first, second = clients
    begun = time.monotonic()
    first.set("prolonged", b"value", ttl_second=1)
    assert second.get(["prolonged"]) == [b"value"]
    assert second.expire(["prolonged"], ttl) == []
    wait_until(lambda: time.monotonic() > begun + 1.2)
    assert first.get(["prolonged"]) == second.get(["prolonged"]) == [b"value"]


@pytest.mark.parametrize("ttl", [1 << 31, TTL_MAX])
def test_the_longest_times_to_live_do_not_overflow(clients, ttl):
    first, second = clients
    first.set("long-lived", b"value", ttl_second=ttl)
    assert first.get(["long-lived"]) == second.get(["long-lived"]) == [b"value"]
    for bad in (TTL_MAX + 1, -1):
        with pytest.raises(RuntimeError, match="ttl_second"):
            first.set("long-lived", b"other", ttl_second=bad)
    assert second.get(["long-lived"]) == [b"value"]


@pytest.mark.parametrize("setter,getter", [(0, 1), (1, 0), (0, 0)])
def test_a_key_whose_time_is_over_can_be_created_anew(clients, setter, getter):
    key = f"created-anew-{setter}{getter}"
    old, new = clients[setter], clients[getter]
    old.set(key, b"old", ttl_second=1)
    new.get([key])
    with pytest.raises(RuntimeError, match="already exist"):
        new.msettx([key], [b"early"], existence_opt=ExistenceOpt.NX)
    wait_until(lambda: found(new, key) is None, 5, "the end of the old value")
    new.msettx([key], [b"new"], existence_opt=ExistenceOpt.NX)
    assert old.get([key]) == new.get([key]) == [b"new"]


def test_ten_thousand_and_one_keys_at_once_between_two_nodes(clients):
    first, second = clients
    names = [f"many-{i}" for i in range(MANY)]
    values = [b"%d" % i * (1 + i % 50) for i in range(MANY)]
    assert first.mset(names, values) == []
    assert second.exist(names) == [True] * MANY
    parts = second.read([ReadParam(name, 1, 3) for name in names[10:]])  # from the other node
    assert [bytes(part.immutable_data()) for part in parts] == [value[1:4] for value in values[10:]]
    assert second.get(names) == values
    assert [bytes(view.immutable_data()) for view in second.get_read_only_buffers(names)] == values
    assert second.get([*names[:-1], "many-none"]) == [*values[:-1], None]
    assert second.expire(names, 1000) == []
    buffers = second.mcreate(names, [8] * MANY)
    for i, buffer in enumerate(buffers):
        buffer.memory_copy(b"%8d" % i)
    second.mset_buffer(buffers)
    assert first.get(names) == [b"%8d" % i for i in range(MANY)]
    assert second.delete(names) == []
    assert first.exist(names) == second.exist(names) == [False] * MANY


def test_a_key_that_occurs_twice_is_answered_twice_and_set_once(clients):
    first, second = clients
    assert first.mset(["twin", "other", "twin"], [b"first", b"other", b"second"]) == ["twin"]
    for client in clients:
        assert client.get(["twin", "none", "twin"]) == [b"first", None, b"first"]
        assert client.exist(["twin", "none", "twin"]) == [True, False, True]
    assert second.expire(["twin", "twin"], 100) == []
    with pytest.raises(RuntimeError, match="twin occurs twice"):
        second.read([ReadParam("twin"), ReadParam("twin")])
    assert second.delete(["twin", "twin"]) == [] and first.exist(["twin"]) == [False]


def test_an_illegal_key_of_a_batch_fails_alone_and_is_named(clients):
    first, second = clients
    names = ["good-1", "not good", "good-2", ""]
    assert first.mset(names, [b"1", b"2", b"3", b"4"]) == ["not good", ""]
    for client in clients:
        assert client.get(names) == [b"1", None, b"3", None]
        with pytest.raises(RuntimeError, match="'not good', number 2 of 4"):
            client.exist(names)
    assert second.expire(names, 100) == ["not good", ""]
    assert second.delete(names) == ["not good", ""]
    assert first.exist(["good-1", "good-2"]) == [False, False]


def test_many_that_wait_for_a_key_are_all_woken_by_its_publication_elsewhere(clients):
    first, second = clients
    got, requests = [], 20

    def wait():
        got.append((second.get(["long-awaited"], False, 20000), time.monotonic()))
    threads = [threading.Thread(target=wait) for _ in range(requests)]
    for thread in threads:
        thread.start()
    first.set("sign", b"x")
    assert not got
    begun = time.monotonic()
    first.set("long-awaited", b"here")
    for thread in threads:
        thread.join(30)
    assert [value for value, _ in got] == [[b"here"]] * requests
    assert max(at for _, at in got) - begun < 2


def test_buffers_of_two_clients_are_published_by_either(clients, pair):
    one, other = pair[0].client(), pair[0].client()
    for size in (100, 600_000):
        buffers = one.mcreate(["of-one"], [size]) + other.mcreate(["of-other"], [size])
        for letter, buffer in zip(b"12", buffers):
            buffer.memory_copy(bytes([letter]) * size)
        other.mset_buffer(buffers)
        for client in clients:
            assert client.get(["of-one", "of-other"]) == [b"1" * size, b"2" * size]
    assert pair[0].status()["clients"]["unpublished_bytes"] == 0

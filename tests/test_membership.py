"""Workers come and go; what they do not take with them stays readable."""

import signal
import threading

import pytest

from cluster import wait_until

KEYS = [f"key-{i}" for i in range(300)]


def value_of(key):
    return (key * 50).encode()


def test_a_worker_that_joins_later_reads_and_serves_what_was_set_before(cluster):
    first, = cluster.start(1)
    client = first.client()
    for key in KEYS:
        client.set(key, value_of(key))
    second, = cluster.start(1)
    # The directory has moved: the new worker answers for its part of the keys.
    entries = [worker.status()["directory"]["entries"] for worker in (first, second)]
    assert entries[1] > 0 and sum(entries) == len(KEYS)
    assert second.client().get(KEYS) == [value_of(key) for key in KEYS]
    # Keys of either part can be changed through either worker.
    second.client().set(KEYS[0], b"new")
    client.set(KEYS[1], b"new")
    for worker in (first, second):
        assert worker.client().get(KEYS[:2]) == [b"new", b"new"]


def test_sets_and_gets_go_on_while_workers_join_and_leave(cluster):
    first, = cluster.start(1)
    stop, failures, counts = threading.Event(), [], []

    def load(number):
        client = first.client()
        count = 0
        try:
            while not stop.is_set():
                key = f"load-{number}-{count % 20}"
                client.set(key, b"%d" % count)
                assert client.get([key]) == [b"%d" % count]
                count += 1
        except Exception as error:  # pylint: disable=broad-except
            failures.append(error)
        counts.append(count)

    threads = [threading.Thread(target=load, args=[i]) for i in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(2):
            joined = cluster.start(1)[0]
            assert joined.stop() == 0
            cluster.wait_for_members([first])
    finally:
        stop.set()
        for thread in threads:
            thread.join(60)
    assert failures == []
    assert min(counts) > 0


def test_a_graceful_exit_loses_the_only_copies_it_held_and_nothing_else(cluster):
    first, second = cluster.start(2)
    here, there = first.client(), second.client()
    for key in KEYS:
        here.set(f"{key}-first", value_of(key))
        there.set(f"{key}-second", value_of(key))
    there.set("read-by-first", b"replicated")
    assert here.get(["read-by-first"]) == [b"replicated"]
    assert second.stop() == 0
    assert "leaving the cluster" in second.log()
    cluster.wait_for_members([first])
    assert here.get([f"{key}-first" for key in KEYS]) == [value_of(key) for key in KEYS]
    assert here.exist([f"{key}-second" for key in KEYS]) == [False] * len(KEYS)
    with pytest.raises(RuntimeError, match=r"^code: \[Key not found\]"):
        here.get([KEYS[0] + "-second"])
    assert here.get(["read-by-first"]) == [b"replicated"]
    here.set("read-by-first", b"still mine to change")
    assert here.get(["read-by-first"]) == [b"still mine to change"]


def test_a_worker_that_is_started_again_at_the_same_address_joins_empty(cluster):
    first, second = cluster.start(2)
    second.client().set("lost", b"x")
    second.kill()
    second.process.wait()
    second.launch()
    wait_until(second.is_ready, 60, "readiness of the worker's second life")
    cluster.wait_for_members([first, second])
    for worker in (first, second):
        assert worker.client().exist(["lost"]) == [False]
    second.client().set("new", b"y")
    assert first.client().get(["new"]) == [b"y"]


def test_sigterm_during_load_exits_with_0_within_seconds(cluster):
    first, second = cluster.start(2)
    stop, begun = threading.Event(), threading.Barrier(5)

    def load(number):
        client = (first, second)[number % 2].client(5000, 5000)
        client.set(f"load-{number}", bytes(600_000))
        begun.wait()
        while not stop.is_set():
            try:
                client.set(f"load-{number}", bytes(600_000))
                client.get([f"load-{(number + 1) % 4}"])
            except RuntimeError:
                pass  # the worker is gone, or the key with it

    threads = [threading.Thread(target=load, args=[i]) for i in range(4)]
    for thread in threads:
        thread.start()
    try:
        begun.wait(30)
        assert second.stop(deadline_s=15) == 0
        assert first.stop(deadline_s=15) == 0
    finally:
        stop.set()
        for thread in threads:
            thread.join(60)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_worker_whose_etcd_is_gone(cluster, how):
    worker, = cluster.start(1)
    cluster.etcd.kill()
    worker.kill(how)
    assert worker.process.wait(15) == 0

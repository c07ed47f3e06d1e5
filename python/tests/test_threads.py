"""No blocking call holds the GIL, and clients survive what threads and fork do to them."""

import os
import sys
import threading
import time

import pytest

from yr.datasystem import KVClient


def ticks_while(call):
    """How often another thread ran while `call` did."""
    count = 0
    stop = threading.Event()

    def tick():
        nonlocal count
        while not stop.wait(0.001):
            count += 1

    ticker = threading.Thread(target=tick)
    ticker.start()
    try:
        before = count
        call()
        return count - before
    finally:
        stop.set()
        ticker.join()


def test_other_threads_run_while_init_waits_for_an_answer(silent_server):
    client = KVClient(*silent_server, timeout_ms=500)

    def init():
        with pytest.raises(RuntimeError, match=r"^code: \[RPC deadline exceeded\]"):
            client.init()

    assert ticks_while(init) > 20


def test_init_returns_within_its_timeout(silent_server):
    begin = time.monotonic()
    with pytest.raises(RuntimeError):
        KVClient(*silent_server, connect_timeout_ms=300).init()
    assert 0.25 < time.monotonic() - begin < 5


def test_other_threads_run_while_a_get_waits_for_its_key(client):
    def get():
        with pytest.raises(RuntimeError, match=r"^code: \[Key not found\]"):
            client.get(["nobody-sets-this"], False, 300)

    assert ticks_while(get) > 20


def test_other_threads_run_while_values_are_copied(client):
    value = bytes(96 << 20)
    # A thread that waits for the GIL asks for it after this time; the default would hide a short hold.
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        # Up to two ticks come from before and after a call that holds the GIL throughout.
        assert ticks_while(lambda: client.set("large", value)) > 3
        assert ticks_while(lambda: client.get(["large"])) > 3
    finally:
        sys.setswitchinterval(interval)
        client.delete(["large"])


def test_a_read_of_a_small_value_on_this_node_does_not_give_the_interpreter_away(client):
    client.set("small", bytes(1024))
    stop = False

    def busy():
        while not stop:
            pass

    interval = sys.getswitchinterval()
    thread = threading.Thread(target=busy)
    thread.start()
    sys.setswitchinterval(5)  # who gives the interpreter to a busy thread has it back after this time
    try:
        begin = time.monotonic()
        for _ in range(2000):
            client.get(["small"])
            client.get_read_only_buffers(["small"])
            client.exist(["small"])
            assert time.monotonic() - begin < 5
    finally:
        stop = True
        sys.setswitchinterval(interval)
        thread.join()
        client.delete(["small"])


def test_one_client_serves_many_threads(client):
    failures = []

    def work(number):
        try:
            for i in range(50):
                key, value = f"thread-{number}-{i}", os.urandom(1 + 997 * i)
                client.set(key, value)
                assert client.get([key]) == [value]
                client.delete([key])
        except Exception as failure:  # reported by the test's own thread
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_closing_waits_for_the_calls_of_other_threads(worker):
    client = KVClient(*worker)
    client.init()
    waiting = threading.Event()
    outcome = []

    def get():
        waiting.set()
        try:
            outcome.append(client.get(["nobody-sets-this"], False, 200))
        except RuntimeError as failure:
            outcome.append(str(failure))

    thread = threading.Thread(target=get)
    thread.start()
    waiting.wait()
    client.close()
    thread.join(10)
    assert len(outcome) == 1


def in_child(function):
    """Runs `function` in a forked child; returns what it returned as text."""
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(write_end, str(function()).encode())
        finally:
            os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end) as pipe:
        said = pipe.read()
    os.waitpid(pid, 0)
    return said


def test_a_forked_child_is_told_to_make_its_own_client(client):
    client.set("before-fork", b"value")

    def use():
        try:
            client.get(["before-fork"])
        except RuntimeError as failure:
            return failure

    said = in_child(use)
    assert said.startswith("code: [Runtime error], msg: [")
    assert "fork" in said
    assert client.get(["before-fork"]) == [b"value"]


def test_a_client_made_in_a_forked_child_works_and_the_parents_goes_on(client, worker):
    client.set("parents", b"value")

    def use():
        own = KVClient(*worker)
        own.init()
        return own.get(["parents"], True)[0]

    assert in_child(use) == "value"
    assert client.get(["parents"]) == [b"value"]


def test_a_child_that_drops_the_parents_client_does_not_disconnect_it(worker):
    client = KVClient(*worker)
    client.init()
    client.set("k", b"value")

    def drop():
        nonlocal client
        client.close()
        del client
        return "dropped"

    assert in_child(drop) in ("dropped", "")
    assert client.get(["k"]) == [b"value"]

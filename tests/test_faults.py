"""Processes die, stop and come back while clients work. Every call ends by its time-out; nothing leaks."""

import json
import random
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import pytest

from cluster import wait_until

# A call may take a little longer than its time-out on a busy machine.
SLACK_S = 5


def ends(call, timeout_s):
    """The RuntimeError, or the result, of a call that must end by its time-out."""
    begin = time.monotonic()
    try:
        result = call()
    except RuntimeError as error:
        result = error
    assert time.monotonic() - begin < timeout_s + SLACK_S
    return result


@contextmanager
def getting(clients, keys, timeout_s):
    """Clients that get the keys at random in threads. Yields (errors, longest call in seconds, count of good gets)."""
    stop, seen = threading.Event(), {"errors": [], "longest_s": 0.0, "good": 0}

    def work(number):
        rng = random.Random(number)
        while not stop.is_set():
            begin = time.monotonic()
            try:
                clients[number].get([rng.choice(keys)])
                seen["good"] += 1
            except RuntimeError as error:
                seen["errors"].append(str(error))
            seen["longest_s"] = max(seen["longest_s"], time.monotonic() - begin)

    threads = [threading.Thread(target=work, args=[i]) for i in range(len(clients))]
    for thread in threads:
        thread.start()
    try:
        yield seen
    finally:
        stop.set()
        for thread in threads:
            thread.join(timeout_s + SLACK_S)
        assert not any(thread.is_alive() for thread in threads), "a get hangs"
    assert seen["longest_s"] < timeout_s + SLACK_S


def test_the_death_of_the_local_worker_ends_the_gets_of_its_clients(cluster):
    worker, = cluster.start(1)
    keys = [f"key-{i}" for i in range(10)]
    writer = worker.client()
    for i, key in enumerate(keys):
        writer.set(key, bytes(1000 if i % 2 else 1 << 20))
    clients = [worker.client(3000, 3000) for _ in range(5)]
    with getting(clients, keys, 3) as seen:
        wait_until(lambda: seen["good"] > 50)
        worker.kill()
        wait_until(lambda: len(seen["errors"]) >= 5, 3 + SLACK_S)
    assert any("disconnect" in error.lower() or "unavailable" in error.lower() for error in seen["errors"])


def test_clients_find_their_worker_again_when_it_is_started_again(cluster):
    worker, = cluster.start(1)
    client = worker.client(3000, 3000)
    client.set("key", bytes(1 << 20))
    worker.kill()
    worker.process.wait()
    assert isinstance(ends(lambda: client.get(["key"]), 3), RuntimeError)
    worker.launch()
    wait_until(worker.is_ready, 60)
    assert "Key not found" in str(ends(lambda: client.get(["key"]), 3))
    client.set("key", bytes(2 << 20))
    assert client.get(["key"]) == [bytes(2 << 20)]


def test_the_death_of_an_owner_ends_the_gets_of_its_objects_and_survivors_serve_on(new_cluster):
    cluster = new_cluster(node_timeout_s=8, shared_memory_size_mb=256)
    reader, owner = cluster.start(2, enable_data_replication="false")
    here, there = reader.client(), owner.client()
    theirs, ours = [f"theirs-{i}" for i in range(10)], [f"ours-{i}" for i in range(10)]
    for key in theirs:
        there.set(key, bytes(8 << 20))
    for key in ours:
        here.set(key, b"local")
    clients = [reader.client(3000, 3000) for _ in range(4)]
    with getting(clients, theirs, 3) as seen:
        wait_until(lambda: seen["good"] > 20)
        owner.kill()
        wait_until(lambda: len(seen["errors"]) >= 8, 3 + SLACK_S)
        # Local reads go on.
        assert here.get(ours) == [b"local"] * 10
    # When the lease of the dead one has ended, the survivor serves all keys.
    cluster.wait_for_members([reader])
    assert here.exist(theirs) == [False] * 10
    for key in theirs:
        here.set(key, b"anew")
    assert here.get(theirs + ours) == [b"anew"] * 10 + [b"local"] * 10
    assert reader.status()["memory"]["allocated_bytes"] < 1 << 20


def test_gets_from_a_stopped_owner_end_by_their_time_out_and_work_again_when_it_goes_on(cluster):
    reader, owner = cluster.start(2, enable_data_replication="false")
    here, there = reader.client(2000, 2000), owner.client()
    there.set("theirs", bytes(4 << 20))
    here.set("ours", b"local")
    assert here.get(["theirs"]) == [bytes(4 << 20)]
    owner.kill(signal.SIGSTOP)
    try:
        for _ in range(2):
            assert "deadline exceeded" in str(ends(lambda: here.get(["theirs"]), 2))
        assert here.get(["ours"]) == [b"local"]
    finally:
        owner.kill(signal.SIGCONT)
    wait_until(lambda: ends(lambda: here.get(["theirs"]), 2) == [bytes(4 << 20)], what="the return of the owner")
    here.set("theirs", b"overwritten")
    assert there.get(["theirs"]) == [b"overwritten"]
    wait_until(lambda: reader.status()["memory"]["allocated_bytes"] < 1 << 20, what="release of the memory")


def test_calls_to_a_stopped_local_worker_end_by_their_time_out(cluster):
    worker, = cluster.start(1)
    client = worker.client(1000, 1000)
    client.set("small", b"x")
    client.set("large", bytes(1 << 20))
    worker.kill(signal.SIGSTOP)
    try:
        for call in (lambda: client.get(["missing"]), lambda: client.set("small", b"y"),
                     lambda: client.set("large", bytes(1 << 20)), lambda: client.delete(["small"])):
            assert "deadline exceeded" in str(ends(call, 1))
    finally:
        worker.kill(signal.SIGCONT)
    wait_until(lambda: not isinstance(ends(lambda: client.set("small", b"z"), 1), RuntimeError), what="a set that works")
    assert client.get(["small"]) == [b"z"]


def test_clients_read_a_stopped_worker_until_its_lease_ends_and_no_longer(new_cluster):
    worker, = new_cluster(node_timeout_s=5).start(1)
    client = worker.client(1000, 1000)
    client.set("small", b"x")
    client.set("large", bytes(1 << 20))
    view = client.get_read_only_buffers(["large"])[0]
    worker.kill(signal.SIGSTOP)
    try:
        assert client.get(["small"]) == [b"x"]
        wait_until(lambda: "deadline exceeded" in str(ends(lambda: client.get(["small"]), 1)), what="the end of the lease")
        for key in ("small", "large"):
            assert "deadline exceeded" in str(ends(lambda: client.get([key]), 1))
        assert "deadline exceeded" in str(ends(lambda: client.exist(["small"]), 1))
        assert bytes(view.immutable_data()) == bytes(1 << 20)  # what is held stays
    finally:
        worker.kill(signal.SIGCONT)


def test_a_worker_that_was_stopped_for_longer_than_its_lease_serves_nothing_old(new_cluster):
    cluster = new_cluster(node_timeout_s=5)
    first, second = cluster.start(2)
    here, there = first.client(), second.client(3000, 3000)
    keys = [f"key-{i}" for i in range(20)]
    for key in keys:
        here.set(key, b"old")
    assert there.get(keys) == [b"old"] * 20  # copies on the second
    second.kill(signal.SIGSTOP)
    try:
        cluster.wait_for_members([first])
        for key in keys:
            here.set(key, b"new")
    finally:
        second.kill(signal.SIGCONT)
    # From its first breath on: an error or the new value.
    answers = []
    def has_new():
        answer = ends(lambda: there.get(keys), 3)
        answers.append(answer)
        return answer == [b"new"] * 20
    wait_until(has_new, 30, "the new values")
    assert all(isinstance(answer, RuntimeError) or b"old" not in answer for answer in answers)
    cluster.wait_for_members([first, second])
    assert "lease lost" in second.log()


def test_local_reads_go_on_without_etcd_until_the_lease_ends_and_all_returns_with_it(new_cluster):
    cluster = new_cluster(node_timeout_s=5)
    first, second = cluster.start(2)
    here, there = first.client(3000, 3000), second.client(3000, 3000)
    here.set("ours", b"local")
    there.set("theirs", bytes(1 << 20))
    cluster.etcd.kill()
    begin = time.monotonic()
    while time.monotonic() < begin + 2:
        assert here.get(["ours"]) == [b"local"]
        assert there.get(["theirs"]) == [bytes(1 << 20)]
    # A worker that cannot prove its membership must not be read: another may have taken its place.
    error = wait_until(lambda: isinstance(answer := ends(lambda: here.get(["ours"]), 3), RuntimeError) and answer, 15)
    assert "may not serve now" in str(error) and "is the cluster store reachable?" in str(error)
    cluster.etcd.start()
    cluster.wait_for_members([first, second], 60)
    for client in (here, there):
        wait_until(lambda: client.health_check().is_ok(), what="a healthy worker")
    here.set("ours", b"anew")
    assert there.get(["ours"]) == [b"anew"]
    for worker in (first, second):
        assert worker.process.poll() is None
        complaints = [line for line in worker.log().splitlines() if " | W | " in line or " | E | " in line]
        assert any(cluster.etcd.address in line for line in complaints), complaints
        assert len(complaints) <= 6, "one line per loss, not one per attempt"


def test_a_short_outage_of_etcd_costs_nothing(new_cluster):
    cluster = new_cluster(node_timeout_s=30)
    first, second = cluster.start(2)
    here, there = first.client(), second.client()
    here.set("key", b"value")
    cluster.etcd.kill()
    for i in range(20):
        here.set("key", b"%d" % i)
        assert there.get(["key"]) == [b"%d" % i]
    cluster.etcd.start()
    third, = cluster.start(1)
    assert third.client().get(["key"]) == [b"19"]
    assert first.client().get(["key"]) == [b"19"]


SETTER = """
import sys
from yr.datasystem import KVClient
client = KVClient(sys.argv[1], int(sys.argv[2]))
client.init()
values = [bytes([i]) * (3 << 20) for i in range(4)]
print("ready", flush=True)
for i in range(1 << 30):
    client.set("dying-%d" % (i % 4), values[i % 4])
"""


def test_clients_killed_during_sets_leak_nothing(new_cluster, dscli):
    cluster = new_cluster(shared_memory_size_mb=128)
    first, second = cluster.start(2)
    keys = [f"dying-{i}" for i in range(4)]
    clean = first.client()

    def usage():
        result = dscli("status", "--json", "-w", first.address)
        assert result.returncode == 0, result.stderr
        report = json.loads(result.stdout)
        return report["memory"]["allocated_bytes"], report["clients"]["unpublished_bytes"], report["clients"]["pins"]

    before = usage()
    rng = random.Random(7)
    processes = []
    try:
        for turn in range(50):
            # Two at a time; who dies has been at it for a while of its own.
            processes.append(subprocess.Popen([sys.executable, "-c", SETTER, first.host, str(first.port)],
                                              stdout=subprocess.PIPE, text=True))
            assert processes[-1].stdout.readline() == "ready\n"
            sets = first.status()["requests"]["sets"]
            wait_until(lambda: first.status()["requests"]["sets"] > sets + rng.randrange(3))
            if len(processes) == 2:
                processes.pop(0).kill()
            for value in (second.client().get(keys) if turn % 10 == 9 else []):
                assert value is None or value == value[:1] * (3 << 20)
    finally:
        for process in processes:
            process.kill()
            process.wait()
    wait_until(lambda: first.status()["clients"]["unpublished_bytes"] == 0, what="the end of the dead clients' buffers")
    assert clean.delete(keys) == []
    wait_until(lambda: usage() == before, what="release of all memory")
    assert first.status()["objects"]["count"] == second.status()["objects"]["count"] == 0


HOLDER = """
import sys
from yr.datasystem import KVClient
client = KVClient(sys.argv[1], int(sys.argv[2]))
client.init()
held = client.get_read_only_buffers(["pinned"])
print("held", flush=True)
sys.stdin.read()
"""


def test_a_client_killed_while_it_holds_a_view_gives_the_memory_back(cluster):
    worker, = cluster.start(1)
    client = worker.client()
    client.set("pinned", bytes(1 << 20))
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, worker.host, str(worker.port)], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout.readline() == "held\n"
        client.delete(["pinned"])
        assert worker.status()["index"]["pinned"] == 1
        assert worker.status()["memory"]["allocated_bytes"] >= 1 << 20
    finally:
        holder.kill()
        holder.wait()
    wait_until(lambda: worker.status()["memory"]["allocated_bytes"] == 0, what="release of the memory")
    assert worker.status()["index"]["pinned"] == 0

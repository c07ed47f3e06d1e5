"""Clients in processes that are not as usual: interrupted all the time, without standard descriptors, with thousands of
open files, in a time namespace of their own."""

import os
import signal
import subprocess
import sys

import pytest

from cluster import wait_until

BEGIN = """
import os, resource, signal, sys, time
from yr.datasystem import KVClient

def use(client):
    for size in (10, 20_000, 700_000, 9 << 20):
        client.set("surrounded", b"s" * size)
        assert client.get(["surrounded"]) == [b"s" * size]
        buffer, = client.mcreate(["made"], [size])
        buffer.memory_copy(b"m" * size)
        client.mset_buffer([buffer])
        assert client.get_read_only_buffers(["made"])[0].immutable_data() == b"m" * size
    assert client.exist(["surrounded", "none"]) == [True, False]
    begun = time.monotonic()
    try:
        client.get(["none"], False, 300)
        raise AssertionError("there is no such key")
    except RuntimeError as error:
        assert "Key not found" in str(error), error
    took = time.monotonic() - begun
    assert 0.29 < took < 10, took

client = KVClient(sys.argv[1], int(sys.argv[2]), timeout_ms=20000)
"""

INTERRUPTED = """
interruptions = 0
def count(*_):
    global interruptions
    interruptions += 1
signal.signal(signal.SIGALRM, count)
signal.siginterrupt(signal.SIGALRM, True)
signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
client.init()
for _ in range(8):
    use(client)
client.close()
signal.setitimer(signal.ITIMER_REAL, 0)
assert interruptions > 100, interruptions
print("done")
"""

WITHOUT_STANDARD_DESCRIPTORS = """
out = os.dup(1)
for descriptor in (0, 1, 2):
    os.close(descriptor)
for _ in range(2):
    client.init()
    use(client)
    client.close()
os.write(out, b"done")
"""

MANY_DESCRIPTORS = """
resource.setrlimit(resource.RLIMIT_NOFILE, (4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
files = [os.open("/dev/null", os.O_RDONLY) for _ in range(2000)]
client.init()
use(client)
print("done")
"""

USUAL = """
client.init()
use(client)
print("done")
"""

TIME_NAMESPACE = ("unshare", "--time", "--fork")


def run(worker, script, before=()):
    result = subprocess.run([*before, sys.executable, "-c", BEGIN + script, worker.host, str(worker.port)],
                            capture_output=True, text=True, timeout=100, check=False)
    assert (result.returncode, result.stdout.strip()) == (0, "done"), result.stdout + result.stderr


@pytest.mark.parametrize("script", [INTERRUPTED, WITHOUT_STANDARD_DESCRIPTORS, MANY_DESCRIPTORS],
                         ids=["interrupted", "without standard descriptors", "many descriptors"])
def test_a_client_works_in_a_process_that_is(pair, script):
    run(pair[0], script)


@pytest.mark.skipif(subprocess.run([*TIME_NAMESPACE, "true"], capture_output=True, check=False).returncode != 0,
                    reason="this machine does not let us make time namespaces")
@pytest.mark.parametrize("offset", ["100000", "-1000"])
def test_a_client_whose_clock_has_another_origin_works(pair, offset):
    run(pair[0], USUAL, (*TIME_NAMESPACE, "--monotonic", offset))


def test_a_client_that_is_closed_is_gone_also_while_a_forked_child_lives(cluster):
    worker, = cluster.start(1)
    client = worker.client()
    for _ in range(4):
        client.set("leased-ahead", bytes(100_000))
    view = client.get_read_only_buffers(["leased-ahead"])[0]
    pid = os.fork()
    if pid == 0:
        signal.pause()
    try:
        client.delete(["leased-ahead"])
        assert worker.status()["clients"]["leased_bytes"] > 0
        client.close()
        assert bytes(view.immutable_data()) == bytes(100_000)  # what is held stays
        del view
        wait_until(lambda: worker.status()["clients"]["count"] == 0 and
                   worker.status()["memory"]["allocated_bytes"] == 0, what="the end of the session")
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def test_reads_of_what_is_here_cost_the_worker_nothing(cluster):
    worker, = cluster.start(1)
    client = worker.client()
    names = [f"local-{i}" for i in range(200)]
    client.mset(names, [b"value"] * 200)
    client.set("large", bytes(1 << 20))
    before = worker.status()["requests"]
    for _ in range(50):
        assert client.get(names) == [b"value"] * 200
        assert client.exist(names) == [True] * 200
        assert len(client.get_read_only_buffers(["large"])[0]) == 1 << 20
    assert worker.status()["requests"] == before

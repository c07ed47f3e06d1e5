"""What is not to be trusted is refused with its reason, and harms nobody else."""

import os
import random
import socket

import pytest

from cluster import free_port, listening_ports, wait_until
from session_wire import Session, bytes_field, frame, hello
from yr.datasystem import KVClient

GOOD_KEYS = ["k", "k" * 255, "k" * 1024, "azAZ09-_!@#%^*()+=:;~$&."]
BAD_KEYS = ["", "k" * 1025, "with space", "with/slash", "tab\t", "line\n", "nul\0inside", "\0", "k\0", "schlüssel", "键", "'",
            '"', "\\", "<", "k,k", "\x7f"]


@pytest.fixture
def clients(pair):
    return [worker.client() for worker in pair]


@pytest.mark.parametrize("key", GOOD_KEYS, ids=lambda key: f"{key[:12]}-{len(key)}")
def test_a_key_of_legal_length_and_letters_works_across_nodes(clients, key):
    first, second = clients
    first.set(key, b"value")
    assert second.get([key]) == [b"value"]
    assert second.exist([key]) == [True]
    assert second.delete([key]) == []
    assert first.exist([key]) == [False]


@pytest.mark.parametrize("key", BAD_KEYS, ids=lambda key: ascii(key)[:16])
def test_a_bad_key_is_refused_by_every_call(clients, key):
    client = clients[0]
    client.set("good", b"value")
    for call in (lambda: client.set(key, b"value"), lambda: client.get([key]), lambda: client.delete([key]),
                 lambda: client.exist([key]), lambda: client.exist(["good", key])):
        with pytest.raises(RuntimeError, match=r"^code: \[Invalid parameter\]"):
            call()
    assert client.get(["good"]) == [b"value"]


def test_an_empty_value_is_refused(clients):
    for value in (b"", bytearray(), memoryview(b""), ""):
        with pytest.raises(RuntimeError, match=r"^code: \[Invalid parameter\]"):
            clients[0].set("empty", value)
    assert clients[1].exist(["empty"]) == [False]


@pytest.mark.parametrize("arguments", [(1, b"v"), (b"k", b"v"), (None, b"v"), ("k", 1), ("k", None), ("k", ["v"]),
                                       ("k", b"v", 0), ("k", b"v", None)])
def test_wrong_types_are_refused_before_anything_is_sent(clients, arguments):
    with pytest.raises(TypeError, match="invalid type"):
        clients[0].set(*arguments)
    assert clients[1].exist(["k"]) == [False]


def test_a_get_of_a_missing_key_names_the_failure_on_either_node(clients):
    for client in clients:
        with pytest.raises(RuntimeError, match=r"^code: \[Key not found\].*traceId"):
            client.get(["nobody-set-this"])


def test_a_missing_key_among_others_is_none(clients):
    clients[0].set("there", b"value")
    assert clients[1].get(["missing", "there"]) == [None, b"value"]


# What a stranger may send, before and after a good hello.
def garbage(rng):
    return rng.choice([
        lambda: rng.randbytes(rng.randrange(1, 5000)),
        lambda: b"GET / HTTP/1.1\r\nHost: cache\r\n\r\n",
        lambda: bytes(4096),
        lambda: b"\xff" * 4096,
        lambda: hello()[:rng.randrange(1, len(hello()))],
        lambda: frame(rng.randrange(65536), rng.randbytes(rng.randrange(200))),
        lambda: frame(1, payload_size=1 << 40),
        lambda: hello() + frame(rng.randrange(65536), rng.randbytes(rng.randrange(3000))),
        lambda: hello() + frame(20, rng.randbytes(rng.randrange(1, 3000))),
        lambda: hello() + frame(10, bytes_field(1, b"key"), b"x" * 10, payload_size=(1 << 63) + 1),
        lambda: hello() + frame(10, bytes_field(1, b"key"), payload_size=30 << 20),
        lambda: hello() + rng.randbytes(2000),
    ])()


def throw(family, address, data):
    """Sends it and reads what comes until the other side, or we, had enough."""
    with socket.socket(family, socket.SOCK_STREAM) as connection:
        connection.settimeout(5)
        connection.connect(address)
        try:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(65536):
                pass
        except OSError:
            pass  # refused in the middle of it


def test_random_bytes_on_every_port_and_socket_are_refused_and_logged_once(cluster):
    seed = int(os.environ.get("DATASYSTEM_TEST_SEED", random.randrange(1 << 32)))
    print(f"DATASYSTEM_TEST_SEED={seed}")
    rng = random.Random(seed)
    workers = cluster.start(2)
    victim, other = workers
    client, far = victim.client(), other.client()
    client.set("ours", b"v" * 1000)
    far.set("theirs", b"w" * 600_000)
    assert client.get(["theirs"]) == [b"w" * 600_000]
    ports = listening_ports(victim.pid)
    assert (victim.host, victim.port) in ports and len(ports) >= 2, "its own port, and UCX's"
    targets = [(socket.AF_INET, port) for port in ports] + [(socket.AF_UNIX, str(victim.unix_socket))]
    memory_before = victim.status()["memory"]["allocated_bytes"]
    for i in range(40):
        for family, address in targets:
            throw(family, address, garbage(rng))
        client.set("ours", b"%d" % i)
        assert far.get(["ours"]) == [b"%d" % i]
    far.set("theirs", b"again")
    assert client.get(["theirs"]) == [b"again"]
    assert victim.process.poll() is None
    status = victim.status()
    assert status["clients"]["refused_connections"] > 40
    wait_until(lambda: victim.status()["memory"]["allocated_bytes"] <= memory_before, 10, "release of all memory")
    assert victim.log().count("refused a connection") == 1
    # Whatever else was worth a line: a handful, not one per attempt.
    assert victim.log().count(" | W | ") + victim.log().count(" | E | ") < 10, victim.log()
    assert victim.output().count("\n") < 10, victim.output()


def test_connections_that_say_nothing_disturb_nobody_and_are_closed(cluster):
    worker, = cluster.start(1)
    silent = [socket.create_connection((worker.host, worker.port)) for _ in range(50)]
    for port in listening_ports(worker.pid):
        silent += [socket.create_connection(port) for _ in range(5)]
    client = worker.client()
    client.set("key", b"value")
    assert client.get(["key"]) == [b"value"]
    count = worker.status()["clients"]["count"]
    # Its own port closes them when the time for a hello is over.
    for connection in silent[:50]:
        connection.settimeout(20)
        assert connection.recv(1) == b""
    for connection in silent:
        connection.close()
    assert client.get(["key"]) == [b"value"]
    assert worker.status()["clients"]["count"] == count


def test_a_client_of_another_protocol_is_told_both_versions(pair):
    with pytest.raises(EOFError):
        stranger = Session(pair[0], hello(99, 100, b"9.9"))
        assert b"client 9.9 speaks protocol 99 to 100" in stranger.greeting
        assert b"speaks 1 to 1: update the older one" in stranger.greeting
        stranger.reply()
    assert pair[0].client().health_check().is_ok()


def test_a_client_beyond_max_client_num_is_told_so_and_may_come_when_another_left(cluster):
    worker, = cluster.start(1, max_client_num=3)
    clients = [KVClient(worker.host, worker.port, timeout_ms=5000) for _ in range(4)]
    for client in clients[:3]:
        # A connection that has just been closed may count for another moment.
        wait_until(lambda: connects(client), what="a place for a client")
    with pytest.raises(RuntimeError, match="serves 3 clients already, as many as max_client_num allows"):
        clients[3].init()
    # An operator who looks into it must not be refused as well.
    wait_until(lambda: worker.status()["clients"]["count"] == 3, what="the report of a full worker")
    clients[0].set("key", b"value")
    clients[1].close()
    wait_until(lambda: connects(clients[3]), what="a place for another client")
    assert clients[3].get(["key"]) == clients[2].get(["key"]) == [b"value"]
    for client in clients:
        client.close()


def connects(client):
    try:
        client.init()
        return True
    except RuntimeError:
        return False


def test_a_client_that_meets_no_worker_says_so_in_time():
    port = free_port("127.0.0.1")
    with pytest.raises(RuntimeError, match=rf"127.0.0.1:{port}"):
        KVClient("127.0.0.1", port, timeout_ms=500).init()


def test_a_forked_child_gets_a_clear_error_and_its_parent_goes_on(pair):
    client = pair[0].client()
    client.set("key", b"value")
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            client.get(["key"])
            os.write(writer, b"no error")
        except RuntimeError as error:
            os.write(writer, str(error).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    assert "fork" in said and "create" in said, said
    assert client.get(["key"]) == [b"value"]

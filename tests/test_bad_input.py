"""What is not to be trusted is refused with its reason, and harms nobody else."""

import os
import random
import socket

import pytest

from cluster import free_port, listening_ports, wait_until
from session_wire import (ABANDON, CREATE, DUPLICATED, EXPIRE, GET, INVALID, KEY_EXISTS, NOT_SUPPORTED, OK, RELEASE, REQUESTS,
                          SET, SIZES, Session, bytes_field, closes, frame, hello, number_field, numbers_field, set_body, set_item,
                          status_of)
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
        lambda: hello() + frame(rng.choice(REQUESTS), rng.randbytes(rng.randrange(1, 3000))),
        lambda: hello() + frame(SET, set_body([set_item(b"key", 10)]), b"x" * 10, payload_size=(1 << 63) + 1),
        lambda: hello() + frame(SET, set_body([set_item(b"key", 30 << 20)]), payload_size=30 << 20),
        lambda: hello() + frame(SET, set_body([set_item(b"key", (1 << 64) - 1), set_item(b"k2", 11)]), b"x" * 10),
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


@pytest.mark.parametrize("versions", [(1, 1), (99, 100)], ids=["older", "newer"])
def test_a_client_of_another_protocol_is_told_both_versions(pair, versions):
    refused = pair[0].status()["clients"]["refused_connections"]
    with pytest.raises(EOFError):
        stranger = Session(pair[0], hello(*versions, b"9.9"))
        assert b"client 9.9 speaks protocol %d to %d" % versions in stranger.greeting
        assert b"speaks 2 to 2: update the older one" in stranger.greeting
        stranger.reply()
    assert pair[0].status()["clients"]["refused_connections"] == refused + 1
    assert pair[0].client().health_check().is_ok()


@pytest.mark.parametrize("items,payload", [([set_item(b"k", 5)], b"four"), ([set_item(b"k", 3)], b"four"), ([], b"x"),
                                           ([set_item(b"a", 1 << 63), set_item(b"b", 1 << 63)], b""),
                                           ([set_item(b"a", 4, buffer_id=9)], b"four")],
                         ids=["too large", "too small", "of nothing", "overflow", "with a buffer"])
def test_a_set_whose_values_are_not_its_payload_ends_the_connection(pair, items, payload):
    session = Session(pair[0])
    session.socket.settimeout(20)
    assert closes(session, frame(SET, set_body(items), payload))
    assert pair[0].client().health_check().is_ok()


def test_each_bad_item_of_a_set_fails_alone(pair, wire):
    (status, buffer, place), = wire.create(600_000)
    assert status[0] == OK and place[2] == 600_000
    whole, items = wire.set([set_item(b"good", 2), set_item(b"bad key", 2), set_item(b"empty", 0), set_item(b"good", 2),
                             set_item(b"large", 600_001, buffer), set_item(b"unknown", 5, buffer + 1000),
                             set_item(b"last", 1)], b"okno" + b"DU" + b"!")
    assert whole == (OK, "")
    assert [code for code, _ in items] == [OK, INVALID, INVALID, DUPLICATED, INVALID, INVALID, OK]
    assert "600000 bytes, less than the 600001" in items[4][1]
    assert f"no buffer {buffer + 1000}" in items[5][1]
    client = pair[0].client()
    assert client.get(["good", "last"]) == [b"ok", b"!"]
    # After its error the buffer is there as before, and is cut to the value that it becomes.
    assert wire.set([set_item(b"cut", 1000, buffer)]) == ((OK, ""), [(OK, "")])
    assert len(client.get(["cut"])[0]) == 1000
    assert wire.set([set_item(b"again", 1000, buffer)])[1][0][0] == INVALID


def test_one_buffer_cannot_become_two_values(pair, wire):
    (_, buffer, _), = wire.create(600_000)
    whole, items = wire.set([set_item(b"one", 600_000, buffer), set_item(b"two", 600_000, buffer)])
    assert whole[0] == OK and [code for code, _ in items] == [OK, INVALID]


def test_buffers_of_another_session_are_out_of_reach(pair, wire):
    (_, buffer, _), = wire.create(600_000)
    other = Session(pair[0], unix_socket=True)
    other.send(frame(ABANDON, numbers_field(1, [buffer, 0, 1 << 63])))
    other.send(frame(RELEASE, numbers_field(1, [buffer, 0, 1 << 63])))
    assert other.set([set_item(b"stolen", 5, buffer)])[1][0][0] == INVALID
    assert wire.set([set_item(b"own", 600_000, buffer)])[1][0][0] == OK
    other.close()


def test_all_or_nothing_has_its_own_limits(wire, pair):
    keys = [b"tx-%d" % i for i in range(9)]
    items = [set_item(key, 1) for key in keys]
    assert wire.set(items, b"123456789", only_if_absent=True, all_or_nothing=True)[0][0] == INVALID
    assert wire.set(items[:2], b"12", all_or_nothing=True)[0][0] == INVALID
    whole, _ = wire.set(items[:7] + [set_item(b"bad key", 1)], b"12345678", only_if_absent=True, all_or_nothing=True)
    assert whole[0] == INVALID
    client = pair[0].client()
    assert not any(client.exist([key.decode() for key in keys]))
    assert wire.set(items[:8], b"12345678", only_if_absent=True, all_or_nothing=True)[0] == (OK, "")
    whole, _ = wire.set([set_item(b"fresh", 1), items[3]], b"xy", only_if_absent=True, all_or_nothing=True)
    assert whole[0] == KEY_EXISTS and "tx-3" in whole[1]
    assert client.exist(["tx-3", "fresh"]) == [True, False]


def test_memory_that_cannot_be_is_refused_item_by_item(wire, pair):
    answers = wire.create(0, 5, (1 << 64) - 1, 1 << 40)
    assert [bool(text) for (_, text), _, _ in answers] == [True, False, True, True]
    assert status_of(wire.call(CREATE, numbers_field(1, [1] * 10_001)))[0] == INVALID
    over_tcp = Session(pair[0])
    assert status_of(over_tcp.call(CREATE, numbers_field(1, [5])))[0] == NOT_SUPPORTED
    over_tcp.close()


def test_slices_beyond_the_end_are_named(wire, pair):
    pair[0].client().set("slice", b"0123456789")
    for offset, size in ((10, 1), ((1 << 64) - 1, 2), (1 << 63, 0)):
        answer = wire.call(GET, bytes_field(1, b"slice") + numbers_field(4, [offset]) + numbers_field(5, [size]))
        assert "at or after the end" in status_of(answer[3][0])[1]
    assert status_of(wire.call(GET, bytes_field(1, b"slice") + numbers_field(4, [9]) + numbers_field(5, [(1 << 64) - 1]))[3][0])[0] == OK
    assert closes(wire, frame(GET, bytes_field(1, b"slice") + numbers_field(4, [1, 2]) + numbers_field(5, [1, 2])))


def test_expire_and_sizes_answer_for_each_key(wire, pair):
    pair[0].client().set("here", b"12345")
    keys = bytes_field(1, b"here") + bytes_field(1, b"bad key") + bytes_field(1, b"absent")
    for kind, more in ((SIZES, b""), (EXPIRE, number_field(2, 4_000_000_000))):
        answer = wire.call(kind, keys + more + number_field(2 if kind == SIZES else 3, 5000))
        assert [status_of(item)[0] for item in answer[3]] == [OK, INVALID, 3]


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

"""What the session protocol promises, and what it refuses, said by hand (docs/session-protocol.md)."""

import mmap
import random
import struct

import pytest

from cluster import wait_until
from session_wire import (ABANDON, CONTROL, CREATE, DATA, DELETE, DISCONNECT, DUPLICATED, EXIST, EXPIRE, GET, HEALTH,
                          INVALID, KEY_EXISTS, LEASES_AT, OK, RELEASE, REPORT, REQUESTS, SET, SIZES, Session, bytes_field, closes, fields, frame,
                          hello, number_field, numbers_field, set_body, set_item, status_of, varint)

_LEASES_MAX = 8
_LEASE_MIN = 16 << 10
_BATCH_MAX, _ITEMS_MAX = 10_000, 16_384


def refused(worker):
    return worker.status()["clients"]["refused_connections"]


# Bodies that no reader of protobuf can take, and one that ours does not: a known field of another type.
MALFORMED = {"an endless varint": b"\x08" + b"\xff" * 11, "a field cut off": b"\x0a\x7fabc", "a group": b"\x0b\x0c",
             "field 0": b"\x02\x01x", "another type": struct.pack("<Bi", 0x0D, 1), "a length of 2^64": b"\x0a" + varint(2**64 - 1)}


@pytest.mark.parametrize("body", MALFORMED.values(), ids=MALFORMED.keys())
@pytest.mark.parametrize("kind", REQUESTS)
def test_a_malformed_body_ends_the_connection_and_is_counted(pair, kind, body):
    before = refused(pair[0])
    session = Session(pair[0])
    assert closes(session, frame(kind, body))
    assert refused(pair[0]) == before + 1
    session.close()


@pytest.mark.parametrize("kind", sorted({*REQUESTS, HEALTH, REPORT} - {SET}))
def test_a_payload_belongs_to_sets_only(pair, kind):
    session = Session(pair[0])
    assert closes(session, frame(kind, payload=b"x"))
    session.close()


def test_garbage_in_the_body_of_every_message_disturbs_nobody(pair):
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    client = pair[0].client()
    client.set("steady", b"value")
    for kind in REQUESTS:
        for _ in range(20):
            session = Session(pair[0])
            session.send(frame(kind, rng.randbytes(rng.randrange(1, 300))))
            session.close()
        assert client.get(["steady"]) == [b"value"]
    assert pair[0].process.poll() is None


def test_a_second_hello_and_an_answer_from_the_client_end_the_connection(pair):
    for data in (hello(), frame(2), frame(13), frame(21)):
        session = Session(pair[0])
        assert closes(session, data)
        session.close()


def keys_body(count):
    return b"".join(bytes_field(1, b"%d" % i) for i in range(count))


def batch(kind, count):
    """A request of `count` keys or sizes."""
    if kind == SET:
        return frame(SET, set_body([set_item(b"%d" % i, 1) for i in range(count)]), b"x" * count)
    return frame(kind, numbers_field(1, [1] * count) if kind == CREATE else keys_body(count))


@pytest.mark.parametrize("kind", [SET, CREATE, GET, DELETE, EXIST, EXPIRE, SIZES])
def test_a_batch_of_none_or_too_many_is_refused_and_the_connection_lives_on(wire, kind):
    for count in (0, _BATCH_MAX + 1, _ITEMS_MAX):
        wire.send(batch(kind, count))
        answer = fields(wire.reply())
        assert status_of(answer)[0] == INVALID and 3 not in answer
    assert status_of(wire.call(HEALTH, b""))[0] == OK
    assert closes(wire, batch(kind, _ITEMS_MAX + 1))


@pytest.mark.parametrize("param", [number_field(1, 5), number_field(1, 2**32 - 1), number_field(3, 2)],
                         ids=["write mode", "largest write mode", "existence"])
def test_an_unknown_option_of_a_set_is_refused_before_anything_is_set(pair, wire, param):
    whole = status_of(wire.call(SET, set_item(b"option", 5) + bytes_field(2, param), b"value"))
    assert whole[0] == INVALID and "unknown" in whole[1]
    assert pair[0].client().exist(["option"]) == [False]


def test_ids_that_nobody_has_are_passed_over(wire):
    for kind in (ABANDON, RELEASE):
        wire.send(frame(kind, numbers_field(1, [0, 1, 77, 2**63, 2**64 - 1] * 100)))
        wire.send(frame(kind))
    assert status_of(wire.call(HEALTH, b""))[0] == OK


def test_a_size_of_a_whole_address_space_does_not_fit_a_buffer(wire):
    (_, buffer, _), = wire.create(600_000)
    for size in (600_001, 2**63, 2**64 - 1):
        assert wire.set([set_item(b"wide", size, buffer)])[1][0][0] == INVALID
    assert wire.set([set_item(b"wide", 600_000, buffer)])[1][0] == (OK, "")


def test_a_refused_set_of_all_or_nothing_leaves_its_buffers_to_the_client(pair, wire):
    (_, first, _), (_, second, _) = wire.create(600_000, 600_000)
    client = pair[0].client()
    client.set("there", b"already")

    def set_all(*items, payload=b""):
        return wire.set(list(items), payload, only_if_absent=True, all_or_nothing=True)
    assert set_all(set_item(b"new", 600_000, first), set_item(b"there", 600_000, second))[0][0] == KEY_EXISTS
    assert set_all(set_item(b"new", 600_000, first), set_item(b"new", 600_000, second))[0][0] == DUPLICATED
    assert set_all(set_item(b"new", 600_000, first), set_item(b"other", 600_000, first))[0][0] == INVALID
    assert set_all(set_item(b"new", 600_000, first), set_item(b"other", 0, second))[0][0] == INVALID
    assert set_all(set_item(b"new", 600_000, first), set_item(b"bad key", 1), payload=b"x")[0][0] == INVALID
    assert client.exist(["new", "other"]) == [False, False]
    assert set_all(set_item(b"new", 600_000, first), set_item(b"other", 600_000, second)) == ((OK, ""), [(OK, "")] * 2)


def test_a_connection_that_ends_within_a_set_leaves_nothing_behind(cluster):
    worker, = cluster.start(1)
    wire = Session(worker, unix_socket=True)
    joined = Session(worker, hello(session=wire.identity()))
    (_, buffer, _), = wire.create(5_000_000)
    assert worker.status()["memory"]["allocated_bytes"] == 5_000_000
    items = [set_item(b"filled", 5_000_000, buffer), set_item(b"cut-off", 4_000_000)]
    joined.send(frame(SET, set_body(items), payload_size=4_000_000) + b"x" * 1_000_000)
    # The worker has the buffer in its hands when it waits for the rest of the payload.
    wait_until(lambda: worker.status()["clients"]["unpublished_bytes"] == 0, what="a set under way")
    joined.close()
    wait_until(lambda: worker.status()["memory"]["allocated_bytes"] == 0, what="release of all memory")
    assert wire.set([set_item(b"filled", 1, buffer)])[1][0][0] == INVALID
    assert worker.client().exist(["filled", "cut-off"]) == [False, False]
    wire.close()


# Sessions

def test_a_session_is_joined_by_its_id_and_token_only(pair, wire):
    number, token = wire.identity()
    for wrong in ((number, token ^ 1), (number ^ 1, token), (number, 0)):
        stranger = Session(pair[0], hello(session=wrong))
        assert status_of(stranger.greeting)[0] == DISCONNECT
        with pytest.raises(EOFError):
            stranger.reply()
        stranger.close()
    joined = Session(pair[0], hello(session=(number, token)))
    assert status_of(joined.greeting)[0] == OK and joined.identity() == (number, token)
    (_, buffer, _), = wire.create(600_000)
    assert joined.set([set_item(b"joint", 600_000, buffer)])[1][0] == (OK, "")
    joined.close()
    assert status_of(wire.call(HEALTH, b""))[0] == OK, "only the first connection is the session's life"


def test_with_its_first_connection_a_session_ends_and_all_that_it_held(cluster):
    worker, = cluster.start(1)
    first = Session(worker, unix_socket=True)
    joined = Session(worker, hello(session=first.identity()))
    first.create(600_000, 600_000)
    first.close()
    with pytest.raises((EOFError, ConnectionResetError)):
        joined.reply()
    again = Session(worker, hello(session=(1, 1)))
    assert status_of(again.greeting)[0] == DISCONNECT
    wait_until(lambda: worker.status()["memory"]["allocated_bytes"] == 0, what="release of all memory")


def test_a_session_has_a_limited_number_of_connections(cluster):
    worker, = cluster.start(1)
    first = Session(worker)
    joined = [Session(worker, hello(session=first.identity())) for _ in range(255)]
    one_more = Session(worker, hello(session=first.identity()))
    assert "256 connections already" in status_of(one_more.greeting)[1]
    assert status_of(joined[-1].call(HEALTH, b""))[0] == OK
    assert worker.status()["clients"]["count"] == 1
    first.close()
    for session in joined:
        session.close()


# Leases

class Control:
    """The control segment of a session, as its client sees it."""

    def __init__(self, session):
        self._memory = mmap.mmap(*session.segments()[CONTROL])

    def word(self, slot):
        return struct.unpack_from("<Q", self._memory, LEASES_AT + 8 * slot)[0]

    def take(self, lease):
        slot, buffer, _ = lease
        assert self.word(slot) == buffer << 2 | 1
        struct.pack_into("<Q", self._memory, LEASES_AT + 8 * slot, buffer << 2 | 2)


def lease_of(session, size):
    """(slot, buffer id, size) of the lease that comes with a set, or None."""
    answer = session.call(SET, set_body([set_item(b"small", 1)], lease_size=size), b"x")
    assert [status_of(item) for item in answer[3]] == [(OK, "")]
    if 4 not in answer:
        return None
    lease = fields(answer[4][0])
    place = fields(lease[3][0])
    assert place[3][0] == size
    return lease.get(1, [0])[0], lease[2][0], place


def test_a_lease_that_was_taken_is_set_with_one_message(pair, wire):
    control = Control(wire)
    size = 700_000
    lease = lease_of(wire, size)
    control.take(lease)
    slot, buffer, place = lease
    descriptor, data_size = wire.segments()[DATA]
    with mmap.mmap(descriptor, data_size) as data:
        at = place.get(2, [0])[0]
        data[at:at + size] = b"l" * size
    assert wire.set([set_item(b"leased", size, buffer)]) == ((OK, ""), [(OK, "")])
    assert control.word(slot) == 0, "the slot is free again"
    assert pair[1].client().get(["leased"]) == [b"l" * size]
    assert wire.set([set_item(b"twice", size, buffer)])[1][0][0] == INVALID


def test_a_lease_can_be_abandoned_and_shortened(pair, wire):
    control = Control(wire)
    abandoned, shortened = lease_of(wire, 100_000), lease_of(wire, 100_000)
    control.take(abandoned)
    control.take(shortened)
    wire.send(frame(ABANDON, numbers_field(1, [abandoned[1]])))
    assert wire.set([set_item(b"gone", 1, abandoned[1])])[1][0][0] == INVALID
    assert wire.set([set_item(b"shortened", 20_000, shortened[1])])[1][0] == (OK, "")
    assert control.word(abandoned[0]) == control.word(shortened[0]) == 0
    assert len(pair[0].client().get(["shortened"])[0]) == 20_000


def test_leases_are_neither_small_nor_large_and_need_shared_memory(pair, wire):
    largest = pair[0].status()["memory"]["size_bytes"] // 32
    for size in (1, _LEASE_MIN - 1, largest + 1, 2**63, 2**64 - 1):
        assert lease_of(wire, size) is None, size
    over_tcp = Session(pair[0])
    assert lease_of(over_tcp, 100_000) is None
    over_tcp.close()
    control = Control(wire)
    for size in (_LEASE_MIN, largest):
        control.take(lease_of(wire, size))


def test_a_session_has_a_limited_number_of_leases(wire):
    control = Control(wire)
    leases = []
    for _ in range(_LEASES_MAX):
        leases.append(lease_of(wire, _LEASE_MIN))
        control.take(leases[-1])  # else the worker could take it back meanwhile
    assert lease_of(wire, _LEASE_MIN) is None
    assert wire.set([set_item(b"leased", _LEASE_MIN, leases[3][1])])[1][0] == (OK, "")
    assert lease_of(wire, _LEASE_MIN)[0] == leases[3][0]


def test_all_leases_together_are_an_eighth_of_the_memory(cluster):
    worker, = cluster.start(1)
    size = worker.status()["memory"]["size_bytes"] // 32
    sessions = [Session(worker, unix_socket=True) for _ in range(5)]
    controls = [Control(session) for session in sessions]
    for session, control in zip(sessions[:4], controls):
        control.take(lease_of(session, size))
    assert lease_of(sessions[4], size) is None
    assert worker.status()["clients"]["leased_bytes"] == 4 * size
    sessions[0].close()
    wait_until(lambda: lease_of(sessions[4], size), what="a lease after another session's end")
    for session in sessions[1:]:
        session.close()


def test_an_unused_lease_is_taken_back(pair, wire):
    control = Control(wire)
    slot, buffer, _ = lease_of(wire, 100_000)
    wait_until(lambda: control.word(slot) == 0, what="the end of the lease")
    assert wire.set([set_item(b"late", 100_000, buffer)])[1][0][0] == INVALID
    assert pair[0].status()["clients"]["leased_bytes"] == 0


def test_leases_give_way_when_memory_is_short(cluster):
    worker, = cluster.start(1)
    wire = Session(worker, unix_socket=True)
    piece = worker.status()["memory"]["size_bytes"] // 64

    def fits():
        """How much of the memory a client can have at once."""
        answers = wire.create(*[piece] * 80)
        buffers = [buffer for status, buffer, _ in answers if status[0] == OK]
        wire.send(frame(ABANDON, numbers_field(1, buffers)))
        return len(buffers)
    assert wire.set([set_item(b"small", 1)], b"x")[1][0] == (OK, "")  # the value that comes with the wish for a lease
    without = fits()
    assert without > 50
    for _ in range(3):
        assert lease_of(wire, piece * 2)
    assert fits() == without
    wire.close()

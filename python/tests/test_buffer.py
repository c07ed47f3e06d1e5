"""Buffers that are filled in place and published."""

import gc
import os
import threading
import time
import uuid

import numpy
import pytest

from yr.datasystem import Buffer, KVClient

SMALL, LARGE = 1000, 1 << 20  # in the message; in shared memory


@pytest.fixture
def keys(client):
    names = [f"buffer-{uuid.uuid4()}" for _ in range(2)]
    yield names
    client.delete(names)


@pytest.mark.parametrize("size", [1, SMALL, LARGE])
def test_what_was_filled_in_place_is_what_a_get_returns(client, keys, size):
    values = [os.urandom(size), os.urandom(size)]
    first, second = client.mcreate(keys, [size, size])
    assert type(first) is Buffer and first.get_size() == len(first) == size
    assert client.exist(keys) == [False, False]
    first.mutable_data()[:] = values[0]
    second.memory_copy(values[1])
    assert bytes(first.immutable_data()) == values[0] and first.immutable_data().readonly
    client.mset_buffer([first, second])
    assert client.get(keys) == values


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_publishing_ends_the_views_and_the_buffer(client, keys, size):
    [buffer] = client.mcreate(keys[:1], [size])
    view, other = buffer.MutableData(), buffer.immutable_data()
    view[0] = 7
    client.mset_buffer([buffer])
    for ended in (view, other):
        with pytest.raises(ValueError, match="released"):
            ended[0]
    for call in (buffer.mutable_data, buffer.immutable_data, lambda: client.mset_buffer([buffer])):
        with pytest.raises(RuntimeError, match=r"^code: \[Object already sealed error\].*traceId: "):
            call()
    with pytest.raises(BufferError):
        memoryview(buffer)
    with pytest.raises(RuntimeError, match="Invalid parameter"):
        buffer.memory_copy(b"x")
    assert buffer.get_size() == size


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_memory_that_something_still_refers_to_is_not_published(client, keys, size):
    buffers = client.mcreate(keys, [size, size])
    part = buffers[1].mutable_data()[1:]
    with pytest.raises(RuntimeError, match=r"^code: \[Invalid parameter\].*still used by 1 views"):
        client.mset_buffer(buffers)
    assert client.exist(keys) == [False, False]
    part[0] = 1  # still good
    del part
    client.mset_buffer(buffers)
    assert client.get(keys)[1][1] == 1


def test_a_buffer_twice_in_one_call_is_refused_and_can_be_published_after(client, keys):
    [buffer] = client.mcreate(keys[:1], [SMALL])
    buffer.memory_copy(b"x" * SMALL)
    with pytest.raises(RuntimeError, match="is being published"):
        client.mset_buffer([buffer, buffer])
    client.mset_buffer([buffer])
    assert client.get(keys[:1]) == [b"x" * SMALL]


def test_a_view_keeps_the_memory_of_a_dropped_buffer(client, keys):
    view = client.mcreate(keys[:1], [LARGE])[0].mutable_data()
    gc.collect()
    view[:] = b"y" * LARGE
    assert bytes(view[-3:]) == b"yyy"


def test_dropped_buffers_give_their_memory_back_and_store_nothing(client, keys):
    for _ in range(12):  # 12 x 32 MiB through 256 MiB of cache
        [buffer] = client.mcreate(keys[:1], [32 << 20])
        del buffer
    assert client.exist(keys) == [False, False]


def test_too_much_at_once_is_out_of_memory_and_leaves_nothing_behind(client, keys):
    with pytest.raises(RuntimeError, match=r"^code: \[Out of memory\]"):
        client.mcreate(keys, [LARGE, 300 << 20])
    client.mset_buffer(client.mcreate(keys, [LARGE, LARGE]))


def test_a_buffer_takes_no_more_than_its_size(client, keys):
    [buffer] = client.mcreate(keys[:1], [5])
    with pytest.raises(RuntimeError, match=r"^code: \[Invalid parameter\]"):
        buffer.memory_copy(b"123456")
    buffer.memory_copy("12345")
    client.mset_buffer([buffer])
    assert client.get(keys[:1]) == [b"12345"]


def test_buffers_can_be_had_of_stored_values_and_cannot_be_written(client, keys):
    value = os.urandom(LARGE)
    client.set(keys[0], value)
    buffer, missing = client.get_buffers([keys[0], "missing"])
    assert missing is None and type(buffer) is Buffer
    client.set(keys[0], bytes(LARGE))
    assert bytes(buffer.immutable_data()) == bytes(memoryview(buffer)) == value
    assert memoryview(buffer).readonly
    with pytest.raises(RuntimeError, match=r"^code: \[Invalid parameter\].*use mcreate"):
        buffer.mutable_data()
    with pytest.raises(RuntimeError, match=r"^code: \[Invalid parameter\]"):
        client.mset_buffer([buffer])
    with pytest.raises(RuntimeError, match="Key not found"):
        client.get_buffers(["missing"])


def test_the_write_latch_excludes_others_without_holding_the_interpreter(client, keys):
    [buffer] = client.mcreate(keys[:1], [SMALL])
    buffer.wlatch()
    order = []

    def read():
        buffer.rlatch(30)
        order.append("read")
        buffer.unrlatch()

    reader = threading.Thread(target=read)
    reader.start()
    order.append("write")
    buffer.unwlatch()
    reader.join(30)
    assert order == ["write", "read"]
    buffer.rlatch()
    begin = time.monotonic()
    with pytest.raises(RuntimeError, match=r"^code: \[Try again\]"):
        buffer.wlatch(1)
    assert time.monotonic() - begin < 10
    buffer.unrlatch()
    with pytest.raises(RuntimeError, match=r"^code: \[Invalid parameter\]"):
        buffer.unwlatch()
    with pytest.raises(RuntimeError, match=r"Invalid timeout_sec size 0 is set"):
        buffer.wlatch(0)
    with pytest.raises(TypeError, match="The input of timeout_sec has invalid type"):
        buffer.rlatch(1.0)


def test_a_buffer_outlives_its_client(worker, client, keys):
    owner = KVClient(*worker)
    owner.init()
    [buffer] = owner.mcreate(keys[:1], [LARGE])
    owner.close()
    buffer.mutable_data()[:] = b"z" * LARGE
    assert bytes(buffer.immutable_data()) == b"z" * LARGE
    with pytest.raises(RuntimeError, match=r"^code: \[Not ready\]"):
        owner.mset_buffer([buffer])


@pytest.mark.parametrize("make", ["frombuffer", "asarray"])
def test_numpy_arrays_of_a_view_stop_the_publication_as_slices_do(client, keys, make):
    [buffer] = client.mcreate(keys[:1], [LARGE])
    view = buffer.mutable_data()
    view[:] = bytes(LARGE)  # fresh memory has any content
    array = numpy.frombuffer(view, dtype="u1") if make == "frombuffer" else numpy.asarray(view)
    part = array[10:20]
    del array
    with pytest.raises(RuntimeError, match="still used by"):
        client.mset_buffer([buffer])
    part[:] = 9
    del part
    client.mset_buffer([buffer])
    assert client.get(keys[:1])[0][9:21] == b"\0" + b"\x09" * 10 + b"\0"


def test_numpy_reads_and_fills_buffers_without_a_copy(client, keys):
    [buffer] = client.mcreate(keys[:1], [8 * 1000])
    array = numpy.frombuffer(buffer, dtype="f8")
    array[:] = numpy.arange(1000)
    with pytest.raises(RuntimeError, match="still used by"):
        client.mset_buffer([buffer])
    del array
    client.mset_buffer([buffer])
    [stored] = client.get_read_only_buffers(keys[:1])
    seen = numpy.frombuffer(stored.immutable_data(), dtype="f8")
    assert not seen.flags.writeable and not seen.flags.owndata
    assert (seen == numpy.arange(1000)).all()
    client.set(keys[1], seen.reshape(10, 100))
    assert client.get([keys[1]]) == [seen.tobytes()]
    with pytest.raises(TypeError, match="with gaps"):
        client.set(keys[1], seen[::2])


def address_of(array):
    return array.__array_interface__["data"][0]


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_numpy_takes_buffers_themselves_and_sees_the_same_memory(client, keys, size):
    numpy = pytest.importorskip("numpy")
    client.set(keys[0], os.urandom(size))
    [stored] = client.get_read_only_buffers(keys[:1])
    array = numpy.asarray(stored)
    assert array.dtype == "u1" and array.shape == (size,) and not array.flags.writeable
    assert address_of(array) == address_of(numpy.frombuffer(stored.immutable_data(), "u1"))
    # What is on this node is read where it is: two views of a key are one memory.
    assert address_of(array) == address_of(numpy.asarray(client.get_read_only_buffers(keys[:1])[0]))
    [buffer] = client.mcreate(keys[1:], [size])
    filled = numpy.asarray(buffer)
    assert filled.flags.writeable
    assert address_of(filled) == address_of(numpy.frombuffer(buffer.mutable_data(), "u1"))
    filled[:] = array
    del filled
    client.mset_buffer([buffer])
    expected = array.tobytes()
    del stored
    gc.collect()
    client.delete(keys[:1])
    assert client.get(keys[1:]) == [expected] and array.tobytes() == expected  # the array keeps its memory


def test_a_read_only_buffer_is_made_by_a_client_only(client, keys):
    client.set(keys[0], b"value")
    [stored] = client.get_read_only_buffers(keys[:1])
    with pytest.raises(TypeError):
        type(stored)()
    assert memoryview(stored).readonly
    assert repr(stored) == "<ReadOnlyBuffer of 5 bytes>" and bytes(stored) == b"value"

"""KVClient against a real worker."""

import array
import ctypes
import gc
import hashlib
import os
import uuid

import pytest

from yr.datasystem import KVClient, WriteMode
from yr.datasystem.kv_client import ExistenceOpt


@pytest.fixture
def key(client):
    name = f"key-{uuid.uuid4()}"
    yield name
    client.delete([name])


@pytest.mark.parametrize("value", [
    b"value", bytearray(b"value"), memoryview(b"value"), "value", memoryview(bytearray(b"..value.."))[2:7],
    array.array("B", b"value"), type("Bytes", (bytes,), {})(b"value"), ctypes.create_string_buffer(b"value", 5),
])
def test_every_type_of_value_is_stored_as_its_bytes(client, key, value):
    client.set(key, value)
    assert client.get([key]) == [b"value"]


def test_buffers_of_any_format_and_shape_are_stored_as_their_bytes(client, key):
    numbers = array.array("d", range(100))
    client.set(key, numbers)
    assert client.get([key]) == [numbers.tobytes()]
    table = memoryview(numbers).cast("B").cast("d", [10, 10])
    assert client.mset([key], [table]) == []
    assert client.get([key]) == [numbers.tobytes()]


def test_text_is_stored_as_utf_8_and_comes_back_as_text(client, key):
    client.set(key, "grüße, 世界 🌍")
    assert client.get([key]) == ["grüße, 世界 🌍".encode()]
    assert client.get([key], convert_to_str=True) == ["grüße, 世界 🌍"]


def test_bytes_that_are_no_text_cannot_be_had_as_text(client, key):
    client.set(key, b"\xff\xfe")
    with pytest.raises(UnicodeDecodeError):
        client.get([key], True)


@pytest.mark.parametrize("size", [1, 2, 100, 4095, 4096, 16383, 16384, 65537, 1 << 20, (32 << 20) + 1])
def test_values_of_any_size_come_back_intact(client, key, size):
    value = os.urandom(size)
    client.set(key, value)
    [got] = client.get([key])
    assert type(got) is bytes and len(got) == size
    assert hashlib.sha256(got).digest() == hashlib.sha256(value).digest()


def test_the_last_set_wins(client, key):
    client.set(key, b"first")
    client.set(key, b"the second, longer")
    assert client.get([key]) == [b"the second, longer"]


def test_a_missing_key_is_none_among_others_and_an_error_alone(client, key):
    client.set(key, b"value")
    assert client.get(["missing", key, "missing-too"]) == [None, b"value", None]
    with pytest.raises(RuntimeError, match=r"^code: \[Key not found\], msg: \[.*traceId: [0-9a-f-]{36}\]"):
        client.get(["missing"])
    with pytest.raises(RuntimeError, match="Key not found"):
        client.get_read_only_buffers(["missing", "missing-too"])


@pytest.mark.parametrize("bad, reason", [
    ("", "The objectKey should not be empty."), ("with space", "."), ("x" * 1025, "."), ("sl/ash", "."),
], ids=["empty", "space", "long", "slash"])
def test_a_bad_key_fails_alone_and_is_named(client, key, bad, reason):
    client.set(key, b"value")
    for call in (lambda: client.set(bad, b"v"), lambda: client.get([bad]), lambda: client.delete([bad]),
                 lambda: client.exist([key, bad])):
        with pytest.raises(RuntimeError, match=r"^code: \[Invalid parameter\]") as failure:
            call()
        assert reason in str(failure.value)
    assert client.get([bad, key]) == [None, b"value"]
    assert client.mset([key, bad], [b"new", b"x"]) == [bad]
    assert client.delete([key, bad]) == [bad]
    assert client.exist([key]) == [False]


@pytest.mark.parametrize("length", [1, 255, 1024])
def test_keys_up_to_1024_bytes_are_good(client, length):
    name = "k" * length
    client.set(name, b"value")
    assert client.get([name]) == [b"value"]
    client.delete([name])


def test_the_limits_of_values_and_batches_have_their_words(client, key):
    for empty in (b"", "", bytearray(), memoryview(b"")):
        with pytest.raises(RuntimeError, match="The dataSize value should be bigger than zero."):
            client.set(key, empty)
    with pytest.raises(RuntimeError, match="The keys are empty"):
        client.get([])


def test_a_value_larger_than_the_cache_is_out_of_memory_and_the_worker_lives_on(client, key):
    with pytest.raises(RuntimeError, match=r"^code: \[Out of memory\]"):
        client.set(key, bytes(300 << 20))
    client.set(key, b"small")
    assert client.get([key]) == [b"small"]


def test_delete_removes_and_missing_keys_count_as_removed(client, key):
    client.set(key, b"value")
    assert client.exist([key, "missing"]) == [True, False]
    assert client.delete([key, "missing"]) == []
    assert client.exist([key]) == [False]


def test_set_value_returns_the_key_it_made(client):
    name = client.set_value(b"value")
    assert client.get([name]) == [b"value"]
    client.delete([name])


def test_generated_keys_differ_and_keep_their_prefix(client):
    assert client.generate_key() != client.generate_key()
    assert client.generate_key("mine").startswith("mine")


def test_mset_stores_all_and_reports_failed_keys(client, key):
    assert client.mset([key, key + "-2"], [b"1", "two"]) == []
    assert client.get([key, key + "-2"]) == [b"1", b"two"]
    client.delete([key + "-2"])
    with pytest.raises(RuntimeError, match="Invalid parameter"):
        client.mset([key], [b"1", b"2"])


def test_every_write_mode_is_taken(client, key):
    for mode in (WriteMode.NONE_L2_CACHE, WriteMode.NONE_L2_CACHE_EVICT):
        client.set(key, b"value", mode)
        assert client.get([key]) == [b"value"]


def test_a_buffer_is_a_read_only_view(client, key):
    client.set(key, b"value")
    [buffer, missing] = client.get_read_only_buffers([key, "missing"])
    assert missing is None
    view = buffer.immutable_data()
    assert view.readonly and view.format == "B" and bytes(view) == b"value"
    assert len(buffer) == 5
    with pytest.raises(TypeError):
        view[0] = 1
    buffer.rlatch()
    buffer.unrlatch()
    assert bytes(buffer.immutable_data(True, 1)) == b"value"
    with pytest.raises(RuntimeError, match="Invalid timeout_sec size 0"):
        buffer.rlatch(0)


def test_a_held_view_outlives_overwrite_delete_and_its_client(worker, client, key):
    value = os.urandom(1 << 20)
    reader = KVClient(*worker)
    reader.init()
    reader.set(key, value)
    view = reader.get_read_only_buffers([key])[0].immutable_data()
    client.set(key, bytes(1 << 20))
    client.delete([key])
    for i in range(64):
        client.set(f"{key}-{i}", os.urandom(1 << 20))
    client.delete([f"{key}-{i}" for i in range(64)])
    reader.close()
    del reader
    gc.collect()
    assert bytes(view) == value


def test_views_that_were_let_go_give_their_memory_back(client, key):
    for _ in range(12):  # 12 x 32 MiB through 256 MiB of cache
        client.set(key, bytes(32 << 20))
        view = client.get_read_only_buffers([key])[0].immutable_data()
        assert view.nbytes == 32 << 20
        view.release()


def test_a_bytearray_can_be_resized_again_after_the_set(client, key):
    value = bytearray(b"value")
    client.set(key, value)
    value.extend(b"s")
    assert client.get([key]) == [b"value"]


def test_a_context_manager_connects_and_disconnects(worker):
    with KVClient(*worker) as client:
        assert "not connected" not in repr(client)
        assert client.health_check().is_ok()
    with pytest.raises(RuntimeError, match=r"^code: \[Not ready\]"):
        client.get(["k"])
    client.init()
    assert client.health_check().is_ok()
    client.close()


def test_init_twice_and_close_twice_do_no_harm(worker):
    client = KVClient(*worker)
    client.init()
    client.init()
    client.close()
    client.close()


def test_many_keys_in_one_get(client):
    keys = [f"many-{i}" for i in range(1000)]
    assert client.mset(keys, [key.encode() for key in keys]) == []
    assert client.get(keys) == [key.encode() for key in keys]
    assert client.delete(keys) == []

"""msettx, read, expire, batches of any size: against a real worker."""

import uuid

import pytest

from yr.datasystem.kv_client import ExistenceOpt, KVClient, ReadParam, WriteMode

NX = ExistenceOpt.NX
MODE = WriteMode.NONE_L2_CACHE


@pytest.fixture
def keys(client):
    names = [f"{uuid.uuid4()}-{i}" for i in range(9)]
    yield names
    client.delete(names)


def test_msettx_sets_all_keys_or_none(client, keys):
    client.msettx(keys[:8], [b"%d" % i for i in range(8)], existence_opt=NX)
    assert client.get(keys[:8]) == [b"%d" % i for i in range(8)]
    client.delete(keys[:3])
    with pytest.raises(RuntimeError, match=r"^code: \[Object already exist error\].*" + keys[4]):
        client.msettx([keys[0], keys[4], keys[8]], [b"x"] * 3, MODE, 0, NX)
    assert client.exist([keys[0], keys[4], keys[8]]) == [False, True, False]
    assert client.get([keys[4]]) == [b"4"]


@pytest.mark.parametrize("count,option,reason", [
    (9, NX, "The objectKeys size exceed 8"), (0, NX, "The keys are empty"),
    (2, ExistenceOpt.NONE, "The MSetTx only supports set not existence key now")])
def test_msettx_has_its_limits_in_words(client, keys, count, option, reason):
    with pytest.raises(RuntimeError, match=rf"^code: \[Invalid parameter\], msg: \[{reason}"):
        client.msettx(keys[:count], [b"x"] * count, existence_opt=option)
    assert not any(client.exist(keys))


def test_msettx_refuses_one_bad_key_a_twin_and_other_counts(client, keys):
    for names, values in (([keys[0], "bad key"], [b"x"] * 2), ([keys[0], keys[0]], [b"x"] * 2),
                          (keys[:2], [b"x"]), (keys[:2], [b"x", b""])):
        with pytest.raises(RuntimeError, match=r"^code: \[Invalid parameter\]"):
            client.msettx(names, values, existence_opt=NX)
    assert not any(client.exist(keys))


def test_mset_with_nx_leaves_existing_keys_alone(client, keys):
    client.set(keys[1], b"old")
    assert client.mset(keys[:3], [b"new"] * 3, existence_opt=NX) == []
    assert client.get(keys[:3]) == [b"new", b"old", b"new"]


@pytest.mark.parametrize("size", [10, 600_000], ids=["in the message", "in place"])
def test_read_gives_the_parts_that_were_asked_for(client, keys, size):
    value = bytes(i * 7 % 256 for i in range(size))
    client.set(keys[0], value)
    client.set(keys[1], value)
    parts = client.read([ReadParam(keys[0], 3, 4), ReadParam(keys[1], size - 2, 100), ReadParam(keys[2], 0, 1)])
    assert [bytes(part.immutable_data()) if part else None for part in parts] == [value[3:7], value[-2:], None]
    whole, = client.read([ReadParam(keys[0])])
    assert whole.immutable_data() == value
    assert client.read([(keys[0], 5, 0)])[0].immutable_data() == value[5:]


def test_read_names_what_cannot_be_had(client, keys):
    client.set(keys[0], b"0123456789")
    for param in (ReadParam(keys[0], 10, 1), ReadParam(keys[0], 2**63, 1)):
        with pytest.raises(RuntimeError, match=r"^code: \[Out of range\].*at or after the end"):
            client.read([param])
    for params in ([ReadParam(keys[0], 2**64 - 1, 1)], [ReadParam(keys[0], 1, 1), ReadParam(keys[0], 2, 1)],
                   [ReadParam("bad key", 1, 1)], []):
        with pytest.raises(RuntimeError, match=r"^code: \[Invalid parameter\]"):
            client.read(params)
    with pytest.raises(RuntimeError, match=r"^code: \[Key not found\]"):
        client.read([ReadParam(keys[1], 0, 1)])
    for bad in (-1, 2**64):
        with pytest.raises(RuntimeError, match=r"read_params\[0\].offset size -?\d+ is set, which should be between"):
            client.read([ReadParam(keys[0], bad, 1)])
    for params in ([keys[0]], [(keys[0], 1)], [(b"k", 0, 0)], [(keys[0], "1", 0)], [(keys[0], True, 0)]):
        with pytest.raises(TypeError, match="has invalid type"):
            client.read(params)


def test_expire_gives_a_new_time_to_live(client, keys):
    client.set(keys[0], b"short", ttl_second=3000)
    client.set(keys[1], b"long")
    assert client.expire(keys[:3], 1) == [keys[2]]
    assert client.exist(keys[:2]) == [True, True]
    client.set(keys[3], b"stays", ttl_second=1)
    assert client.expire([keys[3]], 0) == []
    # Readers look at the clock themselves.
    with pytest.raises(RuntimeError, match=r"^code: \[Key not found\]"):
        while client.get(keys[:2]):
            pass
    assert client.get([keys[3]]) == [b"stays"]


def test_expire_raises_when_all_have_failed(client, keys):
    with pytest.raises(RuntimeError, match=r"^code: \[Key not found\]"):
        client.expire(keys[:2], 5)
    for seconds in (-1, 2**32):
        with pytest.raises(RuntimeError, match="Invalid ttl_second size"):
            client.expire(keys[:1], seconds)


def test_mcreate_wants_a_size_for_each_of_different_keys(client, keys):
    with pytest.raises(RuntimeError, match="The keys are empty"):
        client.mcreate([], [])
    with pytest.raises(RuntimeError, match=r"^code: \[Invalid parameter\].*2 keys, but 1 sizes"):
        client.mcreate(keys[:2], [1])
    with pytest.raises(RuntimeError, match=r"^code: \[Invalid parameter\].*occurs twice"):
        client.mcreate([keys[0], keys[0]], [1, 1])


def test_batches_of_any_size_keep_their_order(client):
    names = [f"batch-{i}" for i in range(10_001)]
    values = [b"%d" % i for i in range(len(names))]
    names[5000] = "bad key"
    assert client.mset(names, values) == ["bad key"]
    got = client.get(names)
    assert got[:5000] == values[:5000] and got[5000] is None and got[5001:] == values[5001:]
    del names[5000]
    assert client.exist([*names, "absent"]) == [True] * 10_000 + [False]
    assert len(client.get_read_only_buffers(names + ["absent"])) == 10_001
    assert client.expire(names + ["absent"], 1000) == ["absent"]
    buffers = client.mcreate([f"made-{i}" for i in range(10_001)], [1] * 10_001)
    assert len(buffers) == 10_001
    del buffers
    assert client.delete(names + ["absent"]) == []
    assert not any(client.exist(names))


def test_a_client_that_is_not_connected_says_so_in_the_new_calls():
    client = KVClient("127.0.0.1", 1)
    for call in (lambda: client.msettx(["k"], [b"v"], existence_opt=NX), lambda: client.read([ReadParam("k")]),
                 lambda: client.expire(["k"], 1)):
        with pytest.raises(RuntimeError, match=r"^code: \[Not ready\]"):
            call()

"""What is refused before a worker is asked. None of these clients is connected."""

import pytest

from yr.datasystem import Context, KVClient, Status, WriteMode
from yr.datasystem.kv_client import ExistenceOpt

TEXT = "The input of {} has invalid type, valid type: [{}]"


class Text(str):
    pass


@pytest.fixture
def idle():
    return KVClient("127.0.0.1", 1, 100)


def refused(kind, text):
    class Check:
        def __enter__(self):
            self.raises = pytest.raises(kind)
            self.info = self.raises.__enter__()

        def __exit__(self, *outcome):
            caught = self.raises.__exit__(*outcome)
            assert str(self.info.value) == text
            return caught
    return Check()


@pytest.mark.parametrize("name, value, valid", [
    ("host", None, "str"), ("host", b"127.0.0.1", "str"), ("port", "31501", "int"), ("port", True, "int"),
    ("timeout_ms", 1.5, "int"), ("connect_timeout_ms", "9", "int"), ("token", 1, "str"),
    ("client_public_key", None, "str"), ("client_private_key", None, "str"),
    ("server_public_key", None, "str"), ("access_key", None, "str"), ("secret_key", None, "str"),
    ("tenant_id", None, "str"), ("enable_cross_node_connection", 1, "bool"),
    ("req_timeout_ms", None, "int"), ("enable_exclusive_connection", 0, "bool"),
])
def test_constructor_refuses_wrong_types_by_name(name, value, valid):
    with refused(TypeError, TEXT.format(name, valid)):
        KVClient(**{name: value})


@pytest.mark.parametrize("name, value, low, high", [
    ("port", -1, 0, 65535), ("port", 65536, 0, 65535), ("timeout_ms", -1, 0, 2**31 - 1),
    ("timeout_ms", 2**31, 0, 2**31 - 1), ("connect_timeout_ms", 2**31, 0, 2**31 - 1),
    ("req_timeout_ms", 2**31, -2**31, 2**31 - 1),
])
def test_constructor_refuses_numbers_out_of_range(name, value, low, high):
    with refused(RuntimeError,
                 f"Invalid {name} size {value} is set, which should be between [{low},{high}]"):
        KVClient(**{name: value})


def test_constructor_takes_all_thirteen_by_position_and_both_names_of_the_timeout():
    KVClient("h", 1, 1000, "", "", "", "", "", "", "", True, 500, True)
    KVClient("h", 1, timeout_ms=1000)
    KVClient("h", 1, connect_timeout_ms=1000)


@pytest.mark.parametrize("keys", [None, "key", ("key",), {"key"}, b"key", 1])
@pytest.mark.parametrize("method", ["get", "get_read_only_buffers", "get_buffers", "delete", "exist"])
def test_keys_must_be_a_list(idle, method, keys):
    with refused(TypeError, TEXT.format("keys", "list")):
        getattr(idle, method)(keys)


@pytest.mark.parametrize("method", ["get", "get_read_only_buffers", "get_buffers", "delete", "exist"])
def test_each_key_of_a_batch_must_be_a_str(idle, method):
    with refused(TypeError, TEXT.format("keys[1]", "str")):
        getattr(idle, method)(["a", b"b"])


@pytest.mark.parametrize("value", [None, 1, 1.5, Text("x"), ["x"], object()])
def test_values_of_other_types_are_refused(idle, value):
    valid = "bytes, bytearray, memoryview, str"
    with refused(TypeError, TEXT.format("val", valid)):
        idle.set("key", value)
    with refused(TypeError, TEXT.format("val", valid)):
        idle.set_value(value)
    with refused(TypeError, TEXT.format("vals[1]", valid)):
        idle.mset(["a", "b"], [b"x", value])


def test_a_buffer_with_gaps_or_released_is_refused(idle):
    with pytest.raises(TypeError, match="memoryview with gaps"):
        idle.set("key", memoryview(b"abcdef")[::2])
    released = memoryview(b"abcdef")
    released.release()
    with pytest.raises(TypeError, match="already released"):
        idle.set("key", released)


def test_mcreate_and_mset_buffer_refuse_wrong_types_and_sizes(idle):
    with refused(TypeError, TEXT.format("keys", "list")):
        idle.mcreate("k", [1])
    with refused(TypeError, TEXT.format("sizes", "list")):
        idle.mcreate(["k"], 1)
    with refused(TypeError, TEXT.format("sizes[0]", "int")):
        idle.mcreate(["k"], [True])
    for size in (-1, 0, 2**63, 2**70):
        with refused(RuntimeError, f"Invalid sizes[0] size {size} is set, which should be between "
                                   f"[1,{2**63 - 1}]"):
            idle.mcreate(["k"], [size])
    with refused(TypeError, TEXT.format("buffers", "list")):
        idle.mset_buffer(None)
    with refused(TypeError, TEXT.format("buffers[0]", "Buffer")):
        idle.mset_buffer([b"bytes"])


@pytest.mark.parametrize("arguments, name, valid", [
    ((1, b"v"), "key", "str"), (("k", b"v", 0), "write_mode", "WriteMode"),
    (("k", b"v", WriteMode.NONE_L2_CACHE, 1.0), "ttl_second", "int"),
    (("k", b"v", WriteMode.NONE_L2_CACHE, True), "ttl_second", "int"),
])
def test_set_refuses_wrong_types_by_name(idle, arguments, name, valid):
    with refused(TypeError, TEXT.format(name, valid)):
        idle.set(*arguments)


def test_numbers_of_calls_are_bounded(idle):
    with refused(RuntimeError,
                 "Invalid ttl_second size -1 is set, which should be between [0,4294967295]"):
        idle.set("k", b"v", ttl_second=-1)
    with refused(RuntimeError,
                 "Invalid sub_timeout_ms size -1 is set, which should be between [0,2147483647]"):
        idle.get(["k"], False, -1)
    with refused(TypeError, TEXT.format("convert_to_str", "bool")):
        idle.get(["k"], 1)
    with refused(TypeError, TEXT.format("existence_opt", "ExistenceOpt")):
        idle.mset(["k"], [b"v"], existence_opt=1)
    with refused(TypeError, TEXT.format("prefix", "str")):
        idle.generate_key(None)
    assert ExistenceOpt.NX != ExistenceOpt.NONE


def test_a_client_that_is_not_connected_says_so(idle):
    for call in (lambda: idle.get(["k"]), lambda: idle.set("k", b"v"), lambda: idle.delete(["k"]),
                 lambda: idle.exist(["k"])):
        with pytest.raises(RuntimeError, match=r"^code: \[Not ready\], msg: \[.*traceId: "):
            call()
    status = idle.health_check()
    assert type(status) is Status and status.is_error() and not status.is_ok()
    assert status.to_string().startswith("code: [")
    assert idle.set_value(b"v") == ""


def test_init_without_a_worker_raises_what_the_sdk_says(idle):
    with pytest.raises(RuntimeError, match=r"^code: \[RPC unavailable\], msg: \[.*127\.0\.0\.1:1"):
        idle.init()
    assert "not connected" in repr(idle)


def test_the_address_comes_from_the_environment_when_none_is_given(monkeypatch):
    monkeypatch.setenv("DATASYSTEM_HOST", "127.0.0.1")
    monkeypatch.setenv("DATASYSTEM_PORT", "1")
    with pytest.raises(RuntimeError, match=r"127\.0\.0\.1:1"):
        KVClient().init()


def test_credentials_are_refused_instead_of_ignored():
    with pytest.raises(RuntimeError, match=r"^code: \["):
        KVClient("127.0.0.1", 1, 100, token="secret").init()


def test_trace_ids_are_shown_in_errors_and_checked(idle):
    Context.set_trace_id("my-trace/1")
    try:
        with pytest.raises(RuntimeError, match="traceId: my-trace/1"):
            idle.get(["k"])
    finally:
        Context.set_trace_id("")
    with pytest.raises(RuntimeError):
        Context.set_trace_id("no spaces")
    with pytest.raises(RuntimeError):
        Context.set_trace_id("x" * 256)
    with refused(TypeError, TEXT.format("trace_id", "str")):
        Context.set_trace_id(None)


@pytest.mark.parametrize("call, text", [
    (lambda client: client.get(), "get() missing required argument 'keys'"),
    (lambda client: client.set("k"), "set() missing required argument 'val'"),
    (lambda client: client.get(["k"], False, 0, 0), "get() takes at most 3 arguments (4 given)"),
    (lambda client: client.get(["k"], keys=["k"]), "get() got multiple values for argument 'keys'"),
    (lambda client: client.exist(["k"], timeout=1), "exist() got an unexpected keyword argument 'timeout'"),
])
def test_wrong_arguments_are_named_as_python_does(idle, call, text):
    with refused(TypeError, text):
        call(idle)


def test_calls_without_a_wrapper_take_arguments_by_name(idle):
    for call in (lambda: idle.get(sub_timeout_ms=0, keys=["k"], convert_to_str=True), lambda: idle.exist(keys=["k"]),
                 lambda: idle.get_read_only_buffers(timeout_ms=0, keys=["k"]),
                 lambda: idle.set(val=b"v", key="k", ttl_second=2**32 - 1, write_mode=WriteMode.NONE_L2_CACHE)):
        with pytest.raises(RuntimeError, match=r"^code: \[Not ready\]"):
            call()
    for ttl in (2**32, 2**70):
        with pytest.raises(RuntimeError, match=f"Invalid ttl_second size {ttl} is set"):
            idle.set("k", b"v", ttl_second=ttl)


def test_a_client_whose_constructor_did_not_run_is_refused():
    with pytest.raises(TypeError, match="__init__"):
        KVClient.__new__(KVClient).get(["k"])

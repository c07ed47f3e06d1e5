"""KVClient: the key-value interface of the cache."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Union

from .lib import libds_client_py as _native
from .lib.libds_client_py import Buffer, CacheType, ExistenceOpt, WriteMode
from .util import INT32_MAX, UINT32_MAX, Status, Validator

if TYPE_CHECKING:
    from typing_extensions import Buffer as _AnyBuffer

    Value = Union[str, _AnyBuffer]

__all__ = ["Buffer", "CacheType", "ExistenceOpt", "KVClient", "ReadOnlyBuffer", "ReadParam", "SetParam"]


class SetParam(NamedTuple):
    """How a value is set, as one object. The methods of KVClient take its parts."""

    write_mode: WriteMode = WriteMode.NONE_L2_CACHE
    ttl_second: int = 0
    existence: ExistenceOpt = ExistenceOpt.NONE
    cache_type: CacheType = CacheType.MEMORY


class ReadParam(NamedTuple):
    """A part of a value: the bytes [offset, offset + size), clipped to its end; size 0 is to the end."""

    key: str
    offset: int = 0
    size: int = 0


class ReadOnlyBuffer:
    """A stored value, read in place.

    The bytes never change: an overwrite of the key makes a new object. Their memory is not reused
    while this object, or a memoryview taken from it, lives.
    """

    __slots__ = ("_native",)

    def __init__(self, native: _native.ReadOnlyBuffer) -> None:
        self._native = native

    def immutable_data(self, with_latch: bool = False, timeout_sec: int = 60) -> memoryview:
        """A read-only view of the value, without a copy.

        `with_latch` takes the read latch for the time of the call, waiting at most `timeout_sec`.
        """
        Validator.check_type("with_latch", with_latch, bool)
        if with_latch:
            self.rlatch(timeout_sec)
            try:
                return memoryview(self._native)
            finally:
                self.unrlatch()
        return memoryview(self._native)

    def rlatch(self, timeout_sec: int = 60) -> None:
        """For programs that latch before they read; there is no writer to wait for."""
        Validator.check_range("timeout_sec", timeout_sec, 1, INT32_MAX)
        self._native.rlatch(timeout_sec)

    def unrlatch(self) -> None:
        """Releases the read latch."""
        self._native.unrlatch()

    def __len__(self) -> int:
        return len(self._native)

    def __repr__(self) -> str:
        return f"<ReadOnlyBuffer of {len(self)} bytes>"


class KVClient:
    """A connection to one worker, normally the one on this node.

    Values then travel through shared memory. Constructing does not connect: call init(), or use the
    client as a context manager. Dropping the object, or close(), disconnects.

    Keys are 1 to 1024 letters, digits and -_!@#%^*()+=:;~$&. characters; values have at least one
    byte; a batch has any number of keys but none. A value is a str, or anything whose memory Python
    can read as one piece: bytes, bytearray, memoryview, array.array, a C-contiguous NumPy array.

    Wrong argument types raise TypeError. Everything else that fails raises RuntimeError; its text
    says what kind of failure it is, what happened, and the trace id. A batch call raises only if
    none of its keys succeeded.

    One client may be used from many threads, but not in a process forked after init(): create a
    client there. No call holds the GIL while it waits or copies.
    """

    __slots__ = ("_address", "_connected", "_native")

    def __init__(
        self,
        host: str = "",
        port: int = 0,
        timeout_ms: int = 60000,
        token: str = "",
        client_public_key: str = "",
        client_private_key: str = "",
        server_public_key: str = "",
        access_key: str = "",
        secret_key: str = "",
        tenant_id: str = "",
        enable_cross_node_connection: bool = False,
        req_timeout_ms: int = 0,
        enable_exclusive_connection: bool = False,
        *,
        connect_timeout_ms: int | None = None,
    ) -> None:
        """Takes the worker's address, or its parts from DATASYSTEM_HOST and DATASYSTEM_PORT.

        timeout_ms: for init(); connect_timeout_ms is another name of it. While it has its default,
            DATASYSTEM_CONNECT_TIME_MS takes its place.
        req_timeout_ms: for every other call; 0 or less means timeout_ms.
        token, keys, tenant_id: this version has no authentication; init() refuses them.
        enable_cross_node_connection, enable_exclusive_connection: accepted; they change nothing.
        """
        timeout_name = "timeout_ms"
        if connect_timeout_ms is not None:
            timeout_name, timeout_ms = "connect_timeout_ms", connect_timeout_ms
        texts = {
            "host": host,
            "token": token,
            "client_public_key": client_public_key,
            "client_private_key": client_private_key,
            "server_public_key": server_public_key,
            "access_key": access_key,
            "secret_key": secret_key,
            "tenant_id": tenant_id,
        }
        for name, text in texts.items():
            Validator.check_type(name, text, str)
        Validator.check_range("port", port, 0, 65535)
        Validator.check_range(timeout_name, timeout_ms, 0, INT32_MAX)
        Validator.check_type("enable_cross_node_connection", enable_cross_node_connection, bool)
        Validator.check_range("req_timeout_ms", req_timeout_ms, -INT32_MAX - 1, INT32_MAX)
        Validator.check_type("enable_exclusive_connection", enable_exclusive_connection, bool)
        self._address = f"{host or '$DATASYSTEM_HOST'}:{port or '$DATASYSTEM_PORT'}"
        self._connected = False
        self._native = _native.KVClient(
            host, port, timeout_ms, token, client_public_key, client_private_key, server_public_key,
            access_key, secret_key, tenant_id, enable_cross_node_connection, req_timeout_ms,
            enable_exclusive_connection)

    def init(self) -> None:
        """Connects. Does nothing while connected."""
        self._native.init()
        self._connected = True

    def close(self) -> None:
        """Disconnects, after the calls of other threads have returned.

        Buffers that are still held stay valid. init() connects again.
        """
        self._native.close()
        self._connected = False

    def set(self, key: str, val: Value,
            write_mode: WriteMode = WriteMode.NONE_L2_CACHE, ttl_second: int = 0) -> None:
        """Creates or overwrites `key`; every get in the cluster that starts after sees `val`.

        A str is stored as UTF-8. ttl_second: seconds until the key is deleted, 0 for never.
        """
        Validator.check_type("key", key, str)
        _check_set(write_mode, ttl_second)
        self._native.set(key, val, write_mode, ttl_second)

    def set_value(self, val: Value,
                  write_mode: WriteMode = WriteMode.NONE_L2_CACHE, ttl_second: int = 0) -> str:
        """Stores `val` under a generated key, and returns that; "" if it could not be stored."""
        _check_set(write_mode, ttl_second)
        return self._native.set_value(val, write_mode, ttl_second)

    def mset(self, keys: list[str], vals: list[Value],
             write_mode: WriteMode = WriteMode.NONE_L2_CACHE, ttl_second: int = 0,
             existence_opt: ExistenceOpt = ExistenceOpt.NONE) -> list[str]:
        """Sets many keys; returns those that were not stored.

        Of a key that occurs twice the first is stored, and the key is returned as failed.
        With NX, keys that exist are left alone and count as success.
        """
        Validator.check_type("keys", keys, list)
        Validator.check_type("vals", vals, list)
        _check_set(write_mode, ttl_second)
        Validator.check_type("existence_opt", existence_opt, ExistenceOpt)
        return self._native.mset(keys, vals, write_mode, ttl_second, existence_opt)

    def msettx(self, keys: list[str], vals: list[Value],
               write_mode: WriteMode = WriteMode.NONE_L2_CACHE, ttl_second: int = 0,
               existence_opt: ExistenceOpt = ExistenceOpt.NONE) -> None:
        """Sets all keys or none: 1 to 8 different ones, and existence_opt must be NX.

        RuntimeError "Object already exist error" if one of them exists.
        """
        Validator.check_type("keys", keys, list)
        Validator.check_type("vals", vals, list)
        _check_set(write_mode, ttl_second)
        Validator.check_type("existence_opt", existence_opt, ExistenceOpt)
        self._native.msettx(keys, vals, write_mode, ttl_second, existence_opt)

    def mcreate(self, keys: list[str], sizes: list[int],
                write_mode: WriteMode = WriteMode.NONE_L2_CACHE, ttl_second: int = 0) -> list[Buffer]:
        """Memory for a value of each key, to be filled in place and published by mset_buffer().

        Nothing is stored before that. A buffer that is dropped gives its memory back.
        RuntimeError, and no buffers, if there is not enough memory for all of them.
        """
        Validator.check_type("keys", keys, list)
        Validator.check_type("sizes", sizes, list)
        _check_set(write_mode, ttl_second)
        return self._native.mcreate(keys, sizes, write_mode, ttl_second)

    def mset_buffer(self, buffers: list[Buffer]) -> None:
        """Publishes buffers of mcreate(); every get in the cluster that starts after sees them.

        Views from mutable_data() and immutable_data() are released. What was made out of those (slices,
        NumPy arrays) must be gone, else nothing is published. RuntimeError if any buffer fails; the
        others are published.
        """
        Validator.check_type("buffers", buffers, list)
        self._native.mset_buffer(buffers)

    def get(self, keys: list[str], convert_to_str: bool = False,
            sub_timeout_ms: int = 0) -> list[bytes | str | None]:
        """A private copy of each value in the order of `keys`; None for a key that was not obtained.

        convert_to_str: values are UTF-8 text, returned as str.
        sub_timeout_ms: how long to wait for keys that do not exist yet.
        RuntimeError if no key was obtained.
        """
        Validator.check_type("keys", keys, list)
        Validator.check_type("convert_to_str", convert_to_str, bool)
        Validator.check_range("sub_timeout_ms", sub_timeout_ms, 0, INT32_MAX)
        return self._native.get(keys, convert_to_str, sub_timeout_ms)

    def get_read_only_buffers(self, keys: list[str],
                              timeout_ms: int = 0) -> list[ReadOnlyBuffer | None]:
        """As get(), but views of the values where they are, without a copy."""
        Validator.check_type("keys", keys, list)
        Validator.check_range("timeout_ms", timeout_ms, 0, INT32_MAX)
        buffers = self._native.get_read_only_buffers(keys, timeout_ms)
        return [None if buffer is None else ReadOnlyBuffer(buffer) for buffer in buffers]

    def get_buffers(self, keys: list[str], timeout_ms: int = 0) -> list[Buffer | None]:
        """As get_read_only_buffers(), with the class of mcreate(); they cannot be written."""
        Validator.check_type("keys", keys, list)
        Validator.check_range("timeout_ms", timeout_ms, 0, INT32_MAX)
        return self._native.get_buffers(keys, timeout_ms)

    def read(self, read_params: list[ReadParam]) -> list[ReadOnlyBuffer | None]:
        """Parts of values, as views without a copy, in the order of `read_params`; None as in get().

        Keys that do not exist yet are not waited for. RuntimeError if no part was obtained, a key
        occurs twice, or an offset is at or after the end of the only value asked for.
        """
        Validator.check_type("read_params", read_params, list)
        buffers = self._native.read(read_params)
        return [None if buffer is None else ReadOnlyBuffer(buffer) for buffer in buffers]

    def expire(self, keys: list[str], ttl_second: int) -> list[str]:
        """A new time to live for each key, from now on; 0 for no end. Returns the keys that failed.

        A key that does not exist has failed; RuntimeError if all have.
        """
        Validator.check_type("keys", keys, list)
        Validator.check_range("ttl_second", ttl_second, 0, UINT32_MAX)
        return self._native.expire(keys, ttl_second)

    def delete(self, keys: list[str]) -> list[str]:
        """Removes all copies everywhere; returns the keys that could not be removed.

        A key that does not exist counts as removed.
        """
        Validator.check_type("keys", keys, list)
        return self._native.delete(keys)

    def exist(self, keys: list[str]) -> list[bool]:
        """Which of the keys exist, in their order."""
        Validator.check_type("keys", keys, list)
        return self._native.exist(keys)

    def generate_key(self, prefix: str = "") -> str:
        """A key that nobody else has; begins with `prefix` if there is one."""
        Validator.check_type("prefix", prefix, str)
        return self._native.generate_key(prefix)

    def health_check(self) -> Status:
        """Whether the worker can be reached and serves."""
        return self._native.health_check()

    def __enter__(self) -> KVClient:
        if not self._connected:
            self.init()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<KVClient @ {self._address}, {'connected' if self._connected else 'not connected'}>"


def _check_set(write_mode: WriteMode, ttl_second: int) -> None:
    Validator.check_type("write_mode", write_mode, WriteMode)
    Validator.check_range("ttl_second", ttl_second, 0, UINT32_MAX)

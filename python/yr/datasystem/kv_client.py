"""KVClient: the key-value interface of the cache."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Union

from .lib import libds_client_py as _native
from .lib.libds_client_py import Buffer, CacheType, ExistenceOpt, ReadOnlyBuffer, WriteMode
from .util import INT32_MAX, UINT32_MAX, Status, Validator

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

    Value = Union[str, ReadableBuffer]

__all__ = ["Buffer", "CacheType", "ExistenceOpt", "KVClient", "ReadOnlyBuffer", "ReadParam", "SetParam",
           "WriteMode"]


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


class KVClient(_native.KVClient):
    """A connection to one worker, normally the one on this node.

    Values then travel through shared memory. Constructing does not connect: call init(), or use the
    client as a context manager. Dropping the object, or close(), disconnects.

    Keys are 1 to 1024 letters, digits and -_!@#%^*()+=:;~$&. characters; values have at least one
    byte; a batch has any number of keys but none. A value is a str, or anything whose memory Python
    can read as one piece: bytes (and its subclasses), bytearray, memoryview, array.array, a
    C-contiguous NumPy array.

    Wrong argument types raise TypeError. Everything else that fails raises RuntimeError; its text
    says what kind of failure it is, what happened, and the trace id. A batch call raises only if
    none of its keys succeeded.

    One client may be used from many threads, but not in a process forked after init(): create a
    client there. No call holds the GIL while it waits, or copies more than 64 KiB.
    """

    __slots__ = ("_address", "_connected")

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
        super().__init__(
            host, port, timeout_ms, token, client_public_key, client_private_key, server_public_key,
            access_key, secret_key, tenant_id, enable_cross_node_connection, req_timeout_ms,
            enable_exclusive_connection)

    def init(self) -> None:
        """Connects. Does nothing while connected."""
        super().init()
        self._connected = True

    def close(self) -> None:
        """Disconnects, after the calls of other threads have returned.

        Buffers that are still held stay valid. init() connects again.
        """
        super().close()
        self._connected = False

    def set_value(self, val: Value,
                  write_mode: WriteMode = WriteMode.NONE_L2_CACHE, ttl_second: int = 0) -> str:
        """Stores `val` under a generated key, and returns that; "" if it could not be stored."""
        _check_set(write_mode, ttl_second)
        return super().set_value(val, write_mode, ttl_second)

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
        return super().mset(keys, vals, write_mode, ttl_second, existence_opt)

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
        super().msettx(keys, vals, write_mode, ttl_second, existence_opt)

    def mcreate(self, keys: list[str], sizes: list[int],
                write_mode: WriteMode = WriteMode.NONE_L2_CACHE, ttl_second: int = 0) -> list[Buffer]:
        """Memory for a value of each key, to be filled in place and published by mset_buffer().

        Nothing is stored before that. A buffer that is dropped gives its memory back.
        RuntimeError, and no buffers, if there is not enough memory for all of them.
        """
        Validator.check_type("keys", keys, list)
        Validator.check_type("sizes", sizes, list)
        _check_set(write_mode, ttl_second)
        return super().mcreate(keys, sizes, write_mode, ttl_second)

    def mset_buffer(self, buffers: list[Buffer]) -> None:
        """Publishes buffers of mcreate(); every get in the cluster that starts after sees them.

        Views from mutable_data() and immutable_data() are released. What was made out of those (slices,
        NumPy arrays) must be gone, else nothing is published. RuntimeError if any buffer fails; the
        others are published.
        """
        Validator.check_type("buffers", buffers, list)
        super().mset_buffer(buffers)

    def get_buffers(self, keys: list[str], timeout_ms: int = 0) -> list[Buffer | None]:
        """As get_read_only_buffers(), with the class of mcreate(); they cannot be written."""
        Validator.check_type("keys", keys, list)
        Validator.check_range("timeout_ms", timeout_ms, 0, INT32_MAX)
        return super().get_buffers(keys, timeout_ms)

    def read(self, read_params: list[ReadParam]) -> list[ReadOnlyBuffer | None]:
        """Parts of values, as views without a copy, in the order of `read_params`; None as in get().

        Keys that do not exist yet are not waited for. RuntimeError if no part was obtained, a key
        occurs twice, or an offset is at or after the end of the only value asked for.
        """
        Validator.check_type("read_params", read_params, list)
        return super().read(read_params)

    def expire(self, keys: list[str], ttl_second: int) -> list[str]:
        """A new time to live for each key, from now on; 0 for no end. Returns the keys that failed.

        A key that does not exist has failed; RuntimeError if all have.
        """
        Validator.check_type("keys", keys, list)
        Validator.check_range("ttl_second", ttl_second, 0, UINT32_MAX)
        return super().expire(keys, ttl_second)

    def delete(self, keys: list[str]) -> list[str]:
        """Removes all copies everywhere; returns the keys that could not be removed.

        A key that does not exist counts as removed.
        """
        Validator.check_type("keys", keys, list)
        return super().delete(keys)

    def generate_key(self, prefix: str = "") -> str:
        """A key that nobody else has; begins with `prefix` if there is one."""
        Validator.check_type("prefix", prefix, str)
        return super().generate_key(prefix)

    def health_check(self) -> Status:
        """Whether the worker can be reached and serves."""
        return super().health_check()

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

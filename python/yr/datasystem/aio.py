"""AsyncKVClient: KVClient for asyncio.

    from yr.datasystem.aio import AsyncKVClient

    async with AsyncKVClient("127.0.0.1", 31501) as client:
        await client.set("key", b"value")
        assert await client.get(["key"]) == [b"value"]
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Callable, TypeVar

from .call_queue import CallQueue
from .kv_client import Buffer, ExistenceOpt, KVClient, ReadOnlyBuffer, ReadParam, WriteMode
from .util import INT32_MAX, Status, Validator

if TYPE_CHECKING:
    from .kv_client import Value
    from .lib.libds_client_py import PendingGet

__all__ = ["AsyncKVClient"]

_T = TypeVar("_T")

# Keys that one message holds; more are asked for by a thread, in several messages.
_KEYS_IN_MESSAGE = 10_000
# Each get that waits has a connection of its own, of which the SDK opens up to 128.
_WAITING_MAX = 96
# Further calls wait until some of these have ended.
_QUEUED_MAX = 1024


class AsyncKVClient:
    """As KVClient, method by method; what there returns a result returns an awaitable here.

    A get of values that are on this node is done at once, on the event loop. A get that waits, for
    another node or for keys that do not exist yet, occupies no thread: the loop watches its
    connection. Other calls run on up to `max_threads` threads that the client keeps.

    A call that is cancelled may still take effect. One client may be used by many tasks of one
    event loop, and not in a process forked after it was made.
    """

    __slots__ = ("_calls", "_client", "_waiting")

    def __init__(self, *args: Any, max_threads: int = 4, **kwargs: Any) -> None:
        """Takes the arguments of KVClient. Does not connect: await init(), or use `async with`."""
        Validator.check_range("max_threads", max_threads, 1, 1024)
        self._client = KVClient(*args, **kwargs)
        self._calls = CallQueue(max_threads, _QUEUED_MAX)
        self._waiting = asyncio.Semaphore(_WAITING_MAX)

    async def init(self) -> None:
        """Connects. Does nothing while connected."""
        self._calls.begin()
        await self._run(self._client.init)

    async def close(self) -> None:
        """Disconnects. Calls under way raise RuntimeError; those that had reached the worker may take effect.

        Returns when no thread is in a call any more. Buffers that are held stay valid. init() connects
        again.
        """
        self._calls.end("code: [Not ready], msg: [the client was closed: init() connects again]")
        closing = CallQueue(1, 1)  # the other one's threads may be busy
        try:
            await closing.run(self._client.close)
        finally:
            closing.end("")

    async def set(self, key: str, val: Value, write_mode: WriteMode = WriteMode.NONE_L2_CACHE,
                  ttl_second: int = 0) -> None:
        """See KVClient.set. `val` must not be changed before this has returned."""
        await self._run(self._client.set, key, val, write_mode, ttl_second)

    async def set_value(self, val: Value, write_mode: WriteMode = WriteMode.NONE_L2_CACHE,
                        ttl_second: int = 0) -> str:
        """See KVClient.set_value."""
        return await self._run(self._client.set_value, val, write_mode, ttl_second)

    async def mset(self, keys: list[str], vals: list[Value],
                   write_mode: WriteMode = WriteMode.NONE_L2_CACHE, ttl_second: int = 0,
                   existence_opt: ExistenceOpt = ExistenceOpt.NONE) -> list[str]:
        """See KVClient.mset."""
        return await self._run(self._client.mset, keys, vals, write_mode, ttl_second, existence_opt)

    async def msettx(self, keys: list[str], vals: list[Value],
                     write_mode: WriteMode = WriteMode.NONE_L2_CACHE, ttl_second: int = 0,
                     existence_opt: ExistenceOpt = ExistenceOpt.NONE) -> None:
        """See KVClient.msettx."""
        await self._run(self._client.msettx, keys, vals, write_mode, ttl_second, existence_opt)

    async def mcreate(self, keys: list[str], sizes: list[int],
                      write_mode: WriteMode = WriteMode.NONE_L2_CACHE,
                      ttl_second: int = 0) -> list[Buffer]:
        """See KVClient.mcreate."""
        return await self._run(self._client.mcreate, keys, sizes, write_mode, ttl_second)

    async def mset_buffer(self, buffers: list[Buffer]) -> None:
        """See KVClient.mset_buffer."""
        await self._run(self._client.mset_buffer, buffers)

    async def get(self, keys: list[str], convert_to_str: bool = False,
                  sub_timeout_ms: int = 0) -> list[bytes | str | None]:
        """See KVClient.get."""
        Validator.check_type("keys", keys, list)
        Validator.check_type("convert_to_str", convert_to_str, bool)
        Validator.check_range("sub_timeout_ms", sub_timeout_ms, 0, INT32_MAX)
        here = self._client._find_copies(keys, convert_to_str)
        if here is not None:
            return here
        if len(keys) > _KEYS_IN_MESSAGE:
            return await self._run(self._client.get, keys, convert_to_str, sub_timeout_ms)
        return await self._wait(keys, sub_timeout_ms, lambda get: get.finish_copying(convert_to_str))

    async def get_read_only_buffers(self, keys: list[str],
                                    timeout_ms: int = 0) -> list[ReadOnlyBuffer | None]:
        """See KVClient.get_read_only_buffers."""
        Validator.check_type("keys", keys, list)
        Validator.check_range("timeout_ms", timeout_ms, 0, INT32_MAX)
        buffers = self._client._find_views(keys)
        if buffers is None:
            if len(keys) > _KEYS_IN_MESSAGE:
                return await self._run(self._client.get_read_only_buffers, keys, timeout_ms)
            buffers = await self._wait(keys, timeout_ms, lambda get: get.finish_viewing())
        return buffers

    async def get_buffers(self, keys: list[str], timeout_ms: int = 0) -> list[Buffer | None]:
        """See KVClient.get_buffers."""
        Validator.check_type("keys", keys, list)
        Validator.check_range("timeout_ms", timeout_ms, 0, INT32_MAX)
        if len(keys) > _KEYS_IN_MESSAGE:
            return await self._run(self._client.get_buffers, keys, timeout_ms)
        return await self._wait(keys, timeout_ms, lambda get: get.finish_buffers())

    async def read(self, read_params: list[ReadParam]) -> list[ReadOnlyBuffer | None]:
        """See KVClient.read."""
        return await self._run(self._client.read, read_params)

    async def expire(self, keys: list[str], ttl_second: int) -> list[str]:
        """See KVClient.expire."""
        return await self._run(self._client.expire, keys, ttl_second)

    async def delete(self, keys: list[str]) -> list[str]:
        """See KVClient.delete."""
        return await self._run(self._client.delete, keys)

    async def exist(self, keys: list[str]) -> list[bool]:
        """See KVClient.exist."""
        Validator.check_type("keys", keys, list)
        here = self._client._find_existing(keys)
        return here if here is not None else await self._run(self._client.exist, keys)

    def generate_key(self, prefix: str = "") -> str:
        """See KVClient.generate_key; it needs no waiting."""
        return self._client.generate_key(prefix)

    async def health_check(self) -> Status:
        """See KVClient.health_check."""
        return await self._run(self._client.health_check)

    async def __aenter__(self) -> AsyncKVClient:
        await self.init()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<Async{repr(self._client)[1:]}"

    async def _run(self, call: Callable[..., _T], *args: object) -> _T:
        return await self._calls.run(call, *args)

    async def _wait(self, keys: list[str], sub_timeout_ms: int, finish: Callable[[PendingGet], _T]) -> _T:
        async with self._waiting:
            pending = await self._run(self._client._start_get, keys, sub_timeout_ms)
            if pending.fileno() >= 0:
                await self._readable(pending.fileno(), pending.remaining_ms() / 1000)
            # The answer is there, or the time is over; large values take a while to receive.
            return await self._run(finish, pending)

    async def _readable(self, descriptor: int, seconds: float) -> None:
        """Returns when there is something to read, or after that time."""
        loop = asyncio.get_running_loop()
        readable: asyncio.Future[None] = loop.create_future()

        def wake() -> None:
            if not readable.done():
                readable.set_result(None)

        loop.add_reader(descriptor, wake)
        timer = loop.call_later(seconds, wake)
        try:
            await self._calls.until(readable)
        finally:
            timer.cancel()
            loop.remove_reader(descriptor)

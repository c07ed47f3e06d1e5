"""CallQueue: blocking calls for an event loop, on a few threads."""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque
from queue import SimpleQueue
from typing import Any, Callable, NamedTuple, TypeVar

from .lib import libds_client_py as _native
from .util import current_trace_id

__all__ = ["CallQueue"]

_T = TypeVar("_T")


class CallQueue:
    """Runs blocking calls on at most `threads_max` threads, which are started when they are needed.

    At most `calls_max` calls are queued; who comes later waits before it queues its own. Calls that
    end at the same time wake the event loop once.

    All methods are for the event loop, and for one loop at a time.
    """

    def __init__(self, threads_max: int, calls_max: int) -> None:
        self._threads_max = threads_max
        self._room = asyncio.Semaphore(calls_max)
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()  # None ends one thread
        self._threads = 0
        self._under_way = 0
        self._pending: set[asyncio.Future[Any]] = set()
        self._outcomes: _Outcomes | None = None
        self._ended: str | None = None
        self._process = os.getpid()

    async def run(self, call: Callable[..., _T], *args: object) -> _T:
        """What call(*args) returns or raises; it has the trace id of this thread.

        If this is cancelled before a thread has begun with the call, nothing is called.
        """
        if os.getpid() != self._process:  # the threads are the parent's
            raise RuntimeError(f"code: [Runtime error], msg: [this client was created in process {self._process}; "
                               f"create a new AsyncKVClient after fork]")
        async with self._room:
            self._check()
            loop = asyncio.get_running_loop()
            if self._outcomes is None or self._outcomes.loop is not loop:
                self._outcomes = _Outcomes(loop)
            future: asyncio.Future[_T] = loop.create_future()
            self._under_way += 1
            try:
                if self._under_way > self._threads and self._threads < self._threads_max:
                    threading.Thread(target=_serve, args=(self._calls,), name="datasystem", daemon=True).start()
                    self._threads += 1
                self._calls.put(_Call(call, args, current_trace_id(), future, self._outcomes))
                return await self.until(future)
            finally:
                self._under_way -= 1

    async def until(self, future: asyncio.Future[_T]) -> _T:
        """Awaits a future that end() makes fail."""
        self._check()
        self._pending.add(future)
        try:
            return await future
        finally:
            self._pending.discard(future)

    def end(self, reason: str) -> None:
        """Whoever still waits, or comes before begin(), gets RuntimeError(reason), and the threads end.

        What a thread has begun goes on, and its outcome is dropped.
        """
        self._ended = reason
        for future in self._pending:
            if not future.done():
                future.set_exception(RuntimeError(reason))
        self._end_threads()
        self._calls = SimpleQueue()

    def begin(self) -> None:
        """After end(): takes calls again."""
        self._ended = None

    def __del__(self) -> None:
        self._end_threads()

    def _check(self) -> None:
        if self._ended is not None:
            raise RuntimeError(self._ended)

    def _end_threads(self) -> None:
        for _ in range(self._threads):
            self._calls.put(None)
        self._threads = 0


class _Outcomes:
    """Outcomes of calls on their way from threads to an event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._arrived: deque[tuple[asyncio.Future[Any], Any, BaseException | None]] = deque()
        self._woken = False

    def add(self, future: asyncio.Future[Any], result: Any, failure: BaseException | None) -> None:
        """From any thread."""
        self._arrived.append((future, result, failure))
        if self._woken:
            return  # _deliver() is still to reset it, and looks for arrivals after that
        self._woken = True
        try:
            self.loop.call_soon_threadsafe(self._deliver)
        except RuntimeError:  # the loop is closed
            self._arrived.clear()

    def _deliver(self) -> None:
        self._woken = False
        while self._arrived:
            future, result, failure = self._arrived.popleft()
            if future.done():
                continue
            if failure is None:
                future.set_result(result)
            else:
                future.set_exception(failure)


class _Call(NamedTuple):
    call: Callable[..., Any]
    args: tuple[Any, ...]
    trace_id: str
    future: asyncio.Future[Any]
    outcomes: _Outcomes


def _serve(calls: SimpleQueue[_Call | None]) -> None:
    """A thread. It keeps nothing of a call that is over: results may hold memory of the cache."""
    while _serve_one(calls):
        pass


def _serve_one(calls: SimpleQueue[_Call | None]) -> bool:
    item = calls.get()
    if item is None:
        return False
    if item.future.done():
        return True
    _native.set_trace_id(item.trace_id)
    try:
        item.outcomes.add(item.future, item.call(*item.args), None)
    except BaseException as failure:
        item.outcomes.add(item.future, None, failure)
    return True

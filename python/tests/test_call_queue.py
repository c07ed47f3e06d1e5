"""CallQueue: what AsyncKVClient runs its blocking calls on."""

import asyncio
import gc
import threading
import time
import weakref

import pytest

from yr.datasystem import Context, KVClient
from yr.datasystem.call_queue import CallQueue


def threads_of_queues():
    return [thread for thread in threading.enumerate() if thread.name == "datasystem"]


def wait_until(condition):
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


@pytest.fixture
def gate():
    """An event that calls can wait for; set at the end, so that no thread is left behind."""
    event = threading.Event()
    yield event
    event.set()
    gc.collect()  # exceptions keep the queue that they came from
    wait_until(lambda: not threads_of_queues())


def test_results_and_exceptions_come_back(gate):
    def divide(a, b):
        return a // b

    async def scenario():
        queue = CallQueue(2, 10)
        assert await queue.run(divide, 7, 2) == 3
        with pytest.raises(ZeroDivisionError):
            await queue.run(divide, 1, 0)
    asyncio.run(scenario())


def test_no_more_threads_are_started_than_calls_need_or_the_limit_allows(gate):
    async def scenario():
        queue = CallQueue(3, 100)
        for _ in range(5):
            await queue.run(int)
        assert len(threads_of_queues()) == 1
        calls = [asyncio.ensure_future(queue.run(gate.wait, 30)) for _ in range(10)]
        await asyncio.sleep(0)
        assert len(threads_of_queues()) == 3
        gate.set()
        assert await asyncio.gather(*calls) == [True] * 10
    asyncio.run(scenario())


def test_a_call_that_is_cancelled_in_the_queue_is_never_made(gate):
    made = []

    async def scenario():
        queue = CallQueue(1, 100)
        first = asyncio.ensure_future(queue.run(gate.wait, 30))
        second = asyncio.ensure_future(queue.run(made.append, 2))
        third = asyncio.ensure_future(queue.run(made.append, 3))
        await asyncio.sleep(0)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        gate.set()
        await asyncio.gather(first, third)
    asyncio.run(scenario())
    assert made == [3]


def test_the_result_of_a_cancelled_call_is_dropped(gate):
    class Result:
        pass

    begun, dropped = threading.Event(), []

    def make():
        begun.set()
        gate.wait(30)
        result = Result()
        weakref.finalize(result, dropped.append, True)
        return result

    async def scenario():
        queue = CallQueue(1, 100)
        call = asyncio.ensure_future(queue.run(make))
        await asyncio.sleep(0)
        assert begun.wait(20)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        gate.set()
        await queue.run(int)  # the thread is done with the first
        gc.collect()
        assert dropped == [True]
    asyncio.run(scenario())


def test_calls_beyond_the_limit_wait_outside(gate):
    async def scenario():
        queue = CallQueue(1, 2)
        calls = [asyncio.ensure_future(queue.run(gate.wait, 30)) for _ in range(50)]
        for _ in range(5):
            await asyncio.sleep(0)
        assert queue._calls.qsize() <= 2
        gate.set()
        await asyncio.gather(*calls)
    asyncio.run(scenario())


def test_ending_it_fails_what_waits_and_it_can_be_used_again(gate):
    async def scenario():
        queue = CallQueue(2, 100)
        calls = [asyncio.ensure_future(queue.run(gate.wait, 30)) for _ in range(5)]
        await asyncio.sleep(0)
        queue.end("the end")
        for call in calls:
            with pytest.raises(RuntimeError, match="the end"):
                await call
        with pytest.raises(RuntimeError, match="the end"):
            await queue.run(int)
        queue.begin()
        assert await queue.run(int) == 0
        queue.end("again")
        gate.set()
    asyncio.run(scenario())


def test_what_comes_late_to_the_end_is_not_begun(gate):
    async def scenario():
        queue = CallQueue(1, 1)
        calls = [asyncio.ensure_future(queue.run(gate.wait, 30)) for _ in range(3)]  # two of them outside
        await asyncio.sleep(0)
        queue.end("the end")
        late = asyncio.get_running_loop().create_future()
        with pytest.raises(RuntimeError, match="the end"):
            await queue.until(late)
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        assert [str(outcome) for outcome in outcomes] == ["the end"] * 3
    asyncio.run(scenario())


def test_its_threads_end_with_it(gate):
    async def scenario():
        await CallQueue(2, 100).run(int)
    asyncio.run(scenario())
    gc.collect()
    wait_until(lambda: not threads_of_queues())


def test_it_serves_one_event_loop_after_the_other(gate):
    queue = CallQueue(1, 100)
    for _ in range(3):
        assert asyncio.run(queue.run(int)) == 0


def test_a_loop_that_was_closed_does_not_hurt_its_threads(gate):
    queue = CallQueue(1, 100)
    loop = asyncio.new_event_loop()
    call = loop.create_task(queue.run(gate.wait, 30))
    loop.run_until_complete(asyncio.sleep(0))
    call.cancel()
    loop.run_until_complete(asyncio.gather(call, return_exceptions=True))
    loop.close()
    gate.set()
    assert asyncio.run(queue.run(int)) == 0


def test_calls_have_the_trace_id_of_who_made_them(gate):
    idle = KVClient("127.0.0.1", 1)

    async def scenario():
        queue = CallQueue(1, 100)
        for trace_id in ("first-trace", "second/trace"):
            Context.set_trace_id(trace_id)
            with pytest.raises(RuntimeError, match=f"traceId: {trace_id}"):
                await queue.run(idle.get, ["key"])
        Context.set_trace_id("")
        with pytest.raises(RuntimeError) as failure:
            await queue.run(idle.get, ["key"])
        assert "trace/" not in str(failure.value)
    try:
        asyncio.run(scenario())
    finally:
        Context.set_trace_id("")

"""AsyncKVClient against a real worker."""

import asyncio
import inspect
import subprocess
import sys
import threading
import uuid

import pytest

from yr.datasystem import Context, KVClient
from yr.datasystem.aio import AsyncKVClient
from yr.datasystem.kv_client import ExistenceOpt, ReadParam


def run(worker, scenario, **options):
    async def connected():
        async with AsyncKVClient(*worker, **options) as client:
            return await asyncio.wait_for(scenario(client, str(uuid.uuid4())), 60)
    return asyncio.run(connected())


@pytest.mark.parametrize("size", [5, 600_000], ids=["small", "large"])
def test_every_call_has_its_awaitable_twin(worker, size):
    async def scenario(client, key):
        value = bytes(size)
        names = [f"{key}-{i}" for i in range(4)]
        await client.set(names[0], value)
        assert await client.get(names[:1]) == [value]
        assert await client.get(names[:2]) == [value, None]
        views = await client.get_read_only_buffers(names[:2])
        assert views[0].immutable_data() == value and views[1] is None
        assert bytes((await client.get_buffers(names[:1]))[0].immutable_data()) == value
        assert await client.mset(names[1:3], [value, value]) == []
        await client.msettx([names[3]], [value], existence_opt=ExistenceOpt.NX)
        assert await client.exist([*names, "absent"]) == [True] * 4 + [False]
        assert (await client.read([ReadParam(names[0], 1, 2)]))[0].immutable_data() == value[1:3]
        assert await client.expire([names[0], "absent"], 1000) == ["absent"]
        buffers = await client.mcreate([names[1]], [3])
        buffers[0].memory_copy(b"abc")
        await client.mset_buffer(buffers)
        assert await client.get([names[1]], convert_to_str=True) == ["abc"]
        assert (await client.health_check()).is_ok()
        made = await client.set_value(value)
        assert await client.delete([*names, made]) == []
        assert client.generate_key("p").startswith("p;")
    run(worker, scenario)


def test_it_has_all_methods_of_the_client_with_their_parameters():
    for name, method in inspect.getmembers(KVClient, inspect.isfunction):
        if not name.startswith("_"):
            twin = inspect.signature(getattr(AsyncKVClient, name))
            assert list(twin.parameters) == list(inspect.signature(method).parameters), name


def test_many_gets_that_wait_for_keys_occupy_no_thread_each(worker, client):
    before = threading.active_count()

    async def scenario(waiting, key):
        names = [f"{key}-{i}" for i in range(60)]
        gets = [asyncio.ensure_future(waiting.get([name], sub_timeout_ms=30_000)) for name in names]
        await waiting.set(f"{key}-other", b"goes on")  # though all of them wait
        done, _ = await asyncio.wait(gets, timeout=0.05)
        assert not done
        assert threading.active_count() <= before + 3
        client.mset(names, [name.encode() for name in names])
        assert await asyncio.gather(*gets) == [[name.encode()] for name in names]
        client.delete([*names, f"{key}-other"])
    run(worker, scenario, max_threads=3)


def test_more_waiting_gets_than_connections_all_end(worker, client):
    async def scenario(waiting, key):
        names = [f"{key}-{i}" for i in range(300)]
        gets = [asyncio.ensure_future(waiting.get([name], sub_timeout_ms=40_000)) for name in names]
        await asyncio.sleep(0)
        for name in names:
            client.set(name, b"v")
        assert await asyncio.gather(*gets) == [[b"v"]] * 300
        client.delete(names)
    run(worker, scenario)


def test_a_get_of_nothing_raises_after_its_time(worker):
    async def scenario(client, key):
        for call in (client.get([key], sub_timeout_ms=20), client.get_read_only_buffers([key], 20), client.get([key])):
            with pytest.raises(RuntimeError, match=r"^code: \[Key not found\]"):
                await call
        with pytest.raises(RuntimeError, match="The keys are empty"):
            await client.get([])
        with pytest.raises(TypeError, match="The input of keys has invalid type"):
            await client.get(key)
    run(worker, scenario)


def test_a_cancelled_get_leaves_the_client_in_order(worker, client):
    async def scenario(waiting, key):
        for _ in range(200):  # more than there are connections
            get = asyncio.ensure_future(waiting.get([key], sub_timeout_ms=30_000))
            await asyncio.sleep(0.001)
            get.cancel()
            with pytest.raises(asyncio.CancelledError):
                await get
        client.set(key, b"v")
        assert await waiting.get([key, key + "-absent"]) == [b"v", None]
        client.delete([key])
    run(worker, scenario)


def test_closing_ends_the_calls_under_way_and_the_client_can_connect_again(worker, client):
    async def scenario(waiting, key):
        gets = [asyncio.ensure_future(waiting.get([f"{key}-{i}"], sub_timeout_ms=60_000)) for i in range(200)]
        views = asyncio.ensure_future(waiting.get_buffers([key], 60_000))
        while not waiting._calls._pending:
            await asyncio.sleep(0)
        await waiting.close()
        for get in [*gets, views]:
            with pytest.raises(RuntimeError, match=r"^code: \[Not ready\], msg: \[the client was closed"):
                await get
        await waiting.init()
        await waiting.set(key, b"v")
        assert await waiting.get([key]) == [b"v"]
        client.delete([key])
    run(worker, scenario)


def test_what_is_on_this_node_needs_no_thread(worker, client):
    client.set("aio-here", b"value")

    async def scenario(waiting, key):
        await waiting.close()  # and with it its threads
        waiting._client.init()
        assert await waiting.get(["aio-here"]) == [b"value"]
        assert (await waiting.get_read_only_buffers(["aio-here"]))[0].immutable_data() == b"value"
        assert await waiting.exist(["aio-here"]) == [True]
        assert waiting._calls._threads == 0
    run(worker, scenario)
    client.delete(["aio-here"])


def test_large_values_are_not_copied_on_the_loop(worker, client):
    client.set("aio-large", bytes(8 << 20))

    async def scenario(waiting, key):
        assert waiting._client._find_copies(["aio-large"], False) is None
        assert await waiting.get(["aio-large"]) == [bytes(8 << 20)]
    run(worker, scenario)
    client.delete(["aio-large"])


CHILD = """
import asyncio, os, sys
from yr.datasystem.aio import AsyncKVClient
worker = sys.argv[1], int(sys.argv[2])
async def parent():
    client = AsyncKVClient(*worker)
    await client.init()
    await client.set("aio-fork", b"parents")
    return client
client = asyncio.run(parent())
async def child():
    for call in (client.set("k", b"v"), client.get(["aio-fork"]), client.exist(["aio-fork"]), client.close()):
        try:
            await call
        except RuntimeError as failure:
            print("new" if "after fork" in str(failure) else failure, flush=True)
    async with AsyncKVClient(*worker) as own:
        print(await own.get(["aio-fork"]), flush=True)
        await own.set("aio-fork", b"childs")
if os.fork() == 0:
    asyncio.run(child())
    os._exit(0)
os.wait()
print(asyncio.run(client.get(["aio-fork"])), asyncio.run(client.delete(["aio-fork"])))
"""


def test_after_a_fork_it_says_so_and_a_new_one_works(worker):
    ended = subprocess.run([sys.executable, "-c", CHILD, worker[0], str(worker[1])], capture_output=True, text=True,
                           timeout=60)
    assert ended.stdout.splitlines() == ["new"] * 4 + ["[b'parents']", "[b'childs'] []"], ended.stderr


def test_the_trace_id_of_the_thread_is_that_of_its_calls(worker):
    async def scenario(client, key):
        Context.set_trace_id("aio/trace")
        try:
            for call in (client.get([key]), client.get([key], sub_timeout_ms=5), client.expire([key], 1)):
                with pytest.raises(RuntimeError, match="traceId: aio/trace"):
                    await call
        finally:
            Context.set_trace_id("")
    run(worker, scenario)


def test_a_worker_that_does_not_answer_ends_the_get_by_its_time(silent_server):
    async def scenario():
        client = AsyncKVClient(*silent_server, timeout_ms=300)
        with pytest.raises(RuntimeError, match=r"^code: \[RPC deadline exceeded\]|did not answer within"):
            await client.init()
        with pytest.raises(RuntimeError, match=r"^code: \[Not ready\]"):
            await client.get(["key"])
    asyncio.run(scenario())

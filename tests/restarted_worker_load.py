"""restarted_worker_load.py HOST PORT SEED: four threads with one client, while its worker is killed and started again.

Goes on until its input is closed. Exits with 1 if a value is torn, a view changes, or a call fails with anything but
what a worker that goes away explains. Prints how many memory files of workers it has mapped: at the end of the load, and
once its client is closed.
"""

import random
import re
import sys
import threading
from pathlib import Path

from yr.datasystem import KVClient

SIZES = (20, 20_000, 700_000)
_KEYS = 20
_EXPLAINED = ("Key not found", "Client and Worker disconnect", "RPC unavailable")
_EXPLAINED_OF_BUFFERS = (*_EXPLAINED, "session has ended: create a new buffer")


def is_whole(value):
    return len(value) in SIZES and bytes(value).count(value[:1]) == len(value)


def attempt(call, explained=_EXPLAINED):
    try:
        return call()
    except RuntimeError as error:
        if not any(words in str(error) for words in explained):
            raise
        return None


def fill_in_place(client, key, value):
    buffer, = client.mcreate([key], [len(value)])
    buffer.memory_copy(value)
    attempt(lambda: client.mset_buffer([buffer]), _EXPLAINED_OF_BUFFERS)


def load(client, rng, stop):
    held = []
    while not stop.is_set():
        key = f"key-{rng.randrange(_KEYS)}"
        value = bytes([rng.randrange(1, 256)]) * rng.choice(SIZES)
        action = rng.randrange(5)
        if action == 0:
            attempt(lambda: client.set(key, value))
        elif action == 1:
            attempt(lambda: fill_in_place(client, key, value))
        else:
            held = (held + (attempt(lambda: client.get_read_only_buffers([key])) or []))[-5:]
        assert all(is_whole(bytes(view.immutable_data())) for view in held)


def mapped_files():
    return len(set(re.findall(r" (\d+) +/memfd:datasystem", Path("/proc/self/maps").read_text())))


def main():
    host, port, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    client = KVClient(host, port, timeout_ms=20000, req_timeout_ms=20000)
    client.init()
    stop, failures = threading.Event(), []

    def run(number):
        try:
            load(client, random.Random(seed + number), stop)
        except BaseException as error:
            failures.append(error)
            raise
    threads = [threading.Thread(target=run, args=[number]) for number in range(4)]
    for thread in threads:
        thread.start()
    print("ready", flush=True)
    sys.stdin.read()
    stop.set()
    for thread in threads:
        thread.join()
    client.set("alive", b"x")
    at_the_end = mapped_files()
    client.close()
    print(at_the_end, mapped_files(), flush=True)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()

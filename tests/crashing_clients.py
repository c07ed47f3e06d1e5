"""crashing_clients.py HOST PORT ROUNDS SEED: clients that are killed at any instruction.

Forks ROUNDS processes, a few at a time, which do random calls on the keys that all share; each is killed after
some milliseconds. Exits with 1 if one of them saw a value that nobody ever set.
"""

import os
import random
import select
import signal
import sys
import time

from yr.datasystem import KVClient

KEYS = [f"crash-{i}" for i in range(8)]
SIZES = (20, 5_000, 100_000, 600_000, 700_001)
_HEADER = 8
_TOGETHER = 4
_LIFE_MAX_S = 0.04
_BAD_VALUE = 77


def make_value(rng):
    """A value that shows whether it is whole: its size, then one letter again and again."""
    size = rng.choice(SIZES)
    return size.to_bytes(_HEADER, "little") + bytes([rng.randrange(1, 256)]) * (size - _HEADER)


def is_whole(value):
    """Of bytes or a view."""
    size = int.from_bytes(value[:_HEADER], "little")
    return len(value) == size and bytes(value[_HEADER:]).count(bytes(value[_HEADER:_HEADER + 1])) == size - _HEADER


def live(host, port, rng):
    client = KVClient(host, port, timeout_ms=20000)
    client.init()
    held = []
    while True:
        key = rng.choice(KEYS)
        action = rng.randrange(6)
        try:
            if action == 0:
                client.set(key, make_value(rng))
            elif action == 1:
                value = make_value(rng)
                buffers = client.mcreate([key, key + "-made"], [len(value), 600_000])
                buffers[0].memory_copy(value)
                client.mset_buffer(buffers[:1])
            elif action == 2:
                held += client.get_read_only_buffers([key])
                held = held[-30:]
            elif action == 3:
                client.delete([key])
            elif action == 4:
                client.exist(KEYS)
            elif not is_whole(client.get([key])[0]):
                os._exit(_BAD_VALUE)
        except RuntimeError as error:
            if "not found" not in str(error):
                print(error, flush=True)
                os._exit(_BAD_VALUE)
        if any(not is_whole(buffer.immutable_data()) for buffer in held[-2:]):
            os._exit(_BAD_VALUE)


def end_at(kill_at, pid):
    """Kills the process when its time has come, unless it ends before; returns its status."""
    descriptor = os.pidfd_open(pid)
    select.select([descriptor], [], [], max(0, kill_at - time.monotonic()))
    os.close(descriptor)
    os.kill(pid, signal.SIGKILL)
    return os.waitpid(pid, 0)[1]


def main():
    host, port, rounds, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    rng = random.Random(seed)
    begun, living = 0, []  # (when to kill, pid)
    while begun < rounds or living:
        while begun < rounds and len(living) < _TOGETHER:
            begun += 1
            pid = os.fork()
            if pid == 0:
                try:
                    live(host, port, random.Random(seed + begun))
                finally:
                    os._exit(_BAD_VALUE)
            living.append((time.monotonic() + rng.uniform(0, _LIFE_MAX_S), pid))
        living.sort()
        kill_at, pid = living.pop(0)
        status = end_at(kill_at, pid)
        if os.WIFEXITED(status):
            sys.exit(f"a client ended by itself, with {os.WEXITSTATUS(status)}")


if __name__ == "__main__":
    main()

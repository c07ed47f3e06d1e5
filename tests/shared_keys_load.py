"""One process of test_many_processes.py: sets, gets and deletes keys that other processes use too, and checks what it
reads. Prints "ready" once it is connected, and at the end what it did as JSON.

    shared_keys_load.py SEED SECONDS HOST PORT [faults]

faults: workers die and stop meanwhile. Calls may fail, and keys may be lost, but what is read is still never torn and
never older than what was read before.

A value is: a counter of the key, its writer, filling, digest. Each key has one process that writes it, with a growing
counter, so a reader that meets a smaller counter than before was given a stale value.
"""

import hashlib
import json
import random
import struct
import sys
import time

from yr.datasystem import KVClient

KEYS = 50
PROCESSES = 8
SIZES = [20, 1000, 100_000, 600_000]


def pack(counter, rng):
    body = struct.pack("<Q", counter) + rng.randbytes(rng.choice(SIZES))
    return body + hashlib.sha1(body).digest()


def counter_of(value):
    body, digest = value[:-20], value[-20:]
    assert hashlib.sha1(body).digest() == digest, f"torn value of {len(value)} bytes"
    return struct.unpack("<Q", body[:8])[0]


class Load:
    def __init__(self, seed, client, faults):
        self._rng = random.Random(seed)
        self._own = seed % PROCESSES
        self._client = client
        self._faults = faults
        self._counter = 0
        self._written = {}  # own keys: the counter that must be there, None after a delete
        self._seen = {}
        self.done = {"sets": 0, "gets": 0, "misses": 0, "deletes": 0, "errors": 0}

    def step(self):
        key = self._rng.randrange(KEYS)
        mine = key % PROCESSES == self._own
        try:
            if mine and self._rng.random() < 0.5:
                self._change(key, f"shared-{key}")
            else:
                self._read(key, f"shared-{key}", mine)
        except RuntimeError:
            if not self._faults:
                raise
            self.done["errors"] += 1

    def _change(self, key, name):
        if self._rng.random() < 0.2:
            assert self._client.delete([name]) == []
            self._written[key] = None
            self.done["deletes"] += 1
        else:
            self._counter += 1
            self._client.set(name, pack(self._counter, self._rng))
            self._written[key] = self._counter
            self.done["sets"] += 1

    def _read(self, key, name, mine):
        expected = self._written.get(key)
        try:
            value = self._client.get([name])[0]
        except RuntimeError as error:
            if not str(error).startswith("code: [Key not found]"):
                raise
            assert self._faults or expected is None, f"{name} is gone, its writer has set {expected}"
            self.done["misses"] += 1
            return
        now = counter_of(value)
        assert now >= self._seen.get(key, 0), f"{name}: read {now} after {self._seen[key]}"
        if mine and not self._faults:
            assert now == expected, f"{name}: read {now}, its writer has set {expected}"
        self._seen[key] = now
        self.done["gets"] += 1


def main():
    seed, seconds, host, port = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    faults = sys.argv[5:] == ["faults"]
    timeout_ms = 2000 if faults else 30000
    client = KVClient(host, port, timeout_ms=timeout_ms, req_timeout_ms=timeout_ms)
    client.init()
    load = Load(seed, client, faults)
    print("ready", flush=True)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        load.step()
    print(json.dumps(load.done))


if __name__ == "__main__":
    main()

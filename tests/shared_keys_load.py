"""One process of test_many_processes.py: sets, gets and deletes keys that other processes use too, and checks what it
reads. Prints what it did as JSON.

    shared_keys_load.py SEED SECONDS HOST PORT

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


def main():
    seed, seconds, host, port = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    rng = random.Random(seed)
    client = KVClient(host, port, timeout_ms=30000, req_timeout_ms=30000)
    client.init()
    counter = 0
    written = {}  # own keys: the counter that must be there, None after a delete
    seen = {}
    done = {"sets": 0, "gets": 0, "misses": 0, "deletes": 0}
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        key = rng.randrange(KEYS)
        name, mine = f"shared-{key}", key % PROCESSES == seed % PROCESSES
        if mine and rng.random() < 0.5:
            if rng.random() < 0.2:
                assert client.delete([name]) == []
                written[key] = None
                done["deletes"] += 1
            else:
                counter += 1
                client.set(name, pack(counter, rng))
                written[key] = counter
                done["sets"] += 1
            continue
        try:
            value = client.get([name])[0]
        except RuntimeError as error:
            assert str(error).startswith("code: [Key not found]"), error
            assert written.get(key) is None, f"{name} is gone, its writer has set {written[key]}"
            done["misses"] += 1
            continue
        now = counter_of(value)
        assert now >= seen.get(key, 0), f"{name}: read {now} after {seen[key]}"
        if mine:
            assert now == written.get(key), f"{name}: read {now}, its writer has set {written.get(key)}"
        seen[key] = now
        done["gets"] += 1
    print(json.dumps(done))


if __name__ == "__main__":
    main()

"""crashing_clients_under_pressure.py HOST PORT ROUNDS SEED: as crashing_clients.py, where memory is short: what is set may
be evicted, or ends within a second, and comes from the other node.
"""

import os

import crashing_clients
from crashing_clients import is_whole, make_value
from yr.datasystem import KVClient, WriteMode

KEYS = [f"pressed-{i}" for i in range(150)]
_EXPLAINED = ("Key not found", "Out of memory")


def act(client, rng, held):
    key = rng.choice(KEYS)
    ttl = rng.choice((0, 0, 0, 1))
    action = rng.randrange(8)
    if action < 2:
        client.set(key, make_value(rng), WriteMode.NONE_L2_CACHE_EVICT, ttl)
    elif action == 2:
        names = rng.sample(KEYS, 4)
        client.mset(names, [make_value(rng) for _ in names], WriteMode.NONE_L2_CACHE_EVICT, ttl)
    elif action == 3:
        client.expire([key], 1)
    elif action == 4:
        held += client.get_read_only_buffers([key])
        del held[:-10]
    else:
        for value in client.get(rng.sample(KEYS, 4)):
            assert value is None or is_whole(value), "a torn value"
    assert all(is_whole(view.immutable_data()) for view in held[-2:]), "a torn view"


def live(host, port, rng):
    client = KVClient(host, port, timeout_ms=20000)
    client.init()
    held = []
    while True:
        try:
            act(client, rng, held)
        except RuntimeError as error:
            if not any(words in str(error) for words in _EXPLAINED):
                print(error, flush=True)
                os._exit(1)
        except AssertionError as error:
            print(error, flush=True)
            os._exit(1)


if __name__ == "__main__":
    crashing_clients.live = live
    crashing_clients.main()

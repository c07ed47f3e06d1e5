"""python_driver.py SYSTEM [ADDRESS]: the twin of driver/main.cc over each system's Python client."""

import json
import sys
import threading
import time

from yr.datasystem import KVClient, WriteMode

_DELETE_BATCH = 1000


class Datasystem:
    def __init__(self, address):
        host, port = address.rsplit(":", 1)
        self._address = (host, int(port))
        self._client = KVClient(*self._address)
        self._client.init()
        self.set = self._client.set

    def get(self, key):
        return len(self._client.get([key])[0])

    def view(self, key):
        view = self._client.get_read_only_buffers([key])[0].immutable_data()
        _ = view[0]
        return len(view)

    def view_all(self, keys):
        views = [buffer.immutable_data() for buffer in self._client.get_read_only_buffers(keys)]
        return sum(len(view) for view in views if view[0] is not None)

    def delete(self, keys):
        if self._client.delete(keys):
            raise RuntimeError("could not delete all keys")


    def tick_set(self):
        """The longest pause of another thread, which does nothing but look at the clock, during a set of 1 GiB."""
        value = bytearray(1 << 30)
        return _longest_pause(lambda: self._client.set("bench-tick", value, WriteMode.NONE_L2_CACHE_EVICT))

    def tick_init(self):
        def connect():
            for _ in range(20):
                with KVClient(*self._address):
                    pass
        return _longest_pause(connect)


class Memcached:
    def __init__(self, address):
        from pymemcache.client.base import Client
        self._client = Client(address, no_delay=True, default_noreply=False)
        self.set = self._client.set

    def get(self, key):
        return len(self._client.get(key))

    def delete(self, keys):
        for key in keys:
            self._client.delete(key)


class Redis:
    def __init__(self, address):
        import redis
        self._client = redis.Redis(unix_socket_path=address)
        self.set = self._client.set

    def get(self, key):
        return len(self._client.get(key))

    def delete(self, keys):
        for key in keys:
            self._client.delete(key)


SYSTEMS = {"datasystem": Datasystem, "memcached": Memcached, "redis": Redis}


class Commands:
    def __init__(self, cache):
        self._cache = cache
        self._value = b""

    def run(self, line):
        command, *words = line.split()
        if command.startswith("tick_"):
            return getattr(self._cache, command)()
        if command in ("set", "get", "view"):
            size, count = map(int, words)
            operation = self._operation(command, size)
            key = f"bench-{size}"
            for _ in range(count // 10 + 1):
                operation(key)
            return _timed(operation, [key] * count)
        with open(words[0], encoding="ascii") as file:
            keys = file.read().split()
        if command == "delete":
            for i in range(0, len(keys), _DELETE_BATCH):
                self._cache.delete(keys[i:i + _DELETE_BATCH])
            return {}
        size = int(words[1])
        if command == "view_all":
            return _timed(_checked(self._cache.view_all, size * len(keys)), [keys])
        name = {"fill": "set", "get_each": "get", "view_each": "view"}[command]
        return _timed(self._operation(name, size), keys)

    def _operation(self, name, size):
        if name != "set":
            return _checked(getattr(self._cache, name), size)
        if len(self._value) < size:
            self._value = bytes(range(256)) * (size // 256 + 1)
        value, store = self._value[:size], self._cache.set
        return lambda key: store(key, value)


def _longest_pause(work):
    stop, longest = threading.Event(), [0]

    def tick():
        last = time.perf_counter_ns()
        while not stop.is_set():
            time.sleep(0.0005)
            now = time.perf_counter_ns()
            longest[0] = max(longest[0], now - last)
            last = now
    ticker = threading.Thread(target=tick)
    ticker.start()
    work()
    stop.set()
    ticker.join()
    return {"max_ns": longest[0]}


def _checked(operation, size):
    def checked(key):
        got = operation(key)
        if got != size:
            raise RuntimeError(f"got {got} bytes instead of {size}")
    return checked


def _timed(operation, arguments):
    now = time.perf_counter_ns
    samples = []
    for argument in arguments:
        start = now()
        operation(argument)
        samples.append(now() - start)
    samples.sort()
    return {"p50_ns": samples[(len(samples) - 1) // 2], "p99_ns": samples[int((len(samples) - 1) * 0.99)],
            "mean_ns": sum(samples) / len(samples)}


def main():
    system, address = (sys.argv[1:] + [""])[:2]
    commands = Commands(SYSTEMS[system](address))
    for line in sys.stdin:
        print(json.dumps(commands.run(line)), flush=True)


if __name__ == "__main__":
    main()

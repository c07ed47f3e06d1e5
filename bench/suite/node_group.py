"""One node under more than one client and one key: a million keys, many readers, mixed load, a full cache, and what a
program's other threads notice."""

from .drivers import cpp_driver, python_driver, run_together
from .table import Row, Target, time_text

_MIB = 2**20
_CACHE_MB = 3072
_KEYS = 1_000_000
_VALUE_BYTES = 100
_LOOKUPS = 20_000
_BATCH_KEYS = 1000
_PEERS = ("memcached", "redis")

_CLIENTS = 20
_PER_SECOND = 100  # of each; all together are far from what two processors can do
_MIXED_S = 5

_FULL_MB = 512
_FULL_TIMES = 3


class NodeGroup:
    name = "node"

    def __init__(self, setup):
        self._servers = setup.servers
        self._binary = setup.driver_binary
        self._started = []
        self._drivers = {}
        self._clients = []

    def start(self):
        self._worker = self._servers.start_worker("127.0.0.1", "node", _CACHE_MB)
        self._full = self._servers.start_worker("127.0.0.2", "full", _FULL_MB)
        memcached, memcached_path = self._servers.start_memcached("memcached-node", 1024)
        redis, redis_path = self._servers.start_redis("redis-node", 1024)
        self._started = [self._worker.process, self._full.process, memcached, redis]
        self._worker.wait_until_populated()
        places = {"datasystem": self._worker.address, "memcached": memcached_path, "redis": redis_path}
        for system, place in places.items():
            self._drivers[system] = cpp_driver(self._binary, system, place)
            self._drivers[system].run("many_fill", _VALUE_BYTES, _KEYS)
        self._drivers["second"] = cpp_driver(self._binary, "datasystem", self._worker.address)
        self._clients = [cpp_driver(self._binary, "datasystem", self._worker.address) for _ in range(_CLIENTS)]
        self._clients[0].run("mixed_fill")
        self._drivers["filler"] = cpp_driver(self._binary, "datasystem", self._full.address)
        self._drivers["python"] = python_driver("datasystem", self._worker.address)

    def run(self, number, samples):
        ours = self._drivers["datasystem"]
        for system in ("datasystem", *_PEERS):
            samples.add(f"node/get/{system}", self._drivers[system].run("many_get", _VALUE_BYTES, _KEYS, _LOOKUPS))
        samples.add("node/view", ours.run("many_view", _VALUE_BYTES, _KEYS, _LOOKUPS))
        samples.add("node/exist", ours.run("many_exist", _BATCH_KEYS, 300))

        words = ("many_view", _VALUE_BYTES, _KEYS, 200_000)
        alone = ours.run(*words)
        together = run_together((ours, self._drivers["second"]), words)
        samples.add("node/readers/one", {"per_s": 1e9 / alone["mean_ns"]})
        samples.add("node/readers/two", {"per_s": sum(1e9 / each["mean_ns"] for each in together)})

        loads = run_together(self._clients, *(("mixed", _PER_SECOND, _MIXED_S, 1000 * number + i + 1)
                                              for i in range(_CLIENTS)))
        samples.add("node/mixed", {"p50_ns": max(each["p50_ns"] for each in loads),
                                   "p99_ns": max(each["p99_ns"] for each in loads),
                                   "max_ns": max(each["max_ns"] for each in loads)})
        for name in ("tick_set", "tick_init"):
            samples.add(f"node/{name}", self._drivers["python"].run(name))
        if number == 0:
            self._drivers["filler"].run("fill_mixed", _FULL_TIMES * _FULL_MB * _MIB, 4711)
            memory = self._full.report()["memory"]
            samples.add("node/full", {"in_values": memory["allocated_bytes"] / memory["size_bytes"],
                                      "in_pieces": memory["reserved_bytes"] / memory["size_bytes"]})

    def stop(self):
        for driver in [*self._drivers.values(), *self._clients]:
            driver.close()
        for process in self._started:
            self._servers.stop_one(process)

    def rows(self, samples):
        best = min(_PEERS, key=lambda peer: samples.median(f"node/get/{peer}", "p50_ns"))
        peer = f"node/get/{best}"
        for name, what, target in (("node/view", "in place", Target(1 / 8)), ("node/get/datasystem", "copying", None)):
            yield Row(f"C++ get of one of 1 M keys, {what}, 100 B", _time(samples, name), _time(samples, peer), best,
                      samples.ratio(name, peer, "p50_ns"), target)
        yield _limit(samples, "C++ exist of 1,000 keys in one call", "node/exist", "p50_ns", 100e3)
        one, two = (samples.median(f"node/readers/{name}", "per_s") for name in ("one", "two"))
        yield Row("two processes that get in place, one of 1 M keys", f"{two / 1e6:.2f} M/s", f"{one / 1e6:.2f} M/s",
                  "one process", samples.ratio("node/readers/two", "node/readers/one", "per_s"),
                  Target(1.8, at_least=True))
        yield _limit(samples, f"longest call of {_CLIENTS} clients, {_CLIENTS * _PER_SECOND} gets and sets a second of "
                     "64 B to 1 MiB", "node/mixed", "max_ns", 10e6)
        yield _limit(samples, "longest pause of another Python thread during a set of 1 GiB", "node/tick_set", "max_ns",
                     20e6)
        yield _limit(samples, "longest pause of another Python thread during init", "node/tick_init", "max_ns", 20e6)
        full = samples.median("node/full", "in_values")
        held = samples.median("node/full", "in_pieces")
        yield Row("share of a full cache that is values, 1 KiB to 64 MiB mixed, 3 times its size written", f"{full:.1%}",
                  f"{held:.1%}", "taken by allocators", full / held)


def _time(samples, name):
    return f"{time_text(samples.median(name, 'p50_ns'))} ({time_text(samples.median(name, 'p99_ns'))})"


def _limit(samples, what, name, figure, limit_ns):
    value = samples.median(name, figure)
    return Row(what, time_text(value), time_text(limit_ns), "limit", value / limit_ns, Target(1))

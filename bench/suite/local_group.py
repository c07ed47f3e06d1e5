"""Set and get on one node, against memcached and Redis over Unix sockets, in C++ and in Python."""

from .drivers import cpp_driver, python_driver
from .table import Row, Target, size_text, time_text

KIB, MIB = 2**10, 2**20
SIZES = {"cpp": (64, 4 * KIB, MIB, 64 * MIB), "python": (64, KIB, 4 * KIB, MIB, 64 * MIB)}
COUNTS = {64: 3000, KIB: 3000, 4 * KIB: 3000, MIB: 500, 64 * MIB: 5}
LANGUAGES = {"cpp": "C++", "python": "Python"}
PEERS = ("memcached", "redis")
_CACHE_MB = 1024
_MEMCPY_FROM = MIB

# Of design.md's targets, which the README lists.
_VIEW_HOT = Target(1 / 20)
_PYTHON_GET = {KIB: Target(1 / 8)}
_SET_SMALL = {64: Target(1)}
_SET_MEMCPY = Target(0.8, at_least=True)


class LocalGroup:
    name = "local"

    def __init__(self, setup):
        self._servers = setup.servers
        self._binary = setup.driver_binary
        self._started = []
        self._drivers = {}

    def start(self):
        worker = self._servers.start_worker("127.0.0.1", "local", _CACHE_MB)
        memcached, memcached_path = self._servers.start_memcached("memcached", 2 * _CACHE_MB)
        redis, redis_path = self._servers.start_redis("redis", 2 * _CACHE_MB)
        self._started = [worker.process, memcached, redis]
        worker.wait_until_populated()
        places = {"datasystem": worker.address, "memcached": memcached_path, "redis": redis_path}
        for system, place in places.items():
            self._drivers["cpp", system] = cpp_driver(self._binary, system, place)
            self._drivers["python", system] = python_driver(system, place)
        self._drivers["cpp", "memory"] = cpp_driver(self._binary, "memory")

    def run(self, number, samples):
        for language in LANGUAGES:
            systems = [system for each, system in self._drivers if each == language]
            # Another one begins in each run.
            turn = number % len(systems)
            systems = systems[turn:] + systems[:turn]
            for size in SIZES[language]:
                for operation in ("set", "get", "view"):
                    for system in systems:
                        if _applies(system, operation, size):
                            samples.add(f"local/{language}/{operation}/{size}/{system}",
                                        self._drivers[language, system].run(operation, size, COUNTS[size]))

    def stop(self):
        for driver in self._drivers.values():
            driver.close()
        for process in self._started:
            self._servers.stop_one(process)

    def rows(self, samples):
        for language, title in LANGUAGES.items():
            for size in SIZES[language]:
                what = f"{title} local %s {size_text(size)}"
                yield _against_peers(samples, language, "set", size, size, what % "set",
                                     _SET_SMALL.get(size) if language == "cpp" else None)
                if language == "cpp" and size >= _MEMCPY_FROM:
                    yield _against_memcpy(samples, size, what % "set")
                yield _against_peers(samples, language, "get", size, size, what % "get, copying",
                                     _PYTHON_GET.get(size) if language == "python" else None)
                # In place a get costs the same at any size, so it is held against the smallest.
                yield _against_peers(samples, language, "view", size, 64, what % "get, in place",
                                     _VIEW_HOT if language == "cpp" else None)


def _applies(system, operation, size):
    if system == "memory":
        return operation == "set" and size >= _MEMCPY_FROM
    return operation != "view" or system == "datasystem"


def _cell(samples, name):
    return f"{time_text(samples.median(name, 'p50_ns'))} ({time_text(samples.median(name, 'p99_ns'))})"


def _against_peers(samples, language, operation, size, peer_size, what, target):
    ours = f"local/{language}/{operation}/{size}/datasystem"
    peer_operation = "set" if operation == "set" else "get"
    name = {peer: f"local/{language}/{peer_operation}/{peer_size}/{peer}" for peer in PEERS}
    best = min(PEERS, key=lambda peer: samples.median(name[peer], "p50_ns"))
    title = best if size == peer_size else f"{best}, {size_text(peer_size)}"
    return Row(what, _cell(samples, ours), _cell(samples, name[best]), title,
               samples.ratio(ours, name[best], "p50_ns"), target)


def _against_memcpy(samples, size, what):
    ours, peer = (f"local/cpp/set/{size}/{system}" for system in ("datasystem", "memory"))
    return Row(what + " (speed)", _cell(samples, ours), _cell(samples, peer), "memcpy",
               samples.ratio(peer, ours, "p50_ns"), _SET_MEMCPY)

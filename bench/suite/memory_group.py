"""What an object costs beside its key and value. Measured once: it is not a matter of luck."""

from .drivers import cpp_driver
from .servers import status_bytes
from .table import Row, Target

_OBJECTS = 1_000_000
_VALUE_BYTES = 100
_LIMIT_BYTES = 128
_CACHE_MB = 512


class MemoryGroup:
    name = "memory"

    def __init__(self, setup):
        self._servers = setup.servers
        self._binary = setup.driver_binary

    def start(self):
        pass

    def run(self, number, samples):
        if number > 0:
            return  # the figures are already there
        keys = self._servers.folder / "keys-memory"
        names = [f"object-{i:06}" for i in range(_OBJECTS)]
        keys.write_text("\n".join(names) + "\n")
        payload = sum(map(len, names)) / _OBJECTS + _VALUE_BYTES

        worker = self._servers.start_worker("127.0.0.1", "memory", _CACHE_MB)
        worker.wait_until_populated()

        # The cache memory is resident from the start: what values take of it is what the arenas reserved. The rest, the
        # index among it, becomes resident as it is used.
        def ours():
            return worker.resident_bytes() + worker.report()["memory"]["reserved_bytes"]
        self._measure(samples, "datasystem", worker.process, worker.address, ours, keys, payload)
        for system, launch in (("memcached", self._servers.start_memcached), ("redis", self._servers.start_redis)):
            process, path = launch(f"{system}-memory", 2 * _CACHE_MB)
            self._measure(samples, system, process, path, lambda: status_bytes(process.pid, "VmRSS"), keys, payload)

    def _measure(self, samples, system, process, place, resident, keys, payload):
        driver = cpp_driver(self._binary, system, place)
        driver.run("set", _VALUE_BYTES, 1)
        before = resident()
        driver.run("fill", keys, _VALUE_BYTES)
        samples.add(f"memory/{system}", {"bytes": (resident() - before) / _OBJECTS - payload})
        driver.close()
        self._servers.stop_one(process)

    def stop(self):
        pass

    def rows(self, samples):
        ours = samples.median("memory/datasystem", "bytes")
        what = "memory per object of 100 B, beside key and value"
        best = min(("memcached", "redis"), key=lambda peer: samples.median(f"memory/{peer}", "bytes"))
        peer = samples.median(f"memory/{best}", "bytes")
        yield Row(what, f"{ours:.0f} B", f"{_LIMIT_BYTES} B", "limit", ours / _LIMIT_BYTES, Target(1))
        yield Row(what, f"{ours:.0f} B", f"{peer:.0f} B", best, ours / peer)

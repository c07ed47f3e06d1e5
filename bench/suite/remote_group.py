"""Get of values that another worker holds, against ucx_perftest over the same transport.

Worker 1 holds the values, worker 2's clients read them, worker 3 takes part in the directory. Every get
counts only if worker 2 really fetched the value: its counter of remote hits must have grown by just as much.
"""

import subprocess

from .drivers import cpp_driver, python_driver
from .servers import BenchError
from .table import Row, Target, bandwidth_text, size_text, time_text

KIB, MIB = 2**10, 2**20
LANGUAGES = {"cpp": "C++", "python": "Python"}
SMALL = (64, 4 * KIB)
LARGE = (MIB, 64 * MIB)
COUNTS = {64: 500, 4 * KIB: 500, MIB: 50, 64 * MIB: 5}
PERFTEST_COUNTS = {64: 5000, 4 * KIB: 5000, MIB: 300, 64 * MIB: 10}
BANDWIDTH_TESTS = ("ucp_am_bw", "ucp_get", "tag_bw")
SHARDS = {"owner": "directory at the owner", "reader": "directory at the reader",
          "third": "directory at a third"}
BATCHES = {(256, 4 * KIB): 10, (16, MIB): 3}  # (objects, size) -> calls in a run
_CACHE_MB = 1024
_THIRD_CACHE_MB = 256

_SMALL_TARGET = {"owner": Target(1.5), "reader": Target(2.5), "third": Target(2.5)}
_LARGE_TARGET = Target(0.9, at_least=True)
_BATCH_TARGET = Target(0.5, at_least=True)


class RemoteGroup:
    name = "remote"

    def __init__(self, setup):
        self._servers = setup.servers
        self._transport = setup.transport
        self._driver_binary = setup.driver_binary
        self._keys_binary = setup.keys_binary
        self._workers = []
        self._readers = {}
        self._writer = None

    def start(self):
        for host, size_mb in (("127.0.0.1", _CACHE_MB), ("127.0.0.2", _CACHE_MB), ("127.0.0.3", _THIRD_CACHE_MB)):
            self._workers.append(self._servers.start_worker(host, "remote", size_mb))
        for worker in self._workers:
            worker.wait_until_populated()
        owner, reader, _ = self._workers
        self._writer = cpp_driver(self._driver_binary, "datasystem", owner.address)
        self._readers = {"cpp": cpp_driver(self._driver_binary, "datasystem", reader.address),
                         "python": python_driver("datasystem", reader.address)}
        # The first message makes the connections.
        for shard in SHARDS:
            self._fetch("cpp", "get_each", self._keys(shard, 3), 64, 3)
        # Cache memory that a process has never used costs page faults, which are not the transport's.
        for size in SMALL + LARGE:
            self._fetch("cpp", "get_each", self._keys("owner", COUNTS[size]), size, COUNTS[size])

    def run(self, number, samples):
        # Theirs come first in every second run.
        parts = [self._run_ours, self._run_perftest]
        for part in parts if number % 2 == 0 else reversed(parts):
            part(samples)

    def _run_ours(self, samples):
        for language in LANGUAGES:
            for size in SMALL:
                for shard in SHARDS if size == SMALL[0] else ("owner",):
                    self._measure(samples, language, "get", shard, size)
            for size in LARGE:
                for operation in ("view", "get"):
                    self._measure(samples, language, operation, "owner", size)
            for (objects, size), calls in BATCHES.items():
                file = self._mixed_keys(objects)
                for _ in range(calls):
                    figures, _ = self._fetch(language, "view_all", file, size, objects)
                    figures["bytes_per_s"] = objects * size * 1e9 / figures["mean_ns"]
                    samples.add(f"remote/{language}/batch/{objects}x{size}", figures)

    def _run_perftest(self, samples):
        for size in SMALL:
            round_trip = self._transport.round_trip_ns(size, PERFTEST_COUNTS[size])
            samples.add(f"remote/perftest/{size}", {"p50_ns": round_trip})
        for size in LARGE:
            for test in BANDWIDTH_TESTS:
                bandwidth = self._transport.bandwidth(test, size, PERFTEST_COUNTS[size])
                samples.add(f"remote/{test}/{size}", {"bytes_per_s": bandwidth})

    def _measure(self, samples, language, operation, shard, size):
        count = COUNTS[size]
        figures, written = self._fetch(language, f"{operation}_each", self._keys(shard, count), size, count)
        figures["bytes_per_s"] = size * 1e9 / figures["mean_ns"]
        samples.add(f"remote/{language}/{operation}/{shard}/{size}", figures)
        if language == "cpp" and operation == "get":
            samples.add(f"remote/set/{shard}/{size}", written)

    def _fetch(self, language, command, file, size, count):
        """Figures of the gets, and of the sets before them."""
        written = self._writer.run("fill", file, size)
        reader = self._workers[1]
        before = reader.report()["requests"]["remote_hits"]
        figures = self._readers[language].run(command, file, size)
        fetched = reader.report()["requests"]["remote_hits"] - before
        if fetched != count:
            raise BenchError(f"only {fetched} of {count} gets of {size} bytes were remote")
        self._writer.run("delete", file)
        return figures, written

    def _keys(self, shard, count):
        file = self._servers.folder / f"keys-{shard}-{count}"
        if not file.exists():
            members = [worker.address for worker in self._workers]
            address = dict(zip(SHARDS, members, strict=True))[shard]
            with open(file, "wb") as keys:
                subprocess.run([self._keys_binary, "key-", str(count), address, *members], stdout=keys,
                               check=True)
        return file

    def _mixed_keys(self, count):
        """The directory is where it happens to be."""
        file = self._servers.folder / f"keys-mixed-{count}"
        file.write_text("".join(f"mixed-{i}\n" for i in range(count)))
        return file

    def stop(self):
        for driver in (self._writer, *self._readers.values()):
            if driver is not None:
                driver.close()
        for worker in self._workers:
            self._servers.stop_one(worker.process)

    def rows(self, samples):
        for language, title in LANGUAGES.items():
            for size in SMALL:
                for shard in SHARDS if size == SMALL[0] else ("owner",):
                    target = _SMALL_TARGET[shard] if language == "cpp" and size == SMALL[0] else None
                    yield _small_row(samples, f"{title} remote get {size_text(size)}, {SHARDS[shard]}",
                                     f"remote/{language}/get/{shard}/{size}", size, target)
            for size in LARGE:
                for operation, text in (("view", "in place"), ("get", "copying")):
                    target = _LARGE_TARGET if language == "cpp" and operation == "view" else None
                    yield _bandwidth_row(samples, f"{title} remote get {size_text(size)}, {text}",
                                         f"remote/{language}/{operation}/owner/{size}", size, target)
            yield _batch_row(samples, language, title)
            yield _pipelined_row(samples, language, title)
        yield _small_row(samples, "C++ set 64 B, directory at a third", "remote/set/third/64", 64, None)


def _small_row(samples, what, name, size, target):
    peer = f"remote/perftest/{size}"
    ours = f"{time_text(samples.median(name, 'p50_ns'))} ({time_text(samples.median(name, 'p99_ns'))})"
    return Row(what, ours, time_text(samples.median(peer, "p50_ns")), "am_lat round trip",
               samples.ratio(name, peer, "p50_ns"), target)


def _best_test(samples, size):
    return max(BANDWIDTH_TESTS, key=lambda test: samples.median(f"remote/{test}/{size}", "bytes_per_s"))


def _bandwidth_row(samples, what, name, size, target):
    test = _best_test(samples, size)
    peer = f"remote/{test}/{size}"
    return Row(what, bandwidth_text(samples.median(name, "bytes_per_s")),
               bandwidth_text(samples.median(peer, "bytes_per_s")), test,
               samples.ratio(name, peer, "bytes_per_s"), target)


def _batch_row(samples, language, title):
    name, single = f"remote/{language}/batch/256x{4 * KIB}", f"remote/{language}/view/owner/{MIB}"
    ours, peer = (samples.median(each, "bytes_per_s") for each in (name, single))
    return Row(f"{title} remote get 256 × 4 KiB, one batch", bandwidth_text(ours), bandwidth_text(peer),
               "ours, 1 × 1 MiB", ours / peer, _BATCH_TARGET if language == "cpp" else None)


def _pipelined_row(samples, language, title):
    test = _best_test(samples, MIB)
    ours = samples.median(f"remote/{language}/batch/16x{MIB}", "bytes_per_s")
    peer = samples.median(f"remote/{test}/{MIB}", "bytes_per_s")
    return Row(f"{title} remote get 16 × 1 MiB, one batch", bandwidth_text(ours), bandwidth_text(peer), test,
               ours / peer)

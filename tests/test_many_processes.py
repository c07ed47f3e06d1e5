"""Many client processes use the same keys through several workers at the same time."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

from cluster import wait_until

LOAD = Path(__file__).parent / "shared_keys_load.py"
PROCESSES = 8
KEYS = [f"shared-{i}" for i in range(50)]


@contextmanager
def load(workers, seconds, *mode):
    """Runs the load; yields a function that waits for it and returns what each process did."""
    processes = []
    for seed in range(PROCESSES):
        worker = workers[seed % len(workers)]
        processes.append(subprocess.Popen(
            [sys.executable, LOAD, str(seed), str(seconds), worker.host, str(worker.port), *mode],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))

    def results():
        outputs = [process.communicate(timeout=90) for process in processes]
        for process, (_, errors) in zip(processes, outputs):
            assert process.returncode == 0, errors
        return [json.loads(out) for out, _ in outputs]
    try:
        for process in processes:
            assert process.stdout.readline() == "ready\n", process.communicate()[1]
        yield results
    finally:
        for process in processes:
            process.kill()
            process.wait()


def holds_nothing(worker):
    status = worker.status()
    return status["objects"]["count"] == 0 and status["memory"]["allocated_bytes"] == 0


def test_readers_never_go_back_in_time_and_values_are_never_torn(new_cluster):
    workers = new_cluster(shared_memory_size_mb=128).start(3)
    with load(workers, 5) as results:
        done = results()
    assert all(each["sets"] and each["gets"] for each in done), done
    assert workers[0].client().delete(KEYS) == []
    for worker in workers:
        wait_until(lambda: holds_nothing(worker), what="release of all memory")


def test_what_is_read_stays_whole_and_in_order_while_workers_stop_and_die(new_cluster):
    seed = int(os.environ.get("DATASYSTEM_TEST_SEED", random.randrange(1 << 32)))
    print(f"DATASYSTEM_TEST_SEED={seed}")
    rng = random.Random(seed)
    seconds = float(os.environ.get("DATASYSTEM_TEST_SECONDS", 12))
    cluster = new_cluster(shared_memory_size_mb=128, node_timeout_s=5)
    workers = cluster.start(3)
    with load(workers, seconds, "faults") as results:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            victim = rng.choice(workers)
            if rng.random() < 0.7:
                victim.kill(signal.SIGSTOP)
                pause_until = time.monotonic() + rng.choice([0.05, 0.5, 2, 6])
                wait_until(lambda: time.monotonic() > pause_until)
                victim.kill(signal.SIGCONT)
            else:
                victim.kill()
                assert victim.process.wait() == -signal.SIGKILL
                victim.launch()
                wait_until(victim.is_ready, 60, "readiness of another life")
        done = results()
    # A process whose worker was down most of the time may have got nothing.
    assert sum(each["gets"] for each in done) > 0, done
    cluster.wait_for_members(workers)
    client = workers[0].client()
    wait_until(lambda: client.health_check().is_ok(), what="a healthy worker")
    assert client.delete(KEYS) == []
    for worker in workers:
        assert worker.process.poll() is None
        wait_until(lambda: holds_nothing(worker), what="release of all memory")

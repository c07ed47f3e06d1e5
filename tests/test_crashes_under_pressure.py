"""Clients of two nodes are killed at any instruction while memory is short and values end and are evicted."""

import os
import random
import subprocess
import sys
from pathlib import Path

from crashing_clients_under_pressure import KEYS
from test_client_crashes import holdings, wait_for_holdings
from yr.datasystem import WriteMode

SCRIPT = Path(__file__).with_name("crashing_clients_under_pressure.py")
ROUNDS = 250  # on each node
FILLING = [[f"filling-{node}-{i}" for i in range(200)] for node in range(2)]


def test_clients_that_are_killed_while_memory_is_short_leave_nothing_behind(cluster):
    seed = int(os.environ.get("DATASYSTEM_TEST_SEED", random.randrange(1 << 32)))
    print(f"DATASYSTEM_TEST_SEED={seed}")
    workers = cluster.start(2, shared_memory_size_mb=16)
    client = workers[0].client()
    client.set("warm", b"x")  # what the first call opens for good
    assert workers[1].client().get(["warm"]) == [b"x"]
    client.delete(["warm"])
    before = [holdings(worker) for worker in workers]
    for worker, names in zip(workers, FILLING):  # the memory is full from the beginning
        worker.client().mset(names, [bytes(100_000)] * len(names), WriteMode.NONE_L2_CACHE_EVICT)
    runs = [subprocess.Popen([sys.executable, SCRIPT, worker.host, str(worker.port), str(ROUNDS), str(seed + number)],
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            for number, worker in enumerate(workers)]
    try:
        outputs = [run.communicate(timeout=200)[0] for run in runs]
    finally:
        for run in runs:
            run.kill()
            run.wait()
    assert all(run.returncode == 0 for run in runs), outputs
    assert sum(worker.status()["objects"]["evictions"] for worker in workers) > 0
    client.delete([*KEYS, *FILLING[0], *FILLING[1]])
    for worker in workers:
        for each in worker._clients[1:]:
            each.close()
    for worker, held in zip(workers, before):
        wait_for_holdings(worker, held)

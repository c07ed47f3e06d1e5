"""Many client processes use the same keys through several workers at the same time."""

import json
import subprocess
import sys
from pathlib import Path

LOAD = Path(__file__).parent / "shared_keys_load.py"


def test_readers_never_go_back_in_time_and_values_are_never_torn(new_cluster):
    cluster = new_cluster(shared_memory_size_mb=128)
    workers = cluster.start(3)
    processes = [subprocess.Popen([sys.executable, LOAD, str(seed), "5", workers[seed % 3].host,
                                   str(workers[seed % 3].port)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                 for seed in range(8)]
    try:
        outputs = [process.communicate(timeout=90) for process in processes]
    finally:
        for process in processes:
            process.kill()
    for process, (_, errors) in zip(processes, outputs):
        assert process.returncode == 0, errors
    done = [json.loads(out) for out, _ in outputs]
    assert all(each["sets"] and each["gets"] for each in done), done
    # What has to be there at the end is in use, and nothing else.
    keys = [f"shared-{i}" for i in range(50)]
    assert workers[0].client().delete(keys) == []
    assert [worker.status()["objects"]["count"] for worker in workers] == [0, 0, 0]
    assert [worker.status()["memory"]["allocated_bytes"] for worker in workers] == [0, 0, 0]

"""The commands of the hand-run guide, as they stand there; only the ports are free ones."""

import os
import shlex
import subprocess
import sys

from cluster import DSCLI, free_port

SCRIPT = r"""
set -euo pipefail
etcd --listen-client-urls http://0.0.0.0:$ETCD_PORT --advertise-client-urls http://0.0.0.0:$ETCD_PORT \
  --listen-peer-urls http://127.0.0.1:$PEER_PORT >etcd.log 2>&1 &
etcd=$!
trap 'kill $etcd; for log in datasystem/logs */datasystem/logs; do tail -n 5 $log/*INFO.log >&2; done' EXIT
export UCX_TLS=tcp UCX_LOG_FILE=$PWD/ucx.log UCX_LOG_LEVEL=ERROR

dscli start -w --worker_address "127.0.0.1:$PORT" --etcd_address "127.0.0.1:$ETCD_PORT" --enable_rdma true --arena_per_tenant 1
echo "exit code $?"
dscli start -w --worker_address "127.0.0.2:$PORT" --etcd_address "127.0.0.1:$ETCD_PORT" --enable_rdma true --arena_per_tenant 1
echo "exit code $?"

python - <<PYTHON
from yr.datasystem import KVClient
client = KVClient("127.0.0.1", $PORT)
client.init()
client.set("key", b"value")
print("set")
PYTHON
python - <<PYTHON
from yr.datasystem import KVClient
client = KVClient("127.0.0.2", $PORT)
client.init()
assert client.get(["key"])[0] == b"value"
print("got")
PYTHON

dscli stop --worker_address "127.0.0.1:$PORT"
echo "exit code $?"
dscli stop --worker_address "127.0.0.2:$PORT"
echo "exit code $?"
"""


def test_the_guides_commands_work_as_they_stand(folder):
    bin_dir = folder / "bin"
    bin_dir.mkdir()
    for name, command in {"dscli": DSCLI, "python": [sys.executable]}.items():
        (bin_dir / name).write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
        (bin_dir / name).chmod(0o700)
    port = free_port("127.0.0.1", "127.0.0.2")
    environment = {**os.environ, "PATH": f"{bin_dir}:{os.environ['PATH']}", "PORT": str(port),
                   "ETCD_PORT": str(free_port("127.0.0.1")), "PEER_PORT": str(free_port("127.0.0.1"))}
    home = folder / "home"
    home.mkdir()
    try:
        result = subprocess.run(["bash", "-c", SCRIPT], cwd=home, env=environment, capture_output=True, text=True,
                                timeout=120)
    finally:
        for host in ("127.0.0.1", "127.0.0.2"):
            subprocess.run([*DSCLI, "stop", "-w", f"{host}:{port}"], capture_output=True, timeout=60)
    assert result.returncode == 0, result.stdout + result.stderr
    pids = [line.split()[-1] for line in result.stdout.splitlines() if "[  OK  ] Start" in line]
    second = f"{home}/127.0.0.2_{port}"
    assert result.stdout.splitlines() == [
        f"[INFO] Log directory configured at: {home}/datasystem/logs",
        f"[INFO] Starting worker service with PID: {pids[0]}",
        f"[INFO] [  OK  ] Start worker service @ 127.0.0.1:{port} success, PID: {pids[0]}",
        "exit code 0",
        f"[INFO] Log directory configured at: {second}/datasystem/logs",
        f"[INFO] Starting worker service with PID: {pids[1]}",
        f"[INFO] [  OK  ] Start worker service @ 127.0.0.2:{port} success, PID: {pids[1]}",
        "exit code 0",
        "set",
        "got",
        f"[INFO] [  OK  ] Stop worker service @ 127.0.0.1:{port} normally, PID: {pids[0]}",
        "exit code 0",
        f"[INFO] [  OK  ] Stop worker service @ 127.0.0.2:{port} normally, PID: {pids[1]}",
        "exit code 0",
    ]

"""Programs of other users, in other namespaces, or with nothing but the socket's folder in common use shared memory."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SIZE = 1 << 20
_SCRIPT = Path(__file__).with_name("attaching_client.py")
_NOBODY = 65534


def can(*command):
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


namespaces = pytest.mark.skipif(not can("unshare", "--mount", "--pid", "--ipc", "--fork", "true"),
                                reason="this machine does not let us make namespaces")


@pytest.fixture
def worker(cluster, tmp_path_factory):
    sockets = tmp_path_factory.mktemp("sockets")
    sockets.chmod(0o755)
    for parent in sockets.parents[:-2]:
        parent.chmod(parent.stat().st_mode | 0o055)
    worker, = cluster.start(1, unix_domain_socket_dir=sockets)
    worker.sockets = sockets
    worker.client().set("from-outside", b"o" * SIZE)
    return worker


def attach(worker, *options, before=()):
    """What the client says; it has set two values, which everybody can read."""
    result = subprocess.run([*before, sys.executable, _SCRIPT, worker.host, str(worker.port), *options],
                            capture_output=True, text=True, timeout=60, check=False, env=os.environ)
    assert result.returncode == 0, result.stderr
    assert worker.client().get(["from-inside", "filled-inside"]) == [b"i" * SIZE, b"f" * SIZE]
    return result.stdout.strip()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_another_user_shares_memory(worker):
    assert attach(worker, "--uid", str(_NOBODY)) == "shared"


@namespaces
@pytest.mark.parametrize("kinds", [["--mount"], ["--pid", "--fork", "--mount-proc"], ["--ipc"], ["--uts"],
                                   ["--user", "--map-root-user"],
                                   ["--mount", "--pid", "--fork", "--mount-proc", "--ipc", "--uts", "--user", "--map-root-user"]],
                         ids=["mount", "pid", "ipc", "uts", "user", "all"])
def test_other_namespaces_share_memory(worker, kinds):
    assert attach(worker, before=["unshare", *kinds]) == "shared"


@namespaces
def test_a_container_that_has_only_the_sockets_folder_shares_memory(worker, tmp_path):
    # Its own root, with nothing in it but that folder; and a /dev/shm that is far too small.
    inside = tmp_path / str(worker.sockets).lstrip("/")
    inside.mkdir(parents=True)
    mounts = (f"mount -t tmpfs -o size=64k none /dev/shm && mount --bind {worker.sockets} {inside} && "
              'exec "$@"')
    assert attach(worker, "--root", str(tmp_path), before=["unshare", "--mount", "sh", "-c", mounts, "sh"]) == "shared"


@namespaces
def test_without_the_sockets_folder_the_same_calls_go_over_tcp(worker):
    hidden = f'mount -t tmpfs none {worker.sockets} && exec "$@"'
    assert attach(worker, before=["unshare", "--mount", "sh", "-c", hidden, "sh"]) == "socket"


def test_no_names_appear_in_dev_shm(worker):
    before = set(os.listdir("/dev/shm"))
    assert attach(worker) == "shared"
    assert not [name for name in set(os.listdir("/dev/shm")) - before if "datasystem" in name or "ds" in name]

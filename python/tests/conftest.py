"""Needs PYTHONPATH=<build>/python. Tests of a real worker need DATASYSTEM_WORKER_BINARY too."""

import os
import socket
import subprocess
import sys
import threading

import pytest

from yr.datasystem import KVClient


@pytest.fixture(scope="session")
def worker(tmp_path_factory):
    """(host, port) of a real single-node worker with 256 MiB."""
    if not os.environ.get("DATASYSTEM_WORKER_BINARY"):
        pytest.skip("DATASYSTEM_WORKER_BINARY is not set")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        host, port = probe.getsockname()
    dscli = [sys.executable, "-m", "yr.datasystem.cli"]
    address = f"{host}:{port}"
    subprocess.run([*dscli, "start", "-w", "--worker_address", address, "--shared_memory_size_mb", "256"],
                   cwd=tmp_path_factory.mktemp("w"), check=True)
    yield host, port
    subprocess.run([*dscli, "stop", "-w", address], check=True)


@pytest.fixture
def client(worker):
    client = KVClient(*worker)
    client.init()
    yield client
    client.close()


@pytest.fixture
def silent_server():
    """(host, port) of a server that accepts connections and never answers."""
    connections = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        def accept():
            while True:
                try:
                    connections.append(server.accept()[0])
                except OSError:
                    return
        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield server.getsockname()
        server.shutdown(socket.SHUT_RDWR)
    thread.join(10)
    for connection in connections:
        connection.close()

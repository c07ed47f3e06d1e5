"""Needs PYTHONPATH=<build>/python. Tests of a real worker need DATASYSTEM_WORKER_BINARY too."""

import json
import os
import shutil
import socket
import sys
from pathlib import Path

import pytest

from dscli_command import Dscli

_WORKER_BINARY = os.environ.get("DATASYSTEM_WORKER_BINARY")

_SHIPPED = {
    "worker_address": "127.0.0.1:31501",
    "etcd_address": "",
    "unix_domain_socket_dir": "./datasystem/uds",
    "health_check_path": "./datasystem/probe/healthy",
    "ready_check_path": "./datasystem/probe/ready",
    "log_dir": "./datasystem/logs",
    "log_filename": "",
    "shared_memory_size_mb": "1024",
}


@pytest.fixture
def stand_in(tmp_path):
    """dscli with a stand-in for the worker."""
    binary = tmp_path / "bin" / "datasystem_worker"
    binary.parent.mkdir()
    shutil.copy(Path(__file__).parent / "stand_in_worker.sh", binary)
    binary.chmod(0o700)
    config = tmp_path / "shipped.json"
    config.write_text(json.dumps({k: {"value": v, "description": ""} for k, v in _SHIPPED.items()}))
    home = tmp_path / "home"
    home.mkdir()
    dscli = Dscli(home, {"DATASYSTEM_WORKER_BINARY": str(binary), "DATASYSTEM_WORKER_CONFIG": str(config)})
    yield dscli
    dscli.close()


@pytest.fixture
def real(tmp_path):
    """dscli with the real worker."""
    if not _WORKER_BINARY:
        pytest.skip("DATASYSTEM_WORKER_BINARY is not set")
    dscli = Dscli(tmp_path, {"DATASYSTEM_WORKER_BINARY": _WORKER_BINARY})
    yield dscli
    dscli.close()


@pytest.fixture
def address():
    """An address of this machine whose port was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"

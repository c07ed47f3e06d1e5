"""dscli with the real worker: readiness, its own reasons for not starting, its report."""

import json
import socket

import pytest

from waiting import alive


@pytest.fixture
def running(real, address):
    result = real("start", "-w", "--worker_address", address, "--shared_memory_size_mb", "64")
    assert (result.code, result.err) == (0, "")
    return result.pid


def test_status_shows_the_workers_report(real, running, address):
    report = json.loads(real("status", "-w", address, "--json").out)
    assert report["address"] == address
    assert report["pid"] == running
    text = real("status", "-w", address)
    assert text.code == 0
    assert f"address              {address}" in text.out
    assert "Cluster members" in text.out
    assert "64.0 MiB" in text.out


def test_stop_lets_the_worker_end_by_itself(real, running, address):
    result = real("stop", "-w", address)
    assert result.out == f"[INFO] [  OK  ] Stop worker service @ {address} normally, PID: {running}\n"
    assert not alive(running)
    assert not (real.folder / "datasystem/probe/ready").exists()
    assert list((real.folder / "datasystem/uds").glob("*")) == []


def test_status_of_a_worker_that_is_not_there_says_so_at_once(real, address):
    result = real("status", "-w", address)
    assert result.code == 1
    assert result.err.startswith("[ERROR] Status failed: code: [RPC unavailable]")


def test_an_address_in_use_is_the_reason_given(real):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = real("start", "-w", "--worker_address", f"127.0.0.1:{port}", "--shared_memory_size_mb", "64")
    assert result.code == 1
    reason = [line for line in result.err.splitlines() if "failed: " in line][0]
    assert f"[  FAILED  ] Start worker service @ 127.0.0.1:{port} failed: " in reason
    assert str(port) in reason.split("failed: ", 1)[1]
    assert not (real.folder / "datasystem/probe").exists()


@pytest.mark.parametrize("flags, reason", [
    (("--shared_memory_size_mbs", "64"), "unknown flag --shared_memory_size_mbs"),
    (("--shared_memory_size_mb", "0"), "shared_memory_size_mb"),
    (("--etcd_address", "not an address"), "etcd_address"),
])
def test_a_refused_flag_is_the_reason_given(real, address, flags, reason):
    result = real("start", "-w", "--worker_address", address, *flags)
    assert result.code == 1
    failed = [line for line in result.err.splitlines() if "Start worker service @" in line]
    assert reason in failed[0]
    assert result.err.splitlines()[-1] == "[ERROR] Start failed: The worker service exited abnormally"


def test_the_worker_is_single_node_without_etcd_and_says_nothing_else(real, running):
    # Shipped defaults are passed on the command line; none of them may be complained of.
    assert (real.folder / "datasystem/logs/datasystem_worker.out").read_text() == ""

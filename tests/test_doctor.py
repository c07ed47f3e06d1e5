"""dscli doctor on this machine: it foretells what a start does, in the same words."""

import json
import os
import pty
import re
import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from cluster import DSCLI, free_port

SMALL = ("--shared_memory_size_mb", "64")
has_rdma = os.path.isdir("/sys/class/infiniband") and bool(os.listdir("/sys/class/infiniband"))


@pytest.fixture
def address():
    return f"127.0.0.1:{free_port('127.0.0.1')}"


def checks_of(result):
    return {check["check"]: check for check in json.loads(result.stdout)["checks"]}


def test_where_nothing_is_wrong_it_passes_and_a_start_works(dscli, address):
    found = dscli("doctor", "--worker_address", address, *SMALL)
    assert found.returncode == 0, found.stdout + found.stderr
    assert "[  OK  ] A start can work: 0 failures" in found.stdout
    assert "\033" not in found.stdout
    assert os.listdir(dscli.folder) == []
    assert dscli("start", "-w", "--worker_address", address, *SMALL).returncode == 0


def test_with_etcd_it_tells_version_latency_clock_and_members(dscli, cluster):
    (worker,) = cluster.start(1)
    mine = f"127.0.0.9:{free_port('127.0.0.9')}"
    found = dscli(
        "doctor", "--json", "--worker_address", mine, "--etcd_address", cluster.etcd.address, *SMALL
    )
    assert found.returncode == 0, found.stdout
    checks = checks_of(found)
    assert checks["etcd"]["level"] == "ok" and " ms" in checks["etcd"]["reason"]
    assert checks["clock"]["level"] == "ok"
    assert f"1 other workers, {worker.address}" in checks["cluster"]["reason"]
    assert worker.members() == {worker.address}


def test_a_port_in_use_is_foretold_in_the_words_of_the_start(dscli):
    with socket.create_server(("127.0.0.1", 0)) as other:
        flags = ("--worker_address", f"127.0.0.1:{other.getsockname()[1]}")
        found = dscli("doctor", "--json", *flags)
        error = dscli.start_fails(*flags)
    assert found.returncode == 1
    check = checks_of(found)["address"]
    assert check["level"] == "failure" and check["reason"] in error
    assert check["remedy"].startswith("ss -ltnp")


@pytest.mark.skipif(has_rdma, reason="this machine has an RDMA device")
def test_rdma_without_a_device_is_foretold_in_the_words_of_the_start(dscli, address):
    flags = ("--worker_address", address, "--enable_rdma", "true")
    found = dscli("doctor", "--json", *flags, UCX_TLS="rc_x")
    error = dscli.start_fails(*flags, UCX_TLS="rc_x")
    checks = checks_of(found)
    assert found.returncode == 1 and checks["transport"]["reason"] in error
    assert checks["rdma devices"]["level"] == "failure"
    passed = dscli("doctor", "--json", *flags, *SMALL, UCX_TLS="tcp,rc_x")
    assert checks_of(passed)["UCX_TLS"]["remedy"] == "export UCX_TLS=tcp"


def test_missing_huge_pages_are_foretold_with_the_command(dscli, address):
    flags = ("--enable_huge_tlb", "true", "--shared_memory_size_mb", "1048576")
    found = dscli("doctor", "--json", "--worker_address", address, *flags)
    check = checks_of(found)["huge pages"]
    assert check["level"] == "failure"
    assert check["reason"] in dscli.start_fails("--worker_address", address, *flags)


def test_an_etcd_that_nobody_serves_is_foretold(dscli, address):
    gone = f"127.0.0.1:{free_port('127.0.0.1')}"
    found = dscli("doctor", "--json", "--worker_address", address, "--etcd_address", gone)
    check = checks_of(found)["etcd"]
    assert check["level"] == "failure" and f"cannot reach etcd at {gone}" in check["reason"]


def test_levels_are_coloured_on_a_terminal_only(dscli, address):
    master, terminal = pty.openpty()
    command = [*DSCLI, "doctor", "--worker_address", address, *SMALL]
    environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    with subprocess.Popen(command, stdout=terminal, cwd=dscli.folder, env=environment) as process:
        os.close(terminal)
        said = b""
        try:
            while part := os.read(master, 65536):
                said += part
        except OSError:  # how a terminal says that nobody writes to it any more
            pass
        os.close(master)
    assert process.returncode == 0
    assert said.startswith(b"\033[32mok     \033[0m  address")


def test_another_ucx_in_the_path_of_the_loader_is_named(dscli, address):
    flags = ("doctor", "--json", "--worker_address", address, *SMALL)
    reason = checks_of(dscli(*flags))["second ucx"]["reason"]
    used = re.search(r"there is one UCX, in (\S+)", reason)
    if not used:
        pytest.skip("this machine has several already")
    other = Path(dscli.folder) / "other"
    other.mkdir()
    shutil.copy(Path(used[1]) / "libucp.so.0", other)
    found = checks_of(dscli(*flags, LD_LIBRARY_PATH=str(other)))["second ucx"]
    # An installed worker finds its own first, one of a build folder takes the other.
    assert str(other) in found["reason"]
    mixed = "parts of UCX come from different folders" in found["reason"]
    assert found["level"] == ("warning" if mixed else "ok")
    assert mixed or "stays unused" in found["reason"]


def test_what_ucx_writes_to_the_output_is_not_taken_for_the_answer(dscli, address):
    found = dscli("doctor", "--worker_address", address, *SMALL, UCX_LOG_LEVEL="debug")
    assert found.returncode == 0 and "tcp over lo" in found.stdout


def test_flags_that_the_worker_refuses_are_a_failure_with_its_words(dscli, address):
    found = dscli("doctor", "-w", "--worker_address", address, "--shard_memory_size_mb", "64")
    assert found.returncode == 1
    assert "did you mean --shared_memory_size_mb?" in " ".join(found.stdout.split())


def test_settings_come_from_a_file_too_and_options_go_first(dscli, address):
    file = Path(dscli.folder) / "worker_config.json"
    file.write_text(
        json.dumps(
            {
                "worker_address": {"value": "192.0.2.1:31501"},
                "shared_memory_size_mb": {"value": "64"},
            }
        )
    )
    assert "192.0.2.1 is not an address" in " ".join(
        dscli("doctor", "-f", str(file)).stdout.split()
    )
    assert dscli("doctor", "-f", str(file), "--worker_address", address).returncode == 0


@pytest.mark.parametrize(
    "arguments", [("--nonsense",), ("--enable_rdma",), ("--work", "127.0.0.1:1")]
)
def test_bad_usage_exits_with_2(dscli, arguments):
    result = dscli("doctor", *arguments)
    assert result.returncode == 2 and "usage: dscli" in result.stderr


def test_a_missing_worker_binary_is_a_failure_and_the_rest_is_checked(dscli, address):
    found = dscli(
        "doctor", "--json", "--worker_address", address, DATASYSTEM_WORKER_BINARY="/nowhere/worker"
    )
    assert found.returncode == 1
    checks = checks_of(found)
    assert "no worker at /nowhere/worker" in checks["worker"]["reason"]
    assert checks["shared memory"]["level"] == "ok"


def test_values_move_between_two_workers_and_the_lane_and_its_speed_are_told(dscli, pair):
    here, there = pair
    objects = [worker.status()["objects"]["count"] for worker in pair]
    found = dscli("doctor", "--json", "--worker_address", here.address, "--peer", there.address)
    assert found.returncode == 0, found.stdout + found.stderr
    reasons = [(check["check"], check["reason"]) for check in json.loads(found.stdout)["checks"]]
    told = "\n".join(reason for check, reason in reasons if check == "transfer")
    assert f"from {there.address}: a get of 64 B takes" in told and "GB/s" in told
    assert f"to {there.address}: " in told and "arrived whole" in told
    assert dict(reasons)["lane"].startswith("tcp/lo carried ")
    assert dict(reasons)["raw figure"].startswith("tcp/lo, a link without a rate")
    assert [worker.status()["objects"]["count"] for worker in pair] == objects


def test_a_worker_of_another_cluster_is_no_peer(dscli, pair):
    alone = f"127.0.0.1:{free_port('127.0.0.1')}"
    assert dscli("start", "-w", "--worker_address", alone, *SMALL).returncode == 0
    for local, peer in ((pair[0].address, alone), (alone, pair[0].address)):
        found = dscli("doctor", "--worker_address", local, "--peer", peer)
        assert found.returncode == 1
        assert f"{peer} is no member of the cluster of {local}" in " ".join(found.stdout.split())


def test_a_peer_that_is_not_there_or_is_the_worker_itself_is_told(dscli, pair, address):
    mine = pair[0].address
    assert (
        f"cannot connect to worker {address}"
        in dscli("doctor", "--json", "--worker_address", mine, "--peer", address).stdout
    )
    assert (
        "is the worker of this machine itself"
        in dscli("doctor", "--json", "--worker_address", mine, "--peer", mine).stdout
    )
    assert "is not an address" in dscli("doctor", "--worker_address", mine, "--peer", "x").stderr

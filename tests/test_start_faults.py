"""A start that cannot succeed says why and what to do, and leaves nothing behind."""

import os
import socket
import subprocess

import pytest

from cluster import free_port
from yr.datasystem.cli.package import worker_binary


@pytest.fixture
def address():
    return f"127.0.0.1:{free_port('127.0.0.1')}"


def test_an_etcd_that_nobody_serves_is_named(dscli, address):
    etcd = f"127.0.0.1:{free_port('127.0.0.1')}"
    error = dscli.start_fails("--worker_address", address, "--etcd_address", etcd)
    assert f"cannot reach etcd at {etcd}" in error
    assert "is it running, is etcd_address right?" in error


def test_an_etcd_that_accepts_and_never_answers_is_named(dscli, address):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        etcd = f"127.0.0.1:{silent.getsockname()[1]}"
        error = dscli.start_fails("--worker_address", address, "--etcd_address", etcd)
    assert f"cannot reach etcd at {etcd}" in error


@pytest.mark.parametrize("etcd", ["127.0.0.1", "127.0.0.1:", "127.0.0.1:0x", "127.0.0.1:70000", ":2379", "a b:2379",
                                  "http://127.0.0.1:2379", "127.0.0.1:2379,", ","])
def test_a_malformed_etcd_address_is_refused_with_its_form(dscli, address, etcd):
    error = dscli.start_fails("--worker_address", address, "--etcd_address", etcd)
    assert f"--etcd_address={etcd}" in error
    assert "allowed: ip:port or name:port, separated by commas" in error


def test_a_port_in_use_is_named(dscli):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        error = dscli.start_fails("--worker_address", f"127.0.0.1:{port}")
    assert f"port {port} of 127.0.0.1 is in use by another process" in error
    assert f"ss -ltnp 'sport = :{port}'" in error


def test_a_second_worker_on_the_same_address_is_refused_and_the_first_lives_on(cluster, folder, dscli):
    worker, = cluster.start(1)
    started = dscli("start", "-w", "--worker_address", worker.address, "--etcd_address", cluster.etcd.address)
    assert started.returncode == 1
    assert f"a worker @ {worker.address} runs already, PID: {worker.pid}" in started.stderr
    # And without dscli's look around.
    second = subprocess.run([worker_binary(), f"--worker_address={worker.address}", f"--log_dir={folder}/log",
                             f"--unix_domain_socket_dir={folder}/uds", f"--etcd_address={cluster.etcd.address}"],
                            capture_output=True, text=True, timeout=60)
    assert second.returncode == 255
    assert f"port {worker.port} of {worker.host} is in use" in second.stderr
    client = worker.client()
    client.set("key", b"value")
    assert client.get(["key"]) == [b"value"]


def test_an_address_of_another_machine_is_refused(dscli):
    error = dscli.start_fails("--worker_address", "192.0.2.1:31501")
    assert "192.0.2.1 is not an address of this machine" in error
    assert "ip address" in error


def test_an_unknown_flag_is_refused_with_the_nearest_one(dscli, address):
    error = dscli.start_fails("--worker_address", address, "--shard_memory_size_mb", "64")
    assert "unknown flag --shard_memory_size_mb; did you mean --shared_memory_size_mb?" in error


@pytest.mark.parametrize("flag, value, allowed", [
    ("--arena_per_tenant", "33", "1 to 32"), ("--arena_per_tenant", "0", "1 to 32"), ("--node_timeout_s", "4", "5"),
    ("--max_client_num", "10001", "1 to 10000"), ("--shared_memory_size_mb", "-1", "1 to"),
    ("--enable_rdma", "perhaps", "true"), ("--v", "many", "0 to 3")])
def test_a_value_out_of_range_is_refused_with_what_is_allowed(dscli, address, flag, value, allowed):
    error = dscli.start_fails("--worker_address", address, flag, value)
    assert f"{flag}={value}" in error and allowed in error


@pytest.mark.skipif(os.path.isdir("/sys/class/infiniband") and bool(os.listdir("/sys/class/infiniband")),
                    reason="this machine has an RDMA device")
def test_transports_that_this_machine_lacks_are_refused_with_those_it_has(dscli, address):
    error = dscli.start_fails("--worker_address", address, "--enable_rdma", "true", UCX_TLS="rc_x")
    assert "UCX_TLS=rc_x cannot be used on this machine" in error
    assert "tcp/lo" in error and "Set UCX_TLS to transports that exist" in error


def test_a_build_without_rdma_refuses_to_enable_it(dscli, address):
    binary = os.environ.get("DATASYSTEM_WORKER_BINARY_NO_RDMA")
    if not binary:
        pytest.skip("DATASYSTEM_WORKER_BINARY_NO_RDMA names no worker of `build.sh -A off`; "
                    "UcxStart.ABuildWithoutRdmaRefusesToEnableIt covers it in such a build's unit tests")
    error = dscli.start_fails("--worker_address", address, "--enable_rdma", "true", UCX_TLS="tcp",
                              DATASYSTEM_WORKER_BINARY=binary)
    assert "this build has no RDMA support: rebuild with `bash build.sh -A on`" in error


def test_more_memory_than_the_machine_has_is_refused(dscli, address):
    error = dscli.start_fails("--worker_address", address, "--shared_memory_size_mb", "67108864",
                              "--shared_memory_populate", "true", "--enable_fallocate", "false")
    assert "memory" in error

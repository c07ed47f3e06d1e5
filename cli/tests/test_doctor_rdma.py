"""dscli doctor: RDMA devices, GIDs, UCX, limits on memory that cards lock."""

import resource

import pytest

from yr.datasystem.cli.doctor import asking, limits, peer, raw, rdma, ucx

from machine import MLX, MLX_FILES, RXE, RXE_FILES, answer_of, levels, plan_of, system_of

SOFT_ROCE = answer_of("rxe0:1", ["tcp/eth0", "rc_verbs/rxe0:1", "ud_verbs/rxe0:1"])
MELLANOX = answer_of("mlx5_0:1", ["tcp/ens1", "rc_mlx5/mlx5_0:1", "rc_verbs/mlx5_0:1"])


def test_without_a_device_rdma_fails_and_tcp_does_not(tmp_path):
    system = system_of(tmp_path, {})
    assert levels(rdma.check(plan_of(), system, answer_of())) == ["ok"]
    (failed,) = rdma.check(plan_of(enable_rdma="true"), system, answer_of())
    assert failed.level == "failure" and "ibv_devices" in failed.remedy


def test_ports_are_read_with_their_gids_and_empty_places_are_left_out(tmp_path):
    (port,) = rdma.ports(system_of(tmp_path, RXE_FILES))
    assert (port.name, port.state, port.ethernet) == ("rxe0:1", "ACTIVE", True)
    assert [str(gid) for gid in port.gids] == [
        "0 (RoCE v2, fe80::5054:ff:fe77:1)",
        "1 (RoCE v2, 10.77.0.1)",
    ]


def test_a_port_that_is_down_is_a_failure_with_the_interface_to_bring_up(tmp_path):
    system = system_of(tmp_path, {**RXE_FILES, f"{RXE}/ports/1/state": "1: DOWN"})
    found = list(rdma.check(plan_of(enable_rdma="true"), system, answer_of()))
    assert levels(found) == ["warning", "failure"]
    assert {finding.remedy for finding in found} == {"ip link set dev eth0 up"}


@pytest.mark.parametrize(
    "environment, index, why",
    [
        ({}, 3, "the first of RoCE v2 with IPv4"),
        ({"UCX_IB_GID_INDEX": "auto"}, 3, "the first of RoCE v2 with IPv4"),
        ({"UCX_IB_GID_INDEX": "4"}, 4, "UCX_IB_GID_INDEX says so"),
    ],
)
def test_the_gid_that_ucx_would_take_is_named_with_the_reason(tmp_path, environment, index, why):
    (port,) = rdma.ports(system_of(tmp_path, MLX_FILES))
    chosen, reason = rdma.chosen_gid(port, environment)
    assert chosen.index == index and why in reason


@pytest.mark.parametrize(
    "environment, files",
    [
        ({"UCX_IB_GID_INDEX": "9"}, {}),
        ({}, {f"{MLX}/ports/1/gid_attrs/types/{i}": "unheard of" for i in range(6)}),
    ],
)
def test_no_usable_gid_is_a_failure(tmp_path, environment, files):
    system = system_of(tmp_path, {**MLX_FILES, **files})
    (port,) = rdma.ports(system)
    (found,) = rdma.gid(plan_of(environment, enable_rdma="true"), system, port)
    assert found.level == "failure" and found.remedy.startswith("export UCX_IB_GID_INDEX=")


def test_a_gid_of_another_address_than_the_workers_is_warned_of(tmp_path):
    system = system_of(tmp_path, MLX_FILES)
    (port,) = rdma.ports(system)
    (found,) = rdma.gid(plan_of(worker_address="10.0.0.8:1"), system, port)
    assert (found.level, found.remedy) == ("warning", "export UCX_IB_GID_INDEX=4")
    (found,) = rdma.gid(plan_of(worker_address="10.0.0.7:1"), system, port)
    assert found.level == "ok"


def test_software_roce_is_told_to_take_the_ipv6_gid(tmp_path):
    system = system_of(tmp_path, RXE_FILES)
    found = [
        f
        for f in rdma.check(plan_of(enable_rdma="true"), system, SOFT_ROCE)
        if f.check == "rdma gids"
    ]
    assert levels(found) == ["warning"] and found[0].remedy == "export UCX_IB_GID_INDEX=0"
    settled = plan_of({"UCX_IB_GID_INDEX": "0"}, enable_rdma="true")
    found = [f for f in rdma.check(settled, system, SOFT_ROCE) if f.check == "rdma gids"]
    assert levels(found) == ["ok"]


@pytest.mark.parametrize("mtu, level", [("1500", "warning"), ("9000", "ok")])
def test_a_small_mtu_is_warned_of(tmp_path, mtu, level):
    system = system_of(tmp_path, {**MLX_FILES, "/sys/class/net/ens1/mtu": mtu})
    (port,) = rdma.ports(system)
    assert rdma.packets(system, port, None).level == level


@pytest.mark.parametrize(
    "tls, level, remedy",
    [
        ("rc_x", "ok", ""),
        ("rc,tcp", "ok", ""),
        ("^tcp", "ok", ""),
        ("\\rc_mlx5:aux", "ok", ""),
        ("tcp,rc_x,bogus", "warning", "export UCX_TLS=tcp,rc_x"),
        ("cuda,tcp", "warning", "export UCX_TLS=tcp"),
    ],
)
def test_each_name_of_ucx_tls_must_exist(tls, level, remedy):
    found = ucx.transports_asked_for(tls, MELLANOX)
    assert (found.level, found.remedy) == (level, remedy)


def test_parts_of_two_ucx_are_warned_of_and_another_one_that_is_not_used_is_named():
    mixed = answer_of(libraries=("/opt/ucx/lib/libucp.so.0", "/usr/lib/libucs.so.0"))
    assert ucx.other_ucx(mixed, []).level == "warning"
    found = ucx.other_ucx(
        answer_of(libraries=("/pkg/lib/libucp.so.0", "/pkg/lib/ucx/libuct_ib.so.0")),
        ["/opt/ucx/lib"],
    )
    assert found.level == "ok" and "/pkg/lib; the one in /opt/ucx/lib stays unused" in found.reason


def test_an_old_ucx_is_warned_of():
    answer = answer_of()
    answer.transport["ucx_version"] = "1.8.0"
    assert ucx.version(answer).level == "warning"


def test_every_card_locks_the_memory(tmp_path):
    system = system_of(tmp_path, {"/proc/self/status": "CapEff:\t0000000000000000"})
    two = answer_of(devices=["rc_mlx5/mlx5_0:1", "ud_mlx5/mlx5_0:1", "rc_mlx5/mlx5_1:1"])
    plan = plan_of(enable_rdma="true")
    assert limits.locked_memory(plan, system, two, 2 * 1024 << 20).level == "failure"
    assert limits.locked_memory(plan, system, two, 2112 << 20).level == "ok"
    one = plan_of({"UCX_NET_DEVICES": "mlx5_1:1"}, enable_rdma="true")
    assert limits.locked_memory(one, system, two, 1088 << 20).level == "ok"
    assert limits.locked_memory(plan, system, two, resource.RLIM_INFINITY).level == "ok"


def test_who_may_lock_all_is_not_held_to_the_limit(tmp_path):
    system = system_of(tmp_path, {"/proc/self/status": "CapEff:\t0000000000004000"})
    assert "CAP_IPC_LOCK" in limits.locked_memory(plan_of(), system, answer_of(), 65536).reason


def test_a_card_that_registers_less_than_the_cache_is_a_failure():
    assert limits.registration(plan_of(), "x0", 512 << 20).remedy == "--shared_memory_size_mb 512"
    assert limits.registration(plan_of(), "x0", 1 << 30).level == "ok"


def test_too_few_descriptors_are_warned_of():
    found = limits.open_files(plan_of(max_client_num="10000"), 1024)
    assert (found.level, found.remedy) == ("warning", "ulimit -Hn 40512")
    assert limits.open_files(plan_of(), resource.RLIM_INFINITY).level == "ok"


@pytest.mark.parametrize(
    "words, check, remedy",
    [
        (
            "RDMA has to lock 1 bytes. Raise it: `ulimit -l unlimited` in the shell",
            "locked memory",
            "ulimit -l unlimited",
        ),
        ("UCX_TLS=rc cannot be used: packets get lost", "transport", "export UCX_IB_GID_INDEX=N"),
        ("UCX_TLS=ud_x cannot be used", "transport", "export UCX_TLS=rc_x"),
    ],
)
def test_the_workers_refusals_keep_their_words_and_get_a_command(words, check, remedy):
    answer = answer_of(devices=["rc_mlx5/mlx5_0:1"], transport=words)
    found = [f for f in asking.check(plan_of({"UCX_TLS": "ud_x"}), answer) if f.level == "failure"]
    assert [(f.check, f.reason) for f in found] == [(check, words)]
    assert found[0].remedy.startswith(remedy)


def test_a_lane_is_compared_with_its_link_and_with_tcp_beside_it(tmp_path):
    rate = {f"{MLX}/ports/1/rate": "100 Gb/sec (4X EDR)", "/sys/class/net/ens1/speed": "25000"}
    system = system_of(tmp_path, {**MLX_FILES, **rate})
    assert raw.transports("rc_mlx5/mlx5_0:1", system) == [("rc_mlx5", "mlx5_0:1"), ("tcp", "ens1")]
    assert raw.transports("tcp/ens1", system) == [("tcp", "ens1")]
    assert raw.link_rate("mlx5_0:1", system) == "a link of 100 Gb/sec"
    assert raw.link_rate("ens1", system) == "a link of 25 Gb/sec"
    assert "without" in raw.link_rate("lo", system)


@pytest.mark.parametrize(
    "lane, received, level",
    [
        ("rc_mlx5/mlx5_0:1", 1000, "ok"),
        ("rc_mlx5/mlx5_0:1", 999, "failure"),
        ("tcp/eth0", 1000, "warning"),
    ],
)
def test_the_lane_must_have_carried_what_was_read_and_be_rdmas_if_that_was_asked_for(
    lane, received, level
):
    now = {"lane": lane, "payload_bytes_received": 500 + received}
    before = {"lane": lane, "payload_bytes_received": 500}
    assert peer.judge_lane({"enable_rdma": True}, now, before, 1000).level == level


def test_a_tool_that_gives_no_figures_is_waited_for_no_longer_than_it_runs():
    assert raw.measure("/bin/false", "tcp", "lo") is None

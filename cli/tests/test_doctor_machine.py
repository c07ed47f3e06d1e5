"""dscli doctor: memory, control groups, NUMA, etcd."""

import http.server
import json
import socket
import threading
from contextlib import contextmanager

import pytest

from yr.datasystem.cli.doctor import etcd, memory, placement
from yr.datasystem.cli.doctor.cgroups import groups

from machine import MLX_FILES, answer_of, levels, plan_of, system_of

MEMINFO = (
    "MemTotal: 8388608 kB\nMemAvailable: 4194304 kB\nHugePages_Total: 600\nHugePages_Free: 560\n"
    "HugePages_Rsvd: 48\nHugepagesize: 2048 kB"
)
V2_MOUNT = "30 25 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw"
V1_MOUNT = "34 30 0:31 /docker/1 /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory"


def test_huge_pages_are_counted_by_the_machines_page_size_without_those_others_reserved(tmp_path):
    system = system_of(tmp_path, {"/proc/meminfo": MEMINFO})
    plan = plan_of(enable_huge_tlb="true")
    assert memory.huge_pages(plan, system).reason == "512 of 2 MiB needed, 512 available"
    few = memory.huge_pages(plan_of(enable_huge_tlb="true", shared_memory_size_mb="1026"), system)
    assert (few.level, few.remedy) == ("failure", "sysctl -w vm.nr_hugepages=601")
    large = system_of(tmp_path / "1g", {"/proc/meminfo": MEMINFO.replace("2048 kB", "1048576 kB")})
    assert memory.huge_pages(plan, large).reason == "1 of 1024 MiB needed, 512 available"


def test_a_kernel_without_huge_pages_is_a_failure(tmp_path):
    assert (
        memory.huge_pages(plan_of(), system_of(tmp_path, {"/proc/meminfo": "MemTotal: 1 kB"})).level
        == "failure"
    )


def test_the_workers_refusal_of_memory_is_repeated_with_its_command(tmp_path):
    words = "too few huge pages: 9 needed. Make room with `sysctl -w vm.nr_hugepages=9`"
    found = list(
        memory.check(
            plan_of(enable_huge_tlb="true"), system_of(tmp_path, {}), answer_of(memory=words)
        )
    )
    assert (found[0].reason, found[0].remedy) == (words, "sysctl -w vm.nr_hugepages=9")


@pytest.mark.parametrize(
    "flags, level",
    [
        ({}, "warning"),
        ({"enable_rdma": "true"}, "failure"),
        ({"shared_memory_populate": "true"}, "failure"),
        ({"shared_memory_size_mb": "4096"}, "ok"),
    ],
)
def test_memory_beyond_what_is_available_fails_only_if_it_has_to_be_there_at_once(
    tmp_path, flags, level
):
    system = system_of(tmp_path, {"/proc/meminfo": MEMINFO})
    assert (
        memory.machine(plan_of(**{"shared_memory_size_mb": "5000", **flags}), system).level == level
    )


@pytest.mark.parametrize(
    "flags, level",
    [
        ({}, "warning"),
        ({"enable_rdma": "true"}, "failure"),
        ({"shared_memory_size_mb": "100"}, "ok"),
        ({"enable_huge_tlb": "true", "enable_rdma": "true"}, "warning"),
    ],
)
@pytest.mark.parametrize(
    "files",
    [
        {
            "/proc/self/cgroup": "0::/kubepods/pod1",
            "/proc/self/mountinfo": V2_MOUNT,
            "/sys/fs/cgroup/kubepods/pod1/memory.max": "max",
            "/sys/fs/cgroup/kubepods/memory.max": "536870912",
        },
        {
            "/proc/self/cgroup": "4:memory:/docker/1",
            "/proc/self/mountinfo": V1_MOUNT,
            "/sys/fs/cgroup/memory/memory.limit_in_bytes": "536870912",
        },
    ],
    ids=["version 2", "version 1"],
)
def test_the_tightest_control_group_counts(tmp_path, files, flags, level):
    found = memory.container(plan_of(**flags), groups(system_of(tmp_path, files), "memory"))
    assert found.level == level and "512 MiB" in found.reason


def test_without_limits_of_control_groups_nothing_is_said_of_them(tmp_path):
    files = {
        "/proc/self/cgroup": "4:memory:/docker/1\n0::/",
        "/proc/self/mountinfo": V1_MOUNT,
        "/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712",
    }
    assert memory.container(plan_of(), groups(system_of(tmp_path, files), "memory")).level == "ok"


def test_a_containers_limit_on_huge_pages_is_found(tmp_path):
    files = {
        "/proc/meminfo": MEMINFO,
        "/proc/self/cgroup": "0::/pod",
        "/proc/self/mountinfo": V2_MOUNT,
        "/sys/fs/cgroup/pod/hugetlb.2MB.max": "536870912",
    }
    found = memory.hugetlb_limit(plan_of(enable_huge_tlb="true"), system_of(tmp_path, files))
    assert found.level == "failure" and found.remedy.endswith("hugepages-2Mi: 1024Mi")
    assert (
        memory.hugetlb_limit(plan_of(shared_memory_size_mb="512"), system_of(tmp_path, files))
        is None
    )


@pytest.mark.parametrize(
    "numa, level",
    [
        ({}, "warning"),
        ({"cpunodebind": "1", "membind": "1"}, "ok"),
        ({"cpunodebind": "1", "localalloc": True}, "ok"),
        ({"physcpubind": "8-9"}, "ok"),
        ({"physcpubind": "7-8"}, "warning"),
        ({"cpunodebind": "1", "interleave": "all"}, "warning"),
        ({"cpunodebind": "1", "preferred": "0"}, "warning"),
    ],
)
def test_cpus_and_memory_on_another_node_than_the_card_are_warned_of(tmp_path, numa, level):
    found = placement.distance(
        plan_of(numa=numa), system_of(tmp_path, MLX_FILES), "mlx5_0:1", {0, 1}
    )
    assert found.level == level
    if level == "warning":
        assert "0 at 21" in found.reason and "--cpunodebind 1 --membind 1" in found.remedy


def test_a_card_without_a_node_or_a_machine_with_one_says_so(tmp_path):
    system = system_of(tmp_path, MLX_FILES)
    assert "does not say" in placement.distance(plan_of(), system, "virt0", {0, 1}).reason
    assert "one NUMA node" in placement.distance(plan_of(), system, "mlx5_0:1", {0}).reason


def test_memory_bound_to_a_node_must_fit_there(tmp_path):
    system = system_of(tmp_path, MLX_FILES)
    assert placement.room(plan_of(numa={"membind": "1"}), system).level == "ok"
    assert (
        placement.room(plan_of(numa={"membind": "1"}, shared_memory_size_mb="4096"), system).level
        == "failure"
    )


@pytest.mark.parametrize(
    "numa, nodes, found, level",
    [
        ({}, {0}, None, "ok"),
        ({}, {0, 1}, None, "warning"),
        ({"membind": "0"}, {0}, None, "failure"),
        ({"membind": "0"}, {0}, "/usr/bin/numactl", "ok"),
    ],
)
def test_numactl_is_missed_where_it_is_needed(numa, nodes, found, level):
    assert placement.numactl(plan_of(numa=numa), nodes, found).level == level


@contextmanager
def server(answers, date="Mon, 01 Jan 2024 00:00:00 GMT"):
    """Answers as etcd's client port does over HTTP, for what a healthy etcd never says."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            body = json.dumps(answers.get(self.path)).encode()
            self.send_response_only(200)
            if date:
                self.send_header("Date", date)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    listening = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"127.0.0.1:{listening.server_port}"
    finally:
        listening.shutdown()
        thread.join()
        listening.server_close()


@pytest.mark.parametrize(
    "version, health, expected",
    [
        ("3.5.9", "true", ["ok", "warning"]),
        ("3.5.9", "false", ["failure", "warning"]),
        ("3.3.1", "true", ["warning", "warning"]),
    ],
)
def test_etcds_health_version_and_clock_are_judged(version, health, expected):
    with server({"/version": {"etcdserver": version}, "/health": {"health": health}}) as endpoint:
        found = list(etcd.check(plan_of(etcd_address=endpoint), answer_of()))
    assert levels(found) == [*expected, "ok"]
    assert "behind this machine" in found[1].reason  # the server lives in 2024


def test_a_server_without_a_date_leaves_the_clock_open():
    with server(
        {"/version": {"etcdserver": "3.5.9"}, "/health": {"health": "true"}}, date=""
    ) as endpoint:
        assert (
            "cannot be compared"
            in list(etcd.check(plan_of(etcd_address=endpoint), answer_of()))[1].reason
        )


def test_what_is_not_etcd_is_told_apart_and_one_of_two_servers_is_enough():
    with server({"/version": []}) as other, socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        gone = f"127.0.0.1:{closed.getsockname()[1]}"
        found = list(etcd.check(plan_of(etcd_address=f"{other},{gone}"), answer_of()))
    assert levels(found) == ["failure", "failure"]
    assert "is not etcd" in found[0].reason and "refused" in found[1].reason
    with server({"/version": {"etcdserver": "3.4.1"}, "/health": {"health": "true"}}) as good:
        assert levels(etcd.check(plan_of(etcd_address=f"{gone},{good}"), answer_of()))[:2] == [
            "warning",
            "ok",
        ]


def test_a_slow_etcd_is_warned_of():
    found = next(etcd.judge(etcd.Server("e:1", "", "3.5.0", True, 0.5, 0.0), others=0))
    assert found.level == "warning" and "500.0 ms" in found.reason


def test_the_node_of_virtual_cards_and_of_software_roce_is_found(tmp_path):
    pci = "/sys/devices/pci0000:20/0000:20:00.0"
    files = {
        f"{pci}/numa_node": "1",
        f"{pci}/virtio5/status": "0x7",
        "/sys/class/infiniband/rxe0/parent": "eth0",
    }
    system = system_of(tmp_path, files)
    (tmp_path / "sys/class/net/eth0").mkdir(parents=True)
    (tmp_path / "sys/class/net/eth0/device").symlink_to(tmp_path / f"{pci}/virtio5".lstrip("/"))
    assert [placement.node_of(system, name) for name in ("eth0", "rxe0:1", "eth1", "", "..")] == [
        1,
        1,
        None,
        None,
        None,
    ]

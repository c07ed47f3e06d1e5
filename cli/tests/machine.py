"""Files of /proc and /sys as machines have them, below a folder of the test."""

from yr.datasystem.cli.doctor.asking import Answer
from yr.datasystem.cli.doctor.plan import Plan
from yr.datasystem.cli.doctor.system import System

RXE = "/sys/class/infiniband/rxe0"

# Software RoCE on eth0 (10.77.0.1), Linux 6.1: rxe has no folder "device".
RXE_FILES = {
    f"{RXE}/node_type": "1: CA",
    f"{RXE}/ports/1/state": "4: ACTIVE",
    f"{RXE}/ports/1/phys_state": "5: LinkUp",
    f"{RXE}/ports/1/link_layer": "Ethernet",
    f"{RXE}/ports/1/gids/0": "fe80:0000:0000:0000:5054:00ff:fe77:0001",
    f"{RXE}/ports/1/gids/1": "0000:0000:0000:0000:0000:ffff:0a4d:0001",
    f"{RXE}/ports/1/gids/2": "0000:0000:0000:0000:0000:0000:0000:0000",
    f"{RXE}/ports/1/gid_attrs/types/0": "RoCE v2",
    f"{RXE}/ports/1/gid_attrs/types/1": "RoCE v2",
    f"{RXE}/ports/1/gid_attrs/ndevs/0": "eth0",
    f"{RXE}/ports/1/gid_attrs/ndevs/1": "eth0",
    "/sys/class/net/eth0/mtu": "9000",
}

MLX = "/sys/class/infiniband/mlx5_0"

# A card with two addresses, both kinds of RoCE for each, on NUMA node 1 of two.
MLX_FILES = {
    f"{MLX}/ports/1/state": "4: ACTIVE",
    f"{MLX}/ports/1/link_layer": "Ethernet",
    f"{MLX}/device/numa_node": "1",
    **{
        f"{MLX}/ports/1/gids/{i}": gid
        for i, gid in enumerate(
            ["fe80:0000:0000:0000:0000:00ff:fe00:0001"] * 2
            + ["0000:0000:0000:0000:0000:ffff:0a00:0007"] * 2
            + ["0000:0000:0000:0000:0000:ffff:0a00:0008"] * 2
        )
    },
    **{
        f"{MLX}/ports/1/gid_attrs/types/{i}": kind
        for i, kind in enumerate(["IB/RoCE v1", "RoCE v2"] * 3)
    },
    **{f"{MLX}/ports/1/gid_attrs/ndevs/{i}": "ens1" for i in range(6)},
    "/sys/class/net/ens1/mtu": "1500",
    "/sys/class/net/ens1/device/numa_node": "1",
    "/sys/devices/system/node/online": "0-1",
    "/sys/devices/system/node/node0/cpulist": "0-7,16-23",
    "/sys/devices/system/node/node1/cpulist": "8-15,24-31",
    "/sys/devices/system/node/node0/distance": "10 21",
    "/sys/devices/system/node/node1/distance": "21 10",
    "/sys/devices/system/node/node1/meminfo": (
        "Node 1 MemTotal:   4194304 kB\nNode 1 MemFree:   2097152 kB"
    ),
    "/proc/self/status": (
        "Cpus_allowed_list:\t0-31\nMems_allowed_list:\t0-1\nCapEff:\t0000000000000000"
    ),
}


def system_of(folder, files):
    for path, content in files.items():
        file = folder / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content + "\n")
    return System(str(folder))


def plan_of(environment=None, numa=None, **flags):
    settings = {"worker_address": "10.0.0.7:31501", "shared_memory_size_mb": "1024", **flags}
    return Plan(settings, environment or {}, numa or {})


def answer_of(
    device="", devices=(), libraries=("/usr/lib/libucp.so.0", "/usr/lib/libucs.so.0"), **errors
):
    """`devices` as UCX names them: "rc_verbs/rxe0:1"."""
    listed = [
        {
            "transport": each.split("/")[0],
            "device": each.split("/")[1],
            "rdma": each.startswith(("rc", "ud", "dc")),
        }
        for each in devices
    ]
    return Answer(
        {"address": "", "memory": "", "transport": "", **errors},
        {
            "device": device,
            "devices": listed,
            "rdma": False,
            "ucx_version": "1.13.1",
            "ucx_libraries": list(libraries),
        },
    )


def levels(findings):
    return [finding.level for finding in findings]

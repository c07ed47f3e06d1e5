"""RDMA for real verbs: the guide's sequence on two emulated nodes with software RoCE (tests/rdma/README.md)."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from yr.datasystem.cli.package import worker_binary

LAB = Path(__file__).with_name("rdma") / "rdma-lab"
_PREPARE_S = 600
_RUN_S = 900


@pytest.fixture(scope="module")
def lab():
    """Skips where the emulator's packages cannot be had."""
    if os.geteuid() != 0:
        pytest.skip("the emulated nodes with RDMA need root")
    prepared = subprocess.run([LAB, "prepare"], capture_output=True, text=True, timeout=_PREPARE_S, check=False)
    if prepared.returncode != 0:
        pytest.skip(f"no emulated nodes with RDMA here: {prepared.stderr.strip()}")

    def run(folder, script, *arguments, options=(), nodes=None):
        environment = {"PYTHONPATH": os.environ.get("PYTHONPATH", ""), "DATASYSTEM_WORKER_BINARY": worker_binary()}
        words = [word for name, value in environment.items() for word in ("--env", f"{name}={value}")]
        ended = subprocess.run([LAB, "run", "--out", folder, "--timeout", str(_RUN_S), *words, *options,
                                *([nodes] if nodes else []), LAB.with_name(script), *arguments], capture_output=True, text=True,
                               timeout=_RUN_S + 60, check=False)
        assert ended.returncode == 0, ended.stdout[-6000:] + ended.stderr[-2000:]
        return ended.stdout
    return run


@pytest.mark.parametrize("flags,options", [((), ()), (("--enable_huge_tlb", "true"), ("--hugepages", "170"))],
                         ids=["small pages", "huge pages"])
def test_the_guide_works_over_real_verbs(lab, tmp_path, flags, options):
    said = lab(tmp_path, "guide.sh", "rc", *flags, options=options)
    assert said.count("bytes arrived whole") == 10
    assert "node2| lane rc" in said and "node1| lane rc" in said
    # What dscli doctor said before, and the status after.
    assert said.count("[  OK  ] A start can work: 0 failures") == 2
    for check, reason in (("transport", "RDMA over rxe0:1"), ("rdma devices", "rxe0:1 is active, Ethernet on eth0"),
                          ("rdma gids", "rxe0:1 takes GID 0"), ("rdma mtu", "packets of 4096 bytes"),
                          ("registration", "rxe0 registers any size"), ("etcd", "version 3.")):
        assert re.search(rf"node2\| ok +{check} +.*{re.escape(reason)}", said), f"{check}: {reason}"
    if not flags:
        for check, reason in (("lane", "rc_verbs/rxe0:1 carried"), ("transfer", "from 10.77.0.2:31501: a get of 64 B"),
                              ("transfer", "to 10.77.0.2:31501: "), ("raw figure", "rc_verbs/rxe0:1, a link of 2.5 Gb/sec"),
                              ("raw figure", "tcp/eth0, ")):
            assert re.search(rf"node1\| ok +{check} +.*{re.escape(reason)}", said), f"{check}: {reason}"
    page = "2.0 MiB" if flags else "4.0 KiB"
    assert re.search(rf"node1\|   page +{page}", said) and re.search(r"node1\|   network device +rxe0:1", said)


@pytest.fixture(scope="module")
def one_node(lab, tmp_path_factory):
    """What one guest says, with two NUMA nodes: its CPU on the first, its card on the second."""
    return lab(tmp_path_factory.mktemp("one_node"), "one_node.sh", options=("--numa", "2"), nodes="--node1")


def test_a_gid_by_which_nothing_arrives_is_named_by_doctor_and_at_the_start(one_node):
    assert one_node.count("packets get lost") >= 2 and "doctor sees nothing" not in one_node
    assert re.search(r"node1\| warning +rdma gids +rxe0:1 takes GID 1", one_node)
    assert "export UCX_IB_GID_INDEX=0" in one_node and "UCX_IB_GID_INDEX chooses" in one_node
    assert "node1| refused" in one_node and "backtrace" not in one_node


def test_memory_far_from_the_card_is_told_by_doctor_status_and_log(one_node):
    lines = re.sub(r"\nnode1\| {10,}", " ", one_node)  # long ones are wrapped
    assert re.search(r"warning +numa +eth0 is on node 1, CPUs on node 0, memory on node 1; .* 0 at 20", lines)
    assert re.search(r"node1\| ok +numa memory +64 MiB needed on node 1 \(membind\)", one_node)
    far = "{'distance_to_device': 20, 'node': 0, 'share_percent': %d}"
    near = "{'distance_to_device': 10, 'node': 1, 'share_percent': %d}"
    assert f"--membind=0 eth0 1 [{far % 100}]" in one_node
    assert f"--membind=1 eth0 1 [{near % 100}]" in one_node
    share, = re.findall(r"--interleave=0,1 eth0 1 .*'node': 1, 'share_percent': (\d+)}\]", one_node)
    assert 40 <= int(share) <= 60, "a sample of the pages, which take turns"
    assert "--membind=0 warnings: 100 % of the cache memory is on another NUMA node than the network device eth0" in one_node
    assert re.search(r"--membind=1 warnings: *$", one_node, re.MULTILINE)
    assert re.search(r"--interleave=0,1 warnings: [456]\d % of", one_node) and "memory_nodes=0 (distance 20)" in one_node

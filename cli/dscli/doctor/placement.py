"""NUMA: are network device, CPUs and memory on one node, and how far apart are they?"""

import shutil
from typing import Dict, Iterator, Set

from .asking import Answer
from .finding import Finding, failure, ok, size, warning
from .plan import Plan
from .system import System, numbers_of

_NODES = "/sys/devices/system/node"
_INSTALL = "apt-get install numactl"


def check(plan: Plan, system: System, answer: Answer) -> Iterator[Finding]:
    nodes = numbers_of(system.text(f"{_NODES}/online")) or {0}
    yield numactl(plan, nodes, shutil.which("numactl"))
    yield distance(plan, system, answer.transport.get("device", ""), nodes)
    if plan.numa.get("membind"):
        yield room(plan, system)


def numactl(plan: Plan, nodes: Set[int], found: "str | None") -> Finding:
    if found:
        return ok("numactl", f"{found} is there")
    if plan.numa:
        return failure("numactl", "NUMA options need numactl, which is not on PATH", _INSTALL)
    if len(nodes) > 1:
        return warning(
            "numactl",
            (
                "not on PATH; --cpunodebind, --membind and their like need it, and this machine"
                f" has {len(nodes)} NUMA nodes"
            ),
            _INSTALL,
        )
    return ok("numactl", "not on PATH, and not needed: this machine has one NUMA node")


def distance(plan: Plan, system: System, device: str, nodes: Set[int]) -> Finding:
    if len(nodes) == 1:
        return ok("numa", "this machine has one NUMA node")
    device_node = node_of(system, device)
    cpu_nodes, memory_nodes = _cpu_nodes(plan, system, nodes), _memory_nodes(plan, system, nodes)
    told = f"CPUs on {_shown(cpu_nodes)}, memory on {_shown(memory_nodes)}"
    if device_node is None:
        return ok(
            "numa",
            f"{told}; the system does not say on which node {device or 'the network device'} is",
        )
    far = (cpu_nodes | memory_nodes) - {device_node}
    told = f"{device} is on node {device_node}, {told}"
    if not far:
        return ok("numa", told)
    distances = ", ".join(
        f"{node} at {_distance(system, device_node, node)}" for node in sorted(far)
    )
    return warning(
        "numa",
        (
            f"{told}; distances from node {device_node} (10 is itself): {distances}. Transfers"
            " between them are slower"
        ),
        f"dscli start --cpunodebind {device_node} --membind {device_node} -w ...",
    )


def room(plan: Plan, system: System) -> Finding:
    nodes = numbers_of(plan.numa["membind"])
    if plan.huge_pages:
        pages = f"hugepages/hugepages-{system.meminfo('Hugepagesize')}kB"
        page = system.meminfo("Hugepagesize") << 10
        free = sum(
            (system.number(f"{_NODES}/node{node}/{pages}/free_hugepages") or 0) * page
            for node in nodes
        )
        needed = plan.memory_bytes
        first = min(nodes, default=0)
        remedy = f"echo {needed // (page or 1)} > {_NODES}/node{first}/{pages}/nr_hugepages"
    else:
        free = sum(_free_bytes(system, node) for node in nodes)
        needed = plan.memory_bytes
        remedy = "more nodes in --membind, or --preferred instead"
    told = f"{size(needed)} needed on {_shown(nodes)} (membind), {size(free)} free there"
    return ok("numa memory", told) if needed <= free else failure("numa memory", told, remedy)


def node_of(system: System, device: str) -> "int | None":
    name = device.partition(":")[0]
    if not name or "/" in name:
        return None
    # A virtual card hangs below its PCI device, and software RoCE on an interface.
    parent = system.text(f"/sys/class/infiniband/{name}/parent")
    for folder in (
        f"infiniband/{name}/device",
        f"net/{name}/device",
        f"net/{name}/device/..",
        f"net/{parent}/device",
        f"net/{parent}/device/..",
    ):
        node = system.number(f"/sys/class/{folder}/numa_node")
        if node is not None:
            return node if node >= 0 else None
    return None


def _cpu_nodes(plan: Plan, system: System, nodes: Set[int]) -> Set[int]:
    if plan.numa.get("cpunodebind"):
        return _nodes_named(plan.numa["cpunodebind"], nodes)
    cpus = plan.numa.get("physcpubind") or system.fields("/proc/self/status").get(
        "Cpus_allowed_list", ""
    )
    allowed = numbers_of(cpus)
    of_node: Dict[int, Set[int]] = {
        node: numbers_of(system.text(f"{_NODES}/node{node}/cpulist")) for node in nodes
    }
    return {node for node, there in of_node.items() if there & allowed} or nodes


def _memory_nodes(plan: Plan, system: System, nodes: Set[int]) -> Set[int]:
    """Without a policy pages come from the node of the CPU that touches them first."""
    for name in ("membind", "interleave", "preferred"):
        if plan.numa.get(name):
            return _nodes_named(plan.numa[name], nodes)
    allowed = numbers_of(system.fields("/proc/self/status").get("Mems_allowed_list", "")) & nodes
    return _cpu_nodes(plan, system, nodes) & (allowed or nodes)


def _nodes_named(text: str, nodes: Set[int]) -> Set[int]:
    return nodes if text == "all" else numbers_of(text.lstrip("+")) or nodes


def _distance(system: System, start: int, end: int) -> str:
    online = sorted(numbers_of(system.text(f"{_NODES}/online")) or {0})
    distances = system.text(f"{_NODES}/node{start}/distance").split()
    position = online.index(end) if end in online else len(distances)
    return distances[position] if position < len(distances) else "?"


def _free_bytes(system: System, node: int) -> int:
    for line in system.text(
        f"{_NODES}/node{node}/meminfo"
    ).splitlines():  # "Node 0 MemFree:   123 kB"
        words = line.split()
        if len(words) > 3 and words[2] == "MemFree:":
            return int(words[3]) << 10
    return 0


def _shown(nodes: Set[int]) -> str:
    listed = ", ".join(str(node) for node in sorted(nodes)) or "?"
    return f"node{'s' if len(nodes) > 1 else ''} {listed}"

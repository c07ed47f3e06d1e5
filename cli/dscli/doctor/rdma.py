"""RDMA devices, states of their ports, the GID that UCX would take and why, size of packets."""

import ipaddress
from dataclasses import dataclass
from typing import Iterator, List, Optional

from ..validation import split_address
from . import verbs
from .asking import Answer
from .finding import Finding, failure, ok, warning
from .plan import Plan
from .system import System

_DEVICES = "/sys/class/infiniband"
# UCX takes the first GID of the first kind that there is, in this order.
_PREFERRED_KINDS = (("RoCE v2", 4), ("RoCE v2", 6), ("IB/RoCE v1", 4), ("IB/RoCE v1", 6))
# An Ethernet frame of this size carries RDMA packets of 4096 bytes, the largest there are.
_MTU_FOR_LARGE_PACKETS = 4200
_SOFTWARE_DRIVERS = ("rxe", "siw")


@dataclass(frozen=True)
class Gid:
    index: int
    address: ipaddress.IPv6Address
    kind: str  # "RoCE v2", "IB/RoCE v1"
    interface: str  # "" on InfiniBand

    @property
    def family(self) -> int:
        return 4 if self.address.ipv4_mapped else 6

    def __str__(self) -> str:
        return f"{self.index} ({self.kind}, {self.address.ipv4_mapped or self.address})"


@dataclass(frozen=True)
class Port:
    device: str
    number: int
    state: str  # "ACTIVE"
    ethernet: bool
    gids: List[Gid]

    @property
    def name(self) -> str:
        return f"{self.device}:{self.number}"

    @property
    def interface(self) -> str:
        """The network interface that it is bound to; "" on InfiniBand."""
        return next((each.interface for each in self.gids if each.interface), "")


def check(plan: Plan, system: System, answer: Answer) -> Iterator[Finding]:
    found = ports(system)
    if not found:
        if plan.rdma:
            yield failure(
                "rdma devices",
                (
                    "the kernel has no RDMA device (/sys/class/infiniband is empty): is the card's "
                    "driver loaded?"
                ),
                "modprobe mlx5_ib; ibv_devices",
            )
        else:
            yield ok("rdma devices", "none, and enable_rdma is false")
        return
    for port in found:
        yield port_state(plan, port)
    if not plan.rdma:
        return
    if not [port for port in found if port.state == "ACTIVE"]:
        yield failure(
            "rdma devices", "no port is active", f"ip link set dev {found[0].interface} up"
        )
    for port in _used(plan, found, answer):
        yield from gid(plan, system, port)
        yield packets(system, port, verbs.query(port.device, port.number))


def ports(system: System) -> List[Port]:
    return [
        _port(system, device, int(number))
        for device in system.names(_DEVICES)
        for number in system.names(f"{_DEVICES}/{device}/ports")
        if number.isdigit()
    ]


def port_state(plan: Plan, port: Port) -> Finding:
    link = "Ethernet" if port.ethernet else "InfiniBand"
    where = f" on {port.interface}" if port.ethernet and port.interface else ""
    if port.state == "ACTIVE":
        return ok("rdma devices", f"{port.name} is active, {link}{where}")
    remedy = (
        f"ip link set dev {port.interface} up"
        if port.ethernet
        else "ibstat; is a subnet manager running?"
    )
    told = f"{port.name} is {port.state or 'in an unknown state'}, {link}{where}"
    return warning("rdma devices", told, remedy) if plan.rdma else ok("rdma devices", told)


def chosen_gid(port: Port, environment: "dict[str, str]") -> "tuple[Optional[Gid], str]":
    """By UCX's rules: the GID, and why it is this one or why there is none."""
    asked = environment.get("UCX_IB_GID_INDEX", "auto")
    if asked != "auto":
        found = [each for each in port.gids if str(each.index) == asked]
        return (
            (found[0], "UCX_IB_GID_INDEX says so")
            if found
            else (None, f"there is no GID {asked} (UCX_IB_GID_INDEX)")
        )
    if not port.ethernet:
        return (
            (port.gids[0], "the first of an InfiniBand port")
            if port.gids
            else (None, "the port has none")
        )
    for kind, family in _PREFERRED_KINDS:
        for each in port.gids:
            if (each.kind, each.family) == (kind, family):
                return each, f"the first of {kind} with IPv{family}, which UCX prefers"
    return None, "the port has none that RoCE can use: its interface has no address"


def gid(plan: Plan, system: System, port: Port) -> Iterator[Finding]:
    chosen, why = chosen_gid(port, plan.environment)
    if chosen is None:
        yield failure(
            "rdma gids", f"{port.name}: {why}", _export(port.gids[0].index if port.gids else 0)
        )
        return
    others = ", ".join(str(each) for each in port.gids if each != chosen) or "none"
    told = f"{port.name} takes GID {chosen}: {why}. Others: {others}"
    if port.ethernet and _is_software(system, port) and chosen.family == 4:
        better = [each for each in port.gids if each.family == 6]
        yield warning(
            "rdma gids",
            f"{told}. Over software RoCE, UCX 1.13 loses what arrives under an IPv4 GID",
            _export(better[0].index if better else 0),
        )
        return
    host = split_address(plan.worker_address)[0]
    if chosen.family == 4 and str(chosen.address.ipv4_mapped) != host and _holds(port, host):
        right = [each for each in port.gids if str(each.address.ipv4_mapped) == host]
        yield warning(
            "rdma gids",
            f"{told}. worker_address {host} is another address of this port",
            _export(right[0].index),
        )
        return
    if chosen.kind == "IB/RoCE v1":
        yield warning(
            "rdma gids",
            f"{told}. RoCE v1 is not routed beyond its Ethernet segment",
            f"ip address add ADDRESS dev {chosen.interface or 'INTERFACE'}",
        )
        return
    yield ok("rdma gids", told)


def packets(system: System, port: Port, facts: "verbs.CardFacts | None") -> Finding:
    active = facts.active_mtu if facts else 0
    shown = f", which gives packets of {active} bytes" if active else ""
    interface = port.interface
    frame = system.number(f"/sys/class/net/{interface}/mtu") if interface else None
    if not port.ethernet or frame is None:
        return ok(
            "rdma mtu",
            (
                f"{port.name}: packets of {active} bytes"
                if active
                else f"{port.name}: not told by the kernel; ibv_devinfo shows active_mtu"
            ),
        )
    if frame < _MTU_FOR_LARGE_PACKETS:
        return warning(
            "rdma mtu",
            (
                f"{port.name}: the MTU of {interface} is {frame}{shown}; packets of 4096 bytes need"
                f" {_MTU_FOR_LARGE_PACKETS}, on all nodes and switches"
            ),
            f"ip link set dev {interface} mtu 9000",
        )
    return ok("rdma mtu", f"{port.name}: the MTU of {interface} is {frame}{shown}")


def _used(plan: Plan, found: List[Port], answer: Answer) -> List[Port]:
    """The chosen port, else all active ones."""
    chosen = (plan.environment.get("UCX_NET_DEVICES") or answer.transport.get("device", "")).split(
        ","
    )
    return [port for port in found if port.name in chosen] or [
        port for port in found if port.state == "ACTIVE"
    ]


def _port(system: System, device: str, number: int) -> Port:
    folder = f"{_DEVICES}/{device}/ports/{number}"
    state = system.text(f"{folder}/state").rpartition(":")[2].strip()  # "4: ACTIVE"
    gids = []
    for index in system.names(f"{folder}/gids"):
        address = ipaddress.IPv6Address(system.text(f"{folder}/gids/{index}") or "::")
        if int(address) == 0:
            continue  # an empty place of the table
        gids.append(
            Gid(
                int(index),
                address,
                system.text(f"{folder}/gid_attrs/types/{index}"),
                system.text(f"{folder}/gid_attrs/ndevs/{index}"),
            )
        )
    return Port(device, number, state, system.text(f"{folder}/link_layer") == "Ethernet", gids)


def _holds(port: Port, host: str) -> bool:
    return any(str(each.address.ipv4_mapped) == host for each in port.gids)


def _is_software(system: System, port: Port) -> bool:
    # Only real cards have a device behind them.
    return port.device.startswith(_SOFTWARE_DRIVERS) or not system.names(
        f"{_DEVICES}/{port.device}/device"
    )


def _export(index: int) -> str:
    return f"export UCX_IB_GID_INDEX={index}"

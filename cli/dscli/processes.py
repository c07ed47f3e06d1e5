"""The workers that run on this machine, read from /proc."""

import os
from dataclasses import dataclass
from typing import Dict, List, Optional

from .package import WORKER_NAME


@dataclass(frozen=True)
class RunningWorker:
    pid: int
    flags: Dict[str, str]

    @property
    def address(self) -> str:
        return self.flags.get("worker_address", "")


def running_workers() -> List[RunningWorker]:
    found = (read_worker(int(name)) for name in os.listdir("/proc") if name.isdigit())
    return [worker for worker in found if worker]


def read_worker(pid: int) -> Optional[RunningWorker]:
    """None if the process is gone, not ours to see, or not a worker."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            argv = [arg.decode(errors="replace") for arg in file.read().split(b"\0")[:-1]]
    except OSError:
        return None
    # By the program's own name: an editor or a grep that mentions the address is not a worker.
    # A process that has ended but was not yet waited for has an empty command line.
    if not argv or os.path.basename(argv[0]) != WORKER_NAME:
        return None
    return RunningWorker(pid, _flags(argv[1:]))


def shares_our_network(pid: int) -> bool:
    """False for a worker of another network namespace: it may have the same address as ours."""
    try:
        return os.stat(f"/proc/{pid}/ns/net").st_ino == os.stat("/proc/self/ns/net").st_ino
    except OSError:
        return True


def _flags(arguments: List[str]) -> Dict[str, str]:
    """All forms that the worker takes: -name=value, --name=value, --name value."""
    flags: Dict[str, str] = {}
    name = ""
    for argument in arguments:
        if argument.startswith("-"):
            name, equals, value = argument.lstrip("-").partition("=")
            if equals:
                flags[name] = value
                name = ""
        elif name:
            flags[name] = argument
            name = ""
    return flags

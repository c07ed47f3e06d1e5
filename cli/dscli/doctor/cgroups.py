"""The control groups around this process, of version 1 and 2; the worker: src/shm/head_room.h."""

import posixpath
from dataclasses import dataclass
from typing import List, Optional

from .system import System

# Version 1 says "no limit" by the largest multiple of a page.
_NO_LIMIT = 1 << 62


@dataclass(frozen=True)
class Group:
    system: System
    folder: str  # "/sys/fs/cgroup/memory/pods/x"
    path: str  # as the kernel names it, "/pods/x"
    version: int

    def memory_limit(self) -> Optional[int]:
        names = ("memory.max", "memory.high") if self.version == 2 else ("memory.limit_in_bytes",)
        numbers = [
            number
            for number in (self.system.number(f"{self.folder}/{name}") for name in names)
            if number is not None and number < _NO_LIMIT
        ]
        return min(numbers, default=None)


def groups(system: System, controller: str) -> List[Group]:
    """From the innermost outwards: the limits of all of them count."""
    found: List[Group] = []
    mounts = _mounts(system, controller)
    for line in system.text("/proc/self/cgroup").splitlines():  # "4:memory:/group", "0::/group"
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        version = 2 if number == "0" and not controllers else 1
        if version == 1 and controller not in controllers.split(","):
            continue
        for mount_root, mount in mounts.get(version, [])[:1]:
            found += _upwards(system, mount, mount_root, path, version)
    return found


def _upwards(system: System, mount: str, mount_root: str, path: str, version: int) -> List[Group]:
    # Inside a container the mount often shows the container's group only, under its host's name.
    if mount_root != "/" and (path + "/").startswith(mount_root + "/"):
        path = path[len(mount_root) :]
    path = posixpath.normpath("/" + path.lstrip("/"))
    if not system.names(mount + path):
        path = "/"
    found = []
    while True:
        found.append(Group(system, (mount + path).rstrip("/"), path, version))
        if path == "/":
            return found
        path = posixpath.dirname(path)


def _mounts(system: System, controller: str) -> "dict[int, list[tuple[str, str]]]":
    """Lines like "34 30 0:31 /group /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory"."""
    mounts: "dict[int, list[tuple[str, str]]]" = {}
    for line in system.text("/proc/self/mountinfo").splitlines():
        before, separator, after = line.partition(" - ")
        words, options = before.split(), after.split()
        if not separator or len(words) < 5 or len(options) < 3:
            continue
        if options[0] == "cgroup2":
            mounts.setdefault(2, []).append((words[3], words[4]))
        elif options[0] == "cgroup" and controller in options[-1].split(","):
            mounts.setdefault(1, []).append((words[3], words[4]))
    return mounts

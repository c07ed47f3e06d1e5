"""What the kernel tells in /proc and /sys. Below another root in tests."""

import re
from pathlib import Path
from typing import Dict, List, Optional, Set


class System:
    def __init__(self, root: str = "/"):
        self.root = Path(root)

    def text(self, path: str) -> str:
        """The stripped content; "" for what cannot be read."""
        try:
            return (
                (self.root / path.lstrip("/")).read_text(encoding="utf-8", errors="replace").strip()
            )
        except OSError:
            return ""

    def number(self, path: str) -> Optional[int]:
        """None for "max" and for what is no number."""
        text = self.text(path)
        return int(text) if re.fullmatch(r"-?\d+", text) else None

    def names(self, path: str) -> List[str]:
        """Of what is in a folder, numbers in their order; none if there is no such folder."""
        try:
            found = [entry.name for entry in (self.root / path.lstrip("/")).iterdir()]
        except OSError:
            return []
        return sorted(found, key=lambda name: (int(name) if name.isdigit() else 0, name))

    def fields(self, path: str) -> Dict[str, str]:
        """Files of lines "name: value", as /proc/meminfo."""
        lines = (line.partition(":") for line in self.text(path).splitlines())
        return {name.strip(): value.strip() for name, colon, value in lines if colon}

    def meminfo(self, name: str) -> int:
        """As /proc/meminfo has it: kB or pages."""
        value = self.fields("/proc/meminfo").get(name, "0").split()
        return int(value[0]) if value else 0

    def has_capability(self, number: int) -> bool:
        mask = self.fields("/proc/self/status").get("CapEff", "0")
        return bool(int(mask, 16) >> number & 1)


def numbers_of(text: str) -> Set[int]:
    """Of a list as the kernel and numactl write it: "0-3,8" is 0, 1, 2, 3 and 8."""
    found: Set[int] = set()
    for part in text.replace(" ", "").split(","):
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", part)
        if match:
            found.update(range(int(match[1]), int(match[2] or match[1]) + 1))
    return found

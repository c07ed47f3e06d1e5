"""What is to be checked: the settings that the worker would be started with."""

import os
from dataclasses import dataclass, field
from typing import Any, Dict, List

from ..worker_flags import Flags

_MIB = 1 << 20


@dataclass(frozen=True)
class Plan:
    flags: Flags
    environment: Dict[str, str] = field(default_factory=dict)  # the UCX_* and LD_* variables
    numa: Dict[str, Any] = field(default_factory=dict)  # option of numactl -> its value

    @staticmethod
    def of(flags: Flags, numa: Dict[str, Any]) -> "Plan":
        environment = {
            name: value for name, value in os.environ.items() if name.startswith(("UCX_", "LD_"))
        }
        return Plan(flags, environment, {name: value for name, value in numa.items() if value})

    @property
    def worker_address(self) -> str:
        return self.flags.get("worker_address", "")

    @property
    def rdma(self) -> bool:
        return self._is_on("enable_rdma")

    @property
    def huge_pages(self) -> bool:
        return self._is_on("enable_huge_tlb")

    @property
    def all_pages_at_start(self) -> bool:
        """They have to be there at once: a card registers them, or they were asked for."""
        return self.rdma or self._is_on("shared_memory_populate")

    @property
    def memory_bytes(self) -> int:
        return self._number("shared_memory_size_mb", 1024) * _MIB

    @property
    def clients_max(self) -> int:
        return self._number("max_client_num", 200)

    @property
    def etcd_endpoints(self) -> List[str]:
        return [
            each.strip() for each in self.flags.get("etcd_address", "").split(",") if each.strip()
        ]

    def _is_on(self, name: str) -> bool:
        return self.flags.get(name, "").lower() in ("true", "1", "t", "y", "yes")

    def _number(self, name: str, otherwise: int) -> int:
        # What is no number the worker refuses by itself.
        value = self.flags.get(name, "")
        return int(value) if value.isdigit() else otherwise

"""One line of the report."""

import re
from dataclasses import asdict, dataclass
from typing import Dict

OK = "ok"
WARNING = "warning"
FAILURE = "failure"


@dataclass(frozen=True)
class Finding:
    check: str  # what was looked at: "locked memory"
    level: str
    reason: str  # one sentence
    remedy: str = ""  # a command, or what to change

    def as_dict(self) -> Dict[str, str]:
        return asdict(self)


def ok(check: str, reason: str) -> Finding:
    return Finding(check, OK, reason)


def warning(check: str, reason: str, remedy: str = "") -> Finding:
    return Finding(check, WARNING, reason, remedy)


def failure(check: str, reason: str, remedy: str = "") -> Finding:
    return Finding(check, FAILURE, reason, remedy)


def refusal(check: str, words: str) -> Finding:
    """Of the worker: its messages have the command that helps in `such quotes`."""
    command = re.search(r"`([^`]+)`", words)
    return failure(check, words, command.group(1) if command else "")


def size(size_bytes: int) -> str:
    """Whole MiB or GiB, rounded down: "512 MiB", "64 GiB"."""
    if size_bytes < 1 << 20:
        return f"{size_bytes >> 10} KiB"
    if size_bytes < 10 << 30:
        return f"{size_bytes >> 20} MiB"
    return f"{size_bytes >> 30} GiB"


def duration(seconds: float) -> str:
    """Of three digits: "0.0907 ms", "3.31 s"."""
    return f"{seconds:.3g} s" if seconds >= 1 else f"{seconds * 1000:.3g} ms"

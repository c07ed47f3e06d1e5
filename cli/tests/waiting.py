"""Waiting for processes that a test started."""

import time
from pathlib import Path


def eventually(condition, deadline_s=10.0):
    end = time.monotonic() + deadline_s
    while not condition():
        assert time.monotonic() < end, "the condition did not come true in time"
        time.sleep(0.005)


def alive(pid: int) -> bool:
    """False for a process that has ended, be it waited for or not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False

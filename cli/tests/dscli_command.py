"""dscli as tests run it."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace


class Dscli:
    """Runs dscli in a folder of its own; stops the workers it started."""

    def __init__(self, folder: Path, environment: dict):
        self.folder = folder
        self._environment = {**os.environ, **environment}
        self._pids = []

    def popen(self, *arguments: str) -> subprocess.Popen:
        # A suite that runs in the background of a shell has SIGINT ignored, and its children inherit that.
        return subprocess.Popen([sys.executable, "-m", "yr.datasystem.cli", *arguments], text=True,
                                cwd=self.folder, env=self._environment, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE,
                                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))

    def __call__(self, *arguments: str) -> SimpleNamespace:
        process = self.popen(*arguments)
        out, err = process.communicate(timeout=60)
        started = [line for line in out.splitlines() if "[  OK  ] Start" in line]
        pid = int(started[0].split()[-1]) if started else None
        if pid:
            self._pids.append(pid)
        return SimpleNamespace(code=process.returncode, out=out, err=err, pid=pid)

    def close(self) -> None:
        for pid in self._pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

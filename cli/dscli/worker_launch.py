"""Starts one detached worker, waits until it is ready, and leaves nothing behind if it is not.

The worker's standard output and error go to a file in its log folder, not to a pipe: the worker
outlives dscli, and what it says when it crashes later must still land somewhere.
"""

import os
import signal
import subprocess
import time
from contextlib import suppress
from typing import Callable, Dict, List

from .console import CommandError
from .package import WORKER_NAME

_POLL_S = 0.002
# Between SIGTERM and SIGKILL for a worker that did not become ready: time to remove its sockets.
_GRACE_S = 1.0
_OUTPUT_SHOWN_MAX = 16384


class LaunchFailed(Exception):
    """`exit_code` is None if the worker was still running, and has been stopped, at the time-out."""

    def __init__(self, exit_code: "int | None", output: str):
        super().__init__(output)
        self.exit_code = exit_code
        self.output = output

    @property
    def reason(self) -> str:
        """The worker's last line that is not a remark in brackets: that is where it names the cause."""
        lines = [line.strip() for line in self.output.splitlines()]
        lines = [line for line in lines if line and not line.startswith("(")]
        if lines:
            return lines[-1]
        return "it is not ready in time" if self.exit_code is None else "it gave no reason"


class WorkerLaunch:
    def __init__(self, command: List[str], flags: Dict[str, str]):
        self.command = command
        self._ready_path = flags["ready_check_path"]
        self._files = [flags[f] for f in ("ready_check_path", "health_check_path") if flags.get(f)]
        self.log_dir = flags.get("log_dir") or os.path.expanduser("~/datasystem/logs")
        self._output_path = os.path.join(
            self.log_dir, f"{flags.get('log_filename') or WORKER_NAME}.out")
        folders = [self.log_dir, *(os.path.dirname(f) for f in self._files)]
        folders += [v for k, v in flags.items() if k.endswith("_dir") and os.path.isabs(v)]
        self._fresh_folders = _missing(folders)

    def run(self, timeout_s: float, on_start: Callable[[int], None]) -> int:
        """The process id of a worker that is ready; `on_start` gets it first. Raises LaunchFailed."""
        with self._open_output() as output:
            start_of_output = output.tell()
            with suppress(FileNotFoundError):
                os.unlink(self._ready_path)
            # LD_LIBRARY_PATH stays the user's: the worker finds its libraries by RPATH, and programs
            # that inherit the variable must not be given ours.
            process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=output,
                                       stderr=subprocess.STDOUT, start_new_session=True)
            try:
                on_start(process.pid)
                exit_code = self._wait(process, timeout_s)
                if exit_code is None and os.path.exists(self._ready_path):
                    return process.pid
            except BaseException:  # Ctrl-C too
                _end(process)
                self._clean_up(start_of_output)
                raise
            _end(process)
            said = self._clean_up(start_of_output)
        raise LaunchFailed(exit_code, said)

    def _open_output(self):
        try:
            os.makedirs(self.log_dir, exist_ok=True)
            output = open(self._output_path, "ab")
        except OSError as reason:
            raise CommandError(f"cannot write to the log directory {self.log_dir}: {reason.strerror}; "
                               "choose another with --log_dir or -d") from reason
        output.seek(0, os.SEEK_END)
        return output

    def _wait(self, process: subprocess.Popen, timeout_s: float) -> "int | None":
        """The exit code of a worker that ended; None when it is ready or the time is over."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            exit_code = process.poll()
            if exit_code is not None or os.path.exists(self._ready_path):
                return exit_code
            time.sleep(_POLL_S)
        return process.poll()

    def _clean_up(self, start_of_output: int) -> str:
        """Removes what this start left; returns what the worker said. Its logs stay as evidence."""
        with open(self._output_path, "r+b") as file:
            file.seek(start_of_output)
            said = file.read()[-_OUTPUT_SHOWN_MAX:].decode(errors="replace").strip()
            file.truncate(start_of_output)
        leftovers = self._files + ([self._output_path] if start_of_output == 0 else [])
        for path in leftovers:
            with suppress(OSError):
                os.unlink(path)
        for folder in self._fresh_folders:
            with suppress(OSError):  # not empty, or never made
                os.rmdir(folder)
        return said


def _missing(folders: List[str]) -> List[str]:
    """Those of `folders` and their parents that do not exist yet, innermost first."""
    missing = set()
    for folder in folders:
        while folder and not os.path.exists(folder):
            missing.add(folder)
            folder = os.path.dirname(folder)
    return sorted(missing, key=len, reverse=True)


def _end(process: subprocess.Popen) -> None:
    for signal_number, patience_s in ((signal.SIGTERM, _GRACE_S), (signal.SIGKILL, None)):
        if process.poll() is None:
            process.send_signal(signal_number)
            with suppress(subprocess.TimeoutExpired):
                process.wait(patience_s)

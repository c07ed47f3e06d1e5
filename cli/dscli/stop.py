"""dscli stop: ends the worker with a given address, gracefully if it can."""

import argparse
import ctypes
import os
import select
import signal
from contextlib import closing

from . import console, worker_flags
from .console import CommandError
from .processes import RunningWorker, read_worker, running_workers
from .validation import check_address

SUMMARY = "stop a worker of this machine"
EXAMPLES = """\
examples:
  dscli stop --worker_address 127.0.0.1:31501
  dscli stop -f worker_config.json

The worker leaves the cluster and ends; objects that only it held are gone. After 180 seconds it is killed."""

_GRACE_S = 180


def add_arguments(parser: argparse.ArgumentParser) -> None:
    target = parser.add_mutually_exclusive_group(required=True)
    target.add_argument("-w", "--worker_address", metavar="ADDRESS", help="the worker's ip:port")
    target.add_argument("-f", "--worker_config_path", metavar="FILE",
                        help="take the address from this worker_config.json")


def run(args: argparse.Namespace) -> int:
    address = args.worker_address or worker_flags.worker_address_of_file(args.worker_config_path)
    check_address("worker_address", address)
    worker = _find(address)
    if _terminate(worker):
        console.info(f"{console.OK} Stop worker service @ {address} normally, PID: {worker.pid}")
    else:
        console.info(f"{console.OK} Force stop worker service @ {address}, PID: {worker.pid}")
    return 0


def _find(address: str) -> RunningWorker:
    found = [worker for worker in running_workers() if worker.address == address]
    if not found:
        others = ", ".join(sorted(w.address for w in running_workers() if w.address)) or "none"
        raise CommandError(f"No matching process found for worker_address={address} "
                           f"(workers running here: {others})")
    if len(found) > 1:
        pids = ", ".join(str(worker.pid) for worker in found)
        raise CommandError(f"Multiple processes match worker_address={address}: PIDs {pids}; "
                           "end the right one with kill")
    return found[0]


def _terminate(worker: RunningWorker) -> bool:
    """Returns when the process is gone: True if by itself, False if it had to be killed."""
    try:
        # A descriptor, not the number: the number may belong to another process a moment later.
        with closing(_PidFd(worker.pid)) as process:
            if read_worker(worker.pid) != worker:
                return True
            process.send(signal.SIGTERM)
            if process.gone_within(_GRACE_S):
                return True
            process.send(signal.SIGKILL)
            if not process.gone_within(_GRACE_S):
                raise CommandError(f"PID {worker.pid} does not end even after SIGKILL")
            return False
    except ProcessLookupError:
        return True
    except PermissionError:
        raise CommandError(f"PID {worker.pid} belongs to another user; run dscli as that user or root") from None


class _PidFd:
    """A descriptor of a process. By system call: Python wraps these two only since 3.9."""

    # The same on every architecture that Linux got since 2019 and on x86-64 and arm64.
    _PIDFD_SEND_SIGNAL = 424
    _PIDFD_OPEN = 434

    def __init__(self, pid: int):
        self._fd = _system_call(self._PIDFD_OPEN, pid, 0)

    def send(self, signal_number: int) -> None:
        _system_call(self._PIDFD_SEND_SIGNAL, self._fd, signal_number, 0, 0)

    def gone_within(self, seconds: float) -> bool:
        poller = select.poll()
        poller.register(self._fd, select.POLLIN)
        return bool(poller.poll(seconds * 1000))

    def close(self) -> None:
        os.close(self._fd)


def _system_call(number: int, *arguments: int) -> int:
    """Its result; raises the OSError of its errno, such as ProcessLookupError."""
    libc = ctypes.CDLL(None, use_errno=True)
    # As long each: syscall() reads whole registers.
    result = libc.syscall(*(ctypes.c_long(argument) for argument in (number, *arguments)))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result

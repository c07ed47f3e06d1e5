"""dscli start: one worker on this machine, detached; returns as soon as it is ready."""

import argparse
import os
import shlex
import shutil
from typing import List

from . import console, numa, package, worker_flags
from .console import CommandError
from .processes import RunningWorker, running_workers, shares_our_network
from .validation import check_address, checked_path, seconds
from .worker_launch import LaunchFailed, WorkerLaunch

SUMMARY = "start a worker on this machine and wait until it is ready"
EXAMPLES = """\
examples:
  a single-node cluster, nothing else needed:
    dscli start -w --worker_address 127.0.0.1:31501
  a node of a cluster:
    dscli start -w --worker_address 10.0.0.7:31501 --etcd_address 10.0.0.1:2379
  with RDMA, 64 GiB, on NUMA node 0 (dscli's own options stand before -w):
    dscli start --cpunodebind 0 --localalloc -w --worker_address 10.0.0.7:31501 \\
        --etcd_address 10.0.0.1:2379 --enable_rdma true --shared_memory_size_mb 65536
  from a file, files of the worker under /data/cache:
    dscli start -d /data/cache -f worker_config.json

Relative paths of the worker (logs, sockets, probe files) lie in ./datasystem, or with -d in
DIR/datasystem; those of a second worker in the same folder lie in IP_PORT/datasystem.
The worker's flags: datasystem_worker --help."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("-w", "--worker_args", nargs=argparse.REMAINDER, metavar="--FLAG VALUE",
                        help="worker flags; must be last, the whole rest of the line is theirs")
    source.add_argument("-f", "--worker_config_path", metavar="FILE",
                        help="worker flags from a worker_config.json")
    parser.add_argument("-d", "--datasystem_home_dir", metavar="DIR",
                        help="folder for the worker's files instead of the current one")
    parser.add_argument("-t", "--timeout", type=seconds, default=90, metavar="SECONDS",
                        help="how long to wait for readiness (default 90)")
    parser.add_argument("--enable_ums", action="store_true", help="run the worker under ums_run")
    numa.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    binary = package.worker_binary()
    shipped = package.shipped_defaults()
    if args.worker_args is not None:
        numa.refuse_after_worker_args(args.worker_args)
        user = worker_flags.parse_tokens(args.worker_args)
    else:
        user = worker_flags.load_file(args.worker_config_path, shipped, binary)
        changed = {name: value for name, value in user.items() if value != shipped.get(name)}
        for name in changed:
            console.info(f"Modifed config - {name}")
        user = changed
    prefix = _command_prefix(args)

    address = user.get("worker_address") or shipped.get("worker_address", "")
    check_address("worker_address", address)
    workers = [worker for worker in running_workers() if shares_our_network(worker.pid)]
    _refuse_running(address, workers)
    flags = _with_own_files(args, user, shipped, address, workers)
    if not flags.get("etcd_address"):
        console.info("No etcd_address given: this worker is a single-node cluster")
    launch = WorkerLaunch(prefix + [binary] + [f"--{k}={v}" for k, v in flags.items()], flags)
    if prefix:
        console.info(f"Command: {shlex.join(launch.command)}")
    console.info(f"Log directory configured at: {launch.log_dir}")
    return _launch(launch, address, args.timeout)


def _launch(launch: WorkerLaunch, address: str, timeout_s: float) -> int:
    try:
        pid = launch.run(timeout_s, on_start=lambda pid: console.info(
            f"Starting worker service with PID: {pid}"))
    except LaunchFailed as failure:
        if failure.exit_code is None:
            console.error(f"{console.FAILED} Worker service is not ready within {timeout_s:g} seconds")
            if failure.output:
                console.error(f"output: {failure.output}")
        else:
            console.error(f"{console.FAILED} Worker exited with code {failure.exit_code}\n"
                          f" output: {failure.output}")
        console.error(f"{console.FAILED} Start worker service @ {address} failed: {failure.reason}")
        raise CommandError("The worker service exited abnormally") from failure
    console.info(f"{console.OK} Start worker service @ {address} success, PID: {pid}")
    return 0


def _refuse_running(address: str, workers: List[RunningWorker]) -> None:
    for worker in workers:
        if worker.address == address:
            raise CommandError(f"a worker @ {address} runs already, PID: {worker.pid}; "
                               f"end it with: dscli stop -w {address}")


def _with_own_files(args: argparse.Namespace, user: worker_flags.Flags, shipped: worker_flags.Flags,
                    address: str, workers: List[RunningWorker]) -> worker_flags.Flags:
    """All flags, with files that no running worker uses.

    The start removes an old ready file, and two workers must not write the same logs. So the second
    worker that is started in one folder gets a folder of its own in there, named by its address.
    """
    home = checked_path(args.datasystem_home_dir) if args.datasystem_home_dir else os.getcwd()
    flags = worker_flags.resolve(user, shipped, home)
    if _user_of(flags, workers):
        own = address.replace("[", "").replace("]", "").replace(":", "_")
        flags = worker_flags.resolve(user, shipped, os.path.join(home, own))
    if not flags.get("ready_check_path"):
        raise CommandError("ready_check_path must not be empty: dscli learns from that file that the "
                           "worker is ready")
    flags["ready_check_path"] = checked_path(flags["ready_check_path"])
    other = _user_of(flags, workers)
    if other:
        raise CommandError(f"ready_check_path {flags['ready_check_path']} belongs to the running worker "
                           f"@ {other.address}, PID: {other.pid}; give another path or -d")
    return flags


def _user_of(flags: worker_flags.Flags, workers: List[RunningWorker]) -> "RunningWorker | None":
    path = flags.get("ready_check_path")
    return next((w for w in workers if path and w.flags.get("ready_check_path") == path), None)


def _command_prefix(args: argparse.Namespace) -> List[str]:
    prefix = numa.numactl_prefix(args)
    if args.enable_ums:
        ums_run = shutil.which("ums_run")
        if not ums_run:
            raise CommandError("--enable_ums needs ums_run, which is not on PATH")
        prefix = [ums_run, *prefix]
    return prefix

"""dscli status: what a worker says about itself."""

import argparse
import json

from ..lib.libds_client_py import worker_report
from . import report_table, worker_flags
from .console import CommandError
from .processes import running_workers
from .validation import check_address, seconds, split_address

SUMMARY = "show what a worker is doing: version, cluster, memory, peers and their lanes"
EXAMPLES = """\
examples:
  the only worker of this machine:
    dscli status
  any worker that can be reached:
    dscli status -w 10.0.0.7:31501
  for scripts:
    dscli status --json | jq .peers

The fields are explained in docs/status.md."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    target = parser.add_mutually_exclusive_group()
    target.add_argument("-w", "--worker_address", metavar="ADDRESS",
                        help="the worker's ip:port (default: the only worker of this machine)")
    target.add_argument("-f", "--worker_config_path", metavar="FILE",
                        help="take the address from this worker_config.json")
    parser.add_argument("--json", action="store_true", help="the worker's own JSON document")
    parser.add_argument("-t", "--timeout", type=seconds, default=5, metavar="SECONDS",
                        help="how long to wait for the answer (default 5)")


def run(args: argparse.Namespace) -> int:
    address = address_of(args)
    check_address("worker_address", address)
    document = _fetch(address, int(args.timeout * 1000))
    if args.json:
        print(document)
        return 0
    try:
        print(report_table.render(json.loads(document)))
    except ValueError as reason:
        raise CommandError(f"the worker @ {address} sent no JSON: {reason}; is it another version?") from reason
    return 0


def address_of(args: argparse.Namespace) -> str:
    """The worker that was named, or the only one of this machine."""
    if args.worker_address:
        return args.worker_address
    if args.worker_config_path:
        return worker_flags.worker_address_of_file(args.worker_config_path)
    addresses = sorted(worker.address for worker in running_workers() if worker.address)
    if not addresses:
        raise CommandError("no worker runs on this machine; start one with dscli start, "
                           "or name one with -w ip:port")
    if len(addresses) > 1:
        raise CommandError(f"several workers run on this machine: {', '.join(addresses)}; "
                           "choose one with -w")
    return addresses[0]


def _fetch(address: str, timeout_ms: int) -> str:
    try:
        return worker_report(*split_address(address), timeout_ms)
    except RuntimeError as reason:
        raise CommandError(str(reason)) from reason

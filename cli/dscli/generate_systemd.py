"""dscli generate_systemd: a systemd unit that runs the worker of this installation."""

import argparse
import re

from . import console, package, systemd_unit
from .console import CommandError
from .output_folder import write_files

SUMMARY = "write a systemd unit for a worker, and the file with its settings"
EXAMPLES = """\
examples:
  print the unit
    dscli generate_systemd
  write datasystem-worker.service and datasystem-worker.env, for NUMA node 1
    dscli generate_systemd -o /tmp --user datasystem --numa_node 1

The head of the unit says how to install it. The limits suit RDMA: none of locked memory."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output_path", metavar="DIR",
                        help="an existing folder (default: print the unit)")
    parser.add_argument("--user", default="datasystem", metavar="NAME",
                        help="the user to run as (default datasystem)")
    parser.add_argument("--numa_node", type=_node, metavar="NODE",
                        help="memory and CPUs of this NUMA node only")


def run(args: argparse.Namespace) -> int:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.-]*", args.user):
        raise CommandError(f"--user {args.user!r} is not a user name")
    binary = package.worker_binary()
    if not re.fullmatch(r"[A-Za-z0-9/_.+@:,=-]+", binary):
        raise CommandError(
            f"systemd cannot run {binary!r}: install the wheel in a folder whose path has "
            "only letters, digits and / _ . + @ : , = -")
    if args.user != "root" and re.match(r"/(home|root)/", binary):
        console.warning(
            f"{binary} lies in a home folder, which the user {args.user} may not be able to "
            "enter; better install the wheel below /opt")
    files = systemd_unit.files(binary, args.user, args.numa_node)
    if args.output_path is None:
        print(files[systemd_unit.UNIT_NAME], end="")
        return 0
    for path in write_files(args.output_path, files):
        console.info(f"Generated {path}")
    console.info("The head of the unit says how to install both")
    return 0


def _node(text: str) -> int:
    value = int(text)
    if not 0 <= value <= 1023:
        raise argparse.ArgumentTypeError(f"{text} is no NUMA node between 0 and 1023")
    return value

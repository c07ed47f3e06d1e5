"""The command: gathers the settings, runs the checks, prints the report."""

import argparse
import json
import os
import shutil
import sys
import textwrap
from typing import Iterator, List

from .. import console, numa, package, status, worker_flags
from ..console import CommandError
from ..validation import check_address
from . import asking, etcd, limits, memory, peer, placement, rdma, ucx
from .finding import FAILURE, OK, WARNING, Finding
from .plan import Plan
from .system import System

SUMMARY = "check before a start what would stop or slow down a worker here"
EXAMPLES = """\
examples:
  would a worker start here, as a single node?
    dscli doctor --worker_address 127.0.0.1:31501
  with RDMA, 64 GiB of huge pages, in a cluster:
    dscli doctor --worker_address 10.0.0.7:31501 --etcd_address 10.0.0.1:2379 --enable_rdma true \\
        --shared_memory_size_mb 65536 --enable_huge_tlb true
  the line of a start, with doctor in place of start (NUMA options before -w):
    dscli doctor --cpunodebind 0 --localalloc -w --worker_address 10.0.0.7:31501 --enable_rdma true
  two workers run: do values move between them, by which lane, how fast?
    dscli doctor --peer 10.0.0.8:31501
  for scripts:
    dscli doctor -f worker_config.json --json | jq '.checks[] | select(.level == "failure")'

Each line is ok, a warning (it works, but not well) or a failure (a start will not work), with the
reason and the command that mends it. Exit code 0: nothing failed. 1: something did. UCX_* variables
count, as for a start. Nothing is left behind: the worker's port is taken for a moment, and UCX
connects to itself. What each check means: docs/doctor.md."""

# Of the worker, which have an option of their own here; -w takes all of them.
_FLAGS = (
    "worker_address",
    "etcd_address",
    "enable_rdma",
    "shared_memory_size_mb",
    "enable_huge_tlb",
)
_COLOURS = {OK: "32", WARNING: "33", FAILURE: "31"}
_WIDTH = 120


def add_arguments(parser: argparse.ArgumentParser) -> None:
    for name in _FLAGS:
        parser.add_argument(f"--{name}", metavar="VALUE", help="as the worker's flag")
    parser.add_argument(
        "-f", "--worker_config_path", metavar="FILE", help="worker flags from a worker_config.json"
    )
    parser.add_argument(
        "--peer",
        metavar="ADDRESS",
        help="instead: move values between a running worker of this machine and this one",
    )
    parser.add_argument("--json", action="store_true", help="one JSON document instead of lines")
    parser.add_argument(
        "-w",
        "--worker_args",
        nargs=argparse.REMAINDER,
        metavar="--FLAG VALUE",
        help="any worker flags; must be last, the whole rest of the line is theirs",
    )
    numa.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    if args.peer:
        return _print(_to_peer(args), args.json, "Values move", "values do not move as they should")
    prefix: List[str] = []
    if shutil.which("numactl"):  # else that is what is wrong
        prefix = numa.numactl_prefix(args)
    plan = Plan.of(_flags(args), numa.chosen(args))
    findings = check(plan, System(), prefix)
    return _print(findings, args.json, "A start can work", "a start will not work as it is")


def _print(findings: Iterator[Finding], as_json: bool, good: str, bad: str) -> int:
    """Each as soon as it is found: some take seconds."""
    found: List[Finding] = []
    for finding in findings:
        found.append(finding)
        if not as_json:
            print(_line(finding), flush=True)
    count = {level: len([f for f in found if f.level == level]) for level in (OK, WARNING, FAILURE)}
    if as_json:
        document = {
            "passed": count[FAILURE] == 0,
            "warnings": count[WARNING],
            "failures": count[FAILURE],
            "checks": [finding.as_dict() for finding in found],
        }
        print(json.dumps(document, indent=2, ensure_ascii=False))
    if count[FAILURE]:
        raise CommandError(f"{bad}: {_counted(count)}")
    if not as_json:
        console.info(f"{console.OK} {good}: {_counted(count)}")
    return 0


def check(plan: Plan, system: System, prefix: List[str]) -> Iterator[Finding]:
    answer = asking.ask(plan.flags, prefix)
    yield from asking.check(plan, answer)
    yield from ucx.check(plan, answer)
    yield from rdma.check(plan, system, answer)
    yield from limits.check(plan, system, answer)
    yield from memory.check(plan, system, answer)
    yield from placement.check(plan, system, answer)
    yield from etcd.check(plan, answer)


def _to_peer(args: argparse.Namespace) -> Iterator[Finding]:
    if args.worker_args is not None:
        raise CommandError("--peer asks workers that run: name ours by --worker_address or -f")
    local = status.address_of(args)
    check_address("worker_address", local)
    check_address("peer", args.peer)
    return peer.check(local, args.peer, System())


def _flags(args: argparse.Namespace) -> worker_flags.Flags:
    """What a start would use: the file, -w over it, the options over both, shipped defaults."""
    given: worker_flags.Flags = {}
    if args.worker_config_path:
        given.update(worker_flags.load_file(
            args.worker_config_path, package.shipped_defaults(), package.worker_binary()))
    if args.worker_args is not None:
        numa.refuse_after_worker_args(args.worker_args)
        if "--json" in args.worker_args:
            raise CommandError("--json must come before -w/--worker_args")
        given.update(worker_flags.parse_tokens(args.worker_args))
    options = {name: getattr(args, name) for name in _FLAGS if getattr(args, name) is not None}
    if options:
        given.update(worker_flags.checked(options))
    return worker_flags.resolve(given, package.shipped_defaults(), os.getcwd())


def _line(finding: Finding) -> str:
    level = console.paint(f"{finding.level:<7}", _COLOURS[finding.level], sys.stdout)
    margin = " " * 24
    # Words longer than a line are paths and commands: to be copied whole.
    lines = textwrap.wrap(
        finding.reason, _WIDTH - len(margin), break_long_words=False, break_on_hyphens=False
    )
    if finding.remedy:
        lines += [f"remedy: {finding.remedy}"]
    return f"{level}  {finding.check:<13}  " + f"\n{margin}".join(lines)


def _counted(count: "dict[str, int]") -> str:
    def of(number: int, word: str) -> str:
        return f"{number} {word}{'' if number == 1 else 's'}"

    return f"{of(count[FAILURE], 'failure')}, {of(count[WARNING], 'warning')}, {count[OK]} ok"

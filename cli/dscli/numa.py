"""NUMA placement of `dscli start` and `up`: options that become a numactl command in front of the worker."""

import argparse
import shutil
import subprocess
from typing import Any, Dict, List

from .console import CommandError
from .validation import check_argument

# long name, short name, metavar (None: a switch), help
_OPTIONS = (
    ("cpunodebind", "N", "NODES", "run only on CPUs of these NUMA nodes"),
    ("physcpubind", "C", "CPUS", "run only on these CPUs"),
    ("interleave", "i", "NODES", "spread memory over these nodes"),
    ("preferred", "p", "NODE", "take memory from this node while it has any"),
    ("membind", "m", "NODES", "take memory only from these nodes; fail when they are full"),
    ("localalloc", "l", None, "take memory from the node of the running CPU"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("NUMA placement (through numactl; of dscli start: before -w)")
    for name, short, metavar, text in _OPTIONS:
        if metavar:
            group.add_argument(f"-{short}", f"--{name}", metavar=metavar, help=text)
        else:
            group.add_argument(f"-{short}", f"--{name}", action="store_true", help=text)


def refuse_after_worker_args(tokens: List[str]) -> None:
    """NUMA options behind -w would be taken for worker flags: say so instead."""
    spellings = {f"--{name}" for name, *_ in _OPTIONS} | {f"-{short}" for _, short, *_ in _OPTIONS}
    misplaced = [token for token in tokens if token.split("=")[0] in spellings]
    if misplaced:
        raise CommandError(
            f"NUMA options must come before -w/--worker_args: {', '.join(misplaced)}")


def chosen(args: argparse.Namespace) -> Dict[str, Any]:
    """The options that were given, by their long names."""
    return {name: getattr(args, name) for name, *_ in _OPTIONS if getattr(args, name)}


def options(args: argparse.Namespace) -> List[str]:
    """What was given, as "--name=value": numactl takes it, and dscli start too."""
    given = []
    for name, _, metavar, _ in _OPTIONS:
        value = getattr(args, name)
        if value and metavar:
            check_argument(f"--{name}", value)
            given.append(f"--{name}={value}")
        elif value:
            given.append(f"--{name}")
    return given


def numactl_prefix(args: argparse.Namespace) -> List[str]:
    """["numactl", "--cpunodebind=0", ...], or [] if no NUMA option was given."""
    given = options(args)
    if not given:
        return []
    numactl = shutil.which("numactl")
    if not numactl:
        raise CommandError(
            "NUMA options need numactl, which is not on PATH; install the package numactl")
    _try(numactl, given)
    return [numactl, *given]


def _try(numactl: str, options: List[str]) -> None:
    """Before the worker: numactl answers what it does not like with two screens of help."""
    tried = subprocess.run([numactl, *options, "true"], stdin=subprocess.DEVNULL,
                           capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        lines = tried.stderr.partition("usage:")[0].replace("libnuma: Warning: ", "").splitlines()
        said = "; ".join(line for line in lines if line.strip()) or "without a reason"
        raise CommandError(f"numactl refuses {' '.join(options)}: {said}; "
                           "`numactl --hardware` lists nodes and CPUs")

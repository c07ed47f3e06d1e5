"""dscli runscript: runs a local bash script on every node of a cluster file."""

import argparse

from . import cluster_file, console, remote
from .console import CommandError
from .validation import checked_path

SUMMARY = "run a script on every node of a cluster file, over ssh"
FAILURE = "Run script"
EXAMPLES = """\
examples:
  dscli runscript -f cluster_config.json ./set_huge_pages.sh

The script is copied to the login's home folder, run by bash there, and removed. What it prints is
shown for each node. A node may take 300 seconds."""

_SIZE_MAX = 16 << 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    remote.add_arguments(parser)
    parser.add_argument("script", metavar="SCRIPT", help="a bash script of this machine")


def run(args: argparse.Namespace) -> int:
    cluster = cluster_file.load(args.cluster_config_path)
    path = checked_path(args.script)
    try:
        with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
            script = file.read(_SIZE_MAX + 1)
    except OSError as reason:
        raise CommandError(f"cannot read {path}: {reason.strerror}") from reason
    if len(script) > _SIZE_MAX:
        raise CommandError(f"{path} is larger than {_SIZE_MAX >> 20} MiB: that is no script")
    nodes = remote.Nodes(cluster, args)

    def execute(node: str) -> str:
        said = nodes.run(node, "script", script, 'exec bash "$file"')
        output = "".join(f"\n  {line}" for line in said.splitlines())
        return f"Script executed successfully on {node}.{output}"

    nodes.run_on_all(execute)
    return 0

"""dscli collect_log: copies a folder of every node of a cluster file to this machine."""

import argparse
import os
import time
from contextlib import suppress

from . import cluster_file, remote
from .console import CommandError
from .output_folder import new_folder
from .validation import check_argument, checked_path

SUMMARY = "copy the log folder of every node of a cluster file to this machine"
FAILURE = "Collect log"
EXAMPLES = """\
examples:
  dscli collect_log -f cluster_config.json -d /data/cache/datasystem/logs
  below the login's home folder:
    dscli collect_log -f cluster_config.json -d datasystem/logs -o /tmp/logs

The logs of a node come to OUTPUT/NODE/. A node whose copy breaks off leaves nothing."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    remote.add_arguments(parser)
    parser.add_argument("-d", "--log_path", metavar="DIR", required=True,
                        help="the folder on each node (dscli start prints it)")
    parser.add_argument("-o", "--output_path", metavar="DIR",
                        help="local folder (default log_<UTC date_time>)")


def run(args: argparse.Namespace) -> int:
    cluster = cluster_file.load(args.cluster_config_path)
    # scp starts in the home folder of the login.
    log_path = args.log_path[2:] if args.log_path.startswith("~/") else args.log_path
    check_argument("--log_path", log_path)
    log_path = os.path.normpath(log_path)
    if log_path.startswith("/"):
        checked_path(log_path)
    elif log_path.startswith((".", "~", "-")):
        raise CommandError(f"--log_path {args.log_path}: give an absolute path, or one below the "
                           "login's home folder")
    output = checked_path(args.output_path or time.strftime("log_%Y%m%d_%H%M%S", time.gmtime()))
    fresh = not os.path.exists(output)
    try:
        os.makedirs(output, exist_ok=True)
    except OSError as reason:
        raise CommandError(
            f"cannot make {output}: {reason.strerror}; choose another folder with -o") from reason
    nodes = remote.Nodes(cluster, args)

    def collect(node: str) -> str:
        with new_folder(os.path.join(output, node)) as folder:
            nodes.fetch(node, log_path, folder)
        return f"Collect logs from {node} successfully."

    try:
        nodes.run_on_all(collect)
    finally:
        if fresh:
            with suppress(OSError):  # not empty: some nodes succeeded
                os.rmdir(output)
    return 0

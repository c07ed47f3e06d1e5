"""dscli up: a worker on every node of a cluster file, over ssh."""

import argparse
import json
import shlex

from . import cluster_file, console, numa, package, remote, worker_flags
from .console import CommandError
from .validation import check_argument, seconds

SUMMARY = "start a worker on every node of a cluster file, over ssh"
FAILURE = "Up cluster"
EXAMPLES = """\
examples:
  once: make both files, enter the nodes, the key and etcd_address
    dscli generate_config -o .
  then
    dscli up -f cluster_config.json
    dscli up -f cluster_config.json -d /data/cache --cpunodebind 0 --localalloc

dscli of the same version must be on PATH in a login shell of every node. Relative paths of the
worker lie below the login's home folder there, or below -d. A node that fails does not stop the
others."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    remote.add_arguments(parser)
    parser.add_argument("-d", "--datasystem_home_dir", metavar="DIR",
                        help="folder on the nodes for the workers' files")
    parser.add_argument("-t", "--timeout", type=seconds, default=90, metavar="SECONDS",
                        help="how long each node waits for readiness (default 90)")
    parser.add_argument("--enable_ums", action="store_true", help="run the workers under ums_run")
    numa.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    cluster = cluster_file.load(args.cluster_config_path)
    flags = worker_flags.load_file(cluster.worker_config_path, package.shipped_defaults(),
                                   package.worker_binary())
    if len(cluster.nodes) > 1 and not flags.get("etcd_address"):
        raise CommandError(
            f"{cluster.worker_config_path} has no etcd_address: the workers would be "
            f"{len(cluster.nodes)} clusters of one node each")
    options = [f"--timeout={args.timeout:g}", *numa.options(args)]
    if args.datasystem_home_dir:
        check_argument("--datasystem_home_dir", args.datasystem_home_dir)
        options.append(f"--datasystem_home_dir={args.datasystem_home_dir}")
    if args.enable_ums:
        options.append("--enable_ums")
    command = f'exec dscli start {shlex.join(options)} -f "$file"'
    nodes = remote.Nodes(cluster, args)

    def start(node: str) -> str:
        own = {**flags, "worker_address": cluster.address(node)}
        document = json.dumps({name: {"value": value} for name, value in own.items()})
        nodes.run(node, "worker_config", document, command, max(remote.LIMIT_S, args.timeout + 60))
        return f"Start worker service @ {cluster.address(node)} success."

    console.info(f"Starting workers on {len(cluster.nodes)} nodes")
    nodes.run_on_all(start)
    return 0

"""dscli down: stops the worker of every node of a cluster file, over ssh."""

import argparse

from . import cluster_file, console, remote

SUMMARY = "stop the worker of every node of a cluster file, over ssh"
FAILURE = "Down cluster"
EXAMPLES = """\
examples:
  dscli down -f cluster_config.json

Returns when every worker has ended; it may take 180 seconds for a worker to end by itself."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    remote.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    cluster = cluster_file.load(args.cluster_config_path)
    nodes = remote.Nodes(cluster, args)

    def stop(node: str) -> str:
        address = cluster.address(node)
        said = nodes.run(node, "stop", "", f"exec dscli stop -w '{address}'")
        killed = " It did not end by itself and was killed." if "Force stop" in said else ""
        return f"Stop worker service @ {address} success.{killed}"

    console.info(f"Stopping workers on {len(cluster.nodes)} nodes")
    nodes.run_on_all(stop)
    return 0

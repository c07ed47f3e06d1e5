"""dscli generate_config: the two configuration files, filled with the defaults."""

import argparse
import json

from . import cluster_file, console, package
from .output_folder import write_files

SUMMARY = "write cluster_config.json and worker_config.json with the defaults"
EXAMPLES = """\
examples:
  dscli generate_config -o .
  then edit worker_config.json, and
    dscli start -f worker_config.json         on one machine
    dscli up -f cluster_config.json           on the nodes that cluster_config.json lists

Files that exist are not overwritten."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output_path", metavar="DIR", default=".",
                        help="an existing folder (default: the current one)")


def run(args: argparse.Namespace) -> int:
    cluster, worker = write_files(args.output_path, {
        "cluster_config.json": json.dumps(cluster_file.DEFAULTS, indent=2) + "\n",
        "worker_config.json": package.shipped_config()})
    console.info(f"Cluster configuration file has been generated to {cluster}")
    console.info(f"Worker configuration file has been generated to {worker}")
    console.info("Configuration generation completed successfully")
    return 0

"""Entry point: parses the command line, runs one command, turns its outcome into an exit code."""

import argparse
import os
import signal
import sys
from typing import List, Optional

from . import (collect_log, completion, console, doctor, down, generate_config,
               generate_cpp_template, generate_helm_chart, generate_systemd, package,
               runscript, start, status, stop, up)

_COMMANDS = {
    "start": start,
    "stop": stop,
    "status": status,
    "doctor": doctor,
    "up": up,
    "down": down,
    "runscript": runscript,
    "collect_log": collect_log,
    "generate_config": generate_config,
    "generate_cpp_template": generate_cpp_template,
    "generate_helm_chart": generate_helm_chart,
    "generate_systemd": generate_systemd,
    "completion": completion,
}

_EXAMPLES = """\
examples:
  dscli doctor --worker_address 127.0.0.1:31501       would a worker start on this machine?
  dscli start -w --worker_address 127.0.0.1:31501     start a worker on this machine
  dscli status                                        what it is doing
  dscli stop --worker_address 127.0.0.1:31501         stop it
  dscli generate_config -o .                          files to edit, for start -f and for up
  dscli up -f cluster_config.json                     a worker on every node, over ssh
  dscli generate_helm_chart -o /tmp                   write the Helm chart for Kubernetes
  dscli help start                                    all about one command"""


def main(argv: Optional[List[str]] = None) -> int:
    # Before anything is created: logs, sockets and probe files are the user's alone.
    os.umask(0o077)
    # As Ctrl-C: a start that is cut short cleans up behind itself.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if sys.version_info < (3, 8):
        console.error("dscli needs Python 3.8 or newer")
        return 1
    parser, commands = parsers()
    args = parser.parse_args(sys.argv[1:] if argv is None else argv)
    if args.command in (None, "help"):
        topic = getattr(args, "topic", None)
        (commands[topic] if topic else parser).print_help()
        return 0
    try:
        return _COMMANDS[args.command].run(args)
    except console.CommandError as reason:
        console.error(f"{_name(args.command)} failed: {reason}")
    except KeyboardInterrupt:
        console.error(f"{_name(args.command)} failed: interrupted")
    return 1


def _name(command: str) -> str:
    """As messages call the command: "Up cluster", "Generate config"."""
    return getattr(_COMMANDS[command], "FAILURE", command.replace("_", " ").capitalize())


def parsers() -> "tuple[argparse.ArgumentParser, dict[str, argparse.ArgumentParser]]":
    parser = argparse.ArgumentParser(
        prog="dscli",
        description="Starts, stops and inspects datasystem workers, here and on many machines.",
        epilog=_EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"dscli ({package.version()})")
    choices = parser.add_subparsers(dest="command", metavar="COMMAND")
    commands = {}
    for name, module in _COMMANDS.items():
        commands[name] = choices.add_parser(
            name, help=module.SUMMARY, description=module.SUMMARY[0].upper() + module.SUMMARY[1:] + ".",
            epilog=module.EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False)
        module.add_arguments(commands[name])
    topic = choices.add_parser("help", help="show help for dscli or one command", allow_abbrev=False)
    topic.add_argument("topic", nargs="?", choices=sorted(commands), metavar="COMMAND")
    return parser, commands

"""From what the user gave (-w tokens or a -f file) to the flags the worker is started with."""

import os
import subprocess
from typing import Dict, List

from . import json_file
from .console import CommandError
from .validation import check_argument

Flags = Dict[str, str]

_ROW_KEYS = ("value", "default", "description")
_CHECK_TIMEOUT_S = 60  # the check takes milliseconds; a machine may be busy


def parse_tokens(tokens: List[str]) -> Flags:
    """Flags of the line after -w: "--name value" or "--name=value"."""
    flags: Flags = {}
    name = None
    for token in tokens:
        if token.startswith("--"):
            if name is not None:
                raise CommandError(f"Param {name} is missing a value")
            name, equals, value = token[2:].partition("=")
            if not equals:
                continue
        elif name is None:
            raise CommandError(
                f"No parameter name specified: {token} (worker flags are --name value; "
                "dscli's own options go before -w)")
        else:
            value = token
        if not name:
            raise CommandError(f"No parameter name specified: {token}")
        flags[name] = value
        name = None
    if name is not None:
        raise CommandError(f"Param {name} is missing a value")
    if not flags:
        raise CommandError("no worker flags after -w; the least is --worker_address ip:port")
    _check(flags)
    return flags


def load_file(path: str, shipped: Flags, binary: str) -> Flags:
    """Flags of a worker_config.json: {"flag": {"value": "...", "description": "..."}}.

    Everything that is wrong in the file is named at once; types and ranges are the worker's own
    judgement. Flags with an empty value are left out: they mean the default.
    """
    flags: Flags = {}
    mistakes = []
    for flag, row in json_file.load_object(path).items():
        if flag not in shipped:
            mistakes.append(json_file.unknown_key(flag, shipped))
            continue
        try:
            value = _file_value(flag, row)
            check_argument(flag, value)
        except CommandError as reason:
            mistakes.append(str(reason))
            continue
        if value != "":
            flags[flag] = value
    mistakes += _refused_by_the_worker({**shipped, **flags}, binary)
    json_file.refuse(path, mistakes)
    return flags


def checked(flags: Flags) -> Flags:
    """`flags` that came by other ways; refuses what must not stand on a command line."""
    _check(flags)
    return flags


def worker_address_of_file(path: str) -> str:
    """Only the address: a worker can be stopped by a file whose other values are wrong by now."""
    row = json_file.load_object(path).get("worker_address")
    address = _file_value("worker_address", row) if row is not None else ""
    if not address:
        raise CommandError(f"{path} has no worker_address")
    return address


def _refused_by_the_worker(flags: Flags, binary: str) -> List[str]:
    """One line per mistake. A worker that takes all flags prints their values and ends."""
    given = [f"--{name}={value}" for name, value in flags.items() if value != ""]
    try:
        outcome = subprocess.run([binary, *given, "--print_flags=values"], stdin=subprocess.DEVNULL,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                 timeout=_CHECK_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as reason:
        raise CommandError(f"cannot ask {binary} to check the flags: {reason}") from reason
    if outcome.returncode == 0:
        return []
    lines = outcome.stderr.decode(errors="replace").splitlines()
    mistakes = [line for line in lines if line and not line.startswith("(")]
    return mistakes or [f"{binary} refuses the flags with code {outcome.returncode}"]


def _file_value(flag: str, row: object) -> str:
    value = None
    if isinstance(row, dict):
        # A misspelt "value" would otherwise mean the default, and nobody would notice.
        for name in row:
            if name not in _ROW_KEYS:
                raise CommandError(f"{flag}: {json_file.unknown_key(name, _ROW_KEYS)}")
        value = row.get("value", row.get("default", ""))
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, int, float)):
        return str(value)
    raise CommandError(f'{flag} must be {{"value": "<string>", "description": "<text>"}}')


def _check(flags: Flags) -> None:
    for name, value in flags.items():
        check_argument("flag name", name)
        check_argument(f"--{name}", value)


def resolve(user: Flags, shipped: Flags, default_folder: str) -> Flags:
    """All flags of the worker: the user's, then every shipped default that was not given.

    A relative "./x" of the user is meant from the current directory; a shipped one lies under
    `default_folder`. Empty values are dropped: the worker's own default holds.
    """
    flags = {name: _under(os.getcwd(), value) for name, value in user.items()}
    for name, value in shipped.items():
        flags.setdefault(name, _under(default_folder, value))
    return {name: value for name, value in flags.items() if value != ""}


def _under(folder: str, value: str) -> str:
    return os.path.normpath(os.path.join(folder, value)) if value.startswith("./") else value

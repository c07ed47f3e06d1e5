"""From what the user gave (-w tokens or a -f file) to the flags the worker is started with."""

import json
import os
from typing import Dict, List

from .console import CommandError
from .validation import check_argument, checked_path

Flags = Dict[str, str]


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
            raise CommandError(f"No parameter name specified: {token} (worker flags are --name value; "
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


def load_file(path: str) -> Flags:
    """Flags of a worker_config.json: {"flag": {"value": "...", "description": "..."}}.

    Flags with an empty value are left out: they mean the default.
    """
    path = checked_path(path)
    try:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
    except OSError as reason:
        raise CommandError(f"cannot read {path}: {reason.strerror}") from reason
    except ValueError as reason:
        raise CommandError(f"{path} is not JSON: {reason}") from reason
    if not isinstance(document, dict):
        raise CommandError(f"{path}: the file must hold one JSON object of flags")
    flags = {}
    for flag, row in document.items():
        value = _file_value(path, flag, row)
        if value != "":
            flags[flag] = value
    _check(flags)
    return flags


def checked(flags: Flags) -> Flags:
    """`flags` that came by other ways; refuses what must not stand on a command line."""
    _check(flags)
    return flags


def worker_address_of_file(path: str) -> str:
    address = load_file(path).get("worker_address")
    if not address:
        raise CommandError(f"{path} has no worker_address")
    return address


def _file_value(path: str, flag: str, row: object) -> str:
    value = row.get("value", row.get("default", "")) if isinstance(row, dict) else None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, int, float)):
        return str(value)
    raise CommandError(f'{path}: {flag} must be {{"value": "<string>", "description": "<text>"}}')


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

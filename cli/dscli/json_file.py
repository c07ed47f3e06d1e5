"""Reads a JSON object that people write by hand, and says exactly where it is wrong."""

import difflib
import json
import os
from typing import Any, Dict, Iterable, List, Tuple

from .console import CommandError
from .validation import checked_path

_SIZE_MAX = 4 << 20  # far more than any configuration; not the log file named by mistake


class DuplicateKey(ValueError):
    pass


def load_object(path: str) -> Dict[str, Any]:
    path = checked_path(path)
    try:
        if os.path.exists(path) and not os.path.isfile(path):
            raise CommandError(f"{path} is not a file")
        with open(path, "rb") as file:
            content = file.read(_SIZE_MAX + 1)
    except OSError as reason:
        raise CommandError(f"cannot read {path}: {reason.strerror}") from reason
    if len(content) > _SIZE_MAX:
        raise CommandError(
            f"{path} is larger than {_SIZE_MAX >> 20} MiB: that is no configuration file")
    try:
        document = json.loads(content.decode("utf-8-sig"), object_pairs_hook=_without_duplicates)
    except UnicodeDecodeError as reason:
        line = content.count(b"\n", 0, reason.start) + 1
        column = reason.start - content.rfind(b"\n", 0, reason.start)
        raise CommandError(f"{path} is not UTF-8 text: line {line} column {column}") from reason
    except json.JSONDecodeError as reason:
        raise CommandError(f"{path} is not JSON: line {reason.lineno} column {reason.colno}: "
                           f"{reason.msg}") from reason
    except DuplicateKey as reason:
        raise CommandError(f"{path}: {reason}") from reason
    except ValueError as reason:  # Python's limit on the digits of a number
        raise CommandError(f"{path}: a number has too many digits") from reason
    except RecursionError as reason:
        raise CommandError(
            f"{path} is not a configuration file: too many nested brackets") from reason
    if not isinstance(document, dict):
        raise CommandError(f"{path}: the file must hold one JSON object, {{\"name\": ...}}")
    return document


def unknown_key(name: str, known: Iterable[str]) -> str:
    """The text of a mistake: the key, and the known one that may have been meant."""
    nearest = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f"unknown key {name!r}" + (f"; did you mean {nearest[0]!r}?" if nearest else "")


def refuse(path: str, mistakes: List[str]) -> None:
    """Raises a CommandError that names them all; nothing if there are none."""
    if mistakes:
        count = "1 mistake" if len(mistakes) == 1 else f"{len(mistakes)} mistakes"
        raise CommandError(f"{path} has {count}, nothing was done:" +
                           "".join(f"\n  {mistake}" for mistake in mistakes))


def _without_duplicates(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        names = [name for name, _ in pairs]
        twice = sorted({name for name in names if names.count(name) > 1})
        raise DuplicateKey(f"the same key twice in one object: {', '.join(twice)}")
    return made

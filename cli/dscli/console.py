"""Message lines "[LEVEL] text": INFO on standard output, WARNING and ERROR on standard error."""

import os
import sys
import unicodedata
from typing import TextIO

OK = "[  OK  ]"
FAILED = "[  FAILED  ]"

_COLOURS = {"INFO": "36", "WARNING": "33", "ERROR": "31", OK: "32", FAILED: "31"}


class CommandError(Exception):
    """Ends the running command with exit code 1; the text is the reason shown to the user."""


def info(text: str) -> None:
    _write("INFO", text, sys.stdout)


def warning(text: str) -> None:
    _write("WARNING", text, sys.stderr)


def error(text: str) -> None:
    _write("ERROR", text, sys.stderr)


def bold(text: str) -> str:
    return paint(text, "1", sys.stdout)


def _write(level: str, text: str, stream: TextIO) -> None:
    text = _shown(text, stream.encoding or "utf-8")
    for mark in (OK, FAILED):
        if text.startswith(mark):
            text = paint(mark, _COLOURS[mark], stream) + text[len(mark):]
    print(f"[{paint(level, _COLOURS[level], stream)}] {text}", file=stream, flush=True)


def _shown(text: str, encoding: str) -> str:
    """What other machines, programs and files said must not steer the terminal or fail to print."""
    text = "".join(c if c in "\n\t" or unicodedata.category(c) != "Cc" else f"\\x{ord(c):02x}"
                   for c in text)
    return text.encode(encoding, "backslashreplace").decode(encoding)


def paint(text: str, colour: str, stream: TextIO) -> str:
    # Files and pipes get plain text: scripts match these lines.
    if not stream.isatty() or "NO_COLOR" in os.environ:
        return text
    return f"\033[{colour}m{text}\033[0m"

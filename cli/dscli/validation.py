"""Checks of what the user typed, before anything is done with it."""

import argparse
import ipaddress
import os
import re
import unicodedata

from .console import CommandError

_PROTECTED_FOLDERS = ("/bin", "/sbin", "/lib", "/lib64", "/boot", "/dev", "/etc", "/sys", "/proc")
_COMMAND_CHARACTERS = set(";&|`$(){}<>!*?'\"\\\t\n\r\v\f")
_ADDRESS = re.compile(r"(?:(?P<v4>[0-9.]+)|\[(?P<v6>[0-9A-Fa-f:.]+)\]):(?P<port>[0-9]{1,5})")


def checked_path(path: str) -> str:
    """The absolute path; refuses system folders, which dscli must never read from or write to."""
    absolute = os.path.realpath(os.path.expanduser(path))
    # Both forms: on a merged-/usr system /bin/x really is /usr/bin/x.
    for form in (absolute, os.path.abspath(os.path.expanduser(path))):
        if form == "/" or any(form == f or form.startswith(f + "/") for f in _PROTECTED_FOLDERS):
            raise CommandError(f"the path {path} is outside the allowed directory: it must not be / "
                               f"or lie under {', '.join(_PROTECTED_FOLDERS)}")
    return absolute


def check_argument(name: str, value: str) -> None:
    """Refuses values that a shell would interpret, wherever they end up later."""
    # The rest of the control characters too, and halves of surrogate pairs, which JSON can spell:
    # no program can be given the one (NUL), and the other is no text.
    found = sorted({c for c in value
                    if c in _COMMAND_CHARACTERS or unicodedata.category(c) in ("Cc", "Cs")})
    if found:
        raise CommandError(f"{name}: input contains potential command-injection characters: "
                           f"{' '.join(repr(c) for c in found)}")


def check_address(name: str, address: str) -> None:
    match = _ADDRESS.fullmatch(address)
    try:
        if not match or int(match["port"]) > 65535:
            raise ValueError
        if match["v4"]:
            ipaddress.IPv4Address(match["v4"])
        else:
            ipaddress.IPv6Address(match["v6"])
    except ValueError:
        raise CommandError(f"{name} {address!r} is not an address: write IPv4:port or [IPv6]:port, "
                           "port 0-65535, e.g. 127.0.0.1:31501") from None


def split_address(address: str) -> "tuple[str, int]":
    """("127.0.0.1", 31501); the address has passed check_address()."""
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def seconds(text: str) -> float:
    """For argparse: a time-out between a millisecond and a day."""
    value = float(text)
    if not 0.001 <= value <= 86400:
        raise argparse.ArgumentTypeError(f"{text} is not between 0.001 and 86400 seconds")
    return value

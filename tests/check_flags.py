#!/usr/bin/env python3
"""Fails when a flag that the table calls effective is read by nobody: an operator who sets it would be fooled.
Usage: check_flags.py [source root]"""
import pathlib
import re
import sys


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent)
    table = (root / "src/config/flag_table.inc").read_text(encoding="utf-8")
    keys = re.findall(r"^FLAG\(\w+, (k\w+),", table, re.MULTILINE)
    assert keys, "the table has changed its form"
    code = "\n".join(path.read_text(encoding="utf-8") for path in (root / "src").rglob("*.cc")
                     if path.name != "flags_test.cc")
    unread = [key for key in keys if not re.search(rf"\bGet\((config::)?{key}\)", code)]
    for key in unread:
        print(f"{key} is never read: give it an effect, or make its row ACCEPTED with the reason")
    return 1 if unread else 0


if __name__ == "__main__":
    sys.exit(main())

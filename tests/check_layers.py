#!/usr/bin/env python3
"""Fails on an #include in src/ that points against the order of the layers, and on a header that is not
below src/<layer>/ at all. Usage: check_layers.py [source root]"""
import pathlib
import re
import sys

# A folder may use only those before it.
LAYERS = ["base", "config", "proto", "shm", "session", "transport", "cluster", "store", "directory", "worker", "client"]
# The SDK lives in other people's processes: it knows nothing of how a worker works.
HIDDEN_FROM_CLIENT = {"transport", "store", "directory", "worker"}
# What a public header may include of ours: other public headers.
INCLUDE = re.compile(r'^\s*#\s*include\s+["<]([^">]+)[">]')


def includes(path):
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if match := INCLUDE.match(line):
            yield number, match.group(1)


def allowed(user, used):
    if user == "client" and used in HIDDEN_FROM_CLIENT:
        return False
    return LAYERS.index(used) <= LAYERS.index(user)


def mistakes(root):
    for path in sorted((root / "src").rglob("*")):
        if path.suffix not in {".h", ".cc", ".inc"}:
            continue
        user = path.relative_to(root / "src").parts[0]
        if user not in LAYERS:
            yield f"{path}: folder '{user}' is in no layer; add it to {pathlib.Path(__file__).name}"
            continue
        for number, target in includes(path):
            used = target.split("/")[0]
            if used in LAYERS and "/" in target and not allowed(user, used):
                yield f"{path}:{number}: {user} must not include {target}"
            if target.startswith("../"):
                yield f"{path}:{number}: includes are written from src/, not as {target}"
    for path in sorted((root / "include").rglob("*.h")):
        for number, target in includes(path):
            if (root / "src" / target).exists():
                yield f"{path}:{number}: a public header must not include {target}"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent)
    found = list(mistakes(root))
    print("\n".join(found) if found else "all includes follow the layers")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

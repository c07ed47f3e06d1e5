"""`dscli generate_helm_chart`: the Helm chart for Kubernetes, as a folder to edit."""

import argparse
import errno
import os
import shutil
import tempfile
from pathlib import Path

from . import console, package, validation
from .console import CommandError

SUMMARY = "write the Helm chart for Kubernetes to a folder"
EXAMPLES = """\
examples:
  dscli generate_helm_chart -o /tmp         gives /tmp/datasystem; edit /tmp/datasystem/values.yaml
  helm install datasystem /tmp/datasystem   deploys it"""

_NAME = "datasystem"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output_path", default=".", metavar="DIR",
                        help="folder that gets the chart as DIR/datasystem; default: here")


def run(args: argparse.Namespace) -> int:
    folder = Path(validation.checked_path(args.output_path))
    target = folder / _NAME
    source = package.helm_chart()
    if target.is_symlink() or (target.exists() and not _is_empty_folder(target)):
        raise CommandError(f"{target} exists and is not an empty folder; move it away, or choose "
                           "another folder with -o. Nothing was written")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _place(source, target)
    except OSError as reason:
        raise CommandError(f"cannot write the chart to {target}: {reason.strerror}"
                           f"{_remedy(reason, folder)}. Nothing was left there") from reason
    console.info(f"Helm chart generated successfully at: {target}")
    console.info("You can now use this chart for deployment with Helm.")
    return 0


def _is_empty_folder(path: Path) -> bool:
    return path.is_dir() and not any(path.iterdir())


def _place(source: Path, target: Path) -> None:
    """All of it or nothing: written beside the target, then renamed."""
    scratch = Path(tempfile.mkdtemp(prefix=f".{_NAME}-", dir=target.parent))
    try:
        copy = scratch / _NAME
        copy.mkdir()
        # Contents only: what belongs to the package may be read-only, and this is to be edited.
        for path in sorted(source.rglob("*")):
            if "__pycache__" in path.parts:
                continue  # of the chart's script: an installer compiles what it finds
            place = copy / path.relative_to(source)
            if path.is_dir():
                place.mkdir()
            else:
                place.write_bytes(path.read_bytes())
        os.replace(copy, target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _remedy(reason: OSError, folder: Path) -> str:
    if reason.errno in (errno.ENOSPC, errno.EDQUOT):
        return "; make room there, or choose another folder with -o"
    if isinstance(reason, PermissionError):
        return f"; choose a folder that you may write with -o, or change the rights of {folder}"
    return "; choose another folder with -o"

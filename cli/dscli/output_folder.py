"""What the generate_* commands and collect_log write: all of it or nothing.

Everything is made under a temporary name beside its place and renamed when it is complete, so that
a full disk or Ctrl-C leaves nothing half-written. What exists already is never overwritten: it may
hold the user's edits. Every failure of the system becomes a CommandError with cause and remedy.
"""

import errno
import os
import shutil
import tempfile
from contextlib import contextmanager, suppress
from typing import Dict, Iterator, List

from .console import CommandError
from .validation import checked_path

_REMEDIES = {
    errno.ENOSPC: "make room there or choose another folder with -o",
    errno.EDQUOT: "make room there or choose another folder with -o",
    errno.EACCES: "choose a folder that you may write to with -o",
    errno.EPERM: "choose a folder that you may write to with -o",
    errno.EROFS: "choose a folder that can be written to with -o",
}


@contextmanager
def new_folder(path: str) -> Iterator[str]:
    """Gives a temporary folder to fill, which becomes `path` at the end of the with block.

    Missing parents are made, and removed again if the block fails.
    """
    path = checked_path(path)
    _refuse_existing(path)
    parent = os.path.dirname(path)
    fresh_parents = []
    ancestor = parent
    while not os.path.exists(ancestor):
        fresh_parents.append(ancestor)
        ancestor = os.path.dirname(ancestor)
    temporary = None
    try:
        with _explained(path):
            os.makedirs(parent, exist_ok=True)
            temporary = tempfile.mkdtemp(prefix=f".{os.path.basename(path)}.", dir=parent)
            yield temporary
            _refuse_existing(path)  # a rename would replace an empty folder
            os.rename(temporary, path)
    except BaseException:  # Ctrl-C too
        if temporary:
            shutil.rmtree(temporary, ignore_errors=True)
        for folder in fresh_parents:
            with suppress(OSError):  # not made yet, or used by others in the meantime
                os.rmdir(folder)
        raise


def write_files(folder: str, files: Dict[str, str]) -> List[str]:
    """Writes {name: text} into an existing folder, all or none; returns the paths."""
    folder = checked_path(folder)
    if not os.path.isdir(folder):
        raise CommandError(f"the output folder {folder} "
                           f"{'is not a folder' if os.path.exists(folder) else 'does not exist'}; "
                           "make it first or choose another with -o")
    paths = [os.path.join(folder, name) for name in files]
    for path in paths:
        _refuse_existing(path)
    placed: List[str] = []
    try:
        with _explained(folder), tempfile.TemporaryDirectory(prefix=".dscli.",
                                                             dir=folder) as temporary:
            for name, text in files.items():
                write_file(os.path.join(temporary, name), text)
            for name, path in zip(files, paths):
                _refuse_existing(path)
                os.rename(os.path.join(temporary, name), path)
                placed.append(path)
    except BaseException:
        for path in placed:
            with suppress(OSError):
                os.unlink(path)
        raise
    return paths


def write_file(path: str, text: str) -> None:
    """Written through to the disk: some file systems report a full disk only then."""
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def copy_tree(source: str, target: str) -> None:
    """Copies a folder of the package, without what Python and editors leave there."""
    try:
        shutil.copytree(source, target, dirs_exist_ok=True,
                        ignore=shutil.ignore_patterns("__pycache__", "*.pyc", ".*.swp"))
    except shutil.Error as failures:  # one entry per file: the first tells the cause
        raise CommandError(f"cannot copy {source} to {target}: {failures.args[0][0][2]}; "
                           "make room there or choose another folder with -o") from failures


def _refuse_existing(path: str) -> None:
    if os.path.lexists(path):
        raise CommandError(f"{path} exists already and is not overwritten; move it away or choose "
                           "another folder with -o")


@contextmanager
def _explained(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as reason:
        remedy = _REMEDIES.get(reason.errno or 0, "choose another folder with -o")
        raise CommandError(
            f"cannot write {path}: {reason.strerror or reason}; {remedy}") from reason

"""Where the installed package keeps what dscli needs: worker, its shipped defaults, version."""

import json
import os
from pathlib import Path
from typing import Dict

from .console import CommandError

WORKER_NAME = "datasystem_worker"

# This file is yr/datasystem/cli/package.py.
_PACKAGE_DIR = Path(__file__).resolve().parent.parent


def worker_binary() -> str:
    """The worker's path; DATASYSTEM_WORKER_BINARY overrides it for builds that are not installed."""
    path = os.environ.get("DATASYSTEM_WORKER_BINARY") or str(_PACKAGE_DIR / WORKER_NAME)
    if not os.path.isfile(path):
        raise CommandError(
            f"there is no worker at {path}; reinstall the wheel or set DATASYSTEM_WORKER_BINARY")
    if not os.access(path, os.X_OK):
        raise CommandError(f"{path} is not executable; reinstall the wheel or chmod +x it")
    return os.path.abspath(path)


def shipped_config() -> str:
    """The worker_config.json that was generated from the worker's flag table.

    DATASYSTEM_WORKER_CONFIG names another such file, for builds that are not installed.
    """
    path = _shipped_config_path()
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, ValueError) as reason:
        raise CommandError(f"cannot read the shipped worker flags from {path}: {reason!r}; "
                           "reinstall the wheel") from reason


def shipped_defaults() -> Dict[str, str]:
    """Flag -> value of shipped_config()."""
    try:
        return {flag: str(row["value"]) for flag, row in json.loads(shipped_config()).items()}
    except (ValueError, KeyError, TypeError, AttributeError) as reason:
        raise CommandError(f"{_shipped_config_path()} holds no worker flags: {reason!r}; "
                           "reinstall the wheel") from reason


def folder(name: str) -> str:
    """A folder of the installed package, e.g. "include"."""
    path = _PACKAGE_DIR / name
    if not path.is_dir():
        raise CommandError(f"the package has no folder {path}; reinstall the wheel")
    return str(path)


def _shipped_config_path() -> str:
    return os.environ.get("DATASYSTEM_WORKER_CONFIG") or str(_PACKAGE_DIR / "worker_config.json")


def helm_chart() -> Path:
    """The folder of the Helm chart."""
    path = _PACKAGE_DIR / "helm_chart" / "datasystem"
    if not (path / "Chart.yaml").is_file():
        raise CommandError(f"there is no Helm chart at {path}; reinstall the wheel")
    return path


def version() -> str:
    try:
        return (_PACKAGE_DIR / "VERSION").read_text(encoding="utf-8").strip()
    except OSError:
        return "unknown"

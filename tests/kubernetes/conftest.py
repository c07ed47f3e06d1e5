"""Charts that Helm renders, and the worker they are made for."""

import os
import shutil
import sys

import pytest

import chart

sys.path.insert(0, str(chart.SOURCE / "scripts"))
import make_chart  # noqa: E402


@pytest.fixture(scope="session")
def worker_binary():
    """The worker of this source: named by the environment, or of the installed package."""
    named = os.environ.get("DATASYSTEM_WORKER_BINARY")
    if named:
        return named
    from yr.datasystem.cli import package
    return package.worker_binary()


@pytest.fixture(scope="session")
def worker_flags(worker_binary):
    return make_chart.printed_flags(worker_binary)


@pytest.fixture(scope="session")
def tls_chart(worker_flags, tmp_path_factory):
    """The chart that make_chart.py writes once the worker says that it speaks TLS to etcd."""
    flags = {name: dict(row) for name, row in worker_flags.items()}
    for name, row in flags.items():
        if name.startswith(("enable_etcd_auth", "etcd_")):
            row["effect"] = "used"
    folder = tmp_path_factory.mktemp("tls") / "datasystem"
    shutil.copytree(chart.CHART, folder)
    for name, content in make_chart.generated(flags).items():
        (folder / name).write_text(content)
    return folder

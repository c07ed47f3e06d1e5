"""Clusters of real processes. Needs yr.datasystem importable: from the installed wheel, or by PYTHONPATH=<build>/python
with DATASYSTEM_WORKER_BINARY. etcd comes from PATH."""

import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

from cluster import Cluster, Dscli
from session_wire import Session


@contextmanager
def _short_folder():
    """The path of a Unix socket may have 80 characters: tmp_path is too long for that."""
    folder = tempfile.mkdtemp(prefix="ds-")
    try:
        yield Path(folder)
    finally:
        shutil.rmtree(folder)


@pytest.fixture
def folder():
    with _short_folder() as path:
        yield path


@pytest.fixture(scope="module")
def module_cluster(request):
    """module_cluster(flags...): as new_cluster, for all tests of a module."""
    yield from _clusters(request)


@pytest.fixture
def new_cluster(request):
    """new_cluster(flags...) starts etcd; the workers are the test's to start."""
    yield from _clusters(request)


def _clusters(request):
    request.node.clusters = clusters = []
    with _short_folder() as folder:
        def make(**flags):
            clusters.append(Cluster(folder, **flags))
            return clusters[-1]
        try:
            yield make
        finally:
            for cluster in clusters:
                cluster.end()


@pytest.fixture
def cluster(new_cluster):
    return new_cluster()


@pytest.fixture(scope="module")
def pair(module_cluster):
    """Two workers that a whole module of tests uses and leaves as they are."""
    return module_cluster().start(2)


@pytest.fixture
def wire(pair):
    """A session with the first of them, by hand."""
    session = Session(pair[0], unix_socket=True)
    yield session
    session.close()


@pytest.fixture
def dscli(folder):
    dscli = Dscli(folder)
    try:
        yield dscli
    finally:
        dscli.end()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    if not report.failed:
        return
    for node in item.listchain():
        for cluster in getattr(node, "clusters", []):
            report.sections.append(("processes of the cluster", cluster.diagnosis()))

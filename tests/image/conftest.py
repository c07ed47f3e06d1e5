"""The image of docker/Dockerfile as a root file system (rootfs.py), and pods that run it (pod.py, container.py)."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest

import rootfs
from pod import Pod

OUTPUT = Path(os.environ.get("DATASYSTEM_OUTPUT_DIR", rootfs.SOURCE / "output"))


@pytest.fixture(scope="session")
def image(tmp_path_factory):
    if os.geteuid() != 0 or shutil.which("dpkg-query") is None:
        pytest.skip("a root file system is made by root, on Debian")
    assert list(OUTPUT.glob("yr-datasystem-v*.tar.gz")), f"no package in {OUTPUT}: bash build.sh -A on -X off"
    return rootfs.build(OUTPUT, tmp_path_factory.mktemp("image"))


@pytest.fixture
def pod(image):
    with tempfile.TemporaryDirectory(prefix="ds-pod-") as folder:
        Path(folder).chmod(0o755)
        pod = Pod(image, Path(folder))
        try:
            yield pod
        finally:
            pod.end()

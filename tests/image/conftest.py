"""The image of docker/Dockerfile as a root file system (rootfs.py), and pods of it (pod.py)."""

import os
import shutil
import subprocess
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
    if subprocess.run(["unshare", "--mount", "--pid", "--fork", "true"]).returncode != 0:
        pytest.skip("this machine does not let us make namespaces")
    packages = list(OUTPUT.glob("yr-datasystem-v*.tar.gz"))
    assert packages, f"no package in {OUTPUT}: bash build.sh -A on -X off"
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

"""The probe scripts by themselves: what they say of files, and of wrong arguments."""

import os
import subprocess
import time

import pytest

import rootfs

SCRIPTS = rootfs.SOURCE / "docker" / "scripts"


def probe(script, *arguments):
    result = subprocess.run(["bash", SCRIPTS / script, *map(str, arguments)], capture_output=True,
                            text=True, check=False)
    return result.returncode, result.stdout + result.stderr


@pytest.fixture
def liveness(tmp_path):
    path = tmp_path / "liveness"
    path.write_text("liveness check success\n")
    return path


def test_liveness_accepts_a_fresh_success(liveness):
    assert probe("liveness_check.sh", "-f", liveness, "-t", 5) == (0, "")


def test_liveness_says_how_old_the_file_is(liveness):
    os.utime(liveness, (time.time() - 100, time.time() - 100))
    code, reason = probe("liveness_check.sh", "-f", liveness, "-t", 60)
    assert code == 1
    assert " 100 s ago" in reason or " 101 s ago" in reason
    assert probe("liveness_check.sh", "-f", liveness)[0] == 0, "150 s are the default"


def test_liveness_repeats_the_workers_reason(liveness):
    liveness.write_text("liveness check failed: no progress of the event loop\n")
    code, reason = probe("liveness_check.sh", "-f", liveness, "-t", 60)
    assert code == 1
    assert "liveness check failed: no progress of the event loop" in reason
    liveness.write_text("")
    assert probe("liveness_check.sh", "-f", liveness)[1].endswith(f"says in {liveness}: nothing\n")


def test_liveness_names_a_file_that_does_not_exist(tmp_path):
    code, reason = probe("liveness_check.sh", "-f", tmp_path / "none")
    assert code == 1
    assert str(tmp_path / "none") in reason and "No such file" in reason


def test_readiness_needs_both_files_and_startup_the_one(tmp_path):
    healthy, ready = tmp_path / "healthy", tmp_path / "ready"
    assert "has not registered" in probe("file_check.sh", "readinessProbe", healthy, ready)[1]
    healthy.touch()
    code, reason = probe("file_check.sh", "readinessProbe", healthy, ready)
    assert (code, "does not answer requests" in reason) == (1, True)
    ready.touch()
    assert probe("file_check.sh", "readinessProbe", healthy, ready) == (0, "")
    assert probe("file_check.sh", "startupProbe", ready) == (0, "")
    none = probe("file_check.sh", "startupProbe", tmp_path / "none")
    assert none[0] == 1 and "has not started to serve" in none[1]


@pytest.mark.parametrize("command", [
    ["file_check.sh"], ["file_check.sh", "readinessProbe", "one"],
    ["file_check.sh", "livenessProbe", "one"],
    ["liveness_check.sh"], ["liveness_check.sh", "-f"], ["liveness_check.sh", "-f", "x", "more"],
    ["liveness_check.sh", "-f", "x", "-t", "soon"],
    ["uninstall.sh", "-q"], ["uninstall.sh", "-t", "5"], ["uninstall.sh", "-f", "x", "-t", "0"],
])
def test_wrong_arguments_are_named_with_the_usage_and_exit_2(command):
    code, output = probe(*command)
    assert code == 2
    assert "Usage: " in output

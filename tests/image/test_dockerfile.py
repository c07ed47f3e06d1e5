"""Dockerfile and docker_build.sh, as far as they can be judged without an engine."""

import fnmatch
import json
import shutil
import subprocess
from pathlib import Path

import pytest

import rootfs

DOCKER = rootfs.SOURCE / "docker"
SCRIPTS = sorted([*DOCKER.glob("*.sh"), *(DOCKER / "scripts").glob("*.sh")])
FINAL = [(word, text) for stage, word, text in rootfs.instructions() if stage is None]


def ignored(path):
    """What .dockerignore keeps from the engine. Patterns are for the top folder, unless **/"""
    lines = (rootfs.SOURCE / ".dockerignore").read_text().splitlines()
    patterns = [line for line in lines if line and line[0] != "#"]
    parts = Path(path).parts
    return any(fnmatch.fnmatch(part, pattern.removeprefix("**/")) for pattern in patterns
               for part in (parts if pattern.startswith("**/") else parts[:1]))


def run(*command, **environment):
    return subprocess.run(command, capture_output=True, text=True, check=False,
                          env={"PATH": "/usr/local/bin:/usr/bin:/bin", **environment})


def test_everything_that_is_copied_from_the_source_exists_and_is_not_ignored():
    copied = [text.split()[0] for _, word, text in rootfs.instructions()
              if word == "COPY" and not text.startswith("--from")]
    assert "." in copied and len(copied) > 1
    for path in copied:
        assert (rootfs.SOURCE / path).exists() and not ignored(path), path


def test_all_that_git_knows_is_sent_and_no_build_tree():
    files = run("git", "-C", rootfs.SOURCE, "ls-files")
    if files.returncode != 0:
        pytest.skip("not a git checkout")
    assert not [path for path in files.stdout.splitlines() if ignored(path)]
    for path in ["build/x", "build-dev/x", "output/x.whl", ".git/HEAD", "tests/__pycache__/x.pyc"]:
        assert ignored(path), path


def test_both_stages_take_the_base_image_from_the_one_argument():
    bases = [text.split()[0] for _, word, text in rootfs.instructions() if word == "FROM"]
    assert bases == ["${BASE_IMAGE}"] * 2


def test_the_container_runs_as_a_number_that_is_not_root_by_an_entry_without_a_shell():
    assert [text for word, text in FINAL if word == "USER"] == ["1002:1002"]
    entries = [json.loads(text) for word, text in FINAL if word == "ENTRYPOINT"]
    assert entries == [["/home/yuanrong/worker_entry.sh"]]


def test_what_the_chart_calls_is_in_the_image():
    for name in ["worker_entry.sh", "file_check.sh", "liveness_check.sh", "uninstall.sh"]:
        assert DOCKER / "scripts" / name in SCRIPTS


@pytest.mark.skipif(shutil.which("hadolint") is None, reason="hadolint is not installed")
def test_hadolint_finds_nothing():
    result = run("hadolint", DOCKER / "Dockerfile")
    assert result.returncode == 0, result.stdout


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="shellcheck is not installed")
def test_shellcheck_finds_nothing():
    result = run("shellcheck", *SCRIPTS)
    assert result.returncode == 0, result.stdout


# worker_entry.sh needs the worker for that: test_image.py.
@pytest.mark.parametrize("script", ["docker_build.sh", "scripts/file_check.sh",
                                    "scripts/liveness_check.sh", "scripts/uninstall.sh"])
def test_each_script_explains_itself(script):
    result = run("bash", DOCKER / script, "--help")
    assert result.returncode == 0 and result.stdout.startswith("Usage: "), result.stderr


def docker_build(*options, **environment):
    return run("bash", DOCKER / "docker_build.sh", *options, **environment)


@pytest.mark.parametrize("options, words", [
    ([], ["BASE_IMAGE=debian:12-slim", f":{(rootfs.SOURCE / 'VERSION').read_text().strip()}"]),
    (["-s", "openeuler"], ["BASE_IMAGE=openeuler/openeuler:22.03-lts-sp4"]),
    (["-n", "registry.example.com:5000/cache/ds", "-t", "7", "-b", "mirror/debian:12"],
     ["--tag registry.example.com:5000/cache/ds:7", "BASE_IMAGE=mirror/debian:12"]),
])
def test_docker_build_asks_the_engine_for_what_it_was_told(options, words):
    result = docker_build(*options, "--dry-run", CONTAINER_ENGINE="podman",
                          https_proxy="http://user:secret@proxy")
    assert result.returncode == 0, result.stderr
    for word in ["podman build --file", "--build-arg https_proxy ", *words]:
        assert word in result.stdout
    assert "secret" not in result.stdout


@pytest.mark.parametrize("options, words", [
    (["-s", "windows"], "invalid value 'windows' for option -s: expected debian, openeuler"),
    (["-n", "Upper"], "invalid value 'Upper' for option -n"),
    (["-t", "a b"], "invalid value 'a b' for option -t"),
    (["-b", "--privileged"], "invalid value '--privileged' for option -b"),
    (["-t"], "option -t needs a value"),
    (["all"], "unexpected argument 'all'"),
])
def test_docker_build_refuses_wrong_options_with_the_usage(options, words):
    result = docker_build("--dry-run", *options)
    assert result.returncode == 1
    assert words in result.stderr and "Usage: " in result.stderr


def test_docker_build_without_an_engine_says_what_to_install():
    result = docker_build(CONTAINER_ENGINE="no-such-engine")
    assert result.returncode == 1
    assert "no-such-engine is not installed; install docker or podman" in result.stderr


def test_lay_out_without_packages_says_how_to_make_them(tmp_path):
    result = run("bash", DOCKER / "lay_out.sh", tmp_path, tmp_path / "image")
    assert result.returncode == 1
    assert "make it: bash build.sh -A on" in result.stderr

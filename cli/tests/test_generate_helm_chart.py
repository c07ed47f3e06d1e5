import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE_CHART = Path(__file__).resolve().parents[2] / "docker" / "chart" / "datasystem"


def files(folder):
    return {path.relative_to(folder): path.read_bytes()
            for path in folder.rglob("*") if path.is_file()}


def generate(stand_in, *arguments):
    return stand_in("generate_helm_chart", *arguments)


def test_the_chart_is_the_folder_datasystem_and_its_files_can_be_edited(stand_in, tmp_path):
    result = generate(stand_in, "-o", str(tmp_path))
    chart = tmp_path / "datasystem"
    assert (result.code, result.err) == (0, "")
    assert result.out.splitlines() == [
        f"[INFO] Helm chart generated successfully at: {chart}",
        "[INFO] You can now use this chart for deployment with Helm."]
    assert files(chart) == files(SOURCE_CHART)
    assert all(path.stat().st_mode & 0o600 == 0o600 for path in chart.rglob("*"))


def test_the_default_is_the_current_folder_and_missing_folders_are_made(stand_in):
    assert generate(stand_in).code == 0
    assert (stand_in.folder / "datasystem" / "values.yaml").is_file()
    assert generate(stand_in, "--output_path", "a/b").code == 0
    assert (stand_in.folder / "a" / "b" / "datasystem" / "templates").is_dir()


def test_an_edited_chart_is_not_overwritten(stand_in, tmp_path):
    values = tmp_path / "datasystem" / "values.yaml"
    values.parent.mkdir()
    values.write_text("mine")
    result = generate(stand_in, "-o", str(tmp_path))
    assert result.code == 1
    assert f"{values.parent} exists and is not an empty folder; move it away" in result.err
    assert files(values.parent) == {Path("values.yaml"): b"mine"}


def test_an_empty_folder_is_filled_and_a_link_is_not_followed(stand_in, tmp_path):
    (tmp_path / "empty" / "datasystem").mkdir(parents=True)
    assert generate(stand_in, "-o", str(tmp_path / "empty")).code == 0
    (tmp_path / "link").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link" / "datasystem").symlink_to(tmp_path / "elsewhere")
    assert "not an empty folder" in generate(stand_in, "-o", str(tmp_path / "link")).err
    assert not list((tmp_path / "elsewhere").iterdir())


def test_a_file_in_place_of_the_folder_is_named(stand_in, tmp_path):
    (tmp_path / "file").write_text("")
    result = generate(stand_in, "-o", str(tmp_path / "file"))
    assert result.code == 1
    assert f"cannot write the chart to {tmp_path}/file/datasystem" in result.err
    assert "choose another folder with -o" in result.err


def test_system_folders_are_refused(stand_in):
    assert "outside the allowed directory" in generate(stand_in, "-o", "/etc").err


@pytest.mark.parametrize("options, reason, remedy", [
    ("size=64k", "No space left on device", "make room there"),
    ("ro", "Read-only file system", "choose another folder with -o"),
])
def test_a_full_or_read_only_disk_is_named_and_nothing_is_left(tmp_path, options, reason, remedy):
    """On a file system of its own, in a mount namespace that ends with the shell."""
    unshare = shutil.which("unshare")
    if unshare is None or subprocess.run([unshare, "--mount", "true"],
                                         stderr=subprocess.DEVNULL).returncode != 0:
        pytest.skip("this machine does not let us mount")
    script = """mount -t tmpfs -o "$1" tmpfs "$2" || exit
                "$3" -m yr.datasystem.cli generate_helm_chart -o "$2"
                echo "code $?"
                ls -A "$2";"""
    result = subprocess.run(
        [unshare, "--mount", "sh", "-c", script, "sh", options, str(tmp_path), sys.executable],
        env=os.environ, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert f"cannot write the chart to {tmp_path}/datasystem: {reason}; {remedy}" in result.stderr
    assert result.stdout == "code 1\n"


def test_help_shows_what_to_do_with_it(stand_in):
    assert "helm install datasystem /tmp/datasystem" in stand_in("help", "generate_helm_chart").out

"""build.sh refuses bad options before it touches anything."""

import subprocess
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parent.parent


def build(*options):
    return subprocess.run(["bash", str(SOURCE / "build.sh"), *options], text=True, capture_output=True,
                          stdin=subprocess.DEVNULL, timeout=60, check=False)


@pytest.mark.parametrize("options, words", [
    (["-A", "maybe"], "invalid value 'maybe' for option -A: expected on, off"),
    (["-j", "0"], "invalid value '0' for option -j"),
    (["-j", "x"], "invalid value 'x' for option -j"),
    (["-S", "memory"], "invalid value 'memory' for option -S"),
    (["-t", "some"], "invalid value 'some' for option -t"),
    (["-P", "/no/such/folder"], "invalid value '/no/such/folder' for option -P"),
    (["-v", "1;2"], "invalid value '1;2' for option -v"),
    (["-A"], "option -A needs a value"),
    (["-q"], "unknown option -q"),
    (["release"], "unexpected argument 'release'"),
    (["-J", "on"], "-J off"),
    (["-M", "on"], "-M off"),
    (["-X", "on"], "-X off"),
    (["-t", "run_java"], "no Java client"),
])
def test_a_wrong_option_is_named_with_the_usage_and_exit_1(options, words):
    result = build(*options)
    assert result.returncode == 1
    assert words in result.stderr
    assert "Usage: bash build.sh" in result.stderr


def test_help_prints_the_usage():
    result = build("-h")
    assert result.returncode == 0
    assert "Usage: bash build.sh" in result.stdout


@pytest.mark.parametrize("letter", ["-B", "-o"])
def test_a_folder_that_is_not_a_build_tree_is_not_wiped(tmp_path, letter):
    precious = tmp_path / "work" / "precious"
    precious.parent.mkdir()
    precious.write_text("data")
    other = {"-B": "-o", "-o": "-B"}[letter]
    result = build(letter, str(precious.parent), other, str(tmp_path / "other"))
    assert result.returncode == 1
    assert "was not made by this script" in result.stderr
    assert precious.read_text() == "data"

"""The package as users get it."""

import subprocess
from pathlib import Path

import pytest

import yr.datasystem
from yr.datasystem.lib import libds_client_py

MODULE = libds_client_py.__file__
SYSTEM = {"linux-vdso.so.1", "libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1",
          "ld-linux-x86-64.so.2"}


def test_public_names_are_there():
    assert sorted(yr.datasystem.__all__) == ["Context", "KVClient", "Status", "WriteMode"]
    for name in yr.datasystem.__all__:
        assert getattr(yr.datasystem, name).__doc__
    assert (Path(yr.datasystem.__file__).parent / "py.typed").exists()


def test_the_native_module_needs_nothing_but_glibc():
    text = subprocess.run(["objdump", "-p", MODULE], capture_output=True, text=True, check=True).stdout
    needed = {line.split()[1] for line in text.splitlines() if "NEEDED" in line}
    if any("san.so" in name for name in needed):
        pytest.skip("built with sanitizers")
    assert needed and needed <= SYSTEM
    assert "$ORIGIN" in text


def test_the_native_module_shows_nothing_but_its_init_function():
    text = subprocess.run(["nm", "-D", "--defined-only", MODULE], capture_output=True, text=True,
                          check=True).stdout
    assert [line.split()[-1] for line in text.splitlines()] == ["PyInit_libds_client_py"]


def test_write_modes_have_the_numbers_of_the_interface():
    assert {name: int(mode) for name, mode in yr.datasystem.WriteMode.__members__.items()} == {
        "NONE_L2_CACHE": 0, "WRITE_THROUGH_L2_CACHE": 1, "WRITE_BACK_L2_CACHE": 2,
        "NONE_L2_CACHE_EVICT": 3, "WRITE_BACK_L2_CACHE_EVICT": 4}

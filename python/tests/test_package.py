"""The package as users get it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import yr.datasystem
from yr.datasystem.kv_client import CacheType, SetParam
from yr.datasystem.lib import libds_client_py

MODULE = libds_client_py.__file__
SYSTEM = {"linux-vdso.so.1", "libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1",
          "ld-linux-x86-64.so.2"}


def test_public_names_are_there():
    assert sorted(yr.datasystem.__all__) == ["Buffer", "Context", "KVClient", "Status", "WriteMode"]
    for name in yr.datasystem.__all__:
        assert getattr(yr.datasystem, name).__doc__
    folder = Path(yr.datasystem.__file__).parent
    assert (folder / "py.typed").exists() and (folder / "lib" / "libds_client_py.pyi").exists()


@pytest.mark.parametrize("name", ["StreamClient", "HeteroClient", "ObjectClient", "DsClient", "Future"])
def test_a_name_that_this_version_lacks_says_so(name):
    with pytest.raises(ImportError, match=f"this version of yr.datasystem has no {name}"):
        exec(f"from yr.datasystem import {name}")
    assert not hasattr(yr.datasystem, "no_such_name")


def test_the_cache_type_has_both_spellings():
    assert CacheType.MEMEORY == CacheType.MEMORY != CacheType.DISK
    assert SetParam().cache_type == CacheType.MEMORY and SetParam(ttl_second=5).ttl_second == 5


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


OTHER_UCX = """
import ctypes, sys
if sys.argv[3] == "loaded":  # as torch and others load theirs
    for library in ("libucs.so.0", "libuct.so.0", "libucp.so.0"):
        ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)
from yr.datasystem import KVClient
with KVClient(sys.argv[1], int(sys.argv[2])) as client:
    client.set("beside-ucx", bytes(1 << 20))
    assert client.get(["beside-ucx"]) == [bytes(1 << 20)]
    client.delete(["beside-ucx"])
print("libucp" in open("/proc/self/maps").read())
"""


@pytest.mark.parametrize("how", ["loaded", "preloaded"])
def test_another_ucx_in_the_process_does_no_harm(worker, how):
    environment = {**os.environ, **({"LD_PRELOAD": "libucp.so.0"} if how == "preloaded" else {})}
    ended = subprocess.run([sys.executable, "-c", OTHER_UCX, worker[0], str(worker[1]), how], env=environment,
                           capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout) == (0, "True\n"), ended.stderr

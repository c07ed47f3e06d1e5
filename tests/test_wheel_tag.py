"""The platform tag of the wheel is computed from symbol versions."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))
import elf  # noqa: E402
import wheel_tag  # noqa: E402


@pytest.fixture
def build_library(tmp_path):
    """Compiles a shared library from C text."""
    def compile_c(name, text, *options):
        (tmp_path / f"{name}.c").write_text(text)
        library = tmp_path / f"lib{name}.so"
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", str(library), str(tmp_path / f"{name}.c"), *options],
                       check=True)
        return str(library)
    return compile_c


def test_the_newest_version_of_any_file_decides(build_library):
    old = build_library("old", '__asm__(".symver memcpy, memcpy@GLIBC_2.2.5"); void* memcpy(void*, const void*, '
                               'unsigned long); void* f(void* a) { return memcpy(a, a, *(int*)a); }', "-fno-builtin")
    new = build_library("new", "int pthread_create(); int g(void) { return pthread_create(); }")  # moved in 2.34
    assert (2, 2) in elf.glibc_versions(old)
    assert wheel_tag.platform_tag([old, new], "x86_64") == "manylinux_2_34_x86_64"


def test_a_file_without_versioned_symbols_gets_the_oldest_tag(build_library):
    bare = build_library("bare", "int h(void) { return 1; }", "-nostdlib")
    assert wheel_tag.platform_tag([bare], "aarch64") == "manylinux_2_17_aarch64"


def test_versions_are_those_that_objdump_sees():
    text = subprocess.run(["objdump", "-T", "/bin/bash"], capture_output=True, text=True, check=True).stdout
    seen = {tuple(map(int, version)) for version in re.findall(r"GLIBC_(\d+)\.(\d+)", text)}
    assert elf.glibc_versions("/bin/bash") == seen

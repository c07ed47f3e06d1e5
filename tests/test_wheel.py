"""The wheel and the tarball of output/, used as on a machine that has neither the sources nor the libraries."""

import os
import re
import signal
import socket
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parent.parent
OUTPUT = Path(os.environ.get("DATASYSTEM_OUTPUT_DIR", SOURCE / "output"))
sys.path.insert(0, str(SOURCE / "scripts"))
import elf  # noqa: E402
import wheel_tag  # noqa: E402

VERSION = (SOURCE / "VERSION").read_text().strip()
# Nothing of the surroundings: no PYTHONPATH, no LD_LIBRARY_PATH, no home with packages in it.
BARE = {"PATH": "/usr/bin:/bin", "UCX_TLS": "tcp"}


@pytest.fixture(scope="module")
def wheel():
    wheels = list(OUTPUT.glob("openyuanrong_datasystem-*.whl"))
    assert len(wheels) == 1, f"expected one wheel in {OUTPUT}: bash build.sh -A on -X off"
    return wheels[0]


@pytest.fixture(scope="module")
def venv(wheel, tmp_path_factory):
    folder = tmp_path_factory.mktemp("venv")
    subprocess.run(["/usr/bin/python3", "-m", "venv", folder], check=True)
    subprocess.run([folder / "bin/pip", "install", "--quiet", "--no-index", wheel], check=True, env=BARE)
    return folder


@pytest.fixture(scope="module")
def package(venv):
    return next((venv / "lib").glob("python3*")) / "site-packages/yr/datasystem"


@pytest.fixture
def running_worker(package, tmp_path):
    """A single-node worker of the installed wheel: its process, once it is ready."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with open(tmp_path / "out", "w", encoding="utf-8") as out:
        worker = subprocess.Popen(
            [package / "datasystem_worker", f"--worker_address=127.0.0.1:{port}", "--shared_memory_size_mb=64",
             f"--unix_domain_socket_dir={tmp_path}", f"--log_dir={tmp_path}/log",
             f"--ready_check_path={tmp_path}/ready"],
            env=BARE, cwd=tmp_path, stdout=out, stderr=out)
    deadline = time.monotonic() + 20
    while not (tmp_path / "ready").exists():
        assert worker.poll() is None and time.monotonic() < deadline, (tmp_path / "out").read_text()
        time.sleep(0.01)
    yield worker
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(20) == 0


def test_the_name_tells_version_interpreter_and_the_glibc_that_is_really_needed(wheel, package):
    pattern = rf"openyuanrong_datasystem-{re.escape(VERSION)}-cp3(\d+)-cp3\1-(manylinux_2_\d+_\w+)\.whl"
    match = re.fullmatch(pattern, wheel.name)
    assert match
    assert match.group(2) == wheel_tag.platform_tag(elf.elf_files(package))


def test_every_library_is_in_the_package_or_glibcs(package):
    names = {Path(path).name for path in elf.elf_files(package)}
    for path in elf.elf_files(package):
        for name in elf.needed(path):
            assert elf.GLIBC_LIBRARIES.match(name) or name in names, f"{path} needs {name}"


def test_the_installed_package_imports_and_dscli_runs(venv):
    subprocess.run([venv / "bin/python", "-c", "import yr.datasystem"], check=True, env=BARE, cwd="/")
    result = subprocess.run([venv / "bin/dscli", "--version"], check=True, env=BARE, cwd="/", capture_output=True, text=True)
    assert result.stdout == f"dscli ({VERSION})\n"


def test_the_installed_dscli_writes_the_helm_chart(venv, tmp_path):
    subprocess.run([venv / "bin/dscli", "generate_helm_chart", "-o", tmp_path], check=True, env=BARE)
    chart = SOURCE / "docker" / "chart" / "datasystem"
    written = tmp_path / "datasystem"
    assert {path.relative_to(chart) for path in chart.rglob("*")} == {
        path.relative_to(written) for path in written.rglob("*")}


def test_a_running_worker_has_mapped_glibc_and_the_package_only(running_worker, package):
    maps = Path(f"/proc/{running_worker.pid}/maps").read_text(encoding="utf-8")
    libraries = {line.split()[-1] for line in maps.splitlines() if re.search(r"\.so(\.[0-9.]+)?$", line)}
    assert any(Path(path).name == "libucp.so.0" for path in libraries)
    for path in libraries:
        assert path.startswith(str(package)) or elf.GLIBC_LIBRARIES.match(Path(path).name), path


def test_libraries_of_the_surroundings_do_not_replace_those_of_the_package(package):
    listing = subprocess.run(["ldd", package / "datasystem_worker"], check=True, capture_output=True, text=True,
                             env={**BARE, "LD_LIBRARY_PATH": "/usr/lib/x86_64-linux-gnu"}).stdout
    assert re.search(rf"libucp\.so\.0 => {re.escape(str(package))}/", listing)


def test_the_package_carries_licences_and_what_it_was_built_from(package):
    assert "Apache License" in (package / "licenses/LICENSE").read_text(encoding="utf-8")
    assert (package / "licenses/libucx0.txt").exists()
    assert (package / "VERSION").read_text().strip() == VERSION
    assert (package / ".commit_id").read_text().strip()
    assert '"worker_address"' in (package / "worker_config.json").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def tarball(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tarball")
    with tarfile.open(OUTPUT / f"yr-datasystem-v{VERSION}.tar.gz") as archive:
        archive.extractall(folder)
    return folder


def test_the_tarball_has_service_sdk_and_symbols(tarball):
    for path in ["datasystem/service/datasystem_worker", "datasystem/service/lib/libucp.so.0",
                 "datasystem/service/lib/ucx/libuct_cma.so.0", "datasystem/service/worker_config.json",
                 "datasystem/service/LOG_README", "datasystem/sdk/cpp/include/datasystem/datasystem.h",
                 "datasystem/sdk/cpp/lib/libdatasystem.so", "datasystem/sdk/cpp/lib/cmake/Datasystem/DatasystemConfig.cmake",
                 "DATASYSTEM_SYM/datasystem_worker.sym"]:
        assert (tarball / path).is_file(), path
    assert list((tarball / "datasystem/sdk").glob("*.whl"))
    subprocess.run([tarball / "datasystem/service/datasystem_worker", "--version"], check=True, env=BARE)


def test_the_tarballs_systemd_unit_runs_the_tarballs_worker(tarball):
    unit = (tarball / "datasystem/systemd/datasystem-worker.service").read_text(encoding="utf-8")
    assert "ExecStart=/opt/datasystem/service/datasystem_worker \\\n" in unit
    assert (tarball / "datasystem/systemd/datasystem-worker.env").is_file()


def test_the_cpp_template_of_the_installed_wheel_builds_and_runs(venv, running_worker, tmp_path):
    subprocess.run([venv / "bin/dscli", "generate_cpp_template", "-o", tmp_path], check=True, env=BARE, cwd=tmp_path)
    arguments = Path(f"/proc/{running_worker.pid}/cmdline").read_bytes().decode().split("\0")
    port = next(a for a in arguments if a.startswith("--worker_address=")).rpartition(":")[2]
    ran = subprocess.run([tmp_path / "cpp_template/run.sh", "127.0.0.1", port], check=True, env=BARE,
                         stdout=subprocess.PIPE, text=True)
    assert ran.stdout.splitlines()[-1].startswith("set, got and deleted ")


def test_a_cpp17_program_finds_the_sdk_by_find_package(tarball, tmp_path):
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.18)\nproject(example CXX)\nset(CMAKE_CXX_STANDARD 17)\n"
        "find_package(Datasystem REQUIRED)\nadd_executable(example example.cc)\n"
        "target_link_libraries(example PRIVATE datasystem)\n")
    (tmp_path / "example.cc").write_text(
        '#include "datasystem/datasystem.h"\n'
        "int main() {\n"
        "  datasystem::ConnectOptions options;\n"
        '  options.host = "127.0.0.1";\n'
        "  options.port = 1;\n"
        "  options.connectTimeoutMs = 100;\n"
        "  datasystem::KVClient client(options);\n"
        "  return client.Init().IsOk() ? 1 : 0;  // nobody listens there\n"
        "}\n")
    sdk = tarball / "datasystem/sdk/cpp"
    subprocess.run(["cmake", "-S", tmp_path, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={sdk}"], check=True,
                   stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", tmp_path / "build"], check=True, stdout=subprocess.DEVNULL)
    subprocess.run([tmp_path / "build/example"], check=True, env=BARE, timeout=60)


def test_the_packages_hold_no_path_of_the_build_machine(package, wheel):
    found = [path for path in package.rglob("*") if path.is_file() and
             str(SOURCE).encode() in path.read_bytes()]
    assert not found, f"{wheel.name}: {found}"

#!/usr/bin/env python3
"""Packs a finished build: the wheel and the tarball of output/. Called by build.sh."""
import argparse
import os
import shutil
import subprocess
import sys
import tarfile

import bundle_libraries
import elf
import wheel_tag

SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.append(os.path.join(SOURCE, "cli"))
from dscli import systemd_unit  # noqa: E402

# Where the unit of the tarball expects it to be unpacked.
TARBALL_HOME = "/opt/datasystem"
DISTRIBUTION = "openyuanrong_datasystem"

METADATA = """\
Metadata-Version: 2.1
Name: openyuanrong-datasystem
Version: {version}
Summary: A distributed in-memory cache: worker, command line and Python client
License: Apache-2.0
Requires-Python: >=3.8
Classifier: License :: OSI Approved :: Apache Software License
Classifier: Operating System :: POSIX :: Linux
Description-Content-Type: text/markdown

{readme}"""

ENTRY_POINTS = """\
[console_scripts]
dscli = yr.datasystem.cli.main:main
"""


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build-dir", required=True)
    parser.add_argument("--output-dir", required=True)
    parser.add_argument("--interpreter", required=True, help="the Python that the wheel is for")
    parser.add_argument("--rdma", choices=["on", "off"], required=True)
    parser.add_argument("--python", choices=["ON", "OFF"], required=True)
    parser.add_argument("--strip", choices=["on", "off"], required=True)
    return parser.parse_args()


def run(*command, **options):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, universal_newlines=True, **options).stdout


def read(*parts, default=""):
    path = os.path.join(SOURCE, *parts)
    if not os.path.exists(path):
        return default
    with open(path, encoding="utf-8") as file:
        return file.read()


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def commit_id():
    # The image is built from a tree without .git (docker/Dockerfile).
    if os.environ.get("DS_COMMIT_ID"):
        return os.environ["DS_COMMIT_ID"]
    try:
        return run("git", "-C", SOURCE, "rev-parse", "HEAD", stderr=subprocess.DEVNULL).strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def split_symbols(path, symbols_dir):
    """Moves the symbols of a binary to a file of their own; the binary keeps the name of that file."""
    if symbols_dir is None:
        return
    os.makedirs(symbols_dir, exist_ok=True)
    symbols = os.path.join(symbols_dir, os.path.basename(path) + ".sym")
    run("objcopy", "--only-keep-debug", path, symbols)
    run("strip", "--strip-unneeded", path)
    run("objcopy", f"--add-gnu-debuglink={symbols}", path)


def copy_ours(source, target, symbols_dir):
    os.makedirs(os.path.dirname(target), exist_ok=True)
    shutil.copyfile(source, target)
    os.chmod(target, 0o755)
    split_symbols(target, symbols_dir)


def stage_service(stage, build, options, symbols_dir):
    """datasystem/service: the worker and all it needs. Returns the files that were bundled."""
    service = os.path.join(stage, "datasystem", "service")
    worker = os.path.join(service, "datasystem_worker")
    built = os.path.join(build, "src", "worker", "datasystem_worker")
    copy_ours(built, worker, symbols_dir)
    bundle_libraries.set_rpath(worker, "$ORIGIN/lib")
    bundled = bundle_libraries.bundle(built, os.path.join(service, "lib"), options.rdma == "on")
    write(os.path.join(service, "worker_config.json"), run(built, "--print_flags=json"))
    write(os.path.join(service, "LOG_README"), read("docs", "LOG_README"))
    units = systemd_unit.files(f"{TARBALL_HOME}/service/datasystem_worker", "datasystem")
    for name, text in units.items():
        write(os.path.join(stage, "datasystem", "systemd", name), text)
    return bundled


def stage_sdk(stage, build, symbols_dir):
    """datasystem/sdk/cpp, by the install rules of the SDK."""
    sdk = os.path.join(stage, "datasystem", "sdk", "cpp")
    run("cmake", "--install", build, "--component", "sdk", "--prefix", sdk)
    for path in list(elf.elf_files(sdk)):
        outside = [name for name in elf.needed(path)
                   if not elf.GLIBC_LIBRARIES.match(name) and not name.startswith(("libstdc++.", "libgcc_s."))]
        if outside:
            raise SystemExit(f"{path} needs {', '.join(outside)}: an application may have others of that name")
        split_symbols(path, symbols_dir)


def stage_wheel(stage, build, version, symbols_dir, bundled):
    """The tree of the wheel, below stage/wheel."""
    root = os.path.join(stage, "wheel")
    package = os.path.join(root, "yr", "datasystem")
    ignored = shutil.ignore_patterns("__pycache__", "*.pyc")
    shutil.copytree(os.path.join(SOURCE, "python", "yr"), os.path.join(root, "yr"), ignore=ignored)
    shutil.copytree(os.path.join(SOURCE, "cli", "dscli"), os.path.join(package, "cli"), ignore=ignored)
    shutil.copytree(os.path.join(SOURCE, "cli", "cpp_template"), os.path.join(package, "cpp_template"))
    shutil.copytree(os.path.join(SOURCE, "docker", "chart", "datasystem"),
                    os.path.join(package, "helm_chart", "datasystem"))
    shutil.copytree(os.path.join(SOURCE, "include"), os.path.join(package, "include"))
    shutil.copytree(os.path.join(stage, "datasystem", "service"), package, dirs_exist_ok=True)
    lib = os.path.join(package, "lib")
    modules = [name for name in os.listdir(os.path.join(build, "python", "yr", "datasystem", "lib"))
               if name.startswith("libds_client_py") and name.endswith(".so")]
    for name in modules:
        copy_ours(os.path.join(build, "python", "yr", "datasystem", "lib", name), os.path.join(lib, name), symbols_dir)
    # For C++ programs: dscli generate_cpp_template.
    shutil.copy(os.path.join(stage, "datasystem", "sdk", "cpp", "lib", "libdatasystem.so"), lib)
    unlicensed = bundle_libraries.copy_licenses(bundled, os.path.join(package, "licenses"))
    if unlicensed:
        print(f"make_packages.py: no copyright file found for: {', '.join(unlicensed)}", file=sys.stderr)
    write(os.path.join(package, "licenses", "LICENSE"), read("LICENSE"))
    write(os.path.join(package, "VERSION"), version + "\n")
    write(os.path.join(package, ".commit_id"), commit_id() + "\n")
    write(os.path.join(package, "README.md"), read("README.md"))
    return root


def check_self_contained(root):
    """Every library that a file in the tree asks for is glibc's or in the tree."""
    names = {os.path.basename(path) for path in elf.elf_files(root)}
    for path in elf.elf_files(root):
        outside = [name for name in elf.needed(path) if not elf.GLIBC_LIBRARIES.match(name) and name not in names]
        if outside:
            raise SystemExit(f"{path} needs {', '.join(outside)}, which the package does not have")


def make_wheel(root, output, version, interpreter):
    from wheel.wheelfile import WheelFile  # Debian: python3-wheel

    python = run(interpreter, "-c", "import sys; print('cp%d%d' % sys.version_info[:2])").strip()
    platform = wheel_tag.platform_tag(elf.elf_files(root))
    tag = f"{python}-{python}-{platform}"
    info = os.path.join(root, f"{DISTRIBUTION}-{version}.dist-info")
    write(os.path.join(info, "METADATA"), METADATA.format(version=version, readme=read("README.md")))
    write(os.path.join(info, "WHEEL"),
          f"Wheel-Version: 1.0\nGenerator: make_packages.py\nRoot-Is-Purelib: false\nTag: {tag}\n")
    write(os.path.join(info, "entry_points.txt"), ENTRY_POINTS)
    write(os.path.join(info, "top_level.txt"), "yr\n")
    write(os.path.join(info, "LICENSE"), read("LICENSE"))
    wheel = os.path.join(output, f"{DISTRIBUTION}-{version}-{tag}.whl")
    with WheelFile(wheel, "w") as archive:  # writes RECORD and keeps the modes
        archive.write_files(root)
    return wheel


def main():
    options = arguments()
    build, output = options.build_dir, options.output_dir
    version = read("VERSION").strip()
    stage = os.path.join(build, "package")
    shutil.rmtree(stage, ignore_errors=True)
    os.makedirs(output, exist_ok=True)
    for old in os.listdir(output):
        if old.startswith((f"{DISTRIBUTION}-", "yr-datasystem-v")):
            os.remove(os.path.join(output, old))

    symbols = os.path.join(stage, "DATASYSTEM_SYM") if options.strip == "on" else None
    bundled = stage_service(stage, build, options, symbols)
    stage_sdk(stage, build, symbols)
    made = []
    if options.python == "ON":
        root = stage_wheel(stage, build, version, symbols, bundled)
        check_self_contained(root)
        made.append(make_wheel(root, output, version, options.interpreter))
        shutil.copy(made[0], os.path.join(stage, "datasystem", "sdk"))
    tarball = os.path.join(output, f"yr-datasystem-v{version}.tar.gz")
    with tarfile.open(tarball, "w:gz", compresslevel=6) as archive:
        archive.add(os.path.join(stage, "datasystem"), "datasystem")
        if symbols is not None:
            archive.add(symbols, "DATASYSTEM_SYM")
    for path in made + [tarball]:
        print(f"  {path} ({os.path.getsize(path) / 1e6:.1f} MB)")


if __name__ == "__main__":
    main()

"""Copies what a program needs beyond glibc into a folder beside it, so that it runs from there alone.

The copies keep their names: they serve one program of ours, which finds them by its own RPATH (DT_RPATH, so
that no LD_LIBRARY_PATH of the surroundings puts other libraries in their place). See docs/decisions/0004.md.
"""
import glob
import os
import shutil
import subprocess

import elf

# Header-only or linked statically into our binaries: their copyright files travel too.
COMPILED_IN = ["libasio-dev", "libprotozero-dev", "libfmt-dev", "libspdlog-dev", "libxxhash-dev", "pybind11-dev",
               "nlohmann-json3-dev",
               "libstdc++6", "libgcc-s1"]


def set_rpath(path, rpath):
    subprocess.run(["patchelf", "--force-rpath", "--set-rpath", rpath, path], check=True)


def _copy(source, folder, name, rpath):
    os.makedirs(folder, exist_ok=True)
    target = os.path.join(folder, name)
    shutil.copyfile(os.path.realpath(source), target)
    os.chmod(target, 0o755)
    set_rpath(target, rpath)
    return target


def _plugins(closure, rdma):
    """What is loaded by name at run time, so that no dynamic section tells: (file, folder, name, RPATH)."""
    ucs = closure.get("libucs.so.0")
    if ucs is None:
        return
    modules = ["cma"] + (["ib", "rdmacm"] if rdma else [])
    for module in modules:
        # libucs looks in the folder "ucx" beside itself.
        name = f"libuct_{module}.so.0"
        yield os.path.join(os.path.dirname(ucs), "ucx", name), "ucx", name, "$ORIGIN/.."
    if rdma:
        # libibverbs asks for these by bare name when its own folder does not have them; see below.
        # Not mlx5: libuct_ib links it, and a second copy would not know the devices that the first one opened.
        for provider in sorted(glob.glob(os.path.join(os.path.dirname(ucs), "libibverbs", "lib*-rdmav*.so"))):
            if not os.path.basename(provider).startswith("libmlx5-"):
                yield provider, "libibverbs", os.path.basename(provider), "$ORIGIN/.."


def bundle(program, folder, rdma):
    """Copies the closure of `program` into `folder` and returns the original files."""
    sources = {}

    def take_closure(path):
        closure = elf.resolved(path)
        for name, source in closure.items():
            if elf.GLIBC_LIBRARIES.match(name) or name in sources:
                continue
            if source is None:
                raise SystemExit(f"{path} needs {name}, which is not installed")
            # The provider search of libibverbs follows its own RPATH.
            rpath = "$ORIGIN:$ORIGIN/libibverbs" if name.startswith("libibverbs.so") else "$ORIGIN"
            _copy(source, folder, name, rpath)
            sources[name] = source
        return closure

    closure = take_closure(program)
    for source, subfolder, name, rpath in _plugins(closure, rdma):
        take_closure(source)
        _copy(source, os.path.join(folder, subfolder), name, rpath)
        sources[name] = source
    return sorted({os.path.realpath(source) for source in sources.values()})


def _debian_packages(files):
    """File -> package. One query for all of them: dpkg reads its whole database each time."""
    # Some packages still list their files below /lib, which is a link today.
    spellings = {path: path for path in files}
    spellings.update({path[len("/usr"):]: path for path in files if path.startswith("/usr/lib")})
    listing = subprocess.run(["dpkg-query", "-S", *spellings], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                             universal_newlines=True).stdout
    owners = {}
    for line in listing.splitlines():
        package, _, path = line.partition(": ")
        if path in spellings:
            owners[spellings[path]] = package.split(":")[0]
    return owners


def copy_licenses(files, folder):
    """The copyright file of every package that `files` came from. Returns files without one."""
    os.makedirs(folder, exist_ok=True)
    if shutil.which("dpkg-query") is None:
        return list(files)
    owners = _debian_packages(files)
    packages = set(COMPILED_IN) | set(owners.values())
    for package in sorted(packages):
        copyright_file = f"/usr/share/doc/{package}/copyright"
        if os.path.exists(copyright_file):
            shutil.copyfile(copyright_file, os.path.join(folder, f"{package}.txt"))
    return [path for path in files if path not in owners]

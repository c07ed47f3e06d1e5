"""What the packaging asks of ELF files. Reads them through binutils' readelf."""
import os
import re
import subprocess

# A plain glibc system has these; everything else that a program needs must travel with it.
GLIBC_LIBRARIES = re.compile(
    r"^(ld-linux.*|linux-vdso|libc|libm|libdl|libpthread|librt|libresolv|libutil|libanl|libmvec)\.so(\.|$)")


def is_elf(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def elf_files(root):
    """All ELF files below a folder, links left out."""
    for folder, _, names in os.walk(root):
        for name in sorted(names):
            path = os.path.join(folder, name)
            if not os.path.islink(path) and is_elf(path):
                yield path


def _readelf(option, path):
    return subprocess.run(["readelf", option, "--wide", path], check=True, stdout=subprocess.PIPE,
                          universal_newlines=True, env={**os.environ, "LC_ALL": "C"}).stdout


def needed(path):
    """Names of the libraries that the dynamic section asks for."""
    return re.findall(r"\(NEEDED\)\s+Shared library: \[([^]]+)\]", _readelf("-d", path))


def soname(path):
    match = re.search(r"\(SONAME\)\s+Library soname: \[([^]]+)\]", _readelf("-d", path))
    return match.group(1) if match else None


def glibc_versions(path):
    """The (major, minor) of each GLIBC symbol version that the file needs."""
    text = _readelf("--version-info", path)
    needs = text.partition("Version needs section")[2]
    return {(int(major), int(minor)) for major, minor in re.findall(r"\bGLIBC_(\d+)\.(\d+)", needs)}


def resolved(path):
    """Library name -> file, of all that the loader would load for `path` here; None where it finds nothing."""
    listing = subprocess.run(["ldd", path], check=True, stdout=subprocess.PIPE, universal_newlines=True,
                             env={**os.environ, "LC_ALL": "C"}).stdout
    files = {}
    for line in listing.splitlines():
        name, arrow, target = line.strip().partition(" => ")
        if arrow:
            files[name] = None if target.startswith("not found") else target.rsplit(" (", 1)[0]
    return files

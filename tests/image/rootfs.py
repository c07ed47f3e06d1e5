"""The image's root file system, without a container engine and without a network.

The base is what debian:12-slim is: Debian's essential packages and those that the image installs,
with what they depend on. They are taken from this machine, file by file, so that a file which the
image would miss is missing here as well. On top of it the instructions of the Dockerfile's final
stage are really executed.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from container import enter

SOURCE = Path(__file__).resolve().parent.parent.parent
DOCKERFILE = SOURCE / "docker" / "Dockerfile"
_LEFT_OUT = re.compile(r"^/usr/share/(doc|man|locale|info|lintian)/|^/boot|^/var/cache")


def instructions():
    """(stage, instruction, text) of the whole Dockerfile; stage is a name, None for the last."""
    text = re.sub(r"^\s*#.*\n", "", DOCKERFILE.read_text(encoding="utf-8"), flags=re.M)
    text = text.replace("\\\n", " ")
    stage, found = None, []
    for line in filter(str.strip, text.splitlines()):
        word, rest = line.strip().split(None, 1)
        if word == "FROM":
            named = re.search(r" AS (\w+)$", rest)
            stage = named.group(1) if named else None
        found.append((stage, word, rest.strip()))
    return found


@dataclass
class Image:
    """What an engine knows of an image beside its files."""
    root: Path
    environment: dict = field(default_factory=dict)
    user: str = "0:0"
    folder: str = "/"
    entrypoint: list = field(default_factory=list)


def build(output, folder):
    """The image from the packages in `output`; `folder` gets its files."""
    image = Image(Path(folder) / "root")
    _lay_base(image.root)
    stage = [(word, text) for stage, word, text in instructions() if stage is None]
    for word, text in stage[[word for word, _ in stage].index("FROM") + 1:]:
        if word == "RUN":
            subprocess.run(enter(image.root, ["/bin/sh", "-c", text]), check=True,
                           stdout=subprocess.DEVNULL, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"})
        elif word == "COPY":
            _copy(shlex.split(text), output, image.root)
        elif word == "ENV":
            image.environment.update(pair.split("=", 1) for pair in shlex.split(text))
        elif word == "USER":
            image.user = text
        elif word == "WORKDIR":
            image.folder = text
        elif word == "ENTRYPOINT":
            image.entrypoint = json.loads(text)
        else:
            assert word in ("ARG", "LABEL"), f"{word} {text}: this builder does not know it"
    return image


def _copy(words, output, root):
    options = [word for word in words if word.startswith("--")]
    source, target = words[len(options):]
    target = root / target.lstrip("/")
    if options == ["--from=build"] and source == "/image/":
        subprocess.run(["bash", SOURCE / "docker" / "lay_out.sh", output, target], check=True)
        subprocess.run(["chown", "-R", "0:0", *target.iterdir()], check=True)
    else:
        assert not options, f"COPY {words}: this builder does not know it"
        shutil.copy(SOURCE / source, target)


def _lay_base(root):
    packages = _base_packages()
    paths = {path for path in _lines("dpkg-query", "-L", *packages)
             if path.startswith("/") and path != "/." and not _LEFT_OUT.match(path)
             and os.path.lexists(path)}
    root.mkdir()
    for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32"):
        if os.path.islink(f"/{name}"):
            os.symlink(os.readlink(f"/{name}"), root / name)
    _copy_tree(paths, root)
    _copy_tree(_alternatives(root), root)
    for name in ("passwd", "group"):
        shutil.copy(f"/usr/share/base-passwd/{name}.master", root / "etc" / name)
    (root / "etc/ld.so.conf.d").mkdir(exist_ok=True)
    _copy_tree({"/etc/ld.so.conf"} | set(map(str, Path("/etc/ld.so.conf.d").iterdir())), root)
    subprocess.run(["ldconfig", "-r", root], check=True)
    (root / "tmp").chmod(0o1777)
    _write_dpkg_status(packages, root)


def _base_packages():
    deps = (SOURCE / "scripts/install_deps.sh").read_text(encoding="utf-8")
    wanted = re.search(r"^debian_image=\((.*?)\)", deps, re.M | re.S).group(1).split()
    installed = {}
    for row in _lines("dpkg-query", "-W", "-f",
                      "${db:Status-Abbrev}|${Package}|${Essential}|${Priority}\n"):
        status, name, essential, priority = row.split("|")
        if status.startswith("ii"):
            installed[name] = essential == "yes" or priority == "required"
    missing = set(wanted) - set(installed)
    assert not missing, f"not installed: {missing}; bash scripts/install_deps.sh"
    wanted += [name for name, is_base in installed.items() if is_base]
    tree = _lines("apt-cache", "depends", "--recurse", "--installed", "--important", *wanted)
    return sorted({line for line in tree if line in installed} | set(wanted))


def _lines(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


def _copy_tree(paths, root):
    """Each path alone, not what a folder holds; links stay links."""
    # /bin/x is /usr/bin/x where /bin is a link.
    real = {os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
            for path in paths}
    names = "\0".join(sorted(path.lstrip("/") for path in real))
    pack = subprocess.Popen(["tar", "-C", "/", "--null", "--no-recursion", "-T", "-", "-c"],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    unpack = subprocess.Popen(["tar", "-C", root, "-x", "--keep-directory-symlink"],
                              stdin=pack.stdout)
    pack.stdin.write(names.encode())
    pack.stdin.close()
    assert unpack.wait() == 0 and pack.wait() == 0


def _alternatives(root):
    """Links that packages make at installation, such as /usr/bin/awk, if they lead somewhere."""
    found = set()
    for link in [*Path("/usr/bin").iterdir(), *Path("/usr/sbin").iterdir()]:
        if link.is_symlink() and os.readlink(link).startswith("/etc/alternatives/"):
            if (root / os.path.realpath(link).lstrip("/")).exists():
                found |= {str(link), os.readlink(link)}
    return found


def _write_dpkg_status(packages, root):
    """What install_deps.sh asks for what is there."""
    stanzas = Path("/var/lib/dpkg/status").read_text(encoding="utf-8").split("\n\n")
    ours = [text for text in stanzas if text.split("\n")[0].removeprefix("Package: ") in packages]
    (root / "var/lib/dpkg/info").mkdir(parents=True, exist_ok=True)
    (root / "var/lib/dpkg/status").write_text("\n\n".join(ours) + "\n", encoding="utf-8")

"""UCX: which one is loaded, what it offers, whether UCX_TLS can be met."""

import os
import re
import subprocess
from typing import Dict, Iterator, List, Tuple

from .asking import Answer
from .finding import Finding, ok, warning
from .plan import Plan

_OLDEST = (1, 10)
# What UCX_TLS calls them, besides their own names: the beginnings of the names that are meant.
_NAMES: Dict[str, Tuple[str, ...]] = {
    "ib": ("rc", "ud", "dc"),
    "rc": ("rc",),
    "ud": ("ud",),
    "dc": ("dc",),
    "rc_x": ("rc_mlx5",),
    "rc_v": ("rc_verbs",),
    "ud_x": ("ud_mlx5",),
    "ud_v": ("ud_verbs",),
    "dc_x": ("dc_mlx5",),
    "shm": ("posix", "sysv", "xpmem", "cma", "knem"),
    "sm": ("posix", "sysv", "xpmem", "cma", "knem"),
    "mm": ("posix", "sysv", "xpmem"),
    "tcp": ("tcp",),
    "self": ("self",),
    "cuda": ("cuda",),
    "rocm": ("rocm",),
}


def check(plan: Plan, answer: Answer) -> Iterator[Finding]:
    if not answer.transport:
        return  # the worker has said why
    yield version(answer)
    if plan.rdma and plan.environment.get("UCX_TLS") and not answer.errors.get("transport"):
        yield transports_asked_for(plan.environment["UCX_TLS"], answer)
    yield other_ucx(answer, _found_elsewhere(plan))


def version(answer: Answer) -> Finding:
    text = answer.transport.get("ucx_version", "")
    offers = ", ".join(
        f"{each['transport']}/{each['device']}" for each in answer.transport.get("devices", ())
    )
    told = f"version {text}, offers {offers or 'nothing'}"
    numbers = tuple(int(part) for part in re.findall(r"\d+", text)[:2])
    if numbers < _OLDEST:
        return warning(
            "ucx",
            f"{told}. Older than 1.10, which nobody has tried",
            "bash scripts/install_deps.sh",
        )
    return ok("ucx", told)


def transports_asked_for(tls: str, answer: Answer) -> Finding:
    """That none exists is an error, of which the worker tells; here it is about some of them."""
    if tls.startswith("^") or tls == "all":
        return ok("UCX_TLS", f"UCX_TLS={tls} names no transport that must exist")
    existing = answer.transports()
    missing = [word for word in tls.split(",") if not _exists(word, existing)]
    rest = [word for word in tls.split(",") if word not in missing]
    if missing:
        return warning(
            "UCX_TLS",
            f"UCX_TLS={tls}: {', '.join(missing)} does not exist here, only {', '.join(existing)}",
            f"export UCX_TLS={','.join(rest)}" if rest else "unset UCX_TLS",
        )
    return ok("UCX_TLS", f"all of UCX_TLS={tls} exist")


def _exists(word: str, existing: List[str]) -> bool:
    word = word.lstrip("\\").partition(":")[0]
    return any(name.startswith(_NAMES.get(word, (word,))) for name in existing)


def other_ucx(answer: Answer, elsewhere: List[str]) -> Finding:
    """`elsewhere`: folders with another libucp that the loader knows of."""
    folders = sorted(
        {
            os.path.dirname(path)
            for path in answer.transport.get("ucx_libraries", ())
            if os.path.basename(os.path.dirname(path)) != "ucx"
        }
    )
    used = ", ".join(folders) or "unknown"
    if len(folders) > 1:
        return warning(
            "second ucx",
            (
                f"parts of UCX come from different folders: {used}. Versions that do not belong "
                "together crash"
            ),
            "unset LD_LIBRARY_PATH",
        )
    others = [folder for folder in elsewhere if os.path.realpath(folder) not in folders]
    if others:
        return ok(
            "second ucx",
            f"the worker loads UCX from {used}; the one in {', '.join(others)} stays unused",
        )
    return ok("second ucx", f"there is one UCX, in {used}")


def _found_elsewhere(plan: Plan) -> List[str]:
    """Of LD_LIBRARY_PATH and of the loader's cache."""
    folders = [
        folder for folder in plan.environment.get("LD_LIBRARY_PATH", "").split(":") if folder
    ]
    found = [folder for folder in folders if os.path.exists(os.path.join(folder, "libucp.so.0"))]
    try:
        cache = subprocess.run(
            ["ldconfig", "-p"],
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
            env={**os.environ, "PATH": os.environ.get("PATH", "") + ":/sbin:/usr/sbin"},
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        cache = ""
    found += [os.path.dirname(path) for path in re.findall(r"libucp\.so\S* .*=> (\S+)", cache)]
    return list(dict.fromkeys(found))

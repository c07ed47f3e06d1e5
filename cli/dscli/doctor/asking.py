"""The worker's own word: it runs the steps of a start that can fail, without starting."""

import json
import re
import subprocess
from dataclasses import dataclass, field
from typing import Any, Dict, Iterator, List, Tuple

from .. import package
from ..console import CommandError
from ..worker_flags import Flags
from .finding import Finding, failure, ok, refusal, warning
from .plan import Plan

# It waits up to 20 s for RDMA packets that get lost.
_ANSWER_MAX_S = 90

_NO_RDMA = "--enable_rdma false"


@dataclass(frozen=True)
class Answer:
    """Empty if the worker gave none."""

    errors: Dict[str, str] = field(default_factory=dict)  # step -> what is wrong with it, or ""
    transport: Dict[str, Any] = field(default_factory=dict)
    members: Tuple[str, ...] = ()  # of the cluster in etcd, by address
    remarks: Tuple[str, ...] = ()  # the worker's warnings
    problem: str = ""  # why there is no answer

    def rdma_devices(self) -> List[str]:
        """As mlx5_0:1, each once."""
        devices = (each["device"] for each in self.transport.get("devices", ()) if each["rdma"])
        return list(dict.fromkeys(devices))

    def transports(self) -> List[str]:
        return list(dict.fromkeys(each["transport"] for each in self.transport.get("devices", ())))


def ask(flags: Flags, prefix: List[str]) -> Answer:
    """`prefix` is the numactl command of a start, if there is one."""
    try:
        command = [
            *prefix,
            package.worker_binary(),
            "--check=json",
            *(f"--{k}={v}" for k, v in flags.items()),
        ]
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_ANSWER_MAX_S,
            check=False,
        )
    except (CommandError, OSError) as reason:
        return Answer(problem=str(reason))
    except subprocess.TimeoutExpired:
        return Answer(problem=f"the worker has not answered within {_ANSWER_MAX_S} s")
    try:
        document = _document(done.stdout)
        errors = {step["name"]: step["error"] for step in document["checks"]}
        return Answer(
            errors, document["transport"], tuple(document.get("members", ())), _remarks(done.stderr)
        )
    except (ValueError, KeyError, TypeError):
        said = done.stderr.strip() or done.stdout.strip() or f"it ended with code {done.returncode}"
        return Answer(problem=said)


def _document(said: str) -> Dict[str, Any]:
    """With UCX_LOG_LEVEL set, UCX writes to the same output, before and after."""
    begin = re.search(r"^\{$", said, re.MULTILINE)
    if not begin:
        raise ValueError("no document")
    return json.JSONDecoder().raw_decode(said, begin.start())[0]


def _remarks(said: str) -> Tuple[str, ...]:
    """Log lines on a standard error, "[time] [warning] file:line | ... | text": the texts."""
    return tuple(
        line.rsplit(" | ", 1)[-1].strip() for line in said.splitlines() if "] [warning] " in line
    )


def check(plan: Plan, answer: Answer) -> Iterator[Finding]:
    if answer.problem:
        lines = [line for line in answer.problem.splitlines() if not line.startswith("(")]
        yield failure("worker", "; ".join(lines), "datasystem_worker --help explains every flag")
        return
    yield _address(plan, answer)
    yield from _transport(plan, answer)
    for remark in answer.remarks:
        yield warning("worker", remark)


def _address(plan: Plan, answer: Answer) -> Finding:
    error = answer.errors.get("address", "")
    if error:
        return refusal("address", error)
    listened = plan.flags.get("bind_address") or plan.worker_address
    return ok("address", f"{listened} is of this machine, its port is free")


def _transport(plan: Plan, answer: Answer) -> Iterator[Finding]:
    error = answer.errors.get("transport", "")
    tls = plan.environment.get("UCX_TLS")
    if error.startswith("RDMA has to lock"):
        yield refusal("locked memory", error)
    elif "packets get lost" in error:
        yield failure(
            "transport", error, "export UCX_IB_GID_INDEX=N, N being another line of `rdma gids`"
        )
    elif error:
        yield failure("transport", error, _other_transport(answer, tls))
    else:
        how = answer.transport.get("device") or "devices of UCX's choice"
        kind = "RDMA" if answer.transport.get("rdma") else "tcp"
        yield ok(
            "transport",
            f"{kind} over {how}: UCX opens it, and a connection to itself carries messages",
        )
        if plan.rdma and not answer.transport.get("rdma"):
            yield warning(
                "transport",
                (
                    f"enable_rdma is true, but UCX_TLS={tls} names no RDMA transport that exists: "
                    "payload would go over tcp"
                ),
                _other_transport(answer, tls),
            )


def _other_transport(answer: Answer, tls: "str | None") -> str:
    for transport, name in (("rc_mlx5", "rc_x"), ("rc_verbs", "rc_v")):
        if transport in answer.transports() and tls != name:
            return f"export UCX_TLS={name}"
    return _NO_RDMA

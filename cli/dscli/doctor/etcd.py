"""etcd: are its servers there, healthy and fast, and does their clock agree with ours?"""

import email.utils
import http.client
import json
import statistics
import time
from dataclasses import dataclass
from typing import Iterator, List, Optional

from .asking import Answer
from .finding import Finding, failure, ok, warning
from .plan import Plan

_TIMEOUT_S = 3
_ANSWER_BYTES_MAX = 1 << 16
_QUESTIONS = 5
_SHOWN_MAX = 8
_OLDEST = (3, 4)
# A renewal of the lease has to be a small part of its interval, 1 s by default.
_SLOW_S = 0.1
# The Date of an answer has whole seconds. No promise leans on clocks of the day; only log lines are
# compared by them.
_SKEW_MAX_S = 2.0


@dataclass(frozen=True)
class Server:
    endpoint: str
    problem: str = ""  # why it cannot be used; the rest is then empty
    version: str = ""
    healthy: bool = False
    latency_s: float = 0.0
    skew_s: Optional[float] = None  # its clock less ours; None if it sends no Date


def check(plan: Plan, answer: Answer) -> Iterator[Finding]:
    if not plan.etcd_endpoints:
        yield ok("etcd", "no etcd_address: a cluster of this one node needs none")
        return
    servers = [ask(endpoint) for endpoint in plan.etcd_endpoints]
    reached = [server for server in servers if not server.problem]
    error = answer.errors.get("etcd", "")
    if error:
        yield failure(
            "etcd", error, f"etcdctl --endpoints {plan.flags['etcd_address']} endpoint health"
        )
    for server in servers:
        # What the worker has said already.
        if not (error and server.problem):
            yield from judge(server, others=len([each for each in reached if each != server]))
    if reached and not error:
        yield members(plan, answer)


def members(plan: Plan, answer: Answer) -> Finding:
    name = plan.flags.get("cluster_name") or "default"
    others = [address for address in answer.members if address != plan.worker_address]
    told = f"cluster {name}: " + (
        f"{len(others)} other workers, {', '.join(others[:_SHOWN_MAX])}"
        + (", ..." if len(others) > _SHOWN_MAX else "")
        if others
        else "no other workers"
    )
    if plan.worker_address in answer.members:
        told += (
            f". {plan.worker_address} itself is still registered by a worker that has gone or is on"
            " another machine: a start takes its place"
        )
    return ok("cluster", told)


def ask(endpoint: str) -> Server:
    host, _, port = endpoint.rpartition(":")
    try:
        connection = http.client.HTTPConnection(host.strip("[]"), int(port), timeout=_TIMEOUT_S)
    except ValueError:
        return Server(endpoint, f"{endpoint!r} is not host:port")
    try:
        connection.connect()
        latencies: List[float] = []
        skew = None
        version = ""
        for _ in range(_QUESTIONS):
            begin, wall = time.monotonic(), time.time()
            body, date = _get(connection, "/version")
            latencies.append(time.monotonic() - begin)
            version = str(json.loads(body)["etcdserver"])
            if date:
                # Half a second: the part that the Date leaves out, on average.
                there = email.utils.parsedate_to_datetime(date).timestamp() + 0.5
                skew = there - (wall + latencies[-1] / 2)
        body, _ = _get(connection, "/health")
        healthy = str(json.loads(body).get("health")).lower() == "true"
        return Server(endpoint, "", version, healthy, statistics.median(latencies), skew)
    except (OSError, http.client.HTTPException) as reason:
        return Server(
            endpoint, getattr(reason, "strerror", None) or str(reason) or type(reason).__name__
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return Server(endpoint, "what answers there is not etcd")
    finally:
        connection.close()


def judge(server: Server, others: int) -> Iterator[Finding]:
    """`others`: how many of the other servers can be reached."""
    name = server.endpoint
    if server.problem:
        level = warning if others else failure
        yield level(
            "etcd",
            f"{name}: {server.problem}"
            + (f"; {others} of the others can be reached" if others else ""),
            f"etcdctl --endpoints {name} endpoint health",
        )
        return
    numbers = tuple(int(part) for part in server.version.split(".")[:2] if part.isdigit())
    told = f"{name}: version {server.version}, answers in {server.latency_s * 1000:.1f} ms"
    if not server.healthy:
        yield failure(
            "etcd",
            f"{told}, but says that it is not healthy: has the cluster a leader?",
            f"etcdctl --endpoints {name} endpoint status",
        )
    elif numbers < _OLDEST:
        yield warning("etcd", f"{told}; 3.4 and 3.5 are known to work", "install etcd 3.4 or newer")
    elif server.latency_s > _SLOW_S:
        yield warning(
            "etcd",
            f"{told}, which is slow: leases of workers may end by mistake",
            f"etcdctl --endpoints {name} check perf",
        )
    else:
        yield ok("etcd", told)
    yield clock(server)


def clock(server: Server) -> Finding:
    if server.skew_s is None:
        return ok(
            "clock", f"{server.endpoint} does not tell its time, so the clocks cannot be compared"
        )
    if abs(server.skew_s) > _SKEW_MAX_S:
        ahead = "ahead of" if server.skew_s > 0 else "behind"
        return warning(
            "clock",
            (
                f"{server.endpoint} is {abs(server.skew_s):.0f} s {ahead} this machine. Nothing"
                " depends on it but the comparison of log lines"
            ),
            "timedatectl set-ntp true",
        )
    return ok(
        "clock",
        (
            f"{server.endpoint} and this machine agree within {_SKEW_MAX_S:.0f} s (as exact as its"
            " answers are)"
        ),
    )


def _get(connection: http.client.HTTPConnection, path: str) -> "tuple[bytes, str]":
    """The body and the Date of an answer; OSError if it is none."""
    connection.request("GET", path)
    answer = connection.getresponse()
    body = answer.read(_ANSWER_BYTES_MAX)
    if answer.status not in (200, 503):  # 503: not healthy, told in the body
        raise ValueError(f"{path}: {answer.status}")
    return body, answer.getheader("Date", "")

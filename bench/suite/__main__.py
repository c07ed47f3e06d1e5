"""Runs the groups and prints the table; called by run.sh, which builds first."""

import argparse
import json
import os
import platform
import shutil
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from . import table
from .local_group import LocalGroup
from .memory_group import MemoryGroup
from .node_group import NodeGroup
from .remote_group import RemoteGroup
from .samples import Samples
from .servers import BenchError, Servers
from .start_group import StartGroup
from .transport import Transport

GROUPS = {group.name: group for group in (LocalGroup, NodeGroup, RemoteGroup, StartGroup, MemoryGroup)}
RUNS_MIN, RUNS_MAX = 1, 50
# No further run of a group begins after its share of the time. What is left over: starting and stopping.
SHARES = {"local": 0.3, "node": 0.2, "remote": 0.35, "start": 0.05, "memory": 0.05}
# Above this load per processor before the start, somebody else is busy.
_QUIET_LOAD = 0.3


@dataclass
class Setup:
    servers: Servers
    transport: Transport
    worker_binary: str
    driver_binary: str
    keys_binary: str


def parse_arguments():
    parser = argparse.ArgumentParser(prog="bench/run.sh", description="Ratios to peers, measured in one run.")
    parser.add_argument("--build", type=Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--runs", type=int, default=5, help="medians are over so many (default 5)")
    parser.add_argument("--seconds", type=int, default=480, help="about the longest it may take (default 480)")
    parser.add_argument("--only", choices=GROUPS, action="append", help="this group only; may be repeated")
    parser.add_argument("--markdown", action="store_true", help="print the README's section")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write rows and samples there")
    arguments = parser.parse_args()
    if not RUNS_MIN <= arguments.runs <= RUNS_MAX:
        parser.error(f"--runs is {arguments.runs}, expected {RUNS_MIN} to {RUNS_MAX}")
    return arguments


def progress(text):
    print(f"bench: {text}", file=sys.stderr, flush=True)


def run_group(group, runs, seconds, samples):
    """The rows, and how many runs they come from."""
    deadline = time.monotonic() + seconds
    done = 0
    try:
        group.start()
        while done < runs and (done == 0 or time.monotonic() < deadline):
            progress(f"{group.name}, run {done + 1} of {runs}")
            group.run(done, samples)
            done += 1
    finally:
        group.stop()
    return list(group.rows(samples)), done


def heading(runs, transport, load_before, seconds):
    made = ", ".join(f"{number} ({name})" for name, number in runs.items())
    processors = os.cpu_count()
    quiet = load_before[0] / processors <= _QUIET_LOAD
    noise = "" if quiet else " **The machine was busy with other work: read nothing but large ratios.**"
    return (f"{processors} vCPU, Linux {platform.release().split('-')[0]}, {platform.machine()}; medians of "
            f"runs: {made}; {seconds:.0f} s in all. Load average before the start: {load_before[0]:.1f}.{noise} "
            f"Between workers: `{transport}`.")


def main():
    arguments = parse_arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    build = arguments.build.resolve()
    folder = Path(tempfile.mkdtemp(prefix="ds-bench."))
    transport = Transport()
    worker_binary = str(build / "src/worker/datasystem_worker")
    servers = Servers(folder, worker_binary, transport)
    setup = Setup(servers, transport, worker_binary, str(build / "bench/bench_driver"),
                  str(build / "bench/bench_shard_keys"))
    load_before = os.getloadavg()
    started = time.monotonic()
    samples, rows, runs = Samples(), [], {}
    kept = True
    try:
        servers.start_etcd()
        for name in GROUPS:
            if not arguments.only or name in arguments.only:
                new_rows, runs[name] = run_group(GROUPS[name](setup), arguments.runs,
                                                 arguments.seconds * SHARES[name], samples)
                rows += new_rows
        kept = False
    except BenchError as reason:
        sys.exit(f"bench: {reason}\nbench: logs are in {folder}")
    finally:
        servers.stop()
        if not kept:
            shutil.rmtree(folder)
    text = heading(runs, transport, load_before, time.monotonic() - started)
    print(text, "", table.markdown(rows) if arguments.markdown else table.plain(rows), sep="\n")
    if arguments.json:
        arguments.json.write_text(json.dumps({
            "heading": text, "rows": [dict(zip(table.HEADINGS, row.cells())) for row in rows],
            "samples": samples.by_name}, indent=1))


if __name__ == "__main__":
    main()

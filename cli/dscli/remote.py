"""Work on many nodes at once, over ssh.

One ssh per node, up to _PARALLEL_MAX at a time; a node that fails does not stop the others. A line
is printed for each as it ends, and a summary. When dscli is interrupted or the time is over, the
local ssh is ended; the wrapper on the node then sees its standard input close and ends what it
started there, so that nothing goes on unattended.
"""

import argparse
import os
import queue
import shlex
import signal
import subprocess
import threading
from contextlib import suppress
from typing import IO, Callable, List

from . import console
from .cluster_file import Cluster
from .console import CommandError
from .validation import checked_path

LIMIT_S = 300.0
_PARALLEL_MAX = 32
_CONNECT_TIMEOUT_S = 10
_GRACE_S = 5.0
_SHOWN_MAX = 4000
_KEPT_MAX = 1 << 20  # of what a node says: a script may print without end

# $1: a name for the temporary file, $2: bytes of it that come first on standard input, $3: the
# command, in which $file is that file. Job control gives the command a process group of its own.
_WRAPPER = r"""
set -m
umask 077
cd || exit 1
file=$(mktemp ".dscli.$1.XXXXXX") || exit 1
file=$PWD/$file
trap 'rm -f "$file"' EXIT
head -c "$2" >"$file" || exit 1
if [ "$(wc -c <"$file")" -ne "$2" ]; then
  echo "the transfer broke off, or the disk is full" >&2
  exit 1
fi
exec 3<&0 </dev/null
export file
bash -c "$3" 3<&- & job=$!
{ cat <&3 >/dev/null; kill -TERM -- "-$job"; } >/dev/null 2>&1 & watch=$!
exec 2>/dev/null  # what bash says of its jobs
wait "$job"; status=$?
kill -TERM -- "-$watch"
wait "$watch"
exit "$status"
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-f", "--cluster_config_path", metavar="FILE", required=True,
                        help="the cluster_config.json (dscli generate_config makes one)")
    parser.add_argument(
        "--ssh_config",
        metavar="FILE",
        help="ssh's configuration instead of ~/.ssh/config: ports, jump hosts, host keys")


class Nodes:
    """The nodes of a cluster file. Threads: run_on_all() starts and joins them."""

    def __init__(self, cluster: Cluster, args: argparse.Namespace):
        self._cluster = cluster
        self._options = ["-o", "BatchMode=yes", "-o", f"ConnectTimeout={_CONNECT_TIMEOUT_S}",
                         "-o", "ServerAliveInterval=15", "-o", "ServerAliveCountMax=4",
                         "-o", "LogLevel=ERROR", "-i", cluster.private_key]
        if args.ssh_config:
            path = checked_path(args.ssh_config)
            if not os.path.isfile(path):
                raise CommandError(f"--ssh_config {path} is not a file")
            self._options = ["-F", path, *self._options]
        self._lock = threading.Lock()
        self._stopping = False
        self._running: List[subprocess.Popen] = []

    def run(self,
            node: str,
            name: str,
            content: str,
            command: str,
            limit_s: float = LIMIT_S) -> str:
        """What `command` said, run in a login bash of the node; "$file" in it holds `content`."""
        data = content.encode("utf-8", "surrogateescape")
        wrapper = shlex.join(["bash", "-c", _WRAPPER, "dscli", name, str(len(data)), command])
        remote = "bash -lc " + shlex.quote(f"exec {wrapper}")
        argv = ["ssh", *self._options, "-l", self._cluster.user, "--", node, remote]
        return self._finish(self._start(argv, subprocess.PIPE), data, limit_s, node)

    def fetch(self, node: str, path: str, target: str) -> None:
        """Copies a folder of the node into the folder `target`."""
        host = f"[{node}]" if ":" in node else node
        argv = [
            "scp", *self._options, "-q", "-r", "--", f"{self._cluster.user}@{host}:{path}", target
        ]
        self._finish(self._start(argv, subprocess.DEVNULL), b"", LIMIT_S, node)

    def run_on_all(self, job: Callable[[str], str]) -> None:
        """`job` does one node's work and returns its line; CommandError: that node failed."""
        todo: "queue.Queue[str]" = queue.Queue()
        done: "queue.Queue[tuple]" = queue.Queue()
        for node in self._cluster.nodes:
            todo.put(node)
        threads = [threading.Thread(target=self._work, args=(job, todo, done), daemon=True)
                   for _ in range(min(_PARALLEL_MAX, len(self._cluster.nodes)))]
        succeeded: List[str] = []
        failed: List[str] = []
        try:
            for thread in threads:
                thread.start()
            for _ in self._cluster.nodes:
                node, line, reason = done.get()
                if reason is None:
                    succeeded.append(node)
                    console.info(line)
                else:
                    failed.append(node)
                    console.error(f"Node {node} execute failed: {reason}")
        except KeyboardInterrupt:
            self._interrupt(threads)
            while not done.empty():
                node, line, reason = done.get()
                if reason is None:
                    succeeded.append(node)
                    console.info(line)
            open_nodes = [n for n in self._cluster.nodes if n not in succeeded + failed]
            raise CommandError(f"interrupted; done: {_names(succeeded)}; failed: {_names(failed)}; "
                               f"given up: {_names(open_nodes)}") from None
        console.info(f"{len(succeeded)} of {len(self._cluster.nodes)} nodes succeeded" +
                     (f", failed: {_names(failed)}" if failed else ""))
        if failed:
            raise CommandError("Some nodes failed during processing")

    def _work(self, job: Callable[[str], str], todo: queue.Queue, done: queue.Queue) -> None:
        while True:
            try:
                node = todo.get_nowait()
            except queue.Empty:
                return
            try:
                done.put((node, job(node), None))
            except Exception as reason:  # one node's trouble, of whatever kind, is its own
                done.put((node, None, str(reason) or repr(reason)))

    def _start(self, argv: List[str], stdin: int) -> subprocess.Popen:
        with self._lock:
            if self._stopping:
                raise CommandError("interrupted")
            try:
                # A session of its own: Ctrl-C at the terminal must reach dscli first, not ssh.
                process = subprocess.Popen(argv, stdin=stdin, stdout=subprocess.PIPE,
                                           stderr=subprocess.STDOUT, start_new_session=True)
            except FileNotFoundError:
                raise CommandError(f"{argv[0]} is not on PATH; install openssh-client "
                                   "(openEuler: openssh-clients)") from None
            self._running.append(process)
            return process

    def _finish(self, process: subprocess.Popen, data: bytes, limit_s: float, node: str) -> str:
        over = threading.Event()

        def end_it() -> None:
            over.set()
            _end(process)

        timer = threading.Timer(limit_s, end_it)
        timer.daemon = True
        timer.start()
        try:
            if process.stdin:
                with suppress(BrokenPipeError):  # ssh has failed already: its words tell why
                    process.stdin.write(data)
                    process.stdin.flush()
            # Not communicate(): standard input stays open until the end, see the wrapper.
            said = _end_of(process.stdout).decode(errors="replace").strip()
            code = process.wait()
        finally:
            timer.cancel()
            for pipe in (process.stdin, process.stdout):
                if pipe:
                    with suppress(BrokenPipeError):
                        pipe.close()
            with self._lock:
                self._running.remove(process)
        if over.is_set():
            raise CommandError(f"it did not end within {limit_s:g} seconds")
        if self._stopping and code != 0:
            raise CommandError("interrupted")
        if code != 0:
            raise CommandError(_explained(code, said[-_SHOWN_MAX:], f"{self._cluster.user}@{node}"))
        return said

    def _interrupt(self, threads: List[threading.Thread]) -> None:
        # A second Ctrl-C must not cut this short: it takes _GRACE_S at most.
        for again in (signal.SIGINT, signal.SIGTERM):
            signal.signal(again, signal.SIG_IGN)
        with self._lock:
            self._stopping = True
            running = list(self._running)
        for process in running:
            process.terminate()
        for process in running:
            _end(process)
        for thread in threads:
            thread.join(_GRACE_S)


def _end_of(stream: IO[bytes]) -> bytes:
    kept = b""
    for chunk in iter(lambda: stream.read1(65536), b""):
        kept = (kept + chunk)[-_KEPT_MAX:]
    return kept


def _end(process: subprocess.Popen) -> None:
    process.terminate()
    try:
        process.wait(_GRACE_S)
    except subprocess.TimeoutExpired:
        process.kill()


def _names(nodes: List[str]) -> str:
    return ", ".join(nodes) or "none"


def _explained(code: int, said: str, login: str) -> str:
    remedy = ""
    if "Host key verification failed" in said:
        remedy = (f"\n the host key is not known: connect once by hand (ssh {login}), or set "
                  "StrictHostKeyChecking accept-new in ssh's configuration")
    elif "Permission denied (" in said:
        remedy = (f"\n the node does not accept the key: ssh-copy-id -i <ssh_private_key> {login}, "
                  "and check ssh_user_name")
    elif code == 127:
        remedy = (
            f"\n dscli is not on PATH in a login shell of {login}: install the wheel there and add "
            "its bin folder to PATH in ~/.profile")
    elif code == 255:
        remedy = f"\n check that the node is up and that this works: ssh {login} true"
    return f"{said or f'exit code {code}'}{remedy}"

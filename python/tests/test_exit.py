"""The end of the interpreter, with threads inside the client."""

import subprocess
import sys

import pytest

PROGRAM = """
import socket, sys, threading
from yr.datasystem import KVClient

silent = socket.create_server(("127.0.0.1", 0))  # accepts, and hangs up
def hang_up():
    while True:
        silent.accept()[0].close()
def call():
    client = KVClient("127.0.0.1", silent.getsockname()[1], timeout_ms=200)
    while True:
        try:
            client.init()
        except RuntimeError:
            calls.append(1)
calls = []
for target in [hang_up] + 4 * [call]:
    threading.Thread(target=target, daemon=True).start()
while len(calls) < 200:
    pass
"""


@pytest.mark.parametrize("attempt", range(5))
def test_a_program_ends_well_while_daemon_threads_are_inside_the_client(attempt):
    ended = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr

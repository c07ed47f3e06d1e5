"""The descriptors of memory that a worker hands out: what can be done with them, and clients that cannot take them."""

import ctypes
import errno
import fcntl
import mmap
import os
import subprocess
import sys

import pytest

from cluster import wait_until
from session_wire import CONTROL, DATA, INDEX, MARKS, Session

MIB = 1 << 20
_F_SEAL_FUTURE_WRITE = 0x10  # not in every Python
_PUNCH_HOLE_KEEP_SIZE = 3
_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_long, ctypes.c_long]
_MADV_REMOVE = 9


def error_of(result):
    """The error of a call of the C library; 0 if it succeeded."""
    return 0 if result == 0 else ctypes.get_errno()


@pytest.fixture
def session(pair):
    session = Session(pair[0], unix_socket=True)
    yield session
    session.close()


def test_a_mapping_of_the_index_cannot_be_made_writable(session):
    descriptor, size = session.segments()[INDEX]
    address = _libc.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, descriptor, 0)
    assert address and address != ctypes.c_void_p(-1).value
    try:
        assert error_of(_libc.mprotect(address, size, mmap.PROT_READ | mmap.PROT_WRITE)) == errno.EACCES
        assert error_of(_libc.madvise(address, size, _MADV_REMOVE)) != 0
    finally:
        _libc.munmap(address, size)
    assert error_of(_libc.fallocate(descriptor, _PUNCH_HOLE_KEEP_SIZE, 0, size)) == errno.EPERM


@pytest.mark.parametrize("kind", [DATA, INDEX, MARKS, CONTROL], ids=["data", "index", "marks", "control"])
def test_nobody_can_seal_memory_against_others(session, kind):
    descriptor, size = session.segments()[kind]
    sealed = fcntl.fcntl(descriptor, fcntl.F_GET_SEALS)
    assert sealed & (fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW) == (
        fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
    assert bool(sealed & _F_SEAL_FUTURE_WRITE) == (kind == INDEX)
    for seal in (fcntl.F_SEAL_WRITE, _F_SEAL_FUTURE_WRITE):
        with pytest.raises(PermissionError):
            fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seal)
    assert error_of(_libc.fallocate(descriptor, 0, 0, size + 4096)) == errno.EPERM


def test_pages_that_a_client_takes_away_come_back(cluster):
    worker, = cluster.start(1)
    client = worker.client()
    client.set("before", b"b" * MIB)
    vandal = Session(worker, unix_socket=True)
    for kind in (DATA, MARKS, CONTROL):
        descriptor, size = vandal.segments()[kind]
        assert error_of(_libc.fallocate(descriptor, _PUNCH_HOLE_KEEP_SIZE, 0, size)) == 0
    assert len(client.get(["before"])[0]) == MIB  # its bytes are gone: values are within a client's reach
    for size in (100, 20_000, 32 * MIB):
        client.set("after", b"a" * size)
        assert client.get(["after"]) == [b"a" * size]
    vandal.close()
    client.delete(["before", "after"])
    wait_until(lambda: worker.status()["memory"]["allocated_bytes"] == 0, what="release of all memory")


LIMITED = """
import os, resource, sys
from yr.datasystem import KVClient
client = KVClient(sys.argv[1], int(sys.argv[2]), timeout_ms=10000)
kind, more = sys.argv[3], int(sys.argv[4])
used = (len(os.listdir("/proc/self/fd")) - 1 if kind == "RLIMIT_NOFILE" else
        int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize())
resource.setrlimit(getattr(resource, kind), (used + more, used + more))
try:
    client.init()
    client.set("limited", b"x" * 700_000)
    assert client.get(["limited"]) == [b"x" * 700_000]
    print("works")
except RuntimeError as error:
    print(error)
"""


@pytest.mark.parametrize("kind,amounts,words", [
    ("RLIMIT_NOFILE", range(8), ("Too many open files", "the limit on open files (ulimit -n) is reached")),
    ("RLIMIT_AS", (MIB, 40 * MIB, 100 * MIB, 500 * MIB), ("Cannot allocate memory",))])
def test_a_client_that_cannot_take_the_memory_says_why_and_leaves_nothing_behind(cluster, kind, amounts, words):
    worker, = cluster.start(1)
    worker.status()

    def held():
        return worker.status()["clients"]["count"], len(os.listdir(f"/proc/{worker.pid}/fd"))
    before = held()
    outputs = [subprocess.run([sys.executable, "-c", LIMITED, worker.host, str(worker.port), kind, str(amount)],
                              capture_output=True, text=True, check=True, timeout=60).stdout for amount in amounts]
    assert outputs[-1] == "works\n"
    failures = [output for output in outputs if output != "works\n"]
    assert failures and all(any(word in failure for word in words) for failure in failures), outputs
    wait_until(lambda: held() == before, what=f"the end of all that they held: {before}")

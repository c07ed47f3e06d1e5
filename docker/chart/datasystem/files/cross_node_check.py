"""What `helm test` runs: a value set through each worker is read through every other one.

    cross_node_check.py PORT NAME...     names or addresses of workers; a name may stand for many
"""
import hashlib
import os
import socket
import sys
import time

from yr.datasystem import KVClient

SIZE_BYTES = 1 << 20


def addresses(names, port):
    found = set()
    for name in names:
        for row in socket.getaddrinfo(name, port, type=socket.SOCK_STREAM):
            found.add(row[4][0])
    return sorted(found)


def connected(address, port):
    client = KVClient(address, port)
    client.init()
    return client


def main():
    port = int(sys.argv[1])
    try:
        workers = addresses(sys.argv[2:], port)
    except OSError as error:
        sys.exit(f"[FAILED] {' '.join(sys.argv[2:])}: {error}; is no worker ready?")
    print(f"{len(workers)} worker(s): {' '.join(workers)}", flush=True)
    clients = {address: connected(address, port) for address in workers}
    run = f"{os.getpid()}-{time.time_ns()}"
    for source, writer in clients.items():
        key = f"helm-test-{run}-{workers.index(source)}"
        value = hashlib.sha256(key.encode()).digest() * (SIZE_BYTES // 32)
        writer.set(key, value)
        for target, reader in clients.items():
            start = time.perf_counter()
            if reader.get([key])[0] != value:
                sys.exit(f"[FAILED] set through {source}, another value through {target}")
            took_ms = (time.perf_counter() - start) * 1000
            print(f"[OK] {SIZE_BYTES} bytes from {source} through {target} in {took_ms:.2f} ms",
                  flush=True)
        writer.delete([key])
    if len(workers) == 1:
        print("There is one worker: nothing crossed between nodes.")


if __name__ == "__main__":
    main()

"""One step of quickstart.sh's cross-node check, run by the interpreter that has the wheel installed.

    cross_node_check.py set|get|lanes HOST PORT
"""
import hashlib
import json
import sys
import time

from yr.datasystem import KVClient
from yr.datasystem.lib.libds_client_py import worker_report

KEY = "quickstart"
VALUE = hashlib.sha256(b"datasystem").digest() * 32768  # 1 MiB


def connected(host, port):
    client = KVClient(host, port)
    client.init()
    return client


def timed(call):
    start = time.perf_counter()
    result = call()
    return result, (time.perf_counter() - start) * 1000


def main():
    step, host, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
    if step == "set":
        client = connected(host, port)
        _, took_ms = timed(lambda: client.set(KEY, VALUE))
        print(f"[OK] Set value: {len(VALUE)} bytes through {host}:{port} in {took_ms:.2f} ms")
    elif step == "get":
        client = connected(host, port)
        values, took_ms = timed(lambda: client.get([KEY]))
        if values[0] != VALUE:
            sys.exit("the value that came back is not the one that was set")
        print(f"[OK] Get value: {len(VALUE)} bytes through {host}:{port} in {took_ms:.2f} ms")
    else:
        report = json.loads(worker_report(host, port, 5000))
        for peer in report["peers"]:
            print(f"[OK] Transport: {peer['lane']} to {peer['address']}")


if __name__ == "__main__":
    main()

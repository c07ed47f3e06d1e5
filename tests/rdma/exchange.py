"""exchange.py set|get|lanes HOST [PEER]: values of all sizes from node 1 to node 2, and which way they went."""

import hashlib
import json
import sys

from yr.datasystem import KVClient
from yr.datasystem.lib.libds_client_py import worker_report

PORT = 31501
KIB, MIB = 1 << 10, 1 << 20
SIZES = (1, 64, 4095, 4096, 65_537, 500 * KIB, MIB - 1, MIB, 8 * MIB + 1, 64 * MIB)


def content(size):
    """Bytes that no other size has, and that are quick to make on an emulated processor."""
    block = hashlib.sha256(str(size).encode()).digest() * 128
    return (block * (size // len(block) + 1))[:size]


def status(host):
    return json.loads(worker_report(host, PORT, 60_000))


def set_values(host):
    with KVClient(host, PORT, timeout_ms=120_000) as client:
        for size in SIZES:
            client.set(f"value-{size}", content(size))


def get_values(host, peer):
    with KVClient(host, PORT, timeout_ms=120_000) as client:
        for size in SIZES:
            got, = client.get([f"value-{size}"])
            assert hashlib.sha256(got).digest() == hashlib.sha256(content(size)).digest(), f"{size} bytes differ"
            print(f"{size} bytes arrived whole", flush=True)
        # A batch, and a value that is in place of another.
        assert client.get([f"value-{size}" for size in SIZES]) == [content(size) for size in SIZES]
        client.set("back", content(3 * MIB))
    check_lane(host, peer, "payload_bytes_received", sum(SIZES))


def check_lane(host, peer, counter, at_least):
    of_peer, = [each for each in status(host)["peers"] if each["address"] == peer]
    print(f"lane {of_peer['lane']}, {counter} {of_peer[counter]}", flush=True)
    lanes = of_peer["lane"].split(",")
    assert lanes and all(lane.startswith("rc") for lane in lanes), f"it went over {lanes}"
    assert of_peer[counter] >= at_least, f"only {of_peer[counter]} bytes of {at_least} went this way"


def lanes(host, peer):
    with KVClient(host, PORT, timeout_ms=120_000) as client:
        assert client.get(["back"]) == [content(3 * MIB)]
    check_lane(host, peer, "payload_bytes_sent", sum(SIZES))


if __name__ == "__main__":
    what, *arguments = sys.argv[1:]
    {"set": set_values, "get": get_values, "lanes": lanes}[what](*arguments)

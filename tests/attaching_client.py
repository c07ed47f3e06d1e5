"""attaching_client.py HOST PORT [--uid UID] [--root FOLDER]: uses a worker from inside of something narrow.

Loads all that it needs, then gives up its user or its root folder. Prints "shared" if values came through shared
memory, "socket" if not.
"""

import argparse
import os

from yr.datasystem import KVClient

SIZE = 1 << 20


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("host")
    parser.add_argument("port", type=int)
    parser.add_argument("--uid", type=int)
    parser.add_argument("--root")
    arguments = parser.parse_args()
    with open("/proc/self/maps", encoding="ascii") as maps:
        if arguments.root:
            os.chroot(arguments.root)
            os.chdir("/")
        if arguments.uid:
            os.setgroups([])
            os.setgid(arguments.uid)
            os.setuid(arguments.uid)
        client = KVClient(arguments.host, arguments.port, timeout_ms=10000)
        client.init()
        assert client.get(["from-outside"]) == [b"o" * SIZE]
        view = client.get_read_only_buffers(["from-outside"])[0].immutable_data()
        client.set("from-inside", b"i" * SIZE)
        buffers = client.mcreate(["filled-inside"], [SIZE])
        buffers[0].memory_copy(b"f" * SIZE)
        client.mset_buffer(buffers)
        assert bytes(view) == b"o" * SIZE
        print("shared" if "/memfd:" in maps.read() else "socket", flush=True)


if __name__ == "__main__":
    main()

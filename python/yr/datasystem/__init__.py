"""Client of the datasystem, a distributed in-memory cache.

    from yr.datasystem import KVClient

    client = KVClient("127.0.0.1", 31501)
    client.init()
    client.set("key", b"value")
    assert client.get(["key"]) == [b"value"]
"""

from .kv_client import KVClient
from .lib.libds_client_py import WriteMode
from .util import Context, Status

__all__ = ["Context", "KVClient", "Status", "WriteMode"]

"""Client of the datasystem, a distributed in-memory cache.

    from yr.datasystem import KVClient

    client = KVClient("127.0.0.1", 31501)
    client.init()
    client.set("key", b"value")
    assert client.get(["key"]) == [b"value"]
"""

from .kv_client import Buffer, KVClient
from .lib.libds_client_py import WriteMode
from .util import Context, Status

__all__ = ["Buffer", "Context", "KVClient", "Status", "WriteMode"]

_NOT_IN_THIS_VERSION = frozenset({
    "Blob", "ConsistencyType", "CopyRange", "DeviceBlobList", "DsClient", "DsTensorClient", "Future",
    "FutureTimeoutException", "HeteroClient", "MetaInfo", "ObjectClient", "StreamClient", "SubconfigType",
})


def __getattr__(name: str) -> object:
    if name in _NOT_IN_THIS_VERSION:
        raise ImportError(f"this version of yr.datasystem has no {name}: it has the key-value client, "
                          f"KVClient, only", name=__name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

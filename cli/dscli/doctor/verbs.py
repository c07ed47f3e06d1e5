"""What only the verbs library tells of a card: asked without being linked, where there is one."""

import ctypes
import struct
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

# Where the package brings it along; this file is yr/datasystem/cli/doctor/verbs.py.
_BUNDLED = Path(__file__).resolve().parents[2] / "lib" / "libibverbs.so.1"
# struct ibv_device_attr, of 232 bytes: char fw_ver[64], u64 node_guid, u64 sys_image_guid,
# u64 max_mr_size ...
_DEVICE_ATTRIBUTES_BYTES = 1024
_MAX_MR_SIZE_AT = 80
# struct ibv_port_attr: int state, int max_mtu, int active_mtu ...; 1 is 256 bytes, 2 is 512 ...
_ACTIVE_MTU_AT = 8


@dataclass(frozen=True)
class CardFacts:
    max_mr_bytes: int
    active_mtu: int  # bytes of payload a packet; 0 if the port does not say


def query(device: str, port: int = 1) -> Optional[CardFacts]:
    """None if there is no library, no such device, or it cannot be opened."""
    library = _library()
    if library is None:
        return None
    count = ctypes.c_int()
    devices = library.ibv_get_device_list(ctypes.byref(count))
    if not devices:
        return None
    try:
        for i in range(count.value):
            if library.ibv_get_device_name(devices[i]).decode() == device:
                return _query(library, devices[i], port)
        return None
    finally:
        library.ibv_free_device_list(devices)


def _query(library: ctypes.CDLL, handle: int, port: int) -> Optional[CardFacts]:
    context = library.ibv_open_device(handle)
    if not context:
        return None
    try:
        attributes = ctypes.create_string_buffer(_DEVICE_ATTRIBUTES_BYTES)
        if library.ibv_query_device(context, attributes) != 0:
            return None
        max_mr_bytes = struct.unpack_from("=Q", attributes.raw, _MAX_MR_SIZE_AT)[0]
        of_port = ctypes.create_string_buffer(_DEVICE_ATTRIBUTES_BYTES)
        mtu = 0
        if library.ibv_query_port(context, ctypes.c_uint8(port), of_port) == 0:
            step = struct.unpack_from("=i", of_port.raw, _ACTIVE_MTU_AT)[0]
            mtu = 128 << step if 1 <= step <= 5 else 0
        return CardFacts(max_mr_bytes, mtu)
    finally:
        library.ibv_close_device(context)


def _library() -> Optional[ctypes.CDLL]:
    for name in (str(_BUNDLED), "libibverbs.so.1"):
        with suppress(OSError, AttributeError):
            library = ctypes.CDLL(name)
            library.ibv_get_device_list.restype = ctypes.POINTER(ctypes.c_void_p)
            library.ibv_free_device_list.argtypes = [ctypes.POINTER(ctypes.c_void_p)]
            library.ibv_get_device_name.restype = ctypes.c_char_p
            library.ibv_get_device_name.argtypes = [ctypes.c_void_p]
            library.ibv_open_device.restype = ctypes.c_void_p
            library.ibv_open_device.argtypes = [ctypes.c_void_p]
            library.ibv_close_device.argtypes = [ctypes.c_void_p]
            library.ibv_query_device.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
            library.ibv_query_port.argtypes = [ctypes.c_void_p, ctypes.c_uint8, ctypes.c_void_p]
            return library
    return None

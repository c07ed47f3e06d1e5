"""The session protocol by hand (src/proto/session.proto, src/session/frame.h), for what no client would send."""

import socket
import struct

HELLO, HELLO_REPLY, SET = 1, 2, 10
_HEADER = struct.Struct("<IHHIIQQ")
_MAGIC = 0x31535944


def varint(number):
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes(out) + bytes([number])


def number_field(field, number):
    return varint(field << 3) + varint(number)


def bytes_field(field, value):
    return varint(field << 3 | 2) + varint(len(value)) + value


def frame(kind, body=b"", payload=b"", payload_size=None):
    size = len(payload) if payload_size is None else payload_size
    return _HEADER.pack(_MAGIC, kind, 0, len(body), 0, 1, size) + body + payload


def hello(protocol_min=1, protocol_max=1, version=b"test"):
    return frame(HELLO, number_field(1, protocol_min) + number_field(2, protocol_max) + bytes_field(3, version))


class Session:
    """A connection over TCP after its handshake."""

    def __init__(self, worker, first=None):
        self.socket = socket.create_connection((worker.host, worker.port), 20)
        self.send(hello() if first is None else first)
        self.greeting = self.reply()

    def send(self, frame_bytes):
        self.socket.sendall(frame_bytes)

    def _take(self, size):
        data = b""
        while len(data) < size:
            piece = self.socket.recv(size - len(data))
            if not piece:
                raise EOFError("the worker closed the connection")
            data += piece
        return data

    def reply(self):
        """The body of the next frame."""
        magic, _, _, body_size, _, _, payload_size = _HEADER.unpack(self._take(_HEADER.size))
        assert magic == _MAGIC
        body = self._take(body_size)
        self._take(payload_size)
        return body

    def set_if_absent(self, key, value):
        """"" or the reason why not."""
        param = number_field(3, 1)
        self.send(frame(SET, bytes_field(1, key) + bytes_field(2, param) + number_field(3, 20000), value))
        body = self.reply()
        if not body or body[0] != 1 << 3 or body[1] == 0:
            return ""
        return body.decode(errors="replace")

    def close(self):
        self.socket.close()

"""The session protocol by hand (src/proto/session.proto, src/session/frame.h), for what no client would send."""

import array
import os
import socket
import struct

HELLO, HELLO_REPLY, SET, CREATE, CREATE_REPLY, SET_REPLY, ABANDON = 1, 2, 10, 11, 12, 13, 14
GET, GET_REPLY, RELEASE, DELETE, EXIST, EXPIRE, SIZES = 20, 21, 22, 30, 32, 34, 36
HEALTH, REPORT = 40, 41
REQUESTS = (SET, CREATE, ABANDON, GET, RELEASE, DELETE, EXIST, EXPIRE, SIZES)
DATA, INDEX, MARKS, CONTROL = range(4)  # kinds of segments
OK, DUPLICATED, INVALID, NOT_FOUND, DISCONNECT, NOT_SUPPORTED, KEY_EXISTS = 0, 1, 2, 3, 23, 36, 2004
_HEADER = struct.Struct("<IHHIIQQ")
_MAGIC = 0x31535944
_DESCRIPTORS_MAX = 64
# In the control segment: words of 8 bytes, after its header and 4096 pins (src/shm/control_segment.h).
LEASES_AT, LEASE_SLOTS = 64 + 4096 * 4, 32


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


def numbers_field(field, numbers):
    return bytes_field(field, b"".join(map(varint, numbers)))


def fields(body):
    """field number -> its values in order (numbers, or bytes)."""
    found, at = {}, 0

    def take_varint():
        nonlocal at
        number = shift = 0
        while True:
            byte = body[at]
            at += 1
            number |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return number

    while at < len(body):
        tag = take_varint()
        value = take_varint()
        if tag & 7 == 2:
            at, value = at + value, body[at:at + value]
        found.setdefault(tag >> 3, []).append(value)
    return found


def status_of(message):
    """(code, text) of a message that begins with a status."""
    found = fields(message) if isinstance(message, bytes) else message
    return found.get(1, [0])[0], found.get(2, [b""])[0].decode()


def frame(kind, body=b"", payload=b"", payload_size=None):
    size = len(payload) if payload_size is None else payload_size
    return _HEADER.pack(_MAGIC, kind, 0, len(body), 0, 1, size) + body + payload


def hello(protocol_min=2, protocol_max=2, version=b"test", want_segments=False, session=(0, 0)):
    """`session`: id and token of the one to join."""
    return frame(HELLO, number_field(1, protocol_min) + number_field(2, protocol_max) + bytes_field(3, version) +
                 number_field(5, session[0]) + number_field(6, session[1]) + number_field(7, int(want_segments)))


def set_item(key, size, buffer_id=0):
    return bytes_field(1, bytes_field(1, key) + number_field(2, size) + number_field(3, buffer_id))


def set_body(items, only_if_absent=False, all_or_nothing=False, lease_size=0, timeout_ms=20000):
    param = bytes_field(2, number_field(3, int(only_if_absent)))
    return b"".join(items) + param + number_field(3, timeout_ms) + number_field(4, int(all_or_nothing)) + number_field(
        5, lease_size)


class Session:
    """A connection after its handshake: over TCP, or with `unix_socket` and the worker's segments."""

    def __init__(self, worker, first=None, unix_socket=False):
        if unix_socket:
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.settimeout(20)
            self.socket.connect(str(worker.unix_socket))
        else:
            self.socket = socket.create_connection((worker.host, worker.port), 20)
        self.descriptors = []
        self._received = b""
        self.send(hello(want_segments=unix_socket) if first is None else first)
        if unix_socket:
            self._receive_descriptors()
        self.greeting = self.reply()

    def identity(self):
        """(id, token) of the session."""
        found = fields(self.greeting)
        return found[6][0], found[7][0]

    def _receive_descriptors(self):
        size = array.array("i").itemsize * _DESCRIPTORS_MAX
        self._received, ancillary, _, _ = self.socket.recvmsg(1 << 16, socket.CMSG_SPACE(size))
        for _, _, data in ancillary:
            numbers = array.array("i")
            numbers.frombytes(data[:len(data) // numbers.itemsize * numbers.itemsize])
            self.descriptors += numbers

    def segments(self):
        """kind -> (descriptor, size)."""
        listed = [fields(segment) for segment in fields(self.greeting)[10]]
        return {segment.get(3, [0])[0]: (descriptor, segment[2][0])
                for segment, descriptor in zip(listed, self.descriptors, strict=True)}

    def send(self, frame_bytes):
        self.socket.sendall(frame_bytes)

    def _take(self, size):
        data, self._received = self._received[:size], self._received[size:]
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

    def call(self, kind, body, payload=b""):
        """The fields of the answer."""
        self.send(frame(kind, body, payload))
        return fields(self.reply())

    def set(self, items, payload=b"", **options):
        """The status of the whole, and of each item."""
        answer = self.call(SET, set_body(items, **options), payload)
        return status_of(answer), [status_of(item) for item in answer.get(3, [])]

    def set_if_absent(self, key, value):
        """"" or the reason why not."""
        whole, items = self.set([set_item(key, len(value))], value, only_if_absent=True)
        return whole[1] or items[0][1]

    def create(self, *sizes):
        """For each size its status, buffer id, and (segment, offset, size)."""
        answer = self.call(CREATE, numbers_field(1, sizes))
        assert status_of(answer)[0] == OK, answer
        items = [fields(item) for item in answer[3]]
        places = [fields(item.get(4, [b""])[0]) for item in items]
        return [(status_of(item), item.get(3, [0])[0], tuple(place.get(n, [0])[0] for n in (1, 2, 3)))
                for item, place in zip(items, places)]

    def close(self):
        self.socket.close()
        for descriptor in self.descriptors:
            os.close(descriptor)
        self.descriptors = []


def closes(session, data):
    """Whether the worker ends the connection because of it, without an answer."""
    session.send(data)
    try:
        session.reply()
    except (EOFError, ConnectionResetError):
        return True
    return False

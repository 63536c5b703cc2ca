"""Where the numbers of an Arrow IPC message lie: a reader for the few flatbuffer tables that frames need.

The problem: pyarrow writes and reads IPC messages, but does not say where in a message a length or a buffer's offset
is stored, nor whether a body is compressed. The idea: a flatbuffer is a table of offsets that can be followed with a
dozen lines; only `Message` and `RecordBatch` of Arrow's Message.fbs are needed.

Invariants: every position is checked against the bytes at hand before it is read, so a message from the network can be
walked; what does not fit is a ValueError, never a wrong read. Vectors are bounded by the message that holds them.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

__all__ = ["CONTINUATION", "END", "RECORD_BATCH", "SCHEMA", "Message", "read_message"]

CONTINUATION = b"\xff\xff\xff\xff"
END = CONTINUATION + bytes(4)
"""The last eight bytes of a stream."""

SCHEMA, RECORD_BATCH = 1, 3
"""Values of the union MessageHeader."""

Bytes = bytes | bytearray | memoryview

_PAIR = 16
"""Bytes of a FieldNode (length, null_count) and of a Buffer (offset, length)."""


@dataclass(frozen=True, slots=True)
class Message:
    """One encapsulated message; positions count from the start of the bytes that were given to `read_message`."""

    kind: int
    metadata: int
    """Where the flatbuffer begins."""
    body: int
    """Where the body begins: the end of the flatbuffer."""
    body_length: int
    body_length_at: int | None
    """Where the body's length is stored; None where it is the default 0 and therefore left out."""
    rows: int = 0
    rows_at: int | None = None
    nodes: int = 0
    nodes_at: int = 0
    buffers: int = 0
    buffers_at: int = 0
    compressed: bool = False


def read_message(data: Bytes, at: int = 0) -> Message | None:
    """The message at a position; None at the end of the stream, a ValueError where the bytes are not a message.

    The body need not be in ``data``: only the metadata is read.
    """
    try:
        return _read_message(data, at)
    except struct.error as error:
        raise ValueError(f"a message is cut off: {error}") from None


def _read_message(data: Bytes, at: int) -> Message | None:
    if at == len(data):
        return None
    if data[at : at + 4] != CONTINUATION:
        raise ValueError("a message does not begin with the continuation marker")
    size = _number("<i", data, at + 4)
    if size == 0:
        return None
    start, end = at + 8, at + 8 + size
    if size < 0 or end > len(data):
        raise ValueError(f"the metadata of a message is said to have {size} bytes")
    message = _Table(data, start + _number("<I", data, start), start, end)
    kind_at, length_at = message.field(1, 1), message.field(3, 8)
    kind = 0 if kind_at is None else data[kind_at]
    length = 0 if length_at is None else _number("<q", data, length_at)
    if length < 0:
        raise ValueError(f"the body of a message is said to have {length} bytes")
    if kind != RECORD_BATCH:
        return Message(kind, start, end, length, length_at)
    batch = message.table(2)
    rows_at = batch.field(0, 8)
    nodes_at, nodes = batch.pairs(1)
    buffers_at, buffers = batch.pairs(2)
    return Message(
        kind,
        start,
        end,
        length,
        length_at,
        rows=0 if rows_at is None else _number("<q", data, rows_at),
        rows_at=rows_at,
        nodes=nodes,
        nodes_at=nodes_at,
        buffers=buffers,
        buffers_at=buffers_at,
        compressed=batch.field(3, 4) is not None,
    )


class _Table:
    """A flatbuffer table: the fields that are there, by the positions in its vtable."""

    def __init__(self, data: Bytes, at: int, start: int, end: int) -> None:
        self.data, self.at, self.start, self.end = data, self._inside(at, 4, start, end), start, end
        self.fields = self._inside(at - _number("<i", data, at), 4, start, end)
        self.size = _number("<H", data, self.fields)
        self._inside(self.fields, self.size, start, end)

    @staticmethod
    def _inside(at: int, size: int, start: int, end: int) -> int:
        if at < start or at + size > end:
            raise ValueError("an offset points outside of its message")
        return at

    def field(self, number: int, size: int) -> int | None:
        """Where a field of so many bytes is stored; None where it has its default value."""
        entry = 4 + 2 * number
        if entry + 2 > self.size:
            return None
        offset = _number("<H", self.data, self.fields + entry)
        return self._inside(self.at + offset, size, self.start, self.end) if offset else None

    def table(self, number: int) -> _Table:
        return _Table(self.data, self._target(number), self.start, self.end)

    def pairs(self, number: int) -> tuple[int, int]:
        """A vector of structs of two 64-bit integers: where the first lies, and how many there are."""
        if self.field(number, 4) is None:
            return self.end, 0
        at = self._target(number)
        count = _number("<I", self.data, at)
        return self._inside(at + 4, count * _PAIR, self.start, self.end), count

    def _target(self, number: int) -> int:
        at = self.field(number, 4)
        if at is None:
            raise ValueError("a message lacks what it is about")
        return self._inside(at + _number("<I", self.data, at), 4, self.start, self.end)


def _number(form: str, data: Bytes, at: int) -> int:
    if at < 0:
        raise ValueError("an offset points outside of its message")
    value: int = struct.unpack_from(form, data, at)[0]
    return value

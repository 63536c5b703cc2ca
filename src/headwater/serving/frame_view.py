"""The parts of a frame by position: which buffers a column has, and the buffers of a frame that came from outside.

The problem: a request or an answer is a few kilobytes of Arrow that somebody else may have written, and most of the
time is spent where one asks pyarrow for each of its buffers. The idea: `FrameColumn` says which nodes and buffers of a
record batch belong to a column, and `FrameView` shows them as numpy arrays over the bytes that came.

Invariants: a `FrameView` is only made of positions that lie within its bytes; whoever makes one then asks `is_sound`,
which looks at the contents: offsets do not decrease and stay in their data, as many values are null as is said, strings
are valid UTF-8. A sound view can be read by pyarrow and by compiled code without another check.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.base.errors import UnsupportedError

__all__ = ["Bytes", "FrameColumn", "FrameView", "is_fixed_width", "read_batch", "values_of"]

Bytes = bytes | bytearray | memoryview


class FrameColumn:
    """Where the parts of a column lie among the nodes and buffers of a record batch.

    ``form`` is "fixed", "bytes" (utf8 and binary) or "list"; ``bits`` is the width of a value, or of an item of a list,
    and 8 for bytes. ``node`` and ``buffer`` are the numbers of the first node and the first buffer.
    """

    __slots__ = ("bits", "buffer", "form", "name", "node", "type")

    def __init__(self, field: pa.Field, node: int, buffer: int) -> None:
        self.name: str = field.name
        self.type: pa.DataType = field.type
        self.node, self.buffer = node, buffer
        if is_fixed_width(field.type):
            self.form, self.bits = "fixed", field.type.bit_width
        elif pa.types.is_string(field.type) or pa.types.is_binary(field.type):
            self.form, self.bits = "bytes", 8
        elif pa.types.is_list(field.type) and is_fixed_width(field.type.value_type):
            self.form, self.bits = "list", field.type.value_type.bit_width
        else:
            hint = "fixed-width types, strings, binary and lists of fixed-width types can be sent"
            raise UnsupportedError.column_type(field.name, str(field.type), hint)

    @property
    def nodes(self) -> int:
        return 2 if self.form == "list" else 1

    @property
    def buffers(self) -> int:
        return {"fixed": 2, "bytes": 3, "list": 4}[self.form]

    def lengths(self, rows: int, size: int) -> tuple[int, ...]:
        """The bytes of its buffers; ``size`` are the bytes of its data, or the items of its lists."""
        if self.form == "fixed":
            return (rows + 7) >> 3, (rows * self.bits + 7) >> 3
        if self.form == "bytes":
            return (rows + 7) >> 3, 4 * (rows + 1), size
        return (rows + 7) >> 3, 4 * (rows + 1), (size + 7) >> 3, (size * self.bits + 7) >> 3


def is_fixed_width(kind: pa.DataType) -> bool:
    """Whether values of the type lie one after the other in a single buffer,
    a whole number of bytes or one bit each.
    """
    return bool(
        pa.types.is_primitive(kind)
        or pa.types.is_decimal(kind)
        or (pa.types.is_fixed_size_binary(kind) and kind.byte_width > 0)
    )


class FrameView:
    """The buffers of a sound frame, by position: what `FrameLayout.read` found.

    ``places`` and ``lengths`` have an entry per buffer, counted from the start of ``body``; they belong to the layout
    and are not to be changed. ``null_counts`` has one per node; where it is 0, the validity buffer may be empty and
    says nothing.
    """

    __slots__ = ("body", "columns", "lengths", "null_counts", "places", "rows")

    def __init__(
        self,
        columns: Sequence[FrameColumn],
        rows: int,
        body: memoryview,
        places: npt.NDArray[np.int64],
        lengths: npt.NDArray[np.int64],
        null_counts: Sequence[int],
    ) -> None:
        self.columns, self.rows, self.body = columns, rows, body
        self.places, self.lengths, self.null_counts = places, lengths, null_counts

    def values(self, column: int) -> npt.NDArray[Any]:
        """The values of a fixed-width column, or the data of a string column as bytes; without a copy."""
        return values_of(self.columns[column], self.body, self.places, self.lengths, self.rows)

    def offsets(self, column: int) -> npt.NDArray[np.int32]:
        """The rows + 1 offsets of a column of variable size, without a copy."""
        which = self.columns[column]
        assert which.form != "fixed"
        if self.lengths[which.buffer + 1] == 0:
            return np.zeros(1, np.int32)
        return np.frombuffer(self.body, np.int32, self.rows + 1, int(self.places[which.buffer + 1]))

    def valid(self, column: int) -> npt.NDArray[np.bool_] | None:
        """Which values are there; None where all are."""
        which = self.columns[column]
        return self._valid(which.node, which.buffer, self.rows)

    def batch(self) -> pa.RecordBatch:
        """The same as pyarrow's record batch, without a copy."""
        return read_batch(self.body)

    def _valid(self, node: int, buffer: int, rows: int) -> npt.NDArray[np.bool_] | None:
        if self.null_counts[node] == 0:
            return None
        bits = np.frombuffer(self.body, np.uint8, (rows + 7) >> 3, int(self.places[buffer]))
        return np.unpackbits(bits, count=rows, bitorder="little").view(np.bool_)

    def has_sound_nulls(self) -> bool:
        """Whether as many values are null as the nodes say."""
        return not any(self.null_counts) or all(
            self._counted(column.node, column.buffer, self.rows) for column in self.columns
        )

    def is_sound(self, nodes: Sequence[int]) -> bool:
        """Whether offsets and validity agree with the nodes; the buffers are known to be long enough."""
        if not self.has_sound_nulls():
            return False
        for number, column in enumerate(self.columns):
            if column.form == "fixed":
                continue
            offsets = self.offsets(number)
            listed = column.form == "list"
            size = nodes[2 * column.node + 2] if listed else int(self.lengths[column.buffer + 2])
            if offsets[0] < 0 or offsets[-1] > size or (offsets[1:] < offsets[:-1]).any():
                return False
            if listed and not self._counted(column.node + 1, column.buffer + 2, size):
                return False
            if pa.types.is_string(column.type) and not _is_utf8(self.values(number), offsets):
                return False
        return True

    def _counted(self, node: int, buffer: int, rows: int) -> bool:
        claimed = self.null_counts[node]
        if claimed == 0:
            return True
        valid = self._valid(node, buffer, rows) if 0 < claimed <= rows else None
        return valid is not None and rows - int(np.count_nonzero(valid)) == claimed


def read_batch(body: Bytes, schema: pa.Schema | None = None, begin: int = 0) -> pa.RecordBatch:
    """The record batch of a sound frame; where its schema is known and ends at ``begin``, in a third of the time."""
    if schema is None:
        return pa.ipc.open_stream(pa.py_buffer(body)).read_next_batch()
    return pa.ipc.read_record_batch(pa.py_buffer(memoryview(body)[begin:]), schema)


def values_of(
    column: FrameColumn, body: Bytes, places: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64], rows: int
) -> npt.NDArray[Any]:
    """Numbers have their own type, booleans are packed bits,
    data of strings and whatever numpy has no type for is bytes.
    """
    if column.form == "fixed":
        kind = _numpy_type(column.type)
        if kind is not None:
            return np.frombuffer(body, kind, rows, int(places[column.buffer + 1]))
        return np.frombuffer(body, np.uint8, (rows * column.bits + 7) >> 3, int(places[column.buffer + 1]))
    at = column.buffer + (2 if column.form == "bytes" else 3)
    return np.frombuffer(body, np.uint8, int(lengths[at]), int(places[at]))


def _numpy_type(kind: pa.DataType) -> npt.DTypeLike | None:
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        numbers: npt.DTypeLike = kind.to_pandas_dtype()
        return numbers
    if pa.types.is_temporal(kind):
        return np.int64 if kind.bit_width == 64 else np.int32
    return None


def _is_utf8(data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int32]) -> bool:
    """Whether each of the strings is valid UTF-8: all of them together are, and none begins inside of a character."""
    used = data[offsets[0] : offsets[-1]]
    text = used.tobytes()
    if text.isascii():
        return True
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    begins = offsets[:-1][offsets[:-1] < offsets[-1]] - offsets[0]
    return not bool(((used[begins] & 0xC0) == 0x80).any())

"""Frames: Arrow IPC streams of one record batch, made from a template and read by position.

The problem: an answer of 100 keys is computed in some ten microseconds, and pyarrow's writer and reader, which build
and walk a message for every batch, would take longer than that. The idea: the flatbuffer of a record batch message has
the same bytes for every batch of a schema, apart from a few 64-bit integers: the number of rows, the length of the
body, a pair (length, nulls) per field and a pair (offset, length) per buffer. pyarrow writes one message as a template;
after that only those integers are written, and read.

The bytes of a frame, all little-endian:

    schema message | record batch message, padded to 8 bytes | body | end marker (ff ff ff ff 00 00 00 00)

The body has the buffers of each column in Arrow's order: validity (one bit per row), then

    fixed width   values (booleans: one bit per row)
    utf8, binary  rows + 1 offsets of 32 bits, data
    list          rows + 1 offsets of 32 bits, validity of the items, values of the items

Each buffer begins at a multiple of 8 bytes. In the frames of answers a value that is null is NaN where it is a float
and zero where it is anything else, so that numbers can be used as they lie there. Every column has its validity buffer,
also where nothing is null, so columns of equal width next to each other lie at a constant stride, and one strided 2-D
array shows them all without a copy.

Invariants: what `allocate` returns is a valid stream at once (zeros and empty strings, nothing null) as long as offsets
and null counts are kept right by whoever fills it. `FrameLayout.read` trusts nothing: it compares the constant bytes
with the template, checks every offset and length against the bytes that are there, and returns None where anything
deviates; `headwater.serving.frame_reading` then reads with pyarrow and its full validation.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.base.errors import InputError
from headwater.serving.flatbuffer import END, RECORD_BATCH, read_message
from headwater.serving.frame_view import Bytes, FrameColumn, FrameView, read_batch, values_of

__all__ = ["Frame", "FrameColumn", "FrameLayout", "FrameView"]

_INT32_MAX = 2**31 - 1
_LENGTH = struct.Struct("<q")
_NO_END = bytes(len(END))
_KEPT_PLANS = 64
_KEPT_BYTES = 4 << 20
"""How many empty frames a layout keeps at most, so that the next frame of as many rows is one copy."""


class _Plan:
    """Where everything lies in a frame of so many rows and such sizes."""

    __slots__ = ("body_length", "buffers", "image", "lengths", "offsets_at", "places", "total", "vector")

    def __init__(self, layout: FrameLayout, rows: int, sizes: Sequence[int]) -> None:
        lengths: list[int] = []
        given = iter(sizes)
        for column in layout.columns:
            lengths += column.lengths(rows, 0 if column.form == "fixed" else next(given))
        pairs: list[int] = []
        at = 0
        for length in lengths:
            pairs += (at, length)
            at += (length + 7) & ~7
        self.body_length = at
        self.total = layout.body_at + at + len(END)
        self.vector = struct.pack(f"<{len(pairs)}q", *pairs)
        numbers: npt.NDArray[np.int64] = np.array(pairs, np.int64).reshape(-1, 2)
        self.places = numbers[:, 0] + layout.body_at
        self.offsets_at = int(self.places[1])
        """Where the offsets of the first column are, if it has any."""
        self.lengths = np.ascontiguousarray(numbers[:, 1])
        self.buffers = np.stack([self.places, self.lengths], axis=1)
        self.image: bytes | None = None


class FrameLayout:
    """What all frames of a schema have in common. Make one per schema and keep it.

    Examples
    --------
    >>> layout = FrameLayout(pa.schema([("a", pa.float32()), ("b", pa.float32())]))
    >>> frame = layout.allocate(3)
    >>> frame.values(1)[:] = [1.5, 2.5, 3.5]
    >>> frame.batch().to_pydict()
    {'a': [0.0, 0.0, 0.0], 'b': [1.5, 2.5, 3.5]}
    >>> layout.read(frame.buffer).rows
    3
    """

    def __init__(self, schema: pa.Schema) -> None:
        if not schema.names:
            raise InputError.bad_frame("it has no columns")
        self.schema = schema
        self.columns: list[FrameColumn] = []
        self.nodes = self.buffers = 0
        for field in schema:
            column = FrameColumn(field, self.nodes, self.buffers)
            self.columns.append(column)
            self.nodes += column.nodes
            self.buffers += column.buffers
        self.variable = [column for column in self.columns if column.form != "fixed"]
        self._ends_in_data = len(self.variable) == 1 and self.columns[-1].form == "bytes"
        self._row_bits = sum(1 + (column.bits if column.form == "fixed" else 32) for column in self.columns)
        self._node_numbers = struct.Struct(f"<{2 * self.nodes}q")
        self._take_template()
        self._plans: dict[int, _Plan] = {}
        self._kept_bytes = 0

    def _take_template(self) -> None:
        sink = io.BytesIO()
        with pa.ipc.new_stream(sink, self.schema) as writer:
            writer.write_batch(pa.record_batch([pa.nulls(1, f.type) for f in self.schema], schema=self.schema))
        stream = sink.getvalue()
        head = read_message(stream)
        assert head is not None
        batch = read_message(stream, head.body)
        assert batch is not None and batch.kind == RECORD_BATCH and batch.rows == 1
        assert batch.rows_at is not None and batch.body_length_at is not None
        assert (batch.nodes, batch.buffers) == (self.nodes, self.buffers) and batch.body % 8 == 0
        self.schema_message = stream[: head.body]
        self.body_at = batch.body
        self.template = stream[: batch.body]
        self._rows_at, self._body_length_at = batch.rows_at, batch.body_length_at
        self._nodes_at, self._buffers_at = batch.nodes_at, batch.buffers_at
        self.null_counts_at = batch.nodes_at + 8
        """Where the null count of the first node is; that of the next one is 16 bytes further."""
        self.numbers: npt.NDArray[np.int64] = np.array(
            [self.body_at, self._body_length_at, self._buffers_at, self.null_counts_at], np.int64
        )
        """Where the numbers of a frame are, as `headwater.kernels.online_answer` takes it."""
        variable = sorted(
            [
                (self._rows_at, 8),
                (self._body_length_at, 8),
                (self._nodes_at, 16 * self.nodes),
                (self._buffers_at, 16 * self.buffers),
            ]
        )
        self._constant: list[tuple[int, int, bytes]] = []
        at = 0
        for start, size in [*variable, (self.body_at, 0)]:
            assert at <= start, "the numbers of a message do not overlap"
            self._constant.append((at, start, self.template[at:start]))
            at = start + size

    # -- writing ---------------------------------------------------------------------------------------------------

    def allocate(self, rows: int, sizes: Sequence[int] = ()) -> Frame:
        """A frame of so many rows: zeros, nothing null, offsets 0.

        Parameters
        ----------
        rows : int
        sizes : sequence of int
            for each column of variable size, in order: the bytes of its data (utf8, binary) or the items of its lists
        """
        assert rows >= 0 and len(sizes) == len(self.variable), "a size for each column of variable size"
        if not sizes:
            plan = self._plan(rows)
            image = bytearray(plan.image or self._kept_image(plan, rows))
            return Frame(self, rows, image, plan.places, plan.lengths)
        for column, size in zip(self.variable, sizes, strict=True):
            assert size >= 0
            if size > _INT32_MAX:
                raise InputError.frame_too_large(column.name, size)
        if self._ends_in_data:
            return self._lengthened(rows, sizes[0])
        plan = _Plan(self, rows, sizes)
        return Frame(self, rows, self._image(plan, rows, sizes), plan.places, plan.lengths)

    def empty(self, rows: int) -> tuple[bytes | bytearray, npt.NDArray[np.int64]]:
        """A frame of so many rows with nothing of variable size in it, and where its buffers are, and how long."""
        plan = self._plan(rows)
        return plan.image or self._kept_image(plan, rows), plan.buffers

    def text_frame(self, rows: int, data: bytes) -> tuple[bytearray, npt.NDArray[np.int32]]:
        """The stream of a layout of one string column with its data, and its offsets,
        of which all but the last are to be set.
        """
        assert self._ends_in_data and len(self.columns) == 1
        if len(data) > _INT32_MAX:
            raise InputError.frame_too_large(self.columns[0].name, len(data))
        plan = self._plan(rows)
        buffer = self._with_room(plan, rows, len(data))
        at = plan.total - len(END)
        buffer[at : at + len(data)] = data
        offsets: npt.NDArray[np.int32] = np.frombuffer(buffer, np.int32, rows + 1, plan.offsets_at)
        offsets[-1] = len(data)
        return buffer, offsets

    def _lengthened(self, rows: int, size: int) -> Frame:
        """A frame whose last buffer is its only one of variable size."""
        plan = self._plan(rows)
        lengths = plan.lengths.copy()
        lengths[-1] = size
        return Frame(self, rows, self._with_room(plan, rows, size), plan.places, lengths)

    def _with_room(self, plan: _Plan, rows: int, size: int) -> bytearray:
        """A kept image without data, and room for so much of it in the last buffer."""
        kept = plan.image or self._kept_image(plan, rows)
        room = (size + 7) & ~7
        buffer = bytearray(plan.total + room)
        buffer[: plan.total] = kept
        if room:
            buffer[plan.total - len(END) : plan.total] = _NO_END
            buffer[-len(END) :] = END
            _LENGTH.pack_into(buffer, self._body_length_at, plan.body_length + room)
            _LENGTH.pack_into(buffer, self._buffers_at + 16 * self.buffers - 8, size)
        return buffer

    def _plan(self, rows: int) -> _Plan:
        """The plan for so many rows without data of variable size; the plans of a few numbers of rows are kept."""
        plan = self._plans.get(rows)
        if plan is None:
            plan = _Plan(self, rows, (0,) * len(self.variable))
            if len(self._plans) >= _KEPT_PLANS:
                self._plans, self._kept_bytes = {}, 0
            self._plans[rows] = plan
        return plan

    def _kept_image(self, plan: _Plan, rows: int) -> bytes | bytearray:
        image = self._image(plan, rows, (0,) * len(self.variable))
        if len(image) + self._kept_bytes <= _KEPT_BYTES:
            plan.image = bytes(image)
            self._kept_bytes += len(image)
        return image

    def _image(self, plan: _Plan, rows: int, sizes: Sequence[int]) -> bytearray:
        image = bytearray(plan.total)
        image[: self.body_at] = self.template
        _LENGTH.pack_into(image, self._rows_at, rows)
        _LENGTH.pack_into(image, self._body_length_at, plan.body_length)
        image[self._buffers_at : self._buffers_at + len(plan.vector)] = plan.vector
        image[-len(END) :] = END
        ones = _ones(rows)
        given = iter(sizes)
        nodes: list[int] = []
        for column in self.columns:
            nodes += (rows, 0)
            at = int(plan.places[column.buffer])
            image[at : at + len(ones)] = ones
            if column.form != "fixed":
                size = next(given)
                if column.form == "list":
                    nodes += (size, 0)
                    at, items = int(plan.places[column.buffer + 2]), _ones(size)
                    image[at : at + len(items)] = items
        self._node_numbers.pack_into(image, self._nodes_at, *nodes)
        return image

    # -- reading ---------------------------------------------------------------------------------------------------

    def read(self, body: Bytes) -> FrameView | None:
        """The frame in these bytes, checked; None where they are anything else than a sound frame of this layout."""
        view = memoryview(body)
        head = bytes(view[: self.body_at])
        numbers = self._numbers_of(head, view)
        if numbers is None:
            return None
        rows, body_length = numbers
        nodes = self._node_numbers.unpack_from(head, self._nodes_at)
        for column in self.columns:
            if nodes[2 * column.node] != rows:
                return None
        # A frame that `allocate` made has its buffers where the plan has them.
        if not self.variable and rows * self._row_bits <= 8 * body_length:
            plan, at = self._plan(rows), self._buffers_at
            if plan.body_length == body_length and plan.vector == head[at : at + len(plan.vector)]:
                found = FrameView(self.columns, rows, view, plan.places, plan.lengths, nodes[1::2])
                return found if found.has_sound_nulls() else None
        pairs = np.frombuffer(head, np.int64, 2 * self.buffers, self._buffers_at).reshape(-1, 2)
        places, lengths = pairs[:, 0] + self.body_at, np.ascontiguousarray(pairs[:, 1])
        found = FrameView(self.columns, rows, view, places, lengths, nodes[1::2])
        return found if self._fits(pairs.tolist(), nodes, rows, body_length) and found.is_sound(nodes) else None

    def read_rows(self, body: Bytes) -> pa.RecordBatch | None:
        """The same as rows, checked by pyarrow, which is quicker where columns have a variable size."""
        if self._numbers_of(bytes(memoryview(body)[: self.body_at]), memoryview(body)) is None:
            return None
        try:
            rows = read_batch(body, self.schema, len(self.schema_message))
            rows.validate(full=True)
        except (pa.ArrowException, OSError, ValueError):
            return None
        return rows

    def _numbers_of(self, head: bytes, view: memoryview) -> tuple[int, int] | None:
        """The rows of a frame and the bytes of its buffers; None where its other bytes are not those of this layout."""
        if len(head) < self.body_at:
            return None
        for start, end, constant in self._constant:
            if head[start:end] != constant:
                return None
        (rows,) = _LENGTH.unpack_from(head, self._rows_at)
        (body_length,) = _LENGTH.unpack_from(head, self._body_length_at)
        end = self.body_at + body_length
        if not (body_length >= 0 and end <= len(view) and rows >= 0):
            return None
        if end != len(view) and view[end:] != END:
            return None
        return rows, body_length

    def _fits(self, pairs: list[list[int]], nodes: Sequence[int], rows: int, body_length: int) -> bool:
        """Whether every buffer lies in the body and is long enough,
        as far as that can be said without looking inside.
        """
        for offset, length in pairs:
            if offset < 0 or length < 0 or offset % 8 or offset + length > body_length:
                return False
        for column in self.columns:
            at = column.buffer
            size = (
                pairs[at + 2][1]
                if column.form == "bytes"
                else nodes[2 * column.node + 2]
                if column.form == "list"
                else 0
            )
            if size < 0:
                return False
            for place, need in enumerate(column.lengths(rows, size)):
                have = pairs[at + place][1]
                validity = place == 0 or (place == 2 and column.form == "list")
                if have < need:
                    nulls = nodes[2 * (column.node + (place == 2)) + 1]
                    none = validity and have == 0 and nulls == 0  # nothing is null
                    empty = place == 1 and column.form != "fixed" and rows == 0 and have == 0  # no rows, no offsets
                    if not (none or empty):
                        return False
        return True


class Frame:
    """A stream under construction, in one bytearray: fill the buffers at ``places``, set the null counts, send
    ``buffer``.

    ``places`` and ``lengths`` have an entry per buffer of the record batch; they belong to the layout and are not to be
    changed.
    """

    __slots__ = ("buffer", "layout", "lengths", "missing", "places", "rows")

    def __init__(
        self,
        layout: FrameLayout,
        rows: int,
        buffer: bytearray,
        places: npt.NDArray[np.int64],
        lengths: npt.NDArray[np.int64],
    ) -> None:
        self.layout, self.rows, self.buffer = layout, rows, buffer
        self.places, self.lengths = places, lengths
        self.missing = 0
        """How many of its rows stand for keys that have none."""

    @property
    def null_counts(self) -> npt.NDArray[np.int64]:
        """How many values are null, per field node (a list has two: its own and its items'), to be written in place."""
        numbers: npt.NDArray[np.int64] = np.frombuffer(
            self.buffer, np.int64, 2 * self.layout.nodes, self.layout._nodes_at
        )
        return numbers[1::2]

    def set_null_counts(self, counts: Sequence[int] | npt.NDArray[np.int64]) -> None:
        """Set how many values are null, per field node."""
        self.null_counts[:] = counts

    def values(self, column: int) -> npt.NDArray[Any]:
        """The values of a fixed-width column, or the data of a string column as bytes: a view to be written through."""
        return values_of(self.layout.columns[column], self.buffer, self.places, self.lengths, self.rows)

    def offsets(self, column: int) -> npt.NDArray[np.int32]:
        """The rows + 1 offsets of a column of variable size: a view to be written through."""
        which = self.layout.columns[column]
        assert which.form != "fixed"
        return np.frombuffer(self.buffer, np.int32, self.rows + 1, int(self.places[which.buffer + 1]))

    def validity(self, column: int) -> npt.NDArray[np.uint8]:
        """The validity bits of a column, lowest bit first: a view to be written through."""
        at = int(self.places[self.layout.columns[column].buffer])
        return np.frombuffer(self.buffer, np.uint8, (self.rows + 7) >> 3, at)

    def reader(self) -> pa.RecordBatchReader:
        """The stream, read by pyarrow without a copy."""
        return pa.ipc.open_stream(pa.py_buffer(self.buffer))

    def batch(self) -> pa.RecordBatch:
        """The record batch, read by pyarrow without a copy."""
        return read_batch(self.buffer, self.layout.schema, len(self.layout.schema_message))


def _ones(bits: int) -> bytes:
    whole, rest = divmod(bits, 8)
    return b"\xff" * whole + (bytes([(1 << rest) - 1]) if rest else b"")

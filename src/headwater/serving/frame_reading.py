"""Reading Arrow streams that came from outside: by position where the schema is known, else by pyarrow, fully
validated.

The problem: the body of a request is whatever somebody sent. Most come from our own client and can be read in a few
microseconds; the rest may be any Arrow stream, or an attack. The idea: the schema message is compared with those that
are known; where it is one of them, `FrameLayout.read` reads the batch by position. Everything else is walked message by
message first, so that nothing is decompressed or built that could be larger than what was sent, and then read and
validated by pyarrow.

Invariants: what is returned has only types that a frame can have, its row count is bounded by the bytes that were sent,
and strings are valid UTF-8. Whatever is wrong is an InputError or UnsupportedError; memory stays within a small
multiple of the body.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from headwater.base.errors import InputError, UnsupportedError
from headwater.serving.flatbuffer import RECORD_BATCH, SCHEMA, read_message
from headwater.serving.frame import FrameLayout
from headwater.serving.frame_view import Bytes, FrameColumn, FrameView, is_fixed_width

__all__ = ["FrameReader", "read_batches", "read_frame"]

_LONGEST_SCHEMA = 1 << 16
_KEPT_LAYOUTS = 256
_ALIASED = 8
"""Views of strings may share bytes: so many times the size of the body is the most that they may amount to."""


class FrameReader:
    """Reads frames, and remembers the layouts of those that could be read by position.

    Examples
    --------
    >>> layout = FrameLayout(pa.schema([("id", pa.int64())]))
    >>> frame = layout.allocate(2)
    >>> frame.values(0)[:] = [7, 8]
    >>> reader = FrameReader([layout])
    >>> reader.read(frame.buffer).values(0).tolist()
    [7, 8]
    """

    def __init__(self, layouts: Iterable[FrameLayout] = ()) -> None:
        self._given = {layout.schema_message: layout for layout in layouts}
        self._known = dict(self._given)

    def read(self, body: Bytes) -> FrameView | pa.RecordBatch:
        """The frame by position where that is possible, else its rows as a validated record batch."""
        layout = self.layout_of(body)
        if layout is None:
            batch = read_batches(body)
            self._learn(batch.schema)
            return batch
        return read_frame(body, layout)

    def layout_of(self, body: Bytes) -> FrameLayout | None:
        """The layout that is known for the schema message at the start of a stream."""
        if len(body) < 8:
            return None
        (size,) = struct.unpack_from("<i", body, 4)
        return self._known.get(bytes(body[: 8 + size])) if 0 < size <= _LONGEST_SCHEMA else None

    def _learn(self, schema: pa.Schema) -> None:
        layout = FrameLayout(schema)
        if len(self._known) >= _KEPT_LAYOUTS:
            self._known = dict(self._given)
        self._known[layout.schema_message] = layout


def read_frame(body: Bytes, layout: FrameLayout) -> FrameView | pa.RecordBatch:
    """The frame by position, if it is one of this layout; else its rows as a validated record batch of any schema."""
    # Of decimals and times of day not every pattern of bits is a value, and pyarrow knows which are.
    found = None if any(_has_range(column) for column in layout.columns) else layout.read(body)
    return read_batches(body) if found is None else found


def read_batches(body: Bytes) -> pa.RecordBatch:
    """All rows of an Arrow stream as one record batch, with every buffer, offset and string validated.

    Large strings, views and large lists become plain ones. A stream with compressed buffers, dictionaries or nested
    types other than lists of fixed-width values is refused.
    """
    _walk(body)
    try:
        options = pa.ipc.IpcReadOptions(use_threads=False)
        reader = pa.ipc.open_stream(pa.py_buffer(body), options=options)
        schema = pa.schema([field.with_type(_plain(field)) for field in reader.schema])
        if not schema.names:
            raise InputError.bad_frame("it has no columns")
        batches = []
        for batch in reader:
            batch.validate(full=True)
            batches.append(_made_plain(batch, schema, _ALIASED * len(body) + (1 << 20)))
        if len(batches) == 1:
            return batches[0]
        table = pa.Table.from_batches(batches, schema).combine_chunks()
        return pa.record_batch([_one_chunk(column) for column in table.columns], schema=schema)
    except (InputError, UnsupportedError):
        raise
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        raise InputError.bad_frame(" ".join(str(error).split())[:300]) from None


def _walk(body: Bytes) -> None:
    """Refuse what could become larger than what was sent: compressed buffers, and dictionaries."""
    at, seen_schema = 0, False
    try:
        while (message := read_message(body, at)) is not None:
            if message.kind not in (SCHEMA, RECORD_BATCH) or (message.kind == SCHEMA) == seen_schema:
                raise InputError.bad_frame("it has dictionaries, or messages in the wrong order")
            if message.compressed:
                raise InputError.bad_frame("its buffers are compressed")
            seen_schema = True
            at = message.body + message.body_length
            if at > len(body):
                raise InputError.bad_frame(f"it ends {at - len(body)} bytes before the end of a record batch")
    except InputError:
        raise
    except ValueError as error:
        raise InputError.bad_frame(str(error)) from None
    if not seen_schema:
        raise InputError.bad_frame("it is empty")


def _plain(field: pa.Field) -> pa.DataType:
    """The type that a frame can have for the values of a field."""
    kind = field.type
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.utf8()
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return pa.binary()
    if pa.types.is_large_list(kind) and is_fixed_width(kind.value_type):
        return pa.list_(kind.value_field)
    FrameColumn(field, 0, 0)  # which refuses what no frame can have
    return kind


def _made_plain(batch: pa.RecordBatch, schema: pa.Schema, most_bytes: int) -> pa.RecordBatch:
    columns = []
    for column, field in zip(batch.columns, schema, strict=True):
        if column.type == field.type:
            columns.append(column)
            continue
        if pa.types.is_string_view(column.type) or pa.types.is_binary_view(column.type):
            size = _viewed_bytes(column)
            if size > most_bytes:
                raise InputError.bad_frame(f"the values of `{field.name}` amount to {size:,} bytes")
        columns.append(column.cast(field.type))
    return pa.record_batch(columns, schema=schema)


def _viewed_bytes(column: pa.Array) -> int:
    """The bytes of all values of a validated array of views: each view begins with its length."""
    views = np.frombuffer(column.buffers()[1], np.int32).reshape(-1, 4)[column.offset : column.offset + len(column), 0]
    return int(views.sum(where=column.is_valid().to_numpy(zero_copy_only=False), dtype=np.int64)) if len(column) else 0


def _one_chunk(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks or [pa.array([], column.type)])


def _has_range(column: FrameColumn) -> bool:
    kind = column.type.value_type if column.form == "list" else column.type
    return bool(pa.types.is_decimal(kind) or pa.types.is_time(kind) or pa.types.is_date64(kind))

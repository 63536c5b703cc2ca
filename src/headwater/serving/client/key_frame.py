"""Keys and rows as the body of a request: Arrow, made with as little work as there can be.

The problem: a list of a thousand strings takes longer to become Arrow by pyarrow than the server needs to look them all
up. The idea: strings are joined twice, without and with a separator. The first is the data; the places of the
separators in the second are, less their number, the offsets. No loop over the keys is run by the interpreter. Integers
are packed by one call.

Everything else (arrays, columns of frames, tuples, keys with nulls) goes by pyarrow. Types that the server would refuse
since they could grow (dictionaries) are made plain.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.base.change import as_table
from headwater.base.errors import InputError
from headwater.serving.frame import FrameLayout
from headwater.serving.frame_view import Bytes

__all__ = ["KEY", "key_body", "needs_names", "rows_body"]

KEY = "key"
"""What the only column of a key is called where its name is not known; servers take any."""

_STRINGS = FrameLayout(pa.schema([(KEY, pa.utf8())]))
_INTEGERS = FrameLayout(pa.schema([(KEY, pa.int64())]))
_KEPT = 1 << 16
_numbers = np.arange(_KEPT, dtype=np.int32)


def needs_names(keys: Any) -> bool:
    """Whether keys are tuples, whose columns have to be named after those of the table's key."""
    return isinstance(keys, (list, tuple)) and len(keys) > 0 and isinstance(keys[0], (tuple, list))


def key_body(keys: Any, names: Sequence[str] = ()) -> Bytes:
    """Keys as an Arrow stream.

    Parameters
    ----------
    keys
        a list of values; a numpy, Arrow, pandas or polars column; for a key of several columns a list of tuples, a dict
        of columns, or a table with these columns
    names : sequence of str
        the columns of the key, for tuples

    >>> pa.ipc.open_stream(key_body(["a", "bc"])).read_all().to_pydict()
    {'key': ['a', 'bc']}
    """
    if type(keys) is list and keys:
        first = type(keys[0])
        if first is str:
            found = _strings(keys)
            if found is not None:
                return found
        elif first is int:
            found = _integers(keys)
            if found is not None:
                return found
    return _stream(_table(keys, names))


def rows_body(rows: Any) -> Bytes:
    """Rows as an Arrow stream: a table of Arrow, pandas or polars, a list of dicts, or a dict of columns."""
    try:
        return _stream(as_table(rows))
    except (pa.ArrowException, TypeError, OverflowError, UnicodeEncodeError) as error:
        raise InputError.bad_rows(str(error).partition("\n")[0]) from None


def _strings(keys: list[str]) -> Bytes | None:
    """A frame of strings; None where something else is among them, or a character that is taken for the separator."""
    count = len(keys)
    try:
        data = "".join(keys).encode()
        if count > 1:
            parted = np.frombuffer("\0".join(keys).encode(), np.uint8)
            ends = np.flatnonzero(parted == 0)
            if len(ends) != count - 1:
                return None
    except (TypeError, UnicodeEncodeError):
        return None
    frame, offsets = _STRINGS.text_frame(count, data)
    if count > 1:
        numbers = _numbers[: count - 1] if count <= _KEPT else np.arange(count - 1)
        np.subtract(ends, numbers, out=offsets[1:-1], casting="unsafe")
    return frame


def _integers(keys: list[int]) -> Bytes | None:
    try:
        data = struct.pack(f"<{len(keys)}q", *keys)
    except struct.error:  # something else is among them, or one is too large
        return None
    frame = _INTEGERS.allocate(len(keys))
    at = int(frame.places[1])
    frame.buffer[at : at + len(data)] = data
    return frame.buffer


def _table(keys: Any, names: Sequence[str]) -> pa.Table:
    try:
        if isinstance(keys, (str, bytes)):
            raise InputError.bad_argument("keys", keys, "a list of keys")
        if isinstance(keys, Mapping):
            return pa.table({name: _column(column) for name, column in keys.items()})
        if needs_names(keys):
            if any(len(key) != len(names) for key in keys):
                raise InputError.bad_argument("keys", keys[0], f"tuples of {', '.join(names)}")
            columns = zip(*keys, strict=True)
            return pa.table({name: pa.array(column) for name, column in zip(names, columns, strict=True)})
        if isinstance(keys, (pa.RecordBatch, pa.Table)):
            return pa.table(keys)
        if hasattr(keys, "columns") and hasattr(keys, "__arrow_c_stream__"):
            return pa.table(keys)
        return pa.table({KEY: _column(keys)})
    except (pa.ArrowException, TypeError, OverflowError, UnicodeEncodeError) as error:
        why = str(error).partition("\n")[0]
        raise InputError.bad_argument("keys", _shown(keys), f"keys of one type ({why})") from None


def _column(values: Any) -> pa.Array | pa.ChunkedArray:
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return values
    if hasattr(values, "__arrow_c_stream__"):
        return pa.chunked_array(values)
    if not (hasattr(values, "__arrow_c_array__") or hasattr(values, "__array__") or isinstance(values, (list, tuple))):
        values = list(values)
    try:
        made = pa.array(values)
    except OverflowError:  # beyond int64, which is what pyarrow takes integers for
        made = pa.array(values, pa.uint64())
    return made


def _stream(table: pa.Table) -> bytes:
    for number, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            table = table.set_column(number, field.name, _decoded(table.column(number)))
        elif pa.types.is_null(field.type):  # which no frame can have: servers take nulls of any type
            table = table.set_column(number, field.name, table.column(number).cast(pa.utf8()))
    table = table.combine_chunks().replace_schema_metadata(None)
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def _decoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = column.type.value_type
    plain = pa.utf8() if pa.types.is_string_view(kind) else kind
    return pa.chunked_array([chunk.dictionary.cast(plain).take(chunk.indices) for chunk in column.chunks], plain)


def _shown(keys: Any) -> Any:
    return keys[:3] if isinstance(keys, (list, tuple)) else type(keys).__name__

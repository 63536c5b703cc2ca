"""Keys out of the Arrow body of a request, without an array on the way where the key is one plain column.

The bytes before the buffers of a frame, its schema and the description of its batch, are the same for all requests with
as many keys of as many bytes. So what was found out about them once, by reading and checking such a frame as a whole
(`headwater.serving.frame_reading`), is remembered by those bytes: a request that begins with the same ones, and is as
long, has its buffers in the same places. Only what is in the buffers is looked at again: offsets of strings must not
decrease, and must stay within their data. Strings that are not plain ASCII are left to the reader, which knows UTF-8.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from headwater.base.errors import RequestError
from headwater.serving.flatbuffer import END
from headwater.serving.frame_reading import FrameReader
from headwater.serving.frame_view import FrameView
from headwater.serving.keys import KeyBatch

if TYPE_CHECKING:
    from headwater.serving.version import TableVersion

__all__ = ["KeyPlaces", "KeyReader"]

_MOST_ROWS = 1 << 16
_KEPT = 1024
_LONGEST_HEAD = 1 << 14
_NO_BYTES = np.zeros(1, np.uint8)
_offsets_by_width = {width: np.arange(_MOST_ROWS + 1, dtype=np.int64) * width for width in (1, 2, 4, 8)}


class KeyPlaces:
    """Where the buffers of a frame are that has one column of keys, none of them null;
    ``request`` is that for kernels.
    """

    __slots__ = ("_offsets", "length", "request", "rows")

    def __init__(self, view: FrameView, length: int) -> None:
        column = view.columns[0]
        self.length, self.rows = length, view.rows
        is_bytes = column.form == "bytes"
        place = column.buffer + (2 if is_bytes else 1)
        width = 0 if is_bytes else column.bits // 8
        offsets_at = int(view.places[column.buffer + 1]) if is_bytes else -1
        data_bytes = int(view.lengths[place]) if is_bytes else view.rows * width
        is_text = pa.types.is_string(column.type)
        facts = [view.rows, offsets_at, int(view.places[place]), data_bytes, width, is_text]
        self.request: np.ndarray[tuple[int], np.dtype[np.int64]] = np.array(facts, np.int64)
        self._offsets = None if is_bytes else _offsets_by_width[width][: view.rows + 1]

    def keys(self, body: bytes) -> KeyBatch | None:
        """The keys of a body that begins like the one these places are of; None if its buffers need a closer look."""
        _, offsets_at, data_at, data_bytes, _, is_text = self.request.tolist()
        if is_text and not body[data_at : data_at + data_bytes].isascii():
            return None
        data = np.frombuffer(body, np.uint8, data_bytes, data_at)
        offsets = self._offsets
        if offsets is None:
            offsets = np.frombuffer(body, np.int32, self.rows + 1, offsets_at).astype(np.int64)
            if offsets[0] < 0 or offsets[-1] > data_bytes or (offsets[1:] < offsets[:-1]).any():
                return None
        return KeyBatch(data, offsets)


class KeyReader:
    """Reads the keys of requests to one version of a table."""

    def __init__(self, version: TableVersion, reader: FrameReader) -> None:
        self._version, self._reader = version, reader
        self._type: pa.DataType | None = version.schema.field(0).type if len(version.key) == 1 else None
        self._known: dict[bytes, KeyPlaces] = {}

    def places(self, body: bytes) -> KeyPlaces | None:
        """Where the keys of a body are, if one that began in the same way was read before."""
        known = self._known.get(_head_of(body))
        return known if known is not None and len(body) == known.length and body[-8:] == END else None

    def read(self, body: bytes) -> KeyBatch:
        """The keys of a body: in columns that have the names of the key's, or in its only column, whatever its name."""
        known = self.places(body)
        if known is not None:
            found = known.keys(body)
            if found is not None:
                return found
        view = self._reader.read(body)
        if not isinstance(view, FrameView):
            return self._of_batch(view)
        if self._is_plain(view):
            head = _head_of(body)
            if view.null_counts[0] == 0 and view.rows and head and body[-8:] == END:
                if len(self._known) >= _KEPT:
                    self._known.clear()
                self._known[head] = KeyPlaces(view, len(body))
            return _plain_keys(view)
        return self._of_batch(view.batch())

    def _of_batch(self, batch: pa.RecordBatch) -> KeyBatch:
        names = batch.schema.names
        if len(set(names)) != len(names):
            raise RequestError.bad_body("Arrow", "two columns have the same name")
        return self._version.keys(batch)

    def _is_plain(self, view: FrameView) -> bool:
        """Whether the key is one column of the frame whose equal values have equal bytes as they lie there."""
        if self._type is None or len(view.columns) != 1 or view.columns[0].type != self._type:
            return False
        is_number = pa.types.is_integer(self._type) or pa.types.is_temporal(self._type)
        return view.columns[0].form == "bytes" or (is_number and view.rows <= _MOST_ROWS)


def _head_of(body: bytes) -> bytes:
    """The bytes before the buffers of a frame; empty where they are too many to be remembered."""
    # Of a body that is no Arrow stream these are some numbers, for which nothing is known.
    schema_bytes = int.from_bytes(body[4:8], "little")
    end = schema_bytes + 16 + int.from_bytes(body[schema_bytes + 12 : schema_bytes + 16], "little")
    return body[:end] if end <= _LONGEST_HEAD else b""


def _plain_keys(view: FrameView) -> KeyBatch:
    valid = view.valid(0)
    nulls: Any = None if valid is None else ~valid
    data = view.values(0)
    if view.columns[0].form == "bytes":
        return KeyBatch(data if len(data) else _NO_BYTES, view.offsets(0).astype(np.int64), nulls)
    return KeyBatch(data.view(np.uint8), _offsets_by_width[data.itemsize][: view.rows + 1], nulls)

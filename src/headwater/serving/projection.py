"""Projections: which columns an answer has, and how kernels fill them.

What is the same for all answers with the same columns and options is prepared once: the template of the frame, and a
table that says for each column where its values lie in a record and where they go in the frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from headwater.base.errors import CorruptionError, InputError, NotFoundError, UnsupportedError
from headwater.serving.dtypes import FIXED, FLAG, LIST, STRING
from headwater.serving.frame import Frame, FrameLayout
from headwater.serving.layers import Layers, Located
from headwater.serving.layout import Layout, StoredColumn

__all__ = ["FetchOptions", "Projection"]

# Numbers of `headwater.kernels.online_gather`.
_FOUND = 4
_STATUS = 5
_SLOT_INLINE = 12
_NO_STATUS = np.zeros(0, np.uint8)
_NO_STATUS.flags.writeable = False
_KEPT = 32


@dataclass(frozen=True, slots=True)
class FetchOptions:
    """What an answer has beside the columns.

    Parameters
    ----------
    found : bool
        the boolean column ``_found``: whether there is a row for the key
    status : bool
        the column ``_status``: 0 present, 2 not found, 3 older than the table's ttl
    event_time : bool
        the column ``_event_time``, where the table has one
    missing : "null" or "drop"
        keys without a row get nulls, in the order of the request; or no row, and the column ``_idx`` has the position
        in the request of each row that there is
    """

    found: bool = True
    status: bool = False
    event_time: bool = False
    missing: Literal["null", "drop"] = "null"


class Projection:
    """Some columns of a layout, ready to be filled."""

    def __init__(self, layout: Layout, columns: Sequence[str], options: FetchOptions, event_time: str | None) -> None:
        self.layout, self.options = layout, options
        rows = [self._described(name) for name in columns]
        if options.event_time:
            if event_time is None:
                raise InputError.bad_argument("event_time", True, "a table with an event time: this one has none")
            described = self._described(event_time)
            rows.append((described[0].with_name("_event_time"), described[1]))
        if options.status:
            rows.append((pa.field("_status", pa.uint8()), [_STATUS, 0, 1, -1, -1]))
        if options.missing == "drop":
            rows.append((pa.field("_idx", pa.int32()), [-1, 0, 4, -1, -1]))
        elif options.found:
            rows.append((pa.field("_found", pa.bool_()), [_FOUND, 0, 1, -1, -1]))
        if not rows:
            raise InputError.bad_argument("columns", list(columns), "at least one column")
        self.schema = pa.schema([f for f, _ in rows])
        self.frame = FrameLayout(self.schema)
        self._fixed, self._fixed_at = self._table(
            [(r, i) for i, (_, r) in enumerate(rows) if r[0] not in (STRING, LIST)]
        )
        self._slots, self._slots_at = self._table([(r, i) for i, (_, r) in enumerate(rows) if r[0] in (STRING, LIST)])
        self._names = [f.name for f, r in rows if r[0] in (STRING, LIST)]
        self._lists = np.array([r[0] == LIST for _, r in rows if r[0] in (STRING, LIST)], bool)
        self._places: dict[int, np.ndarray[Any, Any]] = {}
        self._null_bytes = layout.null_bytes
        self.is_plain = options.missing == "null" and not options.status
        """Whether `answer` can be used, as long as rows have no age:
        nothing has to be known of records but their values.
        """

    def _described(self, name: str) -> tuple[pa.Field, list[int]]:
        """A column, and what the kernels' table says of it, but for the places."""
        layout = self.layout
        column = layout.by_name.get(name)
        if column is None:
            return self._key_part(name)
        value = column.value
        width = _SLOT_INLINE if value.kind == STRING else value.item if value.kind == LIST else value.width
        return pa.field(name, column.type), [value.kind, column.offset, width, column.bit, column.sparse]

    def _key_part(self, name: str) -> tuple[pa.Field, list[int]]:
        layout, offset = self.layout, 0
        for part in layout.key:
            value = part.value
            if part.name == name:
                if value.is_slot and len(layout.key) == 1:
                    return pa.field(name, part.type), [STRING, 0, layout.inline, -1, -1]
                if not layout.key_bytes:
                    raise UnsupportedError.operation(
                        f"fetching the key column `{name}`",
                        "a key of several columns with strings among them is not kept by column",
                        "leave it out: rows come in the order of the keys that were asked for",
                    )
                return pa.field(name, part.type), [value.kind, offset, value.width, -1, -1]
            offset += value.width
        raise NotFoundError.column(name, layout.schema.names)

    def _table(self, rows: Sequence[tuple[list[int], int]]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """The kernels' table of some columns, and for each its first buffer and its node in the frame."""
        table = np.zeros((len(rows), 10), np.int64)
        at = np.zeros((len(rows), 2), np.int64)
        for k, (row, number) in enumerate(rows):
            column = self.frame.columns[number]
            table[k, :5] = row
            table[k, 8] = _fill(self.schema.field(number).type)
            at[k] = column.buffer, column.node
        return table, at

    def fill(self, layers: Layers, located: Located, status: Any = None) -> Frame:
        """The answer: the values of the records that were found."""
        from headwater.kernels.online_gather import copy_strings, gather_columns, measure_strings

        layout, records, heaps = self.layout, located.records, located.heaps
        if self.options.missing == "drop":
            index = np.flatnonzero(records)
            records, heaps = records[index], heaps[index]
            status = None if status is None else status[index]
        rows = len(records)
        offsets, totals = None, np.zeros(len(self._slots), np.int64)
        if len(self._slots):
            offsets = np.empty((len(self._slots), rows + 1), np.int32)
            done = measure_strings(records, heaps, layers.table, self._slots, layout.nulls, offsets, totals)
            if done < 0:
                raise self._failure(layers, done)
        frame = self.frame.allocate(rows, totals.tolist())
        out = np.frombuffer(frame.buffer, np.uint8)
        table = self._filled(frame.places, rows)
        counts = np.empty(len(table), np.int64)
        if len(table):
            given = _NO_STATUS if status is None else status
            given.flags.writeable = False
            done = gather_columns(
                records, heaps, layers.table, table, layout.nulls, self._null_bytes, given, out, counts
            )
            if done < 0:
                raise self._failure(layers, done)
        nulls = frame.null_counts
        nulls[self._fixed_at[:, 1]] = counts
        if offsets is not None:
            slots = self._slots.copy()
            first = self._slots_at[:, 0]
            slots[:, 5], slots[:, 6] = frame.places[first], frame.places[first + 1]
            slots[:, 7] = frame.places[first + 2 + self._lists]
            slots[:, 9] = frame.places[first + 2]
            pairs = np.empty(2 * len(slots), np.int64)
            copy_strings(records, heaps, layers.table, slots, layout.nulls, offsets, out, pairs)
            nulls[self._slots_at[:, 1]] = pairs[::2]
            nulls[self._slots_at[self._lists, 1] + 1] = pairs[1::2][self._lists]
        if self.options.missing == "drop":
            frame.values(len(self.schema) - 1)[:] = index
        frame.missing = located.missing
        return frame

    def answer(self, layers: Layers, body: bytes, request: np.ndarray[Any, Any], rows: int) -> Frame | None:
        """The answer to a request whose keys are at known places of its body, by one call or two; None if they need a
        closer look.
        """
        from headwater.kernels.online_answer import UNREAD, answer_request

        assert self.is_plain
        if len(self._slots):
            return self._answer_with_slots(layers, body, request, rows)
        frame = self.frame.allocate(rows)
        missing = answer_request(
            np.frombuffer(body, np.uint8),
            request,
            layers.table,
            layers.described,
            self._filled(frame.places, rows),
            np.frombuffer(frame.buffer, np.uint8),
        )
        if missing < 0:
            if missing == UNREAD:
                return None
            raise self._failure(layers, missing)
        frame.missing = missing
        return frame

    def _answer_with_slots(self, layers: Layers, body: bytes, request: np.ndarray[Any, Any], rows: int) -> Frame | None:
        from headwater.kernels.arrays import read_only
        from headwater.kernels.online_answer import LARGE, UNREAD, fill_answer, find_request

        slots, table = self._slots, layers.table
        found = np.empty(2 * rows, np.int64)
        offsets, totals = np.empty((len(slots), rows + 1), np.int32), np.empty(len(slots) + 1, np.int64)
        missing = find_request(
            np.frombuffer(body, np.uint8), request, table, layers.described, slots, found, offsets, totals
        )
        if missing == UNREAD:
            return None
        if missing < 0:
            raise self._failure(layers, -2 if missing == LARGE else missing)
        image, empty = self.frame.empty(rows)
        buffer, buffers = bytearray(len(image) + int(totals[-1])), np.empty_like(empty)
        done = fill_answer(
            found,
            table,
            layers.described,
            self._fixed,
            self._fixed_at,
            slots,
            self._slots_at,
            offsets,
            totals,
            self.frame.numbers,
            read_only(np.frombuffer(image, np.uint8)),
            empty,
            np.frombuffer(buffer, np.uint8),
            buffers,
        )
        if done < 0:
            raise self._failure(layers, done)
        frame = Frame(self.frame, rows, buffer, buffers[:, 0], buffers[:, 1])
        frame.missing = missing
        return frame

    def _filled(self, places: np.ndarray[Any, Any], rows: int) -> np.ndarray[Any, Any]:
        """The kernels' table with the places of a frame; kept, where they depend on the number of rows alone."""
        known = self._places.get(rows)
        if known is not None:
            return known
        table = self._fixed.copy()
        first = self._fixed_at[:, 0]
        table[:, 5], table[:, 7] = places[first], places[first + 1]
        table[:, 6] = self.frame.null_counts_at + 16 * self._fixed_at[:, 1]
        if not len(self._slots):
            if len(self._places) >= _KEPT:
                self._places = {}
            self._places[rows] = table
        return table

    def _failure(self, layers: Layers, code: int) -> Exception:
        if code == -2:
            return InputError.answer_too_large(self._names[0])
        return CorruptionError.record_file(layers.files[-1][0].path, "a value lies outside of it")


def _fill(kind: pa.DataType) -> int:
    """The bits of what stands where a value is null: NaN for floats, else zero."""
    if pa.types.is_float16(kind):
        return 0x7E00
    if pa.types.is_float32(kind):
        return 0x7FC00000
    return 0x7FF8000000000000 if pa.types.is_float64(kind) else 0


def is_fixed(column: StoredColumn) -> bool:
    """Whether the values of a column have a fixed width."""
    return column.value.kind in (FIXED, FLAG)

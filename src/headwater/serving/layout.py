"""The layout of a record: where its key, its values and its null bits lie.

A record begins with its key, so that the cache line that answers "is it this one?" also holds the first values. Values
follow from wide to narrow, so each is aligned. Columns that are almost always null are *sparse*: all of them share one
word, which refers to a list of those that a row has, so a column that nobody fills costs nothing. The width of a record
is rounded up where that keeps records from crossing cache lines.

A layout is chosen once, for a base, from the schema and the first rows; overlays have the layout of their base, so
records can be moved from one file to another as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.serving.dtypes import FIXED, LIST, ValueType, dtype_name, parse_dtype, value_type

__all__ = ["KeyPart", "Layout", "StoredColumn", "choose_layout"]

_VERSION = 1
_LINE = 64
_SPARSE_SHARE = 0.9
_FEW_ROWS = 1_000
_MOST_SPARSE = 60_000
_INLINE = (12, 20, 28)
_COVERED = 0.95


@dataclass(frozen=True, slots=True)
class KeyPart:
    """A column of the key."""

    name: str
    type: pa.DataType

    @property
    def value(self) -> ValueType:
        """How its values lie in a record."""
        return value_type(self.type)


@dataclass(frozen=True, slots=True)
class StoredColumn:
    """A column: where its values lie, which bit says that one is null (-1: none), and its sparse number (-1:
    it is not).
    """

    name: str
    type: pa.DataType
    offset: int
    bit: int
    sparse: int = -1

    @property
    def value(self) -> ValueType:
        """How its values lie in a record."""
        return value_type(self.type)


@dataclass(frozen=True)
class Layout:
    """Where everything lies in a record.

    Parameters
    ----------
    key : tuple of KeyPart
    key_bytes : int
        bytes of the key; 0 where it has no fixed width
    inline : int
        bytes of a key without a fixed width that lie in the record
    columns : tuple of StoredColumn
    sparse_word : int
        where the word of the sparse columns is, or -1
    order_word : int
        where the word is that decides between two rows with one key, or -1
    nulls : int
        where the null bits begin; the first one says that the key was deleted
    width : int
        bytes of a record
    """

    key: tuple[KeyPart, ...]
    key_bytes: int
    inline: int
    columns: tuple[StoredColumn, ...]
    sparse_word: int
    order_word: int
    nulls: int
    width: int
    by_name: Mapping[str, StoredColumn] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_name", {c.name: c for c in self.columns})

    @property
    def null_bytes(self) -> int:
        """How many bytes the null bits take."""
        return (max((c.bit for c in self.columns), default=0)) // 8 + 1

    @cached_property
    def shape(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """What kernels know of it (`headwater.kernels.online_record`)."""
        return np.array([self.width, self.key_bytes, self.inline, self.nulls], np.int64)

    @cached_property
    def slots(self) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
        """Offset, kind and item width of each column that is a slot in the record."""
        found = [(c.offset, c.value.kind, c.value.item) for c in self.columns if c.value.is_slot and c.sparse < 0]
        return np.array(found, np.int64).reshape(-1, 3)

    @cached_property
    def sparse_kinds(self) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
        """Kind (0 unless it is a slot) and item width of each sparse column."""
        found = [(c.value.kind if c.value.is_slot else 0, c.value.item) for c in self.columns if c.sparse >= 0]
        return np.array(found, np.int64).reshape(-1, 2)

    @cached_property
    def schema(self) -> pa.Schema:
        """The key, then the columns."""
        fields = [pa.field(part.name, part.type, nullable=False) for part in self.key]
        return pa.schema([*fields, *(pa.field(c.name, c.type) for c in self.columns)])

    def to_json(self) -> dict[str, Any]:
        """As a JSON object; `from_json` reads it."""
        return {
            "version": _VERSION,
            "key": [{"name": p.name, "dtype": dtype_name(p.type)} for p in self.key],
            "key_bytes": self.key_bytes,
            "inline": self.inline,
            "columns": [
                {"name": c.name, "dtype": dtype_name(c.type), "offset": c.offset, "bit": c.bit, "sparse": c.sparse}
                for c in self.columns
            ],
            "sparse_word": self.sparse_word,
            "order_word": self.order_word,
            "nulls": self.nulls,
            "width": self.width,
        }

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Layout:
        """Read what `to_json` gives; ValueError if it is of a newer version."""
        if found["version"] != _VERSION:
            raise ValueError(f"its layout has version {found['version']}, and this Headwater knows {_VERSION}")
        return cls(
            key=tuple(KeyPart(p["name"], parse_dtype(p["dtype"])) for p in found["key"]),
            key_bytes=int(found["key_bytes"]),
            inline=int(found["inline"]),
            columns=tuple(
                StoredColumn(c["name"], parse_dtype(c["dtype"]), int(c["offset"]), int(c["bit"]), int(c["sparse"]))
                for c in found["columns"]
            ),
            sparse_word=int(found["sparse_word"]),
            order_word=int(found["order_word"]),
            nulls=int(found["nulls"]),
            width=int(found["width"]),
        )


def choose_layout(
    schema: pa.Schema,
    key: Sequence[str],
    *,
    null_shares: Mapping[str, float] | None = None,
    key_lengths: np.ndarray[Any, Any] | None = None,
    rows: int = 0,
    ordered: bool = False,
) -> Layout:
    """The layout for rows of stored types (`dtypes.stored_type`).

    ``null_shares`` and ``key_lengths`` describe the first ``rows`` rows; ``ordered`` asks for an order word.

    >>> schema = pa.schema([("id", pa.int64()), ("a", pa.float32()), ("b", pa.bool_())])
    >>> layout = choose_layout(schema, ["id"])
    >>> layout.width, [(c.name, c.offset, c.bit) for c in layout.columns]
    (16, [('a', 8, 1), ('b', 12, 2)])
    """
    parts = tuple(KeyPart(name, schema.field(name).type) for name in key)
    fixed = all(not p.value.is_slot for p in parts)
    key_bytes = sum(p.value.width for p in parts) if fixed else 0
    inline = 0 if fixed else _inline_bytes(key_lengths)
    begin = -(-key_bytes // 8) * 8 if fixed else inline + 4
    values = [f for f in schema if f.name not in key]
    sparse = _sparse_columns(values, null_shares or {}, rows)
    offset, sparse_word, order_word = begin, -1, -1
    if sparse:
        sparse_word, offset = offset, offset + 8
    if ordered:
        order_word, offset = offset, offset + 8
    offsets: dict[str, int] = {}
    for f in sorted((f for f in values if f.name not in sparse), key=lambda f: -value_type(f.type).width):
        offsets[f.name] = offset
        offset += value_type(f.type).width
    columns, bit, number = [], 1, 0
    for f in values:
        if f.name in sparse:
            columns.append(StoredColumn(f.name, f.type, sparse_word, -1, number))
            number += 1
        elif f.nullable:
            columns.append(StoredColumn(f.name, f.type, offsets[f.name], bit))
            bit += 1
        else:
            columns.append(StoredColumn(f.name, f.type, offsets[f.name], -1))
    width = _rounded(offset + -(-bit // 8))
    return Layout(parts, key_bytes, inline, tuple(columns), sparse_word, order_word, offset, width)


def _inline_bytes(lengths: np.ndarray[Any, Any] | None) -> int:
    if lengths is None or not lengths.size:
        return _INLINE[0]
    for inline in _INLINE:
        if (lengths <= inline).mean() >= _COVERED:
            return inline
    return _INLINE[0]


def _sparse_columns(values: Sequence[pa.Field], shares: Mapping[str, float], rows: int) -> set[str]:
    if rows < _FEW_ROWS:
        return set()
    found = {f.name for f in values if shares.get(f.name, 0.0) >= _SPARSE_SHARE}
    saved = sum(value_type(f.type).width for f in values if f.name in found)
    return found if saved > 8 and len(found) <= _MOST_SPARSE else set()


def _rounded(used: int) -> int:
    """The width of a record that needs ``used`` bytes: records that share a cache line do not cross its end."""
    width = -(-used // 8) * 8
    if width <= _LINE:
        power = next(p for p in (8, 16, 32, 64) if p >= width)
        return power if power <= width * 1.25 else width
    lines = -(-width // _LINE) * _LINE
    return lines if lines <= width * 1.1 else width


assert FIXED == 0, "sparse_kinds relies on it"
assert LIST

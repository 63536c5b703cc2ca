"""Strategies: hypothesis generators of Arrow data and of the histories of tables.

Values are drawn from small pools, so that rows repeat; pools hold what breaks things: nulls, NaN, both zeros, the
extremes of every type, empty and non-ASCII strings, dates beyond Python's years. Arrays come sliced and in several
chunks. A `History` is a table's life: commits that insert, update, delete, merge, rewrite or do nothing, each with its
exact change, so that the state after any commit is known without asking the code under test.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from headwater.base.change import ChangeBatch

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Commit", "History", "arrays", "changes", "flat_types", "histories", "schemas", "tables", "types"]

_FLAT = [
    pa.int8(),
    pa.int16(),
    pa.int32(),
    pa.int64(),
    pa.uint8(),
    pa.uint64(),
    pa.float16(),
    pa.float32(),
    pa.float64(),
    pa.bool_(),
    pa.date32(),
    pa.date64(),
    pa.time64("us"),
    pa.timestamp("us"),
    pa.timestamp("us", "UTC"),
    pa.timestamp("ns", "Europe/Paris"),
    pa.duration("us"),
    pa.decimal32(7, 2),
    pa.decimal64(15, 0),
    pa.decimal128(38, 9),
    pa.decimal256(50, 3),
    pa.string(),
    pa.large_string(),
    pa.string_view(),
    pa.binary(),
    pa.large_binary(),
    pa.binary_view(),
    pa.binary(3),
    pa.null(),
    pa.dictionary(pa.int8(), pa.string()),
    pa.dictionary(pa.int32(), pa.float64()),
]

_TEXT = ["", "a", "A", "é", "e\u0301", "雪", "🜃", "a\x00b", "long " * 9, " ", "null"]


def flat_types() -> st.SearchStrategy[pa.DataType]:
    """Types without children, all that a column may have."""
    return st.sampled_from(_FLAT)


def types(*, depth: int = 2) -> st.SearchStrategy[pa.DataType]:
    """Any type, nested at most ``depth`` deep: lists of every kind, structs and maps."""
    if depth == 0:
        return flat_types()
    inner = types(depth=depth - 1)
    plain = inner.filter(lambda kind: not pa.types.is_dictionary(kind))
    keys = st.sampled_from([pa.string(), pa.int32(), pa.binary()])
    return st.one_of(
        flat_types(),
        inner.map(pa.list_),
        inner.map(pa.large_list),
        st.builds(pa.list_, inner, st.integers(0, 3)),
        st.lists(inner, min_size=0, max_size=3).map(
            lambda kinds: pa.struct([(f"f{i}", k) for i, k in enumerate(kinds)])
        ),
        st.builds(pa.map_, keys, plain),
    )


def schemas(*, depth: int = 2, min_columns: int = 1, max_columns: int = 4) -> st.SearchStrategy[pa.Schema]:
    """Schemas with columns ``c0``, ``c1`` …"""
    columns = st.lists(types(depth=depth), min_size=min_columns, max_size=max_columns)
    return columns.map(lambda kinds: pa.schema([(f"c{i}", kind) for i, kind in enumerate(kinds)]))


def values(kind: pa.DataType) -> st.SearchStrategy[Any]:
    """Python values (never None) that ``pa.array`` takes for ``kind``."""
    is_ = pa.types
    if is_.is_dictionary(kind):
        return values(kind.value_type)
    if is_.is_null(kind):
        return st.none()
    if is_.is_boolean(kind):
        return st.booleans()
    if is_.is_integer(kind):
        info = np.iinfo(kind.to_pandas_dtype())
        extremes = [int(info.min), int(info.max), 0, 1]
        return st.sampled_from(extremes) | st.integers(int(info.min), int(info.max))
    if is_.is_floating(kind):
        return _floats(kind.bit_width)
    if is_.is_decimal(kind):
        unscaled = st.integers(-(10**kind.precision) + 1, 10**kind.precision - 1)
        return unscaled.map(lambda number: _decimal(number, kind.scale))
    if is_.is_temporal(kind):
        return _moments(kind)
    if is_.is_fixed_size_binary(kind):
        return st.binary(min_size=kind.byte_width, max_size=kind.byte_width)
    if is_.is_string(kind) or is_.is_large_string(kind) or is_.is_string_view(kind):
        return st.sampled_from(_TEXT) | st.text(st.characters(codec="utf-8"), max_size=4)
    if is_.is_binary(kind) or is_.is_large_binary(kind) or is_.is_binary_view(kind):
        return st.binary(max_size=20)
    return _nested_values(kind)


def _nested_values(kind: pa.DataType) -> st.SearchStrategy[Any]:
    if pa.types.is_struct(kind):
        children = [kind.field(position) for position in range(kind.num_fields)]
        return st.fixed_dictionaries({child.name: _nullable(child.type) for child in children})
    if pa.types.is_map(kind):
        return st.lists(st.tuples(values(kind.key_type), _nullable(kind.item_type)), max_size=2)
    low, high = (kind.list_size, kind.list_size) if pa.types.is_fixed_size_list(kind) else (0, 3)
    return st.lists(_nullable(kind.value_type), min_size=low, max_size=high)


def _nullable(kind: pa.DataType) -> st.SearchStrategy[Any]:
    return values(kind) | st.none()


def _floats(bits: int) -> st.SearchStrategy[Any]:
    special = [0.0, -0.0, math.nan, -math.nan, math.inf, -math.inf, 1.0]
    number = st.sampled_from(special) | st.floats(width=bits)  # type: ignore[arg-type]
    return number.map(np.float16) if bits == 16 else number


def _decimal(unscaled: int, scale: int) -> Decimal:
    return Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -scale))


def _moments(kind: pa.DataType) -> st.SearchStrategy[int]:
    day = 86_400_000
    if pa.types.is_date32(kind):
        return st.sampled_from([-(2**31), 2**31 - 1, 0, -719162, 19000])
    if pa.types.is_date64(kind):
        return st.integers(-(10**6), 10**6).map(lambda days: days * day)
    if pa.types.is_time(kind):
        return st.integers(0, day * 1000 - 1)
    return st.sampled_from([-(2**63), 2**63 - 1, 0, -1]) | st.integers(-(2**62), 2**62)


@st.composite
def arrays(draw: st.DrawFn, kind: pa.DataType, *, rows: int) -> pa.ChunkedArray:
    """A column of ``kind``: values from a small pool, with nulls, sliced, in one to three chunks."""
    pool = draw(st.lists(_nullable(kind), min_size=1, max_size=4))
    picks = draw(st.lists(st.integers(0, len(pool) - 1), min_size=rows, max_size=rows))
    chosen = [pool[pick] for pick in picks]
    cuts = sorted(draw(st.lists(st.integers(0, rows), max_size=2)))
    borders = [0, *cuts, rows]
    margin = draw(st.integers(0, 2))  # rows before and after a chunk that a slice hides
    chunks = []
    for start, stop in itertools.pairwise(borders):
        padded = [*[pool[0]] * margin, *chosen[start:stop], *[pool[-1]] * margin]
        chunks.append(_array(padded, kind).slice(margin, stop - start))
    return pa.chunked_array(chunks, type=kind)


def _array(items: Sequence[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_dictionary(kind):
        return pa.array(items, type=kind.value_type).dictionary_encode().cast(kind)
    if pa.types.is_temporal(kind):
        width = pa.int32() if kind.bit_width == 32 else pa.int64()
        return pa.array(items, type=width).view(kind)
    return pa.array(items, type=kind)


@st.composite
def tables(
    draw: st.DrawFn, schema: pa.Schema | None = None, *, min_rows: int = 0, max_rows: int = 12, depth: int = 2
) -> pa.Table:
    """A table of ``schema`` (default: any), rows repeating often."""
    chosen = draw(schemas(depth=depth)) if schema is None else schema
    rows = draw(st.integers(min_rows, max_rows))
    return pa.table([draw(arrays(column.type, rows=rows)) for column in chosen], schema=chosen)


@st.composite
def changes(draw: st.DrawFn, schema: pa.Schema | None = None, *, max_rows: int = 12, depth: int = 2) -> ChangeBatch:
    """A change batch with small weights of both signs, zero among them; not consolidated."""
    table = draw(tables(schema, max_rows=max_rows, depth=depth))
    weights = draw(st.lists(st.integers(-2, 2), min_size=table.num_rows, max_size=table.num_rows))
    return ChangeBatch.from_table(table.append_column("_weight", pa.array(weights, type=pa.int64())))


@dataclass(frozen=True)
class Commit:
    """One commit: ``kind`` is insert, update, delete, merge, rewrite or empty;
    ``data_change`` is False for a rewrite.
    """

    kind: str
    change: ChangeBatch
    data_change: bool = True


@dataclass(frozen=True)
class History:
    """A table from its first rows on; rows have a key ``id``, which is unique, and a payload."""

    start: pa.Table
    commits: list[Commit]
    states: list[pa.Table] = field(repr=False)

    def state(self, version: int) -> pa.Table:
        """The rows after ``version`` commits."""
        return self.states[version]


PAYLOAD = pa.schema(
    [("id", pa.int64()), ("name", pa.string()), ("amount", pa.float64()), ("tags", pa.list_(pa.string()))]
)


@st.composite
def histories(draw: st.DrawFn, schema: pa.Schema = PAYLOAD, *, max_commits: int = 8) -> History:
    """The life of a table with an int64 key column ``id`` and any other columns of ``schema``."""
    keys = st.integers(0, 9)
    payload = st.fixed_dictionaries({f.name: _nullable(f.type) for f in schema if f.name != "id"})

    def table(rows: dict[int, Any]) -> pa.Table:
        return pa.Table.from_pylist([{"id": key, **row} for key, row in rows.items()], schema=schema)

    rows: dict[int, Any] = draw(st.dictionaries(keys, payload, max_size=5))
    states, commits = [table(rows)], []
    for _ in range(draw(st.integers(1, max_commits))):
        kind = draw(st.sampled_from(["insert", "update", "delete", "merge", "rewrite", "empty"]))
        before = dict(rows)
        if kind in ("insert", "merge"):
            fresh = draw(st.dictionaries(keys, payload, max_size=3))
            rows.update({k: v for k, v in fresh.items() if kind == "merge" or k not in rows})
        if kind == "update":
            rows.update({key: draw(payload) for key in draw(st.sets(keys, max_size=3)) if key in rows})
        if kind in ("delete", "merge"):
            for key in draw(st.sets(keys, max_size=3)):
                rows.pop(key, None)
        gone = table(before) if kind not in ("rewrite", "empty") else schema.empty_table()
        come = table(rows) if kind not in ("rewrite", "empty") else schema.empty_table()
        change = ChangeBatch.from_rows(gone, weight=-1) + ChangeBatch.from_rows(come)
        commits.append(Commit(kind, change, data_change=kind != "rewrite"))
        states.append(table(rows))
    return History(states[0], commits, states)

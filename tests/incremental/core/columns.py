"""Generated columns of every type the engine keeps, and plain Python's view of a Z-set to compare with.

Values are drawn from small pools with all the corners in them (NaN, the two zeros, strings on both sides of every length that
matters), so that equal rows, and rows that differ in one column only, are common.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Hashable
from decimal import Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from headwater.incremental.layout import Layout
from headwater.incremental.zset import ZSet

NAN = float("nan")
TEXTS = [
    "",
    "a",
    "abc",
    "abcd",
    "abcde",
    "abcdefghijkl",
    "abcdefghijklm",
    "é",
    "日本語テキスト",
    "🤦" * 4,
    "x" * 1000,
    "x" * 999 + "y",
]
_WIDE = Context(prec=40)
_TIMES = (-(10**15), -1, 0, 1, 10**15)


def _decimal(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    most = 10**precision - 1
    ends = [0, 1, -1, most, -most]
    return st.one_of(st.sampled_from(ends), st.integers(-most, most)).map(lambda n: Decimal(n).scaleb(-scale, _WIDE))


def _whole(bits: int, *, signed: bool = True) -> st.SearchStrategy[int]:
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    return st.one_of(st.sampled_from([low, high, 0, 1]), st.integers(low, high))


def _single(x: float) -> float:
    return float(np.float32(x))


LEAVES: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.bool_(), st.booleans()),
    *((getattr(pa, f"int{b}")(), _whole(b)) for b in (8, 16, 32, 64)),
    *((getattr(pa, f"uint{b}")(), _whole(b, signed=False)) for b in (8, 16, 32, 64)),
    (pa.float32(), st.sampled_from([NAN, -0.0, 0.0, float("inf"), -float("inf"), 1.5, _single(0.1)])),
    (pa.float64(), st.sampled_from([NAN, -0.0, 0.0, float("inf"), -float("inf"), 1.5, 0.1, 5e-324])),
    *((pa.decimal128(p, p // 3), _decimal(p, p // 3)) for p in (1, 9, 18, 19, 28, 38)),
    (pa.date32(), st.sampled_from(_TIMES[1:4]).map(lambda d: d * 10_000)),
    (pa.timestamp("us"), st.sampled_from(_TIMES)),
    (pa.timestamp("us", "UTC"), st.sampled_from(_TIMES)),
    (pa.timestamp("ns", "Europe/Berlin"), st.sampled_from(_TIMES)),
    (pa.time64("us"), st.sampled_from([0, 1, 86_399_999_999])),
    (pa.duration("us"), st.sampled_from(_TIMES)),
    (pa.string(), st.one_of(st.sampled_from(TEXTS), st.text(max_size=14))),
    (pa.binary(), st.one_of(st.sampled_from([t.encode() for t in TEXTS]), st.binary(max_size=14))),
]
FLAT = [dtype for dtype, _ in LEAVES]
_OF = {str(dtype): values for dtype, values in LEAVES}


def values(dtype: pa.DataType, *, nulls: bool = True) -> st.SearchStrategy[Any]:
    """Values of a type, and nulls at every level of it."""
    if pa.types.is_struct(dtype):
        fields = {dtype.field(i).name: values(dtype.field(i).type) for i in range(dtype.num_fields)}
        found: st.SearchStrategy[Any] = st.fixed_dictionaries(fields)
    elif pa.types.is_map(dtype):
        entry = st.tuples(values(dtype.key_type, nulls=False), values(dtype.item_type))
        found = st.lists(entry, max_size=3)
    elif pa.types.is_fixed_size_list(dtype):
        found = st.lists(values(dtype.value_type), min_size=dtype.list_size, max_size=dtype.list_size)
    elif pa.types.is_nested(dtype):
        found = st.lists(values(dtype.value_type), max_size=3)
    else:
        found = _OF[str(dtype)]
    return st.one_of(st.none(), found) if nulls else found


def nested_types() -> st.SearchStrategy[pa.DataType]:
    """Lists, structs and maps of anything, three levels deep."""
    leaf = st.sampled_from(FLAT)

    def wrap(inner: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
        return st.one_of(
            inner.map(pa.list_),
            inner.map(lambda t: pa.list_(t, 2)),
            st.lists(inner, max_size=3).map(lambda ts: pa.struct([(f"f{i}", t) for i, t in enumerate(ts)])),
            st.tuples(st.sampled_from([pa.string(), pa.int32()]), inner).map(lambda kv: pa.map_(*kv)),
        )

    return wrap(st.one_of(leaf, wrap(leaf), wrap(wrap(leaf))))


@st.composite
def arrays(draw: st.DrawFn, dtype: pa.DataType, rows: int, *, nullable: bool = True) -> pa.Array:
    """An array, which may be a slice of a longer one."""
    before, after = draw(st.sampled_from([(0, 0), (1, 0), (3, 2), (9, 1)]))
    drawn = draw(
        st.lists(values(dtype, nulls=nullable), min_size=rows + before + after, max_size=rows + before + after)
    )
    return pa.array(drawn, dtype).slice(before, rows)


@st.composite
def tables(draw: st.DrawFn, *, nested: bool = False, columns: int = 4, most: int = 12) -> pa.Table:
    """A table of a few columns and rows, in one or two chunks."""
    kinds = st.one_of(st.sampled_from(FLAT), nested_types()) if nested else st.sampled_from(FLAT)
    types = draw(st.lists(kinds, min_size=1, max_size=columns))
    nullable = draw(st.lists(st.booleans(), min_size=len(types), max_size=len(types)))
    schema = pa.schema([pa.field(f"c{i}", t, n) for i, (t, n) in enumerate(zip(types, nullable, strict=True))])
    pieces = []
    for rows in draw(st.lists(st.integers(0, most), min_size=1, max_size=2)):
        columns_ = [draw(arrays(t, rows, nullable=n)) for t, n in zip(types, nullable, strict=True)]
        pieces.append(pa.Table.from_arrays(columns_, schema=schema))
    return pa.concat_tables(pieces)


def plain(value: Any) -> Hashable:
    """A value that plain Python tells apart as the engine does: all NaNs are one, and the zeros are two."""
    if isinstance(value, float):
        return ("float", "nan") if value != value else ("float", struct.pack("<d", value))
    if isinstance(value, dict):
        return tuple((k, plain(v)) for k, v in value.items())
    if isinstance(value, list | tuple):
        return tuple(plain(v) for v in value)
    return value  # type: ignore[no-any-return]


def counted(zset: ZSet) -> Counter[Any]:
    """A Z-set as plain Python sees it, by way of Arrow."""
    return table_counted(zset.to_arrow())


def table_counted(table: pa.Table) -> Counter[Any]:
    """The rows of a table whose last column is the weight, added up; rows of weight zero are left out."""
    found: Counter[Any] = Counter()
    for row, weight in zip(rows_of(table), table.columns[-1].to_pylist(), strict=True):
        found[row] += weight
    return Counter({row: n for row, n in found.items() if n})


def rows_of(table: pa.Table) -> list[tuple[Hashable, ...]]:
    """The rows of a table whose last column is the weight, without it."""
    columns = [_readable(c) for c in table.columns[:-1]]
    rows = zip(*columns, strict=True) if columns else [()] * table.num_rows
    return [tuple(plain(v) for v in row) for row in rows]


def _readable(column: pa.ChunkedArray) -> list[Any]:
    if pa.types.is_temporal(column.type) and not pa.types.is_date(column.type):
        return column.cast(pa.int64()).to_pylist()  # type: ignore[no-any-return]
    return column.to_pylist()  # type: ignore[no-any-return]


@st.composite
def zsets(draw: st.DrawFn, layout: Layout, *, most: int = 12) -> ZSet:
    """A Z-set of a layout, not consolidated."""
    rows = draw(st.integers(0, most))
    columns = [draw(arrays(f.type, rows, nullable=f.nullable)) for f in layout.schema]
    weights = np.array(draw(st.lists(st.integers(-2, 2), min_size=rows, max_size=rows)), dtype=np.int64)
    return ZSet.packed(layout, pa.Table.from_arrays(columns, schema=layout.schema), weights)


@st.composite
def layouts(draw: st.DrawFn, *, columns: int = 3) -> Layout:
    """A layout of a few columns, some of which are the key."""
    types = draw(st.lists(st.sampled_from(FLAT), min_size=1, max_size=columns))
    fields = [pa.field(f"c{i}", t, draw(st.booleans())) for i, t in enumerate(types)]
    return Layout(pa.schema(fields), keys=draw(st.integers(0, len(fields))))

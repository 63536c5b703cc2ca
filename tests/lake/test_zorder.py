"""Z-order: a permutation, with every column's values near each other."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.errors import InputError, NotFoundError, UnsupportedError
from headwater.lake import zorder


def mean_span(values: npt.NDArray[Any], files: int) -> float:
    """How wide the files' bounds are on average, as a share of the whole range."""
    parts = np.array_split(values, files)
    return float(np.mean([p.max() - p.min() for p in parts]) / (values.max() - values.min()))


@pytest.mark.parametrize("columns", [2, 3])
def test_files_cover_small_boxes(columns: int) -> None:
    rng = np.random.default_rng(7)
    names = ["a", "b", "c"][:columns]
    data = {name: rng.exponential(size=40_000) if name == "b" else rng.integers(0, 10**9, 40_000) for name in names}
    at = zorder.order(pa.table(data), names)
    files = 64
    side = files ** (-1 / columns)
    for name in names:
        ranks = np.argsort(np.argsort(data[name]))
        assert mean_span(ranks, files) > 0.95
        assert mean_span(ranks[at], files) < 1.8 * side


@given(
    st.lists(st.tuples(st.one_of(st.none(), st.integers(0, 5)), st.one_of(st.none(), st.text(max_size=2)))),
    st.integers(1, 3),
)
def test_it_is_a_permutation(rows: list[tuple[int | None, str | None]], repeats: int) -> None:
    columns = {"n": pa.array([r[0] for r in rows], pa.int64()), "s": pa.array([r[1] for r in rows], pa.string())}
    table = pa.table({f"{name}{i}": column for i in range(repeats) for name, column in columns.items()})
    at = zorder.order(table, table.schema.names)
    assert at.dtype == np.int64 and sorted(at.tolist()) == list(range(len(rows)))


@given(st.lists(st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1))))
def test_one_column_is_a_stable_sort_with_nulls_first(values: list[int | None]) -> None:
    at = zorder.order(pa.table({"n": pa.array(values, pa.int64())}), ["n"])
    expected = sorted(range(len(values)), key=lambda i: (values[i] is not None, values[i] or 0))
    assert at.tolist() == expected


MIXED = [
    pa.array([3.5, None, float("nan"), -1.0]),
    pa.array([True, None, False, True]),
    pa.array([dt.date(2020, 1, 1), None, dt.date(2019, 1, 1), dt.date(2021, 1, 1)]),
    pa.array([3, None, 1, 2], pa.timestamp("us", "UTC")),
    pa.array([Decimal("1.5"), None, Decimal("-1.5"), Decimal("0.0")], pa.decimal128(9, 1)),
    pa.array([b"b", None, b"a", b"c"]),
    pa.array(["b", None, "a", "c"]).dictionary_encode(),
    pa.array(["b", None, "a", "c"], pa.large_string()),
    pa.nulls(4),
]


@pytest.mark.parametrize("column", MIXED, ids=lambda c: str(c.type))
def test_any_comparable_type(column: pa.Array) -> None:
    table = pa.table({"c": pa.chunked_array([column.slice(0, 2), column.slice(2)]), "i": [0, 1, 2, 3]})
    at = zorder.order(table, ["c"]).tolist()
    assert sorted(at) == [0, 1, 2, 3]
    if column.null_count == 1:
        assert at[0] == 1
    assert sorted(zorder.order(table, ["c", "i"]).tolist()) == [0, 1, 2, 3]


def test_keys_longer_than_a_word() -> None:
    rng = np.random.default_rng(3)
    table = pa.table({f"c{i}": rng.integers(0, 2**40, 2000) for i in range(5)})
    at = zorder.order(table, table.schema.names)
    assert sorted(at.tolist()) == list(range(2000))
    first = np.asarray(table["c0"])[at]
    assert first[:1000].max() <= first[1000:].min()  # the first column's first bit leads


def test_bad_columns() -> None:
    table = pa.table({"a": [1], "l": [[1]]})
    with pytest.raises(InputError, match="columns"):
        zorder.order(table, [])
    with pytest.raises(NotFoundError, match="zz"):
        zorder.order(table, ["zz"])
    with pytest.raises(UnsupportedError, match="`l`"):
        zorder.order(table, ["l"])

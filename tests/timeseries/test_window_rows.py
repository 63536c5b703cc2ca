"""Windows by rows: against each row's neighbours counted by hand."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.timeseries.series_cases import ORDERING, Row, answer, by_series, random_rows
from tests.timeseries.window_cases import IN_ORDER, MEASURES, answers_of, assert_close, texts_of

from headwater.base.errors import InputError
from headwater.timeseries.methods.windows import WindowMethods
from headwater.timeseries.node import Ordering
from headwater.timeseries.operators.values import Values
from headwater.timeseries.operators.window_rows import RowWindows
from headwater.timeseries.running.here import run_here
from headwater.timeseries.windows import Rows


def expected(table: pa.Table, size: int, after: int, *cases: Any) -> list[Row]:
    found = []
    for rows in by_series(table).values():
        for at, row in enumerate(rows):
            near = rows[max(0, at - size + 1) : at + after + 1]
            found.append({**row, **answers_of(near, *cases)})
    return found


@pytest.mark.parametrize(("size", "after"), [(1, 0), (4, 0), (3, 2), (1, 1), (200, 0), (200, 200)])
def test_every_row(size: int, after: int) -> None:
    table = random_rows(size + after)
    node = RowWindows(Values(table), ORDERING, size, after, texts_of(MEASURES, IN_ORDER))
    assert_close(run_here(node).to_pylist(), expected(table, size, after, MEASURES, IN_ORDER), ["seq"])


@pytest.mark.long
@given(st.integers(0, 1 << 30), st.integers(1, 9), st.integers(0, 4))
def test_any_number_however_rows_are_cut(seed: int, size: int, after: int) -> None:
    table = random_rows(seed, 30, kind="whole")
    cases = ({name: MEASURES[name] for name in ("n", "si", "mx", "hi", "sd")}, {"lx": IN_ORDER["lx"]})
    node = RowWindows(Values(table), ORDERING, size, after, texts_of(*cases))
    assert_close(answer(node, seed), expected(table, size, after, *cases), ["seq"])


def test_rows_that_nothing_puts_in_order() -> None:
    table = pa.table({"t": [1, 1, 2], "v": [1, 2, 3], "w": [4, 4, 4]})
    with pytest.raises(InputError, match="tiebreak"):
        run_here(RowWindows(Values(table), Ordering("t"), 2, 0, {"n": "count(*)"}))
    assert run_here(RowWindows(Values(table), Ordering("t", (), ("v",)), 2, 0, {"n": "count(*)"}))["n"].to_pylist() == [
        1,
        2,
        2,
    ]
    same = table.drop_columns(["v"])
    assert run_here(RowWindows(Values(same), Ordering("t"), 2, 0, {"a": "sum(w)"}))["a"].to_pylist() == [4, 8, 8]


def test_methods() -> None:
    stream = WindowMethods(Values(random_rows(3)), ORDERING)
    made = stream.window(Rows(3, after=1)).agg(n="count(*)")
    assert made.columns == [*stream.columns, "n"]
    assert made.ordering == ORDERING
    for size, after in ((0, 0), (1, -1), (True, 0), ("3", 0)):
        with pytest.raises(InputError, match="number of rows"):
            Rows(size, after)  # type: ignore[arg-type]

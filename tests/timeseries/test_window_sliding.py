"""Sliding windows: against each row's window tried by hand, and against Spark's RANGE frames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.timeseries.series_cases import ORDERING, Row, answer, by_series, random_rows
from tests.timeseries.window_cases import IN_ORDER, MEASURES, answers_of, assert_close, frame_of, number, texts_of

from headwater.base.errors import HeadwaterError, InputError
from headwater.timeseries.methods.windows import WindowMethods
from headwater.timeseries.node import Ordering
from headwater.timeseries.operators.values import Values
from headwater.timeseries.operators.window_sliding import SlidingWindows
from headwater.timeseries.running.here import run_here
from headwater.timeseries.windows import OnCompletion, OnEvent, Sliding

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

UNITS = {"timestamp": 250_000, "zoned": 250_000, "date": 1, "whole": 1}


def expected(table: pa.Table, low: int, high: int, *cases: Any) -> list[Row]:
    found = []
    for rows in by_series(table).values():
        for row in rows:
            if row["t"] is None:
                near = [r for r in rows if r["t"] is None]
            else:
                here = number(row["t"])
                near = [r for r in rows if r["t"] is not None and low <= number(r["t"]) - here <= high]
            found.append({**row, **answers_of(near, *cases)})
    return found


@pytest.mark.parametrize("kind", UNITS)
@pytest.mark.parametrize(("low", "high"), [(-4, 0), (-2, 3), (0, 0), (-9, -2), (1, 5), (-100, 100)])
def test_every_row(kind: str, low: int, high: int) -> None:
    table, unit = random_rows(high - low, kind=kind), UNITS[kind]
    node = SlidingWindows(Values(table), ORDERING, low * unit, high * unit, texts_of(MEASURES, IN_ORDER))
    found = run_here(node).to_pylist()
    assert_close(found, expected(table, low * unit, high * unit, MEASURES, IN_ORDER), ["seq"])


@pytest.mark.long
@given(st.integers(0, 1 << 30), st.integers(-9, 9), st.integers(0, 9))
def test_any_length_however_rows_are_cut(seed: int, low: int, length: int) -> None:
    table = random_rows(seed, 30, kind="whole")
    cases = ({name: MEASURES[name] for name in ("n", "si", "mx", "sd", "hi", "w")},)
    node = SlidingWindows(Values(table), ORDERING, low, low + length, texts_of(*cases))
    assert_close(answer(node, seed), expected(table, low, low + length, *cases), ["seq"])


def test_the_general_way_does_not_depend_on_cuts_either() -> None:
    table = random_rows(5, 80, kind="whole")
    cases = ({name: MEASURES[name] for name in ("dd", "txt", "few")}, IN_ORDER)
    node = SlidingWindows(Values(table), ORDERING, -3, 2, texts_of(*cases))
    assert_close(answer(node, 1), expected(table, -3, 2, *cases), ["seq"])


def test_columns_that_are_not_read_pass_through() -> None:
    table = random_rows(5).drop_columns(["f"]).append_column("deep", pa.array([{"a": [1]}] * 60))
    found = run_here(SlidingWindows(Values(table), ORDERING, -5, 0, {"n": "count(*)"}))
    assert found.schema.names == [*table.schema.names, "n"]
    assert found.sort_by("seq").drop_columns(["n"]).equals(table.sort_by("seq"))


def test_methods() -> None:
    table = pa.table({"t": [1, 2, 3, 3], "v": [1, 2, 3, 4]})
    stream = WindowMethods(Values(table), Ordering("t"))
    sums = {"both": [1, 3, 9, 9], "left": [None, 1, 2, 2], "right": [1, 2, 7, 7], "neither": [None] * 4}
    for closed, totals in sums.items():
        if closed != "neither":
            made = stream.window(Sliding(1, closed=closed)).agg(a="sum(v)")  # type: ignore[arg-type]
            assert run_here(made.plan)["a"].to_pylist() == totals, closed
            assert made.ordering == stream.ordering
    assert stream.window(Sliding(1), trigger=OnEvent()).agg(a="sum(v)").columns == ["t", "v", "a"]


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda s: s.window(Sliding(1, closed="neither")).agg(a="sum(x)"), "a row can be in"),
        (lambda s: s.window(Sliding(1, closed="open")), "closed"),  # type: ignore[arg-type]
        (lambda s: s.window(Sliding(-1)), "not negative"),
        (lambda s: s.window(Sliding(1), trigger=OnCompletion()).agg(a="sum(x)"), "window of its own"),
        (lambda s: s.window(Sliding(1)).agg(X="sum(x)"), "no other column"),
        (lambda s: s.window(Sliding(1)).agg(a="count(DISTINCT x)"), "DISTINCT"),
        (lambda s: s.window(Sliding(1)).agg(a="x + 1"), "aggregate in SQL"),
        (lambda s: s.window(Sliding("1 s")).agg(a="sum(x)"), "whole number"),
    ],
)
def test_mistakes_are_told_at_once(make: Any, says: str) -> None:
    with pytest.raises(HeadwaterError) as error:
        make(WindowMethods(Values(random_rows(1, kind="whole")), ORDERING))
    assert says in str(error.value)


def test_rows_of_one_time() -> None:
    table = pa.table({"t": [1, 1], "v": [1, 2]})
    assert run_here(SlidingWindows(Values(table), Ordering("t"), -1, 0, {"a": "sum(v)"}))["a"].to_pylist() == [3, 3]
    with pytest.raises(InputError, match="E1021"):
        run_here(SlidingWindows(Values(table), Ordering("t"), -1, 0, {"a": "last(v)"}))


def test_spark_says_the_same(spark: SparkSession) -> None:
    for kind, low, high in (
        ("zoned", -1_250_000, 0),
        ("timestamp", -999_999, 250_001),
        ("date", -3, 1),
        ("whole", -4, -1),
    ):
        table = random_rows(29, rows=100, kind=kind)
        node = SlidingWindows(Values(table), ORDERING, low, high, texts_of(MEASURES))
        found = node.frame(frame_of(spark, table))
        assert found is not None
        rows = found.toArrow()
        assert rows.schema.names == node.schema.names
        assert rows.schema.types == node.schema.types
        assert_close(rows.to_pylist(), run_here(node).to_pylist(), ["seq"])
    assert SlidingWindows(Values(table), ORDERING, -1, 0, {"a": "last(x)"}).frame(frame_of(spark, table)) is None

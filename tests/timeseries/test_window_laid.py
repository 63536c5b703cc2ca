"""Tumbling and hopping windows: against every window tried by hand, and against Spark's window()."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.timeseries.series_cases import ORDERING, Row, answer, random_rows
from tests.timeseries.window_cases import (
    DISTINCT,
    IN_ORDER,
    MEASURES,
    answers_of,
    assert_close,
    frame_of,
    in_series,
    moment,
    number,
    texts_of,
)

from headwater.base.errors import ExpressionError, HeadwaterError, InputError, UnsupportedError
from headwater.timeseries.methods.windows import WindowMethods
from headwater.timeseries.node import Ordering
from headwater.timeseries.operators.values import Values
from headwater.timeseries.operators.window_laid import LaidWindows, laid
from headwater.timeseries.running.here import run_here
from headwater.timeseries.windows import Hopping, OnCompletion, Tumbling

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

UNITS = {"timestamp": 250_000, "zoned": 250_000, "date": 1, "whole": 1}


def expected(table: pa.Table, size: int, every: int, offset: int, *cases: Any) -> list[Row]:
    kind = table.schema.field("t").type
    found = []
    for (s,), rows in in_series(table, ORDERING).items():
        times = [number(row["t"]) for row in rows]
        first = (min(times) - size - offset) // every - 1
        last = (max(times) - offset) // every + 1
        for index in range(first, last + 1):
            start = index * every + offset
            inside = [row for row, t in zip(rows, times, strict=True) if start <= t < start + size]
            if inside:
                bounds = {"window_start": moment(start, kind), "window_end": moment(start + size, kind)}
                found.append({"s": s, **bounds, **answers_of(inside, *cases)})
    return found


@pytest.mark.long
@pytest.mark.parametrize("kind", UNITS)
@pytest.mark.parametrize(
    ("size", "every", "offset"), [(7, 7, 0), (7, 7, 3), (8, 2, 0), (7, 3, 1), (5, 4, 0), (500, 500, 0)]
)
def test_every_window(kind: str, size: int, every: int, offset: int) -> None:
    unit = UNITS[kind]
    table = random_rows(size + every, kind=kind)
    cases = (MEASURES, DISTINCT, IN_ORDER)
    node = LaidWindows(Values(table), ORDERING, size * unit, every * unit, offset * unit, texts_of(*cases))
    found = answer(node, size, by="")
    assert_close(found, expected(table, size * unit, every * unit, offset * unit, *cases), ["s", "window_start"])


@pytest.mark.long
@given(st.integers(0, 1 << 30), st.integers(1, 12), st.integers(1, 12), st.integers(-20, 20))
def test_any_length_and_step(seed: int, size: int, every: int, offset: int) -> None:
    size, every = max(size, every), min(size, every)
    table = random_rows(seed, 40, kind="whole")
    cases = ({name: MEASURES[name] for name in ("n", "si", "mx", "dd")},)
    node = LaidWindows(Values(table), ORDERING, size, every, offset, texts_of(*cases))
    assert_close(answer(node, seed, by=""), expected(table, size, every, offset, *cases), ["s", "window_start"])


def test_windows_before_the_first_row_exist() -> None:
    assert [a.tolist() for a in laid(np.array([3]), np.array([0]), 4, 1, 0)] == [[0] * 4, [0, 1, 2, 3]]


def test_no_rows() -> None:
    table = random_rows(1)
    node = LaidWindows(Values(table.slice(0, 0)), ORDERING, 10, 10, 0, {"n": "count(*)"})
    assert run_here(node).num_rows == 0


def test_rows_of_one_time_need_a_tiebreak_only_for_what_goes_by_order() -> None:
    table = pa.table({"t": [1, 1], "v": [1, 2], "w": [3, 3]})

    def run(text: str) -> Any:
        return run_here(LaidWindows(Values(table), Ordering("t"), 10, 10, 0, {"a": text}))["a"].to_pylist()

    assert run("sum(v)") == [3]
    assert run("first(w)") == [3]
    with pytest.raises(InputError, match="E1021"):
        run("first(v)")


def test_whole_numbers_that_do_not_fit() -> None:
    table = pa.table({"t": [1, 2, 3], "v": [1 << 62, 1 << 62, 5]})
    node = LaidWindows(Values(table), Ordering("t"), 10, 10, 0, {"a": "sum(v)"})
    with pytest.raises(ExpressionError, match=r"overflow|out of range|range"):
        run_here(node)
    part = LaidWindows(Values(table.slice(1)), Ordering("t"), 10, 10, 0, {"a": "sum(v)", "n": "count(*)"})
    assert run_here(part).select(["a", "n"]).to_pylist() == [{"a": (1 << 62) + 5, "n": 2}]
    far = LaidWindows(Values(pa.table({"t": [(1 << 63) - 2]})), Ordering("t"), 10, 10, 0, {"n": "count(*)"})
    with pytest.raises(InputError, match="64-bit"):
        run_here(far)


def test_keys_are_sparks() -> None:
    nan = float("nan")
    table = pa.table({"k": [-0.0, 0.0, nan, nan, None], "t": [1, 2, 3, 4, 5]})
    node = LaidWindows(Values(table), Ordering("t", ("k",)), 10, 10, 0, {"n": "count(*)"})
    assert [(repr(r["k"]), r["n"]) for r in run_here(node).to_pylist()] == [("None", 1), ("0.0", 2), ("nan", 2)]


def test_methods() -> None:
    table = random_rows(3, kind="zoned")
    stream = WindowMethods(Values(table), ORDERING)
    made = stream.window(Tumbling("2 s", origin="2026-01-01T00:00:00.500+00:00"), trigger=OnCompletion("1 s")).agg(
        n="count(*)"
    )
    assert made.ordering == Ordering("window_start", ("s",))
    for row in run_here(made.plan).to_pylist():
        assert number(row["window_start"]) % 2_000_000 == 500_000
        assert number(row["window_complete"]) == number(row["window_start"]) + 3_000_000
    hop = stream.window(Hopping("2 s", "500 ms", offset="-1 s 250 ms")).agg(n="count(*)")
    assert {number(r["window_start"]) % 500_000 for r in run_here(hop.plan).to_pylist()} == {250_000}
    assert "Tumbling" in made.plan.line()


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda s: s.window("1m"), "Tumbling, Hopping"),
        (lambda s: s.window(Tumbling("1m"), trigger="now"), "OnCompletion"),
        (lambda s: s.window(Tumbling("1m")).agg(), "at least one aggregate"),
        (lambda s: s.window(Tumbling("1m")).agg(a="x"), "aggregate in SQL"),
        (lambda s: s.window(Tumbling("1m")).agg(a="sum(nothing)"), "nothing"),
        (lambda s: s.window(Tumbling("1m")).agg(a="sum(x) + i"), ""),
        (lambda s: s.window(Tumbling("1m")).agg(a="sum(x) OVER ()"), ""),
        (lambda s: s.window(Tumbling("1m")).agg(a="sum(x), sum(i"), ""),
        (lambda s: s.window(Tumbling("1m")).agg(window_end="sum(x)"), "no other column"),
        (lambda s: s.window(Tumbling("1m")).agg(S="sum(x)"), "no other column"),
        (lambda s: s.window(Tumbling("1m")).agg(a="listagg(name, ',')"), "WITHIN"),
        (lambda s: s.window(Tumbling("one minute")), "5 min"),
        (lambda s: s.window(Tumbling("1m", "2 s", "2020-01-01")), "either"),
        (lambda s: s.window(Tumbling("1m", origin="noon")).agg(a="sum(x)"), "a moment like"),
        (lambda s: s.window(Hopping("1m", "2m")), "not longer"),
    ],
)
def test_mistakes_are_told_at_once(make: Any, says: str) -> None:
    stream = WindowMethods(Values(random_rows(1)), ORDERING)
    with pytest.raises(HeadwaterError) as error:
        make(stream)
    assert says in str(error.value)


def test_times_that_are_none() -> None:
    table = pa.table({"t": pa.array([1, 2], pa.timestamp("ns")), "x": [1.5, 2.5]})
    with pytest.raises(UnsupportedError):
        WindowMethods(Values(table), Ordering("t")).window(Tumbling("1s")).agg(a="sum(x)")
    with pytest.raises(InputError):
        WindowMethods(Values(table), None).window(Tumbling("1s"))
    with pytest.raises(UnsupportedError):
        WindowMethods(Values(table), Ordering("x")).window(Tumbling(1)).agg(a="sum(t)")


def test_spark_says_the_same(spark: SparkSession) -> None:
    cases = [("zoned", 7, 7, 3), ("timestamp", 7, 3, 1), ("date", 5, 2, 1), ("whole", 8, 3, -2)]
    for kind, size, every, offset in cases:
        table, unit = random_rows(17, rows=150, kind=kind), UNITS[kind]
        # Distinct values make Spark's plan a long one, so once is enough.
        texts = texts_of(MEASURES, DISTINCT if kind == "zoned" else {})
        node = LaidWindows(Values(table), ORDERING, size * unit, every * unit, offset * unit, texts)
        found = node.frame(frame_of(spark, table))
        assert found is not None
        rows = found.toArrow()
        assert rows.schema.types == node.schema.types
        assert rows.schema.names == node.schema.names
        assert_close(rows.to_pylist(), run_here(node).to_pylist(), ["s", "window_start"])
    ordered = LaidWindows(Values(table), ORDERING, 5, 5, 0, {"a": "first(x)"})
    assert ordered.frame(frame_of(spark, table)) is None

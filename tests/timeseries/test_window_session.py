"""Sessions: against rows that are followed one by one, and against Spark's session_window()."""

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

from headwater.base.errors import InputError
from headwater.timeseries.methods.windows import WindowMethods
from headwater.timeseries.node import Ordering
from headwater.timeseries.operators.values import Values
from headwater.timeseries.operators.window_session import SessionWindows, session_starts
from headwater.timeseries.running.here import run_here
from headwater.timeseries.windows import OnCompletion, Session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

UNITS = {"timestamp": 250_000, "zoned": 250_000, "date": 1, "whole": 1}


def expected(table: pa.Table, gap: int, *cases: Any) -> list[Row]:
    kind = table.schema.field("t").type
    found = []
    for (s,), rows in in_series(table, ORDERING).items():
        sessions: list[list[Row]] = []
        for row in rows:
            if sessions and number(row["t"]) - number(sessions[-1][-1]["t"]) <= gap:
                sessions[-1].append(row)
            else:
                sessions.append([row])
        for session in sessions:
            start, end = number(session[0]["t"]), number(session[-1]["t"]) + gap
            bounds = {"window_start": moment(start, kind), "window_end": moment(end, kind)}
            found.append({"s": s, **bounds, **answers_of(session, *cases)})
    return found


@pytest.mark.long
@pytest.mark.parametrize("kind", UNITS)
@pytest.mark.parametrize("gap", [1, 2, 40])
def test_every_session(kind: str, gap: int) -> None:
    table = random_rows(gap, kind=kind)
    cases = (MEASURES, DISTINCT, IN_ORDER)
    node = SessionWindows(Values(table), ORDERING, gap * UNITS[kind], texts_of(*cases))
    assert_close(answer(node, gap, by=""), expected(table, gap * UNITS[kind], *cases), ["s", "window_start"])


@pytest.mark.long
@given(st.integers(0, 1 << 30), st.integers(1, 6))
def test_any_gap(seed: int, gap: int) -> None:
    table = random_rows(seed, 30, kind="whole")
    cases = ({name: MEASURES[name] for name in ("n", "si", "dd")},)
    node = SessionWindows(Values(table), ORDERING, gap, texts_of(*cases))
    assert_close(answer(node, seed, by=""), expected(table, gap, *cases), ["s", "window_start"])


def test_a_gap_as_long_as_the_sessions_goes_on_with_it() -> None:
    assert session_starts(np.array([0, 3, 7]), np.array([0]), 3).tolist() == [0, 2]
    ends = np.array([-(1 << 63), (1 << 63) - 1])
    assert session_starts(ends, np.array([0]), 3).tolist() == [0, 1]


def test_methods() -> None:
    table = random_rows(3, kind="date")
    stream = WindowMethods(Values(table), ORDERING)
    made = stream.window(Session("2 days"), trigger=OnCompletion("1 day")).agg({"n rows": "count(*)"})
    assert made.ordering == Ordering("window_start", ("s",))
    for row in run_here(made.plan).to_pylist():
        assert (row["window_complete"] - row["window_end"]).days == 1
    with pytest.raises(InputError, match="whole days"):
        stream.window(Session("2 hours")).agg(n="count(*)")
    with pytest.raises(InputError, match="greater than zero"):
        Session("-2 days")


def test_spark_says_the_same(spark: SparkSession) -> None:
    for kind, gap in (("zoned", 250_000), ("timestamp", 499_999)):
        table = random_rows(23, rows=100, kind=kind)
        node = SessionWindows(Values(table), ORDERING, gap, texts_of(MEASURES))
        found = node.frame(frame_of(spark, table))
        assert found is not None
        rows = found.toArrow()
        assert rows.schema.types == node.schema.types
        assert_close(rows.to_pylist(), run_here(node).to_pylist(), ["s", "window_start"])
    dates = Values(random_rows(1, kind="date"))
    assert SessionWindows(dates, ORDERING, 1, {"n": "count(*)"}).frame(frame_of(spark, dates.table)) is None

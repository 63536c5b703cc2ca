"""The value of a window so far, beside each row: against the rows up to it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.timeseries.series_cases import ORDERING, Row, answer, random_rows
from tests.timeseries.window_cases import (
    IN_ORDER,
    MEASURES,
    answers_of,
    assert_close,
    in_series,
    moment,
    number,
    texts_of,
)

from headwater.base.errors import InputError, UnsupportedError
from headwater.timeseries.methods.windows import WindowMethods
from headwater.timeseries.node import Ordering
from headwater.timeseries.operators.values import Values
from headwater.timeseries.operators.window_running import RunningWindows
from headwater.timeseries.running.here import run_here
from headwater.timeseries.windows import Hopping, OnEvent, Session, Tumbling

UNITS = {"timestamp": 250_000, "zoned": 250_000, "date": 1, "whole": 1}


def expected(table: pa.Table, size: int | None, offset: int, gap: int | None, *cases: Any) -> list[Row]:
    kind = table.schema.field("t").type
    found = []
    for rows in in_series(table, ORDERING).values():
        window: list[Row] = []
        for row in rows:
            at = number(row["t"])
            if size is not None:
                start = (at - offset) // size * size + offset
                window = [r for r in window if number(r["t"]) >= start]
                end = start + size
            else:
                assert gap is not None
                if window and at - number(window[-1]["t"]) > gap:
                    window = []
                start, end = number((window or [row])[0]["t"]), at + gap
            window = [*window, row]
            bounds = {"window_start": moment(start, kind), "window_end": moment(end, kind)}
            found.append({**row, **bounds, **answers_of(window, *cases)})
    return found


@pytest.mark.parametrize("kind", UNITS)
@pytest.mark.parametrize(("size", "offset", "gap"), [(7, 0, None), (10, 3, None), (None, 0, 2)])
def test_every_row(kind: str, size: int | None, offset: int, gap: int | None) -> None:
    table, unit = random_rows(7, kind=kind), UNITS[kind]
    lengths = (size and size * unit, offset * unit, gap and gap * unit)
    texts = texts_of(MEASURES, IN_ORDER)
    node = RunningWindows(Values(table), ORDERING, texts, *lengths)
    assert_close(run_here(node).to_pylist(), expected(table, *lengths, MEASURES, IN_ORDER), ["seq"])


@pytest.mark.long
@given(st.integers(0, 1 << 30), st.integers(1, 9), st.booleans())
def test_any_length_however_rows_are_cut(seed: int, length: int, sessions: bool) -> None:
    table = random_rows(seed, 30, kind="whole")
    cases = ({name: MEASURES[name] for name in ("n", "si", "mx", "hi")}, {"lx": IN_ORDER["lx"]})
    lengths = (None, 0, length) if sessions else (length, 0, None)
    node = RunningWindows(Values(table), ORDERING, texts_of(*cases), *lengths)
    assert_close(answer(node, seed), expected(table, *lengths, *cases), ["seq"])


def test_methods() -> None:
    stream = WindowMethods(Values(random_rows(3)), ORDERING)
    for window in (Tumbling("2 s"), Session("1 s")):
        made = stream.window(window, trigger=OnEvent()).agg(n="count(*)")
        assert made.columns == [*stream.columns, "window_start", "window_end", "n"]
        assert made.ordering == ORDERING
    with pytest.raises(UnsupportedError, match="several windows"):
        stream.window(Hopping("2 s", "1 s"), trigger=OnEvent()).agg(n="count(*)")
    with pytest.raises(InputError, match="no other column"):
        stream.window(Tumbling("2 s"), trigger=OnEvent()).agg(window_start="count(*)")


def test_rows_that_nothing_puts_in_order() -> None:
    table = pa.table({"t": [1, 1], "v": [1, 2]})
    with pytest.raises(InputError, match="tiebreak"):
        run_here(RunningWindows(Values(table), Ordering("t"), {"n": "count(*)"}, 10))

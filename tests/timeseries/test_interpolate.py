"""Filled values: against what is known of each column before and after each point, looked for by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.amounts import SOAK
from tests.timeseries.series_cases import ORDERING, Row, answer, by_series, random_rows
from tests.timeseries.window_cases import assert_close, in_series, moment, number

from headwater.base.errors import HeadwaterError, InputError
from headwater.timeseries import surrounded
from headwater.timeseries.methods.windows import WindowMethods
from headwater.timeseries.node import Ordering
from headwater.timeseries.operators.interpolate import METHODS, Interpolate
from headwater.timeseries.operators.values import Values
from headwater.timeseries.running.here import run_here


@pytest.fixture(autouse=True, params=[1 << 18, 5, 1] if SOAK else [1 << 18, 3], ids=lambda rows: f"pieces of {rows}")
def piece_rows(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A series may lie in one piece or in many."""
    monkeypatch.setattr(surrounded, "PIECE_ROWS", request.param)


UNITS = {"timestamp": 250_000, "zoned": 250_000, "date": 1, "whole": 1}


def filled(rows: list[Row], at: int, name: str, method: str, limit: int | None) -> tuple[Any, bool]:
    known: dict[int, Any] = {}
    for row in rows:
        if row[name] is not None:
            known[number(row["t"])] = row[name]
    if at in known:
        return (float(known[at]) if method == "linear" else known[at]), False
    if method in ("zero", "null"):
        return (0, True) if method == "zero" else (None, False)
    before = max((t for t in known if t < at), default=None)
    after = min((t for t in known if t > at), default=None)
    if limit is not None:
        before = before if before is not None and at - before <= limit else None
        after = after if after is not None and after - at <= limit else None
    if method == "ffill":
        return (None, False) if before is None else (known[before], True)
    if method == "bfill":
        return (None, False) if after is None else (known[after], True)
    if before is None or after is None:
        return None, False
    a, b = float(known[before]), float(known[after])
    return a + (b - a) * ((at - before) / (after - before)), True


def on_grid(table: pa.Table, names: list[str], method: str, every: int, origin: int, limit: int | None) -> list[Row]:
    kind = table.schema.field("t").type
    found = []
    for (s,), rows in in_series(table, ORDERING).items():
        first, last = number(rows[0]["t"]), number(rows[-1]["t"])
        at = origin + -((origin - first) // every) * every
        while at <= last:
            values = {name: filled(rows, at, name, method, limit) for name in names}
            row = {"s": s, "t": moment(at, kind), **{n: v for n, (v, _) in values.items()}}
            found.append(row | {f"{n}_filled": f for n, (_, f) in values.items()})
            at += every
    return found


@pytest.mark.parametrize("kind", UNITS)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("every", "origin", "limit"), [(2, 0, None), (3, 1, 2)])
def test_every_point(kind: str, method: Any, every: int, origin: int, limit: int | None) -> None:
    table, unit = random_rows(every, kind=kind), UNITS[kind]
    names = ["i", "x"] if method in ("linear", "zero") else ["i", "x", "name", "tags", "d"]
    reach = None if limit is None else limit * unit
    node = Interpolate(Values(table), ORDERING, tuple(names), method, every * unit, origin * unit, reach, flags=True)
    expected = on_grid(table, names, method, every * unit, origin * unit, reach)
    if method == "zero":
        expected = [{**row, "x": float(row["x"])} for row in expected]
    assert_close(answer(node, every, by=""), expected, ["s", "t"])


@pytest.mark.long
@given(
    st.integers(0, 1 << 30),
    st.integers(1, 9),
    st.integers(-9, 9),
    st.none() | st.integers(0, 5),
    st.sampled_from(METHODS),
)
def test_any_grid(seed: int, every: int, origin: int, limit: int | None, method: Any) -> None:
    table = random_rows(seed, 25, kind="whole")
    node = Interpolate(Values(table), ORDERING, ("i",), method, every, origin, limit, flags=True)
    assert_close(answer(node, seed, by=""), on_grid(table, ["i"], method, every, origin, limit), ["s", "t"])


@pytest.mark.parametrize("method", METHODS)
def test_nulls_of_rows(method: Any) -> None:
    table = random_rows(9, kind="whole")
    node = Interpolate(Values(table), ORDERING, ("i",), method, limit=4, flags=True)
    expected = []
    for rows in by_series(table).values():
        untimed = [{**r, "t": 0} for r in rows if r["t"] is None]
        timed = [r for r in rows if r["t"] is not None]
        for row in rows:
            value = row["i"]
            if value is None and method == "zero":
                value = 0
            elif value is None and method != "null":
                near, at = (untimed, 0) if row["t"] is None else (timed, row["t"])
                value = filled(near, at, "i", method, 4)[0]
            new = value is not None and row["i"] is None
            value = float(value) if method == "linear" and value is not None else value
            expected.append({**row, "i": value, "i_filled": new})
    assert_close(answer(node, 9), expected, ["seq"])


def test_points_between_microseconds_and_many_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    from headwater.timeseries.operators import interpolate

    monkeypatch.setattr(interpolate, "_POINTS", 7)
    times = np.array([0, 100, 1_000])
    table = pa.table({"t": pa.array(times, pa.timestamp("us")), "v": [0.0, 10.0, 100.0]})
    found = run_here(WindowMethods(Values(table), Ordering("t")).interpolate("25 us").plan)
    assert found["v"].to_pylist() == pytest.approx([t / 10 for t in range(0, 1_001, 25)])


def test_methods_and_mistakes() -> None:
    table = random_rows(4)
    stream = WindowMethods(Values(table), ORDERING)
    made = stream.interpolate("1 s", "ffill")
    assert made.columns == ["s", "t", "i", "x", "f", "d", "name", "tags"]
    assert made.ordering == Ordering("t", ("s",))
    assert stream.interpolate(columns="x").columns == stream.columns
    wrong: list[tuple[Callable[[], Any], str]] = [
        (lambda: stream.interpolate("1 s", "cubic"), "one of"),  # type: ignore[arg-type]
        (lambda: stream.interpolate("1 s", columns="name"), "numbers"),
        (lambda: stream.interpolate("1 s", "zero", columns="nothing"), "nothing"),
        (lambda: stream.interpolate("1 s", "ffill", columns="seq"), "do not make the order"),
        (lambda: stream.interpolate("1 s", limit="-1 s"), "not negative"),
        (lambda: stream.interpolate("0 s"), "greater than zero"),
    ]
    for make, says in wrong:
        with pytest.raises(HeadwaterError) as error:
            make()
        assert says in str(error.value)


def test_rows_of_one_time_need_a_tiebreak() -> None:
    table = pa.table({"t": [1, 1, 3], "v": [1, 2, 3]})
    with pytest.raises(InputError, match="E1021"):
        run_here(WindowMethods(Values(table), Ordering("t")).interpolate(1).plan)
    by_value = WindowMethods(Values(table.append_column("n", pa.array([2, 1, 1]))), Ordering("t", (), ("n",)))
    assert run_here(by_value.interpolate(1).plan)["v"].to_pylist() == [1.0, 2.0, 3.0]

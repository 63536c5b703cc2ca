"""Ordered methods: what they make, what they refuse, and that their kernels travel."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest
from tests.timeseries.series_cases import bits, random_rows

from headwater.base.errors import HeadwaterError, InputError, NotFoundError, UnsupportedError
from headwater.timeseries.methods.ordered import OrderedMethods
from headwater.timeseries.node import Keyed, Ordering, RowWise
from headwater.timeseries.operators.values import Values
from headwater.timeseries.rows import Rows
from headwater.timeseries.running.here import run_here

Stream = OrderedMethods


class Nothing:
    def start(self, key: dict[str, Any]) -> None: ...

    def step(self, state: None, batch: pa.Table) -> None: ...

    def finish(self, state: None) -> None: ...


def stream(kind: str = "timestamp") -> Stream:
    return Stream(Values(random_rows(1, kind=kind))).ordered("t", by="s", tiebreak=["seq"])


METHODS: dict[str, Callable[[Stream], Stream]] = {
    "shift": lambda s: s.shift(["i", "NAME"], 2, fill={"i": 0}),
    "diff": lambda s: s.diff(["i", "t", "d"]),
    "cumulative": lambda s: s.cumulative({"a b": "sum(i)"}, twice="max(i * 2)"),
    "rolling": lambda s: s.rolling("1s 500ms", total="sum(x)", text="max(name)", min_periods=2),
    "rolling rows": lambda s: s.rolling(rows=3, ahead=1, closed="both", total="sum(x)"),
    "rolling timedelta": lambda s: s.rolling(timedelta(milliseconds=1_500), total="sum(x)"),
    "ema": lambda s: s.ema("x", span_rows=9),
    "ema rows": lambda s: s.ema("x", half_life_rows=2.5, nulls="age"),
    "ema time": lambda s: s.ema(["x", "i"], half_life="2s", suffix="_smooth"),
    "zscore": lambda s: s.zscore("x"),
    "zscore rows": lambda s: s.zscore("x", rows=5),
    "vwap": lambda s: s.vwap("x", "i"),
    "vwap windows": lambda s: s.vwap("x", "i", every="1s"),
    "lookback": lambda s: s.lookback(["x", "i"], 3, exact=True),
    "flattened": lambda s: s.lookback(["x", "i"], 2, flatten=True),
    "fourier": lambda s: s.fourier("x", 0.5),
    "states": lambda s: s.state_intervals("name"),
    "earliest": lambda s: s.earliest(2),
    "latest": lambda s: s.latest(),
    "before": lambda s: s.before("2026-01-01 00:00:05", inclusive=True),
    "after": lambda s: s.after("2026-01-01 00:00:05"),
    "between": lambda s: s.between("2026-01-01", "2026-01-01 00:00:05", closed="left"),
    "stateful": lambda s: s.stateful_transform(Nothing(), pa.schema([("n", pa.int64())])),
}


@pytest.mark.parametrize("name", METHODS)
def test_it_runs_and_its_kernel_can_be_sent(name: str) -> None:
    made = METHODS[name](stream())
    found = run_here(made.plan)
    assert found.schema == made.schema
    assert made.plan.line()
    node = made.plan
    assert isinstance(node, (Keyed, RowWise))
    kernel = pickle.loads(pickle.dumps(node.kernel()))
    below = run_here(node.inputs[0])
    again = (
        kernel(below)
        if isinstance(node, RowWise)
        else pa.concat_tables([node.schema.empty_table(), *kernel(Rows([below]))])
    )
    assert bits(again.to_pylist()) == bits(found.to_pylist())


def test_orderings_follow() -> None:
    assert stream().shift("i").ordering == Ordering("t", ("s",), ("seq",))
    assert stream().state_intervals("name").ordering == Ordering("start", ("s",))
    assert stream().vwap("x", "i", every="1s").ordering == Ordering("t", ("s",))
    assert stream().stateful_transform(Nothing(), pa.schema([("n", pa.int64())])).ordering is None


REFUSED: dict[str, tuple[type[HeadwaterError], Callable[[Stream], Stream]]] = {
    "no ordering": (InputError, lambda s: Stream(s.plan).shift("i")),
    "time of another type": (UnsupportedError, lambda s: s.ordered("name")),
    "a column twice": (InputError, lambda s: s.ordered("t", by="t")),
    "no such column": (NotFoundError, lambda s: s.shift("nope")),
    "no columns": (InputError, lambda s: s.shift([])),
    "half a row": (InputError, lambda s: s.shift("i", 0.5)),  # type: ignore[arg-type]
    "a fill of another type": (InputError, lambda s: s.shift("i", fill="x")),
    "a name of the series": (InputError, lambda s: s.cumulative(T="sum(i)")),
    "diff of texts": (UnsupportedError, lambda s: s.diff("name")),
    "no aggregates": (InputError, lambda s: s.cumulative()),
    "no aggregate": (InputError, lambda s: s.cumulative(a="")),
    "a mistake in SQL": (InputError, lambda s: s.cumulative(a="sum(nope)")),
    "an unknown function": (InputError, lambda s: s.rolling("1s", a="frobnicate(x)")),
    "no size": (InputError, lambda s: s.rolling(a="sum(x)")),
    "two sizes": (InputError, lambda s: s.rolling("1s", rows=3, a="sum(x)")),
    "no rows": (InputError, lambda s: s.rolling(rows=0, a="sum(x)")),
    "no time": (InputError, lambda s: s.rolling("0s", a="sum(x)")),
    "no length": (InputError, lambda s: s.rolling("soon", a="sum(x)")),
    "half open": (InputError, lambda s: s.rolling("1s", a="sum(x)", closed="half")),
    "fewer than none": (InputError, lambda s: s.rolling("1s", a="sum(x)", min_periods=-1)),
    "no weight": (InputError, lambda s: s.ema("x")),
    "two weights": (InputError, lambda s: s.ema("x", alpha=0.5, span_rows=3)),
    "too much weight": (InputError, lambda s: s.ema("x", alpha=1.5)),
    "no half-life": (InputError, lambda s: s.ema("x", half_life_rows=0)),
    "adjusted in time": (InputError, lambda s: s.ema("x", half_life="1s", adjust=True)),
    "unknown nulls": (InputError, lambda s: s.ema("x", alpha=0.5, nulls="drop")),
    "the average of texts": (UnsupportedError, lambda s: s.ema("name", alpha=0.5)),
    "windows and frames": (InputError, lambda s: s.vwap("x", "i", every="1s", rows=3)),
    "exact and flat": (InputError, lambda s: s.lookback("x", 2, exact=True, flatten=True)),
    "no step": (InputError, lambda s: s.fourier("x", 0)),
    "the state of the series": (InputError, lambda s: s.state_intervals("s")),
    "none of the first": (InputError, lambda s: s.earliest(0)),
    "no moment": (InputError, lambda s: s.before("soon")),
    "no object": (InputError, lambda s: s.stateful_transform(object(), s.schema)),  # type: ignore[arg-type]
    "no schema": (InputError, lambda s: s.stateful_transform(Nothing(), {"n": "int"})),
    "no batches": (InputError, lambda s: s.stateful_transform(Nothing(), s.schema, batch_rows=0)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_mistakes_are_told_at_once(name: str) -> None:
    kind, attempt = REFUSED[name]
    with pytest.raises(kind) as caught:
        attempt(stream())
    assert caught.value.hint


def test_whole_numbers_take_numbers_as_lengths() -> None:
    assert run_here(stream("whole").rolling(3, a="count(*)").plan).num_rows == 60
    with pytest.raises(InputError):
        stream("whole").rolling("3s", a="count(*)")
    with pytest.raises(InputError):
        stream("date").rolling("3h", a="count(*)")

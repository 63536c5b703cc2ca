"""A row without a time is refused by every operator that goes by time, in the same words, wherever it runs."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headwater as hw
from headwater.base.errors import InputError
from headwater.timeseries import operators
from headwater.timeseries.node import Node, Ordering
from headwater.timeseries.operators.values import Values
from headwater.timeseries.running import stages
from headwater.timeseries.running.here import run_here
from headwater.timeseries.stream import Stream

SCHEMA = pa.schema([("s", pa.string()), ("t", pa.int64()), ("p", pa.float64()), ("n", pa.int64())])
GOOD = pa.table({"s": ["a", "a", "b"], "t": [1, 2, 3], "p": [1.0, 2.0, 3.0], "n": [1, 2, 3]}, schema=SCHEMA)
BAD = pa.table({"s": ["a", "a", "b"], "t": [1, None, None], "p": [1.0, 2.0, 3.0], "n": [1, 2, 3]}, schema=SCHEMA)


class _Walk:
    def start(self, key: Any) -> None:
        return None

    def step(self, state: Any, batch: pa.Table) -> pa.Table:
        return batch

    def finish(self, state: Any) -> None:
        return None


IN_TIME: dict[str, Callable[[Stream, Stream], Stream]] = {
    "as-of, left": lambda bad, good: bad.join_asof(good),
    "as-of, right": lambda bad, good: good.join_asof(bad),
    "as-of, nearest": lambda bad, good: good.join_asof(bad, direction="nearest", tolerance=5),
    "range, left": lambda bad, good: bad.join_range(good, before=1),
    "range, right": lambda bad, good: good.join_range(bad, before=1, how="left"),
    "tumbling": lambda bad, good: bad.window(hw.Tumbling(10)).agg(n="count(*)"),
    "tumbling so far": lambda bad, good: bad.window(hw.Tumbling(10), trigger=hw.OnEvent()).agg(c="count(*)"),
    "hopping": lambda bad, good: bad.window(hw.Hopping(10, 5)).agg(n="count(*)"),
    "session": lambda bad, good: bad.window(hw.Session(10)).agg(n="count(*)"),
    "session so far": lambda bad, good: bad.window(hw.Session(10), trigger=hw.OnEvent()).agg(c="count(*)"),
    "sliding": lambda bad, good: bad.window(hw.Sliding(10)).agg(c="count(*)"),
    "rows": lambda bad, good: bad.window(hw.Rows(2)).agg(c="count(*)"),
    "bars": lambda bad, good: bad.bars(10, price="p"),
    "range_stats": lambda bad, good: bad.range_stats(10, columns="p"),
    "grouped_stats": lambda bad, good: bad.grouped_stats(10, columns="p"),
    "resample": lambda bad, good: bad.resample(10),
    "resample with fill": lambda bad, good: bad.resample(10, fill="ffill"),
    "interpolate on a grid": lambda bad, good: bad.interpolate(1, columns="p"),
    "interpolate in place": lambda bad, good: bad.interpolate(columns="p"),
    "shift": lambda bad, good: bad.shift("p"),
    "diff": lambda bad, good: bad.diff("p"),
    "cumulative": lambda bad, good: bad.cumulative(total="sum(p)"),
    "cumulative, of a series in memory": lambda bad, good: bad.cumulative(total="collect_list(n)"),
    "rolling by time": lambda bad, good: bad.rolling(5, total="sum(p)"),
    "rolling by rows": lambda bad, good: bad.rolling(rows=2, total="sum(p)"),
    "ema": lambda bad, good: bad.ema("p", alpha=0.5),
    "ema by time": lambda bad, good: bad.ema("p", half_life=5),
    "zscore": lambda bad, good: bad.zscore("p"),
    "vwap": lambda bad, good: bad.vwap("p", "n"),
    "vwap of windows": lambda bad, good: bad.vwap("p", "n", every=10),
    "lookback": lambda bad, good: bad.lookback("p", 2),
    "lookback, flat": lambda bad, good: bad.lookback("p", 2, flatten=True),
    "fourier": lambda bad, good: bad.fourier("p"),
    "match": lambda bad, good: bad.match("a b*", {"b": "p > a.p"}),
    "match, events": lambda bad, good: bad.match(events={"a": None, "b": "p > a.p"}, within=5),
    "state_intervals": lambda bad, good: bad.state_intervals("p"),
    "describe_series": lambda bad, good: bad.describe_series(),
    "earliest": lambda bad, good: bad.earliest(),
    "latest": lambda bad, good: bad.latest(),
    "stateful_transform": lambda bad, good: bad.stateful_transform(_Walk(), SCHEMA),
}
NOT_IN_TIME: dict[str, tuple[Callable[[Stream], Stream], int]] = {
    "filter": (lambda bad: bad.filter("p > 0"), 3),
    "before": (lambda bad: bad.before(9), 1),
    "after": (lambda bad: bad.after(0), 1),
    "between": (lambda bad: bad.between(0, 9), 1),
    "the hint": (lambda bad: bad.filter("t IS NOT NULL").shift("p"), 1),
    "the other hint": (lambda bad: bad.with_columns(t="coalesce(t, 7)").shift("p"), 3),
    "top_k": (lambda bad: bad.top_k(3, by="t"), 3),
    "group": (lambda bad: bad.group("s").agg(n="count(*)"), 2),
    "describe": (lambda bad: bad.describe(), 4),
    "union": (lambda bad: bad.union(bad), 6),
}


def _stream(rows: pa.Table) -> Stream:
    return Stream(Values(rows)).ordered("t", by="s")


@pytest.mark.parametrize("name", IN_TIME)
def test_refused_in_this_process(name: str) -> None:
    with pytest.raises(InputError, match="the time column `t` is null in at least 2 rows") as refused:
        run_here(IN_TIME[name](_stream(BAD), _stream(GOOD)).plan)
    assert refused.value.code == "E1024"
    assert refused.value.hint is not None
    assert 'filter("t IS NOT NULL")' in refused.value.hint
    run_here(IN_TIME[name](_stream(GOOD), _stream(GOOD)).plan)


@pytest.mark.parametrize("name", NOT_IN_TIME)
def test_what_does_not_go_by_time_takes_them(name: str) -> None:
    make, rows = NOT_IN_TIME[name]
    assert run_here(make(_stream(BAD)).plan).num_rows == rows


def test_every_node_with_an_ordering_is_in_the_table() -> None:
    """A new operator that goes by time has to be added above."""

    def below(node: Node) -> set[str]:
        return {type(node).__name__}.union(*map(below, node.inputs))

    good = _stream(GOOD)
    seen = set().union(*(below(make(good, good).plan) for make in IN_TIME.values()))
    found = set()
    for module in Path(inspect.getfile(operators)).parent.glob("*.py"):
        names = vars(__import__(f"headwater.timeseries.operators.{module.stem}", fromlist=["*"])).values()
        for kind in names:
            if (
                inspect.isclass(kind)
                and issubclass(kind, Node)
                and "ordering" in getattr(kind, "__dataclass_fields__", {})
            ):
                found.add(kind.__name__)
    assert found <= seen


def test_refused_on_spark(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = hw.connect(tmp_path / "lake", spark=spark)
    lake.write("bad", BAD)
    lake.write("good", GOOD)
    bad, good = (lake.stream(name, time="t", by="s") for name in ("bad", "good"))
    for name in ("as-of, left", "as-of, right", "shift", "resample"):
        with pytest.raises(InputError, match="the time column `t` is null in at least 2 rows"):
            IN_TIME[name](bad, good).collect()
    with pytest.raises(InputError, match="the time column `t` is null"):
        bad.plot("p")
    # Both sides exchanged.
    monkeypatch.setattr(stages, "_GIVEN_BYTES", 0)
    with pytest.raises(InputError, match="`t` is null"):
        good.join_asof(bad).count()
    # Explaining reads no rows.
    assert "as-of join" in good.join_asof(bad).explain()


@pytest.mark.parametrize("name", ["tumbling", "rolling by time", "vwap of windows", "shift", "latest"])
def test_refused_by_sparks_own_operators(spark: Any, name: str) -> None:
    plan = IN_TIME[name](_stream(BAD), _stream(GOOD)).plan
    run = stages.Run(spark, plan, strategy="spark")
    with pytest.raises(InputError, match="the time column `t` is null in at least one row") as refused:
        run.collect()
    assert refused.value.code == "E1024"
    assert Ordering("t", ("s",)) is not None

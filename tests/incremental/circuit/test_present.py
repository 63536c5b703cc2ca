"""Rows that are taken away before they come: behind `minus`, operators answer for the rows that are there, in every step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import headwater as hw
from headwater.incremental.circuit.stream import Stream

_SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.int64()), ("x", pa.float64())])
Row = tuple[int, int | None, float]

_ASKS: dict[str, Callable[[Stream, Stream], Stream]] = {
    "top": lambda s, _: s.over("k", order="v").top(2),
    "top by rank": lambda s, _: s.over("k", order="v desc").top(2, by="rank"),
    "top by dense rank": lambda s, _: s.over("k", order="v").top(1, by="dense_rank"),
    "row number": lambda s, _: s.over("k", order=["v", "x"]).rank(n="row_number", r="rank"),
    "lag": lambda s, _: s.over("k", order=["v", "x"]).lag("x", name="before"),
    "frame": lambda s, _: s.over("k", order=["v", "x"]).agg(rows=(-1, 1), total="sum(v)", n="count(*)"),
    "median": lambda s, _: s.group_by("k").agg(m="median(v)", p="percentile_disc(0.25) WITHIN GROUP (ORDER BY v)"),
    "mode": lambda s, _: s.group_by("k").agg(m="mode(v)"),
    "list": lambda s, _: s.group_by("k").agg(a="array_sort(collect_list(v))"),
    "least and most": lambda s, _: s.group_by("k").agg(a="min(v)", b="max(v)", c="min_by(x, v)"),
    "distinct": lambda s, _: s.distinct(),
    "count distinct": lambda s, _: s.group_by("k").agg(n="count(DISTINCT v)"),
    "session": lambda s, _: s.session("v", 1, by="k"),
    "as of": lambda s, t: s.join_asof(t, "v", by="k", ties="x"),
    "as of the other": lambda s, t: t.join_asof(s, "v", by="k", ties="x", direction="nearest"),
    "semi": lambda s, t: t.join(s, "k", how="semi"),
    "anti": lambda s, t: t.join(s, "k", how="anti"),
    "top of a left join": lambda s, t: t.join(s, "k", how="left", suffix="2").over("k", order="v2").top(1),
}


def _rows(rows: Counter[Row]) -> hw.ChangeBatch:
    some = [r for r, n in rows.items() if n]
    table = pa.Table.from_pylist([dict(zip("kvx", r, strict=True)) for r in some], schema=_SCHEMA)
    return hw.ChangeBatch.from_table(
        table.append_column("_weight", pa.array([rows[r] for r in some], pa.int64())),
    )


def _there(rows: Counter[Row]) -> Counter[Row]:
    return Counter({r: n for r, n in rows.items() if n > 0})


_ROW = st.tuples(st.integers(0, 1), st.none() | st.integers(0, 4), st.sampled_from([0.0, -2.5, 1.5]))
_CHANGE = st.lists(st.tuples(_ROW, st.sampled_from([-1, 1, 2])), max_size=4)


@pytest.mark.long
@pytest.mark.parametrize("what", _ASKS)
@given(st.lists(st.tuples(_CHANGE, _CHANGE), min_size=1, max_size=6), st.sampled_from([1, 2]))
@settings(max_examples=max(10, settings().max_examples // 4))
def test_what_is_there_decides(
    what: str, history: list[tuple[list[tuple[Row, int]], list[tuple[Row, int]]]], shards: int
) -> None:
    circuit = hw.Circuit(shards=shards)
    a, b, t = (circuit.input(n, _SCHEMA) for n in "abt")
    _ASKS[what](a.minus(b), t).output("found")
    other: Counter[Row] = Counter({(0, 1, 0.0): 1, (0, 3, 1.5): 1, (1, 2, 0.0): 2})
    sums: tuple[Counter[Row], Counter[Row]] = (Counter(), Counter())
    found = circuit.step(t=_rows(other))["found"]
    for changes in history:
        for total, change in zip(sums, changes, strict=True):
            for row, weight in change:
                total[row] += weight
        given_ = [_rows(_added(c)) for c in changes]
        found = found + circuit.step(a=given_[0], b=given_[1])["found"]
        whole = hw.Circuit()
        r, t = whole.input("r", _SCHEMA), whole.input("t", _SCHEMA)
        _ASKS[what](r, t).output("found")
        left: Counter[Row] = Counter(sums[0])
        left.subtract(sums[1])
        assert found == whole.step(r=_rows(_there(left)), t=_rows(other))["found"]


def _added(change: list[tuple[Row, int]]) -> Counter[Row]:
    total: Counter[Row] = Counter()
    for row, weight in change:
        total[row] += weight
    return total


def test_only_who_needs_it_keeps_the_rows_that_are_there() -> None:
    circuit = hw.Circuit()
    a, b = (circuit.input(n, _SCHEMA) for n in "ab")
    a.join(b, "k", how="anti").over("k", order="v").top(1).output("plain")
    a.minus(b).group_by("k").agg(n="count(*)", total="sum(v)").output("sums")
    assert "present" not in circuit.explain()
    top = a.minus(b).over("k", order="v").top(1)
    top.over("k", order="v").top(1).output("top")
    assert circuit.explain().count("present") == 1

"""Patterns in streams: the same answers as the plain matcher, however the rows are cut, and the shorter form of events."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from tests.sql.matching.plain import Plain, View, matches
from tests.timeseries.series_cases import ORDERING, by_series, random_rows

import headwater as hw
from headwater.base.errors import ExpressionError, HeadwaterError, InputError
from headwater.spark.buckets import hash_of
from headwater.sql.row_patterns import parse_pattern
from headwater.timeseries.methods.patterns import PatternMethods
from headwater.timeseries.node import Ordering
from headwater.timeseries.operators.match import MatchRows
from headwater.timeseries.operators.values import Values
from headwater.timeseries.rows import Rows
from headwater.timeseries.running.here import run_here
from headwater.timeseries.slices import HotKey, Sliced
from headwater.timeseries.times import time_numbers

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

FALLS = {"down": "i < PREV(i)", "up": "i > PREV(i)"}


def stream(table: pa.Table) -> PatternMethods:
    return PatternMethods(Values(table), ORDERING)


def less(a: Any, b: Any) -> bool:
    return a is not None and b is not None and a < b


def falls(view: View) -> bool:
    return less(view.value("i"), view.value("i", shift=-1))


def rises(view: View) -> bool:
    return less(view.value("i", shift=-1), view.value("i"))


def cut(whole: pa.Table) -> list[pa.Table]:
    return [whole.slice(k, 7) for k in range(0, max(whole.num_rows, 1), 7)]


@pytest.mark.parametrize("kind", ["timestamp", "zoned", "date", "whole"])
@pytest.mark.parametrize("seed", range(3))
def test_one_row_for_each_match(seed: int, kind: str) -> None:
    table = random_rows(seed, rows=120, kind=kind)
    found = stream(table).match("any down{2,} up+", FALLS, measures={"low": "LAST(down.i)", "n": "count(*)"})
    assert found.ordering == Ordering("start", ("s",), ("seq",))
    wanted = []
    for (series,), rows in by_series(table).items():
        plain = Plain(parse_pattern("any down{2,} up+"), {"down": falls, "up": rises}, rows)
        for start, labels in matches(plain, ("past last row", ())):
            view = View(rows, start, labels, len(labels))
            end = rows[start + len(labels) - 1]["t"]
            low = view.value("i", ("down",))
            wanted.append(
                {
                    "s": series,
                    "start": rows[start]["t"],
                    "end": end,
                    "seq": rows[start]["seq"],
                    "low": low,
                    "n": len(labels),
                }
            )
    assert wanted
    answer = run_here(found.plan, pieces=cut, budget_bytes=2_000).to_pylist()
    assert sorted(map(repr, answer)) == sorted(map(repr, wanted))


@pytest.mark.parametrize("seed", range(4))
def test_events_with_anything_between_them(seed: int) -> None:
    """Each row that begins is a match, of the earliest rows that follow: three loops."""
    table = random_rows(seed, rows=150, nulls=False)
    events = {"a": "i > 20", "b": "i < a.i - 30", "c": "i > b.i AND name <> a.name"}
    found = stream(table).match(events=events, within="3s", measures={"b": "b.seq", "c": "c.seq"})
    wanted = []
    for (series,), rows in by_series(table).items():
        for at, a in enumerate(rows):
            inside = [r for r in rows[at + 1 :] if r["t"] - a["t"] <= dt.timedelta(seconds=3)]
            pairs = (
                (b, c)
                for k, b in enumerate(inside)
                if a["i"] > 20 and b["i"] < a["i"] - 30
                for c in inside[k + 1 :]
                if c["i"] > b["i"] and c["name"] != a["name"]
            )
            for b, c in pairs:
                wanted.append(
                    {"s": series, "start": a["t"], "end": c["t"], "seq": a["seq"], "b": b["seq"], "c": c["seq"]}
                )
                break
    assert wanted
    answer = run_here(found.plan, pieces=cut).to_pylist()
    assert sorted(map(repr, answer)) == sorted(map(repr, wanted))


def test_all_rows_keep_their_columns_and_their_order() -> None:
    table = random_rows(5, rows=60, nulls=False)
    found = stream(table).match(
        "a b+", {"b": "x > a.x"}, rows="all", unmatched=True, measures={"what": "CLASSIFIER()", "n": "MATCH_NUMBER()"}
    )
    assert found.ordering == ORDERING
    answer = run_here(found.plan)
    assert set(answer.schema.names) == {*table.schema.names, "what", "n"}
    assert answer.num_rows == table.num_rows
    kept = run_here(stream(table).match("a b+", {"b": "x > a.x"}, rows="all").plan)
    assert kept.num_rows == sum(n is not None for n in answer["n"].to_pylist())


def test_skips_subsets_and_empty_matches() -> None:
    table = pa.table({"t": range(6), "v": [1, 2, 3, 1, 2, 3]})
    plain = PatternMethods(Values(table), Ordering("t"))

    def starts(*args: Any, **more: Any) -> list[int]:
        found: list[int] = run_here(plain.match(*args, **more).plan)["start"].to_pylist()
        return found

    rising = {"b": "v > PREV(v)"}
    assert starts("a b+", rising) == [0, 3]
    assert starts("a b+", rising, skip="next row") == [0, 1, 3, 4]
    assert starts("a b b", rising, skip="first b") == [0, 3]
    assert starts("a b b", rising, skip="last_b") == [0, 3]
    assert starts("a b", rising, skip="last both", subset={"both": ["a", "b"]}) == [0, 1, 3, 4]
    assert starts("(a b b)?", rising) == [0, 3]
    assert len(starts("(a b b)??", rising)) == 6
    assert starts("(a b b)??", rising, empty=False) == []


def test_ties_that_decide_are_refused() -> None:
    table = pa.table({"t": [1, 1], "v": [1, 2]})
    plain = PatternMethods(Values(table), Ordering("t"))
    with pytest.raises(InputError, match="E1021"):
        run_here(plain.match("a b", {"b": "v > a.v"}).plan)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "a pattern, or events="),
        ({"pattern": "a", "events": {"a": None}}, "and not both"),
        ({"pattern": "a", "skip": "somewhere"}, '"past last row", "next row"'),
        ({"pattern": "a", "rows": "some"}, '"one" or "all"'),
        ({"pattern": "a", "unmatched": True}, 'rows="all"'),
        ({"pattern": "a", "within": "-3s"}, "not negative"),
        ({"pattern": "a", "measures": {"start": "a.i"}}, "no other column"),
        ({"pattern": "a", "measures": {"i": "a.i"}, "rows": "all"}, "no other column"),
        ({"pattern": "a", "subset": {"u": "a"}}, "variables by the name of the set"),
        ({"pattern": ""}, "text"),
        ({"events": {}}, "conditions by name"),
        ({"events": {"a": None}, "define": {"a": "i > 1"}}, "in events= alone"),
        ({"pattern": "a", "define": {"a": 3}}, "Spark SQL as text"),
    ],
)
def test_what_is_wrong_is_said(given: dict[str, Any], said: str) -> None:
    with pytest.raises(HeadwaterError, match="E10") as raised:
        stream(random_rows(1)).match(**given)
    assert said in str(raised.value)


def test_mistakes_in_texts_point_at_them() -> None:
    with pytest.raises(ExpressionError, match="no variable of the pattern"):
        stream(random_rows(1)).match("a", {"b": "i > 1"})
    with pytest.raises(HeadwaterError, match="no column `nosuch`"):
        stream(random_rows(1)).match("a", {"a": "nosuch > 1"})


@pytest.mark.spark
def test_on_spark(tmp_path: Path, spark: SparkSession) -> None:
    lake = hw.connect(tmp_path, spark=spark)
    table = random_rows(7, rows=400, kind="zoned")
    lake.write("rows", table)
    rows = lake.stream("rows", time="t", by="s", tiebreak="seq")
    made = rows.match("any down+ up{2,}", FALLS, measures={"n": "count(*)", "s2": "sum(up.x)"}, within="20s")
    here = stream(table).match("any down+ up{2,}", FALLS, measures={"n": "count(*)", "s2": "sum(up.x)"}, within="20s")
    answer = made.collect()
    assert sorted(map(repr, answer.to_pylist())) == sorted(map(repr, run_here(here.plan).to_pylist()))
    assert answer.num_rows and "match (any down+ up{2,})" in made.explain()
    # And on: matches are rows with a time like any others.
    assert made.shift("n", 1).filter("n_lag_1 > 2").count() >= 0


def test_a_change_reaches_only_the_starts_before_it() -> None:
    table = random_rows(1)
    near = stream(table).match(events={"a": "i > 20", "b": "i < a.i"}, within="3s")
    (extent,) = near.plan.extents()  # type: ignore[attr-defined]
    assert (extent.time, extent.own, extent.before, extent.after) == ("t", "start", 0, 3_000_000)
    for far in (
        stream(table).match(events={"a": "i > 20", "b": "i < a.i"}),
        stream(table).match(events={"a": "i > PREV(i)", "b": "i < a.i"}, within="3s"),
        stream(table).match("a b", {"b": "i < a.i"}, within="3s"),
        stream(table).match("a b", {"b": "i < a.i"}, within="3s", skip="next row", rows="all"),
    ):
        assert far.plan.extents() == (None,)  # type: ignore[attr-defined]


@pytest.mark.parametrize("seed", range(4))
def test_slices_of_a_hot_series_give_what_the_whole_gives(seed: int) -> None:
    table = random_rows(seed, rows=300, nulls=False)
    made = stream(table).match(
        events={"a": "i > 20", "b": "i < a.i - 30", "c": "i > b.i"}, within="2s", measures={"b": "b.seq", "c": "c.seq"}
    )
    node = made.plan
    assert isinstance(node, MatchRows)
    (slicing,) = node.slicing() or ()
    rows = run_here(node.input)
    times = time_numbers(rows["t"])[0]
    hashes = hash_of([rows["s"]], rows.num_rows)
    hot = tuple(
        HotKey(int(h), tuple(sorted(set(np.quantile(times[hashes == h], [0.2, 0.5, 0.9]).astype(int).tolist()))))
        for h in np.unique(hashes)[:2]
    )
    cut = Sliced(("s",), slicing.time, 2, hot, reach=slicing.reach, own=slicing.own)
    parts: dict[int, list[pa.Table]] = {}
    for bucket, part in cut(rows):
        parts.setdefault(bucket, []).append(part)
    assert len(parts) > 4
    found = []
    for tables in parts.values():
        found += [row for t in node.kernel()(Rows(tables)) for row in t.to_pylist()]
    assert sorted(map(repr, found)) == sorted(map(repr, run_here(node).to_pylist()))


def test_a_series_is_cut_only_where_each_row_is_tried_by_itself() -> None:
    table = random_rows(1)
    assert stream(table).match("a b", {"b": "i < a.i"}, within="3s").plan.slicing() is None  # type: ignore[attr-defined]
    assert stream(table).match(events={"a": None, "b": "i < a.i"}).plan.slicing() is None  # type: ignore[attr-defined]

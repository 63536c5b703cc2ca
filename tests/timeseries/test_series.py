"""Neighbourhoods: every row once, with all that is within its reach, however rows are cut."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from tests.timeseries.series_cases import ORDERING, answer, by_series, cutter, random_rows

from headwater.base.errors import UnsupportedError
from headwater.timeseries.frames import Frame
from headwater.timeseries.node import Ordering
from headwater.timeseries.operators.series import OverSeries, Windowed
from headwater.timeseries.operators.values import Values
from headwater.timeseries.reaching import Reach, carried, neighbourhoods
from headwater.timeseries.rows import sort_table
from headwater.timeseries.running.here import run_here
from headwater.timeseries.times import time_field

SORTED = Ordering("t", ("s",))


def sorted_rows(seed: int) -> pa.Table:
    rng = random.Random(seed)
    rows = [{"s": rng.choice("ab"), "t": rng.choice([None, *range(9)]), "n": n} for n in range(rng.randrange(30))]
    schema = pa.schema([("s", pa.string()), ("t", pa.int64()), ("n", pa.int64())])
    return sort_table(pa.Table.from_pylist(rows, schema), SORTED.columns)


def pieces(table: pa.Table, seed: int) -> Iterator[pa.Table]:
    rng = random.Random(seed)
    for piece in cutter(rng)(table):
        yield from cutter(rng)(piece)


def within(a: dict[str, Any], b: dict[str, Any], reach: Reach) -> bool:
    if a["t"] is None or b["t"] is None:
        return a["t"] is b["t"]
    return bool(-reach.before <= b["t"] - a["t"] <= reach.after)


@pytest.mark.parametrize(
    "reach", [Reach(0), Reach(2), Reach(0, 2), Reach(3, 1), Reach(2, 0, True), Reach(1, 3, True)], ids=str
)
@pytest.mark.parametrize("seed", range(15))
def test_everything_within_reach_is_there(seed: int, reach: Reach) -> None:
    table = sorted_rows(seed)
    whole = table.to_pylist()
    seen = []
    for near in neighbourhoods(pieces(table, seed), SORTED, reach):
        here = near.table.to_pylist()
        numbers = [row["n"] for row in here]
        assert near.starts.tolist() == [k for k in range(len(here)) if k == 0 or here[k]["s"] != here[k - 1]["s"]]
        first = [r["n"] for r in whole if r["s"] == here[0]["s"]].index(numbers[0])
        assert near.first == first
        for row in near.rows.to_pylist():
            seen.append(row["n"])
            series = [r for r in whole if r["s"] == row["s"]]
            at = series.index(row)
            wanted = (
                [r for r in series if within(row, r, reach)]
                if reach.in_time
                else series[max(0, at - reach.before) : at + reach.after + 1]
            )
            assert {r["n"] for r in wanted} <= set(numbers)
    assert seen == [row["n"] for row in whole]


@pytest.mark.parametrize("seed", range(8))
def test_states_are_carried_where_a_series_goes_on(seed: int) -> None:
    table = sorted_rows(seed)
    last = None
    for part in carried(pieces(table, seed), ("s",)):
        assert part.goes_on == (part.table["s"][0].as_py() == last)
        last = part.table["s"][-1].as_py()


def test_functions_by_places_and_by_frames_together() -> None:
    table = random_rows(4, nulls=False)
    columns = {
        "before": Windowed("lag(name, 2)", reach=Reach(2)),
        "next": Windowed("lead(x + 1, 1)", reach=Reach(0, 1)),
        "pair": Windowed("concat_ws('-', collect_list(name))", Frame(-1, 0)),
        "i": Windowed("sum(i * 2)", Frame(-3, 2)),
    }
    found = answer(OverSeries(Values(table), ORDERING, {k: v for k, v in columns.items() if k != "pair"}, "functions"))
    expected = []
    for rows in by_series(table).values():
        for at, row in enumerate(rows):
            new = {
                "before": rows[at - 2]["name"] if at >= 2 else None,
                "next": rows[at + 1]["x"] + 1 if at + 1 < len(rows) else None,
                "i": 2 * sum(r["i"] for r in rows[max(0, at - 3) : at + 3]),
            }
            expected.append({**row, **new})
    expected.sort(key=lambda row: row["seq"])
    for a, b in zip(found, expected, strict=True):
        assert {k: a[k] for k in ("before", "next", "i")} == {k: b[k] for k in ("before", "next", "i")}


def test_columns_that_are_not_read_may_be_of_any_type() -> None:
    odd = {"span": pa.array([1, 2], pa.duration("us")), "code": pa.array(["x", "y"]).dictionary_encode()}
    table = pa.table({"t": [2, 1], "v": [1, 2], **odd, **{f"c{k}": [k, k] for k in range(300)}})
    node = OverSeries(Values(table), Ordering("t"), {"w": Windowed("max(v + 1)", Frame(-1, 0))}, "rolling")
    found = run_here(node)
    assert found.select(table.column_names).equals(table.take([1, 0]))
    assert found["w"].to_pylist() == [3, 3]


@pytest.mark.parametrize("kind", [pa.timestamp("ns"), pa.string(), pa.float64(), pa.uint64()])
def test_times_of_other_types_are_refused(kind: pa.DataType) -> None:
    with pytest.raises(UnsupportedError, match="`t`"):
        time_field(pa.schema([("t", kind)]), "t")

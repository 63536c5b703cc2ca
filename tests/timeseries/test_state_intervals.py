"""Stretches in which columns keep their values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.timeseries.series_cases import ORDERING, answer, bits, by_series, random_rows

from headwater.base.errors import InputError
from headwater.timeseries.node import Ordering
from headwater.timeseries.operators.state_intervals import StateIntervals
from headwater.timeseries.operators.values import Values
from headwater.timeseries.running.here import run_here

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def states(seed: int, kind: str = "timestamp") -> pa.Table:
    """Few different values, so that stretches are long."""
    table = random_rows(seed, rows=80, kind=kind)
    f = [None if v is None else (v if v != v else 0.0 * v if abs(v) < 9 else 1.0) for v in table["f"].to_pylist()]
    names = [None if n is None else n[:1] for n in table["name"].to_pylist()]
    at = table.schema.get_field_index
    return table.set_column(at("f"), "f", pa.array(f, pa.float64())).set_column(at("name"), "name", pa.array(names))


def expected(table: pa.Table, columns: tuple[str, ...]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for (key,), rows in by_series(table).items():
        begins = [
            at
            for at, row in enumerate(rows)
            if at == 0 or [same(row[c]) for c in columns] != [same(rows[at - 1][c]) for c in columns]
        ]
        for begin, end in zip(begins, [*begins[1:], len(rows)], strict=True):
            until = rows[end]["t"] if end < len(rows) else None
            state = {c: rows[begin][c] for c in columns}
            found.append(
                {
                    "s": key,
                    **state,
                    "start": rows[begin]["t"],
                    "end": rows[end - 1]["t"],
                    "until": until,
                    "rows": end - begin,
                }
            )
    return found


def same(value: Any) -> Any:
    return "nan" if value != value else value


def in_any_order(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(repr(bits(row)) for row in rows)


@pytest.mark.parametrize("columns", [("name",), ("f",), ("name", "f")])
@pytest.mark.parametrize("seed", range(6))
def test_stretches_are_a_loop(seed: int, columns: tuple[str, ...]) -> None:
    table = states(seed, ["timestamp", "date", "whole"][seed % 3])
    node = StateIntervals(Values(table), ORDERING, columns)
    assert in_any_order(answer(node, seed, by="")) == in_any_order(expected(table, columns))


def test_long_stretches_over_many_chunks() -> None:
    table = pa.table({"t": range(9_000), "on": [k // 4_000 for k in range(9_000)]})
    rows = run_here(
        StateIntervals(Values(table), Ordering("t"), ("on",)),
        pieces=lambda whole: [whole.slice(k, 500) for k in range(0, whole.num_rows, 500)],
        budget_bytes=20_000,
    ).to_pylist()
    assert [(r["start"], r["end"], r["until"], r["rows"]) for r in rows] == [
        (0, 3_999, 4_000, 4_000),
        (4_000, 7_999, 8_000, 4_000),
        (8_000, 8_999, None, 1_000),
    ]


def test_ties_matter_only_where_the_state_differs() -> None:
    table = pa.table({"t": [1, 1], "on": [True, True], "v": [1, 2]})
    assert run_here(StateIntervals(Values(table), Ordering("t"), ("on",))).num_rows == 1
    with pytest.raises(InputError, match="E1021"):
        run_here(StateIntervals(Values(table), Ordering("t"), ("v",)))


def test_no_rows() -> None:
    assert answer(StateIntervals(Values(states(1).slice(0, 0)), ORDERING, ("f",)), by="") == []


def test_spark_says_the_same(spark: SparkSession) -> None:
    table = states(4, "zoned")
    node = StateIntervals(Values(table), ORDERING, ("name", "f"))
    found = node.frame(spark.createDataFrame(table)).toArrow()
    assert found.schema.names == node.schema.names
    assert in_any_order(found.to_pylist()) == in_any_order(answer(node, by=""))

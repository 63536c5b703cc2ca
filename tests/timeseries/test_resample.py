"""Resampling, bars and statistics: against DuckDB."""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa
import pytest
from tests.timeseries.series_cases import ORDERING, answer, random_rows
from tests.timeseries.window_cases import assert_close, number

from headwater.base.errors import HeadwaterError
from headwater.timeseries.methods.windows import WindowMethods
from headwater.timeseries.node import Ordering
from headwater.timeseries.operators.values import Values
from headwater.timeseries.running.here import run_here

QUARTER = "250 ms"


def rows_of(table: pa.Table, sql: str) -> list[dict[str, Any]]:
    with duckdb.connect(":memory:") as connection:
        connection.register("rows", table)
        found: list[dict[str, Any]] = connection.sql(sql).to_arrow_table().to_pylist()
    return found


def sampled(seed: int = 5) -> tuple[pa.Table, WindowMethods]:
    table = random_rows(seed, 120)
    return table, WindowMethods(Values(table), ORDERING)


BUCKET = "time_bucket(INTERVAL '2 seconds', t, TIMESTAMP '2026-01-01')"


@pytest.mark.parametrize(
    ("how", "sql"),
    [
        ("last", "arg_max_null(x, seq_of)"),
        ("ceil", "arg_max_null(x, seq_of)"),
        ("floor", "arg_min_null(x, seq_of)"),
        ("min", "min(x)"),
        ("max", "max(x)"),
        ("mean", "avg(x)"),
        ("median", "median(x)"),
        ("count", "count(x)"),
    ],
)
def test_names_of_aggregates(how: str, sql: str) -> None:
    table, stream = sampled()
    made = stream.resample("2 s", how, columns="x")
    ordered = "SELECT *, row_number() OVER (ORDER BY t, seq) AS seq_of FROM rows WHERE t IS NOT NULL"
    expected = rows_of(table, f"SELECT s, {BUCKET} AS t, {sql} AS x FROM ({ordered}) GROUP BY ALL")
    assert_close(answer(made.plan, by=""), expected, ["s", "t"])
    assert made.ordering == Ordering("t", ("s",))


def test_texts_labels_and_origins() -> None:
    table, stream = sampled()
    how = {"n": "count(*)", "x": "max", "spread": "max(i) - min(i)"}
    made = stream.resample("2 s", how, label="end", offset="500 ms")
    expected = rows_of(
        table,
        "SELECT s, time_bucket(INTERVAL '2 seconds', t, TIMESTAMP '2026-01-01 00:00:00.5') + INTERVAL '2 seconds' AS t, "
        "count(*) AS n, max(x) AS x, max(i) - min(i) AS spread FROM rows WHERE t IS NOT NULL GROUP BY ALL",
    )
    assert_close(answer(made.plan, by=""), expected, ["s", "t"])


def test_all_columns() -> None:
    _, stream = sampled()
    assert stream.resample("2 s").columns == ["s", "t", "i", "x", "f", "d", "name", "tags"]
    assert stream.resample("2 s", "mean").columns == ["s", "t", "i", "x", "f", "d"]
    first = run_here(stream.resample("1 day", "first").plan)
    assert first.num_rows == 4


@pytest.mark.parametrize("label", ["start", "end"])
def test_fills(label: Any) -> None:
    table, stream = sampled(8)
    plain = run_here(stream.resample(QUARTER, {"x": "sum"}, label=label).plan).to_pylist()
    zero = run_here(stream.resample(QUARTER, {"x": "sum"}, label=label, fill="zero").plan).to_pylist()
    known = {(r["s"], r["t"]): r["x"] for r in plain}
    for s in {r["s"] for r in plain}:
        times = sorted(number(r["t"]) for r in plain if r["s"] == s)
        assert sorted(number(r["t"]) for r in zero if r["s"] == s) == list(range(times[0], times[-1] + 1, 250_000))
    for row in zero:
        assert row["x"] == (known.get((row["s"], row["t"])) or 0.0)
    before: dict[Any, Any] = {}
    carried = run_here(stream.resample(QUARTER, {"x": "sum"}, label=label, fill="ffill").plan)
    for row in sorted(carried.to_pylist(), key=lambda r: (str(r["s"]), r["t"])):
        before[row["s"]] = (
            known.get((row["s"], row["t"])) if known.get((row["s"], row["t"])) is not None else before.get(row["s"])
        )
        assert row["x"] == before[row["s"]]
    assert table.num_rows == 120


def test_bars() -> None:
    table, stream = sampled(6)
    made = stream.bars("2 s", price="x", size="i")
    known = "SELECT *, row_number() OVER (ORDER BY t, seq) AS place FROM rows WHERE t IS NOT NULL"
    expected = rows_of(
        table,
        f"SELECT s, {BUCKET} AS t, arg_min(x, place) AS open, max(x) AS high, min(x) AS low, arg_max(x, place) AS close, count(x) AS count, "
        f"CAST(sum(i) FILTER (WHERE x IS NOT NULL) AS BIGINT) AS volume, sum(x * i) / nullif(sum(i) FILTER (WHERE x IS NOT NULL), 0) AS vwap "
        f"FROM ({known}) GROUP BY ALL",
    )
    assert_close(answer(made.plan, by=""), expected, ["s", "t"])
    two = stream.bars("2 s", price=["x", "d"])
    assert two.columns == [
        "s",
        "t",
        *(f"{n}_{p}" for p in ("x", "d") for n in ("open", "high", "low", "close", "count")),
    ]


def test_range_statistics() -> None:
    table, stream = sampled(7)
    made = stream.range_stats("1 s", columns="x")
    frame = "OVER (PARTITION BY s ORDER BY t NULLS FIRST RANGE BETWEEN INTERVAL 1 SECOND PRECEDING AND CURRENT ROW)"
    expected = rows_of(
        table,
        f"SELECT *, avg(x) {frame} AS mean_x, count(x) {frame} AS count_x, min(x) {frame} AS min_x, max(x) {frame} AS max_x, "
        f"sum(x) {frame} AS sum_x, stddev_samp(x) {frame} AS stddev_x, "
        f"(x - avg(x) {frame}) / nullif(stddev_samp(x) {frame}, 0) AS zscore_x FROM rows",
    )
    assert_close(answer(made.plan), expected, ["seq"])
    assert made.ordering == ORDERING


def test_grouped_statistics() -> None:
    table, stream = sampled(9)
    made = stream.grouped_stats("2 s", columns=["x", "i"])
    parts = ", ".join(
        f"avg({c}) AS mean_{c}, count({c}) AS count_{c}, min({c}) AS min_{c}, max({c}) AS max_{c}, "
        f"{'CAST(sum(i) AS BIGINT)' if c == 'i' else 'sum(x)'} AS sum_{c}, stddev_samp({c}) AS stddev_{c}"
        for c in ("x", "i")
    )
    expected = rows_of(
        table,
        f"SELECT s, {BUCKET} AS window_start, {BUCKET} + INTERVAL '2 seconds' AS window_end, {parts} FROM rows WHERE t IS NOT NULL GROUP BY ALL",
    )
    assert_close(answer(made.plan, by=""), expected, ["s", "window_start"])
    assert "mean_f" in stream.grouped_stats("2 s").columns


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda s: s.resample("2 s", "lust"), "an aggregate"),
        (lambda s: s.resample("2 s", {"new": "max"}), "new"),
        (lambda s: s.resample("2 s", label="middle"), "start or end"),
        (lambda s: s.resample("2 s", fill="guess"), "one of"),
        (lambda s: s.resample("2 s", "last", columns=["name"], fill="linear"), "numbers"),
        (lambda s: s.bars("2 s"), "price"),
        (lambda s: s.bars("2 s", price="x", size="weight"), "weight"),
        (lambda s: s.range_stats("1 s", columns="name"), ""),
    ],
)
def test_mistakes_are_told_at_once(make: Any, says: str) -> None:
    with pytest.raises(HeadwaterError) as error:
        make(sampled()[1])
    assert says in str(error.value)

"""Streams on a real session: the same rows as in one process, whatever they are read from and wherever they go."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import headwater as hw
from headwater.base import events
from headwater.base.errors import ConstraintError, ExpressionError, InputError, NotFoundError
from headwater.timeseries.operators.values import Values
from headwater.timeseries.running import stages
from headwater.timeseries.running.here import run_here
from headwater.timeseries.stream import Stream

_START = dt.datetime(2024, 3, 10, tzinfo=dt.UTC)


def _rows(seed: int, rows: int, name: str) -> pa.Table:
    rng = random.Random(seed)
    return pa.table(
        {
            "symbol": [rng.choice(["hot", "hot", "hot", "b", "ç", None]) for _ in range(rows)],
            "ts": pa.array(
                [_START + dt.timedelta(milliseconds=rng.randrange(100_000)) for _ in range(rows)],
                pa.timestamp("us", "UTC"),
            ),
            name: pa.array(range(rows), pa.int64()),
            "price": pa.array([rng.choice([None, round(rng.random(), 3)]) for _ in range(rows)]),
        }
    )


TRADES, QUOTES = _rows(1, 400, "tid"), _rows(2, 900, "qid")


@pytest.fixture
def lake(spark: Any, tmp_path: Path) -> hw.Lake:
    return hw.connect(tmp_path / "lake", spark=spark)


@pytest.fixture
def small(spark: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Limits so small that a few hundred rows are exchanged, cut and sampled as billions would be."""
    usual = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "4")
    monkeypatch.setattr(stages, "_GIVEN_BYTES", 0)
    monkeypatch.setattr(stages, "_SMALL_BYTES", 1)
    monkeypatch.setattr(stages, "_SLICED_ROWS", 100)
    yield
    spark.conf.set("spark.sql.shuffle.partitions", usual)


def _ordered(table: pa.Table) -> list[dict[str, Any]]:
    return sorted(table.to_pylist(), key=str)


PLANS: dict[str, Callable[[Stream, Stream], Stream]] = {
    "as-of": lambda t, q: t.join_asof(q, tolerance="20s"),
    "as-of, then more in the same tasks": lambda t, q: (
        t.join_asof(q, direction="nearest").with_columns(away="price_right - price").filter("away > 0").shift("price")
    ),
    "two exchanges": lambda t, q: (
        t.join_asof(q.filter("qid % 3 = 0"))
        .with_columns(bucket="tid % 5")
        .ordered("ts", by="bucket", tiebreak="tid")
        .shift("tid", 2)
    ),
    "range join": lambda t, q: t.join_range(q, before="200ms", after="100ms"),
    "group after a join": lambda t, q: t.join_asof(q).group("symbol").agg(n="count(*)", m="max(qid)"),
    "Spark's own": lambda t, q: t.filter("tid > 10").group("symbol").agg(n="count(*)", s="sum(tid)"),
    "Spark's own, then tasks": lambda t, q: (
        t.join(q.select("symbol", "qid"), on="symbol", how="semi")
        .ordered("ts", by="symbol", tiebreak="tid")
        .shift("tid")
    ),
    "union": lambda t, q: t.select("symbol", "ts", n="tid").union(q.select("symbol", "ts", n="qid").filter("n < 50")),
    "quantiles": lambda t, q: t.quantiles(["price"], probabilities=[0.5]),
}


@pytest.mark.usefixtures("small")
def test_the_rows_are_those_of_one_process(lake: hw.Lake) -> None:
    for name, table in (("trades", TRADES), ("quotes", QUOTES)):
        for start in range(0, table.num_rows, 150):
            lake.write(name, table.slice(start, 150))
    lake.table("trades").delete("tid % 7 = 3")
    alive = TRADES.filter(pa.array([i % 7 != 3 for i in range(TRADES.num_rows)]))
    here = [
        Stream(Values(rows)).ordered("ts", by="symbol", tiebreak=key) for rows, key in ((alive, "tid"), (QUOTES, "qid"))
    ]
    there = [
        lake.stream("trades", time="ts", by="symbol", tiebreak="tid"),
        lake.stream("quotes", time="ts", by="symbol", tiebreak="qid"),
    ]
    for title, plan in PLANS.items():
        wanted = run_here(plan(*here).plan)
        stream = plan(*there)
        assert stream.schema == wanted.schema, title
        assert _ordered(stream.collect()) == _ordered(wanted), title
        if title in ("as-of", "Spark's own"):
            assert stream.count() == wanted.num_rows
            assert _ordered(stream.spark().toArrow().cast(wanted.schema)) == _ordered(wanted), title
            assert _ordered(pa.concat_tables(stream.batches())) == _ordered(wanted), title
    text = PLANS["as-of"](*there).explain()
    assert "1 hot key cut by time into" in text
    assert "more than 0 bytes is not given to every task, and one key has 4" in text
    assert "scan trades@3" in text
    assert "Spark's own form of it, since it means the same, and costs less" in PLANS["Spark's own"](*there).explain()
    assert PLANS["two exchanges"](*there).explain().count("exchange by") == 2
    assert PLANS["as-of, then more in the same tasks"](*there).graph().svg().startswith("<svg")


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("by", [("symbol",), ()])
@pytest.mark.parametrize("kind", ["Delta", "Parquet"])
def test_what_is_too_much_for_a_task_is_cut_by_time(
    lake: hw.Lake, tmp_path: Path, kind: str, by: tuple[str, ...]
) -> None:
    streams = []
    for name, table, key in (("trades", TRADES, "tid"), ("quotes", QUOTES, "qid")):
        folder = tmp_path / name
        folder.mkdir()
        for start in range(0, table.num_rows, 300):
            lake.write(name, table.slice(start, 300))
            pq.write_table(table.slice(start, 300), folder / f"{start}.parquet")
        streams.append(lake.stream(name if kind == "Delta" else folder, time="ts", by=by, tiebreak=key))
    here = [Stream(Values(rows)).ordered("ts", by=by, tiebreak=key) for rows, key in ((TRADES, "tid"), (QUOTES, "qid"))]
    directions: tuple[Any, ...] = ("backward", "forward", "nearest")
    for direction in directions:
        joined = streams[0].join_asof(streams[1], direction=direction)
        text = joined.explain()
        assert ("1 hot key cut by time into" if by else "exchange by time into") in text
        wanted = run_here(here[0].join_asof(here[1], direction=direction).plan)
        assert _ordered(joined.collect()) == _ordered(wanted)
    if not by:
        assert "nothing tells one series from another, and there are too many rows for one" in text
        near = streams[0].select("ts", "tid").join_range(streams[1].select("ts", "qid"), before="1s", after="2s")
        alone = here[0].select("ts", "tid").join_range(here[1].select("ts", "qid"), before="1s", after="2s")
        assert "exchange by time into" in near.explain()
        assert _ordered(near.collect()) == _ordered(run_here(alone.plan))


def test_small_sides_are_given_to_every_task(lake: hw.Lake) -> None:
    lake.write("trades", TRADES)
    trades = lake.stream("trades", time="ts", by="symbol", tiebreak="tid")
    quotes = lake.stream(QUOTES, time="ts", by="symbol", tiebreak="qid").filter("qid > 5")
    joined = trades.join_asof(quotes)
    assert "with all 894 rows of the other side in each task" in joined.explain()
    assert "exchange" not in joined.explain()
    alone = Stream(Values(TRADES)).ordered("ts", by="symbol")
    other = Stream(Values(QUOTES)).ordered("ts", by="symbol", tiebreak="qid").filter("qid > 5")
    assert _ordered(joined.collect()) == _ordered(run_here(alone.join_asof(other).plan))


def _sources(lake: hw.Lake, folder: Path) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    import pandas as pd
    import polars as pl

    lake.write("plain", TRADES)
    lake.write("split", TRADES, partition_by=["symbol"])
    yield "a table", "plain", {}
    yield "a partitioned table", "split", {}
    yield "Arrow", TRADES, {}
    yield "polars", pl.from_arrow(TRADES), {}
    yield "pandas", TRADES.to_pandas(types_mapper=pd.ArrowDtype), {}
    yield "a DataFrame", lake.spark.createDataFrame(TRADES), {}
    (folder / "parquet").mkdir()
    pq.write_table(TRADES.slice(0, 300), folder / "parquet/a.parquet", row_group_size=50)
    pq.write_table(TRADES.slice(300), folder / "parquet/b.parquet")
    (folder / "parquet/_SUCCESS").touch()
    yield "Parquet files", folder / "parquet", {}
    yield "one Parquet file", str(folder / "parquet/a.parquet"), {"rows": 300}
    yield "a pattern", f"{folder}/parquet/b*.parquet", {"rows": 100}
    (folder / "csv").mkdir()
    text = TRADES.set_column(1, "ts", TRADES["ts"].cast(pa.string()))
    pyarrow.csv.write_csv(text.slice(0, 200), folder / "csv/a.csv")
    with pa.CompressedOutputStream(str(folder / "csv/b.csv.gz"), "gzip") as packed:
        pyarrow.csv.write_csv(text.slice(200), packed)
    yield "CSV files", f"{folder}/csv", {"schema": TRADES.schema}
    (folder / "lines.jsonl").write_text(
        TRADES.to_pandas().to_json(orient="records", lines=True, date_format="iso", date_unit="us")
    )
    yield "lines of JSON", folder / "lines.jsonl", {"schema": TRADES.schema}


def test_every_source_gives_the_rows(lake: hw.Lake, tmp_path: Path) -> None:
    for title, source, options in _sources(lake, tmp_path):
        rows = options.pop("rows", TRADES.num_rows)
        stream = lake.stream(source, time="ts", by="symbol", tiebreak="tid", **options)
        found = stream.filter("tid >= 0").collect()
        wanted = {300: TRADES.slice(0, 300), 100: TRADES.slice(300)}.get(rows, TRADES)
        assert _ordered(found) == _ordered(wanted), title
        assert stream.select("tid").count() == rows, title
        if title in ("CSV files", "one Parquet file"):
            assert _ordered(stream.spark().toArrow().cast(wanted.schema)) == _ordered(wanted), title


def test_iceberg(lake: hw.Lake, tmp_path: Path) -> None:
    from pyiceberg.catalog.sql import SqlCatalog

    (tmp_path / "warehouse").mkdir()
    catalog = SqlCatalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{tmp_path}/warehouse")
    catalog.create_namespace("ns")
    table = catalog.create_table("ns.trades", schema=TRADES.schema)
    table.append(TRADES.slice(0, 300))
    now = table.current_snapshot()
    assert now is not None
    before = now.snapshot_id
    table.append(TRADES.slice(300))
    stream = lake.stream(table, time="ts", by="symbol", tiebreak="tid")
    assert _ordered(stream.collect()) == _ordered(TRADES)
    assert lake.stream(table, version=before).select("tid").count() == 300
    assert "Iceberg ns.trades" in stream.explain()
    catalog.close()


def test_written_by_the_tasks_in_one_commit(lake: hw.Lake, tmp_path: Path) -> None:
    trades = lake.stream(TRADES, time="ts", by="symbol", tiebreak="tid")
    shifted = trades.shift("tid")
    shifted.write("features", partition_by=["symbol"])
    wanted = run_here(Stream(Values(TRADES)).ordered("ts", by="symbol", tiebreak="tid").shift("tid").plan)
    table = lake.table("features")
    assert _ordered(table.to_arrow()) == _ordered(wanted)
    assert table.version == 0
    shifted.filter("tid < 10").write("features")
    assert table.count() == wanted.num_rows + 10
    shifted.filter("tid < 20").write("features", mode="overwrite", where="tid < 20")
    assert table.count() == wanted.num_rows
    table.add_constraint("small", "tid < 400")
    with pytest.raises(ConstraintError, match="1 row"):
        shifted.with_columns(tid="CASE WHEN tid = 7 THEN 999 ELSE tid END").write("features")
    assert table.count() == wanted.num_rows
    with pytest.raises(ConstraintError, match="outside"):
        shifted.write("features", mode="overwrite", where="tid < 20")
    names = shifted.write_parquet(str(tmp_path / "out"))
    assert names and _ordered(pq.read_table([str(tmp_path / "out" / n) for n in names])) == _ordered(wanted)
    with pytest.raises(InputError, match="there are files in"):
        shifted.write_parquet(str(tmp_path / "out"))
    again = shifted.filter("tid < 5").write_csv(str(tmp_path / "out"), mode="overwrite")
    left = sorted(p.name for p in (tmp_path / "out").iterdir())
    assert left == sorted(["_SUCCESS", *again])


def test_errors_of_tasks_are_the_errors_they_are(lake: hw.Lake) -> None:
    tied = pa.table({"symbol": ["a", "a"], "ts": [1, 1], "v": [1, 2]})
    with pytest.raises(InputError, match="two rows at 1 differ in `v`") as refused:
        lake.stream(tied, time="ts", by="symbol").shift("v").collect()
    assert refused.value.code == "E1021"
    with pytest.raises(ExpressionError, match="division by zero"):
        lake.stream(tied, time="ts", by="symbol", tiebreak="v").shift("v").with_columns(w="10 / (v - v)").collect()
    with pytest.raises(NotFoundError, match="no files"):
        lake.stream("/nowhere/at/all")
    with pytest.raises(InputError, match="time"):
        lake.stream(tied).shift("v")


@pytest.mark.usefixtures("small")
def test_a_file_that_is_not_what_it_says(lake: hw.Lake, tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_text("a,b\n1,2\n3\n")
    with pytest.raises(InputError, match="a file cannot be read") as refused:
        lake.stream(tmp_path / "bad.csv", schema=pa.schema([("a", pa.int64()), ("b", pa.int64())])).collect()
    assert refused.value.where is not None and refused.value.where.endswith("bad.csv")


def test_progress_is_shown(lake: hw.Lake) -> None:
    seen: list[events.Event] = []
    with events.subscribe(seen.append):
        lake.stream(TRADES, time="ts", by="symbol", tiebreak="tid").shift("tid").collect()
    assert {e.task for e in seen if e.unit == "tasks"} == {"collect"}
    assert seen[-1].kind == "end"

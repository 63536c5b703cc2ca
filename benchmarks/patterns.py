"""Row patterns: MATCH_RECOGNIZE in process and on Spark, against self-joins, windows and loops that say the same.

Three patterns over the same ticks. ``chain``: a low price, then one 2% above it, then one between, within ten seconds and with
anything in between; the first such pair for each start. ``valley``: prices fall, then rise; each valley once. ``jump``: from each
low price on, prices that stay near their own average so far, and then the last one that jumps above it. Engines without row
patterns say the first by joins of the table with itself by time, and the second by windows and groups; the third depends on which
rows were taken, which no join or window says, so there it is the loop alone. The Python loop is what one writes without any of
that. All read the same table and give the same rows, which is checked before a number is printed. What it costs just to read the
table as Arrow is measured beside them: nobody can be quicker than that.
``make bench ARGS="patterns"`` runs it, or::

    python benchmarks/patterns.py --rows 1000000 --rounds 3
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from queries.measuring import Measured, Report, interleaved, timed

import headwater as hw

SPAN_US = 10_000_000
READ = ["sym", "id", "ts", "price"]
CHAIN = """
SELECT sym, a, b, c FROM ticks MATCH_RECOGNIZE (PARTITION BY sym ORDER BY ts
  MEASURES A.id AS a, B.id AS b, C.id AS c AFTER MATCH SKIP TO NEXT ROW
  PATTERN (A gap*? B gap*? C) WITHIN INTERVAL 10 SECONDS
  DEFINE A AS price < 98.5D, B AS price > A.price * 1.02D, C AS price < B.price * 0.99D AND price > A.price)
"""
VALLEY = """
SELECT sym, a, b, c FROM ticks MATCH_RECOGNIZE (PARTITION BY sym ORDER BY ts
  MEASURES A.id AS a, LAST(down.id) AS b, LAST(up.id) AS c AFTER MATCH SKIP TO LAST up
  PATTERN (A down+ up+) DEFINE down AS price < PREV(price), up AS price > PREV(price))
"""
JUMP = """
SELECT sym, a, b, c FROM ticks MATCH_RECOGNIZE (PARTITION BY sym ORDER BY ts
  MEASURES A.id AS a, LAST(calm.id) AS b, jump.id AS c AFTER MATCH SKIP TO NEXT ROW
  PATTERN (A calm+ jump) WITHIN INTERVAL 10 SECONDS
  DEFINE A AS price < 99.5D, calm AS price - avg(calm.price) < 1.5D AND price - avg(calm.price) > -1.5D,
    jump AS price > avg(calm.price) + 1D)
"""
# Times are cut into buckets as long as the span, so that the join has keys: a row meets its own bucket and the next.
JOINS = """
WITH low AS (SELECT sym, id, us, price, explode(array(us DIV {span}, us DIV {span} + 1)) AS bucket FROM ticks WHERE price < 98.5),
every AS (SELECT sym, id, us, price, us DIV {span} AS bucket FROM ticks),
first AS (SELECT low.sym, low.id AS a, low.us AS t0, low.price AS p, every.id AS b, every.us AS bt, every.price AS q
  FROM low JOIN every ON low.sym = every.sym AND low.bucket = every.bucket
  WHERE every.us > low.us AND every.us <= low.us + {span} AND every.price > low.price * 1.02),
pairs AS (SELECT sym, a, t0, p, b, bt, q, explode(array(bt DIV {span}, bt DIV {span} + 1)) AS bucket FROM first)
SELECT pairs.sym, a, min(struct(bt, b, every.us, every.id)) AS best FROM pairs
  JOIN every ON pairs.sym = every.sym AND pairs.bucket = every.bucket
  WHERE every.us > bt AND every.us <= t0 + {span} AND every.price < q * 0.99 AND every.price > p GROUP BY pairs.sym, a
"""
DUCKDB_JOINS = """
WITH low AS (SELECT sym, id, us, price, unnest([us // {span}, us // {span} + 1]) AS bucket FROM ticks WHERE price < 98.5),
every AS (SELECT sym, id, us, price, us // {span} AS bucket FROM ticks),
first AS (SELECT low.sym, low.id AS a, low.us AS t0, low.price AS p, every.id AS b, every.us AS bt, every.price AS q
  FROM low JOIN every ON low.sym = every.sym AND low.bucket = every.bucket
  WHERE every.us > low.us AND every.us <= low.us + {span} AND every.price > low.price * 1.02),
pairs AS (SELECT sym, a, t0, p, b, bt, q, unnest([bt // {span}, bt // {span} + 1]) AS bucket FROM first)
SELECT pairs.sym, a, min({{'bt': bt, 'b': b, 'us': every.us, 'id': every.id}}) AS best FROM pairs
  JOIN every ON pairs.sym = every.sym AND pairs.bucket = every.bucket
  WHERE every.us > bt AND every.us <= t0 + {span} AND every.price < q * 0.99 AND every.price > p GROUP BY pairs.sym, a
"""
RUNS = """
WITH steps AS (SELECT *, sign(price - lag(price) OVER w) AS way, lag(id) OVER w AS before FROM ticks WINDOW w AS (PARTITION BY sym ORDER BY us)),
marked AS (SELECT *, CASE WHEN way IS DISTINCT FROM lag(way) OVER (PARTITION BY sym ORDER BY us) THEN 1 ELSE 0 END AS new FROM steps),
numbered AS (SELECT *, sum(new) OVER (PARTITION BY sym ORDER BY us) AS run FROM marked),
runs AS (SELECT sym, run, {any}(way) AS way, {first}(before, us) AS before, {last}(id, us) AS last FROM numbered GROUP BY sym, run)
SELECT sym, before AS a, last AS b, next AS c FROM (
  SELECT *, lead(way) OVER w AS behind, lead(last) OVER w AS next FROM runs WINDOW w AS (PARTITION BY sym ORDER BY run)) AS found
WHERE way = -1 AND behind = 1
"""
Rows = pa.Table


def options_of(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    return parser.parse_args(arguments)


def ticks(rows: int) -> pa.Table:
    """Prices around 100 of 15 symbols, three a second each; all times of a symbol are different."""
    rng = np.random.default_rng(1)
    sym = rng.integers(0, 15, rows).astype(np.int32)
    span = max(rows // 15, 1) * 330_000
    us = np.empty(rows, np.int64)
    for s in range(15):
        mine = np.flatnonzero(sym == s)
        us[mine] = (
            rng.choice(span, len(mine), replace=False)
            if span < 1 << 24
            else np.unique(rng.integers(0, span, 2 * len(mine)))[: len(mine)]
        )
        rng.shuffle(us[mine])
    price = np.round(100 + rng.normal(0, 1, rows), 2)
    columns = {"sym": sym, "id": np.arange(rows), "us": us, "price": price}
    table = pa.table(columns)
    return table.append_column("ts", table["us"].cast(pa.timestamp("us", "UTC")))


def in_order(found: pa.Table) -> Rows:
    """The columns sym, a, b, c as numbers, in one order."""
    plain = found.select(["sym", "a", "b", "c"]).cast(
        pa.schema([("sym", pa.int32()), ("a", pa.int64()), ("b", pa.int64()), ("c", pa.int64())])
    )
    return plain.sort_by([("sym", "ascending"), ("a", "ascending")])


def from_best(found: pa.Table, b: str, c: str) -> pa.Table:
    best = found["best"].combine_chunks()
    return pa.table({"sym": found["sym"], "a": found["a"], "b": best.field(b), "c": best.field(c)})


def loop_chain(table: pa.Table) -> pa.Table:
    """Row by row, with the starts that are still open."""
    out: list[tuple[int, int, int, int]] = []
    for sym, ids, times, prices in series(table):
        open_: list[Any] = []
        for id_, now, price in zip(ids, times, prices, strict=True):
            kept = []
            for one in open_:
                if now - one[1] > SPAN_US:
                    if one[4] is not None:
                        out.append((sym, one[0], *one[4]))
                    continue
                if price > one[2]:
                    for b, q in one[3]:
                        if one[4] is not None and b == one[4][0]:
                            break
                        if price < q * 0.99:
                            one[4] = (b, id_)
                            break
                if one[4] is None and price > one[2] * 1.02:
                    one[3].append((id_, price))
                kept.append(one)
            open_ = kept
            if price < 98.5:
                open_.append([id_, now, price, [], None])
        out += [(sym, one[0], *one[4]) for one in open_ if one[4] is not None]
    return named(out)


def loop_valley(table: pa.Table) -> pa.Table:
    out: list[tuple[int, int, int, int]] = []
    for sym, ids, _, prices in series(table):
        at = 0
        while at < len(ids):
            low = at + 1
            while low < len(ids) and prices[low] < prices[low - 1]:
                low += 1
            high = low
            while high < len(ids) and prices[high] > prices[high - 1]:
                high += 1
            if low > at + 1 and high > low:
                out.append((sym, ids[at], ids[low - 1], ids[high - 1]))
                at = high - 1
            else:
                at = max(at + 1, low - 1)
    return named(out)


def loop_jump(table: pa.Table) -> pa.Table:
    """From each start once over the rows behind it, with the last row that could end the match."""
    out: list[tuple[int, int, int, int]] = []
    for sym, ids, times, prices in series(table):
        for start, first in enumerate(prices):
            if first >= 99.5:
                continue
            last, total, found = times[start] + SPAN_US, 0.0, 0
            for at in range(start + 1, len(prices)):
                price, before = prices[at], at - start - 1
                if times[at] > last:
                    break
                if before and price > total / before + 1:
                    found = at
                total += price
                if not -1.5 < price - total / (before + 1) < 1.5:
                    break
            if found:
                out.append((sym, ids[start], ids[found - 1], ids[found]))
    return named(out)


def series(table: pa.Table) -> list[Any]:
    ordered = table.sort_by([("sym", "ascending"), ("us", "ascending")])
    sym, ids, us, prices = (ordered[name].to_pylist() for name in ("sym", "id", "us", "price"))
    cuts = [0, *(i for i in range(1, len(sym)) if sym[i] != sym[i - 1]), len(sym)]
    return [(sym[a], ids[a:b], us[a:b], prices[a:b]) for a, b in pairwise(cuts) if b > a]


def named(rows: list[tuple[int, int, int, int]]) -> pa.Table:
    return pa.table({name: [r[k] for r in rows] for k, name in enumerate(["sym", "a", "b", "c"])})


def polars_chain(paths: list[str]) -> pa.Table:
    rows = pl.scan_parquet(paths).select("sym", "id", "us", "price")

    def buckets(time: str) -> pl.Expr:
        return pl.concat_list(pl.col(time) // SPAN_US, pl.col(time) // SPAN_US + 1)

    low = rows.filter(pl.col("price") < 98.5).select("sym", a="id", t0="us", p="price")
    second = rows.select("sym", b="id", bt="us", q="price", bucket=pl.col("us") // SPAN_US)
    third = rows.select("sym", c="id", ct="us", r="price", bucket=pl.col("us") // SPAN_US)
    first = low.with_columns(bucket=buckets("t0")).explode("bucket").join(second, on=["sym", "bucket"])
    near = (pl.col("bt") > pl.col("t0")) & (pl.col("bt") <= pl.col("t0") + SPAN_US) & (pl.col("q") > pl.col("p") * 1.02)
    pairs = first.filter(near).with_columns(bucket=buckets("bt")).explode("bucket").join(third, on=["sym", "bucket"])
    after = (pl.col("ct") > pl.col("bt")) & (pl.col("ct") <= pl.col("t0") + SPAN_US)
    found = pairs.filter(after & (pl.col("r") < pl.col("q") * 0.99) & (pl.col("r") > pl.col("p")))
    best = found.group_by("sym", "a").agg(pl.struct("bt", "b", "ct", "c").sort_by("bt", "ct").first().alias("best"))
    return best.unnest("best").select("sym", "a", "b", "c").collect().to_arrow()


def polars_valley(paths: list[str]) -> pa.Table:
    rows = pl.scan_parquet(paths).select("sym", "id", "us", "price").sort("sym", "us")
    way = (pl.col("price") - pl.col("price").shift().over("sym")).sign()
    marked = rows.with_columns(way=way, before=pl.col("id").shift().over("sym"))
    runs = marked.with_columns(run=pl.col("way").rle_id().over("sym")).group_by("sym", "run", maintain_order=True)
    ends = runs.agg(pl.col("way").first(), pl.col("before").first(), pl.col("id").last())
    found = ends.with_columns(then=pl.col("way").shift(-1).over("sym"), c=pl.col("id").shift(-1).over("sym"))
    valleys = found.filter((pl.col("way") == -1) & (pl.col("then") == 1)).collect()
    return valleys.select("sym", a="before", b="id", c="c").to_arrow()


def works(
    lake: hw.Lake, connection: duckdb.DuckDBPyConnection, paths: list[str]
) -> dict[str, dict[str, Callable[[], pa.Table]]]:
    """For each pattern who computes it, and how."""
    session = lake.spark

    def spark_sql(text: str) -> pa.Table:
        lake.table("ticks").spark().createOrReplaceTempView("ticks")
        found: pa.Table = session.sql(text).toArrow()
        return found

    def read() -> pa.Table:
        return pa.concat_tables(pq.read_table(path) for path in paths)

    runs_spark = RUNS.format(any="first", first="min_by", last="max_by")
    runs_duckdb = RUNS.format(any="any_value", first="arg_min", last="arg_max")
    return {
        "chain": {
            "ours": lambda: lake.sql(CHAIN).to_arrow(),
            "DuckDB": lambda: from_best(duck(connection, DUCKDB_JOINS.format(span=SPAN_US)), "b", "id"),
            "polars": lambda: polars_chain(paths),
            "Python": lambda: loop_chain(read()),
            "ours on Spark": lambda: lake.sql(CHAIN, engine="spark").to_arrow(),
            "Spark SQL": lambda: from_best(spark_sql(JOINS.format(span=SPAN_US)), "b", "id"),
        },
        "valley": {
            "ours": lambda: lake.sql(VALLEY).to_arrow(),
            "DuckDB": lambda: duck(connection, runs_duckdb),
            "polars": lambda: polars_valley(paths),
            "Python": lambda: loop_valley(read()),
            "ours on Spark": lambda: lake.sql(VALLEY, engine="spark").to_arrow(),
            "Spark SQL": lambda: spark_sql(runs_spark),
        },
        "jump": {
            "ours": lambda: lake.sql(JUMP).to_arrow(),
            "Python": lambda: loop_jump(read()),
            "ours on Spark": lambda: lake.sql(JUMP, engine="spark").to_arrow(),
        },
    }


def duck(connection: duckdb.DuckDBPyConnection, text: str) -> pa.Table:
    return connection.sql(text).to_arrow_table()


def measured(lake: hw.Lake, options: argparse.Namespace, paths: list[str]) -> Report:
    connection = duckdb.connect(config={"threads": options.cores})
    connection.execute(f"CREATE VIEW ticks AS SELECT * FROM read_parquet({paths!r})")
    report = Report(
        f"Row patterns over {options.rows:,} ticks of 15 symbols: seconds, median of {options.rounds} rounds in turns, answers equal",
        ("", "matches", "who", "wall s", "CPU s", "wall x", "CPU x"),
        full_size=options.rows >= 1_000_000,
    )
    for name, every in works(lake, connection, paths).items():
        wanted: Rows | None = None
        for who, work in every.items():
            print(f"{name}: {who}, checked", file=sys.stderr, flush=True)
            found = in_order(work())
            wanted = found if wanted is None else wanted
            assert found.equals(wanted), (
                f"{name}: {who} has another answer: {found.num_rows} rows, not {wanted.num_rows}"
            )
        assert wanted is not None
        samples = Measured()
        every["reading alone"] = lambda: pa.concat_tables(pq.read_table(path, columns=READ) for path in paths)
        for number, who in interleaved(list(every), options.rounds):
            print(f"{name}: {who}, round {number + 1} of {options.rounds}", file=sys.stderr, flush=True)
            samples.add(who, timed(every[who], children="Spark" in who)[1])
        for who in every:
            mine = "ours on Spark" if "Spark" in who else "ours"
            wall, cpu = samples.wall(who), samples.cpu(who)
            ratios = (f"{wall / samples.wall(mine):.2f}", f"{cpu / samples.cpu(mine):.2f}")
            report.rows.append((name, f"{wanted.num_rows:,}", who, f"{wall:.2f}", f"{cpu:.2f}", *ratios))
        report.figures[name] = {"matches": wanted.num_rows, "samples": samples.figures()}
        targets(report, name, samples)
    connection.close()
    return report


def targets(report: Report, name: str, samples: Measured) -> None:
    if name == "chain":
        times = samples.wall("Spark SQL") / samples.wall("ours on Spark")
        report.target(f"{name}: Spark SQL's self-joins / ours on Spark, wall", times, least=5)
    report.target(f"{name}: the Python loop / ours, wall", samples.wall("Python") / samples.wall("ours"), least=20)
    limit = samples.wall("Python") / samples.wall("reading alone")
    report.notes.append(f"{name}: the Python loop / reading alone, wall: {limit:.2f}x")
    for peer in (one for one in ("DuckDB", "polars") if one in samples.runs):
        report.target(f"{name}: {peer} / ours, wall", samples.wall(peer) / samples.wall("ours"), least=1)


def main(arguments: list[str] | None = None) -> None:
    options = options_of(arguments)
    versions = {n: version(n) for n in ("pyspark", "polars", "duckdb", "pyarrow", "numpy")}
    load = os.getloadavg()[0]
    print(f"{os.cpu_count()} cores, load {load:.1f}; " + ", ".join(f"{k} {v}" for k, v in versions.items()), flush=True)
    folder = Path(tempfile.mkdtemp(prefix="headwater-patterns-"))
    session = hw.spark(f"local[{options.cores}]", config={"spark.driver.memory": "6g"})
    try:
        lake = hw.connect(folder, spark=session)
        lake.write("ticks", ticks(options.rows))
        paths = sorted(str(path) for path in (folder / "ticks").glob("*.parquet"))
        report = measured(lake, options, paths)
        print(report.text(), flush=True)
        if options.json:
            body = {"load": load, "versions": versions, "patterns": report.as_dict()}
            options.json.write_text(json.dumps(body, indent=1, default=str) + "\n")
    finally:
        session.stop()
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()

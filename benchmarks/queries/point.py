"""One row by its id, out of a table of 1,000 commits of 1,500 rows each.

Everybody is asked for the newest rows: whoever holds a table looks for commits that others made since. Each query is for
another id. First nothing changes between the queries; then one commit of delta-rs comes before each, so that nobody knows
the new rows beforehand, and the id asked for is in it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
from queries.measuring import Measured, Report, difference, interleaved, timed
from queries.peers import BARE, files

import headwater as hw
from headwater.lakehouse import Lake

__all__ = ["run"]

Ask = Callable[[int], pa.Table]
ROWS_PER_COMMIT = 1_500
COMMITS = 1_000
WARM = 30
_OURS = "headwater"


def rows(start: int, count: int) -> pa.Table:
    ids = np.arange(start, start + count)
    return pa.table(
        {
            "id": ids,
            "customer": (ids * 2_654_435_761) % 1_000_003,
            "amount": (ids % 99_991) / 100,
            "country": pa.array(np.array(["DE", "FR", "IT", "ES", "PL"])[ids % 5]),
            "day": pa.array((ids % 365).astype("int32"), pa.date32()),
        }
    )


def build(folder: Path, commits: int) -> Lake:
    lake = hw.connect(folder / "point")
    table = lake.table("events")
    # Without deletion vectors, so that delta-rs can write to it too.
    table.write(rows(0, ROWS_PER_COMMIT), properties={"delta.enableDeletionVectors": "false"})
    for number in range(1, commits):
        table.append(rows(number * ROWS_PER_COMMIT, ROWS_PER_COMMIT))
    return lake


def competitors(lake: Lake, peers: Sequence[str]) -> dict[str, Ask]:
    text = "SELECT * FROM events WHERE id = ?"
    found: dict[str, Ask] = {_OURS: lambda key: lake.sql(text, parameters=[key]).to_arrow()}
    path = str(lake.table("events").snapshot.storage.local_path(""))
    if "querybuilder" in peers:
        found["querybuilder, held table"] = _query_builder(path)
    if "polars" in peers:
        found["polars, fresh scan"] = _polars(path)
        found["polars, held table"] = _polars_held(path)
    if BARE in peers:
        found["duckdb, the one file"] = _floor(lake)
    return found


def _query_builder(path: str) -> Ask:
    import deltalake

    table = deltalake.DeltaTable(path)

    def ask(key: int) -> pa.Table:
        table.update_incremental()
        # A builder keeps the version that was registered.
        builder = deltalake.QueryBuilder().register("events", table)
        return pa.table(builder.execute(f"SELECT * FROM events WHERE id = {key}").read_all())

    return ask


def _polars(path: str) -> Ask:
    import polars as pl

    return lambda key: pl.scan_delta(path).filter(pl.col("id") == key).collect().to_arrow()


def _polars_held(path: str) -> Ask:
    import deltalake
    import polars as pl

    table = deltalake.DeltaTable(path)

    def ask(key: int) -> pa.Table:
        table.update_incremental()
        return pl.scan_delta(table).filter(pl.col("id") == key).collect().to_arrow()

    return ask


def _floor(lake: Lake) -> Ask:
    """The least that DuckDB needs: it is told in which file the row is, and knows nothing of commits."""
    import duckdb

    connection = duckdb.connect()
    text = f"SELECT min(id), filename FROM read_parquet({files(lake, 'events')!r}, filename = true) GROUP BY filename"
    by_first = dict(connection.sql(text).fetchall())

    def ask(key: int) -> pa.Table:
        path = by_first[key - key % ROWS_PER_COMMIT]
        return connection.sql("SELECT * FROM read_parquet(?) WHERE id = ?", params=[path, key]).to_arrow_table()

    return ask


def run(folder: Path, scale: float, rounds: int, peers: Sequence[str]) -> Report:
    import deltalake

    commits = max(20, round(COMMITS * min(scale, 1)))
    lake = build(folder, commits)
    asking = competitors(lake, peers)
    total = commits * ROWS_PER_COMMIT
    keys = [int(k) for k in np.random.default_rng(7).integers(0, total, WARM * rounds // 3 or 1)]
    for ask in asking.values():
        _same(ask(keys[0]), keys[0], "the first query")
    warm, after = Measured(), Measured()
    for number, who in interleaved(list(asking), len(keys)):
        found, sample = timed(partial(asking[who], keys[number]))
        _same(found, keys[number], who)
        warm.add(who, sample)
    path = str(lake.table("events").snapshot.storage.local_path(""))
    movers = [w for w in asking if not w.startswith("duckdb")]
    done = -1
    for number, who in interleaved(movers, max(3, len(keys) // 3)):
        start = total + number * ROWS_PER_COMMIT
        if number != done:
            deltalake.write_deltalake(path, rows(start, ROWS_PER_COMMIT), mode="append")
            done = number
        found, sample = timed(partial(asking[who], start + 7))
        _same(found, start + 7, who)
        after.add(who, sample)
    return _report(warm, after, commits, len(keys))


def _same(found: pa.Table, key: int, who: str) -> None:
    other = difference(rows(key, 1), found, exact=False)
    assert other is None, f"{who}, id {key}: {other}"


def _report(warm: Measured, after: Measured, commits: int, count: int) -> Report:
    report = Report(
        f"One row by its id, table of {commits:,} commits of {ROWS_PER_COMMIT:,} rows: ms "
        f"({count} queries in turns, all answers right)"
    )
    report.full_size = commits >= COMMITS
    report.head = ("", "median", "best", "CPU", "median after a commit", "best after a commit")
    for who in warm.runs:
        cells = [f"{v * 1000:.2f}" for v in (warm.wall(who), warm.best(who), warm.cpu(who))]
        moved = [after.wall(who), after.best(who)] if who in after.runs else []
        report.rows.append((who, *cells, *([f"{v * 1000:.2f}" for v in moved] or ["-", "-"])))
    report.figures = {"warm": warm.figures(), "after_commit": after.figures()}
    rivals = [w for w in after.runs if w != _OURS]
    if rivals:
        report.target(f"{_OURS} / the best peer, median", warm.wall(_OURS) / min(map(warm.wall, rivals)), most=1.5)
        report.target(f"{_OURS} / the best peer, best", warm.best(_OURS) / min(map(warm.best, rivals)), most=1.5)
        moved_ratio = after.wall(_OURS) / min(map(after.wall, rivals))
        report.target(f"{_OURS} / the best peer, median after a commit", moved_ratio, most=1.5)
    return report

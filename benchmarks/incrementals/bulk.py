"""The first load: a table as one step of an empty circuit, against DuckDB computing the query once from the same Arrow tables.

DuckDB keeps nothing for the next change, so it shows what the answer alone costs; DBSP keeps what we keep.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import duckdb
import pyarrow as pa
from incrementals.circuit import Competitors, check
from incrementals.feed import Feed, as_answer
from incrementals.ours import drive
from queries.measuring import Measured, Report, interleaved, timed

__all__ = ["run"]

SIZES = (1_000_000, 5_000_000)
TEXT = (
    "SELECT g, count(*) AS n, sum(v)::BIGINT AS s, avg(v) AS a, min(v) AS mn, max(v) AS mx "
    "FROM events JOIN groups USING (k) WHERE v > 100 GROUP BY g"
)


def _duckdb(events: pa.Table, groups: pa.Table) -> pa.Table:
    with duckdb.connect() as connection:
        connection.register("events", events)
        connection.register("groups", groups)
        return connection.sql(TEXT).to_arrow_table()


def run(folder: Path, scale: float, rounds: int, competitors: Competitors) -> Report:
    """One million rows and five."""
    report = Report(
        f"First load in one step: thousand rows in a second and in a CPU second ({rounds} rounds in turns, all answers equal)",
        ("", "k rows/s", "k rows/CPU s", "wall ratio", "CPU ratio"),
    )
    names = [*(n for n in competitors.names() if n != "pathway"), "duckdb"]
    for size in (max(10_000, round(s * scale)) for s in SIZES):
        feed = Feed.make(size, deleted=0.0)
        right, measured = feed.answer(), Measured()
        events, groups = feed.events(), feed.table()
        drive(feed.head(size // 5), size // 5, size)  # large steps have kernels of their own to be loaded
        for _, who in interleaved(names, rounds):
            if who == "duckdb":
                table, sample = timed(partial(_duckdb, events, groups))
                answer = as_answer(table)
            elif who == "dbsp":
                assert competitors.dbsp
                done = competitors.dbsp.run(feed, folder / f"bulk-{size}", size, size)
                answer, sample = done.answer, done.first
            else:
                done = drive(feed, size, size, settled=True)
                answer, sample = done.answer, done.first
            check(who, right, answer)
            measured.add(who, sample)
        for who in names:
            both = (measured.wall(who), measured.cpu(who))
            rates = [f"{size / s / 1e3:,.0f}" for s in both]
            ratios = (both[0] / measured.wall("headwater"), both[1] / measured.cpu("headwater"))
            report.rows.append((f"{size:,} {who}", *rates, *(f"{r:.2f}" for r in ratios)))
        report.figures[str(size)] = measured.figures()
    report.notes.append("ratios are of seconds, theirs to ours: above 1 we are faster")
    return report

"""What keeping an index up with its table costs, as a share of building it.

A change deletes some documents and appends as many others, together 0.1% of the table. After each refresh the rows of a
rare word are compared with those that a scan of the table finds.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import headwater as hw
from benchmarks.queries.measuring import Measured, Report, timed
from benchmarks.searches.corpus import BLOCK, Corpus
from benchmarks.searches.ours import TABLE, Headwater
from benchmarks.searches.questions import ADDED
from benchmarks.searches.suite import Built

__all__ = ["run"]

_SHARE = 0.001


def run(lake: hw.Lake, corpus: Corpus, ours: Headwater, built: Built, rounds: int, *, full_size: bool) -> Report:
    """Change the table and refresh the index, some times over."""
    rng = np.random.default_rng(corpus.seed)
    rows = max(1, int(corpus.docs * _SHARE / 2))
    numbers = rng.permutation(corpus.docs)
    fresh = _fresh(corpus, rounds * rows)
    table, index = lake.table(TABLE), ours.index
    measured = Measured()
    for turn in range(rounds):
        gone = numbers[turn * rows : (turn + 1) * rows].tolist()
        table.delete(f"id IN ({', '.join(map(str, gone))})")
        table.append(fresh.slice(turn * rows, rows))
        measured.add("refresh", timed(index.refresh)[1])
        found, cost = timed(lambda: index.search(f"body:{ADDED}", columns=["id"], k=None).to_arrow())
        measured.add("first search after it", cost)
        rows_now = lake.sql(f"SELECT id, body FROM {TABLE}").to_arrow()
        scanned = rows_now.filter(pc.match_substring_regex(rows_now.column("body"), rf"(?i)\b{ADDED}\b"))
        assert sorted(found.column("id").to_pylist()) == sorted(scanned.column("id").to_pylist()), "index equals scan"
        assert index.coverage == 1.0, "every file is covered after a refresh"
    report = Report(
        f"refresh after {2 * rows:,} changed rows of {corpus.docs:,}",
        ["", "wall ms", "CPU ms", "of the build's CPU"],
        full_size=full_size,
    )
    for name in measured.runs:
        share = measured.cpu(name) / built.cost.cpu
        report.add([name, f"{measured.wall(name) * 1e3:.1f}", f"{measured.cpu(name) * 1e3:.1f}", f"{share:.2%}"])
    report.figures["runs"] = measured.figures()
    report.target(
        "refresh as a share of the build's CPU", 100 * measured.cpu("refresh") / built.cost.cpu, most=2, unit="%"
    )
    return report


def _fresh(corpus: Corpus, rows: int) -> pa.Table:
    """Documents that come after those of the corpus."""
    first = -(-corpus.docs // BLOCK)
    return pa.concat_tables(corpus.block(first + n) for n in range(-(-rows // BLOCK))).slice(0, rows)

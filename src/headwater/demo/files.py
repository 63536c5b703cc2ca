"""The act of the export: a view as plain Parquet files, read by an engine that knows nothing of the lake."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import duckdb

if TYPE_CHECKING:
    from headwater.derived.reports import Verification
    from headwater.lakehouse import Lake

__all__ = ["EXPORT", "Handed", "hand_over"]

EXPORT = """lake.export("spend_files", "spend", refresh=True)
lake.sql("UPDATE transactions SET cents = cents + 1 WHERE transaction_id = 7")
lake.derived("spend_files").refresh()"""


@dataclass(frozen=True, slots=True)
class Handed:
    """What the refresh did, and what a reader of the files finds."""

    upstream: list[str]
    mode: str
    rows_out: int
    files: int
    cents: int
    verified: Verification


def hand_over(lake: Lake) -> Handed:
    """Export a view, correct a payment, and read the files by DuckDB."""
    export = lake.export("spend_files", "spend", refresh=True)
    lake.sql("UPDATE transactions SET cents = cents + 1 WHERE transaction_id = 7")
    report = lake.derived("spend_files").refresh()
    with duckdb.connect() as reader:
        found = reader.execute("SELECT sum(cents) FROM read_parquet(?)", [export.files]).fetchone()
    assert found is not None, "a sum is one row"
    upstream = [one.name for one in report.upstream]
    return Handed(upstream, report.mode, report.rows_out, len(export.files), int(found[0]), export.verify())

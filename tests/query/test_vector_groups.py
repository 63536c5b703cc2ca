"""Deleted rows stay away however the files' deletion vectors are packed into strings of bits for DuckDB."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import headwater as hw
from headwater.query.engines import duckdb_scan
from headwater.query.sources import TableSource
from headwater.sql.demands import Demand
from headwater.sql.plan import Scan

SIZES = [3, 40, 17, 64, 5, 9, 120, 3, 8]


@pytest.mark.parametrize(
    ("few", "most_groups", "groups"),
    [
        (2**20, 64, 1),  # small files share a string
        (1, 10**9, len(SIZES)),  # each file has its own
        (60, 10**9, 5),  # some share one, and files above the limit stand alone
        (1, 3, 4),  # the limit grows, so that there are few
    ],
)
def test_packed_vectors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few: int, most_groups: int, groups: int
) -> None:
    monkeypatch.setattr(duckdb_scan, "_FEW_BITS", few)
    monkeypatch.setattr(duckdb_scan, "_MOST_GROUPS", most_groups)
    lake = hw.connect(tmp_path)
    first = 0
    for size in SIZES:
        lake.write("t", pa.table({"id": range(first, first + size)}))
        first += size
    lake.write("t", pa.table({"id": [9999]}))  # a file with nothing deleted
    # The last row of each file and some more, so that each has a vector and none goes as a whole.
    ends = [sum(SIZES[: n + 1]) - 1 for n in range(len(SIZES))]
    gone = {*ends, *range(0, first, 7)}
    lake.table("t").delete(f"id IN ({', '.join(map(str, sorted(gone)))})")
    kept = [n for n in (*range(first), 9999) if n not in gone]

    assert lake.sql("SELECT id FROM t ORDER BY id").to_arrow().column("id").to_pylist() == kept
    found = lake.sql("SELECT count(*), sum(id) FROM t WHERE id % 2 = 0").fetchall()
    even = [n for n in kept if n % 2 == 0]
    assert found == [(len(even), sum(even))]

    snapshot = lake.table("t").snapshot
    relations = duckdb_scan.Relations()
    relations.sql(TableSource.of(snapshot, Demand(Scan("t", None, None, ()), ("id",), ())))
    assert sum(f.deletion_vector is not None for f in snapshot.files.values()) == len(SIZES)
    assert len(relations.values) == groups

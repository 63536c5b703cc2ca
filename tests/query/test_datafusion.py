"""DataFusion on a lake: the same rows as DuckDB for every kind of table, failures in plain words, cancelling."""

from __future__ import annotations

import math
import threading
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest

from headwater.base import settings
from headwater.base.errors import CancelledError, CorruptionError, ExpressionError, NotFoundError
from headwater.lakehouse import Lake
from headwater.query.engines.datafusion_scan import _links

_ROWS = 1_000


def _table() -> pa.Table:
    return pa.table(
        {
            "id": pa.array(range(_ROWS), pa.int64()),
            "part": pa.array([["a b", "ü%", "c/d", None][i % 4] for i in range(_ROWS)]),
            "x": pa.array([math.nan if i % 7 == 0 else i / 4 for i in range(_ROWS)]),
            "n": pa.array([None if i % 5 == 0 else i % 11 for i in range(_ROWS)], pa.int32()),
            "day": pa.array([date(2024, 1, 1 + i % 28) for i in range(_ROWS)]),
            "st": pa.array([{"u": i, "v": f"s{i}"} if i % 3 else None for i in range(_ROWS)]),
        }
    )


_QUERIES = (
    "SELECT * FROM t ORDER BY id",
    "SELECT count(*) AS c FROM t",
    "SELECT part, count(*) AS c, sum(n) AS s, max(x) AS m FROM t GROUP BY part ORDER BY part",
    "SELECT id FROM t WHERE part = 'ü%' AND id < 40 ORDER BY id",
    "SELECT part FROM t WHERE part IS NULL AND id > 990",
    "SELECT id, x FROM t WHERE x > 240 ORDER BY id",
    "SELECT st.u, st.v FROM t WHERE id BETWEEN 3 AND 9 ORDER BY id",
    "WITH q AS (SELECT id, n FROM t WHERE n > 3) SELECT count(*) AS c FROM q a JOIN q b ON a.id = b.id",
    "SELECT a.part, count(*) AS c FROM t a JOIN t b ON a.n = b.n AND a.id < 20 GROUP BY a.part ORDER BY 1",
    "SELECT count(*) AS c FROM t WHERE id > 5000",
    "SELECT x, id FROM t ORDER BY x DESC, id LIMIT 5",
    "SELECT part, min(x) AS l, max(x) AS m FROM t GROUP BY part ORDER BY m DESC, part LIMIT 2",
    "SELECT min(x) AS l, max(x) AS m FROM t WHERE id % 7 = 0",
    "SELECT count(*) AS c FROM t a JOIN t b ON a.x = b.x",
    "SELECT id FROM t VERSION AS OF 0 ORDER BY id DESC LIMIT 3",
)


def _same(lake: Lake, text: str) -> None:
    here = lake.sql(text, engine="datafusion").to_arrow()
    there = lake.sql(text, engine="duckdb").to_arrow()
    assert here.schema == there.schema, text
    assert repr(here.to_pylist()) == repr(there.to_pylist()), text


@pytest.mark.long
@pytest.mark.parametrize("kind", ["plain", "split", "deleted", "split and deleted", "renamed", "grown", "empty"])
def test_every_kind_of_table_is_read_as_duckdb_reads_it(lake: Lake, kind: str) -> None:
    split = ["part"] if "split" in kind else []
    properties = {"delta.enableDeletionVectors": "true"} if "deleted" in kind else {}
    properties |= {"delta.columnMapping.mode": "name"} if kind == "renamed" else {}
    rows = _table()
    lake.write("t", rows.slice(0, 0 if kind == "empty" else _ROWS // 2), partition_by=split, properties=properties)
    table = lake.table("t")
    if kind != "empty":
        table.append(rows.slice(_ROWS // 2))
    if "deleted" in kind:
        table.delete("id % 9 = 4 OR id > 980")
        assert any(a.deletion_vector for a in table.snapshot.files.values())
    if kind == "renamed":
        lake.sql("ALTER TABLE t RENAME COLUMN n TO m")
        lake.sql("ALTER TABLE t RENAME COLUMN m TO n")
        lake.sql("ALTER TABLE t RENAME COLUMN x TO y")
        lake.sql("ALTER TABLE t RENAME COLUMN y TO x")
    if kind == "grown":
        lake.sql("ALTER TABLE t ADD COLUMN late STRING")
        lake.sql("INSERT INTO t (id, late) VALUES (5001, 'here')")
        _same(lake, "SELECT id, late FROM t WHERE late IS NOT NULL OR id < 4 ORDER BY id")
    for text in _QUERIES:
        _same(lake, text)


def test_links_are_gone_when_the_rows_are_read(lake: Lake) -> None:
    lake.write("t", _table())
    result = lake.sql("SELECT id FROM t", engine="datafusion")
    assert any(_links().iterdir())
    assert result.to_arrow().num_rows == _ROWS
    assert not any(_links().iterdir())


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("SELECT 1 / (id - 3) FROM t", "division by zero"),
        ("SELECT id % (id - 3) FROM t", "remainder by zero"),
        ("SELECT id + 9223372036854775807 FROM t", "does not fit its type"),
        ("SELECT sum(id + 9223372036854774000) FROM t", "does not fit its type"),
        ("SELECT CAST(part AS INT) FROM t", "a text cannot be cast to int"),
        ("SELECT (SELECT id FROM t)", "more than one row"),
        ("SELECT make_date(2023, 2, n + 28) FROM t", "there is no such date"),
    ],
)
def test_failures_are_plain_words(lake: Lake, text: str, why: str) -> None:
    lake.write("t", _table())
    with pytest.raises(ExpressionError) as caught:
        lake.sql(text, engine="datafusion").to_arrow()
    assert why in caught.value.message
    for word in ("Arrow", "DataFusion", "headwater!", "Int32", "Int64", "cause"):
        assert word not in str(caught.value)


def test_what_cannot_be_planned_is_refused(lake: Lake) -> None:
    lake.write("t", _table())
    with pytest.raises(ExpressionError) as caught:
        lake.sql("SELECT id, (SELECT max(b.id) FROM t b WHERE b.id > a.n) FROM t a", engine="datafusion")
    assert caught.value.code == "E1305"
    assert caught.value.hint is not None and 'engine="duckdb"' in caught.value.hint


def _files(lake: Lake) -> list[Path]:
    return sorted(p for p in Path(lake.location, "t").rglob("*.parquet") if "_delta_log" not in p.parts)


def test_a_missing_file_is_an_error_and_not_fewer_rows(lake: Lake) -> None:
    lake.write("t", _table())
    _files(lake)[0].unlink()
    with pytest.raises(NotFoundError):
        lake.sql("SELECT count(id) FROM t", engine="datafusion").to_arrow()


def test_a_damaged_file_is_named(lake: Lake) -> None:
    lake.write("t", _table())
    path = _files(lake)[0]
    path.write_bytes(b"x" * path.stat().st_size)
    with pytest.raises(CorruptionError) as caught:
        lake.sql("SELECT sum(id) FROM t", engine="datafusion").to_arrow()
    assert path.name in str(caught.value)


@pytest.fixture
def large(lake: Lake) -> Lake:
    lake.write("t", pa.table({"id": pa.array(range(200_000), pa.int64())}))
    return lake


_ENDLESS = "SELECT a.id % 7, b.id, count(*) FROM t a JOIN t b ON a.id % 2 = b.id % 2 GROUP BY a.id % 7, b.id"


def test_a_query_is_cancelled_while_a_thread_waits_for_it(large: Lake) -> None:
    # The timer runs only because the thread that waits has let go of the GIL.
    result = large.sql(_ENDLESS, engine="datafusion")
    threading.Timer(0.3, result.cancel).start()
    with pytest.raises(CancelledError):
        result.to_arrow()


def test_many_threads_at_once(lake: Lake) -> None:
    lake.write("t", _table())
    found: list[object] = []

    def ask(number: int) -> None:
        text = f"SELECT sum(id) AS s FROM t WHERE n = {number}"
        found.append((number, lake.sql(text, engine="datafusion").scalar()))

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rows = _table().to_pylist()
    assert sorted(found, key=repr) == [(i, sum(r["id"] for r in rows if r["n"] == i)) for i in range(8)]


def test_rows_stream_in_batches_and_spill_within_the_memory_limit(large: Lake, tmp_path: Path) -> None:
    with settings.override(memory_limit_bytes=64 * 2**20, spill_dir=tmp_path / "spill"):
        (tmp_path / "spill").mkdir()
        result = large.sql("SELECT id, id * 2 AS twice FROM t ORDER BY id % 1000, id", engine="datafusion")
        assert result.to_arrow().num_rows == 200_000


def test_native_sql_reads_tables_by_name(lake: Lake) -> None:
    lake.write("t", _table())
    lake.write("Sales.Orders", _table().slice(0, 10))
    assert lake.sql("SELECT median(id) AS m FROM t", engine="datafusion", dialect="native").to_pylist() == [
        {"m": 499.5}
    ]
    text = "SELECT max(id) FROM sales.orders"
    assert lake.sql(text, engine="datafusion", dialect="native").to_tuples() == [(9,)]


@pytest.mark.parametrize("text", ["SELEC 1", "SELECT nothing FROM t", "DROP VIEW t", "CREATE TABLE z AS SELECT 1"])
def test_native_sql_that_datafusion_does_not_take(lake: Lake, text: str) -> None:
    lake.write("t", _table())
    with pytest.raises(ExpressionError) as caught:
        lake.sql(text, engine="datafusion", dialect="native").to_arrow()
    assert caught.value.code == "E1309"


def test_explain_shows_the_engines_plan(lake: Lake) -> None:
    lake.write("t", _table())
    text = "\n".join(map(str, lake.sql("EXPLAIN EXTENDED SELECT sum(id) FROM t", engine="datafusion").to_tuples()))
    assert "AggregateExec" in text

"""Errors of statements: they point into the text, and their hints speak SQL."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import headwater as hw
from headwater.base.errors import HeadwaterError, NotFoundError
from headwater.lakehouse import Lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MAKE = "CREATE TABLE t (id INT NOT NULL, s STRING, day DATE) PARTITIONED BY (day); INSERT INTO t VALUES (1, 'a', NULL)"


def _refused(lake: Lake, text: str, **options: str) -> HeadwaterError:
    with pytest.raises(HeadwaterError) as caught:
        lake.sql(text, **options).to_arrow()  # type: ignore[arg-type]
    return caught.value


def _marked(error: HeadwaterError) -> str:
    """What stands at the caret."""
    assert error.where is not None and error.where.endswith("^"), error
    text, caret = error.where.split("\n")
    return text[len(caret) - 1 - 9 :]


@pytest.mark.parametrize(
    ("text", "at", "hint"),
    [
        ("CREATE TABLE t (a INT)", "t (a", "CREATE TABLE IF NOT EXISTS keeps it"),
        ("CREATE TABLE t AS SELECT 1 AS a", "t AS", "CREATE OR REPLACE TABLE"),
        ("INSERT INTO t VALUES ('x', 's', NULL)", "VALUES", "ALTER TABLE t ALTER COLUMN id TYPE"),
        ("ALTER TABLE t RENAME COLUMN s TO x", "s TO", "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"),
        ("ALTER TABLE t DROP COLUMN s", "s", "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"),
        ("ALTER TABLE t ADD COLUMN x INT, s INT", "s INT", "another name"),
        ("ALTER TABLE t ADD CONSTRAINT c CHECK (id > 1)", "c CHECK", "mend those rows first"),
        ("ALTER TABLE t DROP CONSTRAINT c", "c", "there are no constraints yet"),
        ("ALTER TABLE t ALTER COLUMN id TYPE STRING", "id TYPE", "TINYINT -> SMALLINT"),
        ("RESTORE t TO VERSION AS OF 99", "99", "versions run from 0 to 1"),
        ("RESTORE t TO TIMESTAMP AS OF '2001-01-01'", "'2001", "the earliest commit"),
        ("OPTIMIZE t WHERE id = 1", "id = 1", "name only day"),
        ("OPTIMIZE t ZORDER BY (id, day)", "day)", "leave it out of ZORDER BY"),
        ("SELECT * FROM table_changes('t', 0)", "table_changes", "ALTER TABLE t SET"),
        ("SELECT * FROM delta.`/data/t`", "delta", "lake.attach(name, path)"),
    ],
)
def test_the_place_and_the_hint(lake: Lake, text: str, at: str, hint: str) -> None:
    lake.sql(MAKE)
    error = _refused(lake, text)
    assert _marked(error).startswith(at)
    assert error.hint is not None and hint in error.hint
    assert lake.table("t").version == 1


def test_hints_without_a_place(lake: Lake) -> None:
    lake.sql(MAKE)
    assert "deletedFileRetentionDuration' = " in str(_refused(lake, "VACUUM t RETAIN 0 HOURS").hint)
    error = _refused(lake, "INSERT INTO t (id) SELECT CAST(NULL AS INT)")
    assert "ALTER TABLE t ALTER COLUMN id DROP NOT NULL" in str(error.hint)
    assert "does not fit int:" in _refused(lake, "INSERT INTO t (id) SELECT 3000000000").message
    assert "INSERT WITH SCHEMA EVOLUTION INTO t" in str(
        _refused(lake, "INSERT INTO t BY NAME SELECT 1 AS id, 2 AS z").hint
    )


def test_python_keeps_its_own_hints(lake: Lake) -> None:
    lake.sql(MAKE)
    with pytest.raises(HeadwaterError) as caught:
        lake.table("t").append([{"id": "x"}])
    assert "widen_column()" in str(caught.value.hint)


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_native_names_the_tables_of_the_lake(lake: Lake, engine: str) -> None:
    lake.sql(MAKE)
    assert lake.sql("SELECT x.id FROM t AS x", engine=engine, dialect="native").to_tuples() == [(1,)]  # type: ignore[arg-type]
    error = _refused(lake, "SELECT * FROM t AS x, tt", engine=engine, dialect="native")
    assert isinstance(error, NotFoundError) and "tables: t" in str(error.hint)
    assert _marked(error) == "tt"
    for text in ("SELECT 1; SELECT 2", "INSERT INTO t VALUES (2, 'b', NULL)", "SELECT nothing FROM t"):
        assert 'leave out dialect="native"' in str(_refused(lake, text, engine=engine, dialect="native").hint)


def test_on_spark(tmp_path: Path, spark: SparkSession) -> None:
    lake = hw.connect(tmp_path / "lake", spark=spark)
    lake.sql("CREATE TABLE o (id INT, at DATE, amount INT, country STRING, z INT, y INT)")
    for text, at in (
        ("SELECT * FROM o VERSION AS OF 99", "o VERSION"),
        ("SELECT *\nFROM o TIMESTAMP AS OF '2001-01-01'", "o TIMESTAMP"),
        ("SELECT * FROM table_changes('o')", "table_changes"),
        ("SELECT * FROM table_changes('o', 0)", "table_changes"),
        ("INSERT INTO o SELECT * FROM o VERSION AS OF 99", "o VERSION"),
        ("RESTORE o TO VERSION AS OF 99", "99"),
    ):
        error = _refused(lake, text, engine="spark")
        assert _marked(error).startswith(at), error
        assert error.hint and "engine=" not in error.hint
    for text in ("DELETE FROM o WHERE nope = 1", "SELECT nope FROM o", "UPDATE o SET id = nope"):
        error = _refused(lake, text, engine="spark")
        assert error.hint == "columns: id, at, amount, country, z, y", text
        assert _marked(error).startswith("nope")
    assert "country, z" in str(_refused(lake, "SELECT nope FROM (SELECT country, z FROM o)", engine="spark").hint)
    assert "lake.attach" in str(_refused(lake, "SELECT * FROM delta.`/data/t`", engine="spark").hint)

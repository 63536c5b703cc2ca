"""Store assignment: what INSERT, UPDATE and MERGE make of a value of another type than the column's. Spark decides."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import headwater as hw
from headwater.base.errors import ExpressionError, HeadwaterError, SchemaError
from headwater.base.schema import arrow_type
from headwater.lakehouse import Lake
from headwater.query.statements.assigning import may_store
from headwater.sql.statements.cursor import Cursor
from headwater.sql.statements.types import data_type

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A type, and values that each number type can hold, near where the rules of rounding differ.
SOURCES = {
    "tinyint": ("-7Y", "0Y", "99Y"),
    "int": ("-7", "0", "99"),
    "bigint": ("-7L", "0L", "99L"),
    "float": ("CAST(-1.5 AS FLOAT)", "CAST(2.5 AS FLOAT)", "CAST(0.1 AS FLOAT)"),
    "double": ("-1.5D", "99.99D", "1e3D"),
    "decimal(4,2)": ("-1.25BD", "2.35BD", "99.99BD"),
    "decimal(20,3)": ("-1.250BD", "2.355BD", "0.005BD"),
    "decimal(16,16)": ("0.1234567890123456BD", "-0.3000000000000001BD", "0.9999999999999999BD"),
    "decimal(28,20)": ("-0.10000000000000000555BD", "99.00000594616104103000BD", "0.30000000000000004441BD"),
    "string": ("'1'", "''", "'2024-01-01'"),
    "boolean": ("true", "false", "NULL"),
    "date": ("DATE'2024-02-29'", "DATE'1969-12-31'", "NULL"),
    "timestamp": ("TIMESTAMP'2024-02-29 23:59:59.5'", "TIMESTAMP'1969-12-31 12:00:00'", "NULL"),
    "timestamp_ntz": ("TIMESTAMP_NTZ'2024-02-29 23:59:59.5'", "TIMESTAMP_NTZ'1969-12-31 12:00:00'", "NULL"),
    "binary": ("X'41'", "X''", "NULL"),
    "array<int>": ("array(1, 2)", "array(CAST(NULL AS INT))", "NULL"),
    "struct<b:int,a:int>": ("named_struct('b', 1, 'a', 2)", "named_struct('b', CAST(NULL AS INT), 'a', 2)", "NULL"),
    "map<int,int>": ("map(1, 2)", "map(3, CAST(NULL AS INT))", "NULL"),
}
TARGETS = ["smallint", "int", "bigint", "float", "double", "decimal(6,1)", "decimal(10,4)", "string", "boolean", "date"]
TARGETS += ["timestamp", "timestamp_ntz", "binary", "array<bigint>", "array<string>", "struct<a:bigint,b:int>"]
TARGETS += ["map<bigint,int>", "map<string,string>"]
# Casts that are not known to give Spark's values, on one of the engines at least.
REFUSED_HERE = {(source, target) for source in ("float", "double") for target in ("decimal(6,1)", "decimal(10,4)")}
REFUSED_HERE |= {("array<int>", "array<string>"), ("map<int,int>", "map<string,string>")}
REFUSED_HERE |= {("struct<b:int,a:int>", "struct<a:bigint,b:int>")}
# DataFusion would print these otherwise than Spark.
REFUSED_HERE |= {(source, "string") for source in ("float", "double", "timestamp", "timestamp_ntz")}


def _arrow(text: str) -> Any:
    return arrow_type(data_type(Cursor(text)))


def _may(source: str, target: str) -> bool:
    return may_store(_arrow(source), _arrow(target))


def _select(source: str) -> str:
    values = enumerate(SOURCES[source])
    return " UNION ALL ".join(f"SELECT {i} AS i, CAST({v} AS {source}) AS v" for i, v in values)


def _stored(rows: list[tuple[Any, Any]]) -> list[object]:
    return [v for _, v in sorted(rows, key=lambda r: r[0])]


def test_as_spark_stores(tmp_path: Path, spark: SparkSession) -> None:
    """Each pair of types: stored with Spark's values, or refused where Spark refuses it."""
    lake = hw.connect(tmp_path / "lake", spark=spark)
    refused_here: set[tuple[str, str]] = set()
    compared = 0
    casts = [
        ", ".join(f"CAST({values[i]} AS {s}) AS s{at}" for at, (s, values) in enumerate(SOURCES.items()))
        for i in range(3)
    ]
    lake.sql("CREATE TABLE sources AS " + " UNION ALL ".join(f"SELECT {i} AS i, {row}" for i, row in enumerate(casts)))
    for number, target in enumerate(TARGETS):
        there = f"stored_{number}"
        spark.sql(f"DROP TABLE IF EXISTS {there}")
        may = [s for s in SOURCES if _may(s, target)]
        columns = ", ".join(f"v{n} {target.upper()}" for n in range(len(may)))
        spark.sql(f"CREATE TABLE {there} (i INT, {columns}) USING parquet LOCATION '{tmp_path / there}'")
        for source in set(SOURCES) - set(may):
            with pytest.raises(Exception, match="INCOMPATIBLE_DATA_FOR_TABLE"):
                spark.sql(f"INSERT INTO {there} (i, v0) {_select(source)}")
        rows = [", ".join([str(i), *(f"CAST({SOURCES[s][i]} AS {s})" for s in may)]) for i in range(3)]
        spark.sql(f"INSERT INTO {there} " + " UNION ALL ".join(f"SELECT {row}" for row in rows))
        kept = spark.table(there).toArrow().to_pylist()
        for engine in ("duckdb", "datafusion"):
            # One table for all sources of a target, with a column for each, and one INSERT for all that are not refused: commits are not what is
            # asked here. What may be refused goes alone, into rows of its own.
            name = f"t_{number}_{engine}"
            stored = [(at, s, 0) for at, s in enumerate(SOURCES) if s in may and (s, target) not in REFUSED_HERE]
            columns = ", ".join(f"v{at} {target.upper()}" for at in range(len(SOURCES)))
            lake.sql(f"CREATE TABLE {name} (i INT, {columns})")
            if stored:
                into, values = (", ".join(f"{c}{at}" for at, *_ in stored) for c in "vs")
                lake.sql(f"INSERT INTO {name} (i, {into}) SELECT i, {values} FROM sources", engine=engine)
            for at, source in enumerate(SOURCES):
                text = f"INSERT INTO {name} (i, v{at}) SELECT {at + 1} * 10 + i, s{at} FROM sources"
                if source not in may:
                    with pytest.raises(SchemaError) as clash:
                        lake.sql(text, engine=engine)
                    assert clash.value.code == "E1201" and clash.value.position is not None
                    continue
                if (source, target) not in REFUSED_HERE:
                    continue
                try:
                    lake.sql(text, engine=engine)
                    stored.append((at, source, at + 1))
                except ExpressionError as error:
                    assert error.code == "E1305", (source, target, engine, str(error))
                    refused_here.add((source, target))
            rows_here = lake.table(name).to_pylist()
            assert len(rows_here) == 3 * len({group for *_, group in stored})
            for at, source, group in stored:
                wanted = [(r["i"], r[f"v{may.index(source)}"]) for r in kept]
                found = [(r["i"] % 10, r[f"v{at}"]) for r in rows_here if r["i"] // 10 == group]
                assert _stored(found) == _stored(wanted), (source, target, engine)
                compared += 1
        spark.sql(f"DROP TABLE {there}")
    assert compared > 100
    assert refused_here <= REFUSED_HERE


def test_on_spark(tmp_path: Path, spark: SparkSession) -> None:
    lake = hw.connect(tmp_path / "lake", spark=spark)
    lake.sql("CREATE TABLE t (n INT, s STRING, d DECIMAL(3, 2), p STRUCT<a: INT, b: INT>)")
    text = "INSERT INTO t SELECT 1.5D, 7, 1.005D, named_struct('b', 1, 'a', 2)"
    lake.sql(text, engine="spark")
    lake.sql("UPDATE t SET s = n + 1, n = 2.9D WHERE d > 1", engine="spark")
    row = lake.table("t").to_pylist()[0]
    assert (row["n"], row["s"], str(row["d"]), row["p"]) == (2, "2", "1.01", {"a": 1, "b": 2})
    for wrong, kind in (("'1', 's', 1, NULL", SchemaError), ("1e10D, 's', 1, NULL", ExpressionError)):
        with pytest.raises(kind):
            lake.sql(f"INSERT INTO t SELECT {wrong}", engine="spark")
    with pytest.raises(ExpressionError, match="division by zero"):
        lake.sql("INSERT INTO t (n) SELECT 1 DIV (n - n) FROM t", engine="spark")
    assert lake.table("t").version == 2
    # Not spark.catalog.listTables(): it cannot decode what other tests of the session have left.
    left = [row["viewName"] for row in spark.sql("SHOW VIEWS").collect()]
    assert not [name for name in left if name.startswith("headwater_")], "views are given back"


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_an_update(lake: Lake, engine: Any) -> None:
    lake.sql("CREATE TABLE t (n INT, s STRING, d DECIMAL(4, 1)); INSERT INTO t VALUES (1, 'a', 1)")
    lake.sql("UPDATE t SET n = 2.9, s = n + 1, d = 1.25", engine=engine)
    assert [tuple(map(str, r.values())) for r in lake.table("t").to_pylist()] == [("2", "2", "1.3")]
    lake.sql("UPDATE t SET s = (SELECT max(n) * 1.5 FROM t), n = d WHERE n = (SELECT max(n) FROM t)", engine=engine)
    assert [tuple(map(str, r.values())) for r in lake.table("t").to_pylist()] == [("1", "3.0", "1.3")]
    for text in ("UPDATE t SET n = '5'", "UPDATE t SET n = (SELECT max(s) FROM t)", "UPDATE t SET d = true"):
        with pytest.raises(SchemaError) as caught:
            lake.sql(text, engine=engine)
        assert caught.value.position is not None and caught.value.position > text.index("=")
        assert "ALTER COLUMN" in str(caught.value.hint)
    with pytest.raises(HeadwaterError, match="does not fit"):
        lake.sql("UPDATE t SET n = 3e9", engine=engine)
    assert lake.table("t").version == 3


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_a_merge(lake: Lake, engine: Any) -> None:
    lake.sql("CREATE TABLE t (id INT, s STRING, n INT); INSERT INTO t VALUES (1, 'a', 1)")
    merge = "MERGE INTO t USING (SELECT id, id * 10 AS s, 2.5 AS n FROM VALUES (1), (2) AS v(id)) AS u ON t.id = u.id "
    lake.sql(merge + "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *", engine=engine)
    assert sorted(lake.sql("SELECT * FROM t").to_tuples()) == [(1, "10", 2), (2, "20", 2)]
    lake.sql(
        merge + "WHEN MATCHED AND u.id = 1 THEN UPDATE SET n = u.n + 1, s = t.n WHEN MATCHED THEN DELETE",
        engine=engine,
    )
    assert lake.sql("SELECT * FROM t").to_tuples() == [(1, "2", 3)]
    texts = "USING (SELECT 1 AS id, 'x' AS n) AS u ON t.id = u.id WHEN MATCHED THEN UPDATE SET n = u.n"
    with pytest.raises(SchemaError, match="column `n` is int, but the data holds string"):
        lake.sql(f"MERGE INTO t {texts}", engine=engine)


def test_structs_go_by_position_or_by_name(lake: Lake) -> None:
    lake.sql("CREATE TABLE t (p STRUCT<a: INT, b: INT>)")
    lake.sql("INSERT INTO t SELECT named_struct('b', 1, 'a', 2)")
    lake.sql("INSERT INTO t BY NAME SELECT named_struct('b', 1, 'a', 2) AS p")
    assert [r["p"] for r in lake.table("t").to_pylist()] == [{"a": 1, "b": 2}, {"a": 2, "b": 1}]
    for text in ("SELECT named_struct('a', 1)", "BY NAME SELECT named_struct('x', 1, 'y', 2) AS p"):
        with pytest.raises(SchemaError):
            lake.sql(f"INSERT INTO t {text}")


def test_python_stays_strict(lake: Lake) -> None:
    lake.sql("CREATE TABLE t (n INT, s STRING)")
    for row in ({"n": 1.5}, {"s": 5}):
        with pytest.raises(SchemaError):
            lake.table("t").append([row])


def test_a_statement_that_fails_gives_back_what_it_opened(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    from headwater.query.session import Session

    closed: list[int] = []
    real = Session.close

    def close(self: Session) -> None:
        closed.append(len(self.opened))
        real(self)
        assert not self.opened

    monkeypatch.setattr(Session, "close", close)
    lake.sql("CREATE TABLE t (n INT NOT NULL); INSERT INTO t VALUES (1)")
    closed.clear()
    for text in ("INSERT INTO t SELECT NULL", "INSERT INTO t SELECT 5000000000", "INSERT INTO t SELECT 1 DIV 0"):
        with pytest.raises(HeadwaterError):
            lake.sql(text)
    assert closed == [1, 1, 1]

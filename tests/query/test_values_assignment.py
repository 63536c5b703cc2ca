"""INSERT … VALUES, UPDATE and MERGE store one value in one way, whatever it was written as: Spark's, or none."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import headwater as hw
from headwater.base.errors import HeadwaterError
from headwater.lakehouse import Lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A type of a column, and rows of values to store in it, as constants. What Spark refuses is below.
CASES: dict[str, list[str]] = {
    "int": ["1, 2.9, -3.9, NULL", "1.5D, 2147483647.9", "NULL"],
    "float": ["22.5, 1, 0.1", "16777217, 1e10D", "0.1234567890123456", "NULL, 3.14", "99.0000059461610410312"],
    "double": [
        "3.14, 1, NULL",
        "0.1234567890123456",
        "9007199254740993",
        "12345678901234567890.123456789",
    ],
    "decimal(6,2)": ["1, 2.345, NULL"],
    "string": ["1, 2, NULL", "1.50, 2.5", "DATE'2024-02-29'", "true, false", "'a', ''"],
    "date": ["DATE'2024-02-29', NULL", "TIMESTAMP'2024-02-29 23:59:59.5'"],
    "timestamp": ["TIMESTAMP'2024-02-29 12:00:00'", "DATE'2024-02-29', NULL"],
    "boolean": ["true, false, NULL"],
    "array<int>": [
        "array(), array(1), NULL",
        "array(), array()",
        "array(1, NULL), array()",
        "array(1L), array()",
    ],
    "array<double>": ["array(1.5, 2), array()", "array(), NULL"],
    "map<string,int>": ["map(), map('a', 1), NULL", "map(), map()"],
    "struct<a:int,b:double>": ["named_struct('a', 1, 'b', 2.5), NULL", "named_struct('x', 1.5, 'y', 2)"],
}
REFUSED: dict[str, list[str]] = {
    "int": ["3000000000", "2147483648.5", "'1'", "true"],
    "double": ["DATE'2024-01-01'"],
    "decimal(6,2)": ["99999L", "9999.999", "12345.6"],
    "date": ["'2024-02-29'", "1"],
    "timestamp": ["1", "'2024-02-29 12:00:00'"],
    "boolean": ["1", "'true'"],
    "array<int>": ["map()"],
    "map<string,int>": ["array()"],
}
ENGINES = ["duckdb", "datafusion"]
# DataFusion knows no maps, and no casts of nested values.
NOT_THERE = {"datafusion": ("map<", "struct<", "array<")}


def _rows(values: str) -> list[str]:
    """The values of a line: commas inside of parentheses do not separate them."""
    found, depth, begin = [], 0, 0
    for at, char in enumerate(values):
        depth += (char == "(") - (char == ")")
        if char == "," and not depth:
            found.append(values[begin:at].strip())
            begin = at + 1
    return [*found, values[begin:].strip()]


def _values(lines: list[str]) -> str:
    """The rows of VALUES with a column for each line; a line that is shorter than others repeats its last value, which changes no type."""
    columns = [_rows(line) for line in lines]
    longest = max(map(len, columns))
    return ", ".join(f"({', '.join([str(i), *(c[min(i, len(c) - 1)] for c in columns)])})" for i in range(longest))


def _stored(rows: list[dict[str, Any]]) -> list[list[Any]]:
    """The values of each column, in the order of the rows."""
    ordered = sorted(rows, key=lambda r: r["i"])
    return [[r[name] for r in ordered] for name in rows[0] if name != "i"]


def test_values_are_stored_as_spark_stores_them(tmp_path: Path, spark: SparkSession) -> None:
    """A column for each line, so that all lines of a type are one statement; what Spark refuses is a statement of its own."""
    lake = hw.connect(tmp_path / "lake", spark=spark)
    compared = 0
    wrong: list[tuple[str, ...]] = []
    spark.sql("DROP TABLE IF EXISTS kept_values")
    for number, (kind, lines) in enumerate(CASES.items()):
        columns = ", ".join(f"v{at} {kind}" for at in range(len(lines)))
        spark.sql(f"CREATE TABLE kept_values (i INT, {columns}) USING parquet LOCATION '{tmp_path / f'kept{number}'}'")
        spark.sql(f"INSERT INTO kept_values VALUES {_values(lines)}")
        kept = _stored(spark.table("kept_values").toArrow().to_pylist())
        lake.sql(f"CREATE TABLE t (i INT, {columns})")
        for engine in [*ENGINES, "spark"]:
            limited = kind.startswith(NOT_THERE.get(engine, ()))
            for batch in [[at] for at in range(len(lines))] if limited else [list(range(len(lines)))]:
                version = lake.table("t").version
                names, values = ", ".join(f"v{at}" for at in batch), _values([lines[at] for at in batch])
                try:
                    lake.sql(f"INSERT INTO t (i, {names}) VALUES {values}", engine=engine)  # type: ignore[arg-type]
                except HeadwaterError as error:
                    assert lake.table("t").version == version, "nothing is written"
                    assert error.code.startswith(("E12", "E13")), error
                    if not (limited and error.code == "E1305"):
                        wrong.append((kind, values, engine, str(error)))
                    continue
                stored = _stored(lake.table("t").to_pylist())
                for at in batch:
                    there = kept[at][: len(stored[at])]
                    if repr(stored[at]) != repr(there):
                        wrong.append((kind, lines[at], engine, f"{stored[at]} and not {there}"))
                    compared += 1
                lake.sql("TRUNCATE TABLE t")
        for line in REFUSED.get(kind, ()):
            text = f"(i, v0) VALUES {_values([line])}"
            with pytest.raises(Exception, match=r"INCOMPATIBLE_DATA|OVERFLOW|OUT_OF_RANGE|CAST"):
                spark.sql(f"INSERT INTO kept_values {text}")
            for engine in [*ENGINES, "spark"]:
                version = lake.table("t").version
                with pytest.raises(HeadwaterError) as refused:
                    lake.sql(f"INSERT INTO t {text}", engine=engine)  # type: ignore[arg-type]
                assert lake.table("t").version == version, "nothing is written"
                assert refused.value.code.startswith(("E12", "E13")), refused.value
        lake.sql("DROP TABLE t")
        spark.sql("DROP TABLE kept_values")
    assert not wrong, "\n".join(map(str, wrong))
    assert compared > 60, compared


@pytest.mark.parametrize("engine", ENGINES)
def test_every_statement_stores_the_same(lake: Lake, engine: Any) -> None:
    columns = {"f": "float", "d": "double", "n": "int", "m": "decimal(10,2)", "s": "string"}
    values = {"f": "22.5", "d": "0.1234567890123456", "n": "2.9", "m": "1.005", "s": "1.50"}
    lake.sql(f"CREATE TABLE t (i INT, {', '.join(f'{c} {k}' for c, k in columns.items())})")
    lake.sql(f"INSERT INTO t VALUES (1, {', '.join(values.values())})", engine=engine)
    lake.sql(f"INSERT INTO t SELECT 2, {', '.join(values.values())}", engine=engine)
    lake.sql("INSERT INTO t (i) VALUES (3), (4)", engine=engine)
    lake.sql(f"UPDATE t SET {', '.join(f'{c} = {v}' for c, v in values.items())} WHERE i = 3", engine=engine)
    source = f"SELECT i, {', '.join(f'{v} AS {c}' for c, v in values.items())} FROM (VALUES (4), (5)) AS x(i)"
    lake.sql(
        f"MERGE INTO t USING ({source}) AS s ON t.i = s.i WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
        engine=engine,
    )
    listed = ", ".join(values.values())
    lake.sql(
        f"MERGE INTO t USING (SELECT 6 AS i) AS s ON t.i = s.i "
        f"WHEN NOT MATCHED THEN INSERT (i, {', '.join(values)}) VALUES (s.i, {listed})",
        engine=engine,
    )
    rows = lake.table("t").to_pylist()
    assert sorted(r["i"] for r in rows) == [1, 2, 3, 4, 5, 6]
    assert len({repr([r[c] for c in columns]) for r in rows}) == 1
    assert [str(rows[0][c]) for c in columns] == ["22.5", "0.1234567890123456", "2", "1.01", "1.50"]


def test_empty_arrays_and_maps_take_the_type_of_the_column(lake: Lake) -> None:
    lake.sql("CREATE TABLE t (i INT, xs ARRAY<INT>, kv MAP<STRING, INT>, xxs ARRAY<ARRAY<STRING>>)")
    lake.sql("INSERT INTO t VALUES (1, array(), map(), array(array()))")
    lake.sql("INSERT INTO t SELECT 2, array(), map(), array()")
    lake.sql("INSERT INTO t VALUES (3, array(1), map('a', 1), NULL)")
    lake.sql("UPDATE t SET xs = array(), kv = map(), xxs = array() WHERE i = 3")
    lake.sql(
        "MERGE INTO t USING (SELECT 4 AS i) AS s ON t.i = s.i "
        "WHEN NOT MATCHED THEN INSERT (i, xs, kv, xxs) VALUES (s.i, array(), map(), array())"
    )
    rows = sorted(lake.table("t").to_pylist(), key=lambda r: r["i"])
    assert [(r["xs"], list(r["kv"]), r["xxs"]) for r in rows] == [([], [], [[]]), *[([], [], [])] * 3]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_value_that_does_not_fit_writes_nothing(lake: Lake, engine: Any) -> None:
    lake.sql("CREATE TABLE t (n INT, d DECIMAL(4, 1)); INSERT INTO t VALUES (1, 1)")
    for text in (
        "INSERT INTO t VALUES (2, 2), (3000000000, 3)",
        "INSERT INTO t VALUES (2, 99999.5)",
        "INSERT INTO t SELECT n * 3e9D, d FROM t",
        "UPDATE t SET n = 3000000000",
        "UPDATE t SET d = n * 100000.5",
        "MERGE INTO t USING (SELECT 3000000000 AS n, 1.5 AS d) s ON t.n = s.n WHEN NOT MATCHED THEN INSERT *",
    ):
        with pytest.raises(HeadwaterError):
            lake.sql(text, engine=engine)
    assert lake.table("t").version == 1 and lake.table("t").to_pylist()[0]["n"] == 1

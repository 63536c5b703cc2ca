"""INSERT INTO and INSERT OVERWRITE: which value goes where, what fits, and what is replaced."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest

from headwater.base.errors import ConflictError, ConstraintError, ExpressionError, NotFoundError, SchemaError
from headwater.lakehouse import Lake
from headwater.query.engines.duckdb import DuckDBEngine
from headwater.query.run import run
from headwater.query.session import Session
from headwater.query.statements.insert import mentions
from headwater.sql.fragment import Fragment
from headwater.sql.statements import read


def _rows(lake: Lake, table: str = "t") -> list[tuple[object, ...]]:
    return sorted(lake.sql(f"SELECT * FROM {table}").to_tuples(), key=repr)


def test_values_by_position_by_list_and_by_name(lake: Lake) -> None:
    lake.sql("CREATE TABLE t (a INT, b STRING, c DOUBLE)")
    done = lake.sql("INSERT INTO t VALUES (1, 'x', 1.5), (2, NULL, NULL)")
    assert done.to_pylist() == [{"num_affected_rows": 2, "num_inserted_rows": 2, "version": 1}]
    lake.sql("INSERT INTO t (c, A) VALUES (2.5, 3)")
    lake.sql("INSERT INTO t BY NAME SELECT 'y' AS B, 4 AS a")
    lake.sql("INSERT INTO TABLE t SELECT a + 10, b, c FROM t WHERE a = 1")
    lake.sql("WITH x AS (SELECT 7 AS a) INSERT INTO t (a) SELECT a FROM x")
    assert _rows(lake) == [
        (1, "x", 1.5),
        (11, "x", 1.5),
        (2, None, None),
        (3, None, 2.5),
        (4, "y", None),
        (7, None, None),
    ]


def test_the_wrong_number_of_values(lake: Lake) -> None:
    lake.sql("CREATE TABLE t (a INT, b INT)")
    for text in ("VALUES (1)", "VALUES (1, 2, 3)", "(a) VALUES (1, 2)", "(a, b) SELECT 1"):
        with pytest.raises(SchemaError) as caught:
            lake.sql(f"INSERT INTO t {text}")
        assert caught.value.code == "E1211"
    with pytest.raises(SchemaError):
        lake.sql("INSERT INTO t BY NAME SELECT 1 AS a, 2 AS c")
    with pytest.raises(NotFoundError):
        lake.sql("INSERT INTO t (a, c) VALUES (1, 2)")
    assert lake.table("t").version == 0


def test_only_what_fits_is_stored(lake: Lake) -> None:
    """Store assignment (see `test_store_assignment`): numbers that are too large do not fit, and texts are not parsed."""
    lake.sql("CREATE TABLE t (n TINYINT, d DECIMAL(4, 1), s STRING, day DATE, at TIMESTAMP)")
    lake.sql("INSERT INTO t (n) VALUES (127)")
    lake.sql("INSERT INTO t (d) VALUES (12)")
    lake.sql("INSERT INTO t (at) VALUES (DATE'2024-01-31')")
    for column, value in (("n", "128"), ("d", "1000"), ("n", "'1'"), ("day", "'2024-01-31'"), ("n", "true")):
        with pytest.raises(SchemaError):
            lake.sql(f"INSERT INTO t ({column}) VALUES ({value})")
    assert lake.table("t").version == 3


def test_new_columns_with_schema_evolution(lake: Lake) -> None:
    lake.sql("CREATE TABLE t (a INT); INSERT INTO t VALUES (1)")
    lake.sql("INSERT WITH SCHEMA EVOLUTION INTO t BY NAME SELECT 2 AS a, 'new' AS b")
    assert _rows(lake) == [(1, None), (2, "new")]


def test_overwriting_all(lake: Lake) -> None:
    lake.sql("CREATE TABLE t (a INT); INSERT INTO t VALUES (1), (2)")
    assert lake.sql("INSERT OVERWRITE t VALUES (9)").to_pylist()[0]["num_affected_rows"] == 1
    assert _rows(lake) == [(9,)]


def test_overwriting_a_table_with_what_it_holds(lake: Lake) -> None:
    lake.sql("CREATE TABLE t (a INT, b INT)")
    for start in range(0, 50, 10):
        lake.sql("INSERT INTO t VALUES " + ", ".join(f"({i}, {i})" for i in range(start, start + 10)))
    lake.sql(
        "INSERT OVERWRITE t SELECT a, x.b + y.n FROM t AS x CROSS JOIN (SELECT count(*) AS n FROM t) AS y WHERE a < 25"
    )
    assert [(a, b) for a, b in sorted(lake.sql("SELECT * FROM t").to_tuples())] == [(i, i + 50) for i in range(25)]


def test_a_commit_in_between_is_a_conflict_when_the_rows_come_from_the_table(lake: Lake) -> None:
    lake.sql("CREATE TABLE t (a INT); INSERT INTO t VALUES (1)")

    class Interrupting(Session):
        """Another writer commits after the query has been pinned."""

        def data(self, *args: object, **options: object) -> object:
            found = super().data(*args, **options)  # type: ignore[arg-type]
            lake.table("t").append([{"a": 100}])
            return found

    session = Interrupting(lake, DuckDBEngine())
    with pytest.raises(ConflictError):
        run(read("INSERT OVERWRITE t SELECT a + 1 FROM t"), session)
    assert _rows(lake) == [(1,), (100,)]
    # Rows that do not come from the table replace what is there, whenever it came.
    run(read("INSERT OVERWRITE t VALUES (5)"), session)
    assert _rows(lake) == [(5,)]
    # And an append of the table's own rows is right beside any other.
    run(read("INSERT INTO t SELECT a + 1 FROM t"), session)
    assert _rows(lake) == [(100,), (5,), (6,)]


@pytest.mark.parametrize("parameters", [None, {"day": date(2024, 1, 1)}])
def test_replacing_where(lake: Lake, parameters: dict[str, object] | None) -> None:
    lake.sql("CREATE TABLE t (day DATE, n INT) PARTITIONED BY (day)")
    lake.sql("INSERT INTO t VALUES (DATE'2024-01-01', 1), (DATE'2024-01-01', 2), (DATE'2024-01-02', 3)")
    day = ":day" if parameters else "DATE'2024-01-01'"
    lake.sql(f"INSERT INTO t REPLACE WHERE day = {day} AND n > 1 SELECT DATE'2024-01-01', 20", parameters=parameters)
    assert [n for _, n in sorted(_rows(lake), key=str)] == [1, 20, 3]
    with pytest.raises(ConstraintError) as caught:
        lake.sql(f"INSERT INTO t REPLACE WHERE day = {day} SELECT DATE'2024-01-02', 20", parameters=parameters)
    assert caught.value.code == "E2004"


def test_partitions(lake: Lake) -> None:
    lake.sql("CREATE TABLE t (n INT, day DATE, hour INT) PARTITIONED BY (day, hour)")
    lake.sql("INSERT INTO t PARTITION (day = '2024-01-01', hour = 1) VALUES (1), (2)")
    lake.sql("INSERT INTO t PARTITION (day = '2024-01-02', hour) SELECT 3, 2")
    lake.sql(
        "INSERT OVERWRITE t PARTITION (day = :d, hour = ?)".replace("?", ":h") + " SELECT 4",
        parameters={"d": "2024-01-01", "h": 1},
    )
    assert _rows(lake) == [(3, date(2024, 1, 2), 2), (4, date(2024, 1, 1), 1)]
    lake.sql("INSERT OVERWRITE t PARTITION (day = DATE'2024-01-02', hour) VALUES (5, 7), (6, 8)")
    assert [r[0] for r in _rows(lake)] == [4, 5, 6]
    with pytest.raises(SchemaError):
        lake.sql("INSERT OVERWRITE t PARTITION (n = 1) SELECT DATE'2024-01-01', 1")


def test_a_query_that_fails_in_the_middle_leaves_nothing(lake: Lake) -> None:
    lake.sql("CREATE TABLE t (a DOUBLE)")
    lake.write("u", pa.table({"a": pa.array([*range(1, 300_000), 0], pa.int32())}))
    with pytest.raises(ExpressionError):
        lake.sql("INSERT INTO t SELECT 1 / a FROM u")
    assert lake.table("t").version == 0
    assert not list(Path(lake.location, "t").glob("*.parquet"))


def test_errors_in_the_query_point_into_the_statement(lake: Lake) -> None:
    lake.sql("CREATE TABLE t (a INT)")
    text = "INSERT INTO t (a)\n  SELECT nosuch\n  FROM t"
    with pytest.raises(NotFoundError) as caught:
        lake.sql(text)
    assert caught.value.position == text.index("nosuch")
    assert str(caught.value.where).startswith("line 2:   SELECT nosuch")


@pytest.mark.parametrize(
    ("query", "table", "expected"),
    [
        ("SELECT * FROM t", "t", True),
        ("SELECT * FROM T", "t", True),
        ("SELECT * FROM `t`", "t", True),
        ("SELECT * FROM a.t", "t", False),
        ("SELECT * FROM a . `T`", "a.t", True),
        ("SELECT 't' FROM u", "t", False),
        ("SELECT * FROM u -- t", "t", False),
        ("SELECT x IN (SELECT a FROM t VERSION AS OF 1) FROM u", "t", True),
    ],
)
def test_whether_a_query_reads_a_table(query: str, table: str, expected: bool) -> None:
    assert mentions(Fragment(query), table) is expected

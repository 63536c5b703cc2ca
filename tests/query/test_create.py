"""CREATE TABLE, CREATE TABLE AS and DROP TABLE."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import headwater as hw
from headwater.base.errors import ConstraintError, ExpressionError, InputError, NotFoundError, SchemaError
from headwater.lakehouse import Lake
from headwater.testing import assert_same_rows


def test_a_table_is_made_as_it_is_written(lake: Lake) -> None:
    made = lake.sql(
        """
        CREATE TABLE sales.orders (
          id BIGINT NOT NULL COMMENT 'the key',
          price DECIMAL(10, 2),
          at TIMESTAMP,
          day DATE GENERATED ALWAYS AS (CAST(at AS DATE)),
          tags ARRAY<STRUCT<name: STRING NOT NULL, n: INT>>,
          CONSTRAINT positive CHECK (price > 0)
        ) USING DELTA PARTITIONED BY (day) COMMENT 'what was sold'
        TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true', owner = 'ann')
        """
    )
    assert made.to_pylist() == [{"version": 0}]
    assert made.statement == "CREATE TABLE"
    now = lake.table("sales.orders").snapshot
    by_hand = (
        hw.connect(Path(lake.location).parent / "other")
        .table("orders")
        .create(
            now.schema,
            partition_by=["day"],
            constraints={"positive": "price > 0"},
            properties={"delta.enableChangeDataFeed": "true", "owner": "ann"},
            description="what was sold",
        )
    )
    assert now.schema == by_hand.snapshot.schema
    assert now.partition_columns == ("day",)
    assert now.configuration == by_hand.snapshot.configuration
    assert now.state.metadata.description == "what was sold"
    assert now.schema.field("id").metadata == {"comment": "the key"}
    assert not now.schema.field("id").nullable
    assert now.state.protocol == by_hand.snapshot.state.protocol


def test_its_rules_hold(lake: Lake) -> None:
    lake.sql("CREATE TABLE t (id INT NOT NULL, n INT, m INT GENERATED ALWAYS AS (n * 2), CONSTRAINT c CHECK (n > 0))")
    lake.sql("INSERT INTO t (id, n) VALUES (1, 5)")
    assert lake.sql("SELECT * FROM t").to_pylist() == [{"id": 1, "n": 5, "m": 10}]
    for values in ("(id, n) VALUES (NULL, 5)", "(id, n) VALUES (2, 0)", "(id, n, m) VALUES (2, 1, 3)"):
        with pytest.raises(ConstraintError):
            lake.sql(f"INSERT INTO t {values}")
    assert lake.table("t").version == 1


def test_what_happens_where_it_is_there(lake: Lake) -> None:
    lake.sql("CREATE TABLE t (id INT); INSERT INTO t VALUES (1)")
    with pytest.raises(InputError) as caught:
        lake.sql("CREATE TABLE t (id INT)")
    assert caught.value.code == "E1005"
    assert lake.sql("CREATE TABLE IF NOT EXISTS t (other STRING)").scalar() == 1
    assert lake.table("t").schema.names == ["id"]


def test_replacing_a_table_is_one_commit_to_it(lake: Lake) -> None:
    lake.sql("CREATE TABLE t (id INT, old STRING) PARTITIONED BY (old) TBLPROPERTIES ('a' = 'b')")
    lake.sql("INSERT INTO t VALUES (1, 'x')")
    before = lake.table("t").snapshot
    assert lake.sql("CREATE OR REPLACE TABLE t (id STRING NOT NULL, new INT) COMMENT 'new'").scalar() == 2
    now = lake.table("t").snapshot
    assert now.schema.names == ["id", "new"] and now.partition_columns == () and now.files == {}
    assert "a" not in now.configuration and now.state.metadata.description == "new"
    assert now.state.metadata.id == before.state.metadata.id
    assert lake.table("t").history(1)[0].operation == "CREATE OR REPLACE TABLE"
    assert lake.sql("SELECT * FROM t VERSION AS OF 1").to_pylist() == [{"id": 1, "old": "x"}]
    lake.sql("INSERT INTO t VALUES ('a', 1)")
    assert lake.sql("SELECT * FROM t").to_pylist() == [{"id": "a", "new": 1}]


@pytest.mark.interop
def test_another_implementation_of_delta_reads_a_replaced_table(lake: Lake) -> None:
    deltalake = pytest.importorskip("deltalake")
    plain = "TBLPROPERTIES ('delta.enableDeletionVectors' = 'false')"
    lake.sql(f"CREATE TABLE t (a INT, p STRING) PARTITIONED BY (p) {plain}; INSERT INTO t VALUES (1, 'x'), (2, 'y')")
    lake.sql(f"CREATE OR REPLACE TABLE t {plain} AS SELECT p AS b, a * 2 AS c FROM t")
    table = deltalake.DeltaTable(lake.table("t").location)
    assert sorted(r["c"] for r in pa.table(table.to_pyarrow_table()).to_pylist()) == [2, 4]
    assert table.metadata().partition_columns == []
    table.load_as_version(1)
    assert sorted(r["a"] for r in pa.table(table.to_pyarrow_table()).to_pylist()) == [1, 2]


def test_replacing_under_column_mapping_keeps_what_is_the_same(lake: Lake) -> None:
    mapped = "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    lake.sql(f"CREATE TABLE t (a INT, s STRUCT<b: INT>) {mapped}; INSERT INTO t VALUES (1, named_struct('b', 2))")
    before = lake.table("t").snapshot.schema.field("a").metadata["delta.columnMapping.id"]
    last = int(lake.table("t").snapshot.configuration["delta.columnMapping.maxColumnId"])
    lake.sql(f"CREATE OR REPLACE TABLE t {mapped} AS SELECT a + 1 AS a, 'x' AS s FROM t")
    now = lake.table("t").snapshot.schema
    assert now.field("a").metadata["delta.columnMapping.id"] == before
    assert now.field("s").metadata["delta.columnMapping.id"] > last, "of another type, it is another column"
    assert lake.sql("SELECT * FROM t").to_pylist() == [{"a": 2, "s": "x"}]
    assert lake.sql("SELECT a, s.b FROM t VERSION AS OF 1").to_pylist() == [{"a": 1, "b": 2}]


def test_a_table_of_a_query(lake: Lake) -> None:
    lake.sql("CREATE TABLE u AS SELECT * FROM VALUES (1, 'a'), (2, NULL) AS v(id, name)")
    done = lake.sql(
        "CREATE TABLE t PARTITIONED BY (name) TBLPROPERTIES ('x' = 'y') COMMENT 'c' "
        "AS SELECT id + :more AS id, name, CAST(1.5 AS DECIMAL(5, 2)) AS d FROM u",
        parameters={"more": 10},
    )
    assert done.to_pylist() == [{"num_affected_rows": 2, "num_inserted_rows": 2, "version": 0}]
    table = lake.table("t")
    assert table.schema.types == [pa.int32(), pa.string(), pa.decimal128(5, 2)]
    assert all(f.nullable for f in table.schema)
    assert (table.snapshot.partition_columns, table.detail()["description"]) == (("name",), "c")
    assert_same_rows(
        table.to_arrow(["id", "name"]), pa.table({"id": pa.array([11, 12], pa.int32()), "name": ["a", None]})
    )
    assert lake.sql("CREATE TABLE IF NOT EXISTS t AS SELECT 1 / 0 AS never").to_pylist()[0]["num_affected_rows"] == 0


def test_a_table_may_be_made_from_itself(lake: Lake) -> None:
    lake.sql("CREATE TABLE t AS SELECT 1 AS a; INSERT INTO t VALUES (2), (3)")
    done = lake.sql("CREATE OR REPLACE TABLE t AS SELECT a, a * a AS b FROM t WHERE a > 1")
    assert done.to_pylist() == [{"num_affected_rows": 2, "num_inserted_rows": 2, "version": 2}]
    assert lake.sql("SELECT * FROM t ORDER BY a").to_tuples() == [(2, 4), (3, 9)]


def test_a_query_that_fails_makes_no_table(lake: Lake) -> None:
    lake.sql("CREATE TABLE u AS SELECT * FROM VALUES (1), (0) AS v(a)")
    with pytest.raises(ExpressionError):
        lake.sql("CREATE TABLE t AS SELECT 1 / a AS x FROM u")
    assert "t" not in lake and not list(Path(lake.location, "t").rglob("*.parquet"))
    lake.sql("CREATE OR REPLACE TABLE t AS SELECT 1 AS x")
    with pytest.raises(ExpressionError):
        lake.sql("CREATE OR REPLACE TABLE t AS SELECT 1 / a AS x FROM u")
    assert lake.sql("SELECT * FROM t").to_pylist() == [{"x": 1}]
    assert len(list(Path(lake.location, "t").rglob("*.parquet"))) == 1


def test_columns_that_make_no_table(lake: Lake) -> None:
    with pytest.raises(SchemaError):
        lake.sql("CREATE TABLE t AS SELECT 1 AS a, 2 AS A")
    with pytest.raises(SchemaError):
        lake.sql("CREATE TABLE t AS SELECT NULL AS nothing")
    with pytest.raises(SchemaError):
        lake.sql("CREATE TABLE t (`a b` INT)")
    with pytest.raises(NotFoundError) as caught:
        lake.sql("CREATE TABLE t (a INT) PARTITIONED BY (b)")
    assert caught.value.position == len("CREATE TABLE t (a INT) PARTITIONED BY (")
    assert lake.tables() == []


def test_a_name_for_a_table_elsewhere(lake: Lake, tmp_path: Path) -> None:
    hw.connect(tmp_path / "elsewhere").write("there", [{"id": 1}])
    location = str(tmp_path / "elsewhere" / "there")
    lake.sql("CREATE TABLE t USING DELTA LOCATION :place", parameters={"place": location})
    assert lake.sql("SELECT id FROM t").scalar() == 1
    assert lake.table("t").location == location
    lake.sql("CREATE TABLE IF NOT EXISTS t USING DELTA LOCATION '/nowhere'")
    lake.sql("DROP TABLE t")
    assert "t" not in lake and list(Path(location).glob("*.parquet"))


def test_dropping(lake: Lake) -> None:
    lake.sql("CREATE TABLE a.b (id INT)")
    assert lake.sql("DROP TABLE a.b").to_tuples() == []
    assert lake.tables() == []
    with pytest.raises(NotFoundError) as caught:
        lake.sql("DROP TABLE a.b")
    assert caught.value.where == "DROP TABLE a.b\n" + " " * (9 + 11) + "^"
    lake.sql("DROP TABLE IF EXISTS a.b")

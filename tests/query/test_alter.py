"""ALTER TABLE."""

from __future__ import annotations

import pyarrow as pa
import pytest

import headwater as hw
from headwater.base.errors import ConstraintError, InputError, NotFoundError, SchemaError, UnsupportedError
from headwater.lakehouse import Lake


@pytest.fixture
def t(lake: Lake) -> hw.Table:
    lake.sql("CREATE TABLE t (id INT NOT NULL, name STRING) TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    lake.sql("INSERT INTO t VALUES (1, 'a')")
    return lake.table("t")


def test_columns_come(lake: Lake, t: hw.Table) -> None:
    assert lake.sql("ALTER TABLE t ADD COLUMN note STRING COMMENT 'why'").to_pylist() == [{"version": 2}]
    lake.sql("ALTER TABLE t ADD COLUMNS (s STRUCT<a: INT, b: ARRAY<DATE>>, n BIGINT)")
    assert t.schema.names == ["id", "name", "note", "s", "n"]
    assert t.snapshot.schema.field("note").metadata["comment"] == "why"
    assert t.schema.field("s").type == pa.struct([("a", pa.int32()), ("b", pa.list_(pa.field("element", pa.date32())))])
    assert lake.sql("SELECT * FROM t").to_tuples() == [(1, "a", None, None, None)]
    with pytest.raises(InputError):
        lake.sql("ALTER TABLE t ADD COLUMN note STRING")


def test_columns_change(lake: Lake, t: hw.Table) -> None:
    lake.sql("ALTER TABLE t ALTER COLUMN id TYPE BIGINT")
    assert t.schema.field("id").type == pa.int64()
    with pytest.raises(SchemaError):
        lake.sql("ALTER TABLE t ALTER COLUMN id TYPE INT")
    lake.sql("ALTER TABLE t ALTER COLUMN id DROP NOT NULL; INSERT INTO t VALUES (NULL, 'b')")
    lake.sql("ALTER TABLE t ALTER COLUMN name COMMENT :said", parameters={"said": "it's"})
    assert t.snapshot.schema.field("name").metadata["comment"] == "it's"
    lake.sql("ALTER TABLE t RENAME COLUMN name TO `the name`")
    assert lake.sql("SELECT `the name` FROM t ORDER BY id").to_tuples() == [("b",), ("a",)]


def test_columns_go(lake: Lake, t: hw.Table) -> None:
    lake.sql("ALTER TABLE t ADD COLUMNS (a INT, b INT, c INT)")
    lake.sql("ALTER TABLE t DROP COLUMNS (a, b)")
    lake.sql("ALTER TABLE t DROP COLUMN IF EXISTS a")
    version = t.version
    with pytest.raises(NotFoundError) as caught:
        lake.sql("ALTER TABLE t DROP COLUMNS (c, nosuch)")
    assert caught.value.position == len("ALTER TABLE t DROP COLUMNS (c, ")
    assert t.version == version and t.schema.names == ["id", "name", "c"]


def test_without_column_mapping_files_know_columns_by_name(lake: Lake) -> None:
    lake.sql("CREATE TABLE u (a INT, b INT)")
    for change in ("DROP COLUMN a", "RENAME COLUMN a TO c"):
        with pytest.raises(UnsupportedError):
            lake.sql(f"ALTER TABLE u {change}")


def test_properties(lake: Lake, t: hw.Table) -> None:
    lake.sql("ALTER TABLE t SET TBLPROPERTIES ('owner' = :who, delta.appendOnly = true)", parameters={"who": "it's me"})
    assert t.snapshot.configuration["owner"] == "it's me"
    with pytest.raises(InputError) as caught:
        lake.sql("DELETE FROM t")
    assert caught.value.code == "E1012"
    lake.sql("ALTER TABLE t UNSET TBLPROPERTIES ('owner', 'delta.appendOnly')")
    assert "owner" not in t.snapshot.configuration
    with pytest.raises(InputError):
        lake.sql("ALTER TABLE t SET TBLPROPERTIES ('delta.apendOnly' = 'true')")


def test_constraints(lake: Lake, t: hw.Table) -> None:
    lake.sql("ALTER TABLE t ADD CONSTRAINT named CHECK (length(name) > 0 AND id IN (1, 2))")
    with pytest.raises(ConstraintError):
        lake.sql("INSERT INTO t VALUES (3, 'x')")
    with pytest.raises(ConstraintError):
        lake.sql("ALTER TABLE t ADD CONSTRAINT other CHECK (id > 1)")
    lake.sql("ALTER TABLE t DROP CONSTRAINT named")
    lake.sql("INSERT INTO t VALUES (3, 'x')")
    lake.sql("ALTER TABLE t DROP CONSTRAINT IF EXISTS named")
    with pytest.raises(NotFoundError):
        lake.sql("ALTER TABLE t DROP CONSTRAINT named")

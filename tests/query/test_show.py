"""SHOW: what is there, and how it is made."""

from __future__ import annotations

import pytest

from headwater.base.errors import NotFoundError
from headwater.lakehouse import Lake

_RICH = """
CREATE TABLE sales.rich (
  id BIGINT NOT NULL COMMENT 'it''s\\nthe "key"',
  `odd ``name` STRING,
  s STRUCT<a: INT NOT NULL COMMENT 'x;y', `b c`: ARRAY<MAP<STRING, DECIMAL(5, 2)>>>,
  at TIMESTAMP_NTZ,
  `constraint` INT,
  day DATE GENERATED ALWAYS AS (CAST(at AS DATE)),
  CONSTRAINT `a check` CHECK (id > 0 AND `odd ``name` != 'it\\'s')
) PARTITIONED BY (day) COMMENT 'rich\\\\'
TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'it''s' = 'a;b', 'delta.appendOnly' = 'true')
"""


def test_tables(lake: Lake) -> None:
    for name in ("orders", "cards", "sales.orders", "sales.old"):
        lake.sql(f"CREATE TABLE {name} (id INT)")
    shown = lake.sql("SHOW TABLES")
    assert shown.columns == ["namespace", "tableName", "isTemporary"]
    every = shown.to_tuples()
    names = [("", "cards"), ("", "orders"), ("sales", "old"), ("sales", "orders")]
    assert every == [(*name, False) for name in names]
    assert lake.sql("SHOW TABLES IN sales").to_tuples() == every[2:]
    assert lake.sql("SHOW TABLES LIKE 'O*'").to_tuples() == every[1:]
    assert lake.sql("SHOW TABLES IN sales 'nothing|ord*'").to_tuples() == every[3:]
    assert lake.sql("SHOW TABLES LIKE :p", parameters={"p": "o.*"}).to_tuples() == []


def test_columns_and_properties(lake: Lake) -> None:
    lake.sql(_RICH)
    names = [r[0] for r in lake.sql("SHOW COLUMNS IN sales.rich").to_tuples()]
    assert names == ["id", "odd `name", "s", "at", "constraint", "day"]
    found = dict(lake.sql("SHOW TBLPROPERTIES sales.rich").to_tuples())
    assert found == dict(lake.table("sales.rich").snapshot.configuration)
    assert lake.sql("SHOW TBLPROPERTIES sales.rich ('it''s')").to_tuples() == [("it's", "a;b")]
    ((_, missing),) = lake.sql("SHOW TBLPROPERTIES sales.rich (no.such)").to_tuples()
    assert "does not have property" in missing


def test_the_statement_that_makes_a_table_makes_it(lake: Lake) -> None:
    lake.sql(_RICH)
    text = lake.sql("SHOW CREATE TABLE sales.rich").scalar()
    lake.sql(text.replace("sales.rich", "sales.again"))
    first, second = (lake.table(f"sales.{n}").snapshot.state for n in ("rich", "again"))
    assert [(f.name, f.nullable, f.generation) for f in second.metadata.schema.fields] == [
        (f.name, f.nullable, f.generation) for f in first.metadata.schema.fields
    ]
    assert second.metadata.schema.arrow == first.metadata.schema.arrow
    assert second.metadata.schema.field("id").metadata["comment"] == 'it\'s\nthe "key"'
    assert second.metadata.configuration == first.metadata.configuration
    assert second.metadata.description == first.metadata.description == "rich\\"
    assert second.metadata.partition_columns == first.metadata.partition_columns
    assert second.protocol == first.protocol
    assert lake.sql("SHOW CREATE TABLE sales.again").scalar() == text.replace("sales.rich", "sales.again")


def test_functions(lake: Lake) -> None:
    every = [r[0] for r in lake.sql("SHOW FUNCTIONS").to_tuples()]
    assert every == sorted(set(every)) and {"sum", "upper", "coalesce", "row_number"} <= set(every)
    assert lake.sql("SHOW FUNCTIONS LIKE 'upp*|sum'").to_tuples() == [("sum",), ("upper",)]


@pytest.mark.parametrize("text", ["SHOW COLUMNS IN nosuch", "SHOW TBLPROPERTIES nosuch", "SHOW CREATE TABLE nosuch"])
def test_no_such_table(lake: Lake, text: str) -> None:
    with pytest.raises(NotFoundError) as caught:
        lake.sql(text)
    assert caught.value.position == text.index("nosuch")

"""DESCRIBE and EXPLAIN."""

from __future__ import annotations

import pytest

from headwater.base.errors import NotFoundError
from headwater.lakehouse import Lake


@pytest.fixture(autouse=True)
def t(lake: Lake) -> None:
    lake.sql(
        "CREATE TABLE t (id BIGINT NOT NULL COMMENT 'the key', s STRUCT<a: INT, b: ARRAY<STRING>>, p STRING, "
        "CONSTRAINT positive CHECK (id > 0)) PARTITIONED BY (p) COMMENT 'hello'"
    )
    lake.sql("INSERT INTO t (id, p) VALUES (1, 'x'), (2, 'y')")


def test_columns(lake: Lake) -> None:
    assert lake.sql("DESCRIBE t").to_tuples() == [
        ("id", "bigint", "the key"),
        ("s", "struct<a:int,b:array<string>>", None),
        ("p", "string", None),
        ("# Partition Information", "", ""),
        ("# col_name", "data_type", "comment"),
        ("p", "string", None),
    ]
    assert lake.sql("DESC TABLE t ID").to_tuples() == [
        ("col_name", "ID"),
        ("data_type", "bigint"),
        ("comment", "the key"),
    ]
    with pytest.raises(NotFoundError):
        lake.sql("DESCRIBE t nosuch")


def test_extended(lake: Lake) -> None:
    rows = lake.sql("DESCRIBE EXTENDED t").to_tuples()
    facts = {name: value for name, value, _ in rows}
    assert facts["Name"] == "t" and facts["Comment"] == "hello" and facts["Provider"] == "delta"
    assert facts["Location"] == lake.table("t").location and facts["Version"] == "1"
    assert facts["Constraint positive"] == "id > 0"
    assert "delta.constraints.positive=id > 0" in facts["Table Properties"]


def test_history(lake: Lake) -> None:
    lake.sql("DELETE FROM t WHERE id = :id", parameters={"id": 1})
    rows = lake.sql("DESCRIBE HISTORY t").to_pylist()
    assert [(r["version"], r["operation"]) for r in rows] == [(2, "DELETE"), (1, "WRITE"), (0, "CREATE TABLE")]
    assert dict(rows[0]["operationParameters"]) == {"predicate": "id = 1"}
    assert dict(rows[0]["operationMetrics"])["numDeletedRows"] == "1"
    assert dict(rows[1]["operationParameters"]) == {"mode": "Append", "partitionBy": '["p"]'}
    assert [r["timestamp"] for r in rows] == [e.timestamp for e in lake.table("t").history()]
    assert lake.sql("DESC HISTORY t LIMIT 1").to_pylist() == rows[:1]


def test_detail(lake: Lake) -> None:
    (row,) = lake.sql("DESCRIBE DETAIL t").to_pylist()
    now = lake.table("t").snapshot
    assert (row["format"], row["name"], row["description"]) == ("delta", "t", "hello")
    assert row["partitionColumns"] == ["p"] and row["numFiles"] == 2 and row["numRows"] == 2 and row["version"] == 1
    assert row["sizeInBytes"] == sum(f.size for f in now.files.values())
    assert dict(row["properties"]) == dict(now.configuration)
    assert row["createdAt"] <= row["lastModified"]


def test_a_query(lake: Lake) -> None:
    expected = [("id", "bigint", None), ("x", "decimal(2,1)", None), ("s", "struct<a:int,b:array<string>>", None)]
    assert lake.sql("DESCRIBE QUERY SELECT id, 1.5 AS x, s FROM t").to_tuples() == expected
    assert lake.sql("DESC SELECT id, :x AS x FROM t", parameters={"x": "a"}).to_tuples()[1] == ("x", "string", None)
    with pytest.raises(NotFoundError) as caught:
        lake.sql("DESCRIBE QUERY SELECT nosuch FROM t")
    assert caught.value.position == len("DESCRIBE QUERY SELECT ")


def test_explain(lake: Lake) -> None:
    lines = lake.sql("EXPLAIN SELECT id FROM t WHERE p = 'x'").to_arrow()["plan"].to_pylist()
    assert any("scan t" in line for line in lines) and any("1 of 2 files (1 skipped)" in line for line in lines)
    longer = lake.sql("EXPLAIN EXTENDED SELECT id FROM t WHERE p = :p", parameters={"p": "x"}).to_arrow()["plan"]
    assert longer.to_pylist()[: len(lines)] == lines and len(longer) > len(lines)

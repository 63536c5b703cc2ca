"""The same statements on each engine leave the same tables behind."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import headwater as hw
from headwater.lakehouse import Lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCRIPT = """
CREATE TABLE t (id INT, n BIGINT, s STRING, day DATE) PARTITIONED BY (day)
  TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true');
INSERT INTO t VALUES (1, 10, 'a', DATE'2024-01-01'), (2, 20, 'b', DATE'2024-01-02'), (3, NULL, NULL, NULL);
INSERT INTO t (id, s) SELECT id + 10, concat(s, '!') FROM t WHERE id < 3;
INSERT INTO t BY NAME SELECT DATE'2024-01-01' AS day, 30 AS id;
CREATE TABLE u AS SELECT id, n AS x FROM t WHERE id IN (1, 2);
UPDATE t SET n = n + 1 WHERE id = 1;
UPDATE t SET n = (SELECT max(x) FROM u), s = upper(s) WHERE id IN (SELECT id + 10 FROM u);
UPDATE t AS o SET n = (SELECT count(*) FROM u WHERE u.id = o.id) WHERE n IS NULL;
DELETE FROM t WHERE s = 'b';
DELETE FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.id % 10 = t.id % 10) AND id <> 30;
MERGE INTO t USING (SELECT id + 1 AS id, x FROM u) AS s ON t.id = s.id
  WHEN MATCHED THEN UPDATE SET n = s.x WHEN NOT MATCHED THEN INSERT (id, n) VALUES (s.id, s.x);
INSERT OVERWRITE t PARTITION (day = '2024-01-01') SELECT id, n + 100, s FROM t WHERE day = DATE'2024-01-01';
INSERT INTO t REPLACE WHERE id > 25 SELECT 26, 0, 'x', NULL;
OPTIMIZE t;
CREATE OR REPLACE TABLE u AS SELECT id, x * 2 AS x FROM u;
"""
EXPECTED_T = [
    (1, 111, "a", "2024-01-01"),
    (2, 10, None, None),
    (3, 20, None, None),
    (11, 20, "A!", None),
    (12, 20, "B!", None),
    (26, 0, "x", None),
]


def _left(lake: Lake, table: str) -> list[tuple[object, ...]]:
    rows = [tuple(r.values()) for r in lake.table(table).to_pylist()]
    return sorted(tuple(str(v) if hasattr(v, "isoformat") else v for v in row) for row in rows)


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_in_this_process(lake: Lake, engine: str) -> None:
    lake.sql(SCRIPT, engine=engine)  # type: ignore[arg-type]
    assert _left(lake, "t") == EXPECTED_T
    assert _left(lake, "u") == [(1, 20), (2, 40)]


def test_on_spark(tmp_path: Path, spark: SparkSession) -> None:
    lake = hw.connect(tmp_path / "lake", spark=spark)
    lake.sql(SCRIPT, engine="spark")
    assert _left(lake, "t") == EXPECTED_T
    assert _left(lake, "u") == [(1, 20), (2, 40)]

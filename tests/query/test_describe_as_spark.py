"""What DESCRIBE and SHOW answer, beside Spark's own answers about a table of the same columns."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from headwater.lakehouse import Lake

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

_COLUMNS = """(
  id BIGINT COMMENT 'the key', d DECIMAL(10, 2), s STRUCT<a: INT, `b c`: ARRAY<MAP<STRING, DOUBLE>>>,
  at TIMESTAMP, wall TIMESTAMP_NTZ, b BINARY, o BOOLEAN, f FLOAT, y TINYINT, h SMALLINT, p STRING COMMENT 'it''s', day DATE
)"""


@pytest.fixture
def both(lake: Lake, spark: SparkSession, tmp_path: Path) -> Iterator[tuple[Lake, SparkSession]]:
    mapped = "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    lake.sql(f"CREATE TABLE described {_COLUMNS} PARTITIONED BY (p, day) {mapped}")
    spark.sql(
        f"CREATE TABLE described {_COLUMNS} USING parquet PARTITIONED BY (p, day) LOCATION '{tmp_path / 'theirs'}'"
    )
    yield lake, spark
    spark.sql("DROP TABLE described")


@pytest.mark.parametrize(
    "text",
    [
        "DESCRIBE described",
        "DESC TABLE described",
        "DESCRIBE described id",
        "DESCRIBE described S",
        "SHOW COLUMNS IN described",
        "SHOW TABLES LIKE 'desc*|nothing'",
        "DESCRIBE QUERY SELECT d, s, 1.5 AS x, 'a' AS t FROM described",
    ],
)
def test_the_same_rows(both: tuple[Lake, SparkSession], text: str) -> None:
    lake, spark = both
    ours, theirs = lake.sql(text), spark.sql(text)
    assert ours.columns == theirs.columns
    have, want = [list(map(tuple, rows)) for rows in (ours.to_tuples(), theirs.collect())]
    assert list(map(_plain, have)) == list(map(_plain, want))


def _plain(row: tuple[Any, ...]) -> tuple[Any, ...]:
    # The name of Spark's schema is its own business, and it writes a comment that is not there in two ways.
    return tuple("" if v in (None, "default", "NULL") else v for v in row)

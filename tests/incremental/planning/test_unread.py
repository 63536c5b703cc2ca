"""Columns that nobody reads are not computed: those that would fail do not stop a view, as they do not stop Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from headwater.base.errors import ExpressionError

from .views import circuit_of, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ROWS = pa.table({"a": pa.array([0, 1, 2, 0], pa.int32()), "s": ["x", "1", None, ""]})
_VIEWS = [
    "SELECT count(*) AS n FROM (SELECT 1 / a AS x FROM r)",
    "SELECT count(*) AS n FROM (SELECT 1 / a AS x, cast(s AS int) AS y FROM r WHERE a >= 0)",
    "SELECT a, count(*) AS n FROM (SELECT a, 1 / a AS x FROM r) GROUP BY a",
    "SELECT count(1) AS n FROM (SELECT 1 / a AS x FROM r UNION ALL SELECT cast(s AS double) FROM r)",
    "SELECT count(*) AS n FROM (SELECT sum(1 / a) AS x FROM r)",
    "SELECT count(*) AS n FROM (SELECT a, sum(1 / a) AS x FROM r GROUP BY a)",
    "WITH q AS (SELECT 1 / a AS x FROM r) SELECT (SELECT count(*) FROM q) AS n, (SELECT count(*) FROM q) + 1 AS m",
    "WITH q AS (SELECT 1 / a AS x, a FROM r) SELECT count(*) AS n FROM q JOIN (SELECT a AS b FROM q) ON b > 1",
    "SELECT r.a, q.n FROM r JOIN (SELECT count(*) AS n FROM (SELECT 1 / a AS x FROM r)) q",
    "SELECT a FROM r WHERE EXISTS (SELECT 1 / a FROM r)",
    "SELECT count(*) AS n FROM (SELECT a, 1 / a AS x, row_number() OVER (ORDER BY 1 / a) AS y FROM r)",
    "SELECT a FROM (SELECT a, explode(array(1, 2)) AS e, 1 / a AS x FROM r)",
    "SELECT count(*) AS n FROM (SELECT 1 / a AS x FROM r) CROSS JOIN (SELECT cast(s AS int) AS y FROM r)",
]
_FAILING = [
    "SELECT count(x) AS n FROM (SELECT 1 / a AS x FROM r)",
    "SELECT count(*) AS n FROM (SELECT DISTINCT 1 / a AS x FROM r)",
    "SELECT count(*) AS n FROM (SELECT 1 / a AS x FROM r) WHERE x > 0",
    "SELECT count(*) AS n FROM (SELECT 1 / a AS x, count(*) FROM r GROUP BY 1 / a)",
]


def _rows(text: str) -> list[tuple[object, ...]]:
    found = rows_of(circuit_of(text, {"r": _ROWS.schema}), r=_ROWS)
    return sorted(tuple(row.values())[:-1] for row in found for _ in range(row["_weight"]))


@pytest.mark.spark
@pytest.mark.parametrize("text", _VIEWS)
def test_what_nobody_reads_is_not_computed(text: str, interpreted: SparkSession) -> None:
    interpreted.createDataFrame(_ROWS).coalesce(1).createOrReplaceTempView("r")
    assert _rows(text) == sorted(tuple(row) for row in interpreted.sql(text).collect())


@pytest.mark.spark
@pytest.mark.parametrize("text", _FAILING)
def test_what_is_read_is_computed(text: str, interpreted: SparkSession) -> None:
    from pyspark.errors import PySparkException

    interpreted.createDataFrame(_ROWS).coalesce(1).createOrReplaceTempView("r")
    with pytest.raises(PySparkException):
        interpreted.sql(text).collect()
    with pytest.raises(ExpressionError, match="division by zero"):
        _rows(text)

"""Views in which intervals are values: grouped by, joined by, summed up, compared, ordered by; against DuckDB, and against Spark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from headwater.testing.views import run_view

from .views import holds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_VIEWS = [
    "SELECT k, cast(e - date'2024-02-28' AS int) AS days FROM t WHERE e - date'2024-02-28' > INTERVAL 1 DAY",
    "SELECT cast(sum(e - date'2024-02-28') AS string) AS total, cast(avg(e - date'2024-02-28') AS string) AS mean FROM t",
    "SELECT s, cast(min(INTERVAL 1 DAY * k) AS int) AS low, cast(max(INTERVAL 1 HOUR * k) AS string) AS high FROM t GROUP BY s",
    "SELECT s, cast(sum(INTERVAL 1 MONTH * k) AS int) AS total, cast(avg(INTERVAL 5 MONTH * k) AS string) AS mean FROM t GROUP BY s",
    "SELECT cast(took AS string) AS took, count(*) AS n FROM (SELECT e - date'2024-02-28' AS took FROM t) GROUP BY took",
    "SELECT DISTINCT cast(m - timestamp_ntz'2024-02-28 00:00:00' AS bigint) AS seconds FROM w",
    "SELECT t.k, u.n FROM t JOIN u ON INTERVAL 1 DAY * t.k = INTERVAL 24 HOURS * u.k",
    "SELECT t.k, u.n FROM t LEFT JOIN u ON make_dt_interval(t.k) = make_dt_interval(0, u.k)",
    "SELECT k, e + INTERVAL 1 DAY * k AS later, e - INTERVAL 1 MONTH * k AS earlier, cast(m + make_dt_interval(0, 0, k) AS string) AS moved FROM w",
    "SELECT k, extract(DAY FROM m - e) AS d, extract(HOUR FROM m - e) AS h, extract(SECOND FROM m - e) AS s FROM w",
    "SELECT k, cast(coalesce(m - e, INTERVAL 0 SECOND) AS string) AS a, cast(CASE WHEN k > 1 THEN INTERVAL 1 DAY END AS int) AS b FROM w",
    "SELECT cast(x AS string) AS x FROM (SELECT INTERVAL 1 DAY * k AS x FROM t UNION SELECT INTERVAL 1 HOUR * k FROM u)",
    "SELECT k, cast(sum(INTERVAL 1 DAY * n) OVER (PARTITION BY k) AS string) AS total, cast(avg(INTERVAL 1 DAY * n) OVER (PARTITION BY k) AS string) AS mean FROM u",
    "SELECT k, n, dense_rank() OVER (PARTITION BY s ORDER BY INTERVAL 1 HOUR * n) AS r FROM u",
    "SELECT count(DISTINCT INTERVAL 1 DAY * k) AS n, cast(avg(DISTINCT INTERVAL 1 DAY * k) AS string) AS mean FROM t",
]


@pytest.mark.parametrize("text", _VIEWS)
def test_a_view_with_intervals_equals_a_recomputation(text: str) -> None:
    holds(text)


@pytest.mark.spark
def test_views_with_intervals_are_what_spark_computes(interpreted: SparkSession) -> None:
    interpreted.conf.set("spark.sql.shuffle.partitions", "1")

    def oracle(query: str, tables: Mapping[str, pa.Table]) -> pa.Table:
        for name, table in tables.items():
            interpreted.createDataFrame(table).coalesce(1).createOrReplaceTempView(name)
        return interpreted.sql(query).toArrow()

    for at, text in enumerate(_VIEWS):
        assert run_view(text, seed=at, steps=6, oracle=oracle, every=6) == 6

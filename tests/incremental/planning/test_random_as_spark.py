"""Random views over random histories equal what Spark itself computes from the tables: the other oracle, beside DuckDB.

Where a query leaves the answer open, as among rows that tie, views choose and Spark does not say which: those are left out here. A query of Spark takes a thousand times as long as a step here, so histories are compared after every fourth step, and there are fewer of them.
HEADWATER_TEST_SEEDS makes it longer.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from itertools import count, islice
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from headwater.base.schema import Schema
from headwater.lake.spark.types import spark_struct
from headwater.testing.views import is_determined, play, random_view

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SEEDS = int(os.environ.get("HEADWATER_TEST_SEEDS", "2")) * 6
STEPS = int(os.environ.get("HEADWATER_TEST_STEPS", "8"))


@pytest.fixture(scope="module")
def session(interpreted: SparkSession) -> SparkSession:
    interpreted.conf.set("spark.sql.shuffle.partitions", "1")
    return interpreted


def test_random_views_are_what_spark_computes(session: SparkSession) -> None:
    asked = 0

    def oracle(query: str, tables: Mapping[str, pa.Table]) -> pa.Table:
        nonlocal asked
        asked += 1
        for name, table in tables.items():
            # With the types said: else times without a zone are taken for times of the session's zone.
            struct = spark_struct(Schema.from_arrow(table.schema))
            session.createDataFrame(table, struct).coalesce(1).createOrReplaceTempView(name)
        return session.sql(query).toArrow()

    seeds = (seed for seed in count(5_000) if _is_for_spark(random_view(seed)))
    played = [play(seed, steps=STEPS, oracle=oracle, every=4) for seed in islice(seeds, SEEDS)]
    kept = [n for n in played if n is not None]
    assert sum(kept) >= 0.9 * STEPS * len(played)
    assert asked == sum(n // 4 for n in kept)


def _is_for_spark(sql: str) -> bool:
    # The sign of a constant zero that rows are grouped by is kept if Spark's optimiser sees that it is one, and lost otherwise. Of a listagg of
    # different constants its planner makes an error of its own.
    return is_determined(sql) and "-0.0D" not in sql and "listagg(DISTINCT CAST(CAST(" not in sql

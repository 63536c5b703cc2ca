"""Every TPC-H and Nexmark query has the plan that is written down, from the JSON that is kept and from Spark itself."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from tests.sql.oracle import plan_of as read_plan

from headwater.spark.analyzer import analyzed
from headwater.sql.analyzed import plan_of

from .spoken import golden, keep, queries, rows_of, stored

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NAMES = list(queries())
_UPDATES = bool(os.environ.get("HEADWATER_UPDATE_GOLDEN"))


@pytest.mark.skipif(_UPDATES, reason="the test with Spark writes them")
@pytest.mark.parametrize("name", _NAMES)
def test_the_plan_is_the_golden_one(name: str) -> None:
    assert plan_of(stored(name)).dump() == golden(name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", _NAMES)
def test_the_rows_are_those_of_the_readers_plan(name: str) -> None:
    text, tables = queries()[name]
    ours, theirs = read_plan(text, tables), plan_of(stored(name))
    assert theirs.schema.names == ours.schema.names
    assert theirs.schema.types == ours.schema.types
    assert rows_of(theirs, tables) == rows_of(ours, tables)


@pytest.mark.spark
@pytest.mark.parametrize("name", _NAMES)
def test_spark_still_makes_this_plan(name: str, spark: SparkSession) -> None:
    text, tables = queries()[name]
    json_text = analyzed(spark, text, {n: t.schema for n, t in tables.items()})
    dump = plan_of(json_text).dump()
    if _UPDATES:
        keep(name, json_text, dump)
    assert dump == golden(name).read_text(encoding="utf-8")

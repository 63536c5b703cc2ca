"""TPC-H's 22 queries: their plans are golden, their rows are Spark's."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from .oracle import FIXTURES, plan_of, run_here, run_spark, sections
from .tpch import tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_QUERIES = sections("tpch.sql")


@pytest.mark.parametrize("name", _QUERIES)
def test_the_plan_is_the_golden_one(name: str) -> None:
    golden = FIXTURES / "tpch_plans" / f"{name}.txt"
    found = plan_of(_QUERIES[name], tables()).dump()
    if os.environ.get("HEADWATER_UPDATE_GOLDEN"):
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(found, encoding="utf-8")
    assert found == golden.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def views(interpreted: SparkSession) -> SparkSession:
    for name, table in tables().items():
        interpreted.createDataFrame(table).coalesce(1).createOrReplaceTempView(name)
    interpreted.conf.set("spark.sql.shuffle.partitions", "1")
    return interpreted


@pytest.mark.parametrize("name", _QUERIES)
def test_the_rows_are_sparks(name: str, views: SparkSession) -> None:
    assert run_here(_QUERIES[name], tables()) == run_spark(views, _QUERIES[name])


def test_most_queries_find_something() -> None:
    empty = [name for name, text in _QUERIES.items() if not run_here(text, tables())[2]]
    assert empty == []

"""Aggregates and windows against Spark: one query a line, over groups with nulls, and over no rows."""

from __future__ import annotations

import random
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from headwater.base.errors import HeadwaterError

from .conftest import fixture_lines
from .oracle import in_any_order, plan_of, run_here, run_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _rows(seed: int, count: int = 40) -> pa.Table:
    rng = random.Random(seed)
    rows = range(count)
    return pa.table(
        {
            "g": pa.array([rng.choice([1, 2, 3, 4, None]) for _ in rows], pa.int32()),
            "x": pa.array([rng.choice([None, 1.5, -2.25, rng.uniform(-5, 5), 100.0]) for _ in rows]),
            "y": pa.array([rng.choice([None, rng.uniform(-5, 5), 3.0]) for _ in rows]),
            "i": pa.array([rng.choice([None, rng.randint(-9, 9)]) for _ in rows], pa.int32()),
            "s": pa.array([rng.choice(["a", "b", "c", None, "12"]) for _ in rows]),
            "p": pa.array(
                [rng.choice([None, Decimal(rng.randint(-999, 999)) / 100]) for _ in rows], pa.decimal128(8, 2)
            ),
            "u": pa.array([str(k) for k in rows]),
            "k": pa.array(rows, pa.int32()),
            "b": pa.array([rng.choice([True, False, None]) for _ in rows]),
            "day": pa.array([date(2024, 1, rng.randint(1, 21)) for _ in rows]),
        }
    )


TABLES = {"r": _rows(2), "none": _rows(2).slice(0, 0)}


@pytest.fixture(scope="module")
def views(interpreted: SparkSession) -> SparkSession:
    for name, table in TABLES.items():
        interpreted.createDataFrame(table).coalesce(1).createOrReplaceTempView(name)
    interpreted.conf.set("spark.sql.shuffle.partitions", "1")
    return interpreted


@pytest.mark.spark
@pytest.mark.parametrize("fixture", ["aggregates.sql", "windows.sql"])
def test_names_types_and_rows_are_sparks(views: SparkSession, fixture: str) -> None:
    different = []
    for text in fixture_lines(fixture):
        ours, theirs = run_here(text, TABLES), run_spark(views, text)
        if (*ours[:2], in_any_order(ours[2])) != (*theirs[:2], in_any_order(theirs[2])):
            different.append(f"{text}\n  here:  {ours}\n  spark: {theirs}")
    assert not different, "\n".join(different)


_REFUSED = (
    "select approx_count_distinct(i, 0.9) from r",
    "select approx_percentile(x, 1.5) from r",
    "select approx_percentile(x, y) from r",
    "select approx_percentile(s, 0.5) from r",
    "select histogram_numeric(x, 3) from r",
    "select collect_set(x) from r",
    "select percentile_cont(0.5) from r",
    "select sum(i) within group (order by k) from r",
    "select k, median(x) over (partition by g order by k) from r",
    "select percentile(x, 1.5) from r",
    "select percentile(x, y) from r",
    "select listagg(s, u) from r",
)


@pytest.mark.parametrize("text", _REFUSED)
def test_what_is_not_known_is_refused(text: str) -> None:
    with pytest.raises(HeadwaterError):
        plan_of(text, TABLES)

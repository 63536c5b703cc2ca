"""PIVOT and UNPIVOT against Spark: names, types and rows of one query a line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from headwater.base.errors import HeadwaterError

from .conftest import fixture_lines
from .oracle import in_any_order, plan_of, run_here, run_spark
from .test_queries import TABLES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.spark
def test_names_types_and_rows_are_sparks(interpreted: SparkSession) -> None:
    for name, table in TABLES.items():
        interpreted.createDataFrame(table).coalesce(1).createOrReplaceTempView(name)
    interpreted.conf.set("spark.sql.shuffle.partitions", "1")
    different = []
    for text in fixture_lines("pivot.sql"):
        ours, theirs = run_here(text, TABLES), run_spark(interpreted, text)
        if (*ours[:2], in_any_order(ours[2])) != (*theirs[:2], in_any_order(theirs[2])):
            different.append(f"{text}\n  here:  {ours}\n  spark: {theirs}")
    assert not different, "\n".join(different)


_REFUSED = (
    "select * from (select a, b from t) pivot (sum(b) for a in (1, 1))",
    "select * from (select a, b from t) pivot (sum(b) for a in (b))",
    "select * from (select a, b from t) pivot (abs(b) for a in (1))",
    "select * from (select a, b from t) pivot (sum(b) for a in ((1, 2)))",
    "select * from (select d, b from t) pivot (sum(b) for d in (1.5))",
    "select * from (select a, s from t) pivot (max_by(s, s) for a in (1))",
    "select * from (select a, b from t) pivot (sum(b) for a in (1, 2)) as p(x, y)",
    "select * from t unpivot (v for n in (a, s))",
    "select * from t unpivot (v for n in (a + 1))",
    "select * from t unpivot ((v, w) for n in (a))",
)


@pytest.mark.parametrize("text", _REFUSED)
def test_what_is_not_known_is_refused(text: str) -> None:
    with pytest.raises(HeadwaterError):
        plan_of(text, TABLES)

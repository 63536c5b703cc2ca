"""The expressions that Spark's plans are made of most often: each is known here, or is refused by name and with a reason.

`most_used.sql` has one query for each class of Spark's expressions. Spark's own plan of the query has to hold that class, so that a line
cannot stand for something else, and the names, types and rows have to be Spark's.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from headwater.base.errors import HeadwaterError

from .oracle import FIXTURES, in_any_order, plan_of, run_here, run_spark
from .test_aggregate_functions import TABLES as GROUPS
from .test_queries import TABLES as ROWS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLES = {**ROWS, **GROUPS}
# Spark merges the bins of a histogram in the order in which it meets the rows.
REFUSED = {"HistogramNumeric": "its bins depend on the order of the rows"}


def _examples() -> dict[str, str]:
    found: dict[str, str] = {}
    title = ""
    for line in (FIXTURES / "most_used.sql").read_text("utf-8").splitlines():
        if match := re.fullmatch(r"-- (\w+)", line):
            title = match[1]
        elif title and line.strip():
            assert title not in found, title
            found[title] = line
    return found


EXAMPLES = _examples()


def test_almost_all_are_known() -> None:
    unknown = {}
    for name, text in EXAMPLES.items():
        try:
            plan_of(text, TABLES)
        except HeadwaterError as error:
            unknown[name] = str(error)
    assert unknown.keys() == REFUSED.keys(), unknown
    assert len(EXAMPLES) - len(unknown) >= 186


@pytest.mark.spark
def test_each_example_is_of_its_class_and_gives_sparks_rows(interpreted: SparkSession) -> None:
    for name, table in TABLES.items():
        interpreted.createDataFrame(table).coalesce(1).createOrReplaceTempView(name)
    interpreted.conf.set("spark.sql.shuffle.partitions", "1")
    wrong = []
    for name, text in EXAMPLES.items():
        plan = interpreted.sql(text)._jdf.queryExecution().analyzed().toJSON()
        if f'.{name}"' not in plan:
            wrong.append(f"{name} is not in the plan of {text}")
        if name in REFUSED:
            continue
        ours, theirs = run_here(text, TABLES), run_spark(interpreted, text)
        if (*ours[:2], in_any_order(ours[2])) != (*theirs[:2], in_any_order(theirs[2])):
            wrong.append(f"{name}: {text}\n  here:  {ours}\n  spark: {theirs}")
    assert not wrong, "\n".join(wrong)

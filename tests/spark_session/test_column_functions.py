"""Every function of PySpark as a text: Spark reads it as what the Column was, or says that there is no such function."""

from __future__ import annotations

import inspect
import itertools
import re
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import functions as classic
from pyspark.sql.connect import functions as connect

from headwater.base.errors import UnsupportedError
from headwater.spark.columns import column_text

TYPES = (
    "i int, n bigint, x double, s string, d date, t timestamp, b boolean, m decimal(9,2), xs array<bigint>, "
    "mp map<string,int>, st struct<p:int,q:string>, bin binary, ss array<string>"
)
# An aggregate that SQL does not have; what PySpark has for partitions of tables warns, and is left out by that.
NO_SQL = {"product"}
ONE = ("i", "n", "x", "s", "d", "t", "b", "m", "xs", "mp", "st", "bin", "ss")
SEVERAL = ("i", "s", "t", "xs")
OTHERS = {"arrow_udf", "arrow_udtf", "broadcast", "expr", "lit", "pandas_udf", "udf", "udtf"}


def _arguments() -> Iterator[tuple[str, ...]]:
    yield ()
    yield from ((name,) for name in ONE)
    yield from itertools.product(SEVERAL, repeat=2)
    yield from itertools.product(("i", "s"), repeat=3)


def _plan(frame: Any) -> str:
    # A seed is drawn for each Column, and a number given to each column.
    return re.sub(r"#\d+L?|\(?-?\d{6,}\)?", "", frame._jdf.queryExecution().optimizedPlan().toString())


def _called(function: Any, frame: Any) -> tuple[tuple[str, ...], Any] | None:
    for arguments in _arguments():
        try:
            return arguments, frame.select(function(*map(classic.col, arguments)).alias("zz"))
        except Exception:  # noqa: BLE001 - of other types, or another number of arguments
            continue
    return None


@pytest.mark.slow
def test_every_function_is_read_as_itself(spark: Any) -> None:
    frame = spark.createDataFrame([], TYPES)
    same: set[str] = set()
    other: set[str] = set()
    for name in sorted(set(classic.__all__) - OTHERS):
        function = getattr(classic, name)
        if inspect.isclass(function) or (called := _called(function, frame)) is None:
            continue
        arguments, wanted = called
        for kind in (classic, connect):
            try:
                text = column_text(getattr(kind, name)(*map(kind.col, arguments)))
            except UnsupportedError:
                assert name.startswith(("asc", "desc")), name
                continue
            try:
                found = frame.selectExpr(f"{text} AS zz")
            except Exception as error:  # noqa: BLE001 - Spark's own, of which the name is all that matters
                assert "UNRESOLVED_ROUTINE" in str(error), (name, text)
                other.add(name)
                continue
            assert wanted.sameSemantics(found) or _plan(wanted) == _plan(found), (name, text)
            same.add(name)
    assert other == NO_SQL
    assert len(same) > 250

"""Spark's rows, for every construct on the allow list, over every type's extremes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from headwater.base.errors import ExpressionError
from headwater.sql.expressions import evaluate, parse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Differences = Callable[[pa.Table, Sequence[str]], list[str]]


@pytest.mark.spark
def test_every_construct_gives_sparks_rows(differences: Differences, extremes: pa.Table, agreeing: list[str]) -> None:
    assert not differences(extremes, agreeing)


@pytest.fixture(scope="module")
def edge() -> pa.Table:
    """One row at the edge of every type."""
    return pa.table(
        {
            "i8": pa.array([127], pa.int8()),
            "i8n": pa.array([-128], pa.int8()),
            "i": pa.array([2**31 - 1], pa.int32()),
            "zero": pa.array([0], pa.int32()),
            "l": pa.array([2**63 - 1], pa.int64()),
            "ln": pa.array([-(2**63)], pa.int64()),
            "d": pa.array([1e300], pa.float64()),
            "nan": pa.array([float("nan")], pa.float64()),
            "p": pa.array([Decimal("999.95")], pa.decimal128(5, 2)),
            "s": pa.array(["x1"]),
        }
    )


def test_what_fails_in_spark_fails_here(edge: pa.Table, failing: list[str]) -> None:
    for text in failing:
        with pytest.raises(ExpressionError) as caught:
            evaluate(parse(text, schema=edge.schema), edge)
        assert caught.value.code == "E1303", text
        assert "Exception" not in str(caught.value), text


@pytest.mark.spark
def test_what_fails_here_is_listed_because_it_fails_in_spark(
    interpreted: SparkSession, edge: pa.Table, failing: list[str]
) -> None:
    from pyspark.errors import PySparkException

    df = interpreted.createDataFrame(edge)
    passed = []
    for text in failing:
        try:
            df.selectExpr(text).toArrow()
            passed.append(text)
        except PySparkException:
            pass
    assert not passed

"""clip: against min and max, and Spark."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.timeseries.relation_cases import bag, bag_of, everywhere, relation

from headwater.base.errors import InputError, UnsupportedError
from headwater.timeseries.methods.relational import RelationalMethods
from headwater.timeseries.operators.clip import Clip
from headwater.timeseries.operators.values import Values

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EARLY = dt.datetime(2024, 3, 1, 0, 0, 1, tzinfo=dt.UTC)
BOUNDS: dict[str, tuple[Any, Any]] = {
    "n": (-1, 2),
    "f": (-2.0, 1.0),
    "v": (None, 4),
    "d": (Decimal("-0.5"), None),
    "t": (EARLY, EARLY + dt.timedelta(seconds=1)),
}


def clipped(value: Any, lower: Any, upper: Any) -> Any:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return value
    if lower is not None and value < lower:
        return lower
    return upper if upper is not None and value > upper else value


def stream_of(table: pa.Table) -> Any:
    lower = {name: low for name, (low, _) in BOUNDS.items()}
    upper = {name: high for name, (_, high) in BOUNDS.items()}
    return RelationalMethods(Values(table)).clip(list(BOUNDS), lower=lower, upper=upper).plan


@pytest.mark.parametrize("seed", range(4))
def test_values_are_held_between_bounds(seed: int) -> None:
    table = relation(seed)
    expected = [
        {name: clipped(value, *BOUNDS.get(name, (None, None))) for name, value in row.items()}
        for row in table.to_pylist()
    ]
    assert everywhere(stream_of(table), seed) == bag_of(expected)


def test_spark_has_the_same_rows(spark: SparkSession) -> None:
    table = relation(3, rows=60)
    node = stream_of(table)
    assert isinstance(node, Clip)
    assert bag(node.frame(spark.createDataFrame(table)).toArrow()) == bag(node.kernel()(table))


def test_mistakes() -> None:
    stream = RelationalMethods(Values(pa.table({"v": [1], "s": ["a"], "f": [1.0]})))
    with pytest.raises(InputError, match="a bound"):
        stream.clip("v")
    with pytest.raises(InputError, match="can hold"):
        stream.clip("v", lower=1.5)
    with pytest.raises(InputError, match="can hold"):
        stream.clip("v", upper="x")
    with pytest.raises(InputError, match="not above"):
        stream.clip("v", lower=2, upper=1)
    with pytest.raises(InputError, match="NaN"):
        stream.clip("f", lower=math.nan)
    with pytest.raises(UnsupportedError):
        stream.clip("s", lower="a")
    assert stream.clip("f", lower=Decimal("0.5")).schema.field("f").type == pa.float64()

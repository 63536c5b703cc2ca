"""union: rows of several streams, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from tests.timeseries.relation_cases import bag, everywhere, relation

from headwater.base.errors import InputError
from headwater.timeseries.methods.relational import RelationalMethods
from headwater.timeseries.operators.union import Union
from headwater.timeseries.operators.values import Values
from headwater.timeseries.running.here import run_here

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize("seed", range(4))
def test_all_rows_by_name(seed: int) -> None:
    a, b = relation(seed), relation(seed + 100)
    turned = b.select(b.column_names[::-1])
    node = RelationalMethods(Values(a)).union(RelationalMethods(Values(turned)), a).plan
    assert everywhere(node, seed) == bag(a) + bag(b) + bag(a)


def test_the_wider_type_holds_both() -> None:
    a = pa.table(
        {"i": pa.array([1], pa.int8()), "f": pa.array([1.5], pa.float64()), "d": pa.array([1], pa.decimal128(5, 2))}
    )
    b = pa.table(
        {"i": pa.array([2], pa.int64()), "f": pa.array([2.5], pa.float32()), "d": pa.array([2], pa.decimal128(5, 0))}
    )
    found = run_here(RelationalMethods(Values(a)).union(b).plan)
    assert found.schema.types == [pa.int64(), pa.float64(), pa.decimal128(7, 2)]
    assert [row["i"] for row in found.to_pylist()] == [1, 2]


def test_spark_has_the_same_rows(spark: SparkSession) -> None:
    a = relation(3, rows=20)
    b = relation(4, rows=20)
    b = b.set_column(1, "n", b["n"].cast(pa.int64())).select(b.column_names[::-1])
    node = Union((Values(a), Values(b)))
    there = node.frame(spark.createDataFrame(a), spark.createDataFrame(b)).toArrow()
    assert bag(there) == bag(run_here(node)) and there.schema.field("n").type == node.schema.field("n").type


def test_what_does_not_fit_is_refused() -> None:
    stream = RelationalMethods(Values(pa.table({"v": [1], "w": [1]})))
    with pytest.raises(InputError, match="same columns: v, w"):
        stream.union({"v": [1]})
    with pytest.raises(InputError, match="`w` is string"):
        stream.union({"v": [1], "w": ["a"]})

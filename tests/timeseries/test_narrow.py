"""filter, select, drop, rename, with_columns: against rows computed by hand, and Spark."""

from __future__ import annotations

import decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.timeseries.relation_cases import bag, bag_of, everywhere, relation

from headwater.base.errors import HeadwaterError, InputError, NotFoundError, UnsupportedError
from headwater.timeseries.methods.relational import RelationalMethods
from headwater.timeseries.node import Ordering
from headwater.timeseries.operators.narrow import Filter, Project
from headwater.timeseries.operators.values import Values

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize("seed", range(4))
def test_filter_keeps_what_is_true(seed: int) -> None:
    table = relation(seed)
    found = everywhere(Filter(Values(table), "n > 0 OR k = 'b'"), seed)

    def true(row: dict[str, Any]) -> bool:
        return bool((row["n"] is not None and row["n"] > 0) or row["k"] == "b")

    assert found == bag_of(row for row in table.to_pylist() if true(row))


@pytest.mark.parametrize("seed", range(4))
def test_columns_are_computed_and_the_others_stay(seed: int) -> None:
    table = relation(seed)
    stream = RelationalMethods(Values(table)).with_columns(m="n + 1", k="upper(k)")
    expected = [
        row | {"k": row["k"] and row["k"].upper(), "m": None if row["n"] is None else row["n"] + 1}
        for row in table.to_pylist()
    ]
    assert everywhere(stream.plan, seed) == bag_of(expected)


def test_columns_that_are_not_read_may_have_any_type() -> None:
    strange = pa.table(
        {
            "v": pa.array([1, 2, None], pa.int64()),
            "half": pa.array([1, 2, 3], pa.uint8()).cast(pa.float16()),
            "wide": pa.array([decimal.Decimal("1.5")] * 3, pa.decimal256(60, 2)),
            "tags": pa.array([[1], None, []], pa.list_(pa.int8())),
            "vec": pa.array([[1, 2]] * 3, pa.list_(pa.float32(), 2)),
            "word": pa.array(["x", "y", "x"]).dictionary_encode(),
            "ns": pa.array([1, 2, 3], pa.timestamp("ns")),
            "m": pa.array([[("a", 1)]] * 3, pa.map_(pa.string(), pa.int32())),
        }
    )
    kept = Filter(Values(strange), "v > 1").kernel()(strange)
    assert kept.equals(strange.slice(1, 1))
    more = RelationalMethods(Values(strange)).with_columns(w="v * 2", one="1").plan
    assert isinstance(more, Project)
    made = more.kernel()(strange)
    assert made.drop_columns(["w", "one"]).equals(strange)
    assert made["w"].to_pylist() == [2, 4, None] and made["one"].to_pylist() == [1, 1, 1]
    assert RelationalMethods(Values(strange)).select("half", "m").schema.types == [
        pa.float16(),
        strange.schema.field("m").type,
    ]


def test_many_columns() -> None:
    table = pa.table({f"c{i}": [i, None] for i in range(1500)})
    node = RelationalMethods(Values(table)).filter("c7 > 1").with_columns(x="c1 + c2").drop("c0").plan
    found = everywhere(node, 0)
    (row,) = found
    assert len(row) == 1500 and dict(row)["x"] == 3 and dict(row)["c1499"] == 1499


@pytest.mark.parametrize(
    "text",
    [
        "sum(v)",
        "row_number() OVER (ORDER BY v)",
        "(SELECT max(v) FROM rows)",
        "explode(array(v))",
        "v) AS a, (v",
        "rand()",
    ],
)
def test_texts_that_are_not_of_one_row_are_refused(text: str) -> None:
    stream = RelationalMethods(Values(pa.table({"v": [1]})))
    with pytest.raises(HeadwaterError) as caught:
        stream.with_columns(x=text)
    assert isinstance(caught.value, UnsupportedError | InputError)


def test_mistakes_are_told_where_they_are_made() -> None:
    stream = RelationalMethods(Values(pa.table({"v": [1], "w": ["a"]})), Ordering("v"))
    with pytest.raises(InputError):
        stream.filter("x > 1")
    with pytest.raises(InputError, match="true or false"):
        stream.filter("v + 1")
    with pytest.raises(NotFoundError, match="no column `x`"):
        stream.select("x")
    with pytest.raises(InputError):
        stream.select("v", V="1")
    with pytest.raises(InputError):
        stream.select()
    with pytest.raises(InputError):
        stream.drop("v", "w")
    with pytest.raises(InputError):
        stream.rename(v="W")
    with pytest.raises(InputError):
        stream.with_columns()
    with pytest.raises(InputError, match="and not both kinds"):
        stream.with_columns(a="v", b=lambda t: t["v"])


def test_the_ordering_follows_its_columns() -> None:
    stream = RelationalMethods(Values(pa.table({"v": [1], "w": ["a"], "x": [1]})), Ordering("v", ("w",)))
    assert stream.rename(v="t").ordering == Ordering("t", ("w",))
    assert stream.drop("x").ordering == Ordering("v", ("w",))
    assert stream.drop("w").ordering is None
    assert stream.select("W", "v").columns == ["w", "v"]
    assert stream.with_columns(V="v + 1").columns == ["v", "w", "x"]


def test_division_by_zero_is_an_error() -> None:
    node = Filter(Values(pa.table({"v": [1, 0]})), "1 / v > 0")
    with pytest.raises(HeadwaterError):
        node.kernel()(pa.table({"v": [1, 0]}))


def test_spark_has_the_same_rows(spark: SparkSession) -> None:
    table = relation(3, rows=60)
    frame = spark.createDataFrame(table)
    plan = Values(table)
    for condition in ("n > 0 AND NOT b", "f > 1", "k IS NULL OR d < 0.5"):
        node = Filter(plan, condition)
        assert bag(node.frame(frame).toArrow()) == bag(node.kernel()(table)), condition
    stream = RelationalMethods(plan).with_columns(x="n * 2", y="f = 0", k="concat(k, '!')").rename(v="V2").plan
    assert isinstance(stream, Project) and isinstance(stream.input, Project)
    there = stream.frame(stream.input.frame(frame)).toArrow()
    assert bag(there) == bag(stream.kernel()(stream.input.kernel()(table)))
    assert there.schema.names == stream.schema.names

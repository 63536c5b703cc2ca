"""join: against nested loops, and Spark."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.timeseries.relation_cases import Row, bag, bag_of, everywhere, relation

from headwater.base.errors import InputError, NotFoundError, UnsupportedError
from headwater.timeseries.methods.relational import RelationalMethods
from headwater.timeseries.operators.join import HOW, Join
from headwater.timeseries.operators.values import Values
from headwater.timeseries.running.here import run_here

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEYS = [["k"], ["n"], ["f"], ["k", "n"], ["d"], ["t", "b"]]


def same(a: Any, b: Any) -> bool:
    if a is None or b is None:
        return False
    return a == b or (isinstance(a, float) and math.isnan(a) and math.isnan(b))


def nested_loops(left: list[Row], right: list[Row], keys: list[str], how: str, names: list[str]) -> list[Row]:
    others = [n for n in names if n not in keys]
    found: list[Row] = []
    met: set[int] = set()
    for a in left:
        partners = [i for i, b in enumerate(right) if all(same(a[k], b[k]) for k in keys)]
        met.update(partners)
        if how == "semi":
            found += [a] if partners else []
        elif how == "anti":
            found += [] if partners else [a]
        else:
            found += [a | {f"{n}_right": right[i][n] for n in others} for i in partners]
            if not partners and how in {"left", "full"}:
                found.append(a | {f"{n}_right": None for n in others})
    if how in {"right", "full"}:
        for i, b in enumerate(right):
            if i not in met:
                mine = {n: b[n] if n in keys else None for n in names}
                found.append(mine | {f"{n}_right": b[n] for n in others})
    return found


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("keys", KEYS, ids="-".join)
def test_pairs_are_those_of_nested_loops(keys: list[str], how: str) -> None:
    seed = KEYS.index(keys)
    left, right = relation(seed, rows=25), relation(seed + 50, rows=20)
    node = RelationalMethods(Values(left)).join(RelationalMethods(Values(right)), keys, how=how).plan
    expected = nested_loops(left.to_pylist(), right.to_pylist(), keys, how, left.column_names)
    assert everywhere(node, seed) == bag_of(expected)


@pytest.mark.parametrize("how", HOW)
def test_empty_sides(how: str) -> None:
    some, none = relation(1, rows=10), relation(1, rows=0)
    for left, right in ((some, none), (none, some), (none, none)):
        node = RelationalMethods(Values(left)).join(right, "k", how=how).plan
        expected = nested_loops(left.to_pylist(), right.to_pylist(), ["k"], how, left.column_names)
        assert everywhere(node, 0) == bag_of(expected)


def test_more_rows_than_fit_are_joined_in_pieces() -> None:
    left = pa.table({"k": [i % 700 for i in range(5000)], "v": range(5000)})
    right = pa.table({"j": [i % 900 for i in range(3000)], "w": range(3000)})
    node = RelationalMethods(Values(left)).join(right, {"k": "j"}, how="full").plan
    assert isinstance(node, Join)
    whole = run_here(node)
    small = run_here(node, pieces=lambda t: [t.slice(i, 500) for i in range(0, t.num_rows, 500)], budget_bytes=10_000)
    assert small.column(0).num_chunks > 3
    assert bag(small) == bag(whole)


def test_columns_of_any_type_come_along() -> None:
    left = pa.table({"k": [1, 2], "vec": pa.array([[1, 2], [3, 4]], pa.list_(pa.float32(), 2))})
    right = pa.table(
        {"k": pa.array([2, 3], pa.int8()), "m": pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int8()))}
    )
    found = run_here(RelationalMethods(Values(left)).join(right, "k", how="full").plan).sort_by("k")
    assert found["vec"].to_pylist() == [[1, 2], [3, 4], None]
    assert found["m"].to_pylist() == [None, [("a", 1)], None]
    assert found.schema.field("k").type == pa.int64()


def test_spark_has_the_same_rows(spark: SparkSession) -> None:
    left, right = relation(3, rows=40), relation(4, rows=30)
    right = right.rename_columns(["j", *right.column_names[1:]]).set_column(1, "n", right["n"].cast(pa.int64()))
    a, b = spark.createDataFrame(left), spark.createDataFrame(right)
    for how in HOW:
        for on in ((("k", "j"),), (("n", "n"), ("f", "f"))):
            for broadcast in (None, True) if how == "inner" else (False,):
                node = Join(Values(left), Values(right), on, how, broadcast=broadcast)
                there = node.frame(a, b).toArrow()
                assert bag(there) == bag(run_here(node, parts=2)), (how, on)
                assert there.schema.names == node.schema.names
                assert there.schema.types == node.schema.types


def test_mistakes() -> None:
    stream = RelationalMethods(Values(pa.table({"k": [1], "v": [1], "l": [[1]]})))
    with pytest.raises(InputError, match="one of inner, left"):
        stream.join({"k": [1]}, "k", how="outer")
    with pytest.raises(NotFoundError):
        stream.join({"j": [1]}, "k")
    with pytest.raises(InputError, match="columns of one type"):
        stream.join({"k": ["1"]}, "k")
    with pytest.raises(InputError, match="columns of one type"):
        stream.join({"k": [1.0]}, "k")
    with pytest.raises(InputError, match="at least one column"):
        stream.join({"k": [1]}, [])
    with pytest.raises(InputError, match="suffix"):
        stream.join({"k": [1], "v": [1]}, "k", suffix="")
    with pytest.raises(UnsupportedError):
        stream.join({"l": [[1]]}, "l")

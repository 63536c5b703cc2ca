"""top_k: against sorting by hand, and Spark."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.timeseries.relation_cases import Row, bag, bag_of, everywhere, relation

from headwater.base.errors import InputError, UnsupportedError
from headwater.timeseries.methods.relational import RelationalMethods
from headwater.timeseries.operators.top_k import TopK, TopKOfEach
from headwater.timeseries.operators.values import Values
from headwater.timeseries.running.here import run_here

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CASES: list[tuple[int, list[str], Any]] = [
    (1, ["n"], True),
    (3, ["f"], True),
    (3, ["f"], False),
    (5, ["k", "d"], [True, False]),
    (7, ["b"], False),
    (200, ["t"], True),
    (4, ["v"], False),
]


class Word:
    """A value as Spark orders it: null, numbers, NaN."""

    def __init__(self, value: Any, falls: bool) -> None:
        nan = isinstance(value, float) and math.isnan(value)
        text = value.encode() if isinstance(value, str) else value
        self.word: tuple[Any, ...] = (value is not None, nan, 0 if value is None or nan else text)
        if value is None or nan:
            self.word = (*self.word[:2], "")
        self.falls = falls

    def __lt__(self, other: Word) -> bool:
        a, b = (other.word, self.word) if self.falls else (self.word, other.word)
        return a[:2] < b[:2] or (a[:2] == b[:2] and a[2] != b[2] and a[2] < b[2])


def ordered(rows: list[Row], by: list[str], falls: Any) -> list[Row]:
    turned = [falls] * len(by) if isinstance(falls, bool) else falls

    def words(row: Row) -> list[Word]:
        first = [Word(row[name], down) for name, down in zip(by, turned, strict=True)]
        return first + [Word(value, False) for name, value in row.items() if name not in by]

    for position in range(len(words(rows[0])) - 1, -1, -1) if rows else ():
        rows = sorted(rows, key=lambda row, position=position: words(row)[position])  # type: ignore[misc]
    return rows


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_first_rows(case: tuple[int, list[str], Any], seed: int) -> None:
    k, by, falls = case
    table = relation(seed)
    node = RelationalMethods(Values(table)).top_k(k, by=by, descending=falls).plan
    expected = ordered(table.to_pylist(), by, falls)[:k]
    assert everywhere(node, seed) == bag_of(expected)
    assert bag_of(run_here(node).select(by).to_pylist()[:1]) == bag_of({n: r[n] for n in by} for r in expected[:1])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("case", CASES[:5], ids=str)
def test_the_first_rows_of_each_key(case: tuple[int, list[str], Any], seed: int) -> None:
    k, by, falls = case
    table = relation(seed)
    for per in (["n"], ["t", "b"]):
        node = RelationalMethods(Values(table)).top_k(k, by=by, descending=falls, per=per).plan
        groups: dict[Any, list[Row]] = defaultdict(list)
        for row in table.to_pylist():
            groups[tuple(row[name] for name in per)].append(row)
        expected = [row for rows in groups.values() for row in ordered(rows, by, falls)[:k]]
        assert everywhere(node, seed) == bag_of(expected)


def test_spark_has_the_same_rows(spark: SparkSession) -> None:
    table = relation(3, rows=80)
    frame = spark.createDataFrame(table)
    stream = RelationalMethods(Values(table))
    for k, by, falls in CASES[1:5]:
        for per in ((), ("k",)):
            node = stream.top_k(k, by=by, descending=falls, per=per).plan
            assert isinstance(node, TopK | TopKOfEach)
            there = node.frame(frame)
            assert there is not None
            assert bag(there.toArrow()) == bag(run_here(node)), (k, by, per)


def test_rows_that_only_a_nested_column_tells_apart() -> None:
    rows = [{"v": 1, "l": [1]}, {"v": 1, "l": [1]}]
    node = RelationalMethods(Values(pa.Table.from_pylist(rows))).top_k(1, by="v").plan
    assert node.frame() is None if not isinstance(node, TopK) else True
    assert everywhere(node, 0) == bag_of(rows[:1])
    rows.append({"v": 1, "l": [2]})
    for per in ((), "v"):
        tied = (
            RelationalMethods(Values(pa.Table.from_pylist([r | {"w": 1} for r in rows]))).top_k(1, by="w", per=per).plan
        )
        with pytest.raises(InputError, match="differ only in `l`"):
            run_here(tied)
    decided = RelationalMethods(Values(pa.Table.from_pylist(rows))).top_k(3, by="v").plan
    assert everywhere(decided, 0) == bag_of(rows)


def test_mistakes() -> None:
    stream = RelationalMethods(Values(pa.table({"v": [1], "l": [[1]]})))
    for k in (0, -1, 1.5, True):
        with pytest.raises(InputError, match="a whole number from 1"):
            stream.top_k(k, by="v")  # type: ignore[arg-type]
    with pytest.raises(InputError):
        stream.top_k(1, by=[])
    with pytest.raises(InputError):
        stream.top_k(1, by="v", descending=[True, False])
    with pytest.raises(InputError, match="not nested"):
        stream.top_k(1, by="l")
    with pytest.raises(UnsupportedError):
        stream.top_k(1, by="v", per="l")

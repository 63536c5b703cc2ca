"""group().cogroup: a function on a key's rows in two streams."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from tests.timeseries.relation_cases import bag_of, everywhere, relation

from headwater.base.errors import InputError
from headwater.timeseries.methods.relational import RelationalMethods
from headwater.timeseries.node import Ordering
from headwater.timeseries.operators.values import Values

SCHEMA = {"key": pa.string(), "left": pa.int64(), "right": pa.int64()}


def counted(key: tuple[Any, ...], left: pa.Table, right: pa.Table) -> dict[str, list[Any]]:
    return {"key": [repr(key)], "left": [left.num_rows], "right": [right.num_rows]}


def plain(value: Any) -> Any:
    return value + 0.0 if isinstance(value, float) else value


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("keys", [["k"], ["n"], ["f"], ["k", "b"]], ids="-".join)
def test_both_sides_of_every_key(keys: list[str], seed: int) -> None:
    left, right = relation(seed), relation(seed + 20)
    a, b = RelationalMethods(Values(left)), RelationalMethods(Values(right))
    node = a.group(*keys).cogroup(b.group(*keys), lambda x, y: {"l": [x.num_rows], "r": [y.num_rows]}, schema=PAIR).plan
    counts = [
        Counter(tuple("nan" if v != v else plain(v) for v in row.values()) for row in t.select(keys).to_pylist())
        for t in (left, right)
    ]
    expected = [{"l": counts[0][k], "r": counts[1][k]} for k in counts[0] | counts[1]]
    assert everywhere(node, seed) == bag_of(expected)


PAIR = {"l": pa.int64(), "r": pa.int64()}


def test_keys_of_other_names_and_widths() -> None:
    left = pa.table({"k": pa.array([1, 2, 1, None], pa.int8())})
    right = pa.table({"j": pa.array([2, 3, None], pa.int64())})
    grouped = RelationalMethods(Values(left)).group("k")
    node = grouped.cogroup(RelationalMethods(Values(right)).group("j"), counted, schema=SCHEMA).plan
    expected = [("(1,)", 2, 0), ("(2,)", 1, 1), ("(3,)", 0, 1), ("(None,)", 1, 1)]
    assert everywhere(node, 0) == bag_of(dict(zip(SCHEMA, row, strict=True)) for row in expected)


def test_each_side_comes_by_its_own_time() -> None:
    a = RelationalMethods(Values(pa.table({"k": [1, 1], "t": [2, 1]})), Ordering("t"))
    b = RelationalMethods(Values(pa.table({"k": [1, 1], "u": [9, 8]})), Ordering("u"))
    kinds = {"t": pa.list_(pa.int64()), "u": pa.list_(pa.int64())}
    node = a.group("k").cogroup(
        b.group("k"), lambda x, y: {"t": [x["t"].to_pylist()], "u": [y["u"].to_pylist()]}, schema=kinds
    )
    assert everywhere(node.plan, 0) == bag_of([{"t": [1, 2], "u": [8, 9]}])


def test_mistakes() -> None:
    stream = RelationalMethods(Values(pa.table({"k": [1], "s": ["a"]})))
    with pytest.raises(InputError, match="grouped by 1 keys"):
        stream.group("k").cogroup(stream, counted, schema=SCHEMA)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="grouped by 1 keys"):
        stream.group("k").cogroup(stream.group("k", "s"), counted, schema=SCHEMA)
    with pytest.raises(InputError, match="columns of one type"):
        stream.group("k").cogroup(stream.group("s"), counted, schema=SCHEMA)

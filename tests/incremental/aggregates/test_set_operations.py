"""Distinct, UNION, INTERSECT and EXCEPT, over histories of several inputs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.errors import SchemaError
from headwater.incremental.operators.distinct import Distinct, Except, Intersect, Union, Weigh

from .histories import Source, comparable, zset_of

SCHEMA = pa.schema([pa.field("a", pa.int64()), pa.field("s", pa.string()), pa.field("d", pa.float64())])
_ROWS = st.fixed_dictionaries(
    {
        "a": st.sampled_from([None, 1, 2]),
        "s": st.sampled_from([None, "x", "a long string of more than 12"]),
        "d": st.sampled_from([None, 0.0, -0.0, math.nan, 1.0]),
    }
)
_STEPS = st.lists(st.lists(st.tuples(st.integers(0, 2), _ROWS, st.integers(-2, 2)), max_size=10), max_size=8)
Weighing = Callable[[list[int]], int]
OPERATIONS: dict[str, tuple[Callable[[list[Any]], Weigh], Weighing]] = {
    "distinct": (lambda s: Distinct(s[0]), lambda w: int(w[0] > 0)),
    "union": (Union, lambda w: int(any(x > 0 for x in w))),
    "intersect": (Intersect, lambda w: int(all(x > 0 for x in w))),
    "intersect all": (lambda s: Intersect(s, all=True), min),
    "except": (Except, lambda w: int(w[0] > 0 and all(x <= 0 for x in w[1:]))),
    "except all": (lambda s: Except(s, all=True), lambda w: max(w[0] - sum(w[1:]), 0)),
    "except of two": (lambda s: Except(s[:2], all=True), lambda w: max(w[0] - w[1], 0)),
}


def _key(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(comparable(x + 0.0 if isinstance(x, float) else x) for x in row.values())


@pytest.mark.parametrize("name", OPERATIONS)
@given(_STEPS)
def test_histories(name: str, steps: list[list[tuple[int, dict[str, Any], int]]]) -> None:
    build, weigh = OPERATIONS[name]
    other = pa.schema([f.with_name(f.name + "2") for f in SCHEMA])
    sources = [Source(SCHEMA), Source(other), Source(SCHEMA)]
    node = build(sources)
    inputs = len(node.inputs)
    there: dict[Any, list[int]] = {}
    out: Counter[Any] = Counter()
    for step in steps:
        changes: list[list[tuple[dict[str, Any], int]]] = [[], [], []]
        for which, drawn, wanted in step:
            row = {n: drawn[n] for n in SCHEMA.names}
            weights = there.setdefault(_key(row), [0, 0, 0])
            change = max(wanted, -weights[which])
            weights[which] += change
            names = other.names if which == 1 else SCHEMA.names
            changes[which].append((dict(zip(names, row.values(), strict=True)), change))
        deltas = [zset_of(s.layout, c) for s, c in zip(sources, changes, strict=True)][:inputs]
        node.step(deltas)
        node.rollback()
        for row in node.step(deltas).to_arrow().to_pylist():
            out[_key({k: v for k, v in row.items() if k != "_weight"})] += row["_weight"]
        node.commit()
        expected = {k: weigh(w[:inputs]) for k, w in there.items()}
        assert {k: w for k, w in out.items() if w} == {k: w for k, w in expected.items() if w}


def test_types_have_to_agree() -> None:
    left, right = Source(SCHEMA), Source(pa.schema([("a", pa.int64()), ("s", pa.string()), ("d", pa.int64())]))
    with pytest.raises(SchemaError, match="d"):
        Union([left, right])
    with pytest.raises(SchemaError):
        Except([left, Source(pa.schema([("a", pa.int64())]))])

"""min, max, min_by, max_by, first, last and any_value, of all types."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.incremental.aggregates.registry import aggregation
from headwater.incremental.layout import Order
from headwater.incremental.operators.aggregate import Aggregate
from headwater.incremental.zset import ZSet

from .histories import SCHEMA, SPECIAL_DOUBLES, Row, Source, check, histories, rows


def rank(x: Any) -> Any:
    """Something that sorts as values do: null first, NaN last, -0.0 before 0.0 where they tie, texts by their bytes."""
    if x is None:
        return (0,)
    if isinstance(x, float):
        return (1, math.isnan(x), 0 if math.isnan(x) else x, math.copysign(1, x))
    return (1, x.encode() if isinstance(x, str) else x)


class Backwards:
    """Sorts the other way round."""

    def __init__(self, what: Any) -> None:
        self.what = what

    def __lt__(self, other: Backwards) -> bool:
        return bool(other.what < self.what)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Backwards) and self.what == other.what

    def __hash__(self) -> int:
        return hash(self.what)


def picked(
    column: str, by: tuple[Order, ...], last: bool, needed: str | None, where: str | None = None
) -> Callable[[list[Row]], Any]:
    def key(r: Row) -> Any:
        found = []
        for o in by:
            x = rank(r[o.column])
            null_first = (r[o.column] is not None) if o.nulls_first else (r[o.column] is None)
            found.append((null_first, Backwards(x[1:]) if o.descending else x[1:]))
        return (*found, rank(r[column]))

    def oracle(some: list[Row]) -> Any:
        kept = [r for r in some if (needed is None or r[needed] is not None) and (where is None or r[where])]
        return (max if last else min)(kept, key=key)[column] if kept else None

    return oracle


_TYPES = ("v", "n", "i", "d", "f", "p", "q", "s", "b", "t", "e")
CASES: dict[str, Any] = {}
for _c in _TYPES:
    for _f in ("min", "max"):
        CASES[f"{_f}_{_c}"] = (
            aggregation(_f, _c, schema=SCHEMA, name=f"{_f}_{_c}"),
            picked(_c, (), _f == "max", _c),
        )
_BY: dict[str, Any] = {}
for _c, _y in (("v", "n"), ("s", "d"), ("d", "s"), ("p", "q"), ("b", "t"), ("v", "v"), ("s", "g")):
    for _f in ("min_by", "max_by"):
        _BY[f"{_f}_{_c}{_y}"] = (
            aggregation(_f, (_c, _y), schema=SCHEMA, name=f"{_f}_{_c}{_y}"),
            picked(_c, (Order(_y),), _f == "max_by", _y),
        )
for _c, _order, _nulls in (
    ("v", (Order("t"),), False),
    ("s", (Order("t", descending=True), Order("n")), True),
    ("d", (Order("e", nulls_first=False),), False),
    ("b", (Order("s", descending=True, nulls_first=True),), True),
):
    for _f in ("first", "last"):
        _name = f"{_f}_{_c}_{_order[0].column}"
        _BY[_name] = (
            aggregation(_f, _c, schema=SCHEMA, name=_name, order=_order, ignore_nulls=_nulls),
            picked(_c, _order, _f == "last", _c if _nulls else None),
        )
_BY["any_value"] = (aggregation("any_value", "s", schema=SCHEMA), picked("s", (), False, "s"))
_BY["last"] = (aggregation("last", "v", schema=SCHEMA), picked("v", (), True, "v"))
_BY["min_where"] = (aggregation("min", "s", schema=SCHEMA, name="mw", where="w"), picked("s", (), False, "s", "w"))
_BY["max_where"] = (aggregation("max", "v", schema=SCHEMA, name="xw", where="w"), picked("v", (), True, "v", "w"))
_D = st.one_of(st.none(), SPECIAL_DOUBLES)


@pytest.mark.parametrize("keys", [("g",), (), ("h", "k")])
@given(histories(rows(d=_D)))
def test_extremes_of_columns(keys: tuple[str, ...], history: list[list[Any]]) -> None:
    check(history, CASES, keys)


@pytest.mark.long
@pytest.mark.parametrize("keys", [("g",), ()])
@given(histories(rows(d=_D)))
def test_extremes_by_other_columns(keys: tuple[str, ...], history: list[list[Any]]) -> None:
    check(history, _BY, keys)


def test_of_the_key_itself() -> None:
    made = {"m": (aggregation("min", "g", schema=SCHEMA, name="m"), picked("g", (), False, "g"))}
    x = {**dict.fromkeys(SCHEMA.names), "n": 0}
    check([[("insert", {**x, "g": 3}, 2), ("insert", x, 1)], [("delete", 0)], [("delete", 0)]], made)


@pytest.mark.parametrize("function", ["min", "max"])
def test_a_window_that_slides_costs_its_change(function: str) -> None:
    """Each step deletes the current answers: the walk must not meet all the dead again."""
    schema = pa.schema([pa.field("g", pa.int64(), nullable=False), pa.field("v", pa.int64(), nullable=False)])
    source = Source(schema)
    node = Aggregate(source, ["g"], [aggregation(function, "v", schema=schema, name="m")])

    def seconds(window: int) -> float:
        begin = time.process_time()
        for first in range(0, 20_000, 100):
            new = np.arange(first, first + 100) * (1 if function == "min" else -1)
            gone = (np.arange(first, first + 100) - window) * (1 if function == "min" else -1)
            values = np.concatenate([new, gone] if first >= window else [new])
            weights = np.where(np.arange(len(values)) < 100, 1, -1)
            table = pa.table({"g": np.zeros(len(values), dtype=np.int64), "v": values}, schema=schema)
            node.step([ZSet.packed(source.layout, table, weights)])
            node.commit()
        return time.process_time() - begin

    seconds(100)
    small, large = seconds(200), seconds(10_000)
    assert large < 10 * small + 0.5

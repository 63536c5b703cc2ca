"""Calls of every function of the catalogue that its typing accepts: what tests over the whole catalogue ask."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from functools import cache

import pyarrow as pa

from headwater.sql.functions.catalogue import FUNCTIONS
from headwater.sql.functions.function import Function
from headwater.sql.interval_types import has_interval
from headwater.sql.nodes import Call, Column, Literal, Node, Refused, Unbound, call
from headwater.sql.operators import arithmetic, compare
from headwater.sql.types import BOOLEAN, INT, STRING, TIMESTAMP, TIMESTAMP_NTZ, has_void

TYPES = {
    "s": pa.string(),
    "i": pa.int32(),
    "l": pa.int64(),
    "d": pa.float64(),
    "f": pa.float32(),
    "m": pa.decimal128(10, 2),
    "b": pa.bool_(),
    "t": pa.date32(),
    "z": TIMESTAMP,
    "w": TIMESTAMP_NTZ,
    "x": pa.binary(),
    "xs": pa.list_(pa.int32()),
    "ss": pa.list_(pa.string()),
    "es": pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.int32())])),
    "xxs": pa.list_(pa.list_(pa.int32())),
    "kv": pa.map_(pa.string(), pa.int32()),
}
SCHEMA = pa.schema(list(TYPES.items()))
_COLUMNS = [Column(None, (name,), dtype) for name, dtype in TYPES.items()]
_CONSTANTS: list[Node] = [
    Literal("a", STRING),
    Literal("day", STRING),
    Literal(2, INT),
    Literal("yyyy", STRING),
    Literal("$.a", STRING),
    Literal("999", STRING),
    Literal("%s", STRING),
    Literal(date(2024, 2, 29), pa.date32()),
]


_TRIES, _KEPT = 2000, 4


def _lambda(count: int, body: Callable[[Sequence[Node]], Node]) -> Unbound:
    return Unbound(tuple(f"p{i} 0" for i in range(count)), body)


# Lambdas for whatever a function takes: a condition, a value, and a comparator.
_LAMBDAS: list[Unbound] = [
    _lambda(1, lambda v: compare("=", v[0], v[0])),
    _lambda(1, lambda v: v[0]),
    _lambda(2, lambda v: v[0]),
    _lambda(2, lambda v: compare("=", v[0], v[0])),
    _lambda(2, lambda v: arithmetic("-", v[0], v[1])),
    _lambda(3, lambda v: v[1]),
]


def _candidates(function: Function, count: int) -> Iterator[tuple[object, ...]]:
    """Arguments to try: all of one and two, and of more those that repeat what they begin with."""
    every: list[object] = [*_COLUMNS, *_CONSTANTS]
    first: list[object] = [*_COLUMNS, _CONSTANTS[0], _CONSTANTS[1]]
    if function.lambdas:
        every = [*_COLUMNS, *_LAMBDAS]
    if count <= 2:
        yield from itertools.product(every if count == 1 else first, *[every] * (count - 1))
        return
    some = [c for c in every if not isinstance(c, Column) or c.path[0] in ("s", "i", "d", "t", "z", "xs", "kv")]
    begins = list(itertools.product(first, some))
    for last in (lambda b: b[1], lambda b: b[0], lambda _: _CONSTANTS[2], *(lambda _, x=x: x for x in every[-6:])):
        yield from ((*begin, *[last(begin)] * (count - 2)) for begin in begins)  # type: ignore[no-untyped-call]


@cache
def calls() -> tuple[tuple[str, tuple[object, ...], Node], ...]:
    """For every function and number of arguments: arguments that it takes and what it makes of them, a few kinds of them."""
    found = []
    for name, function in FUNCTIONS.items():
        for count in range(function.least, min(function.most, max(function.least, 4)) + 1):
            seen: set[tuple[object, ...]] = set()
            for args in itertools.islice(_candidates(function, count), _TRIES):
                if len(seen) == _KEPT:
                    break
                node = _built(function, args)
                if node is None or has_void(node.dtype) or has_interval(node.dtype):
                    continue
                kinds = tuple(str(a.dtype) if isinstance(a, Column) else "" for a in args)
                if kinds not in seen:
                    seen.add(kinds)
                    found.append((name, args, node))
    return tuple(found)


def _built(function: Function, args: Sequence[object]) -> Node | None:
    try:
        return function.build(args)  # type: ignore[arg-type]
    except (Refused, AttributeError, TypeError, ValueError, AssertionError):  # some are called by the reader only
        return None


def apply(name: str, args: Sequence[object]) -> Node:
    """The function with other arguments of the same types."""
    return FUNCTIONS[name].build(args)  # type: ignore[arg-type]


def large(column: Column, size: int) -> Node:
    """An expression of a column's type, with about so many nodes; it may fail where the type has a cast that may."""
    return call("coalesce", (column,) * size, column.dtype)


def truth(node: Node) -> Call:
    """A condition on a value of any type."""
    return call("is not null", (node,), BOOLEAN)

"""Approximate aggregates, where Spark's approximation is one answer and not many.

approx_percentile keeps a summary of ranks whose error is 1/accuracy. A group of fewer than accuracy/2 values (5,000 by
default) has no error at all, in however many parts it was read: the answer is the value of rank ceil(share * count).
Beyond that it depends on how the rows were dealt out, so a larger group raises, with percentile() as the way out.

approx_count_distinct is HyperLogLog++ over the 64 bit hash of the values: the registers are the same whatever the
order. As long as it counts empty registers (up to about two and a half times their number, 1,280 by default) its answer
needs no table of corrections and is given here; beyond that it raises, with count(DISTINCT …) as the way out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from headwater.sql.casts import cast, cast_form
from headwater.sql.functions.aggregate import aggregate_function
from headwater.sql.functions.digest import FUNCTIONS as HASHES
from headwater.sql.functions.function import Apply, Builder, Function
from headwater.sql.nodes import AggregateCall, Call, Literal, Node, Refused, WindowCall
from headwater.sql.operators import cases, is_null
from headwater.sql.types import DOUBLE, INT, LONG, NULL, array_of, family, name_of
from headwater.sql.udfs import Failed, define

__all__ = ["FUNCTIONS"]

_Many = AggregateCall | WindowCall
_ACCURACY = 10_000
_THRESHOLDS = (10, 20, 40, 80, 220, 400, 900, 1800, 3100, 6500, 15500, 20000, 50000, 120000, 350000)
_MASK = 2**64 - 1


def _ranked(values: list[float | None], shares: list[float], accuracy: int) -> list[float] | None:
    # -0.0 is before 0.0, whatever the order in which they come.
    kept = sorted((v for v in values if v is not None), key=lambda v: (math.isnan(v), v, math.copysign(1.0, v)))
    if not kept:
        return None
    if math.floor(2 * (1.0 / accuracy) * len(kept)) > 0:
        raise Failed(f"approx_percentile() of {len(kept)} values, which is no longer exact", "use percentile() instead")
    return [kept[min(len(kept), max(1, math.ceil(share * len(kept)))) - 1] for share in shares]


def _percentile(args: Sequence[Node]) -> Node:
    value, shares, *rest = args
    if family(value.dtype) not in ("integer", "float", "date") or value.dtype == LONG:
        hint = "cast it to int, double or date, or use percentile()"
        raise Refused(f"approx_percentile() of {name_of(value.dtype)}", hint)
    many = pa.types.is_list(shares.dtype)
    given = shares.args if isinstance(shares, Call) and shares.op == "array" else (shares,)
    found = [cast(s, DOUBLE) if isinstance(s, Literal) and family(s.dtype) != "null" else s for s in given]
    numbers = [s.value for s in found if isinstance(s, Literal) and isinstance(s.value, float) and 0 <= s.value <= 1]
    if len(numbers) != len(found) or not numbers:
        raise Refused(
            "approx_percentile() of shares that are no constants from 0 to 1", "write approx_percentile(x, 0.5)"
        )
    accuracy = rest[0].value if rest and isinstance(rest[0], Literal) else _ACCURACY if not rest else None
    if not isinstance(accuracy, int) or isinstance(accuracy, bool) or not 0 < accuracy < 2**31:
        raise Refused("approx_percentile() with an accuracy that is no whole number", "write 10000")
    dtype = array_of(value.dtype) if many else value.dtype
    items = (value, *found, Literal(accuracy, INT))
    return AggregateCall("approx_percentile", items, dtype)


_RANKED = define("approx_percentile", "DOUBLE[] DOUBLE[] INTEGER", array_of(DOUBLE), _ranked)


def _percentile_form(node: _Many, a: list[str], apply: Apply) -> str:
    given, is_date = node.args[0].dtype, family(node.args[0].dtype) == "date"
    number = f"({a[0]} - DATE '1970-01-01')" if is_date else a[0]
    every = apply("list", f"CAST({number} AS DOUBLE)")
    ranks = f"{_RANKED}({every}, [{', '.join(a[1:-1])}], {a[-1]})"

    def back(x: str) -> str:
        if is_date:
            return f"(DATE '1970-01-01' + CAST({x} AS INTEGER))"
        return cast_form(x, DOUBLE, given) if given != DOUBLE else x

    return f"list_transform({ranks}, lambda e: {back('e')})" if pa.types.is_list(node.dtype) else back(f"{ranks}[1]")


def _estimated(hashes: list[int | None], bits: int) -> int:
    registers: dict[int, int] = {}
    for found in hashes:
        if found is None:
            continue
        value = found & _MASK
        rest = ((value << bits) & _MASK) | (1 << (bits - 1))
        rank = 64 - rest.bit_length() + 1
        at = value >> (64 - bits)
        registers[at] = max(registers.get(at, 0), rank)
    size = 1 << bits
    empty = size - len(registers)
    if not registers:
        return 0
    alpha = {4: 0.673, 5: 0.697, 6: 0.709}.get(bits, 0.7213 / (1.0 + 1.079 / size))
    raw = alpha * size * size / (empty + sum(1.0 / (1 << r) for r in registers.values()))
    linear = size * math.log(size / empty) if empty else math.inf
    if empty and ((bits < 19 and linear <= _THRESHOLDS[bits - 4]) or raw <= 2.5 * size):
        return math.floor(linear + 0.5)
    why = "approx_count_distinct() of this many values is corrected by a table"
    raise Failed(why, "use count(DISTINCT …) instead")


_ESTIMATED = define("approx_count_distinct", "BIGINT[] INTEGER", LONG, _estimated)
_HASH: Builder = next(f.build for f in HASHES if f.name == "xxhash64")


def _distinct(args: Sequence[Node]) -> Node:
    value = args[0]
    if family(value.dtype) == "nested" or value.dtype == NULL:
        raise Refused(f"approx_count_distinct() of {name_of(value.dtype)}", "use count(DISTINCT …)")
    error: Any = 0.05
    if len(args) == 2:
        wanted = cast(args[1], DOUBLE) if isinstance(args[1], Literal) else args[1]
        error = wanted.value if isinstance(wanted, Literal) else None
    bits = math.ceil(2.0 * math.log(1.106 / error) / math.log(2.0)) if isinstance(error, float) and error > 0 else 0
    if not 4 <= bits <= 18:
        raise Refused("approx_count_distinct() with this error", "write a constant such as 0.05")
    hashed = cases([(is_null(value), Literal(None, NULL))], _HASH([value]))
    return AggregateCall("approx_count_distinct", (hashed, Literal(bits, INT)), LONG)


def _distinct_form(_: _Many, a: list[str], apply: Apply) -> str:
    return f"coalesce({_ESTIMATED}({apply('list', a[0])}, {a[1]}), 0)"


_EXACT = "up to accuracy/2 values a group, which it raises beyond"
FUNCTIONS: tuple[Function, ...] = (
    aggregate_function("approx_percentile", _percentile, _percentile_form, least=2, most=3, note=_EXACT),
    aggregate_function("percentile_approx", _percentile, _percentile_form, least=2, most=3, note=_EXACT),
    aggregate_function(
        "approx_count_distinct",
        _distinct,
        _distinct_form,
        most=2,
        note="while it counts empty registers (about 1,280 values), and raises beyond",
        empty=0,
    ),
)

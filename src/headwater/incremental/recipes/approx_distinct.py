"""Approximate distinct counts in bounded state, under insertions and deletions: HyperLogLog, as a circuit.

A value's hash says which of ``m`` registers it belongs to, and how rare it is: how many zeros its other bits begin
with. A register holds the rarest it has seen; from the harmonic mean of all registers the number of different values
follows, with a standard error of about ``1.04 / sqrt(m)``. Other engines keep only the registers, and cannot take a
value back. Here a register is the greatest of the ranks of its rows, which is an aggregate like any other: so deletions
are exact, and a key has at most some 60 rows of state a register, however many values there are.

Few values are counted by the registers that are still empty, which is nearly exact.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from headwater.base.errors import InputError, NotFoundError, SchemaError
from headwater.base.spark_text import quoted_name
from headwater.incremental.recipes.aggregates import aggregated
from headwater.incremental.recipes.row_stream import S

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["approx_distinct"]

_LEAST_BITS, _MOST_BITS = 4, 16
_REGISTER, _RANK, _MEAN, _USED = "\0register", "\0rank", "\0mean", "\0used"


def approx_distinct(stream: S, keys: Sequence[str], column: str, *, name: str, error: float) -> S:
    """About how many different values a column has for each key: see `Grouped.approx_distinct`."""
    if column not in stream.columns:
        raise NotFoundError.column(column, stream.columns, where="approx_distinct")
    if name in keys:
        raise SchemaError.duplicate_columns([name])
    bits = _bits(error)
    registers = 1 << bits
    value, hashed = quoted_name(column), f"xxhash64({quoted_name(column)})"
    # The bits behind the register's; the one that is set ends the zeros of a hash that has nothing but zeros there.
    rest = f"(shiftleft({hashed}, {bits}) | {1 << (bits - 1)}L)"
    ranked = stream.select(
        *keys,
        **{
            _REGISTER: f"CASE WHEN {value} IS NULL THEN -1L ELSE shiftrightunsigned({hashed}, {64 - bits}) END",
            _RANK: f"CASE WHEN {value} IS NULL THEN 0 ELSE 65 - length(bin({rest})) END",
        },
    )
    kept = aggregated(ranked, [*keys, _REGISTER], {_RANK: f"max({quoted_name(_RANK)})"})
    there = f"{quoted_name(_REGISTER)} >= 0"
    summed = aggregated(
        kept,
        keys,
        {
            _MEAN: f"coalesce(sum(pow(2D, -{quoted_name(_RANK)})) FILTER (WHERE {there}), 0D)",
            _USED: f"count_if({there})",
        },
    )
    return summed.select(*keys, **{name: _estimate(registers)})


def _bits(error: float) -> int:
    if isinstance(error, bool) or not isinstance(error, int | float) or not 0 < error < 1:
        raise InputError.bad_argument("error", error, "a standard error between 0 and 1, like 0.02")
    bits = math.ceil(2 * math.log2(1.04 / error))
    if bits > _MOST_BITS:
        least = 1.04 / math.sqrt(1 << _MOST_BITS)
        raise InputError.bad_argument("error", error, f"at least {least:.4f}; count(DISTINCT …) is exact")
    return max(bits, _LEAST_BITS)


def _estimate(m: int) -> str:
    """The estimate, from the sum of the registers in use and their number."""
    alpha = {16: 0.673, 32: 0.697, 64: 0.709}.get(m, 0.7213 / (1 + 1.079 / m))
    empty, mean = f"({m} - {quoted_name(_USED)})", quoted_name(_MEAN)
    raw = f"({alpha * m * m!r}D / ({mean} + {empty}))"
    counted = f"({m}D * ln({m}D / {empty}))"
    return f"bigint(round(CASE WHEN {empty} > 0 AND {raw} <= {2.5 * m!r}D THEN {counted} ELSE {raw} END))"

"""CASE and coalesce: each branch is computed for the rows that reach it, and the branches are laid over each other from
the last.

A branch that cannot fail is computed for all rows, which costs less than picking its rows. One that can fail, or goes
through DuckDB, stands in a region of its own: the mask of its rows is put into the frame while it is computed, and
where no row reaches it, it is not computed at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.sql.vectorised.frame import Frame, Step, both, count_true
from headwater.sql.vectorised.vector import (
    Constant,
    Mask,
    Operand,
    Vector,
    arrow_mask,
    dense,
    is_arrow,
    nulls,
    validity,
)

__all__ = ["Branch", "case_step", "coalesce_step"]

Branch = tuple[Step, int | None]
_IF_ELSE = pc.get_function("if_else")


def _computed(frame: Frame, branch: Branch, reached: Mask | None) -> Operand | None:
    """The branch's value for the rows of a mask (None: all that are active), or None if no row reaches it."""
    step, region = branch
    if region is None:
        return step(frame)
    before = frame.active
    mask = both(before, reached)
    if mask is not None and not count_true(mask):
        return None
    frame.active = frame.actives[region] = mask
    found = step(frame)
    frame.active = before
    return found


def _laid(over: Operand, hit: Mask, under: Operand, rows: int) -> Operand:
    """``over`` where ``hit``, else ``under``."""
    dtype = under.dtype
    if is_arrow(dtype):
        given = [pa.scalar(None, dtype) if x.values is None else x.values for x in (over, under)]
        return Vector(dtype, _IF_ELSE.call([arrow_mask(hit), *given]))
    valid: Mask | None = None
    over_null, under_null = (isinstance(x, Constant) and x.values is None for x in (over, under))
    if over_null and under_null:
        return nulls(dtype, rows)
    if over_null or under_null:
        kept, mask = (under, ~hit) if over_null else (over, hit)
        return Vector(dtype, dense(kept, rows).values, both(mask, kept.valid))
    if over.valid is not None or under.valid is not None:
        # hit ? over : under, of masks in which None is all.
        left = hit if over.valid is None else hit & over.valid
        right = ~hit if under.valid is None else under.valid & ~hit
        valid = left | right
    # A constant that no int64 holds would be wrapped around.
    given = [x.values if isinstance(x, Vector) else dense(x, rows).values for x in (over, under)]
    return Vector(dtype, np.where(hit, *given), valid)


def _hits(condition: Operand, rows: int) -> Mask:
    if isinstance(condition, Constant):
        return np.full(rows, bool(condition.values), np.bool_)
    values: Mask = condition.values
    return values if condition.valid is None else values & condition.valid


def case_step(dtype: pa.DataType, branches: Sequence[tuple[Branch, Branch]], default: Branch) -> Step:
    """CASE: pairs of a condition and a value, and the value of all other rows."""
    guarded = [default[1] is not None]
    for condition, value in reversed(branches):
        guarded.append(guarded[-1] or condition[1] is not None or value[1] is not None)
    later = guarded[-2::-1]  # does anything behind this branch have to be guarded?

    def step(frame: Frame) -> Operand:
        left: Mask | None = None
        layers: list[tuple[Operand, Mask]] = []
        under: Operand | None = None
        for (condition, value), more in zip(branches, later, strict=True):
            tested = _computed(frame, condition, left)
            if tested is None:
                break
            hit = _hits(tested, frame.rows)
            over = _computed(frame, value, both(left, hit) if value[1] is not None else None)
            if over is not None:
                layers.append((over, hit))
            if more:
                left = both(left, ~hit)
        else:
            under = _computed(frame, default, left)
        found: Operand = Constant(dtype, None) if under is None else under
        for over, hit in reversed(layers):
            found = _laid(over, hit, found, frame.rows)
        return dense(found, frame.rows)

    return step


def coalesce_step(dtype: pa.DataType, parts: Sequence[Branch]) -> Step:
    """The first value that is not null."""

    def step(frame: Frame) -> Operand:
        layers: list[Operand] = []
        missing: Mask | None = None
        for part in parts:
            found = _computed(frame, part, missing)
            if found is None:
                break
            layers.append(found)
            valid: Any = validity(found)
            if isinstance(found, Constant) and found.values is None:
                continue
            if valid is None:
                break
            missing = both(missing, ~valid)
        result: Operand = Constant(dtype, None)
        for over in reversed(layers):
            valid = validity(over)
            if isinstance(over, Constant):
                result = result if over.values is None else over
            elif valid is None:
                result = over
            else:
                result = _laid(over, valid, result, frame.rows)
        return dense(result, frame.rows)

    return step

"""AND and OR in three values, from left to right: a part that may fail sees only the rows that are not decided before
it.

Two masks say all: the rows for which the condition is certainly true, and those for which it may be (true or null). AND
intersects both, OR unites both; a row is null where the two differ.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headwater.sql.types import BOOLEAN
from headwater.sql.vectorised.frame import Frame, Step, count_true
from headwater.sql.vectorised.vector import Constant, Mask, Operand, Vector

__all__ = ["joined_step"]


def _masks(found: Operand, rows: int) -> tuple[Mask, Mask]:
    if isinstance(found, Constant):
        none, every = np.zeros(rows, np.bool_), np.ones(rows, np.bool_)
        return (none, every) if found.values is None else (every, every) if found.values else (none, none)
    if found.valid is None:
        return found.values, found.values
    return found.values & found.valid, found.values | ~found.valid


def joined_step(op: str, parts: Sequence[tuple[Step, int | None]]) -> Step:
    """``and`` or ``or`` of steps, each with the region it stands in if it has to be guarded."""
    conjunction = op == "and"
    (first, _), *rest = parts

    def step(frame: Frame) -> Operand:
        found = first(frame)
        true, maybe = _masks(found, frame.rows)
        for part, region in rest:
            if region is None:
                found = part(frame)
            else:
                before = frame.active
                # AND goes on where it is not false yet, OR where it is not true yet.
                undecided = maybe if conjunction else ~true
                if before is not None:
                    undecided = undecided & before
                if not count_true(undecided):
                    break
                frame.active = frame.actives[region] = undecided
                found = part(frame)
                frame.active = before
            others = _masks(found, frame.rows)
            if true is maybe and others[0] is others[1]:
                true = maybe = true & others[0] if conjunction else true | others[0]
            elif conjunction:
                true, maybe = true & others[0], maybe & others[1]
            else:
                true, maybe = true | others[0], maybe | others[1]
        return _vector(true, maybe)

    return step


def _vector(true: Mask, maybe: Mask) -> Vector:
    return Vector(BOOLEAN, true) if true is maybe else Vector(BOOLEAN, true, true | ~maybe)

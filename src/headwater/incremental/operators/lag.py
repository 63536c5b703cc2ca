"""Lag and lead: a value of the row some places before, or after, in the order of the group.

A change moves the rows behind it by a place or more, so what it touches is itself and the ``offset`` rows on the other
side; their own neighbours are as many rows again. Outside the group there is the default. Equal rows (weight 2) are
neighbours of each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from headwater.base.errors import InputError
from headwater.incremental.aggregates.aggregation import Values
from headwater.incremental.layout import Layout
from headwater.incremental.operators.cogroup import Groups, Slices
from headwater.incremental.operators.over import Over, gathered
from headwater.incremental.operators.reach import Reach
from headwater.incremental.packing import pack
from headwater.kernels.window_frames import shifted

if TYPE_CHECKING:
    from headwater.incremental.operators.arrange import Arrange

__all__ = ["Lag", "Shift"]


@dataclass(frozen=True, slots=True)
class Shift:
    """One column: that of the row ``offset`` places before (a lead has a negative offset), or ``default``.

    >>> Shift("before", "price", 1)
    Shift(name='before', column='price', offset=1, default=None)
    """

    name: str
    column: str
    offset: int = 1
    default: Any = None


class Lag(Over):
    """lag(column, offset, default) and lead, over an arranged stream."""

    def __init__(
        self,
        source: Arrange,
        shifts: Sequence[Shift],
        *,
        columns: Sequence[tuple[str, str]] | None = None,
        sql: str = "",
    ) -> None:
        layout = source.layout
        fields = []
        self._defaults: list[tuple[np.ndarray, tuple[object, ...]] | None] = []
        for s in shifts:
            field = layout.schema.field(s.column)
            fields.append(pa.field(s.name, field.type, field.nullable or s.default is None))
            self._defaults.append(None if s.default is None else _packed(field.type, s.default))
        self._shifts = tuple(shifts)
        back = max((s.offset for s in shifts), default=0)
        ahead = max((-s.offset for s in shifts), default=0)
        detail = ", ".join(f"{s.name} = {s.column} {-s.offset:+d} or {s.default}" for s in shifts)
        super().__init__(
            source, fields, reach=Reach.rows(back, ahead), columns=columns, label="lag", detail=detail, sql=sql
        )
        self.shown = ", ".join(map(_words, shifts))

    def compute(self, groups: Groups, read: Slices) -> list[Values]:
        found = []
        for shift, default in zip(self._shifts, self._defaults, strict=True):
            which = np.empty(len(groups), dtype=np.int64)
            shifted(groups.offsets, shift.offset, which)
            values = gathered(groups, groups.layout.column(shift.column), which)
            if default is not None:
                outside = which < 0
                values.words[outside] = default[0]
                if values.nulls is not None:
                    values.nulls[outside] = False
            found.append(values)
        if any(d is not None for d in self._defaults):
            groups.owners = (*groups.owners, *(o for d in self._defaults if d is not None for o in d[1]))
        return found


def _packed(dtype: pa.DataType, value: object) -> tuple[np.ndarray, tuple[object, ...]]:
    """The words of one value, and what keeps them."""
    layout = Layout(pa.schema([pa.field("default", dtype)]))
    try:
        array = pa.array([value], type=dtype)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        raise InputError.bad_argument("default", value, f"a value of the column's type, {dtype}") from None
    rows, owners = pack(layout, [array], 1)
    placed = layout.columns[0]
    return rows[0, placed.word : placed.word + placed.words], owners


def _words(s: Shift) -> str:
    rows = f"{abs(s.offset):,} row{'' if abs(s.offset) == 1 else 's'}"
    other = "" if s.default is None else f", else {s.default}"
    return f"{s.name} = {s.column} {rows} {'before' if s.offset >= 0 else 'after'}{other}"

"""Arguments of ordered operators, checked where they are given: columns, lengths of time, frames, numbers of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import pyarrow as pa

from headwater.base.errors import InputError, UnsupportedError
from headwater.base.spans import span
from headwater.timeseries.frames import Frame
from headwater.timeseries.methods.base import Methods, names_of
from headwater.timeseries.node import Ordering
from headwater.timeseries.operators.rolling import row_frame, time_frame
from headwater.timeseries.times import time_field

__all__ = ["Length", "OrderedArguments", "whole_number"]

Length = str | int | timedelta


class OrderedArguments(Methods):
    """What the arguments of ordered methods mean for this stream's columns."""

    def _frame(
        self, ordering: Ordering, size: Length | None, rows: int | None, ahead: Length | None, closed: str | None
    ) -> tuple[Frame, str]:
        if (size is None) == (rows is None):
            raise InputError.bad_argument("size", size, "a length of time, or rows= instead")
        if rows is not None:
            whole_number("rows", rows, at_least=1)
            further = 0 if ahead is None else whole_number("ahead", ahead, at_least=0)
            return row_frame(rows, further, closed or "right"), f"{rows} row(s)"
        assert size is not None
        back = self._length("size", size, ordering)
        further = 0 if ahead is None else self._length("ahead", ahead, ordering, at_least=0)
        return time_frame(back, further, closed or "both"), str(size)

    def _length(self, what: str, length: Length, ordering: Ordering, *, at_least: int = 1) -> int:
        """A length of time in the unit of the time column."""
        found = span(length, time_field(self.schema, ordering.time), what)
        if isinstance(length, bool) or found < at_least:
            raise InputError.bad_argument(what, length, "a length of time of more than nothing")
        return found

    def _columns(self, columns: str | Sequence[str]) -> tuple[str, ...]:
        found = tuple(dict.fromkeys(map(self._column, names_of(columns))))
        if not found:
            raise InputError.bad_argument("columns", columns, "at least one column")
        return found

    def _numbers(self, columns: str | Sequence[str]) -> tuple[str, ...]:
        found = self._columns(columns)
        for name in found:
            kind = self.schema.field(name).type
            if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
                raise UnsupportedError.column_type(name, str(kind), "name a column of numbers, or cast it first")
        return found

    def _renamed(self, names: Sequence[str], suffix: str) -> dict[str, str]:
        new = {f"{name}{suffix}": name for name in names}
        self._new(new)
        return new

    def _new(self, names: Sequence[str] | Mapping[str, str]) -> None:
        """New columns may replace others, but not those that make the series."""
        ordering = self._ordered("this")
        for name in names:
            if name.lower() in {column.lower() for column in ordering.columns}:
                raise InputError.bad_argument("name", name, "another name: this column makes the rows a series")


def whole_number(what: str, value: Any, *, at_least: int | None = None) -> int:
    """A number of rows.

    >>> whole_number("n", 3, at_least=1)
    3
    """
    if isinstance(value, bool) or not isinstance(value, int) or (at_least is not None and value < at_least):
        expected = "a whole number" + (f" of at least {at_least}" if at_least is not None else "")
        raise InputError.bad_argument(what, value, expected)
    return value

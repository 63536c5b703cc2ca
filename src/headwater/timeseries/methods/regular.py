"""Regular times: a stream on a grid, by aggregates (`resample`) or by its values themselves (`interpolate`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, Self

import pyarrow as pa

from headwater.base.errors import InputError
from headwater.sql.functions.catalogue import AGGREGATES
from headwater.timeseries.methods.base import Methods, names_of
from headwater.timeseries.methods.texts import sql_text
from headwater.timeseries.moments import length_in
from headwater.timeseries.node import Ordering
from headwater.timeseries.operators.interpolate import METHODS, Interpolate, Method
from headwater.timeseries.operators.window_laid import LaidWindows
from headwater.timeseries.querying import quoted
from headwater.timeseries.steps import step_in
from headwater.timeseries.windowing import Bounds
from headwater.timeseries.windows import Length, Moment, check_grid

if TYPE_CHECKING:
    from headwater.timeseries.methods.texts import Expression

__all__ = ["RegularMethods"]

_OTHER_NAMES = {"floor": "first", "ceil": "last"}
_OF_ANY = frozenset({"first", "last", "first_value", "last_value", "any_value", "count", "collect_list", "array_agg"})


class RegularMethods(Methods):
    """A stream at regular times."""

    def resample(
        self,
        every: Length,
        how: str | Mapping[str, Expression] = "last",
        *,
        columns: str | Sequence[str] | None = None,
        label: Literal["start", "end"] = "start",
        offset: Length = 0,
        origin: Moment | None = None,
        fill: Method | None = None,
    ) -> Self:
        """One row for each step of time in which a series has rows; with `fill`, for each step from its first to its
        last.

        Parameters
        ----------
        every : str, timedelta or int
            how long a step is; of timestamps and dates also ``"1 month"``, ``"1 quarter"`` or ``"1 year"``, by the
            calendar in UTC
        how : str or dict
            the name of an aggregate (``first`` or ``floor``, ``last`` or ``ceil``, ``min``, ``max``, ``mean``, ``sum``,
            ``median`` …) for all columns, or for each new column an aggregate in SQL or as a Column of PySpark, or its
            name if the column exists
        columns : str or list of str, optional
            which columns, if `how` is one name; without it all columns that are not the order's (for most aggregates:
            all numbers)
        label : {"start", "end"}
            whether the time of a row is the beginning or the end of its step
        offset, origin
            where steps begin, as for `Tumbling`
        fill : {"ffill", "bfill", "linear", "zero", "null"}, optional
            what steps without rows get, and values that are null: see `interpolate`

        Examples
        --------
        >>> from headwater.timeseries.operators.values import Values
        >>> from headwater.timeseries.running.here import run_here
        >>> stream = RegularMethods(Values(pa.table({"t": [1, 4, 32], "v": [1, 2, 5]})), Ordering("t"))
        >>> run_here(stream.resample(10, "mean").plan).to_pydict()
        {'t': [0, 30], 'v': [1.5, 5.0]}
        >>> run_here(stream.resample(10, {"n": "count(*)", "v": "last"}, fill="zero").plan).to_pydict()
        {'t': [0, 10, 20, 30], 'n': [2, 0, 0, 1], 'v': [2, 0, 0, 5]}
        """
        ordering = self._ordered("resample")
        if label not in ("start", "end"):
            raise InputError.bad_argument("label", label, "start or end")
        if fill is not None and fill not in METHODS:
            raise InputError.bad_argument("fill", fill, f"one of {', '.join(METHODS)}")
        if isinstance(how, str):
            texts = {name: self._aggregate(how, name) for name in self._resampled(how, columns)}
        else:
            texts = {name: self._aggregate(sql_text(name, text), name) for name, text in how.items()}
        shown = f"resample to {every}: {', '.join(texts)}"
        found = self._by_time(every, texts, shown, ordering, label=label, offset=offset, origin=origin)
        if fill is None:
            return found
        field = self.schema.field(ordering.time)
        step, shift = step_in(every, field, "every", offset=offset, origin=origin)
        order = Ordering(ordering.time, ordering.by)
        node = Interpolate(found.plan, order, tuple(texts), fill, step, shift, shown=f"fill by {fill}")
        return found._with(node, order)

    def _resampled(self, how: str, columns: str | Sequence[str] | None) -> list[str]:
        if columns is None and _OTHER_NAMES.get(how, how) in _OF_ANY:
            taken = set(self._ordered("resample").columns)
            return [name for name in self.columns if name not in taken]
        return self._measured(columns)

    def _aggregate(self, text: str, name: str) -> str:
        word = _OTHER_NAMES.get(str(text).lower(), str(text).lower())
        if word not in AGGREGATES:
            if text.isidentifier():
                raise InputError.bad_argument("how", text, "an aggregate, like mean, last or `max(price) - min(price)`")
            return text
        return f"{word}({quoted(self._column(name))})"

    def interpolate(
        self,
        every: Length | None = None,
        method: Method = "linear",
        *,
        columns: str | Sequence[str] | None = None,
        offset: Length = 0,
        origin: Moment | None = None,
        limit: Length | None = None,
        flags: bool = False,
    ) -> Self:
        """Values where there are none: on a grid of exact times, or in the rows themselves where they are null.

        Parameters
        ----------
        every : str, timedelta or int, optional
            the step of the grid; its points lie from the first row of a series to its last. Without it rows stay as
            they are, and nulls are filled
        method : {"linear", "ffill", "bfill", "zero", "null"}
            how a value is made where there is no row of exactly that time with one: on the line between the nearest
            ones (a double), from the last one before, from the first one after, 0, or null
        columns : str or list of str, optional
            which columns; without it all numbers, for ``ffill``, ``bfill`` and ``null`` all columns that are not the
            order's
        offset, origin
            where the grid lies, as for `Tumbling`
        limit : str, timedelta or int, optional
            how far away in time a value may be that is taken
        flags : bool
            whether for each column another one, ``<column>_filled``, says which values were filled

        Examples
        --------
        >>> from headwater.timeseries.operators.values import Values
        >>> from headwater.timeseries.running.here import run_here
        >>> stream = RegularMethods(Values(pa.table({"t": [1, 4, 10], "v": [1.0, 4.0, 1.0]})), Ordering("t"))
        >>> run_here(stream.interpolate(3, flags=True).plan).to_pydict()
        {'t': [3, 6, 9], 'v': [3.0, 3.0, 1.5], 'v_filled': [True, True, True]}
        >>> run_here(stream.interpolate(3, "ffill", limit=1).plan).to_pydict()
        {'t': [3, 6, 9], 'v': [None, None, None]}
        """
        ordering = self._ordered("interpolate")
        if method not in METHODS:
            raise InputError.bad_argument("method", method, f"one of {', '.join(METHODS)}")
        field = self.schema.field(ordering.time)
        if columns is None and method in ("ffill", "bfill", "null"):
            taken = set(ordering.columns)
            names = [name for name in self.columns if name not in taken]
        else:
            names = self._measured(columns)
        for name in names:
            if name in ordering.columns:
                raise InputError.bad_argument("columns", name, "columns that do not make the order")
        reach = None if limit is None else length_in(limit, field, "limit")
        if reach is not None and reach < 0:
            raise InputError.bad_argument("limit", limit, "a length that is not negative")
        shown = f"interpolate{'' if every is None else f' every {every}'} by {method}: {', '.join(names)}"
        if every is None:
            node = Interpolate(self.plan, ordering, tuple(names), method, limit=reach, flags=flags, shown=shown)
            return self._with(node, ordering)
        check_grid(every, offset, origin)
        step, shift = step_in(every, field, "every", offset=offset, origin=origin)
        node = Interpolate(self.plan, ordering, tuple(names), method, step, shift, reach, flags, shown)
        return self._with(node, Ordering(ordering.time, ordering.by))

    def _measured(self, columns: str | Sequence[str] | None) -> list[str]:
        """The columns that were named, or all numbers that do not make the order."""
        if columns is not None:
            return [self._column(name) for name in names_of(columns)]
        taken = set(self._ordered("a window").columns)
        found = [f.name for f in self.schema if f.name not in taken and _is_number(f.type)]
        if not found:
            raise InputError.bad_argument("columns", None, "the columns to compute: the stream has no other numbers")
        return found

    def _by_time(
        self,
        every: Length,
        texts: Mapping[str, str],
        shown: str,
        ordering: Ordering,
        *,
        label: str = "start",
        offset: Length = 0,
        origin: Moment | None = None,
    ) -> Self:
        """Tumbling windows whose beginning (or end) is the new time."""
        check_grid(every, offset, origin)
        field = self.schema.field(ordering.time)
        bounds = Bounds(ordering.time, None) if label == "start" else Bounds(None, ordering.time)
        size, shift = step_in(every, field, "every", offset=offset, origin=origin)
        node = LaidWindows(self.plan, ordering, size, size, shift, texts, bounds, shown)
        node.schema  # noqa: B018 - as in agg()
        return self._with(node, Ordering(ordering.time, ordering.by))


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))

"""What a stream says along its series: features of the past, states, spectra, first and last rows,
and objects of the user's own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date, datetime
from typing import Self

import pyarrow as pa

from headwater.base.errors import InputError
from headwater.timeseries.methods.ordered_arguments import OrderedArguments, whole_number
from headwater.timeseries.node import Ordering
from headwater.timeseries.operators.first_rows import FirstRows
from headwater.timeseries.operators.fourier import Fourier
from headwater.timeseries.operators.lookback import Lookback
from headwater.timeseries.operators.rolling import check_closed
from headwater.timeseries.operators.shift import Shift
from headwater.timeseries.operators.state_intervals import NAMES, StateIntervals
from headwater.timeseries.operators.stateful import SeriesTransform, Stateful
from headwater.timeseries.operators.time_filter import TimeFilter, moment
from headwater.timeseries.times import time_field

__all__ = ["AlongMethods", "Moment"]

Moment = str | int | date | datetime


class AlongMethods(OrderedArguments):
    """Methods that go along series."""

    def lookback(
        self,
        columns: str | Sequence[str],
        size: int,
        *,
        name: str = "features",
        exact: bool = False,
        flatten: bool = False,
    ) -> Self:
        """Add the features of the ``size`` rows before each row: a list of lists of numbers, the oldest first.

        Parameters
        ----------
        columns : str or sequence of str
            the features
        size : int
            how many rows to look back
        name : str
            the new column's name
        exact : bool
            leave out rows that have fewer rows before them
        flatten : bool
            add a column for each feature and row instead: ``price_lag_1``, ``price_lag_2``, …

        Examples
        --------
        >>> from headwater.timeseries.methods.ordered import OrderedMethods
        >>> from headwater.timeseries.operators.values import Values
        >>> from headwater.timeseries.running.here import run_here
        >>> prices = OrderedMethods(Values(pa.table({"t": [1, 2, 3], "p": [5, 7, 4]}))).ordered("t")
        >>> run_here(prices.lookback("p", 2).plan)["features"].to_pylist()
        [[], [[5]], [[5], [7]]]
        >>> prices.lookback("p", 2, flatten=True).columns
        ['t', 'p', 'p_lag_1', 'p_lag_2']
        """
        ordering = self._ordered("lookback")
        names = self._numbers(columns)
        whole_number("size", size, at_least=1)
        if not flatten:
            self._new([name])
            node = Lookback(self.plan, ordering, names, size, name, exact)
            assert node.schema is not None
            return self._with(node)
        if exact:
            raise InputError.bad_argument("exact", exact, "no exact= with flatten=: filter by the last of the columns")
        plan = self.plan
        for back in range(1, size + 1):
            plan = Shift(plan, ordering, self._renamed(names, f"_lag_{back}"), back, {})
        return self._with(plan)

    def fourier(self, column: str, step: float = 1.0) -> Self:
        """Add the Fourier transform of each series: ``freq``, ``ft_real`` and ``ft_imag`` of the k-th frequency in its
        k-th row.

        The values are taken as evenly spaced, ``step`` apart; a series with a missing value has no spectrum.

        Examples
        --------
        >>> from headwater.timeseries.methods.ordered import OrderedMethods
        >>> from headwater.timeseries.operators.values import Values
        >>> from headwater.timeseries.running.here import run_here
        >>> waves = OrderedMethods(Values(pa.table({"t": [1, 2], "v": [1.0, -1.0]}))).ordered("t")
        >>> run_here(waves.fourier("v").plan)["ft_real"].to_pylist()
        [0.0, 2.0]
        """
        ordering = self._ordered("fourier")
        (name,) = self._numbers(column)
        if isinstance(step, bool) or not isinstance(step, (int, float)) or not (math.isfinite(step) and step > 0):
            raise InputError.bad_argument("step", step, "the distance between two values, more than nothing")
        node = Fourier(self.plan, ordering, name, float(step))
        self._new(node.names)
        return self._with(node)

    def state_intervals(self, columns: str | Sequence[str]) -> Self:
        """The longest stretches in which columns keep their values: one row each.

        The rows have the series, the state, ``start`` and ``end`` (the times of the first and the last row), ``until``
        (when the next state begins, null for the last one) and ``rows``. They are a series by ``start``.

        Examples
        --------
        >>> from headwater.timeseries.methods.ordered import OrderedMethods
        >>> from headwater.timeseries.operators.values import Values
        >>> from headwater.timeseries.running.here import run_here
        >>> doors = OrderedMethods(Values(pa.table({"t": [1, 2, 5], "open": [True, True, False]}))).ordered("t")
        >>> run_here(doors.state_intervals("open").plan).to_pylist()[0]
        {'open': True, 'start': 1, 'end': 2, 'until': 5, 'rows': 2}
        """
        ordering = self._ordered("state_intervals")
        names = self._columns(columns)
        taken = {name.lower() for name in (*ordering.by, *names)}
        if taken & {*NAMES} or set(names) & {*ordering.by, ordering.time}:
            expected = f"columns that are not of the series, and under other names than {', '.join(NAMES)}"
            raise InputError.bad_argument("columns", list(names), expected)
        return self._with(StateIntervals(self.plan, ordering, names), Ordering("start", ordering.by))

    def earliest(self, n: int = 1) -> Self:
        """The first ``n`` rows of each series.

        Examples
        --------
        >>> from headwater.timeseries.methods.ordered import OrderedMethods
        >>> from headwater.timeseries.operators.values import Values
        >>> from headwater.timeseries.running.here import run_here
        >>> rows = OrderedMethods(Values(pa.table({"t": [3, 1, 2]}))).ordered("t")
        >>> run_here(rows.earliest(2).plan)["t"].to_pylist(), run_here(rows.latest(2).plan)["t"].to_pylist()
        ([1, 2], [2, 3])
        """
        return self._with(FirstRows(self.plan, self._ordered("earliest"), whole_number("n", n, at_least=1)))

    def latest(self, n: int = 1) -> Self:
        """The last ``n`` rows of each series, in order."""
        return self._with(FirstRows(self.plan, self._ordered("latest"), whole_number("n", n, at_least=1), latest=True))

    def before(self, when: Moment, *, inclusive: bool = False) -> Self:
        """The rows before a moment.

        Examples
        --------
        >>> from headwater.timeseries.methods.ordered import OrderedMethods
        >>> from headwater.timeseries.operators.values import Values
        >>> from headwater.timeseries.running.here import run_here
        >>> rows = OrderedMethods(Values(pa.table({"t": [1, 2, 3]}))).ordered("t")
        >>> run_here(rows.before(2).plan)["t"].to_pylist()
        [1]
        >>> run_here(rows.after(2, inclusive=True).plan)["t"].to_pylist()
        [2, 3]
        """
        field = time_field(self.schema, self._ordered("before").time)
        return self._with(TimeFilter(self.plan, field.name, end=moment("when", when, field), with_end=inclusive))

    def after(self, when: Moment, *, inclusive: bool = False) -> Self:
        """The rows after a moment."""
        field = time_field(self.schema, self._ordered("after").time)
        return self._with(TimeFilter(self.plan, field.name, moment("when", when, field), with_start=inclusive))

    def between(self, start: Moment, end: Moment, *, closed: str = "both") -> Self:
        """The rows from one moment to another; ``closed`` says which of them belong to it.

        Examples
        --------
        >>> from headwater.timeseries.methods.ordered import OrderedMethods
        >>> from headwater.timeseries.operators.values import Values
        >>> from headwater.timeseries.running.here import run_here
        >>> rows = OrderedMethods(Values(pa.table({"t": [1, 2, 3]}))).ordered("t")
        >>> run_here(rows.between(1, 3, closed="left").plan)["t"].to_pylist()
        [1, 2]
        """
        field = time_field(self.schema, self._ordered("between").time)
        check_closed(closed)
        node = TimeFilter(
            self.plan,
            field.name,
            moment("start", start, field),
            moment("end", end, field),
            closed in ("both", "left"),
            closed in ("both", "right"),
        )
        return self._with(node)

    def stateful_transform(self, transform: SeriesTransform, schema: pa.Schema, *, batch_rows: int = 65_536) -> Self:
        """Let an object of yours go along each series, in order and in batches.

        Parameters
        ----------
        transform : object
            with ``start(key) -> state``, ``step(state, batch) -> table or None`` and ``finish(state) -> table or
            None``; it goes to the tasks
        schema : pa.Schema
            names and types of the rows it gives
        batch_rows : int
            how many rows a batch has; only the last one of a series has fewer

        Examples
        --------
        >>> from headwater.timeseries.methods.ordered import OrderedMethods
        >>> from headwater.timeseries.operators.values import Values
        >>> from headwater.timeseries.running.here import run_here
        >>> class Last:
        ...     def start(self, key):
        ...         return {}
        ...     def step(self, state, batch):
        ...         state["last"] = batch.slice(batch.num_rows - 1)
        ...     def finish(self, state):
        ...         return state["last"]
        >>> rows = OrderedMethods(Values(pa.table({"t": [3, 1, 2]}))).ordered("t")
        >>> run_here(rows.stateful_transform(Last(), rows.schema).plan).to_pylist()
        [{'t': 3}]
        """
        ordering = self._ordered("stateful_transform")
        for method in ("start", "step", "finish"):
            if not callable(getattr(transform, method, None)):
                raise InputError.bad_argument(
                    "transform", type(transform).__name__, f"an object with a method {method}"
                )
        if not isinstance(schema, pa.Schema):
            raise InputError.bad_argument("schema", schema, "a pyarrow schema")
        whole_number("batch_rows", batch_rows, at_least=1)
        return self._with(Stateful(self.plan, ordering, transform, schema, batch_rows))

"""Statistics of many columns of a stream, each in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from headwater.base.errors import InputError
from headwater.timeseries.methods.base import Methods, names_of
from headwater.timeseries.methods.checking import checked
from headwater.timeseries.node import Ordering
from headwater.timeseries.operators.comoments import Products
from headwater.timeseries.operators.describe import Describe
from headwater.timeseries.operators.describe_series import SERIES_NAMES, DescribeSeries
from headwater.timeseries.operators.narrow import Project
from headwater.timeseries.operators.quantiles import PROBABILITY, Quantiles
from headwater.timeseries.quantile_words import is_number
from headwater.timeseries.querying import quoted
from headwater.timeseries.reading import new_names
from headwater.timeseries.times import time_field

__all__ = ["StatisticsMethods"]


class StatisticsMethods(Methods):
    """What can be said of the values of columns."""

    def quantiles(
        self,
        columns: str | Sequence[str] | None = None,
        *,
        probabilities: float | Sequence[float] = (0.25, 0.5, 0.75),
        error: float = 0.01,
    ) -> Self:
        """Quantiles of many columns in one pass: a row for each probability.

        A value that is given for probability p of n values has a rank within ``error * n`` of ``p * n``, always, and
        for a few thousand values it is exact; so are the ones for 0 and 1. Values are ones that occur, in the column's
        type. Null and NaN are left out.

        Parameters
        ----------
        columns
            numbers, dates and times; None for all columns of numbers
        probabilities
            between 0 and 1
        error
            how far a rank may be off, as a share of the values; 0 keeps all values, and is exact

        >>> import pyarrow as pa
        >>> from headwater.timeseries.operators.values import Values
        >>> from headwater.timeseries.running.here import run_here
        >>> prices = StatisticsMethods(Values(pa.table({"p": [1.0, 2.0, 3.0, 4.0]})))
        >>> run_here(prices.quantiles("p", probabilities=[0.5, 1]).plan).to_pylist()
        [{'probability': 0.5, 'p': 2.0}, {'probability': 1.0, 'p': 4.0}]
        """
        given = (probabilities,) if isinstance(probabilities, int | float) else tuple(probabilities)
        if not given or not all(isinstance(p, int | float) and 0 <= p <= 1 for p in given):
            raise InputError.bad_argument("probabilities", probabilities, "numbers between 0 and 1")
        names = self._number_columns(columns)
        new_names([PROBABILITY], names, "columns")
        return self._with(checked(Quantiles(self.plan, names, tuple(map(float, given)), _error(error))))

    def median(self, columns: str | Sequence[str] | None = None, *, error: float = 0.01) -> Self:
        """The median of each column, in one row: as `quantiles`, for 0.5.

        >>> import pyarrow as pa
        >>> from headwater.timeseries.operators.values import Values
        >>> from headwater.timeseries.running.here import run_here
        >>> run_here(StatisticsMethods(Values(pa.table({"p": [1, 5, 2]}))).median().plan).to_pylist()
        [{'p': 2}]
        """
        found = self.quantiles(columns, probabilities=0.5, error=error)
        kept = {name: quoted(name) for name in found.columns if name != PROBABILITY}
        return found._with(checked(Project(found.plan, kept, "median")))

    def describe(self, columns: str | Sequence[str] | None = None, *, error: float = 0.01) -> Self:
        """A row about each column: values, nulls, NaN; of numbers mean, standard deviation, extremes and quartiles.

        Of dates and timestamps there are the ``first`` and the ``last``, as text. The row of the stream's time also
        says how many ``series`` there are, and how many rows the smallest and the largest of them have
        (``fewest_rows``, ``most_rows``). `describe_series` says it of each series.

        >>> import pyarrow as pa
        >>> from headwater.timeseries.operators.values import Values
        >>> from headwater.timeseries.running.here import run_here
        >>> found = StatisticsMethods(Values(pa.table({"p": [1, 5, None]}))).describe()
        >>> [(r["column"], r["count"], r["nulls"], r["mean"]) for r in run_here(found.plan).to_pylist()]
        [('p', 2, 1, 3.0)]
        >>> rows = pa.table({"s": ["a", "b", "a"], "t": pa.array([0, 1, 2], pa.date32())})
        >>> found = StatisticsMethods(Values(rows), Ordering("t", ("s",))).describe("t")
        >>> [(r["first"], r["last"], r["series"], r["most_rows"]) for r in run_here(found.plan).to_pylist()]
        [('1970-01-01', '1970-01-03', 2, 2)]
        """
        names = self.columns if columns is None else [self._column(name) for name in names_of(columns)]
        return self._with(checked(Describe(self.plan, tuple(names), _error(error), self.ordering)))

    def describe_series(self) -> Self:
        """A row about each series: its rows, its first and last time, and its shortest and longest gap.

        A gap is the time between a row and the one before it; a series of one row has none. They are durations, of
        dates days and of whole numbers the difference.

        >>> import pyarrow as pa
        >>> from headwater.timeseries.operators.values import Values
        >>> from headwater.timeseries.running.here import run_here
        >>> stream = StatisticsMethods(Values(pa.table({"s": ["a", "a", "a"], "t": [1, 2, 9]})), Ordering("t", ("s",)))
        >>> run_here(stream.describe_series().plan).to_pylist()
        [{'s': 'a', 'rows': 3, 'first': 1, 'last': 9, 'shortest_gap': 1, 'longest_gap': 7}]
        """
        ordering = self._ordered("describe_series")
        time_field(self.schema, ordering.time)
        new_names(SERIES_NAMES, ordering.by, "by")
        return self._with(checked(DescribeSeries(self.plan, ordering)), Ordering("first", ordering.by))

    def gramian(self, columns: str | Sequence[str] | None = None) -> Self:
        """The sums of products of all pairs of columns: a row and a column for each of them.

        >>> import pyarrow as pa
        >>> from headwater.timeseries.operators.values import Values
        >>> from headwater.timeseries.running.here import run_here
        >>> rows = StatisticsMethods(Values(pa.table({"a": [1, 2], "b": [3, 4]})))
        >>> run_here(rows.gramian().plan).to_pylist()
        [{'column': 'a', 'a': 5.0, 'b': 11.0}, {'column': 'b', 'a': 11.0, 'b': 25.0}]
        """
        return self._products("gramian", columns, 0)

    def covariance(self, columns: str | Sequence[str] | None = None, *, ddof: int = 1) -> Self:
        """The covariances of all pairs of columns, of a sample (``ddof=1``) or of all there is (``ddof=0``).

        A row counts for a pair if both columns have a value; null where there are not enough of them.
        """
        if ddof not in {0, 1}:
            raise InputError.bad_argument("ddof", ddof, "1 for a sample, 0 for a population")
        return self._products("covariance", columns, ddof)

    def correlation(self, columns: str | Sequence[str] | None = None) -> Self:
        """Pearson's correlation of all pairs of columns; NaN with a column that has one value only."""
        return self._products("correlation", columns, 1)

    def _products(self, kind: str, columns: str | Sequence[str] | None, ddof: int) -> Self:
        names = self._number_columns(columns)
        new_names(["column"], names, "columns")
        return self._with(checked(Products(self.plan, names, kind, ddof)))

    def _number_columns(self, columns: str | Sequence[str] | None) -> tuple[str, ...]:
        if columns is not None:
            found = tuple(dict.fromkeys(self._column(name) for name in names_of(columns)))
        else:
            found = tuple(f.name for f in self.schema if is_number(f.type))
        if not found:
            raise InputError.bad_argument("columns", columns, "at least one column of numbers")
        return found


def _error(error: float) -> float:
    if not isinstance(error, int | float) or not 0 <= error < 1:
        raise InputError.bad_argument("error", error, "a share between 0 and 1, like 0.01")
    return float(error)

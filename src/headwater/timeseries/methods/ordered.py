"""What a stream says of rows in their order: neighbours, running and rolling values, averages, states, first and last
rows.

Everything here goes by series: rows that agree in the stream's ``by`` columns, ordered by its ``time`` and
``tiebreak``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from headwater.base.errors import InputError, UnsupportedError
from headwater.timeseries.frames import Frame
from headwater.timeseries.methods.along import AlongMethods
from headwater.timeseries.methods.base import names_of
from headwater.timeseries.methods.ordered_arguments import Length, whole_number
from headwater.timeseries.methods.texts import named_texts
from headwater.timeseries.node import Ordering
from headwater.timeseries.operators.cumulative import cumulative_node
from headwater.timeseries.operators.diff import can_differ, difference_node
from headwater.timeseries.operators.ema import Decay, Ema
from headwater.timeseries.operators.rolling import rolling_node
from headwater.timeseries.operators.shift import Shift
from headwater.timeseries.operators.vwap import Vwap, VwapWindows
from headwater.timeseries.operators.zscore import zscore_node
from headwater.timeseries.steps import step_in
from headwater.timeseries.times import time_field
from headwater.timeseries.windows import check_grid

if TYPE_CHECKING:
    from headwater.timeseries.methods.texts import Expression, Named

__all__ = ["OrderedMethods"]


class OrderedMethods(AlongMethods):
    """Methods of rows in order."""

    def ordered(self, time: str, *, by: str | Sequence[str] = (), tiebreak: str | Sequence[str] = ()) -> Self:
        """Say what makes the rows a series.

        Parameters
        ----------
        time : str
            a timestamp, a date or a whole number
        by : str or sequence of str
            what tells one series from another; without it all rows are one
        tiebreak : str or sequence of str
            what decides between rows of the same time

        Examples
        --------
        >>> from headwater.timeseries.operators.values import Values
        >>> stream = OrderedMethods(Values(pa.table({"ts": [1], "symbol": ["a"], "seq": [1]})))
        >>> stream.ordered("ts", by="symbol", tiebreak="seq").ordering
        Ordering(time='ts', by=('symbol',), tiebreak=('seq',))
        """
        found = Ordering(
            self._column(time),
            tuple(map(self._column, names_of(by))),
            tuple(map(self._column, names_of(tiebreak))),
        )
        time_field(self.schema, found.time)
        if len(set(found.columns)) < len(found.columns):
            raise InputError.bad_argument("by", list(found.columns), "each column once")
        return self._with(self.plan, found)

    def shift(self, columns: str | Sequence[str], n: int = 1, *, fill: Any = None, suffix: str | None = None) -> Self:
        """Add columns as they were ``n`` rows before in the series.

        Parameters
        ----------
        columns : str or sequence of str
            what to shift
        n : int
            how many rows back; forward, if negative
        fill : value, or mapping of values by column, optional
            what stands where there is no such row, instead of null
        suffix : str, optional
            what the new names end with: ``_lag_1``, ``_lead_1`` by default; ``""`` puts them in the columns' places

        Examples
        --------
        >>> from headwater.timeseries.operators.values import Values
        >>> from headwater.timeseries.running.here import run_here
        >>> prices = OrderedMethods(Values(pa.table({"t": [1, 2], "p": [5, 7]}))).ordered("t")
        >>> run_here(prices.shift("p", fill=0).plan).to_pylist()
        [{'t': 1, 'p': 5, 'p_lag_1': 0}, {'t': 2, 'p': 7, 'p_lag_1': 5}]
        """
        ordering = self._ordered("shift")
        whole_number("n", n)
        names = self._columns(columns)
        fills = fill if isinstance(fill, Mapping) else dict.fromkeys(names, fill)
        fills = {self._column(name): value for name, value in fills.items()}
        for name, value in fills.items():
            kind = self.schema.field(name).type
            try:
                pa.scalar(value, kind)
            except (pa.ArrowException, TypeError, ValueError, OverflowError):
                raise InputError.bad_argument("fill", value, f"a value of `{name}`, which is {kind}") from None
        end = suffix if suffix is not None else f"_lag_{n}" if n >= 0 else f"_lead_{-n}"
        return self._with(Shift(self.plan, ordering, self._renamed(names, end), n, fills))

    def diff(self, columns: str | Sequence[str], n: int = 1, *, suffix: str = "_diff") -> Self:
        """Add how much columns have changed since ``n`` rows before; of times, a duration.

        Examples
        --------
        >>> from headwater.timeseries.operators.values import Values
        >>> from headwater.timeseries.running.here import run_here
        >>> prices = OrderedMethods(Values(pa.table({"t": [1, 2], "p": [5, 7]}))).ordered("t")
        >>> run_here(prices.diff("p").plan)["p_diff"].to_pylist()
        [None, 2]
        """
        ordering = self._ordered("diff")
        whole_number("n", n)
        names = self._columns(columns)
        for name in names:
            if not can_differ(self.schema.field(name).type):
                hint = "differences are of numbers, dates and timestamps"
                raise UnsupportedError.column_type(name, str(self.schema.field(name).type), hint)
        return self._with(difference_node(self.plan, ordering, self._renamed(names, suffix), n))

    def cumulative(self, *columns: Named | None, **more: Expression) -> Self:
        """Add aggregates of each row and all before it in its series: any of Spark SQL's, and ``product(column)``.

        Plain ones (``sum``, ``count``, ``min``, ``max``, ``avg``, ``product``, ``stddev`` and ``variance`` of a number)
        hold nothing but a state; others have a series in memory at once.

        Examples
        --------
        >>> from headwater.timeseries.operators.values import Values
        >>> from headwater.timeseries.running.here import run_here
        >>> trades = OrderedMethods(Values(pa.table({"t": [1, 2], "size": [5, 7]}))).ordered("t")
        >>> run_here(trades.cumulative(volume="sum(size)").plan)["volume"].to_pylist()
        [5, 12]
        """
        ordering = self._ordered("cumulative")
        texts = named_texts(columns, more)
        self._new(texts)
        return self._with(_typed(cumulative_node(self.plan, ordering, texts)))

    def rolling(
        self,
        size: Length | None = None,
        columns: Named | None = None,
        *,
        rows: int | None = None,
        ahead: Length | None = None,
        closed: str | None = None,
        min_periods: int = 0,
        **more: Expression,
    ) -> Self:
        """Add aggregates of the rows around each row: any of Spark SQL's.

        Parameters
        ----------
        size : length of time
            how far back: ``"10s"``, a timedelta, or a number for whole times
        columns : mapping of str to str or Column, or a Column with an alias
            aggregates by the names they get; as keywords too
        rows : int
            instead of ``size``, how many rows, with the row itself
        ahead : length of time, or int with ``rows``
            how far forward
        closed : {"both", "right", "left", "neither"}
            which ends belong to the frame: of time ``both``, as in Spark; of rows ``right``, the row itself being the
            last
        min_periods : int
            give null where fewer rows of the frame have all that the aggregate reads

        Examples
        --------
        >>> from headwater.timeseries.operators.values import Values
        >>> from headwater.timeseries.running.here import run_here
        >>> trades = OrderedMethods(Values(pa.table({"t": [1, 2, 9], "p": [5, 7, 4]}))).ordered("t")
        >>> run_here(trades.rolling(5, high="max(p)").plan)["high"].to_pylist()
        [5, 7, 4]
        >>> run_here(trades.rolling(rows=2, mean="avg(p)").plan)["mean"].to_pylist()
        [5.0, 6.0, 5.5]
        """
        ordering = self._ordered("rolling")
        texts = named_texts([columns], more)
        self._new(texts)
        frame, shown = self._frame(ordering, size, rows, ahead, closed)
        least = whole_number("min_periods", min_periods, at_least=0)
        shown = f"rolling {', '.join(texts.values())} over {shown}"
        return self._with(_typed(rolling_node(self.plan, ordering, texts, frame=frame, least=least, shown=shown)))

    def ema(
        self,
        columns: str | Sequence[str],
        *,
        alpha: float | None = None,
        span_rows: float | None = None,
        half_life_rows: float | None = None,
        half_life: Length | None = None,
        adjust: bool = False,
        nulls: str = "skip",
        suffix: str = "_ema",
    ) -> Self:
        """Add exponential averages, by true recursion over the whole series.

        Exactly one of ``alpha`` (the weight of a new row), ``span_rows`` (``alpha = 2 / (span + 1)``),
        ``half_life_rows`` and ``half_life`` is given. A ``half_life`` is a length of time: the past loses its weight by
        the distance of rows, however they are spaced.

        Parameters
        ----------
        adjust : bool
            divide by the weights there are: the weighted mean of all rows so far
        nulls : {"skip", "age"}
            whether a row without a value counts as one that has passed
        suffix : str
            what the new names end with

        Examples
        --------
        >>> from headwater.timeseries.operators.values import Values
        >>> from headwater.timeseries.running.here import run_here
        >>> prices = OrderedMethods(Values(pa.table({"t": [0, 10, 30], "p": [8.0, 4.0, 0.0]}))).ordered("t")
        >>> run_here(prices.ema("p", alpha=0.5).plan)["p_ema"].to_pylist()
        [8.0, 6.0, 3.0]
        >>> run_here(prices.ema("p", half_life=10).plan)["p_ema"].to_pylist()
        [8.0, 6.0, 1.5]
        """
        ordering = self._ordered("ema")
        names = self._numbers(columns)
        given = {"alpha": alpha, "span_rows": span_rows, "half_life_rows": half_life_rows, "half_life": half_life}
        named = [name for name, value in given.items() if value is not None]
        if len(named) != 1:
            raise InputError.bad_argument("alpha", alpha, f"one of {', '.join(given)}; found {len(named)} of them")
        for name in named:
            if name != "half_life" and (isinstance(given[name], bool) or not isinstance(given[name], Real)):
                raise InputError.bad_argument(name, given[name], "a number")
        if nulls not in ("skip", "age"):
            raise InputError.bad_argument("nulls", nulls, "skip or age")
        if half_life is not None and adjust:
            raise InputError.bad_argument("adjust", adjust, "no adjust= with a half-life in time")
        life = 0 if half_life is None else self._length("half_life", half_life, ordering)
        weight = 0.0 if life else _weight(alpha, span_rows, half_life_rows)
        if not life and not 0.0 < weight <= 1.0:
            raise InputError.bad_argument(
                named[0], given[named[0]], "0 < alpha <= 1, span_rows >= 1, half_life_rows > 0"
            )
        how = ", ".join(f"{name} {value}" for name, value in given.items() if value is not None)
        decay = Decay(weight, life, adjust, nulls == "skip")
        return self._with(
            Ema(self.plan, ordering, self._renamed(names, suffix), decay, f"ema of {', '.join(names)}, {how}")
        )

    def zscore(
        self,
        columns: str | Sequence[str],
        size: Length | None = None,
        *,
        rows: int | None = None,
        closed: str | None = None,
        min_periods: int = 0,
        suffix: str = "_zscore",
    ) -> Self:
        """Add how many standard deviations columns are away from the mean, of the rows around (as `rolling`) or of the
        whole series.

        Examples
        --------
        >>> from headwater.timeseries.operators.values import Values
        >>> from headwater.timeseries.running.here import run_here
        >>> prices = OrderedMethods(Values(pa.table({"t": [1, 2, 3], "p": [1.0, 2.0, 3.0]}))).ordered("t")
        >>> run_here(prices.zscore("p").plan)["p_zscore"].to_pylist()
        [-1.0, 0.0, 1.0]
        """
        ordering = self._ordered("zscore")
        names = self._numbers(columns)
        frame, shown = Frame(None, None), "the series"
        if size is not None or rows is not None:
            frame, shown = self._frame(ordering, size, rows, None, closed)
        least = whole_number("min_periods", min_periods, at_least=0)
        new = self._renamed(names, suffix)
        shown = f"zscore of {', '.join(names)} over {shown}"
        return self._with(zscore_node(self.plan, ordering, new, frame=frame, least=least, shown=shown))

    def vwap(
        self,
        price: str,
        volume: str,
        *,
        size: Length | None = None,
        rows: int | None = None,
        every: Length | None = None,
        name: str = "vwap",
    ) -> Self:
        """Add the volume-weighted average price: of the series so far, or of the last ``size`` of time or ``rows``.

        With ``every`` there is one row for each series and window of time instead: its start, ``vwap``, ``volume`` and
        ``value``.

        Examples
        --------
        >>> from headwater.timeseries.operators.values import Values
        >>> from headwater.timeseries.running.here import run_here
        >>> trades = OrderedMethods(Values(pa.table({"t": [1, 2], "p": [10.0, 13.0], "v": [1, 2]}))).ordered("t")
        >>> run_here(trades.vwap("p", "v").plan)["vwap"].to_pylist()
        [10.0, 12.0]
        """
        ordering = self._ordered("vwap")
        (paid,), (bought,) = self._numbers(price), self._numbers(volume)
        if every is None:
            self._new([name])
            frame = None if size is None and rows is None else self._frame(ordering, size, rows, None, None)[0]
            return self._with(Vwap(self.plan, ordering, paid, bought, name, frame))
        if size is not None or rows is not None:
            raise InputError.bad_argument("every", every, "one of every=, size= and rows=")
        taken = {"vwap", "volume", "value"} & {*ordering.by, ordering.time}
        if taken:
            raise InputError.bad_argument(
                "by", sorted(taken), "series and times under other names than vwap, volume, value"
            )
        check_grid(every, 0, None)
        step, _ = step_in(every, time_field(self.schema, ordering.time), "every")
        node = VwapWindows(self.plan, ordering, paid, bought, step)
        return self._with(node, Ordering(ordering.time, ordering.by))


def _typed(node: Any) -> Any:
    """The node, once its texts have been read: a mistake in one is told here, not in a task."""
    assert node.schema is not None
    return node


def _weight(alpha: float | None, span_rows: float | None, half_life_rows: float | None) -> float:
    """The weight of a new row."""
    if half_life_rows is not None:
        return 1.0 - math.exp2(-1.0 / half_life_rows) if half_life_rows > 0 else math.nan
    if span_rows is not None:
        return 2.0 / (span_rows + 1.0) if span_rows >= 1 else math.nan
    assert alpha is not None
    return float(alpha)

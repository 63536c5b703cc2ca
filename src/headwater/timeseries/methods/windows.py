"""Windows of a stream: aggregates over them, bars and statistics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Generic, Self, TypeVar

from headwater.base.errors import InputError, UnsupportedError
from headwater.timeseries.methods.base import names_of
from headwater.timeseries.methods.regular import RegularMethods
from headwater.timeseries.methods.texts import named_texts
from headwater.timeseries.moments import length_in
from headwater.timeseries.node import Node, Ordering
from headwater.timeseries.operators.window_laid import LaidWindows
from headwater.timeseries.operators.window_rows import RowWindows
from headwater.timeseries.operators.window_running import RunningWindows
from headwater.timeseries.operators.window_session import SessionWindows
from headwater.timeseries.operators.window_sliding import SlidingWindows
from headwater.timeseries.querying import quoted
from headwater.timeseries.steps import hop_in, tumble_in
from headwater.timeseries.windowing import Bounds
from headwater.timeseries.windows import (
    Hopping,
    Length,
    Moment,
    OnCompletion,
    OnEvent,
    Rows,
    Session,
    Sliding,
    Trigger,
    Tumbling,
    Window,
)

if TYPE_CHECKING:
    from headwater.timeseries.methods.texts import Expression, Named

__all__ = ["WindowMethods", "Windowed"]

S = TypeVar("S", bound="WindowMethods")

_STATISTICS = {
    "mean": "avg({0})",
    "count": "count({0})",
    "min": "min({0})",
    "max": "max({0})",
    "sum": "sum({0})",
    "stddev": "stddev({0})",
}
_ZSCORE = "({0} - avg({0})) / nullif(stddev({0}), 0)"


class Windowed(Generic[S]):
    """A stream with a window, to be aggregated. Made by `WindowMethods.window`."""

    def __init__(self, stream: S, window: Window, trigger: Trigger | None) -> None:
        self._stream, self._window, self._trigger = stream, window, trigger

    def agg(self, *columns: Named | None, **named: Expression) -> S:
        """Aggregates of each window, by the names of their columns, in Spark SQL or as Columns of PySpark.

        Windows that rows fall into (tumbling, hopping, sessions) give one row each: the series' columns,
        ``window_start``, ``window_end``, and the aggregates. Windows that rows have of their own (sliding, rows), and
        all with `OnEvent`, give the rows with the aggregates beside them.

        ``first``, ``last``, ``any_value`` and ``collect_list`` go by the order of the series. Sums of doubles may
        differ from Spark's in their last digits; everything else is equal.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from headwater.timeseries.operators.values import Values
        >>> from headwater.timeseries.running.here import run_here
        >>> rows = pa.table({"t": [1, 4, 12], "p": [5, 7, 6]})
        >>> stream = WindowMethods(Values(rows), Ordering("t"))
        >>> bars = stream.window(Tumbling(10)).agg(open="first(p)", spread="max(p) - min(p)")
        >>> run_here(bars.plan).to_pylist()[0]
        {'window_start': 0, 'window_end': 10, 'open': 5, 'spread': 2}
        >>> near = stream.window(Sliding(3)).agg(n="count(*)")
        >>> run_here(near.plan)["n"].to_pylist()
        [1, 2, 1]
        """
        stream, texts = self._stream, named_texts(columns, named)
        ordering = stream._ordered("a window")
        node = _node(stream.plan, ordering, self._window, self._trigger, texts)
        node.schema  # noqa: B018 - what is wrong with the texts is said here, and not when it runs
        if "window_start" in node.schema.names and "window_start" not in stream.columns and self._one_each:
            return stream._with(node, Ordering("window_start", ordering.by))
        return stream._with(node)

    @property
    def _one_each(self) -> bool:
        return isinstance(self._window, Tumbling | Hopping | Session) and not isinstance(self._trigger, OnEvent)


class WindowMethods(RegularMethods):
    """Aggregates over windows."""

    def window(self, window: Window, *, trigger: Trigger | None = None) -> Windowed[Self]:
        """Look at rows through windows; ``agg()`` of what it gives says what to compute.

        Parameters
        ----------
        window : Tumbling, Hopping, Session, Sliding or Rows
        trigger : OnCompletion or OnEvent, optional
            for windows that rows fall into: one row for each window (the default), or the value so far beside each row

        Examples
        --------
        >>> import pyarrow as pa
        >>> from headwater.timeseries.operators.values import Values
        >>> from headwater.timeseries.running.here import run_here
        >>> stream = WindowMethods(Values(pa.table({"t": [1, 4, 12], "v": [1, 2, 3]})), Ordering("t"))
        >>> so_far = stream.window(Session(5), trigger=OnEvent()).agg(total="sum(v)")
        >>> run_here(so_far.plan).select(["t", "window_start", "total"]).to_pydict()
        {'t': [1, 4, 12], 'window_start': [1, 1, 12], 'total': [1, 3, 3]}
        """
        if not isinstance(window, Tumbling | Hopping | Session | Sliding | Rows):
            raise InputError.bad_argument("window", window, "Tumbling, Hopping, Session, Sliding or Rows")
        if trigger is not None and not isinstance(trigger, OnCompletion | OnEvent):
            raise InputError.bad_argument("trigger", trigger, "OnCompletion(…) or OnEvent()")
        self._ordered("a window")
        return Windowed(self, window, trigger)

    def bars(
        self,
        every: Length,
        *,
        price: str | Sequence[str] = "price",
        size: str | None = None,
        offset: Length = 0,
        origin: Moment | None = None,
    ) -> Self:
        """Open, high, low, close and count of prices in windows of time; with a size, volume and vwap too.

        The time column is the beginning of the window. Prices that are null are left out. Several prices get columns
        like ``open_bid``.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from headwater.timeseries.operators.values import Values
        >>> from headwater.timeseries.running.here import run_here
        >>> rows = pa.table({"t": [1, 4, 12], "price": [5.0, 7.0, 6.0], "size": [1, 3, 2]})
        >>> bars = WindowMethods(Values(rows), Ordering("t")).bars(10, size="size")
        >>> run_here(bars.plan).to_pylist()[0]
        {'t': 0, 'open': 5.0, 'high': 7.0, 'low': 5.0, 'close': 7.0, 'count': 2, 'volume': 4, 'vwap': 6.5}
        """
        ordering = self._ordered("bars")
        prices = [self._column(name) for name in names_of(price)]
        texts: dict[str, str] = {}
        for name in prices:
            p, suffix = quoted(name), f"_{name}" if len(prices) > 1 else ""
            texts |= {
                f"open{suffix}": f"first({p}, true)",
                f"high{suffix}": f"max({p})",
                f"low{suffix}": f"min({p})",
                f"close{suffix}": f"last({p}, true)",
                f"count{suffix}": f"count({p})",
            }
            if size is not None:
                s = quoted(self._column(size))
                traded = f"sum(CASE WHEN {p} IS NOT NULL THEN {s} END)"
                texts |= {f"volume{suffix}": traded, f"vwap{suffix}": f"sum({p} * {s}) / nullif({traded}, 0)"}
        return self._by_time(every, texts, f"bars of {every}", ordering, offset=offset, origin=origin)

    def range_stats(self, before: Length, *, columns: str | Sequence[str] | None = None) -> Self:
        """Beside each row the statistics of the rows of its series within a length of time before it, itself among
        them.

        For each column ``mean_``, ``count_``, ``min_``, ``max_``, ``sum_``, ``stddev_`` and ``zscore_``: how many
        standard deviations the row is from the mean, null where there is none.

        Parameters
        ----------
        before : str, timedelta or int
            how far back a row looks
        columns : str or list of str, optional
            all numbers, unless given

        Examples
        --------
        >>> import pyarrow as pa
        >>> from headwater.timeseries.operators.values import Values
        >>> from headwater.timeseries.running.here import run_here
        >>> stream = WindowMethods(Values(pa.table({"t": [1, 4, 12], "v": [1, 3, 3]})), Ordering("t"))
        >>> run_here(stream.range_stats(5).plan).select(["mean_v", "count_v"]).to_pydict()
        {'mean_v': [1.0, 2.0, 3.0], 'count_v': [1, 2, 1]}
        """
        texts = self._statistics(columns, {**_STATISTICS, "zscore": _ZSCORE})
        return self.window(Sliding(before)).agg(texts)

    def grouped_stats(
        self,
        every: Length,
        *,
        columns: str | Sequence[str] | None = None,
        offset: Length = 0,
        origin: Moment | None = None,
    ) -> Self:
        """The statistics of windows of one length: ``mean_``, ``count_``, ``min_``, ``max_``, ``sum_`` and ``stddev_``
        of each column.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from headwater.timeseries.operators.values import Values
        >>> from headwater.timeseries.running.here import run_here
        >>> stream = WindowMethods(Values(pa.table({"t": [1, 4, 12], "v": [1, 3, 3]})), Ordering("t"))
        >>> run_here(stream.grouped_stats(10).plan).select(["window_start", "mean_v"]).to_pydict()
        {'window_start': [0, 10], 'mean_v': [2.0, 3.0]}
        """
        return self.window(Tumbling(every, offset, origin)).agg(self._statistics(columns, _STATISTICS))

    def _statistics(self, columns: str | Sequence[str] | None, forms: Mapping[str, str]) -> dict[str, str]:
        names = self._measured(columns)
        return {f"{form}_{name}": text.format(quoted(name)) for name in names for form, text in forms.items()}


def _node(plan: Node, ordering: Ordering, window: Window, trigger: Trigger | None, texts: Mapping[str, str]) -> Node:
    field = plan.schema.field(ordering.time)
    delay = trigger.delay if isinstance(trigger, OnCompletion) else None
    bounds = Bounds(delay=None if delay is None else length_in(delay, field, "delay"))
    running = isinstance(trigger, OnEvent)
    shown = f"{window}{'' if trigger is None else f', {trigger}'}: {', '.join(texts)}"
    if isinstance(window, Sliding | Rows):
        if isinstance(trigger, OnCompletion):
            raise UnsupportedError.operation(
                f"OnCompletion with {type(window).__name__}",
                "every row has a window of its own, which gives its answer beside it",
                "leave the trigger out, or use Tumbling, Hopping or Session",
            )
        if isinstance(window, Rows):
            return RowWindows(plan, ordering, window.size, window.after, texts, shown)
        low = -length_in(window.before, field, "before") + (window.closed in ("right", "neither"))
        high = length_in(window.after, field, "after") - (window.closed in ("left", "neither"))
        return SlidingWindows(plan, ordering, low, high, texts, shown)
    if isinstance(window, Session):
        gap = length_in(window.gap, field, "gap")
        if running:
            return RunningWindows(plan, ordering, texts, gap=gap, bounds=bounds, shown=shown)
        return SessionWindows(plan, ordering, gap, texts, bounds, shown)
    if isinstance(window, Tumbling):
        step, shift = tumble_in(window, field)
        if running:
            return RunningWindows(plan, ordering, texts, step, shift, bounds=bounds, shown=shown)
        return LaidWindows(plan, ordering, step, step, shift, texts, bounds, shown)
    if running:
        raise UnsupportedError.operation(
            "OnEvent with Hopping",
            "a row is in several windows, so there is no one value beside it",
            "use OnCompletion, or Sliding, which looks back from each row",
        )
    size, every, shift = hop_in(window, field)
    return LaidWindows(plan, ordering, size, every, shift, texts, bounds, shown)

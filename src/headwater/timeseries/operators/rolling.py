"""Rolling: aggregates of the rows around a row, by time or by number.

By time a frame has the rows from ``size`` before the row's time up to its own time, as Spark's RANGE frames have, so
rows of the same time see the same; by rows, the last ``rows`` of them with the row itself. `closed` says which ends
belong to it. Times are whole numbers, so an open end is a closed one, a unit further in.
"""

from __future__ import annotations

from collections.abc import Mapping

from headwater.base.errors import InputError
from headwater.timeseries.frames import Frame
from headwater.timeseries.node import Node, Ordering
from headwater.timeseries.operators.series import OverSeries, Windowed
from headwater.timeseries.plain_aggregates import columns_of
from headwater.timeseries.querying import quoted

__all__ = ["check_closed", "rolling_node", "row_frame", "time_frame"]

_CLOSED = ("both", "right", "left", "neither")


def time_frame(size: int, ahead: int, closed: str) -> Frame:
    """From ``size`` before a row's time to ``ahead`` after it.

    >>> time_frame(10, 0, "right")
    Frame(begin=-9, end=0, in_time=True)
    """
    check_closed(closed)
    begin = -size + (closed in ("right", "neither"))
    end = ahead - (closed in ("left", "neither"))
    return Frame(begin, end, in_time=True)


def row_frame(rows: int, ahead: int, closed: str) -> Frame:
    """The last ``rows`` rows and ``ahead`` rows after them: with the row itself (right), or those before it (left).

    >>> row_frame(3, 0, "right"), row_frame(3, 0, "left")
    (Frame(begin=-2, end=0, in_time=False), Frame(begin=-3, end=-1, in_time=False))
    """
    check_closed(closed)
    begin = -rows + (closed in ("right", "neither"))
    end = ahead - (closed in ("left", "neither"))
    return Frame(begin, end)


def check_closed(closed: str) -> None:
    """Refuse what is not one of the four."""
    if closed not in _CLOSED:
        raise InputError.bad_argument("closed", closed, f"one of {', '.join(_CLOSED)}")


def rolling_node(
    below: Node, ordering: Ordering, columns: Mapping[str, str], *, frame: Frame, least: int, shown: str
) -> OverSeries:
    """Aggregates over a frame; null where fewer than ``least`` of its rows have all that an aggregate reads.

    >>> import pyarrow as pa
    >>> from headwater.timeseries.operators.values import Values
    >>> from headwater.timeseries.running.here import run_here
    >>> trades = Values(pa.table({"t": [1, 2, 9], "p": [5, 7, 4]}))
    >>> node = rolling_node(trades, Ordering("t"), {"s": "sum(p)"}, frame=time_frame(2, 0, "both"), least=0, shown="")
    >>> run_here(node)["s"].to_pylist()
    [5, 12, 4]
    """
    windows = {}
    for name, text in columns.items():
        read = columns_of(text, below.schema) if least else ()
        present = " AND ".join(f"{quoted(c)} IS NOT NULL" for c in read) or "true"
        windows[name] = Windowed(text, frame, least=least, present=present)
    return OverSeries(below, ordering, windows, shown)

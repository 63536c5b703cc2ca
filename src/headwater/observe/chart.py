"""Charts of series over time: lines, points, bars and bands, as SVG and as text.

The problem: whoever computes features over time wants to look at them, in a notebook or a terminal, without a library
for it. The idea: a `Chart` is plain data, curves of times with values, in the look of the graphs; `svg` draws it for a
page or a notebook and `text` as one row for each curve. Values that are null, NaN or infinite are gaps.

Invariants: all times of a chart are of one kind, and all are in order within a curve; the drawings depend on nothing
else than the chart, and are well-formed whatever the texts are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, Literal

from headwater.base.errors import InputError
from headwater.observe.chart_svg import draw_chart
from headwater.observe.chart_text import chart_text
from headwater.observe.drawn import Drawn, Scale
from headwater.observe.ticks import Axis

__all__ = ["KINDS", "Band", "Chart", "Curve", "Kind"]

Kind = Literal["line", "points", "bars"]
KINDS: tuple[Kind, ...] = ("line", "points", "bars")
Time = datetime | date | int

_EPOCH, _NAIVE = datetime(1970, 1, 1, tzinfo=UTC), datetime(1970, 1, 1)  # noqa: DTZ001  (times without a zone stay so)


@dataclass(frozen=True)
class Curve:
    """Values at times. What is null, NaN or infinite is a gap.

    Parameters
    ----------
    label
        What it is called.
    times
        Timestamps, dates or whole numbers; they are put in order. Timestamps with a zone are shown in UTC.
    values
        As many numbers or None.
    kind
        "line", "points" or "bars".
    """

    label: str
    times: Sequence[Time]
    values: Sequence[float | None]
    kind: Kind = "line"

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InputError.bad_argument("kind", self.kind, "line, points or bars")
        _check_lengths(self.times, self.values)


@dataclass(frozen=True)
class Band:
    """The room between two values at times: a spread, a high and a low."""

    label: str
    times: Sequence[Time]
    low: Sequence[float | None]
    high: Sequence[float | None]

    def __post_init__(self) -> None:
        _check_lengths(self.times, self.low)
        _check_lengths(self.times, self.high)


class Chart:
    """
    Series over time, drawn.

    Parameters
    ----------
    title
        What stands above it.
    parts
        `Curve` and `Band`, in the order of the legend.
    axis
        What times are: "timestamp" (datetimes, or microseconds since 1970), "date" (or days) or "integer". By default
        what the first time is.
    note
        What stands below the title.
    scale
        "linear", or "log" where both axes are logarithmic: times are whole numbers above zero then, values that are not
        above zero are gaps, and nothing is drawn as bars.

    Examples
    --------
    >>> chart = Chart("prices", [Curve("a", [1, 2, 3], [1.0, None, 3.0]), Curve("b", [1, 3], [2.0, 2.0], "bars")])
    >>> chart.svg().startswith("<svg")
    True
    >>> print(chart.text(width=60))
    prices
    a    ▁ █  1 … 3, last 3
    b    ▅ ▅  2 … 2, last 2
    time 1 … 3
    """

    def __init__(
        self,
        title: str,
        parts: Iterable[Curve | Band],
        *,
        axis: Axis | None = None,
        note: str = "",
        scale: Scale = "linear",
    ) -> None:
        self.title, self.note, self.scale = title, note, scale
        self.parts = tuple(parts)
        self.axis: Axis = axis or _axis_of(t for part in self.parts for t in part.times)
        if self.axis not in ("timestamp", "date", "integer"):
            raise InputError.bad_argument("axis", axis, "timestamp, date or integer")
        self.drawn = tuple(_drawn(part, self.axis) for part in self.parts)
        if scale not in ("linear", "log"):
            raise InputError.bad_argument("scale", scale, "linear or log")
        if scale == "log":
            self._check_logarithmic()

    def __repr__(self) -> str:
        points = sum(len(part.times) for part in self.parts)
        count = f"{len(self.parts)} part{'' if len(self.parts) == 1 else 's'}"
        return f"Chart({self.title!r}, {count}, {points:,} points)"

    def __str__(self) -> str:
        return self.text()

    def _check_logarithmic(self) -> None:
        if self.axis != "integer":
            raise InputError.bad_argument("scale", "log", f"linear: the axis has values of the kind {self.axis}")
        if any(part.kind == "bars" for part in self.drawn):
            raise InputError.bad_argument("scale", "log", "linear: bars begin at zero")
        least = min((t for part in self.drawn for t in part.times), default=1)
        if least <= 0:
            raise InputError.bad_argument("times", least, "whole numbers above zero, or a linear scale")

    def svg(self, *, width: int = 760, height: int = 340) -> str:
        """The picture, as a document of its own."""
        if not 240 <= width <= 10_000 or not 160 <= height <= 10_000:
            raise InputError.bad_argument("width", (width, height), "240 to 10,000 pixels, and a height from 160")
        return draw_chart(self, width, height)

    def text(self, *, width: int = 100) -> str:
        """One line of blocks for each curve, with its range and its last value."""
        return chart_text(self, width)

    def _repr_svg_(self) -> str:
        return self.svg()


def _check_lengths(times: Sequence[Any], values: Sequence[Any]) -> None:
    if len(times) != len(values):
        raise InputError.bad_argument("values", f"{len(values)} values", f"one for each of the {len(times)} times")


def _axis_of(times: Iterable[Time]) -> Axis:
    first = next(iter(times), 0)
    return "timestamp" if isinstance(first, datetime) else "date" if isinstance(first, date) else "integer"


def _drawn(part: Curve | Band, axis: Axis) -> Drawn:
    times = [_number(t, axis) for t in part.times]
    order = sorted(range(len(times)), key=times.__getitem__)
    low, high = (part.values, part.values) if isinstance(part, Curve) else (part.low, part.high)
    pairs = [(_value(low[k]), _value(high[k])) for k in order]
    if isinstance(part, Band):
        pairs = [(None, None) if a is None or b is None else (min(a, b), max(a, b)) for a, b in pairs]
    lows, highs = tuple(a for a, _ in pairs), tuple(b for _, b in pairs)
    kind = part.kind if isinstance(part, Curve) else "band"
    return Drawn(part.label, kind, tuple(times[k] for k in order), lows, lows if isinstance(part, Curve) else highs)


def _number(time: Time, axis: Axis) -> int:
    if axis == "timestamp" and isinstance(time, datetime):
        return (time - (_NAIVE if time.tzinfo is None else _EPOCH)) // timedelta(microseconds=1)
    if axis == "date" and isinstance(time, date) and not isinstance(time, datetime):
        return (time - _EPOCH.date()).days
    if isinstance(time, int) and not isinstance(time, bool):
        return time
    kind = {"timestamp": "datetimes or whole numbers", "date": "dates or whole numbers", "integer": "whole numbers"}
    raise InputError.bad_argument("times", time, kind[axis])


def _value(value: float | None) -> float | None:
    if value is None:
        return None
    found = float(value)
    return found if math.isfinite(found) else None

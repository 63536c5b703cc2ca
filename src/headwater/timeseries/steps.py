"""Steps: how time is cut into pieces that follow each other, of one length or by months of the calendar.

A step is a whole number in the unit of a time column, or `MonthSteps`. Steps have numbers: the n-th begins at
``begin_of(n)``, and a time lies in the step ``number_of(time)``. Months are those of UTC, as the days of windows are.
With n months to a step, steps begin at multiples of n months since January 1970, so that quarters and years are the
usual ones, or at the ``first`` month that an origin says.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.base.errors import InputError
from headwater.base.spans import Months, length_of
from headwater.timeseries.moments import length_in, moment_in, moment_type
from headwater.timeseries.windows import Hopping, Length, Moment, Tumbling

__all__ = [
    "MonthSteps",
    "Step",
    "begin_of",
    "ends_of",
    "hop_in",
    "most_of",
    "number_of",
    "room_of",
    "step_in",
    "tumble_in",
]

Numbers = npt.NDArray[np.int64]
_DAY = 86_400_000_000


@dataclass(frozen=True, slots=True)
class MonthSteps:
    """Steps of so many months.

    Attributes
    ----------
    months : int
    first : int
        in which month since January 1970 a step begins; less than ``months``
    days : bool
        whether times are days, and not microseconds
    """

    months: int
    first: int = 0
    days: bool = False

    def __str__(self) -> str:
        return f"{self.months} month{'' if self.months == 1 else 's'}"


Step = int | MonthSteps


def most_of(step: Step) -> int:
    """How long a step is at most.

    >>> most_of(10), most_of(MonthSteps(2, days=True))
    (10, 62)
    """
    if isinstance(step, int):
        return step
    return 31 * step.months * (1 if step.days else _DAY)


def number_of(times: Numbers, step: Step, offset: int = 0) -> Numbers:
    """In which step each time lies.

    >>> number_of(np.array([-1, 25]), 10).tolist(), number_of(np.array([-1, 0, 59]), MonthSteps(1, days=True)).tolist()
    ([-1, 2], [-1, 0, 2])
    """
    if isinstance(step, int):
        return (times - offset) // step
    months = times.astype("M8[D]" if step.days else "M8[us]").astype("M8[M]").astype(np.int64)
    return (months - step.first) // step.months


def begin_of(numbers: Numbers, step: Step, offset: int = 0) -> Numbers:
    """When steps begin.

    >>> begin_of(np.array([0, 1, 2]), MonthSteps(12, 3, days=True)).tolist()
    [90, 455, 821]
    """
    if isinstance(step, int):
        return numbers * step + offset
    months = (numbers * step.months + step.first).astype("M8[M]")
    return months.astype("M8[D]" if step.days else "M8[us]").astype(np.int64)


def ends_of(begins: Numbers, step: Step) -> Numbers:
    """When steps that begin then end."""
    if isinstance(step, int):
        return begins + step
    return begin_of(number_of(begins, step) + 1, step)


def room_of(step: Step) -> int:
    """How long a step is at most."""
    return step if isinstance(step, int) else 31 * step.months * (1 if step.days else _DAY)


def step_in(
    length: Length, field: pa.Field, argument: str, *, offset: Length = 0, origin: Moment | None = None
) -> tuple[Step, int]:
    """A step in the units of a time column, and how long after the epoch one begins.

    >>> step_in("1 month", pa.field("d", pa.date32()), "every")
    (MonthSteps(months=1, first=0, days=True), 0)
    """
    calendar = length_of(length, argument) if isinstance(length, str) else None
    if not isinstance(calendar, Months):
        step = length_in(length, field, argument)
        return step, _offset(step, field, offset, origin)
    kind = moment_type(field)
    if pa.types.is_integer(kind):
        raise InputError.bad_argument(argument, length, f"a whole number, as the times in `{field.name}` are")
    if offset not in (0, None):
        raise InputError.bad_argument(
            "offset", offset, f"no offset for steps of {length!r}: origin= names a month to begin with"
        )
    days = pa.types.is_date(kind)
    if origin is None:
        return MonthSteps(calendar.count, 0, days), 0
    at = np.array([moment_in(origin, field)], np.int64)
    month = number_of(at, MonthSteps(1, 0, days))
    if int(begin_of(month, MonthSteps(1, 0, days))[0]) != int(at[0]):
        raise InputError.bad_argument("origin", origin, f"the first moment of a month, for steps of {length!r}")
    return MonthSteps(calendar.count, int(month[0]) % calendar.count, days), 0


def hop_in(window: Hopping, field: pa.Field) -> tuple[int, int, int]:
    """The length of hopping windows, the step between them, and how long after the epoch one begins."""
    every = length_in(window.every, field, "every")
    return length_in(window.size, field, "size"), every, _offset(every, field, window.offset, window.origin)


def tumble_in(window: Tumbling, field: pa.Field) -> tuple[Step, int]:
    """The step of tumbling windows, and how long after the epoch one begins."""
    return step_in(window.size, field, "size", offset=window.offset, origin=window.origin)


def _offset(step: int, field: pa.Field, offset: Length, origin: Moment | None) -> int:
    if origin is not None:
        return moment_in(origin, field) % step
    return (length_in(offset, field, "offset") if offset else 0) % step

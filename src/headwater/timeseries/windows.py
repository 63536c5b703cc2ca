"""Windows: which rows of a series are looked at together, and when an answer is given.

A window is plain data; lengths are as users write them (``"1 minute"``, a timedelta, a number for whole numbers) and
are understood against the time column where a window is used. Two families:

- windows that rows fall into, and that have one answer each: `Tumbling`, `Hopping` and `Session`;
- windows that every row has of its own, which look back from it: `Sliding` by time and `Rows` by rows. Their answers
  stand beside the row.

Edges are Spark's. A window of time begins at a multiple of its step since the epoch, shifted by `offset`, and does not
contain its end; a day is 24 hours. Windows that begin before the first row exist where they contain it. A gap exactly
as long as a session's goes on with the session. A range looks at all rows within it, also at those of the same time.

A trigger says when answers are given: `OnCompletion`, one row for each window, or `OnEvent`, the value so far beside
each row.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Literal

from headwater.base.errors import InputError
from headwater.base.spans import EXAMPLES, Months, interval, length_of

__all__ = [
    "Closed",
    "Hopping",
    "Length",
    "Moment",
    "OnCompletion",
    "OnEvent",
    "Rows",
    "Session",
    "Sliding",
    "Trigger",
    "Tumbling",
    "Window",
    "check_grid",
]

Length = str | int | timedelta
Moment = datetime | date | int | str
Closed = Literal["both", "left", "right", "neither"]


@dataclass(frozen=True, slots=True)
class Tumbling:
    """Windows of one length, one after the other.

    Parameters
    ----------
    size : str, timedelta or int
        how long a window is; of timestamps and dates also months, quarters and years of the calendar (``"1 month"``),
        in UTC
    offset : str, timedelta or int
        how long after a multiple of `size` since the epoch windows begin
    origin : datetime, date, int or str, optional
        a moment at which a window begins, instead of `offset`

    Examples
    --------
    >>> Tumbling("1 minute", offset="15 s")
    Tumbling(size='1 minute', offset='15 s', origin=None)
    >>> Tumbling("0 s")
    Traceback (most recent call last):
    headwater.base.errors.InputError: error[E1001]: `size` is '0 s'
      hint: expected a length greater than zero, like `10 minutes`
    """

    size: Length
    offset: Length = 0
    origin: Moment | None = None

    def __post_init__(self) -> None:
        _check_positive("size", self.size, calendar=True)
        _check_length("offset", self.offset)
        _check_one(self.offset, self.origin)


@dataclass(frozen=True, slots=True)
class Hopping:
    """Windows of one length, of which a new one begins at every step, so that they overlap.

    Examples
    --------
    >>> Hopping("1 minute", "15 s")
    Hopping(size='1 minute', every='15 s', offset=0, origin=None)
    """

    size: Length
    every: Length
    offset: Length = 0
    origin: Moment | None = None

    def __post_init__(self) -> None:
        _check_positive("size", self.size)
        _check_positive("every", self.every)
        _check_length("offset", self.offset)
        _check_one(self.offset, self.origin)
        if _amount("every", self.every) > _amount("size", self.size):
            raise InputError.bad_argument("every", self.every, f"a step not longer than the window, {self.size!r}")


@dataclass(frozen=True, slots=True)
class Session:
    """Stretches of a series in which no two rows that follow each other are farther apart than a gap.

    A session begins with its first row and ends a gap after its last.

    Examples
    --------
    >>> Session("30 s")
    Session(gap='30 s')
    """

    gap: Length

    def __post_init__(self) -> None:
        _check_positive("gap", self.gap)


@dataclass(frozen=True, slots=True)
class Sliding:
    """For each row the rows of its series from a length of time before it to another after it.

    Parameters
    ----------
    before : str, timedelta or int
        how far back a row looks
    after : str, timedelta or int
        how far ahead
    closed : {"both", "left", "right", "neither"}
        which ends belong to it: rows exactly `before` earlier (left), rows exactly `after` later (right)

    Examples
    --------
    >>> Sliding("10 s")
    Sliding(before='10 s', after=0, closed='both')
    """

    before: Length
    after: Length = 0
    closed: Closed = "both"

    def __post_init__(self) -> None:
        _check_length("before", self.before, least=0)
        _check_length("after", self.after, least=0)
        if self.closed not in ("both", "left", "right", "neither"):
            raise InputError.bad_argument("closed", self.closed, "both, left, right or neither")


@dataclass(frozen=True, slots=True)
class Rows:
    """For each row the last `size` rows of its series, itself among them, and `after` rows that follow it.

    Examples
    --------
    >>> Rows(100)
    Rows(size=100, after=0)
    """

    size: int
    after: int = 0

    def __post_init__(self) -> None:
        for name, value, least in (("size", self.size, 1), ("after", self.after, 0)):
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise InputError.bad_argument(name, value, f"a number of rows, at least {least}")


@dataclass(frozen=True, slots=True)
class OnCompletion:
    """One row for each window.

    Parameters
    ----------
    delay : str, timedelta or int, optional
        how long after its end a window is complete. The rows then say so: ``window_complete`` is the end and the delay,
        the first moment at which nothing about the window is unknown; join as of that to look into no future.

    Examples
    --------
    >>> OnCompletion("5 s")
    OnCompletion(delay='5 s')
    """

    delay: Length | None = None

    def __post_init__(self) -> None:
        if self.delay is not None:
            _check_length("delay", self.delay, least=0)


@dataclass(frozen=True, slots=True)
class OnEvent:
    """Beside each row the value of its window so far: of the rows up to this one. Not for hopping windows, of which a
    row has several.

    Examples
    --------
    >>> OnEvent()
    OnEvent()
    """


Window = Tumbling | Hopping | Session | Sliding | Rows
Trigger = OnCompletion | OnEvent


def check_grid(every: Length, offset: Length, origin: Moment | None) -> None:
    """Refuse steps that cannot be laid along time."""
    _check_positive("every", every, calendar=True)
    _check_length("offset", offset)
    _check_one(offset, origin)


def _amount(name: str, length: Length, *, calendar: bool = False) -> float:
    """A length to compare with another of the same kind; one of the calendar only where it is taken."""
    if isinstance(length, str):
        found = length_of(length, name) if calendar else interval(length, name)
        if isinstance(found, Months):
            return found.count
        length = found
    return length / timedelta(microseconds=1) if isinstance(length, timedelta) else length


def _check_length(name: str, length: Length, *, least: float | None = None, calendar: bool = False) -> None:
    if isinstance(length, bool) or not isinstance(length, str | int | timedelta):
        raise InputError.bad_argument(name, length, f"a length like {EXAMPLES}, a timedelta, or a whole number")
    if _amount(name, length, calendar=calendar) < (least if least is not None else float("-inf")):
        raise InputError.bad_argument(name, length, "a length that is not negative")


def _check_positive(name: str, length: Length, *, calendar: bool = False) -> None:
    _check_length(name, length, calendar=calendar)
    if _amount(name, length, calendar=calendar) <= 0:
        raise InputError.bad_argument(name, length, "a length greater than zero, like `10 minutes`")


def _check_one(offset: Length, origin: Moment | None) -> None:
    if origin is not None and _amount("offset", offset) != 0:
        raise InputError.bad_argument("origin", origin, "either an offset or an origin")

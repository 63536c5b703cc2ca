"""Moments as whole numbers: a time column in its own unit, and back.

All of this room's arithmetic of time is on 64-bit whole numbers: microseconds of a timestamp (with and without zone),
days of a date, and whole numbers as they are. What comes back has the type of the column, except that whole numbers
become bigint. A sum that leaves 64 bits would come round on the other side of time, so there is room checked for before
anything is added.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.base.errors import InputError
from headwater.base.spans import span
from headwater.timeseries.times import time_field
from headwater.timeseries.windows import Length, Moment

__all__ = ["check_room", "length_in", "moment_in", "moment_type", "moments_from"]

Numbers = npt.NDArray[np.int64]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MOST = (1 << 63) - 1


def moment_type(field: pa.Field) -> pa.DataType:
    """The type of moments that are computed from a time column; refuses what is none.

    >>> moment_type(pa.field("t", pa.int32())), moment_type(pa.field("t", pa.timestamp("us", "UTC")))
    (DataType(int64), TimestampType(timestamp[us, tz=UTC]))
    """
    kind = time_field(pa.schema([field]), field.name).type
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    return pa.date32() if pa.types.is_date(kind) else pa.int64()


def length_in(length: Length, field: pa.Field, argument: str = "length of time") -> int:
    """A length in the units of a time column; errors name the argument.

    >>> length_in("1 minute", pa.field("ts", pa.timestamp("us")))
    60000000
    """
    moment_type(field)
    found = span(length, field, argument)
    if abs(found) > _MOST >> 2:
        raise InputError.bad_argument(argument, length, "less than 70,000 years")
    return found


def moment_in(moment: Moment, field: pa.Field) -> int:
    """A moment in the units of a time column.

    >>> moment_in("2024-01-02", pa.field("d", pa.date32()))
    19724
    >>> moment_in(datetime(1970, 1, 1, 0, 1), pa.field("t", pa.timestamp("us")))
    60000000
    """
    kind = moment_type(field)
    if isinstance(moment, str) and not pa.types.is_integer(kind):
        try:
            moment = datetime.fromisoformat(moment)
        except ValueError:
            raise InputError.bad_argument("origin", moment, "a moment like 2024-01-31 09:30:00") from None
    if pa.types.is_integer(kind):
        if isinstance(moment, int) and not isinstance(moment, bool):
            return moment
        raise InputError.bad_argument("origin", moment, f"a whole number, as `{field.name}` is")
    if isinstance(moment, date) and not isinstance(moment, datetime):
        moment = datetime.combine(moment, time())
    if pa.types.is_date(kind):
        if isinstance(moment, datetime) and moment.timetz() == time():
            return (moment.date() - _EPOCH.date()).days
        raise InputError.bad_argument("origin", moment, f"a date, as `{field.name}` is")
    if not isinstance(moment, datetime):
        raise InputError.bad_argument("origin", moment, "a datetime")
    if moment.tzinfo is not None and kind.tz is None:
        raise InputError.bad_argument("origin", moment, f"a datetime without a zone: `{field.name}` has none")
    # Without a zone, a moment is one in UTC, as the windows of an instant are.
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return (aware - _EPOCH) // timedelta(microseconds=1)


def moments_from(numbers: Numbers, kind: pa.DataType, missing: npt.NDArray[np.bool_] | None = None) -> pa.Array:
    """Whole numbers as moments of this type.

    >>> moments_from(np.array([1, 2]), pa.date32()).to_pylist()
    [datetime.date(1970, 1, 2), datetime.date(1970, 1, 3)]
    """
    if pa.types.is_date32(kind):
        if len(numbers) and (numbers.min() < -(1 << 31) or numbers.max() >= 1 << 31):
            raise InputError.bad_argument("time", "a date", "times whose windows are dates too")
        return pa.array(numbers.astype(np.int32), pa.int32(), mask=missing).cast(kind)
    return pa.array(numbers, pa.int64(), mask=missing).cast(kind)


def check_room(numbers: Numbers, room: int, name: str) -> None:
    """Refuse times so near the ends of 64 bits that a window around them is not all there.

    >>> check_room(np.array([(1 << 63) - 5]), 10, "t")
    Traceback (most recent call last):
    headwater.base.errors.InputError: error[E1001]: `t` is 9223372036854775803
      hint: expected times that are farther than 10 from the ends of 64-bit whole numbers
    """
    if not len(numbers):
        return
    least, most = int(numbers.min()), int(numbers.max())
    if most > _MOST - room or least < -_MOST + room:
        shown = most if most > _MOST - room else least
        expected = f"times that are farther than {room} from the ends of 64-bit whole numbers"
        raise InputError.bad_argument(name, shown, expected)

"""Casts among dates, timestamps and numbers: a timestamp is a count of microseconds since 1970 in UTC,
a date one of days.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from headwater.sql.types import family
from headwater.sql.vectorised.frame import Kernel
from headwater.sql.vectorised.integers import BOUNDS, outside
from headwater.sql.vectorised.number_casts import Body, kernel_of

__all__ = ["DAY", "moment_cast"]

DAY = 86_400_000_000
_SECOND = 1_000_000
_FARTHEST_DAY = ((1 << 63) - 1) // DAY
_RANGE = 9_000_000_000_000_000_000


def _moment_of_day(x: Any) -> tuple[Any, Any]:
    return x * DAY, outside(x, -_FARTHEST_DAY, _FARTHEST_DAY)


def _moment_of_whole(x: Any) -> tuple[Any, Any]:
    most = _RANGE // _SECOND
    return x * _SECOND, outside(x, -most, most)


def _moment_of_real(x: Any) -> tuple[Any, Any]:
    micros = np.trunc(x.astype(np.float64, copy=False) * 1e6)
    return micros.astype(np.int64), ~(np.abs(micros) <= float(_RANGE))


def _whole_seconds(low: int, high: int) -> Body:
    def body(x: Any) -> tuple[Any, Any]:
        seconds = x // _SECOND
        return seconds, outside(seconds, low, high)

    return body


def moment_cast(source: pa.DataType, target: pa.DataType, *, safe: bool) -> Kernel | None:
    """The kernel of a cast from or to a date or timestamp, or None for other types."""
    kind, wanted = family(source), family(target)
    moments = ("timestamp", "timestamp_ntz")
    if kind in moments and wanted in moments:
        return kernel_of(target, lambda x: (x, None), safe=safe)
    if kind == "date" and wanted in moments:
        return kernel_of(target, _moment_of_day, safe=safe, reason="a date this far away has no timestamp")
    if kind in moments and wanted == "date":
        return kernel_of(target, lambda x: (x // DAY, None), safe=safe)
    if kind == "timestamp" and wanted == "integer":
        return kernel_of(target, _whole_seconds(*BOUNDS[target]), safe=safe)
    if kind == "timestamp" and wanted == "float":
        if target == pa.float32():
            return kernel_of(target, lambda x: ((x / 1e6).astype(np.float32), None), safe=safe)
        return kernel_of(target, lambda x: (x / 1e6, None), safe=safe)
    reason = "a number of seconds without a timestamp"
    if wanted == "timestamp" and kind == "integer":
        return kernel_of(target, _moment_of_whole, safe=safe, reason=reason)
    if wanted == "timestamp" and kind == "float":
        return kernel_of(target, _moment_of_real, safe=safe, reason=reason)
    return None

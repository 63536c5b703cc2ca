"""Numbers for people: counts, bytes and seconds in two or three digits and a unit.

The problem: the figures of an operator range from nanoseconds to hours and from none to billions, and a reader compares
them at a glance. The idea: one digit after the point below ten, none above, and the unit that fits.

Invariants: a text is at most nine characters for anything a machine can hold; rounding never prints ``1000`` of a unit
where there is a larger one; zero is ``0``, with a unit where the quantity has one.
"""

from __future__ import annotations

__all__ = ["human_bytes", "human_count", "human_seconds"]

_COUNTS = ("", "k", "M", "G", "T", "P")
_BYTES = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_SECONDS = ((1e-9, "ns", 1e3), (1e-6, "µs", 1e3), (1e-3, "ms", 1e3), (1.0, "s", 60.0), (60.0, "min", 60.0))


def human_count(count: int) -> str:
    """
    How many, shortly.

    Examples
    --------
    >>> human_count(0), human_count(999), human_count(12_345), human_count(1_234_567), human_count(-999_950)
    ('0', '999', '12k', '1.2M', '-1.0M')
    """
    size, unit = float(abs(count)), 0
    while unit < len(_COUNTS) - 1 and size >= (1000 if unit == 0 else 999.5):
        size, unit = size / 1000, unit + 1
    sign = "-" if count < 0 else ""
    return f"{sign}{_digits(size)}{_COUNTS[unit]}" if unit else str(count)


def human_bytes(size_bytes: int) -> str:
    """
    A size in binary units.

    Examples
    --------
    >>> human_bytes(0), human_bytes(1536), human_bytes(5 << 40)
    ('0 B', '1.5 KiB', '5.0 TiB')
    """
    size, unit = float(size_bytes), 0
    while unit < len(_BYTES) - 1 and size >= (1024 if unit == 0 else 1023.95):
        size, unit = size / 1024, unit + 1
    return f"{size:.1f} {_BYTES[unit]}" if unit else f"{size_bytes} B"


def human_seconds(seconds: float) -> str:
    """
    A duration in the unit that fits.

    Examples
    --------
    >>> human_seconds(34e-6), human_seconds(0.0012), human_seconds(3.4), human_seconds(125), human_seconds(0)
    ('34 µs', '1.2 ms', '3.4 s', '2.1 min', '0 s')
    """
    assert seconds >= 0
    if seconds == 0:
        return "0 s"
    for scale, unit, until in _SECONDS:
        if seconds / scale < until - 0.5:
            return f"{_digits(seconds / scale)} {unit}"
    return f"{_digits(seconds / 3600)} h"


def _digits(size: float) -> str:
    return f"{size:.1f}" if size < 9.95 else f"{size:.0f}"

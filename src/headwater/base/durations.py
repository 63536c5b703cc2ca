"""Durations in words: what a number of microseconds is to people."""

from __future__ import annotations

__all__ = ["Duration", "duration_words"]

_UNITS = (
    ("day", 86_400_000_000),
    ("hour", 3_600_000_000),
    ("minute", 60_000_000),
    ("second", 1_000_000),
    ("millisecond", 1_000),
    ("microsecond", 1),
)


class Duration(int):
    """A number of microseconds that is printed as a duration.

    >>> Duration(-90_000_000).words
    '1 minute 30 seconds'
    """

    __slots__ = ()

    @property
    def words(self) -> str:
        """Without its sign."""
        return duration_words(self)


def duration_words(microseconds: int) -> str:
    """A duration without its sign, in the units that it has.

    >>> duration_words(3_600_000_000), duration_words(-90_000_000), duration_words(1), duration_words(0)
    ('1 hour', '1 minute 30 seconds', '1 microsecond', '0 seconds')
    """
    left, said = abs(microseconds), []
    for name, size in _UNITS:
        count, left = divmod(left, size)
        if count:
            said.append(f"{count:,} {name}{'' if count == 1 else 's'}")
    return " ".join(said) or "0 seconds"

"""Sorting by digits: the stable order of rows by several columns of numbers, without comparing any.

Comparing rows column by column costs a sort for each column. Numbers within a table lie close together, so the least of
each column is subtracted, factors of a thousand that all of them have are divided out (times of milliseconds are kept
as microseconds), and what is left takes few bits.

Where series, times and tiebreaks and the number of the row itself fit into one word of 64 bits, those words are sorted
as plain numbers, which numpy does many at a time, and the order is read from their low bits. Else they take a few
words, and each is sorted by 16 bits at a time, the least significant first, which numpy does by counting. The last word
is sorted first; each sort keeps the order that the ones before it made.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["order_by_digits"]

Words = npt.NDArray[Any]
Packed = npt.NDArray[np.uint64]

_WORD = 64
_DIGIT = 16
_FACTORS = (1_000_000, 1_000)


def order_by_digits(words: Sequence[Words]) -> npt.NDArray[np.int64]:
    """The stable order of rows by columns of numbers without NaN, of which the first decides.

    >>> order_by_digits([np.array([1, 0, 1, 0]), np.array([0.5, -2.0, -0.5, -2.0])]).tolist()
    [1, 3, 2, 0]
    """
    rows = len(words[0])
    columns = _fewer_bits([_from_zero(word) for word in words], _WORD - rows.bit_length())
    if sum(bits for _, bits in columns) <= _WORD - rows.bit_length():
        return _order_in_words(columns, rows)
    order: npt.NDArray[np.int64] | None = None
    for packed, bits in _packed(columns):
        for shift in range(0, bits, _DIGIT):
            digit = ((packed >> np.uint64(shift)) & np.uint64((1 << _DIGIT) - 1)).astype(np.uint16)
            if order is None:
                order = np.argsort(digit, kind="stable")
            else:
                order = order[np.argsort(digit[order], kind="stable")]
    return np.arange(rows) if order is None else order


def _order_in_words(columns: Sequence[tuple[Packed, int]], rows: int) -> npt.NDArray[np.int64]:
    place = rows.bit_length()
    packed: Packed = np.arange(rows, dtype=np.uint64)
    used = place
    for numbers, bits in reversed(columns):
        if bits:
            packed |= numbers << np.uint64(used)
            used += bits
    if used > place:
        packed.sort()
    return (packed & np.uint64((1 << place) - 1)).view(np.int64)


def _fewer_bits(columns: list[tuple[Packed, int]], wanted: int) -> list[tuple[Packed, int]]:
    """The columns without common factors, as far as it takes to fit into so many bits."""
    for at, (numbers, bits) in enumerate(columns):
        for factor in _FACTORS:
            if sum(b for _, b in columns) <= wanted or bits < factor.bit_length():
                break
            if not (numbers % np.uint64(factor)).any():
                fewer = numbers // np.uint64(factor)
                columns[at] = fewer, int(fewer.max()).bit_length()
                break
    return columns


def _packed(columns: Sequence[tuple[Packed, int]]) -> Iterator[tuple[Packed, int]]:
    """The columns in as few words as they fit into, the last first, each with the number of bits that it uses."""
    held: Packed | None = None
    used = 0
    for numbers, bits in reversed(columns):
        if held is not None and used + bits > _WORD:
            yield held, used
            held, used = None, 0
        if bits:
            held = numbers if held is None else held | (numbers << np.uint64(used))
            used += bits
    if held is not None:
        yield held, used


def _from_zero(word: Words) -> tuple[Packed, int]:
    """The same order in whole numbers from zero, and how many bits they take."""
    if word.dtype.kind == "f":
        raw = word.astype(np.float64).view(np.int64)
        # The bits of doubles rise with them; those of negative ones fall.
        whole = np.where(raw < 0, raw ^ np.int64((1 << 63) - 1), raw)
    elif word.dtype == np.uint64:
        whole = (word ^ np.uint64(1 << 63)).view(np.int64)
    else:
        whole = word.astype(np.int64)
    if not len(whole):
        return whole.view(np.uint64), 0
    least = int(whole.min())
    span = int(whole.max()) - least
    # Differences that leave 63 bits are right as unsigned ones.
    return whole.view(np.uint64) - np.int64(least).view(np.uint64), span.bit_length()

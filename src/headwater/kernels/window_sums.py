"""Sums over frames, exactly: of whole numbers, decimals and doubles alike.

Sliding a frame by adding what enters and subtracting what leaves is the fast way, and wrong for doubles: every step
rounds, and what is left depends on where the slide began. So numbers are added up as long integers: a double is a whole
number of times the least power of two among the values, and an *accumulator* is enough limbs of 32 bits for all of
them, each in a word of its own, so that adding a number touches two or three limbs and carries are put off until a sum
is read. Addition is then exact and can be undone, sums slide, and the one rounding is at the end: a frame's sum is that
of its rows, to the nearest double, whatever came before. Squares are kept in the same way, so the variance is (n S2 -
S1 S1) / n(n - 1) with an exact numerator.

Cost: each row enters and leaves once, O(1); reading a sum is O(limbs), which are about 5 for numbers of similar size
and at most 70 for doubles from 1e-308 to 1e308; reading a variance is O(limbs squared).
"""

from __future__ import annotations

import math

import numpy as np

from headwater.kernels.arrays import Doubles, Flags, Positions, Rows
from headwater.kernels.compiled import inlined, kernel, shared

__all__ = ["DOUBLE", "PAIR", "WORD", "sums"]

WORD, DOUBLE, PAIR = 0, 1, 2

_LIMB = 0xFFFFFFFF
_SIGN = -(1 << 63)
_FRACTION = (1 << 52) - 1
_IMPLICIT = 1 << 52
_EXPONENTS = 0x7FF
_LEAST_EXPONENT = -1075
_NAN, _INFINITY, _MINUS_INFINITY = 0, 1, 2
_FINITE = -1


@inlined
def _special(bits: int) -> int:
    """Is a double not finite, and which?"""
    if (bits >> 52) & _EXPONENTS != _EXPONENTS:
        return _FINITE
    if bits & _FRACTION:
        return _NAN
    return _INFINITY if bits >= 0 else _MINUS_INFINITY


@inlined
def _parts(rows: Rows, row: int, word: int, kind: int, limbs: Positions) -> tuple[int, int]:
    """Fill four limbs with the magnitude of a value; give its sign, and its exponent (of a double; else 0)."""
    x = rows[row, word]
    if kind == DOUBLE:
        exponent = (x >> 52) & _EXPONENTS
        magnitude = x & _FRACTION
        if exponent > 0:
            magnitude |= _IMPLICIT
        else:
            exponent = 1
        limbs[0] = magnitude & _LIMB
        limbs[1] = magnitude >> 32
        limbs[2] = 0
        limbs[3] = 0
        return (-1 if x < 0 else 1), exponent
    high = x if kind == PAIR else x >> 63
    low = rows[row, word + 1] ^ _SIGN if kind == PAIR else x
    sign = -1 if high < 0 else 1
    if sign < 0:
        low = -low
        high = ~high + (1 if low == 0 else 0)
    limbs[0] = low & _LIMB
    limbs[1] = (low >> 32) & _LIMB
    limbs[2] = high & _LIMB
    limbs[3] = (high >> 32) & _LIMB
    return sign, 0


@shared
def _add(
    rows: Rows,
    row: int,
    word: int,
    kind: int,
    least: int,
    sign: int,
    total: Positions,
    squares: Positions,
    four: Positions,
    five: Positions,
) -> None:
    """Add a value to the accumulators, or take it away."""
    own, exponent = _parts(rows, row, word, kind, four)
    shift = exponent - least if kind == DOUBLE else 0
    at = shift >> 5
    rest = shift & 31
    for k in range(5):
        five[k] = 0
    for k in range(4):
        x = four[k] << rest
        five[k] += x & _LIMB
        five[k + 1] += x >> 32
    for k in range(5):
        if five[k]:
            total[at + k] += own * sign * five[k]
    if squares.size:
        for i in range(5):
            if five[i] == 0:
                continue
            for j in range(5):
                if five[j]:
                    x = np.uint64(five[i]) * np.uint64(five[j])
                    squares[2 * at + i + j] += sign * np.int64(x & np.uint64(_LIMB))
                    squares[2 * at + i + j + 1] += sign * np.int64(x >> np.uint64(32))


@shared
def _carry(limbs: Positions) -> None:
    """Carry: afterwards all limbs but the last are from 0 to 2^32 - 1, and the last has the sign."""
    more = 0
    for k in range(limbs.size - 1):
        x = limbs[k] + more
        limbs[k] = x & _LIMB
        more = x >> 32
    limbs[limbs.size - 1] += more


@shared
def _magnitude(limbs: Positions, out: Positions) -> int:
    """The magnitude of carried limbs, and the sign."""
    n = limbs.size
    if limbs[n - 1] >= 0:
        for k in range(n):
            out[k] = limbs[k]
        return 1
    more = 1
    for k in range(n):
        x = ((~limbs[k]) & _LIMB) + more
        out[k] = x & _LIMB
        more = x >> 32
    return -1


@shared
def _rounded(limbs: Positions) -> tuple[int, int]:
    """The 53 highest bits of a magnitude, rounded half to even, and the power of two they are times."""
    h = limbs.size - 1
    while h >= 0 and limbs[h] == 0:
        h -= 1
    if h < 0:
        return 0, 0
    bits = 0
    x = limbs[h]
    while x:
        x >>= 1
        bits += 1
    one = np.uint64(limbs[h - 1]) if h >= 1 else np.uint64(0)
    two = np.uint64(limbs[h - 2]) if h >= 2 else np.uint64(0)
    top = (np.uint64(limbs[h]) << np.uint64(64 - bits)) | (one << np.uint64(32 - bits)) | (two >> np.uint64(bits))
    if bits == 32:
        top = (np.uint64(limbs[h]) << np.uint64(32)) | one
    sticky = bits < 32 and (two & ((np.uint64(1) << np.uint64(bits)) - np.uint64(1))) != 0
    if bits == 32:
        sticky = two != 0
    k = h - 3
    while k >= 0 and not sticky:
        sticky = limbs[k] != 0
        k -= 1
    found = int(np.int64(top >> np.uint64(11)))
    tail = int(np.int64(top & np.uint64(2047)))
    if tail > 1024 or (tail == 1024 and (sticky or (found & 1))):
        found += 1
    return found, 32 * (h - 1) - (32 - bits) + 11


@inlined
def _limb(limbs: Positions, k: int) -> int:
    """Limb ``k`` of a carried number of any length, in two's complement."""
    if k < limbs.size:
        return int(limbs[k] & _LIMB)
    return _LIMB if limbs[limbs.size - 1] < 0 else 0


@shared
def _numerator(total: Positions, squares: Positions, n: int, spare: Positions, out: Positions) -> None:
    """``n squares - total^2``, for carried limbs; never negative."""
    _magnitude(total, spare)
    for k in range(out.size):
        out[k] = 0
    limit = np.uint64(_LIMB)
    for i in range(total.size):
        if spare[i] == 0:
            continue
        more = np.uint64(0)
        for j in range(total.size):
            x = np.uint64(out[i + j]) + np.uint64(spare[i]) * np.uint64(spare[j]) + more
            out[i + j] = np.int64(x & limit)
            more = x >> np.uint64(32)
        out[i + total.size] = np.int64(more)
    borrow = 0
    for k in range(out.size):
        x = (squares[k] * n if k < squares.size else 0) - out[k] + borrow
        out[k] = x & _LIMB
        borrow = x >> 32


@kernel
def sums(  # noqa: C901
    rows: Rows,
    at: Positions,
    lo: Positions,
    hi: Positions,
    wanted: Flags,
    word: int,
    kind: int,
    null_word: int,
    null_bit: int,
    with_squares: bool,
    counts: Positions,
    pairs: Rows,
    fits: Flags,
    totals: Doubles,
    spreads: Doubles,
) -> None:
    """For the frame of each copy that is wanted: how many values, their sum and (if asked) the sum of squares about
    their mean.

    The sum is given as 128 bits in ``pairs`` (high, low), where ``fits`` says whether it does, and as the nearest
    double in ``totals``. Of doubles only the latter counts.
    """
    n = at.size
    least = 1 << 62
    most = 0
    if kind == DOUBLE:
        for i in range(n):
            x = rows[at[i], word]
            if (rows[at[i], null_word] >> null_bit) & 1 or _special(x) != _FINITE or (x & ~_SIGN) == 0:
                continue
            exponent = max((x >> 52) & _EXPONENTS, 1)
            least = min(least, exponent)
            most = max(most, exponent)
        if most == 0:
            least = 1
            most = 1
        bits = most - least + 53
    else:
        bits = 128 if kind == PAIR else 64
    size = bits // 32 + 7
    total = np.zeros(size, np.int64)
    squares = np.zeros(2 * size + 2 if with_squares else 0, np.int64)
    spare = np.empty(size, np.int64)
    product = np.empty(2 * size + 2, np.int64)
    four = np.empty(4, np.int64)
    five = np.empty(5, np.int64)
    special = np.zeros(3, np.int64)
    count = 0
    a = 0
    b = 0
    for i in range(n):
        if not wanted[i]:
            continue
        if lo[i] >= b or lo[i] - a > hi[i] - lo[i]:  # beginning anew is less work than taking away
            for k in range(size):
                total[k] = 0
            for k in range(squares.size):
                squares[k] = 0
            for k in range(3):
                special[k] = 0
            count = 0
            a = lo[i]
            b = lo[i]
        for sign in (-1, 1):
            begin = a if sign < 0 else b
            end = lo[i] if sign < 0 else hi[i]
            for j in range(begin, end):
                row = at[j]
                if (rows[row, null_word] >> null_bit) & 1:
                    continue
                count += sign
                x = rows[row, word]
                if kind == DOUBLE:
                    what = _special(x)
                    if what != _FINITE:
                        special[what] += sign
                        continue
                    if (x & ~_SIGN) == 0:
                        continue
                _add(rows, row, word, kind, least, sign, total, squares, four, five)
        a = lo[i]
        b = max(b, hi[i])
        counts[i] = count
        _carry(total)
        sign = _magnitude(total, spare)
        mantissa, power = _rounded(spare)
        if kind == DOUBLE:
            power += least + _LEAST_EXPONENT
        totals[i] = sign * math.ldexp(np.float64(mantissa), power)
        pairs[i, 0] = _limb(total, 2) | (_limb(total, 3) << 32)
        pairs[i, 1] = _limb(total, 0) | (_limb(total, 1) << 32)
        fits[i] = True
        filler = _LIMB if pairs[i, 0] < 0 else 0
        for k in range(4, size):
            if _limb(total, k) != filler:
                fits[i] = False
        lost = special[_NAN] > 0 or (special[_INFINITY] > 0 and special[_MINUS_INFINITY] > 0)
        if lost:
            totals[i] = np.nan
        elif special[_INFINITY] > 0:
            totals[i] = np.inf
        elif special[_MINUS_INFINITY] > 0:
            totals[i] = -np.inf
        if with_squares:
            spreads[i] = 0.0
            if lost or special[_INFINITY] > 0 or special[_MINUS_INFINITY] > 0:
                spreads[i] = np.nan
            elif count > 0:
                _carry(squares)
                _numerator(total, squares, count, spare, product)
                mantissa, power = _rounded(product)
                if kind == DOUBLE:
                    power += 2 * (least + _LEAST_EXPONENT)
                spreads[i] = math.ldexp(np.float64(mantissa) / np.float64(count), power)

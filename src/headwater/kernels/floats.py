"""Exact sums: doubles, and products of numbers, added up without rounding.

A sum of doubles that is rounded at every step depends on the order of the rows, and after a retraction something of the
retracted row stays behind. So nothing is rounded until the sum is read. A product of numbers is ``sign * m * 2**e``,
``m`` being whole. Let ``bias`` be such that ``e + bias`` is never negative: ``bucket = (e + bias) >> 5``, and ``m <<
((e + bias) & 31)`` is cut into limbs of 32 bits, each added in a word of its own, so that adding never carries. A row
of the trace of sums is such a bucket: its part is ``(index of the product + 1) << 16 | bucket``, its weights are the
limbs, the lowest first. A key has the few buckets that its numbers fall into, and all of it stays linear.

Infinities and NaN are counted, in the part whose bucket is `SPECIAL`: (+inf, -inf, NaN).

`rounded` reads a sum: it adds the limbs of all buckets into one long number and rounds that once, half to even. The
result is the true sum rounded correctly, as `math.fsum` gives it, whatever the order, batches and retractions were;
what is larger than any double is infinite; a sum that is zero is 0.0.
"""

# mypy: disable-error-code="arg-type, assignment, call-arg, return-value, unreachable, var-annotated"

from __future__ import annotations

import math

import numpy as np

from headwater.kernels.arrays import Hashes, Positions, Rows
from headwater.kernels.compiled import inlined, kernel
from headwater.kernels.memory import view_rows
from headwater.kernels.probe import hash_range
from headwater.kernels.words import equal_parts

__all__ = [
    "DOUBLE",
    "DOUBLE_BIAS",
    "PAIR",
    "SPECIAL",
    "WORD",
    "add_double",
    "add_product",
    "bucket_of",
    "normalise",
    "rounded",
]

WORD, DOUBLE, PAIR = 0, 1, 2
SPECIAL = 0xFFFF
DOUBLE_BIAS = 1088
"""2**-1074 is the least double; a multiple of 32 that is not less."""

_LIMB = np.int64(0xFFFFFFFF)
_ULIMB = np.uint64(0xFFFFFFFF)
_U32 = np.uint64(32)
_SIGN = np.int64(-(1 << 63))
_MAGNITUDE = np.int64((1 << 63) - 1)
_FRACTION = np.int64((1 << 52) - 1)
_HIDDEN = np.int64(1 << 52)
_INFINITY = np.int64(0x7FF0000000000000)
_NAN = np.int64(0x7FF8000000000000)
_LIMBS = 72
_LEAST_BIT = DOUBLE_BIAS - 1074


@inlined
def bucket_of(bits: int) -> int:
    """The bucket of a double given by its bits."""
    exponent = (bits >> 52) & 0x7FF
    if exponent == 0x7FF:
        return np.int64(SPECIAL)
    if exponent == 0:
        exponent = np.int64(1)
    return (exponent - 1075 + DOUBLE_BIAS) >> 5


@inlined
def add_double(out: Rows, at: int, to: int, bits: int, weight: int) -> None:
    """Add ``weight`` times a double to the three words of its bucket."""
    exponent = (bits >> 52) & 0x7FF
    if exponent == 0x7FF:
        if bits & _FRACTION:
            out[at, to + 2] += weight
        elif bits < 0:
            out[at, to + 1] += weight
        else:
            out[at, to] += weight
        return
    m = bits & _FRACTION
    if exponent == 0:
        exponent = np.int64(1)
    else:
        m |= _HIDDEN
    shift = (exponent - 1075 + DOUBLE_BIAS) & 31
    low = (m & _LIMB) << shift
    high = ((m >> 32) << shift) + (low >> 32)
    if bits < 0:
        weight = -weight
    out[at, to] += weight * (low & _LIMB)
    out[at, to + 1] += weight * (high & _LIMB)
    out[at, to + 2] += weight * (high >> 32)


@inlined
def _multiply(limbs: Hashes, length: int, a: np.uint64, b: np.uint64, spare: Hashes) -> int:
    """Multiply a number of ``length`` limbs by the two limbs (a, b), the lower first; give the new length."""
    for k in range(length + 2):
        spare[k] = np.uint64(0)
    for k in range(length):
        t = limbs[k] * a + spare[k]
        spare[k] = t & _ULIMB
        t = limbs[k] * b + spare[k + 1] + (t >> _U32)
        spare[k + 1] = t & _ULIMB
        spare[k + 2] += t >> _U32
    for k in range(length + 2):
        limbs[k] = spare[k]
    return length + 2


@inlined
def add_product(
    rows: Rows,
    i: int,
    factors: Rows,
    first: int,
    last: int,
    limbs: Hashes,
    spare: Hashes,
) -> tuple[int, int, bool]:
    """Fill ``limbs`` with the product of factors first..last of row ``i``; give (exponent, sign, is it finite).

    ``factors`` are (word, kind). The exponent counts from the bias, and the limbs are not shifted by its low bits yet.
    """
    limbs[:] = np.uint64(0)
    limbs[0] = np.uint64(1)
    length = 1
    exponent = np.int64(0)
    sign = np.int64(1)
    for f in range(first, last):
        x = rows[i, factors[f, 0]]
        if factors[f, 1] == DOUBLE:
            e = (x >> 52) & 0x7FF
            if e == 0x7FF:
                return exponent, sign, False
            m = np.uint64(x & _FRACTION)
            if e == 0:
                e = np.int64(1)
            else:
                m |= np.uint64(_HIDDEN)
            exponent += e - 1075 + DOUBLE_BIAS
            if x < 0:
                sign = -sign
            length = _multiply(limbs, length, m & _ULIMB, m >> _U32, spare)
        elif factors[f, 1] == WORD:
            m = np.uint64(x)
            if x < 0:
                sign = -sign
                m = ~m + np.uint64(1)
            length = _multiply(limbs, length, m & _ULIMB, m >> _U32, spare)
        else:
            high = np.uint64(x)
            low = np.uint64(rows[i, factors[f, 0] + 1] ^ _SIGN)
            if x < 0:
                sign = -sign
                low = ~low + np.uint64(1)
                high = ~high + (np.uint64(1) if low == np.uint64(0) else np.uint64(0))
            length = _multiply_pair(limbs, length, high, low, spare)
    return exponent, sign, True


@inlined
def _multiply_pair(limbs: Hashes, length: int, high: np.uint64, low: np.uint64, spare: Hashes) -> int:
    for k in range(length + 4):
        spare[k] = np.uint64(0)
    for k in range(length):
        t = np.uint64(0)
        for j in range(4):
            y = low if j < 2 else high
            y = (y >> _U32) if j & 1 else (y & _ULIMB)
            t = limbs[k] * y + spare[k + j] + (t >> _U32)
            spare[k + j] = t & _ULIMB
        spare[k + 4] += t >> _U32
    for k in range(length + 4):
        limbs[k] = spare[k]
    return length + 4


@inlined
def _to_double(limbs: Positions, low: int, high: int) -> float:
    """The double nearest to the sum of ``limbs[k] * 2**(32 * k - DOUBLE_BIAS)``; limbs outside [low, high) are zero."""
    carry = np.int64(0)
    for k in range(low, high):
        x = limbs[k] + carry
        limbs[k] = x & _LIMB
        carry = x >> 32
    top = high
    while carry != carry >> 1:  # neither 0 nor -1
        limbs[top] = carry & _LIMB
        carry >>= 32
        top += 1
    negative = carry < 0
    if negative:
        add = np.int64(1)
        for k in range(low, top):
            x = (limbs[k] ^ _LIMB) + add
            limbs[k] = x & _LIMB
            add = x >> 32
        if add:
            limbs[top] = np.int64(1)
            top += 1
    while top > low and limbs[top - 1] == 0:
        top -= 1
    if top == low:
        return 0.0
    length = np.int64(0)
    x = limbs[top - 1]
    while x:
        x >>= 1
        length += 1
    highest = 32 * (np.int64(top) - 1) + length - 1
    lowest = max(highest - 52, np.int64(_LEAST_BIT))
    m = np.int64(0)
    for k in range(lowest >> 5, top):
        x = limbs[k]
        shift = 32 * np.int64(k) - lowest
        m += (x << shift) if shift >= 0 else (x >> -shift)
    if lowest > 0:
        below = lowest - 1
        half = (limbs[below >> 5] >> (below & 31)) & 1
        if half:
            sticky = (limbs[below >> 5] & ((np.int64(1) << (below & 31)) - 1)) != 0
            k = (below >> 5) - 1
            while not sticky and k >= low:
                sticky = limbs[k] != 0
                k -= 1
            if sticky or m & 1:
                m += 1
    found = math.ldexp(float(m), int(lowest) - DOUBLE_BIAS)
    return -found if negative else found


@kernel
def rounded(  # noqa: C901
    runs: Rows,
    hashes: Hashes,
    probes: Rows,
    probe_parts: Rows,
    parts: Rows,
    width: int,
    part_word: int,
    payload: int,
    wanted: Positions,
    out: Rows,
) -> None:
    """The bits of the sums of doubles of each probe's key: ``out[i, k]`` is that of the product ``wanted[k]``."""
    number = wanted.size
    limbs = np.zeros((number, _LIMBS), np.int64)
    low = np.empty(number, np.int64)
    high = np.empty(number, np.int64)
    special = np.zeros((number, 3), np.int64)
    for i in range(probes.shape[0]):
        for k in range(number):
            low[k] = _LIMBS
            high[k] = 0
            special[k] = 0
        for r in range(runs.shape[0]):
            rows = view_rows(runs[r, 1], runs[r, 5], width)
            a, b = hash_range(runs, r, hashes[i])
            for j in range(a, b):
                part = rows[j, part_word]
                if part <= 0 or not equal_parts(probes, i, 0, probe_parts, rows, j, runs[r, 2], parts):
                    continue
                for k in range(number):
                    if wanted[k] != (part >> 16) - 1:
                        continue
                    bucket = part & 0xFFFF
                    if bucket == SPECIAL:
                        for c in range(3):
                            special[k, c] += rows[j, payload + c]
                        continue
                    for c in range(3):
                        limbs[k, bucket + c] += rows[j, payload + c]
                    low[k] = min(low[k], bucket)
                    high[k] = max(high[k], bucket + 3)
        for k in range(number):
            if special[k, 2] != 0 or (special[k, 0] != 0 and special[k, 1] != 0):
                out[i, k] = _NAN
            elif special[k, 0] != 0:
                out[i, k] = _INFINITY
            elif special[k, 1] != 0:
                out[i, k] = _INFINITY | _SIGN
            elif high[k] > low[k]:
                found = _to_double(limbs[k], low[k], high[k])
                out[i, k] = np.float64(found).view(np.int64)
            else:
                out[i, k] = 0
            for c in range(low[k], min(high[k] + 4, _LIMBS)):
                limbs[k, c] = 0


@kernel
def normalise(rows: Rows, words: Positions) -> None:
    """Make the doubles in these words fit to be compared by their bits: one zero, and one NaN."""
    for i in range(rows.shape[0]):
        for k in range(words.size):
            bits = rows[i, words[k]]
            if (bits & _MAGNITUDE) == 0:
                rows[i, words[k]] = 0
            elif (bits & _MAGNITUDE) > _INFINITY:
                rows[i, words[k]] = _NAN

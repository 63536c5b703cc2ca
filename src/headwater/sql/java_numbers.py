"""Doubles and floats as Java prints them: ``1.0E10``, ``0.001``, ``9.0E-4``, ``NaN``.

Up to version 18 Java did not always find the shortest digits that read back as the number (2e23 was
``1.9999999999999998E23``); since version 19 it does. Spark runs on both, so a number for which the two differ has no
one text: `java_text` gives None for it. Older Java generates digits from the exact value until what is left is smaller
than half a unit in the last place, with tests that are a little too strict; `_old_digits` does the same in whole
numbers.
"""

from __future__ import annotations

import math
import struct

import numpy as np

__all__ = ["java_text", "newest_text"]

# How many decimal digits of a whole number beyond 2^53 (2^24) say nothing: floor of p * log10(2)
_NO_DIGITS = [math.floor(p * math.log10(2)) for p in range(64)]
_BITS_OF_5 = [math.ceil(n * math.log2(5)) if n else 0 for n in range(27)]


def java_text(value: float, *, single: bool = False) -> str | None:
    """The number's text, or None where versions of Java differ.

    >>> java_text(1e10), java_text(0.5), java_text(-0.0), java_text(2e23)
    ('1.0E10', '0.5', '-0.0', None)
    """
    if math.isnan(value):
        return "NaN"
    sign = "-" if math.copysign(1, value) < 0 else ""
    if math.isinf(value):
        return sign + "Infinity"
    if value == 0:
        return sign + "0.0"
    new, old = _new_digits(abs(value), single), _old_digits(abs(value), single)
    return sign + _written(*new) if new == old else None


def newest_text(value: float) -> str:
    """The text that Java prints since version 19.

    >>> newest_text(1e300), newest_text(-2e23)
    ('1.0E300', '-2.0E23')
    """
    return java_text(value) or ("-" if value < 0 else "") + _written(*_new_digits(abs(value), single=False))


def _written(digits: str, point: int) -> str:
    """``digits`` with the decimal point after the first ``point`` of them."""
    if -3 < point <= 7:
        if point <= 0:
            return "0." + "0" * -point + digits
        padded = digits.ljust(point, "0")
        return f"{padded[:point]}.{padded[point:] or '0'}"
    return f"{digits[0]}.{digits[1:] or '0'}E{point - 1}"


def _new_digits(value: float, single: bool) -> tuple[str, int]:
    text = np.format_float_scientific(np.float32(value) if single else value, unique=True, trim="-")
    mantissa, exponent = text.split("e")
    digits = mantissa.replace(".", "")
    if len(digits) == 1:
        # Two digits are always printed, so the nearest of two digits is taken.
        two = f"{value:.1e}"
        if (np.float32(two) if single else float(two)) == value:
            mantissa, exponent = two.split("e")
            digits = mantissa.replace(".", "")
    digits = digits.rstrip("0") or "0"
    return digits, int(exponent) + 1


def _old_digits(value: float, single: bool) -> tuple[str, int]:
    if single:
        (bits,) = struct.unpack(">I", struct.pack(">f", value))
        fraction, exponent, width = bits & 0x7FFFFF, bits >> 23, 23
        bias = 127
    else:
        (bits,) = struct.unpack(">Q", struct.pack(">d", value))
        fraction, exponent, width = bits & 0xFFFFFFFFFFFFF, bits >> 52, 52
        bias = 1023
    significant = width + 1
    if exponent == 0:
        # Below the normal numbers: the first 1 is shifted into its place.
        shift = width + 1 - fraction.bit_length()
        fraction, exponent, significant = fraction << shift, 1 - shift, fraction.bit_length()
    else:
        fraction |= 1 << width
    fraction <<= 52 - width
    power = exponent - bias
    return _develop(power, fraction, significant)


def _develop(power: int, fraction: int, significant: int) -> tuple[str, int]:
    """Digits and point of ``fraction * 2**(power - 52)``, of which ``significant`` bits count."""
    zeros = (fraction & -fraction).bit_length() - 1
    bits = 53 - zeros
    tiny = max(0, bits - power - 1)
    if -21 <= power <= 62 and tiny == 0 and bits < 64:
        dropped = _NO_DIGITS[power - significant - 1] if power - significant - 1 > 1 else 0
        whole = fraction << (power - 52) if power >= 52 else fraction >> (52 - power)
        if dropped:
            unit = 10**dropped
            whole, rest = divmod(whole, unit)
            whole += rest >= unit >> 1
        text = str(whole)
        return text.rstrip("0") or "0", len(text) + dropped
    (head,) = struct.unpack(">d", struct.pack(">Q", (1023 << 52) | (fraction & 0xFFFFFFFFFFFFF)))
    decimal = math.floor((head - 1.5) * 0.289529654 + 0.176091259 + power * 0.301029995663981)
    b5, s5 = max(0, -decimal), max(0, decimal)
    b2, s2 = b5 + tiny + power, s5 + tiny
    m2 = b2 - significant
    b2 -= bits - 1
    common = min(b2, s2)
    b2, s2, m2 = b2 - common, s2 - common, m2 - common
    if bits == 1:
        m2 -= 1
    if m2 < 0:
        b2, s2, m2 = b2 - m2, s2 - m2, 0
    room = bits + b2 + (_BITS_OF_5[b5] if b5 < 27 else b5 * 3)
    ten_room = s2 + 1 + (_BITS_OF_5[s5 + 1] if s5 + 1 < 27 else (s5 + 1) * 3)
    width = 32 if max(room, ten_room) < 32 else 64 if max(room, ten_room) < 64 else None
    b = ((fraction >> zeros) * 5**b5) << b2
    s, m = 5**s5 << s2, 5**b5 << m2
    return _digits(b, s, m, decimal, width)


def _wrapped(value: int, width: int) -> int:
    half = 1 << (width - 1)
    return (value + half) % (2 * half) - half


def _digits(b: int, s: int, m: int, decimal: int, width: int | None) -> tuple[str, int]:
    ten = 10 * s
    q, b = divmod(b, s)
    b, m = 10 * b, 10 * m

    def near() -> tuple[bool, bool]:
        if width is None:
            return b < m, b + m >= ten
        # In Java these are ints or longs, and their sum may overflow.
        margin = _wrapped(m, width)
        return (b < margin, _wrapped(b + margin, width) > ten) if margin > 0 else (True, True)

    low, high = near()
    digits = []
    if q == 0 and not high:
        decimal -= 1
    else:
        digits.append(q)
    if decimal < -3 or decimal >= 8:
        low = high = False
    while not low and not high:
        q, b = divmod(b, s)
        b, m = 10 * b, 10 * m
        low, high = near()
        digits.append(q)
    past = 2 * b - ten if width is None else _wrapped(2 * b - ten, width)
    if high and (not low or past > 0 or (past == 0 and digits[-1] % 2)):
        at = len(digits) - 1
        while at >= 0 and digits[at] == 9:
            digits[at] = 0
            at -= 1
        if at >= 0:
            digits[at] += 1
        else:
            digits, decimal = [1, *digits[:-1]], decimal + 1
    return "".join(map(str, digits)).rstrip("0") or "0", decimal + 1

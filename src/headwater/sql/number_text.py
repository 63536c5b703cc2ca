"""The texts that Spark reads as numbers and as truth values.

Spark reads numbers with Java's own parsers, which know more than digits: ``1e5`` is a decimal, ``1d``, ``0x1p3``,
``NaN`` and ``-Infinity`` are doubles, digits of other scripts are digits of decimals, and control characters around a
number are blanks. What is a blank differs: doubles and decimals are trimmed as Java's ``trim`` does, whole numbers and
truth values also of the character 127.

Each function gives None for a text that Spark does not read. Engines read the plain forms themselves; these are for the
rest.

>>> whole_of(" +12 "), real_of("-inf"), decimal_text("1.5e3"), truth_of("Yes"), real_of("1 2")
(12, -inf, '1500', True, None)
"""

from __future__ import annotations

import math
import re
import struct
import unicodedata
from fractions import Fraction

__all__ = [
    "ALL_BLANKS",
    "BLANKS",
    "FALSE",
    "TRUE",
    "decimal_text",
    "nearest_single",
    "real_of",
    "single_of",
    "truth_of",
    "whole_of",
]

BLANKS = "".join(map(chr, range(33)))
"""What is around a double or a decimal."""
ALL_BLANKS = BLANKS + "\x7f"
"""What is around a whole number, a truth value or a date."""
TRUE, FALSE = ("t", "true", "y", "yes", "1"), ("f", "false", "n", "no", "0")
_WHOLE = re.compile(r"([+-]?)0*([0-9]+)", re.ASCII)
_REAL = re.compile(r"([+-]?(?:[0-9]+(?:[.][0-9]*)?|[.][0-9]+)(?:[eE][+-]?[0-9]+)?)[dDfF]?", re.ASCII)
_HEX = re.compile(r"([+-]?0[xX](?=[.]?[0-9a-fA-F])[0-9a-fA-F]*[.]?[0-9a-fA-F]*[pP][+-]?[0-9]+)[dDfF]?", re.ASCII)
_NOT_FINITE = re.compile(r"([+-]?)(NaN|Infinity)")
_WORDS = {"inf": math.inf, "infinity": math.inf, "+inf": math.inf, "+infinity": math.inf, "nan": math.nan}
_WORDS |= {"-inf": -math.inf, "-infinity": -math.inf}
_DECIMAL = re.compile(r"([+-]?)(?:(\d+)(?:[.](\d*))?|[.](\d+))(?:[eE]([+-]?)(\d+))?")
_LARGEST_SINGLE = (2 - 2.0**-23) * 2.0**127
_NO_SINGLE_FROM = Fraction(2) ** 128 - Fraction(2) ** 103
_MOST_DIGITS = 38
_MORE_THAN_ANY = 10**40


def whole_of(text: str) -> int | None:
    """A whole number; of those with more than 40 digits one that is too large as well."""
    match = _WHOLE.fullmatch(text.strip(ALL_BLANKS))
    if match is None:
        return None
    found = int(match[2]) if len(match[2]) <= 40 else _MORE_THAN_ANY
    return -found if match[1] == "-" else found


def truth_of(text: str) -> bool | None:
    """One of Spark's words for true and false."""
    word = text.strip(ALL_BLANKS).lower()
    return True if word in TRUE else False if word in FALSE else None


def real_of(text: str) -> float | None:
    """A double.

    >>> real_of("1.5F"), real_of("0x1.8p3"), real_of("1e400"), real_of("+NaN"), real_of("-nan")
    (1.5, 12.0, inf, nan, None)
    """
    trimmed = text.strip(BLANKS)
    if (match := _REAL.fullmatch(trimmed)) is not None:
        return float(match[1])
    if (match := _HEX.fullmatch(trimmed)) is not None:
        return _from_hex(match[1])
    return _special(trimmed)


def single_of(text: str) -> float | None:
    """A float of 32 bits, rounded once.

    >>> single_of("16777217"), single_of("1.00000005960464477540"), single_of("1e39")
    (16777216.0, 1.0000001192092896, inf)
    """
    trimmed = text.strip(BLANKS)
    if (match := _REAL.fullmatch(trimmed)) is not None:
        near = float(match[1])
        # Outside of these no digit matters, and the fraction of the text would be long.
        return nearest_single(Fraction(match[1]), near) if 1e-50 < abs(near) < 1e50 else _as_single(near)
    if (match := _HEX.fullmatch(trimmed)) is not None:
        near = _from_hex(match[1])
        return nearest_single(_hex_fraction(match[1]), near) if 1e-50 < abs(near) < 1e50 else _as_single(near)
    return _special(trimmed)


def nearest_single(exact: Fraction, near: float) -> float:
    """The float of 32 bits nearest to a number, of which ``near`` is the nearest double;
    of two equally near the even one.
    """
    found = _as_single(near)
    if Fraction(near) == exact:
        return found
    if math.isinf(found):
        return math.copysign(_LARGEST_SINGLE, near) if abs(exact) < _NO_SINGLE_FROM else found
    # To round twice is wrong only where the first rounding lands between two floats: then it hides on which side the
    # number is.
    towards = _next_single(found, up=near > found)
    if near != found and math.isfinite(towards) and Fraction(near) * 2 == Fraction(found) + Fraction(towards):
        return towards if (exact > Fraction(near)) == (towards > found) else found
    return found


def _as_single(value: float) -> float:
    try:
        (found,) = struct.unpack("<f", struct.pack("<f", value))
    except OverflowError:
        found = math.copysign(math.inf, value)
    return float(found)


def _next_single(value: float, *, up: bool) -> float:
    (bits,) = struct.unpack("<i", struct.pack("<f", value))
    order = bits if bits >= 0 else -(bits & 0x7FFFFFFF)
    order += 1 if up else -1
    return float(struct.unpack("<f", struct.pack("<I", order if order >= 0 else -order | 0x80000000))[0])


def _from_hex(text: str) -> float:
    try:
        return float.fromhex(text)
    except OverflowError:
        return -math.inf if text.startswith("-") else math.inf


def _hex_fraction(text: str) -> Fraction:
    mantissa, power = re.split("[pP]", text)
    whole, _, fraction = mantissa.partition(".")
    exponent = int(power) - 4 * len(fraction)
    return Fraction(int(whole + fraction, 16)) * Fraction(2) ** exponent


def _special(trimmed: str) -> float | None:
    if (match := _NOT_FINITE.fullmatch(trimmed)) is not None:
        return math.nan if match[2] == "NaN" else -math.inf if match[1] == "-" else math.inf
    return _WORDS.get(trimmed.lower())


def decimal_text(text: str) -> str | None:
    """A decimal as plain digits, or None; digits that no decimal has room for are left out.

    >>> decimal_text(" 1.5e3"), decimal_text("1e-400"), decimal_text("0e50"), decimal_text("1d"), decimal_text("٣.٥")
    ('1500', '0', None, None, '3.5')
    """
    trimmed = text.strip(BLANKS)
    match = _DECIMAL.fullmatch(trimmed)
    if match is None or max(trimmed) > "\uffff":
        return None
    sign, whole, fraction, alone, power_sign, power = match.groups()
    whole, fraction = whole or "", fraction or alone or ""
    power = _digits(power or "0")
    if len(power) > 10 or int(power) >= 2**31:
        return None
    digits = _digits(whole + fraction)
    scale = len(fraction) - int((power_sign or "") + power)
    if len(digits) - scale > _MOST_DIGITS:
        return None
    if scale <= 0:
        return sign + digits + "0" * -scale
    if scale - len(digits) > _MOST_DIGITS:
        return "0"
    digits = digits.rjust(scale + 1, "0")
    return f"{sign}{digits[:-scale]}.{digits[-scale:]}"


def _digits(text: str) -> str:
    """The digits of any script as those of ours, without zeros in front."""
    plain = text if text.isascii() else "".join(str(unicodedata.decimal(c)) for c in text)
    return plain.lstrip("0") or "0"

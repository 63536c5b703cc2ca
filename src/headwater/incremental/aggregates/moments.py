"""Spread, correlation and shape: of exact moments, rounded once.

Sums of powers and of products are kept exactly (`headwater.kernels.floats`), where the usual way of computing a
variance loses all digits when the mean is large, and drifts under retractions. A result is a fraction of whole numbers,
or the root of one, computed as such and rounded to the nearest double once. So it does not depend on the order of the
rows, nor on their history; Spark's last digits do. Numbers count as they are: a decimal is not rounded to a double
first.

With a NaN or an infinity among the values the result is NaN. The keys touched are looked at one by one, in Python:
about ten microseconds each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow as pa

from headwater.base.errors import ExpressionError
from headwater.incremental.aggregates.aggregation import Accumulator, Array, Linear, Values, failed
from headwater.incremental.aggregates.linear import counted
from headwater.kernels.accumulate import PRODUCT
from headwater.kernels.floats import DOUBLE_BIAS

__all__ = ["MOMENTS", "Moment", "nearest", "nearest_root"]

Sums = dict[str, Fraction]


def nearest(value: Fraction) -> float:
    """The double nearest to a fraction; infinite where there is none.

    >>> nearest(Fraction(1, 3)), nearest(Fraction(10**400))
    (0.3333333333333333, inf)
    """
    return _ratio(value.numerator, value.denominator)


def _valued(total: int, bits: int, divisor: int) -> Fraction:
    """``total * 2**-bits / divisor``, without making numbers of thousands of bits that are mostly zeros."""
    if not total:
        return Fraction(0)
    zeros = (total & -total).bit_length() - 1
    shift = zeros - bits
    odd = total >> zeros
    return Fraction(odd << shift, divisor) if shift >= 0 else Fraction(odd, divisor << -shift)


def nearest_root(value: Fraction) -> float:
    """The double nearest to the root of a fraction that is not negative.

    >>> nearest_root(Fraction(2)) == math.sqrt(2), nearest_root(Fraction(1, 4))
    (True, 0.5)
    """
    return _root(value.numerator, value.denominator)


def _ratio(numerator: int, denominator: int) -> float:
    try:
        return numerator / denominator
    except OverflowError:
        return math.inf if numerator > 0 else -math.inf


def _root(numerator: int, denominator: int) -> float:
    if not numerator:
        return 0.0
    # A root of at least 60 bits, and one more that says whether something was cut off.
    scale = (120 - numerator.bit_length() + denominator.bit_length()) // 2 + 1
    shifted, rest = divmod(numerator << max(2 * scale, 0), denominator << max(-2 * scale, 0))
    root = math.isqrt(shifted)
    inexact = rest != 0 or root * root != shifted
    odd = 2 * root + inexact
    return _ratio(odd, 1 << (scale + 1)) if scale >= -1 else _ratio(odd << (-scale - 1), 1)


def _spread(s: Sums, x: str, y: str) -> Fraction:
    """The sum of (x - mean of x)(y - mean of y), times nothing."""
    return s[x + y] - s[x] * s[y] / s["n"]


def _variance(s: Sums, *, sample: bool) -> float | None:
    n = s["n"] - sample
    return nearest(_spread(s, "x", "x") / n) if n > 0 else None


def _deviation(s: Sums, *, sample: bool) -> float | None:
    n = s["n"] - sample
    return nearest_root(_spread(s, "x", "x") / n) if n > 0 else None


def _covariance(s: Sums, *, sample: bool) -> float | None:
    n = s["n"] - sample
    return nearest(_spread(s, "x", "y") / n) if n > 0 else None


def _signed_root(sign: Fraction, square: Fraction) -> float:
    return math.copysign(nearest_root(square), sign) if square else 0.0


def _correlation(s: Sums) -> float | None:
    if s["n"] <= 1:
        return None
    x, y, both = _spread(s, "x", "x"), _spread(s, "y", "y"), _spread(s, "x", "y")
    return _signed_root(both, both * both / (x * y))


def _skewness(s: Sums) -> float | None:
    n, mean = s["n"], s["x"] / s["n"]
    second = _spread(s, "x", "x")
    if not second:
        return None
    third = s["xxx"] - 3 * mean * s["xx"] + 3 * mean**2 * s["x"] - n * mean**3
    return _signed_root(third, n * third**2 / second**3)


def _kurtosis(s: Sums) -> float | None:
    n, mean = s["n"], s["x"] / s["n"]
    second = _spread(s, "x", "x")
    if not second:
        return None
    fourth = s["xxxx"] - 4 * mean * s["xxx"] + 6 * mean**2 * s["xx"] - 4 * mean**3 * s["x"] + n * mean**4
    return nearest(n * fourth / second**2 - 3)


# Regressions take (y, x): the dependent column comes first, so here `x` is the second argument's name in Spark's
# formulas.


def _slope(s: Sums) -> float | None:
    spread = _spread(s, "y", "y")
    return nearest(_spread(s, "x", "y") / spread) if spread else None


def _intercept(s: Sums) -> float | None:
    spread = _spread(s, "y", "y")
    return nearest((s["x"] - _spread(s, "x", "y") / spread * s["y"]) / s["n"]) if spread else None


def _determination(s: Sums) -> float | None:
    x, y = _spread(s, "x", "x"), _spread(s, "y", "y")
    if not y:
        return None
    return nearest(_spread(s, "x", "y") ** 2 / (x * y)) if x else 1.0


_Formula = Callable[[Sums], float | None]
_ONE, _PAIR = ("x", "xx"), ("x", "y", "xx", "xy", "yy")
MOMENTS: dict[str, tuple[tuple[str, ...], _Formula]] = {
    "var_pop": (_ONE, lambda s: _variance(s, sample=False)),
    "var_samp": (_ONE, lambda s: _variance(s, sample=True)),
    "stddev_pop": (_ONE, lambda s: _deviation(s, sample=False)),
    "stddev_samp": (_ONE, lambda s: _deviation(s, sample=True)),
    "skewness": (("x", "xx", "xxx"), _skewness),
    "kurtosis": (("x", "xx", "xxx", "xxxx"), _kurtosis),
    "covar_pop": (("x", "y", "xy"), lambda s: _covariance(s, sample=False)),
    "covar_samp": (("x", "y", "xy"), lambda s: _covariance(s, sample=True)),
    "corr": (_PAIR, _correlation),
    "regr_slope": (_PAIR, _slope),
    "regr_intercept": (_PAIR, _intercept),
    "regr_r2": (_PAIR, _determination),
    "regr_sxx": (_PAIR, lambda s: nearest(_spread(s, "y", "y"))),
    "regr_sxy": (_PAIR, lambda s: nearest(_spread(s, "x", "y"))),
    "regr_syy": (_PAIR, lambda s: nearest(_spread(s, "x", "x"))),
}
"""The formulas by name, and the moments each needs; ``x`` and ``y`` are the first and the second column."""
_SPREADS = frozenset({"var_pop", "var_samp", "stddev_pop", "stddev_samp"})
_OF_SEVERAL = frozenset({"var_samp", "stddev_samp", "covar_samp", "corr"})


@dataclass(frozen=True)
class Moment(Linear):
    """One of `MOMENTS`, of a column or of the pairs of two in which neither is null.

    ``dtypes`` are the types of the columns: whole numbers, decimals or floats.
    """

    how: str
    columns: tuple[str, ...]
    dtypes: tuple[pa.DataType, ...]

    @property
    def field(self) -> pa.Field:
        return pa.field(self.name, pa.float64())

    @property
    def arguments(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.columns))

    @property
    def text(self) -> str:
        return f"{self.how}({', '.join(self.columns)})"

    @property
    def accumulators(self) -> tuple[Accumulator, ...]:
        powers, _ = MOMENTS[self.how]
        names = dict(zip("xy", self.columns, strict=False))
        sums = [Accumulator(PRODUCT, tuple(names[c] for c in power), present=self.columns) for power in powers]
        return (counted(*self.columns), *sums)

    def _units(self) -> list[tuple[int, int]]:
        """What a unit of each sum is worth: 2**-first / second."""
        powers, _ = MOMENTS[self.how]
        bits = {c: DOUBLE_BIAS * pa.types.is_floating(t) for c, t in zip("xy", self.dtypes, strict=False)}
        tens = {c: 10**t.scale if pa.types.is_decimal(t) else 1 for c, t in zip("xy", self.dtypes, strict=False)}
        return [(sum(bits[c] for c in power), math.prod(tens[c] for c in power)) for power in powers]

    def _spread_of(self, sums: Sequence[Array], i: int) -> float | None:
        """Variances and deviations, the most frequent of these, without making fractions."""
        n, total, squares = int(sums[0][i, 0]), sums[1][i, 0], sums[2][i, 0]
        free = n - self.how.endswith("_samp")
        if not free:
            return None
        bits, tens = self._units()[1]
        return (_root if self.how.startswith("stddev") else _ratio)(
            n * squares - total * total, (n * free * tens) << bits
        )

    def finish(self, sums: Sequence[Array]) -> Values:
        powers, formula = MOMENTS[self.how]
        units = self._units()
        count = sums[0][:, 0]
        values = np.zeros(len(count), dtype=np.float64)
        nulls = count <= 0
        for i in np.flatnonzero(~nulls):
            if any(s[i, 1] for s in sums[1:]):
                values[i] = np.nan
                nulls[i] = count[i] == 1 and self.how in _OF_SEVERAL
                continue
            if self.how in _SPREADS:
                found = self._spread_of(sums, int(i))
                values[i] = found or 0.0
                nulls[i] = found is None
                continue
            given = {p: _valued(s[i, 0], *u) for p, s, u in zip(powers, sums[1:], units, strict=True)}
            try:
                found = formula({"n": Fraction(int(count[i])), **given})
            except ZeroDivisionError:
                raise self._division() from None
            if found is None:
                nulls[i] = True
            else:
                values[i] = found
        return Values(values.view(np.int64)[:, None], nulls)

    def _division(self) -> ExpressionError:
        return failed(self, "division by zero: a column does not vary")

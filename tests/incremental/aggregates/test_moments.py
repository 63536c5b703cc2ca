"""Spread, correlation and shape, against exact fractions and against Decimal roots."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.base.errors import ExpressionError
from headwater.incremental.aggregates.moments import nearest, nearest_root
from headwater.incremental.aggregates.registry import aggregation

from .histories import DOUBLES, SCHEMA, Checked, Row, check, histories, rows

_FINE = Context(prec=800, Emin=-999999, Emax=999999)
Number = Fraction | None


def rounded(x: Fraction | None) -> float | None:
    if x is None:
        return None
    try:
        return float(x)
    except OverflowError:
        return math.inf if x > 0 else -math.inf


def rooted(x: Fraction | None, sign: int = 1) -> float | None:
    if x is None:
        return None
    found = _FINE.sqrt(_FINE.divide(Decimal(x.numerator), Decimal(x.denominator)))
    return sign * float(found)


def pairs(some: list[Row], x: str, y: str) -> tuple[list[Fraction], list[Fraction]] | None:
    found = [(r[x], r[y]) for r in some if r[x] is not None and r[y] is not None]
    return [Fraction(a) for a, _ in found], [Fraction(b) for _, b in found]


def central(xs: list[Fraction], ys: list[Fraction]) -> Fraction:
    mx, my = sum(xs, Fraction(0)) / len(xs), sum(ys, Fraction(0)) / len(ys)
    return sum(((a - mx) * (b - my) for a, b in zip(xs, ys, strict=True)), Fraction(0))


def oracle(how: str, x: str, y: str | None = None) -> Callable[[list[Row]], float | None]:
    def found(some: list[Row]) -> float | None:
        xs, ys = pairs(some, x, y or x) or ([], [])
        n = len(xs)
        sample = how.endswith("_samp") or how == "corr"
        if n == 0 or (sample and n == 1):
            return None
        spread, other, both = central(xs, xs), central(ys, ys), central(xs, ys)
        mean, by = sum(xs, Fraction(0)) / n, sum(ys, Fraction(0)) / n
        if how.startswith(("var", "covar")):
            return rounded(both / (n - sample))
        if how.startswith("stddev"):
            return rooted(spread / (n - sample))
        if how == "skewness":
            third = sum(((a - mean) ** 3 for a in xs), Fraction(0))
            return rooted(n * third**2 / spread**3, -1 if third < 0 else 1) if spread else None
        if how == "kurtosis":
            return rounded(n * sum(((a - mean) ** 4 for a in xs), Fraction(0)) / spread**2 - 3) if spread else None
        if how == "regr_r2":
            return None if not other else 1.0 if not spread else rounded(both**2 / (spread * other))
        if how == "regr_slope":
            return rounded(both / other) if other else None
        if how == "regr_intercept":
            return rounded(mean - both / other * by) if other else None
        return rounded({"regr_sxx": other, "regr_sxy": both, "regr_syy": spread}[how])

    return found


_ONE = ("var_pop", "var_samp", "stddev_pop", "stddev_samp", "skewness", "kurtosis")
_TWO = ("covar_pop", "covar_samp", "regr_slope", "regr_intercept", "regr_r2", "regr_sxx", "regr_sxy", "regr_syy")
CASES: dict[str, Any] = {
    f"{how}_{c}": (aggregation(how, c, schema=SCHEMA, name=f"{how}_{c}"), oracle(how, c))
    for how in _ONE
    for c in ("v", "d", "p", "q")
} | {
    f"{how}_{a}{b}": (aggregation(how, (a, b), schema=SCHEMA, name=f"{how}_{a}{b}"), oracle(how, a, b))
    for how in _TWO
    for a, b in (("v", "d"), ("d", "p"))
}
_SMALL = st.one_of(st.none(), DOUBLES.filter(lambda x: x == 0 or 1e-60 < abs(x) < 1e60))


@given(histories(rows(d=_SMALL), steps=4))
@settings(max_examples=25, deadline=None)
def test_histories(history: list[list[Any]]) -> None:
    check(history, CASES)


@given(histories(rows(d=st.one_of(st.none(), DOUBLES)), steps=3))
@settings(max_examples=15, deadline=None)
def test_histories_of_any_size(history: list[list[Any]]) -> None:
    check(history, {k: CASES[k] for k in ("var_pop_d", "covar_samp_vd", "kurtosis_d")}, ())


@given(st.lists(st.integers(-50, 50), min_size=2, max_size=30))
def test_they_are_what_others_say(numbers: list[int]) -> None:
    x = {"g": 1, **dict.fromkeys(SCHEMA.names[1:]), "n": 0}
    history = [[("insert", {**x, "v": k, "d": float(k * k % 7)}, 1) for k in numbers]]
    made = {h: aggregation(h, "v", schema=SCHEMA, name=h) for h in _ONE}
    made["corr"] = aggregation("covar_pop", ("v", "d"), schema=SCHEMA, name="corr")
    checked = Checked(["g"], list(made.values()), {})
    checked.expected = lambda: set(checked.out)  # type: ignore[method-assign]
    checked.step(history[0])
    (row,) = checked.out
    found = dict(zip(["g", *made], [np.frombuffer(v[1])[0] if isinstance(v, tuple) else v for v in row], strict=True))
    assert found["var_samp"] == pytest.approx(statistics.variance(numbers))
    assert found["stddev_pop"] == pytest.approx(statistics.pstdev(numbers))
    assert found["corr"] == pytest.approx(float(np.cov(numbers, [k * k % 7 for k in numbers], bias=True)[0, 1]))


def test_not_a_number_makes_not_a_number_and_can_be_undone() -> None:
    x = {"g": 1, **dict.fromkeys(SCHEMA.names[1:]), "n": 0}

    def nan_oracle(some: list[Row]) -> float | None:
        if any(not math.isfinite(r["d"]) for r in some):
            return math.nan
        return oracle("var_pop", "d")(some)

    checked = check([], {"v": (aggregation("var_pop", "d", schema=SCHEMA), nan_oracle)})
    for d in (1.0, math.inf, 2.0, math.nan, -math.inf):
        checked.step([("insert", {**x, "d": d}, 1)])
    for _ in range(4):
        checked.step([("delete", 1)])


def test_correlation() -> None:
    x = {"g": 1, **dict.fromkeys(SCHEMA.names[1:]), "n": 0}

    def expected(some: list[Row]) -> float | None:
        if len(some) < 2:
            return None
        xs, ys = [Fraction(r["v"]) for r in some], [Fraction(r["d"]) for r in some]
        both = central(xs, ys)
        return rooted(both**2 / (central(xs, xs) * central(ys, ys)), -1 if both < 0 else 1)

    checked = check([], {"c": (aggregation("corr", ("v", "d"), schema=SCHEMA), expected)})
    checked.step([("insert", {**x, "v": 1, "d": 0.1}, 1)])
    checked.step([("insert", {**x, "v": 2, "d": 0.7}, 1), ("insert", {**x, "v": 3, "d": 0.3}, 1)])
    live = list(checked.live)
    with pytest.raises(ExpressionError, match=r"(?s)division by zero.*corr\(v, d\)"):
        checked.step([("update", 1, {**x, "v": 1, "d": 0.4}), ("update", 1, {**x, "v": 1, "d": 0.5})])
    checked.node.rollback()
    checked.live = live
    checked.step([("insert", {**x, "v": -9, "d": 9e9}, 1)])


@given(st.fractions(min_value=0))
@settings(max_examples=2 * settings().max_examples)
def test_roots_are_rounded_once(x: Fraction) -> None:
    assert nearest_root(x) == rooted(x)
    assert nearest(x) == float(x)


@pytest.mark.parametrize("power", [-2000, -1100, -3, 0, 5, 900, 1500, 2100])
def test_roots_of_any_size(power: int) -> None:
    x = Fraction(3) * (Fraction(2) ** power)
    assert nearest_root(x) == (rooted(x) if power < 2040 else math.inf)

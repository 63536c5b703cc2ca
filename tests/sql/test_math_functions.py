"""Numbers against Spark: exact where they are exact, and within the stated units in the last place where they are not."""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from headwater.sql.expressions import evaluate, parse
from headwater.sql.functions.catalogue import FUNCTIONS
from headwater.sql.functions.math import INEXACT, INEXACT_UNITS
from headwater.sql.java_numbers import java_text

from .conftest import fixture_lines

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Differences = Callable[[pa.Table, Sequence[str]], list[str]]

_SPECIAL = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    math.nan,
    math.inf,
    -math.inf,
    0.5,
    -0.5,
    2.5,
    3.5,
    -2.5,
    1e300,
    -1e300,
    5e-324,
    1e-10,
]
_SPECIAL += [
    0.125,
    2.675,
    1.005,
    1e15,
    123456789.987654321,
    math.pi,
    -math.pi / 2,
    2.0,
    10.0,
    100.0,
    1e22,
    710.0,
    -750.0,
]
_SPECIAL += [1.0000000000000002, 0.9999999999999999, -3.0, 1234.5, -0.4, 0.4]
_NUMERALS = ["12", "-7.5", "1e3", " 4 ", "0", "ff", "-1", "zz", "100", "18446744073709551615", "7b", "", None, "1f2"]


def _whole(rng: random.Random, bits: int) -> int | None:
    half = 1 << (bits - 1)
    return rng.choice([0, 1, -1, half - 1, -half, rng.randint(-100, 100), None, rng.randint(-half, half - 1)])


def _table(seed: int) -> pa.Table:
    rng = random.Random(seed)
    drawn = [
        rng.choice([rng.uniform(-10, 10), rng.gauss(0, 1000), rng.randint(-(10**6), 10**6) / 100]) for _ in range(40)
    ]
    doubles = [*_SPECIAL, None, *drawn]
    rows = range(len(doubles))
    singles = [1.5 if d is not None and 1e38 < abs(d) < math.inf else d for d in doubles]
    return pa.table(
        {
            "d": pa.array(doubles, pa.float64()),
            "e": pa.array([rng.choice([*_SPECIAL, None, rng.uniform(-5, 5)]) for _ in rows], pa.float64()),
            "f": pa.array(singles, pa.float32()),
            "i": pa.array([_whole(rng, 32) for _ in rows], pa.int32()),
            "j": pa.array([rng.choice([0, 1, -1, 2, 3, 31, 32, 33, 63, 64, -5, None]) for _ in rows], pa.int32()),
            "l": pa.array([_whole(rng, 64) for _ in rows], pa.int64()),
            "m": pa.array([rng.choice([0, 1, -1, 2, 7, None, -(2**63)]) for _ in rows], pa.int64()),
            "i8": pa.array([_whole(rng, 8) if rng.random() < 0.5 else 5 for _ in rows], pa.int8()),
            "p": pa.array([Decimal(rng.randint(-(10**7), 10**7)) / 1000 for _ in rows], pa.decimal128(10, 3)),
            "q": pa.array([Decimal(rng.choice([5, 15, 25, -5, 125, 0, 995])) / 10 for _ in rows], pa.decimal128(5, 1)),
            "s": pa.array([rng.choice(_NUMERALS) for _ in rows]),
            "b": pa.array([rng.choice([True, False]) for _ in rows]),
        }
    )


@pytest.mark.spark
@settings(max_examples=max(1, settings().max_examples // 50), phases=[Phase.generate])
@given(seed=st.integers(0, 2**32))
def test_numbers_are_sparks(differences: Differences, seed: int) -> None:
    found = differences(_table(seed), fixture_lines("numbers.sql"))
    assert not found, "\n".join(found)


_ONE = sorted(INEXACT - {"atan2", "hypot", "pow", "power"})
_MATH = [
    *(f"{name}(d)" for name in _ONE),
    "pow(d, e)",
    "power(i, j)",
    "atan2(d, e)",
    "hypot(d, e)",
    "log(d, e)",
    "log(2, d)",
]
_EXACT = ["sqrt(d)", "sign(d)", "signum(d)", "degrees(d)", "radians(d)", "pi()", "e()"]


def _units(a: float, b: float) -> int:
    """How many doubles lie from one to the other."""
    if math.isnan(a) or math.isnan(b) or math.isinf(a) or math.isinf(b) or a == b == 0:
        return 0 if struct.pack(">d", a) == struct.pack(">d", b) or (math.isnan(a) and math.isnan(b)) else 2**62
    places = [struct.unpack(">q", struct.pack(">d", x))[0] for x in (a, b)]
    first, second = (p if p >= 0 else -(p & (2**63 - 1)) for p in places)
    return int(abs(first - second))


@pytest.mark.spark
@settings(max_examples=max(1, settings().max_examples // 50), phases=[Phase.generate])
@given(seed=st.integers(0, 2**32))
def test_roots_powers_and_angles_are_within_the_stated_units(interpreted: SparkSession, seed: int) -> None:
    table = _table(seed)
    texts = [*_MATH, *_EXACT]
    theirs = interpreted.createDataFrame(table).coalesce(1).selectExpr(*texts).toArrow()
    for at, text in enumerate(texts):
        ours = evaluate(parse(text, schema=table.schema), table).to_pylist()
        allowed = INEXACT_UNITS if text.split("(")[0] in INEXACT else 0
        for row, (a, b) in enumerate(zip(ours, theirs.column(at).to_pylist(), strict=True)):
            same = a is None and b is None
            assert same or (a is not None and b is not None and _units(a, b) <= allowed), (text, row, a, b)


def test_the_inexact_ones_are_in_the_catalogue() -> None:
    assert FUNCTIONS.keys() >= INEXACT
    assert all("units in the last place" in FUNCTIONS[name].note for name in INEXACT)


_BITS = st.integers(0, 2**64 - 1).map(lambda n: struct.unpack(">d", n.to_bytes(8, "big"))[0])
_DOUBLES = (
    st.floats()
    | _BITS
    | st.integers(-1074, 1023).map(lambda n: 2.0**n)
    | st.decimals(-(10**9), 10**9, places=4).map(float)
)


@given(value=_DOUBLES)
def test_what_java_prints_reads_back(value: float) -> None:
    text = java_text(value)
    if text is not None and math.isfinite(value):
        assert struct.pack(">d", float(text)) == struct.pack(">d", value)
        assert "." in text and (("E" in text) == (value != 0 and not 1e-3 <= abs(value) < 1e7))


@pytest.mark.spark
@settings(
    max_examples=max(2, settings().max_examples // 50),
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(
    values=st.lists(_DOUBLES, min_size=300, max_size=300),
    singles=st.lists(st.floats(width=32), min_size=300, max_size=300),
)
def test_doubles_print_as_in_java(differences: Differences, values: list[float], singles: list[float]) -> None:
    table = pa.table({"d": pa.array(values, pa.float64()), "f": pa.array(singles, pa.float32())})
    found = differences(table, ["CAST(d AS string)", "CAST(f AS string)", "concat(d, '|', f)"])
    assert not found, "\n".join(found)

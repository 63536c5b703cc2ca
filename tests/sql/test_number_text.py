"""Texts as numbers: every engine reads those that Spark reads, or says that it does not know them."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import headwater as hw
from headwater.sql.number_text import decimal_text, real_of, single_of, truth_of, whole_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TYPES = ["tinyint", "int", "bigint", "decimal(10,1)", "decimal(38,0)", "decimal(38,38)", "double", "float", "boolean"]
_TEXTS = """1|+1|-1| 1 |1d|1D|1f|1.5F|0x1p3|0X1.8P-3d|0x.8p1|0x1.p1|0x10|0x.p1|0xp1|NaN|nan|+NaN|-NaN|-nan|+nan|Infinity|inf|+inf|-INF|-infinity
 Infinity |+Infinity|infinityx|1e5|1E+5|1e|e1|.|1.|+.5|-.5e-2|1e400|-1e400|1e-400|1_000|1,000||  |--1|+-1|١|٣.٥|١e٢|1e5d|1.5e3|1.9|-0|-0.0|0e50
0e-50|9223372036854775807|9223372036854775808|-9223372036854775808|99999999999999999999999999999999999999|1e37|1e38|1e39|0.5|0.05|0.95|-0.05|1e-1|5e-39
4e-39|1e4000|1e-4000|1e2147483648|1e99999999999|3.4028235e38|3.4028236e38|1.4e-45|0.7e-45|0.8e-45|16777217|16777219|true|TRUE| t |y|no|off|on|0|2|tru
2024-01-02|1 2|1L|0b1|1e1.5|1.e5|1 d|999999999.95|999999999.94|𝟏|0000000000000000000000000000000000000000000000000001"""
_ODD = [
    "\t1\n",
    "\v1",
    "\x001",
    "\x1f1\x1c",
    "1\x7f",
    "\x7f1.5",
    "\u00a01",
    "\u30001",
    "\vtrue\x7f",
    "\u20071",
    "1\u0085",
]
_ALPHABET = [
    *"00112599",
    *"+-.",
    *"eE",
    "d",
    "f",
    "0x",
    "p",
    "1",
    "9",
    "N",
    "inf",
    "NaN",
    " ",
    "\x00",
    "\x7f",
    "٣",
    "0" * 30,
]


def _texts() -> list[str]:
    rng = random.Random(5)
    drawn = ["".join(rng.choices(_ALPHABET, k=rng.randint(1, 6))) for _ in range(2_000)]
    return list(dict.fromkeys([*(t for line in _TEXTS.split("\n") for t in line.split("|")), *_ODD, *drawn]))


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    texts = _texts()
    return pa.table({"i": pa.array(range(len(texts)), pa.int32()), "s": texts})


@pytest.fixture(scope="module")
def wanted(interpreted: SparkSession, rows: pa.Table) -> dict[str, list[Any]]:
    columns = [f"try_cast(s AS {t}) AS `{t}`" for t in _TYPES]
    found = interpreted.createDataFrame(rows).coalesce(1).selectExpr("i", *columns).orderBy("i").toArrow()
    return {t: found.column(t).to_pylist() for t in _TYPES}


@pytest.fixture(scope="module")
def lake(rows: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> Iterator[hw.Lake]:
    with hw.connect(str(tmp_path_factory.mktemp("lake"))) as lake:
        lake.write("t", rows)
        yield lake


def _same(a: object, b: object) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return (math.isnan(a) and math.isnan(b)) or (a == b and math.copysign(1, a) == math.copysign(1, b))
    return a == b and type(a) is type(b)


def _differences(texts: Sequence[str], have: Sequence[Any], want: Sequence[Any]) -> list[tuple[str, Any, Any]]:
    return [(t, a, b) for t, a, b in zip(texts, have, want, strict=True) if not _same(a, b)]


@pytest.mark.parametrize("dtype", _TYPES)
def test_a_circuit_reads_what_spark_reads(rows: pa.Table, wanted: dict[str, list[Any]], dtype: str) -> None:
    circuit = hw.Circuit()
    circuit.input("t", rows.schema).select(i="i", x=f"try_cast(s AS {dtype})").output("o")
    found = circuit.step(t=rows)["o"].to_arrow().sort_by("i").column("x").to_pylist()
    assert _differences(rows.column("s").to_pylist(), found, wanted[dtype]) == []


@pytest.mark.parametrize("dtype", _TYPES)
def test_duckdb_reads_what_spark_reads(lake: hw.Lake, rows: pa.Table, wanted: dict[str, list[Any]], dtype: str) -> None:
    found = lake.sql(f"SELECT try_cast(s AS {dtype}) AS x FROM t ORDER BY i", engine="duckdb").to_arrow()
    assert _differences(rows.column("s").to_pylist(), found.column("x").to_pylist(), wanted[dtype]) == []


@pytest.mark.parametrize("dtype", _TYPES)
def test_datafusion_reads_what_spark_reads_or_stops(
    lake: hw.Lake, rows: pa.Table, wanted: dict[str, list[Any]], dtype: str
) -> None:
    # Hexadecimal numbers, exponents and digits of other scripts stop a query; the rest is compared.
    unknown = {"d": "[eE]|[^ -~]", "f": "[xX]"}.get(dtype[0], "^$") if dtype != "double" else "[xX]"
    condition = f"NOT s RLIKE '{unknown}'"
    found = lake.sql(f"SELECT i, try_cast(s AS {dtype}) AS x FROM t WHERE {condition}", engine="datafusion").to_arrow()
    texts = rows.column("s").to_pylist()
    kept = found.column("i").to_pylist()
    assert len(kept) > 500
    want = [wanted[dtype][i] for i in kept]
    assert _differences([texts[i] for i in kept], found.column("x").to_pylist(), want) == []


@pytest.mark.parametrize(
    ("text", "dtype"),
    [("0x1p3", "double"), ("1e5", "decimal(10,1)"), ("٣", "decimal(10,1)"), ("2024-1-2", "date"), ("2024", "date")],
)
def test_what_datafusion_does_not_know_is_no_null(tmp_path: Path, text: str, dtype: str) -> None:
    with hw.connect(str(tmp_path)) as lake:
        lake.write("t", pa.table({"s": [text]}))
        with pytest.raises(hw.ExpressionError, match="not known here"):
            lake.sql(f"SELECT try_cast(s AS {dtype}) AS x FROM t", engine="datafusion").to_arrow()


def test_constants_are_read_as_columns_are(lake: hw.Lake, rows: pa.Table, wanted: dict[str, list[Any]]) -> None:
    texts = [t for t in rows.column("s").to_pylist()[:150] if t.isprintable() and t.isascii()]
    where = {t: i for i, t in enumerate(rows.column("s").to_pylist())}
    for dtype in _TYPES:
        columns = ", ".join(f"try_cast('{t}' AS {dtype}) AS c{i}" for i, t in enumerate(texts))
        (found,) = lake.sql(f"SELECT {columns}").to_arrow().to_pylist()
        assert _differences(texts, list(found.values()), [wanted[dtype][where[t]] for t in texts]) == []


@pytest.mark.parametrize("dtype", _TYPES)
def test_what_is_not_read_stops_a_cast(rows: pa.Table, wanted: dict[str, list[Any]], dtype: str) -> None:
    texts = [t for t, x in zip(rows.column("s").to_pylist(), wanted[dtype], strict=True) if x is None][:40]
    circuit = hw.Circuit()
    circuit.input("t", rows.schema).select(x=f"cast(s AS {dtype})").output("o")
    for text in texts:
        with pytest.raises(hw.ExpressionError):
            circuit.step(t=pa.table({"i": pa.array([0], pa.int32()), "s": [text]}))


@given(st.floats(width=32, allow_nan=False), st.integers(-3, 3), st.integers(0, 30))
def test_singles_are_rounded_once(value: float, away: int, digits: int) -> None:
    # Exactly between two floats, and a little beside it, with more digits than a double has.
    other = float(np.nextafter(np.float32(value), np.float32(math.inf)))
    if math.isinf(value) or math.isinf(other):
        return
    exact = (Fraction(value) + Fraction(other)) / 2 + away * abs(Fraction(other) - Fraction(value)) / 10 ** (
        17 + digits
    )
    text = format(Decimal(exact.numerator) / 1, "f") if exact.denominator == 1 else _written(exact)
    found = single_of(text)
    assert found is not None
    distance = abs(Fraction(found) - Fraction(text))
    assert distance <= min(abs(Fraction(value) - Fraction(text)), abs(Fraction(other) - Fraction(text)))


def _written(exact: Fraction) -> str:
    """The exact digits of a fraction whose denominator has only twos and fives."""
    scale = 0
    while exact.denominator != 1:
        exact, scale = exact * 10, scale + 1
    sign, digits = ("-" if exact < 0 else ""), str(abs(exact.numerator)).rjust(scale + 1, "0")
    return f"{sign}{digits[:-scale]}.{digits[-scale:]}" if scale else sign + digits


@pytest.mark.long
@given(st.text(max_size=8))
def test_any_text_is_read_or_not(text: str) -> None:
    for read in (whole_of, real_of, single_of, decimal_text, truth_of):
        read(text)

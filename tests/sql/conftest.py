"""The oracle: the same expressions over the same rows in Spark and in DuckDB, value by value.

Floats are compared by their bits (but every NaN is one NaN), because -0.0 and 0.0 are equal and yet not the same answer.
A row that fails here is left out of the comparison (to stop is always allowed); a row that does not fail here has to
have Spark's value, so Spark failing on it is a difference like any other.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from headwater.base.errors import ExpressionError
from headwater.base.schema import spark_type
from headwater.sql.expressions import Expression, parse

from .batched import evaluate_all

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Differences = Callable[[pa.Table, Sequence[str]], list[str]]


def _answers(column: pa.ChunkedArray) -> list[object]:
    if pa.types.is_date(column.type):
        column = column.cast(pa.int32())  # a count of days has no bounds, Python's date has
    elif pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    return [_comparable(v) for v in column.to_pylist()]


def _comparable(value: object) -> object:
    if isinstance(value, float):
        return "nan" if math.isnan(value) else struct.pack(">d", value)
    if isinstance(value, list | tuple):
        return [_comparable(v) for v in value]
    if isinstance(value, dict):
        return [(k, _comparable(v)) for k, v in value.items()]
    return str(value) if isinstance(value, Decimal) else value


def _spark_answers(df: DataFrame, texts: Sequence[str]) -> list[tuple[str, list[object]]]:
    """Spark's type and answers of each text; a failing batch is halved until the culprit is alone."""
    from pyspark.errors import PySparkException

    try:
        found = df.selectExpr(*[f"{t} AS c{i}" for i, t in enumerate(texts)])
        kinds = [f.dataType.simpleString() for f in found.schema]
        return [(k, _answers(c)) for k, c in zip(kinds, found.toArrow().columns, strict=True)]
    except PySparkException as error:
        if len(texts) == 1:
            return [("failed", [str(error).split("\n")[0][:150]])]
        middle = len(texts) // 2
        return _spark_answers(df, texts[:middle]) + _spark_answers(df, texts[middle:])
    except ValueError:
        # Spark calls some nulls impossible, and Arrow then does not take them.
        return _spark_answers(df, [f"if(row_number_ >= 0, {t}, NULL)" for t in texts])


@pytest.fixture(scope="module")
def differences(interpreted: SparkSession) -> Differences:
    """Where Spark and we differ, over a table, for many expressions in one Spark query."""

    def compare(table: pa.Table, texts: Sequence[str]) -> list[str]:
        numbered = table.append_column("row_number_", pa.array(range(table.num_rows), pa.int32()))
        asked: list[tuple[str, Expression, list[object], str]] = []
        known = {text: parse(text, schema=table.schema) for text in dict.fromkeys(texts)}
        answers = evaluate_all(list(known.values()), table, _answers)
        for (text, expression), ours in zip(known.items(), answers, strict=True):
            failing = [str(i) for i, v in enumerate(ours) if isinstance(v, ExpressionError)]
            guarded = (
                f"CASE WHEN row_number_ NOT IN ({', '.join(failing)}) THEN ({text}) END" if failing else f"({text})"
            )
            asked.append((text, expression, ours, guarded))
        df = interpreted.createDataFrame(numbered).coalesce(1)
        out = []
        for (text, expression, ours, _), (kind, theirs) in zip(
            asked, _spark_answers(df, [a[3] for a in asked]), strict=True
        ):
            shown = [None if isinstance(v, ExpressionError) else v for v in ours]
            type_here = "void" if expression.dtype == pa.null() else spark_type(expression.dtype).replace("`", "")
            if (type_here, shown) != (kind, theirs):
                out.append(
                    f"{text}\n  spark: {kind} {theirs}\n  here:  {type_here} {ours}\n  sql:   {expression.duckdb}"
                )
        return out

    return compare


def fixture_lines(name: str) -> list[str]:
    lines = (Path(__file__).parent / "fixtures" / name).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line.strip() and not line.startswith("#")]


@pytest.fixture(scope="session")
def agreeing() -> list[str]:
    return fixture_lines("agrees.sql")


@pytest.fixture(scope="session")
def failing() -> list[str]:
    return fixture_lines("fails.sql")


def _zoned(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[arg-type, misc]


@pytest.fixture(scope="session")
def extremes() -> pa.Table:
    """Every type with its nulls, edges and oddities."""
    columns: dict[str, Any] = {
        "b": pa.array([True, False, None, True, False, None]),
        "i8": pa.array([1, -1, None, 127, -128, 0], pa.int8()),
        "i": pa.array([5, -7, None, 2**31 - 1, -(2**31), 0], pa.int32()),
        "j": pa.array([2, 3, 4, -1, -1, None], pa.int32()),
        "l": pa.array([5, 2**53 + 1, None, 2**63 - 1, -(2**63), 0], pa.int64()),
        "f": pa.array([1.5, math.nan, None, math.inf, -0.0, 1e-40], pa.float32()),
        "d": pa.array([-2.5, math.nan, None, -math.inf, -0.0, 1e300], pa.float64()),
        "e": pa.array([0.0, math.nan, 1.0, 2.0, -0.0, None], pa.float64()),
        "p": pa.array(_decimals("1.50 -2.55 - 99999999.99 -99999999.99 0.00"), pa.decimal128(10, 2)),
        "q": pa.array(_decimals("0.3 -0.7 1.0 7.0 -999.9 -"), pa.decimal128(4, 1)),
        "s": pa.array(["abc", "ß🤦\n", None, "", " 12 ", "a%b_\\c"]),
        "u": pa.array(["12", "-7", None, "+3", " 9223372036854775807 ", "0"]),
        "day": pa.array(
            [date(2024, 2, 29), date(1, 1, 1), None, date(9999, 12, 31), date(1969, 12, 31), date(1970, 1, 1)]
        ),
        "ts": pa.array(
            [
                _zoned(2024, 2, 29, 23, 59, 59, 999999),
                _zoned(1900, 1, 1),
                None,
                _zoned(9999, 12, 31),
                _zoned(1969, 12, 31, 23, 59, 59, 1),
                _zoned(1970, 1, 1),
            ],
            pa.timestamp("us", tz="UTC"),
        ),
        "nt": pa.array(
            [
                datetime(2024, 2, 29, 1),
                datetime(1900, 1, 1),
                None,
                datetime(9999, 12, 31),
                datetime(1969, 12, 31, 23),
                datetime(1970, 1, 1),
            ],
            pa.timestamp("us"),
        ),
        "x": pa.array([b"a", b"", None, b"\xff\x00", b"a\x00", b"b"]),
    }
    return pa.table(columns)


def _decimals(text: str) -> list[Decimal | None]:
    return [None if t == "-" else Decimal(t) for t in text.split()]

"""Whole queries: names, types and rows as Spark gives them."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa
import pytest

from headwater.base.errors import HeadwaterError

from .oracle import FIXTURES, ask_spark_once, in_any_order, run_here, run_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _decimals(texts: str) -> list[Decimal | None]:
    return [None if t == "-" else Decimal(t) for t in texts.split()]


TABLES = {
    "t": pa.table(
        {
            "a": pa.array([1, 2, 2, None, 3, 3], pa.int32()),
            "b": pa.array([10, 2, None, 7, 1, 2], pa.int64()),
            "i8": pa.array([1, -128, None, 127, 0, 5], pa.int8()),
            "s": pa.array(["x", "xy", None, "", "b", "x"]),
            "d": pa.array([0.0, -0.0, math.nan, None, 1.5, math.nan], pa.float64()),
            "f": pa.array([1.5, -0.0, 0.0, math.inf, None, math.nan], pa.float32()),
            "p": pa.array(_decimals("1.50 -2.55 - 99999999.99 0.01 0.02"), pa.decimal128(10, 2)),
            "q": pa.array(_decimals("0.3 -0.7 1.0 7.0 -999.9 -"), pa.decimal128(4, 1)),
            "ok": pa.array([True, False, None, True, True, None]),
            "day": pa.array(
                [date(2024, 1, 31), date(2023, 12, 31), None, date(1970, 1, 1), date(2000, 2, 29), date(2023, 1, 1)]
            ),
            "ts": pa.array(
                [
                    datetime(2024, 1, 31, 1, 2, 3, 4, tzinfo=UTC),
                    None,
                    *[datetime(2000, 2, 29, 23, 59, 59, tzinfo=UTC)] * 4,
                ],
                pa.timestamp("us", tz="UTC"),
            ),
        }
    ),
    "u": pa.table({"k": pa.array([1, 2, 2, 5, None], pa.int32()), "v": ["one", "two", "deux", "five", "none"]}),
    "w": pa.table({"k": pa.array([1, 2, 3, None], pa.int32()), "z": ["a", "b", "c", "d"]}),
    "one": pa.table(
        {
            "k": pa.array([1, 2, 3, 4, 5, 7], pa.int32()),
            "a": pa.array([1, 1, None, 2, 2, None], pa.int32()),
            "p": pa.array(_decimals("1.10 2.20 - 0.05 9.99 0.01"), pa.decimal128(6, 2)),
        }
    ),
    "n": pa.table(
        {
            "id": pa.array([1, 2, 3, 4], pa.int32()),
            "xs": pa.array([[1, 2, None], [], None, [3]], pa.list_(pa.int32())),
            "st": pa.array(
                [{"x": 1, "y": 2}, {"x": None, "y": 3}, None, {"x": 4, "y": None}],
                pa.struct([("x", pa.int32()), ("y", pa.int64())]),
            ),
        }
    ),
}
TABLES["z"] = pa.table(
    {"x": [1.0, 2.5, 0.0, -1.0, None, 1e-300, 7.25, math.nan], "i": pa.array([1, 2, 3, None, -5, 10, 7, 8], pa.int32())}
)
_LINES = [
    line
    for name in ("queries.sql", "approximate.sql", "formats.sql", "durations.sql", "forms.sql")
    for line in (FIXTURES / name).read_text("utf-8").splitlines()
]
_QUERIES = [line for line in _LINES if line.strip() and not line.startswith(("#", "-- "))]


@pytest.fixture(scope="module")
def views(interpreted: SparkSession) -> SparkSession:
    for name, table in TABLES.items():
        interpreted.createDataFrame(table).coalesce(1).createOrReplaceTempView(name)
    interpreted.conf.set("spark.sql.shuffle.partitions", "1")
    return interpreted


def _difference(text: str, session: SparkSession) -> str | None:
    from pyspark.errors import PySparkException

    try:
        names, types, rows = run_here(text, TABLES)
    except (HeadwaterError, duckdb.Error) as error:
        return f"{text}\n  here fails: {error}"
    try:
        expected_names, expected_types, expected = ask_spark_once(session, text.rstrip("; "))
    except PySparkException as error:
        return f"{text}\n  spark fails: {str(error).splitlines()[0]}"
    if " order by " not in text or "limit" not in text:
        # Equal keys leave the order of rows open; the order itself is tested where the keys are unique.
        rows, expected = in_any_order(rows), in_any_order(expected)
    if (names, types, rows) == (expected_names, expected_types, expected):
        return None
    lines = [text]
    for what, ours, theirs in (
        ("names", names, expected_names),
        ("types", types, expected_types),
        ("rows", rows, expected),
    ):
        if ours != theirs:
            lines += [f"  {what} here:  {ours}", f"  {what} spark: {theirs}"]
    return "\n".join(lines)


def test_queries_give_sparks_names_types_and_rows(views: SparkSession) -> None:
    differences = [d for text in _QUERIES if (d := _difference(text, views)) is not None]
    assert not differences, "\n".join(differences)


def test_the_order_is_sparks(views: SparkSession) -> None:
    for key in ("d", "f", "s", "a", "p", "ok", "day"):
        for direction in ("", " desc", " nulls last", " desc nulls first"):
            text = f"select {key} from t order by {key}{direction}"
            assert run_here(text, TABLES)[2] == run_spark(views, text)[2], text


_FAILING = (
    "select (select k from u)",
    "select a, (select v from u where k = a) from t",
    "select sum(x) from values (9223372036854775807L), (1L) as v(x)",
    "select sum(x) over (order by x) from values (9223372036854775807L), (1L) as v(x)",
    "select a / 0 from t",
    "select cast(s as int) from t",
    "select xs[5] from n",
    "select element_at(xs, 0) from n",
    "select make_date(2023, 2, a + 27) from t",
    "select a + 2147483647 from t",
)


def test_what_fails_here_fails_in_spark(views: SparkSession) -> None:
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    for text in _FAILING:
        with pytest.raises(duckdb.Error):
            run_here(text, TABLES)
        with pytest.raises((PySparkException, Py4JJavaError)):
            run_spark(views, text)

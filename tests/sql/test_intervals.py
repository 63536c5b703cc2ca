"""Intervals against Spark: differences, products, parts, casts and texts, over negative ones, nulls and the ends of their range."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from headwater.base.errors import ExpressionError, SchemaError
from headwater.sql.expressions import evaluate, parse
from headwater.sql.query import parse_query

from .conftest import fixture_lines
from .vectorised import agreement

Differences = Callable[[pa.Table, Sequence[str]], list[str]]
_TEXTS = """1 02:03:04|1 02:03:04.123456789|-1 02:03:04|+1 2:3:4|1 24:00:00|1 02:60:00|1 02:03|5|-5|5.5|02:03:04|100:59:59.5|59:59|60:00
1-2|-1-11|1-12|INTERVAL '5' DAY|interval -'5' day|INTERVAL '1 02:03:04' DAY TO SECOND|INTERVAL '1-2' YEAR TO MONTH| 5 ||x|106751992
106751991 04:00:54.775807|106751991 04:00:54.775808|-106751991 04:00:54.775808|178956970-7|178956970-8|2147483648|5 DAYS|1  02:03:04"""
_NUMBERS = [0, 1, -1, 2, 3, 7, -7, 12, 59, 365, -400, 10_000, 2**31 - 1, -(2**31)]
_LONGS = [0, 1, -1, 3, -7, 10**6, 10**12, 2**62, -(2**63), 2**63 - 1]
_DOUBLES = [0.0, -0.0, 0.5, -0.5, 1.5, 1e-7, 3.3333, 1e9, -1e12, float("nan"), float("inf")]
_DECIMALS = ["0.00", "0.50", "-1.25", "3.33", "100.01", "-99999999.99"]


def _moment(rng: random.Random) -> datetime:
    if rng.random() < 0.2:
        return rng.choice([datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999_999), datetime(1969, 12, 31, 23)])
    near = timedelta(days=rng.randint(-800, 800), microseconds=rng.choice([0, 1, 500_000, 86_399_999_999]))
    # The hours in which clocks are changed are hours like others: all is in UTC.
    return (
        rng.choice([datetime(2024, 3, 31, 1), datetime(2024, 10, 27, 1), datetime(2024, 2, 29), datetime(1970, 1, 1)])
        + near
    )


def table(seed: int, rows: int = 40) -> pa.Table:
    """Moments, numbers and texts, some of them null."""
    rng = random.Random(seed)
    zoned = pa.timestamp("us", tz="UTC")

    def some(draw: Callable[[], object], dtype: pa.DataType) -> pa.Array:
        return pa.array([None if rng.random() < 0.1 else draw() for _ in range(rows)], dtype)

    texts = [t for line in _TEXTS.split("\n") for t in line.split("|")]
    return pa.table(
        {
            "a": some(lambda: _moment(rng).replace(tzinfo=UTC), zoned),
            "b": some(lambda: _moment(rng).replace(tzinfo=UTC), zoned),
            "d": some(lambda: _moment(rng).date(), pa.date32()),
            "e": some(lambda: rng.choice([_moment(rng).date(), date(2024, 3, 1)]), pa.date32()),
            "n": some(lambda: rng.choice(_NUMBERS), pa.int32()),
            "l": some(lambda: rng.choice(_LONGS), pa.int64()),
            "x": some(lambda: rng.choice(_DOUBLES), pa.float64()),
            "f": some(lambda: rng.choice([0.5, -1.25, 0.1]), pa.float32()),
            "dec": some(lambda: Decimal(rng.choice(_DECIMALS)), pa.decimal128(10, 2)),
            "txt": some(lambda: rng.choice(texts), pa.string()),
        }
    )


@pytest.mark.spark
@settings(max_examples=max(1, settings().max_examples // 50), phases=[Phase.generate])
@given(seed=st.integers(0, 2**32))
def test_intervals_are_sparks(differences: Differences, seed: int) -> None:
    found = differences(table(seed), fixture_lines("intervals.sql"))
    assert not found, "\n".join(found)


@pytest.mark.long
@settings(max_examples=max(2, settings().max_examples // 25), phases=[Phase.generate])
@given(seed=st.integers(0, 2**32))
def test_circuits_compute_what_duckdb_does(seed: int) -> None:
    rows = table(seed)
    found = agreement.differences(fixture_lines("intervals.sql"), rows)
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("cast((a - b) / 0 as string)", "division by zero"),
        ("cast((a - b) / 0.0D as string)", "division by zero"),
        ("cast((a - b) / 0.0BD as string)", "division by zero"),
        ("cast((a - b) * 9223372036854775807L as string)", "overflow"),
        ("cast(INTERVAL '178956970-7' YEAR TO MONTH * n as string)", "overflow"),
        ("cast(make_dt_interval(106751992 + n) as string)", "overflow"),
        ("cast(make_ym_interval(178956970 + n) as string)", "overflow"),
        ("cast((a - b) * 1e200D as string)", "overflow"),
        ("cast(a - b as tinyint)", "overflow"),
        ("cast(cast(txt as INTERVAL DAY) as string)", "is no interval day"),
    ],
)
def test_what_does_not_fit_is_an_error(text: str, why: str) -> None:
    moments = [datetime(2024, 1, 3, tzinfo=UTC), datetime(2024, 1, 1, tzinfo=UTC)]
    rows = pa.table(
        {"a": pa.array(moments[:1]), "b": pa.array(moments[1:]), "n": pa.array([3], pa.int32()), "txt": ["x"]}
    )
    with pytest.raises(ExpressionError, match=why):
        evaluate(parse(text, schema=rows.schema), rows)


@pytest.mark.parametrize(
    "text",
    [
        "INTERVAL 1 MONTH = INTERVAL 1 DAY",
        "a - b > 5",
        "(a - b) / (a - b) > 1",
        "(a - b) % 2",
        "(a - b) - b",
        "cast(a - b as double)",
        "cast(x as INTERVAL SECOND) > INTERVAL 1 DAY",
        "extract(HOUR FROM d - e)",
        "extract(YEAR FROM INTERVAL 14 MONTHS)",
        "date_add(d, INTERVAL 1 DAY)",
        "INTERVAL 1 MONTH + INTERVAL 1 DAY > INTERVAL 1 DAY",
        "sum(a - b) > 3",
        "regr_avgx(d - e, n)",
        "stddev(a - b)",
        # Spark has these; here they would not be null where they have to be, or not known digits.
        "cast(try_divide(a - b, n) as string)",
        "cast(try_add(a - b, d - e) as string)",
        "cast(try_sum(a - b) as string)",
        "cast(try_avg(a - b) as string)",
        "cast(median(a - b) as string)",
        "to_json(struct(a - b as took))",
        "cast(array(a - b) as string)",
    ],
)
def test_what_is_not_known_is_refused(text: str) -> None:
    with pytest.raises(ExpressionError):
        parse_query(f"SELECT {text} FROM t", lambda *_: table(0).schema)


@pytest.mark.parametrize(("text", "name"), [("a - b AS took", "took"), ("array(d - e) AS all_of_them", "all_of_them")])
def test_an_answer_holds_no_intervals(text: str, name: str) -> None:
    with pytest.raises(SchemaError) as caught:
        parse_query(f"SELECT {text} FROM t", lambda *_: table(0).schema)
    assert caught.value.code == "E1213" and f"`{name}`" in caught.value.message and "BIGINT" in str(caught.value.hint)

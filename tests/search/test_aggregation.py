"""Aggregations equal the same figures of the rows alive, in plain Python: whatever the values, splits and deletes.

HEADWATER_TEST_FUZZ sets how many random tables there are.
"""

from __future__ import annotations

import math
import os
import random
import re
import struct
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, cast

import pyarrow as pa
import pytest
from tests.search.figure_oracle import Row, check

import headwater as hw
from headwater.base.errors import HeadwaterError, InputError, SearchQueryError
from headwater.lakehouse import Lake
from headwater.search import rows as search_rows
from headwater.search.aggregation import (
    Aggregation,
    cardinality,
    date_histogram,
    histogram,
    percentiles,
    ranges,
    stats,
    terms,
)
from headwater.search.index import SearchIndex
from headwater.search.reader import Reader

SCHEMA = pa.schema(
    [
        ("id", pa.int64()), ("word", pa.string()), ("name", pa.string()), ("whole", pa.int64()), ("small", pa.int16()),
        ("real", pa.float64()), ("half", pa.float32()), ("price", pa.decimal128(12, 2)),
        ("wide", pa.decimal128(38, 10)), ("open", pa.bool_()), ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")), ("local", pa.timestamp("us")),
    ]
)  # fmt: skip
TABLES = int(os.environ.get("HEADWATER_TEST_FUZZ", "8"))
NUMBERS = ["id", "whole", "small", "real", "half", "price", "wide"]
TIMES = ["day", "at", "local"]
FIELDS: dict[str, Any] = {"keyword": ["word", "name"], "numeric": [*NUMBERS, "open", *TIMES]}
EXTREMES: dict[str, list[Any]] = {
    "name": ["", "Zoë", "w" * 70_000, "w" * 69_999 + "v", "日本"],
    "whole": [2**63 - 1, -(2**63), 2**53, 2**53 + 1, -(2**53) - 1, 2**62],
    "small": [2**15 - 1, -(2**15)],
    "real": [math.nan, math.inf, -math.inf, 1e300, -1.7e308, 5e-324, -0.0],
    "half": [math.nan, -math.inf, 1e38],
    "price": [Decimal("9999999999.99"), Decimal("-9999999999.99")],
    "wide": [Decimal("9" * 28 + ".9999999999"), Decimal("-" + "9" * 28 + ".9999999998"), Decimal("0.0000000001")],
    "open": [True],
    "day": [date(9999, 12, 31), date(1, 1, 1), date(1582, 10, 15)],
    "at": [datetime.max.replace(tzinfo=UTC), datetime.min.replace(tzinfo=UTC), datetime(9999, 12, 31, 5, tzinfo=UTC)],
    "local": [datetime.max, datetime.min, datetime(9999, 12, 1)],
}


def usual(rng: random.Random, column: str) -> Any:
    """A value as tables mostly have them, near zero and at round places too."""
    moment = datetime(2023, 11, 1, tzinfo=UTC) + timedelta(minutes=rng.randrange(200_000))
    return {
        "name": f"n{rng.randrange(8)}",
        "whole": rng.choice([rng.randrange(-50, 50), rng.randrange(10**9)]),
        "small": rng.randrange(-9, 9),
        "real": rng.choice([rng.gauss(0, 100), rng.randrange(5) / 10]),
        "half": struct.unpack("f", struct.pack("f", rng.gauss(0, 3)))[0],
        "price": Decimal(rng.randrange(-500, 500)) / 100,
        "wide": Decimal(rng.randrange(10**6)) / 1000,
        "open": rng.random() < 0.3,
        "day": moment.date(),
        "at": moment,
        "local": moment.replace(tzinfo=None, second=rng.randrange(60)),
    }[column]


def make(rng: random.Random, ids: range, wild: set[str]) -> pa.Table:
    """Random rows; the columns of ``wild`` have extremes too."""
    rows = []
    for number in ids:
        row: Row = {"id": number, "word": rng.choice(["red", "blue", "green"])}
        for column in SCHEMA.names[2:]:
            some = EXTREMES[column] if column in wild and rng.random() < 0.15 else [usual(rng, column)]
            row[column] = None if rng.random() < 0.1 else rng.choice(some)
        rows.append(row)
    return pa.Table.from_pylist(rows, SCHEMA)


def a_figure(rng: random.Random) -> Aggregation:
    column = rng.choice(NUMBERS)
    kinds: list[Callable[[], Aggregation]] = [
        lambda: stats(rng.choice([*NUMBERS, *TIMES, "open"])),
        lambda: stats(column),
        lambda: percentiles(rng.choice([*NUMBERS, *TIMES]), [0, 2.5, 50, 99, 100]),
        lambda: cardinality(rng.choice([*NUMBERS, *TIMES, "open", "name"])),
    ]
    return rng.choice(kinds)()


def some_buckets(rng: random.Random, inner: dict[str, Aggregation]) -> Aggregation:
    column, time = rng.choice(NUMBERS), rng.choice(TIMES)
    lengths = ["1 day", "7 days", "1 month", "2 months", "1 quarter", "1 year", "7 years", "4000 years"]
    hours = [] if time == "day" else ["1 hour", "5 hours", "90 minutes"]
    numbers: list[Any] = [-100, -2.5, 0, 0.1, 7, 50.5, 1000]
    if column == "wide":
        numbers = [-5, 0, Decimal("0.1"), Decimal("0.1000000000000000000000000001"), 7, 10**20]
    if column == "whole" and rng.random() < 0.5:
        numbers = [-(2**53) - 1, -0.5, 0.5, 0.7, 2**53, 2**53 + 1, 2**63 - 1]
    days = [date(1, 1, 2), date(2023, 12, 31), date(2024, 1, 1), date(9999, 12, 31)]
    moments = [datetime(d.year, d.month, d.day, 5, tzinfo=None if time == "local" else UTC) for d in days]
    bounds: Any = days if time == "day" else moments
    kinds: list[Callable[[], Aggregation]] = [
        lambda: terms(rng.choice([*NUMBERS, *TIMES, "open", "name"]), rng.choice([1, 3, 10, 1000]), inner=inner),
        lambda: histogram(column, rng.choice([1, 7, 0.1, 2.5, 100]) * (100 if column == "id" else 1), inner=inner),
        lambda: date_histogram(time, rng.choice([*lengths, *hours]), inner=inner),
        lambda: ranges(column, sorted(rng.sample(numbers, rng.randint(1, 4))), inner=inner),
        lambda: ranges(time, sorted(rng.sample(bounds, rng.randint(1, 3))), inner=inner),
    ]
    return rng.choice(kinds)()


def with_examples(asked: Aggregation) -> Aggregation:
    """For the oracle: what of a column's type decides how a bucket is called."""
    example = {"day": date(2024, 1, 1), "at": EXTREMES["at"][0], "local": EXTREMES["local"][0]}.get(asked.column)
    inner = {name: with_examples(one) for name, one in asked.inner.items()}
    return replace(asked, options={**asked.options, "example": example}, inner=inner)


def ask(index: SearchIndex, rows: list[Row], query: str, wanted: dict[str, Aggregation]) -> None:
    found = index.aggregate(query, **wanted)
    assert list(found) == list(wanted)
    for name, asked in wanted.items():
        check(with_examples(asked), found[name], rows)


@pytest.mark.parametrize("seed", range(TABLES))
def test_every_figure_equals_that_of_the_rows(seed: int, lake: Lake) -> None:
    rng = random.Random(seed)
    # some columns have extremes, or none has: what the library computes, what it cannot, and both in one question
    wild = set() if seed < 3 else {c for c in EXTREMES if rng.random() < 0.5}
    table = lake.write("t", make(rng, range(150), wild))
    index = lake.index("ix", "t", target_rows=100, **FIELDS)
    index.refresh()
    table.append(make(rng, range(150, 220), wild))
    index.refresh()
    table.delete("id % 7 = 3")
    table.append(make(rng, range(220, 250), wild))  # no split covers them
    rows = table.to_arrow().to_pylist()
    for turn in range(12):
        query, mine = rng.choice(
            [
                ("*", rows),
                ("word:red", [row for row in rows if row["word"] == "red"]),
                ("id:[100 TO 239]", [row for row in rows if 100 <= row["id"] <= 239]),
                ("word:nothing", []),
            ]
        )
        figures = {f"f{n}": a_figure(rng) for n in range(3)}
        inside = some_buckets(rng, {"f": a_figure(rng), "g": a_figure(rng)})
        deep = some_buckets(rng, {"inside": inside, "h": a_figure(rng)})
        ask(index, mine, query, {**figures, "flat": some_buckets(rng, {}), "deep": deep} if turn % 4 else figures)


@pytest.fixture
def rows_read(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Which columns were read from the table, each time that they were."""
    found: list[list[str]] = []
    real = search_rows.fetch_rows

    def noted(reader: Reader, hits: Any, columns: Any) -> pa.Table:
        found.append(sorted(columns))
        return real(reader, hits, columns)

    monkeypatch.setattr("headwater.search.aggregation.fetch_rows", noted)
    return found


def test_rows_are_read_only_where_the_library_rounds(lake: Lake, rows_read: list[list[str]]) -> None:
    values = {"a": range(-50, 50), "b": [2**53] * 100, "f": [0.5] * 99 + [math.nan]}
    lake.write("t", pa.table({"k": ["x", "y"] * 50, **values}))
    index = lake.index("ix", "t", keyword="k", numeric=["a", "b", "f"], refresh=True)
    assert index.aggregate("*", a=terms("k", inner={"a": stats("a"), "r": ranges("a", [0.5])}))["a"][0]["rows"] == 50
    assert index.aggregate("a:[0 TO 9]", f=histogram("f", 1))["f"] == [{"key": 0.0, "rows": 10}]
    assert rows_read == [], "the row with NaN does not match"
    found = index.aggregate("*", a=stats("a"), b=stats("b"), f=terms("k", inner={"f": stats("f")}))
    assert rows_read == [["b", "f", "k"]] and found["a"]["sum"] == -50
    assert found["b"] == {"count": 100, "min": 2**53, "max": 2**53, "sum": 100 * 2**53, "avg": float(2**53)}
    assert [one["key"] for one in found["f"] if math.isnan(one["f"]["max"])] == ["y"]


def test_values_that_floats_have_and_sums_that_they_have_not(lake: Lake) -> None:
    price = Decimal("9999999999999.99")
    rows = {"n": [2**53 - 1] * 301, "price": pa.array([price] * 301, pa.decimal128(20, 2))}
    lake.write("t", pa.table(rows))
    index = lake.index("ix", "t", numeric=["n", "price"], refresh=True)
    found = index.aggregate("*", n=stats("n"), price=stats("price"))
    assert found["n"]["sum"] == 301 * (2**53 - 1) and found["price"]["sum"] == 301 * price
    assert found["n"]["max"] == 2**53 - 1 and found["price"]["max"] == price


def test_many_rows_of_many_segments(lake: Lake, rows_read: list[list[str]]) -> None:
    """Enough of them that adding floats would show in decimals, and that sketches are sketches."""
    rng = random.Random(4)
    count = 20_000
    prices = [Decimal(rng.randrange(10**6)) / 100 for _ in range(count)]
    columns = {
        "price": pa.array(prices, pa.decimal128(12, 2)),
        "real": [rng.lognormvariate(0, 3) for _ in range(count)],
        "n": [rng.randrange(-(10**6), 10**6) for _ in range(count)],
        "k": [f"{rng.randrange(3000)}" for _ in range(count)],
    }
    table = lake.write("t", pa.table(columns))
    for part in range(2):
        table.append(pa.table(columns).slice(part * 5_000, 5_000))
    index = lake.index("ix", "t", keyword="k", numeric=["price", "real", "n"], target_rows=8_000, refresh=True)
    rows = table.to_arrow().to_pylist()
    wanted = {
        "prices": stats("price"), "reals": stats("real"), "n": stats("n"), "p": percentiles("price", [0.1, 50, 99.9]),
        "r": percentiles("real"), "np": percentiles("n"), "ck": cardinality("k"), "cr": cardinality("real"),
        "by": ranges("price", [1, Decimal("2.50"), 999.99], inner={"s": stats("price")}),
        "h": histogram("n", 1000), "t": terms("k", 50),
    }  # fmt: skip
    ask(index, rows, "*", wanted)
    assert rows_read == []


def test_a_time_that_no_date_has(lake: Lake) -> None:
    beyond = pa.array([0, 2**62], pa.int64()).cast(pa.timestamp("us", "UTC"))
    lake.write("t", pa.table({"id": [1, 2], "at": beyond}))
    index = lake.index("ix", "t", numeric=["id", "at"], refresh=True)
    for asked in (stats("at"), terms("at"), date_histogram("at", "1 day"), date_histogram("at", "1 month")):
        with pytest.raises(SearchQueryError, match="after the year 9999") as raised:
            index.aggregate("*", a=asked)
        assert raised.value.hint
    assert index.aggregate("id:1", a=stats("at"))["a"]["max"] == datetime(1970, 1, 1, tzinfo=UTC)
    assert index.aggregate("*", a=cardinality("at"))["a"] == 2


def test_an_empty_table(lake: Lake) -> None:
    lake.write("t", SCHEMA.empty_table())
    index = lake.index("ix", "t", **FIELDS, refresh=True)
    rng = random.Random(9)
    for _ in range(15):
        ask(
            index, [], "*", {"a": a_figure(rng), "b": some_buckets(rng, {"c": some_buckets(rng, {"d": a_figure(rng)})})}
        )


REFUSED: list[tuple[Any, str]] = [
    (stats("word"), "terms"), (histogram("open", 1), r"terms\(\)"), (ranges("open", [1]), "terms"),
    (percentiles("open"), "terms"), (stats("nothing"), "no field"), (histogram("day", 7), "date_histogram"),
    (date_histogram("whole", "1 day"), "histogram"), (histogram("whole", 0), "above 0"),
    (histogram("whole", math.nan), "above 0"), (histogram("whole", math.inf), "above 0"),
    (histogram("real", 10**400), "above 0"), (ranges("whole", []), "grow"), (ranges("whole", [2, 1]), "grow"),
    (ranges("whole", [1, 1]), "grow"), (ranges("real", [math.nan]), "numbers"), (ranges("real", [10**400]), "numbers"),
    (ranges("whole", ["1"]), "numbers"), (ranges("day", [7]), "dates"), (ranges("at", [7]), "datetimes"),
    (ranges("day", [datetime(2024, 1, 1, tzinfo=UTC)]), "dates"), (percentiles("whole", [101]), "0 to 100"),
    (percentiles("whole", cast(Any, ["x"])), "0 to 100"), (terms("name", 0), "from 1"), (date_histogram("day", "1 hour"), "whole days"),
    (date_histogram("at", "0 months"), "length of time"), (date_histogram("at", "soon"), "length of time"),
    (terms("name", inner=cast(Any, {"x": "stats"})), "aggregation"), (Aggregation("stats", "nothing"), "no field"),
]  # fmt: skip


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> SearchIndex:
    lake = hw.connect(tmp_path_factory.mktemp("figures") / "lake")
    lake.write("t", make(random.Random(1), range(10), set()))
    return lake.index("ix", "t", **FIELDS, refresh=True)


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_what_cannot_be_asked_is_refused(number: int, small: SearchIndex) -> None:
    asked, words = REFUSED[number]
    for wanted in (asked, terms("word", inner={"inside": asked})):
        with pytest.raises(InputError) as raised:
            small.aggregate("*", it=wanted)
        assert re.search(words, f"{raised.value} {raised.value.hint}") and isinstance(raised.value, HeadwaterError)

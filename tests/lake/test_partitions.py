"""Partition values: text and back, folders, and the paths of actions as delta-spark writes them."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.errors import InputError, NotFoundError
from headwater.lake import partitions

moment = dt.datetime.fromisoformat
TIMES = st.datetimes()
KINDS: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.bool_(): st.booleans(),
    pa.int8(): st.integers(-128, 127),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.float64(): st.floats(),
    pa.float32(): st.floats(width=32),
    pa.decimal128(20, 4): st.decimals(-(10**15), 10**15, places=4),
    pa.date32(): st.dates(),
    pa.timestamp("us", "UTC"): TIMES.map(lambda t: t.replace(tzinfo=dt.UTC)),
    pa.timestamp("us"): TIMES,
    pa.string(): st.text(),
    pa.binary(): st.text().map(str.encode),
}


def same(a: Any, b: Any) -> bool:
    return bool(a == b) or (isinstance(a, float) and isinstance(b, float) and math.isnan(a) and math.isnan(b))


@given(st.data())
def test_values_round_trip(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(list(KINDS)))
    values = data.draw(st.lists(st.one_of(st.none(), KINDS[kind])))
    texts = [partitions.serialize(v, kind) for v in values]
    back = [partitions.parse(t, kind).as_py() for t in texts]
    assert all(same(b, v if v not in ("", b"") else None) for b, v in zip(back, values, strict=True))
    column = pa.array(values, kind)
    assert partitions.serialize_array(column).to_pylist() == texts
    assert partitions.serialize_array(pa.chunked_array([column, column])).to_pylist() == texts * 2
    assert all(same(x, y) for x, y in zip(partitions.parse_array(texts, kind).to_pylist(), back, strict=True))


# Read off a table that delta-spark 4.4 wrote: value, type, text.
OF_DELTA_SPARK = [
    (Decimal("1.500"), pa.decimal128(10, 3), "1.500"),
    (Decimal("-0.001"), pa.decimal128(10, 3), "-0.001"),
    (math.nan, pa.float64(), "NaN"),
    (-math.inf, pa.float64(), "-Infinity"),
    (False, pa.bool_(), "false"),
    (dt.date(1, 1, 1), pa.date32(), "0001-01-01"),
    (dt.datetime(2020, 1, 1, 0, 0, 0, 123000, tzinfo=dt.UTC), pa.timestamp("us", "UTC"), "2020-01-01T00:00:00.123000Z"),
    (moment("1960-01-01T12:00:00.100"), pa.timestamp("us"), "1960-01-01 12:00:00.1"),
    (moment("2020-01-01"), pa.timestamp("us"), "2020-01-01 00:00:00"),
    ("日本\u2003x", pa.string(), "日本\u2003x"),
    (b"\xc3\xa9\x01", pa.binary(), "é\x01"),
    (-7, pa.int64(), "-7"),
]


@pytest.mark.parametrize(("value", "kind", "text"), OF_DELTA_SPARK, ids=str)
def test_texts_are_those_of_delta_spark(value: Any, kind: pa.DataType, text: str) -> None:
    assert partitions.serialize(value, kind) == text
    assert same(partitions.parse(text, kind).as_py(), value)


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        (
            "2020-01-01 00:00:00.123456",
            pa.timestamp("us", "UTC"),
            dt.datetime(2020, 1, 1, 0, 0, 0, 123456, tzinfo=dt.UTC),
        ),
        ("2020-01-01T01:00:00+01:00", pa.timestamp("us", "UTC"), dt.datetime(2020, 1, 1, tzinfo=dt.UTC)),
        ("2020-01-01T00:00:00Z", pa.timestamp("us"), moment("2020-01-01")),
        ("1.5E20", pa.float64(), 1.5e20),
        ("1.5", pa.decimal128(10, 3), Decimal("1.500")),
        ("TRUE", pa.bool_(), True),
        ("", pa.string(), None),
    ],
    ids=str,
)
def test_other_writers_texts_are_read(text: str, kind: pa.DataType, value: Any) -> None:
    assert partitions.parse(text, kind).as_py() == value


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("x", pa.int32()),
        ("300", pa.int8()),
        ("yes", pa.bool_()),
        ("2020-13-01", pa.date32()),
        ("1e", pa.float64()),
        ("abc", pa.decimal128(5, 2)),
        ("123456", pa.decimal128(5, 2)),
        ("soon", pa.timestamp("us")),
    ],
    ids=str,
)
def test_texts_that_are_no_value(text: str, kind: pa.DataType) -> None:
    with pytest.raises(InputError, match="partition value"):
        partitions.parse(text, kind)


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(InputError, match="UTF-8"):
        partitions.serialize(b"\xff", pa.binary())


def test_folders() -> None:
    values = {"a": "a b/c:d=e%f\"g#'*?{}[]^\\\x01", "b": None, "c": "", "d é": "é+"}
    assert partitions.directory(values) == (
        "a=a%20b%2Fc%3Ad%3De%25f%22g%23%27%2A%3F%7B}%5B%5D%5E%5C%01"
        "/b=__HIVE_DEFAULT_PARTITION__/c=__HIVE_DEFAULT_PARTITION__/d%20é=é+"
    )
    assert partitions.directory({}) == ""


@given(st.text(alphabet="é/ %x", min_size=100, max_size=400), st.text(alphabet="é/ %x", min_size=100, max_size=400))
def test_long_folders_are_short_and_distinct(one: str, other: str) -> None:
    a, b = (partitions.directory({"c": text}) for text in (one, other))
    assert len(a.encode()) <= 200 and "/" not in a
    assert (a == b) == (one == other)


@given(st.text())
def test_paths_round_trip(path: str) -> None:
    assert partitions.decode_path(partitions.encode_path(path)) == path


@pytest.mark.parametrize(
    ("stored", "written"),
    [
        (
            "ps=a b%2Fc%3Ad%3De%25f%22g}é+&;,@!~|<>$()`",
            "ps=a%20b%252Fc%253Ad%253De%2525f%2522g%7Dé+&;,@!~%7C%3C%3E$()%60",
        ),
        ("ps=日本\u2003x\u00a0y%01%7F%5C", "ps=日本%E2%80%83x%C2%A0y%2501%257F%255C"),
        ("pts=2020-01-01 00%3A00%3A00/a.parquet", "pts=2020-01-01%2000%253A00%253A00/a.parquet"),
    ],
)
def test_paths_are_encoded_as_by_delta_spark(stored: str, written: str) -> None:
    assert partitions.encode_path(stored) == written
    assert partitions.decode_path(written) == stored


ROWS = st.lists(st.tuples(st.sampled_from(["a", "b", "", None]), st.sampled_from([1, 2, None]), st.integers(0, 9)))


@given(ROWS)
def test_splitting_loses_nothing_and_keeps_the_order(rows: list[tuple[str | None, int | None, int]]) -> None:
    kinds = [("s", pa.string()), ("n", pa.int64()), ("v", pa.int64())]
    table = pa.table({name: pa.array([r[i] for r in rows], kind) for i, (name, kind) in enumerate(kinds)})
    expected: dict[tuple[str | None, str | None], list[int]] = {}
    for s, n, v in rows:
        expected.setdefault((s or None, None if n is None else str(n)), []).append(v)
    parts = partitions.split_by(table, ["s", "n"])
    assert [(tuple(values.values()), part["v"].to_pylist()) for values, part in parts] == list(expected.items())
    assert all(part.schema.names == ["v"] and list(values) == ["s", "n"] for values, part in parts)


def test_splitting_by_odd_columns() -> None:
    table = pa.table(
        {
            "d": pa.array(["x", "y", "x"]).dictionary_encode(),
            "t": pa.array([1, 2, 999], pa.timestamp("ns", "UTC")),
            "b": pa.array([True, True, True]),
            "v": [1, 2, 3],
        }
    )
    assert [values for values, _ in partitions.split_by(table, ["d", "t", "b"])] == [
        {"d": "x", "t": "1970-01-01T00:00:00.000000Z", "b": "true"},
        {"d": "y", "t": "1970-01-01T00:00:00.000000Z", "b": "true"},
    ]
    assert partitions.split_by(table, [])[0][1].num_rows == 3
    assert partitions.split_by(table.slice(0, 0), ["d"]) == []
    with pytest.raises(NotFoundError, match="nope"):
        partitions.split_by(table, ["nope"])


def test_splitting_by_more_combinations_than_a_key_holds() -> None:
    n = 3000
    table = pa.table({f"c{i}": pa.array(range(n)) for i in range(7)} | {"v": pa.array(range(n))})
    parts = partitions.split_by(table, [f"c{i}" for i in range(7)])
    assert [part["v"].to_pylist() for _, part in parts] == [[i] for i in range(n)]

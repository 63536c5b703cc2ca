"""Statistics from footers: bounds hold for every value, whoever wrote the file."""

from __future__ import annotations

import datetime as dt
import io
import json
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.errors import InputError
from headwater.lake import stats

UTC = dt.UTC


def footer(table: pa.Table, **options: Any) -> pq.FileMetaData:
    file = io.BytesIO()
    pq.write_table(table, file, **options)
    return pq.read_metadata(file)


def described(table: pa.Table, **options: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(stats.from_footer(footer(table), **options), parse_float=Decimal)
    return found


def one(values: list[Any], kind: pa.DataType, **options: Any) -> tuple[Any, Any, Any]:
    found = described(pa.table({"c": pa.array(values, kind)}), **options)
    return tuple(found[k].get("c") for k in ("minValues", "maxValues", "nullCount"))


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        ([3, None, -1], pa.int64(), (-1, 3, 1)),
        ([3, -1], pa.int8(), (-1, 3, 0)),
        (["b", "a"], pa.large_string(), ("a", "b", 0)),
        ([True, None], pa.bool_(), (None, None, 1)),
        ([b"a", None], pa.binary(), (None, None, 1)),
        ([dt.date(2020, 1, 2), dt.date(1500, 3, 4)], pa.date32(), ("1500-03-04", "2020-01-02", 0)),
        ([None, None], pa.int32(), (None, None, 2)),
        ([5], pa.uint64(), (None, None, 0)),
        ([dt.time(1)], pa.time64("us"), (None, None, 0)),
        (
            [Decimal("1234567890123456.7891"), Decimal("-0.0001")],
            pa.decimal128(20, 4),
            ("-0.0001", "1234567890123456.7891", 0),
        ),
        ([Decimal("-2.50"), Decimal("1.00")], pa.decimal128(38, 2), ("-2.50", "1.00", 0)),
    ],
    ids=str,
)
def test_values_by_type(values: list[Any], kind: pa.DataType, expected: tuple[Any, Any, Any]) -> None:
    found = one(values, kind)
    if pa.types.is_decimal(kind):
        expected = (Decimal(expected[0]), Decimal(expected[1]), expected[2])
        assert [str(v) for v in found[:2]] == [str(v) for v in expected[:2]]
    assert found == expected


@pytest.mark.parametrize("as_integer", [True, False])
def test_decimals_compare_as_numbers_across_row_groups(as_integer: bool) -> None:
    table = pa.table({"c": pa.array([Decimal("-5.5"), Decimal("2.5"), Decimal("0.1")], pa.decimal128(9, 1))})
    text = stats.from_footer(footer(table, row_group_size=1, store_decimal_as_integer=as_integer))
    assert '"minValues":{"c":-5.5},"maxValues":{"c":2.5}' in text


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
@pytest.mark.parametrize("zone", ["UTC", None])
def test_timestamps_are_rounded_outwards(unit: str, zone: str | None) -> None:
    early = dt.datetime.fromisoformat("1960-01-01T00:00:00.123" + ("456" if unit != "ms" else ""))
    late = dt.datetime.fromisoformat("2020-01-01T23:59:59.999" + ("456" if unit != "ms" else ""))
    tail = "Z" if zone else ""
    values = [d.replace(tzinfo=UTC if zone else None) for d in (early, late)]
    low, high, _ = one(values, pa.timestamp(unit, zone))
    assert low == f"1960-01-01T00:00:00.123{tail}"
    assert high == (f"2020-01-01T23:59:59.999{tail}" if unit == "ms" else f"2020-01-02T00:00:00.000{tail}")


def test_times_no_calendar_has_are_left_out() -> None:
    low, high, nulls = one([-(10**15), 0], pa.timestamp("ms"))
    assert (low, high, nulls) == (None, "1970-01-01T00:00:00.000", 0)


def test_floats_need_proof_that_no_nan_hides() -> None:
    table = pa.table({"x": [1.5, math.nan], "y": [0.1, 2.0], "s": [{"f": 1.0}, {"f": None}], "i": [1, 2]})
    assert described(table)["minValues"] == {"i": 1}
    free = stats.nan_free_columns(table)
    assert free == {"y", "s.f"}
    found = described(table, nan_free=free)
    assert found["maxValues"] == {"y": Decimal("2.0"), "s": {"f": Decimal("1.0")}, "i": 2}
    assert found["nullCount"] == {"x": 0, "y": 0, "s": {"f": 1}, "i": 0}


def test_zero_has_two_signs_and_infinity_none() -> None:
    found = stats.from_footer(footer(pa.table({"z": [0.0, -0.0], "i": [1.0, math.inf]})), nan_free={"z", "i"})
    assert '"minValues":{"z":-0.0,"i":1.0},"maxValues":{"z":0.0}' in found


def test_nested_columns_and_the_limit_on_leaves() -> None:
    inner = pa.struct([("x", pa.int64()), ("y", pa.struct([("z", pa.string())]))])
    rows: dict[str, Any] = {
        "p": pa.array([7, 7]),
        "a": pa.array([{"x": 1, "y": {"z": "q"}}, None], inner),
        "l": pa.array([[1, 2], None], pa.list_(pa.int64())),
        "m": pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64())),
        "b": pa.array([2, 3]),
        "c": pa.array([4, 5]),
    }
    table = pa.table(rows)
    everything = described(table, num_indexed=-1, partition_columns={"p"})
    assert everything["nullCount"] == {"a": {"x": 1, "y": {"z": 1}}, "b": 0, "c": 0}
    assert everything["minValues"] == {"a": {"x": 1, "y": {"z": "q"}}, "b": 2, "c": 4}
    # x, z, l, m and b are the first five: a list or map counts as one
    assert described(table, num_indexed=5, partition_columns={"p"})["minValues"] == {
        "a": {"x": 1, "y": {"z": "q"}},
        "b": 2,
    }
    assert described(table, columns=["A.y", "c"])["minValues"] == {"a": {"y": {"z": "q"}}, "c": 4}
    assert described(table, num_indexed=0) == {"numRecords": 2, "minValues": {}, "maxValues": {}, "nullCount": {}}
    order = pa.schema([("c", pa.int64()), ("gone", pa.int64()), ("b", pa.int64())])
    assert list(json.loads(stats.from_footer(footer(table), order, num_indexed=1))["minValues"]) == ["c"]


def test_variants_have_no_leaves() -> None:
    kind = pa.struct([("metadata", pa.binary()), ("value", pa.binary())])
    assert described(pa.table({"v": pa.array([{"metadata": b"1", "value": b"2"}], kind)}))["nullCount"] == {}


def test_ambiguous_dots_are_left_out() -> None:
    table = pa.table({"a": [{"b": 1}], "a.b": [100], "c.d": [5]})
    assert described(table)["minValues"] == {"c.d": 5}


def test_footers_without_statistics() -> None:
    table = pa.table({"a": [1, 2], "b": ["x", "y"]})
    text = stats.from_footer(footer(table, write_statistics=["b"]), tight_bounds=True)
    assert text == '{"numRecords":2,"minValues":{"b":"x"},"maxValues":{"b":"y"},"nullCount":{"b":0},"tightBounds":true}'
    assert stats.num_records(stats.from_footer(footer(table.slice(0, 0)))) == 0


@given(st.text(max_size=80), st.integers(1, 40))
def test_truncated_strings_are_bounds(text: str, length: int) -> None:
    low, high = stats.truncate_min(text, length), stats.truncate_max(text, length)
    assert text.startswith(low) and low.encode() <= text.encode()
    assert high is None or high.encode() >= text.encode()
    units = len(text.encode("utf-16-le")) // 2
    if units <= length:
        assert low == high == text


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("z" * 40, "z" * 32, "z" * 32 + "\x7f"),
        ("é" * 40, "é" * 32, "é" * 32 + "\U0010ffff"),
        ("a" * 31 + "\U0001f600bcd", "a" * 31 + "\U0001f600", "a" * 31 + "\U0001f600\x7f"),
        ("\U0001f600" * 20, "\U0001f600" * 16, "\U0001f600" * 16 + "\U0010ffff"),
        ("\U0010ffff" * 20, "\U0010ffff" * 16, "\U0010ffff" * 20),
        ("\U0010ffff" * 200, "\U0010ffff" * 16, None),
    ],
)
def test_strings_are_cut_as_delta_spark_cuts_them(text: str, low: str, high: str | None) -> None:
    assert (stats.truncate_min(text), stats.truncate_max(text)) == (low, high)


@given(st.lists(st.one_of(st.none(), st.text(max_size=60)), max_size=8))
def test_string_bounds_hold(values: list[str | None]) -> None:
    low, high, nulls = one(values, pa.string())
    present = [v.encode() for v in values if v is not None]
    assert nulls == len(values) - len(present)
    assert low is None or all(low.encode() <= v for v in present)
    assert high is None or all(high.encode() >= v for v in present)


def test_loosening_keeps_every_digit() -> None:
    text = (
        '{"numRecords":3,"minValues":{"d":1234567890123456.7890,"s":"é"},"nullCount":{"a":0,"b":2},"tightBounds":true}'
    )
    assert stats.loosen(text) == text.replace("true", "false")
    assert stats.loosen(stats.loosen(text)) == stats.loosen(text)


def test_loosening_turns_only_nulls_into_all_rows() -> None:
    text = '{"numRecords":5,"nullCount":{"a":3,"b":{"c":3,"d":1},"e":0}}'
    assert json.loads(stats.loosen(text, deleted=2))["nullCount"] == {"a": 5, "b": {"c": 5, "d": 1}, "e": 0}
    loose = stats.loosen(text)
    assert json.loads(stats.loosen(loose, deleted=2))["nullCount"] == {"a": 3, "b": {"c": 3, "d": 1}, "e": 0}


@pytest.mark.parametrize("text", [None, "", "{}", "nonsense", "[1]", '{"numRecords":null}'])
def test_loosening_needs_the_number_of_rows(text: str | None) -> None:
    assert stats.loosen(text, rows=4) == '{"numRecords":4,"tightBounds":false}'
    with pytest.raises(InputError, match="numRecords"):
        stats.loosen(text)
    assert stats.num_records(text) is None


def test_loosening_writes_valid_json() -> None:
    assert stats.loosen('{"numRecords":1,"maxValues":{"a":NaN,"l":[1.50]}}') == (
        '{"numRecords":1,"maxValues":{"a":null,"l":[1.50]},"tightBounds":false}'
    )

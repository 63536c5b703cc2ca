"""Appending: every kind of input, and what fits a column."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import headwater as hw
from headwater.lakehouse import Lake

ROWS: list[dict[str, Any]] = [{"id": 1, "s": "a"}, {"id": 2, "s": None}]
ARROW = pa.Table.from_pylist(ROWS)


class Stream:
    """Anything with an Arrow stream."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return ARROW.__arrow_c_stream__(requested_schema)


@pytest.mark.long
@pytest.mark.parametrize(
    "data",
    [
        ROWS,
        {"id": [1, 2], "s": ["a", None]},
        ARROW,
        ARROW.to_batches()[0],
        ARROW.to_reader(),
        Stream(),
        pd.DataFrame({"id": [1, 2], "s": ["a", None]}),
        pl.DataFrame(ROWS),
        pl.LazyFrame(ROWS),
        pl.DataFrame(ROWS, schema_overrides={"s": pl.Categorical}),
    ],
    ids=["dicts", "columns", "table", "batch", "reader", "stream", "pandas", "polars", "lazy", "categorical"],
)
def test_every_kind_of_input(lake: Lake, data: Any) -> None:
    table = lake.table("t").create({"id": pa.int64(), "s": pa.string()})
    table.append(data)
    assert table.to_pylist() == ROWS


def test_the_first_write_makes_the_table(lake: Lake) -> None:
    table = lake.write("t", pl.DataFrame({"n": [1, 2], "l": [["a"], None], "u": pl.Series([1, 2], dtype=pl.UInt64)}))
    assert table.schema.types == [pa.int64(), pa.list_(pa.field("element", pa.string())), pa.decimal128(20, 0)]
    assert table.to_pylist() == [{"n": 1, "l": ["a"], "u": Decimal(1)}, {"n": 2, "l": None, "u": Decimal(2)}]


def test_nothing_to_append_is_no_commit(lake: Lake) -> None:
    table = lake.write("t", ROWS)
    assert table.append([]).version == 0
    assert table.append(ARROW.slice(0, 0)).version == 0
    assert table.version == 0


def test_columns_are_matched_by_name_without_case(lake: Lake) -> None:
    table = lake.write("t", ROWS)
    table.append(pa.table({"S": ["b"], "ID": [3]}))
    table.append([{"id": 4}])
    assert table.to_pylist()[2:] == [{"id": 3, "s": "b"}, {"id": 4, "s": None}]


@pytest.mark.parametrize(
    ("kind", "values", "stored"),
    [
        (pa.int32(), pa.array([1, None], pa.int64()), [1, None]),
        (pa.int64(), pa.array([2.0]), [2]),
        (pa.float64(), pa.array([1, 2], pa.int32()), [1.0, 2.0]),
        (pa.decimal128(10, 2), pa.array([Decimal("1.5")]), [Decimal("1.50")]),
        (pa.decimal128(10, 2), pa.array([7]), [Decimal("7.00")]),
        (pa.timestamp("us", "UTC"), pa.array([dt.datetime(2020, 1, 1)]), [dt.datetime(2020, 1, 1, tzinfo=dt.UTC)]),
        (pa.timestamp("us"), pa.array([1], pa.timestamp("ns")), [dt.datetime(1970, 1, 1)]),
        (pa.timestamp("us"), pa.array([dt.date(2020, 1, 1)]), [dt.datetime(2020, 1, 1)]),
        (pa.string(), pa.array(["a", "b"]).dictionary_encode(), ["a", "b"]),
        (pa.string(), pa.array(["a"], pa.string_view()), ["a"]),
        (pa.int64(), pa.nulls(2), [None, None]),
        (pa.list_(pa.int64()), pa.array([[1], None, []], pa.large_list(pa.int32())), [[1], None, []]),
    ],
)
def test_values_that_fit(lake: Lake, kind: pa.DataType, values: pa.Array, stored: list[Any]) -> None:
    table = lake.table("t").create({"c": kind})
    table.append(pa.table({"c": values}))
    assert [r["c"] for r in table.to_pylist()] == stored


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.int32(), pa.array([2**40])),
        (pa.int64(), pa.array([1.5])),
        (pa.int64(), pa.array(["1"])),
        (pa.string(), pa.array([1])),
        (pa.bool_(), pa.array([1])),
        (pa.date32(), pa.array([dt.datetime(2020, 1, 1)])),
        (pa.decimal128(4, 2), pa.array([Decimal("1.255")])),
        (pa.decimal128(4, 2), pa.array([Decimal("100.00")])),
        (pa.float32(), pa.array([1e300])),
        (pa.float64(), pa.array([2**53 + 1])),
        (pa.list_(pa.int64()), pa.array([1])),
        (pa.struct([("x", pa.int64())]), pa.array([{"y": 1}])),
        (pa.string(), pa.array([dt.timedelta(1)])),
    ],
)
def test_values_that_do_not_fit(lake: Lake, kind: pa.DataType, values: pa.Array) -> None:
    table = lake.table("t").create({"c": kind})
    with pytest.raises(hw.SchemaError):
        table.append(pa.table({"c": values}))
    assert (table.version, table.to_pylist()) == (0, [])


def test_struct_fields_are_matched_by_name(lake: Lake) -> None:
    table = lake.table("t").create({"at": pa.struct([("x", pa.int64()), ("y", pa.string()), ("z", pa.float64())])})
    table.append(
        pa.table({"at": pa.array([{"y": "b", "x": 1}, None], pa.struct([("y", pa.string()), ("x", pa.int32())]))})
    )
    deep = pa.array([[{"b": 2, "a": 1}]], pa.list_(pa.struct([("b", pa.int64()), ("a", pa.int64())])))
    other = lake.table("u").create({"l": pa.list_(pa.struct([("a", pa.int64()), ("b", pa.int64())]))})
    other.append(pa.table({"l": deep}))
    assert table.to_pylist() == [{"at": {"x": 1, "y": "b", "z": None}}, {"at": None}]
    assert other.to_pylist() == [{"l": [{"a": 1, "b": 2}]}]


def test_extra_columns_are_refused_with_the_nearest_name(lake: Lake) -> None:
    table = lake.write("t", ROWS)
    with pytest.raises(hw.SchemaError, match="did you mean `id`"):
        table.append([{"idd": 1}])
    with pytest.raises(hw.SchemaError):
        table.append(pa.table({"id": [1], "ID": [2]}))


def test_schema_merge_adds_columns(lake: Lake) -> None:
    table = lake.write("t", ROWS)
    table.append([{"id": 3, "extra": 1.5}], schema_mode="merge")
    assert table.schema.names == ["id", "s", "extra"]
    assert table.to_pylist() == [{**r, "extra": None} for r in ROWS] + [{"id": 3, "s": None, "extra": 1.5}]
    assert table.at(version=0).schema.names == ["id", "s"]
    with pytest.raises(hw.InputError):
        table.append(ROWS, schema_mode="replace")


def test_a_failing_stream_leaves_no_file(lake: Lake) -> None:
    table = lake.write("t", ROWS)
    before = sorted(e.path for e in table.storage.list(""))

    def batches() -> Any:
        yield ARROW.to_batches()[0]
        raise RuntimeError("the source broke")

    with pytest.raises(RuntimeError, match="the source broke"):
        table.append(pa.RecordBatchReader.from_batches(ARROW.schema, batches()))
    assert sorted(e.path for e in table.storage.list("")) == before


def test_a_transaction_is_applied_once(lake: Lake) -> None:
    table = lake.write("t", ROWS)
    first = table.append(ROWS, txn=("loader", 1))
    again = table.append(ROWS, txn=("loader", 1))
    assert (first.skipped, again.skipped, table.count()) == (False, True, 4)
    assert not table.append(ROWS, txn=("loader", 2)).skipped
    assert not table.append(ROWS, txn=("other", 1)).skipped
    assert table.count() == 8


def test_large_appends_roll_over_to_several_files(lake: Lake) -> None:
    with hw.settings.override(target_file_bytes=20_000, row_group_rows=1000):
        table = lake.write("t", pa.table({"n": np.random.default_rng(7).random(20_000)}))
    assert len(table.snapshot.files) > 3
    assert table.count() == table.to_arrow().num_rows == 20_000


def test_what_is_no_table_at_all(lake: Lake) -> None:
    with pytest.raises(hw.InputError):
        lake.write("t", 7)
    with pytest.raises(hw.NotFoundError):
        lake.table("nowhere").append(ROWS)

"""A table read by Spark has the rows that Arrow reads."""

from __future__ import annotations

import datetime as dt
import os
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import headwater as hw
from headwater.lake import snapshot
from headwater.lake.spark import tasks
from headwater.lake.spark.read import read
from headwater.lakehouse import Lake

from .conftest import agree, difference

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def numbers(start: int, stop: int) -> pa.Table:
    ids = range(start, stop)
    return pa.table({"id": pa.array(ids, pa.int64()), "s": [f"x{i % 7}" for i in ids], "v": [i / 8 for i in ids]})


EVERYTHING = pa.table(
    {
        "bool": [True, None],
        "byte": pa.array([1, None], pa.int8()),
        "short": pa.array([2, None], pa.int16()),
        "int": pa.array([3, None], pa.int32()),
        "long": pa.array([1 << 60, None], pa.int64()),
        "float": pa.array([1.5, float("nan")], pa.float32()),
        "double": [-0.0, float("inf")],
        "string": ["é 日本", ""],
        "binary": [b"\x00\xff", None],
        "date": [dt.date(1600, 2, 29), None],
        "instant": pa.array([dt.datetime(2020, 7, 1, 12, 0, 0, 1, dt.UTC), None], pa.timestamp("us", "UTC")),
        "clock": pa.array([dt.datetime(1900, 1, 1, 0, 0, 0, 5), None], pa.timestamp("us")),
        "decimal": pa.array([Decimal("-12345678901234567890.12"), None], pa.decimal128(38, 2)),
        "list": pa.array([[1, None], []], pa.list_(pa.int32())),
        "map": pa.array([[("a", 1.0)], None], pa.map_(pa.string(), pa.float64())),
        "struct": [{"x": 1, "y": [{"z": "deep"}]}, None],
    }
)


def test_every_type(lake: Lake) -> None:
    table = lake.write("t", EVERYTHING)
    assert agree(table) == 2
    table.append(table.spark())  # and back again, written by Spark
    assert agree(table) == 4
    assert hw.ChangeBatch.diff(table.to_arrow(), pa.concat_tables([EVERYTHING.cast(table.schema)] * 2)).is_empty


def test_vectors_of_both_kinds(lake: Lake) -> None:
    table = lake.write("t", numbers(0, 1000))
    table.append(numbers(1000, 3000))
    table.delete("id = 5")
    assert agree(table) == 2999
    table.delete("id % 3 = 0 AND id < 2500")
    table.append(numbers(3000, 3010))
    vectors = [f.deletion_vector for f in table.snapshot.files.values()]
    assert [v is None for v in vectors].count(True) == 1
    with hw.settings.override(small_vector_bytes=0):
        table.delete("id IN (1, 1001)")
    kinds = {f.deletion_vector.storage_type for f in table.snapshot.files.values() if f.deletion_vector}
    assert kinds == {"u"}
    agree(table)
    assert table.spark().where("id = 5").count() == 0
    assert table.spark().where("id BETWEEN 4 AND 8").select("id").toArrow()["id"].to_pylist() == [4, 7, 8]


def test_a_vector_over_many_chunks(lake: Lake, spark: SparkSession) -> None:
    # Vectors are made of chunks of 65,536 rows: some of the first, most of the second, and a part of the third go.
    table = lake.write("t", spark.range(0, 140_000, 1, 1).toDF("id"))
    table.delete("id % 2 = 0 OR id BETWEEN 70000 AND 132000")
    assert table.spark().count() == table.count() == table.to_arrow().num_rows
    agree(table)


def test_versions(lake: Lake) -> None:
    table = lake.write("t", numbers(0, 10))
    table.delete("id < 5")
    table.overwrite(numbers(100, 103))
    frame = table.at(version=1).spark()
    table.vacuum(dry_run=True)
    assert [agree(table.at(version=v)) for v in range(3)] == [10, 5, 3]
    assert frame.count() == 5


def test_an_empty_table(lake: Lake) -> None:
    table = lake.table("t").create({"id": pa.int64(), "s": pa.string()})
    assert agree(table) == 0
    assert table.spark().schema.simpleString() == "struct<id:bigint,s:string>"


def test_columns_and_where(lake: Lake, spark: SparkSession) -> None:
    table = lake.write("t", numbers(0, 100))
    table.append(numbers(1000, 1100))
    frame = read(table, spark, columns=["S"], where="id >= 1050")
    assert frame.columns == ["s"] and frame.count() == 50
    assert len(frame.inputFiles()) == 1, "the log's statistics rule the other file out"
    with pytest.raises(hw.NotFoundError, match="did you mean `id`"):
        read(table, spark, columns=["idd"])


def test_an_evolved_schema(lake: Lake) -> None:
    first = pa.table(
        {
            "b": pa.array([1], pa.int8()),
            "i": pa.array([1], pa.int32()),
            "f": pa.array([1.5], pa.float32()),
            "d": [dt.date(2020, 1, 1)],
            "m": pa.array([Decimal("1.5")], pa.decimal128(5, 2)),
        }
    )
    table = lake.write("t", first)
    wider = {"b": pa.int64(), "i": pa.float64(), "f": pa.float64(), "d": pa.timestamp("us"), "m": pa.decimal128(10, 4)}
    for column, kind in wider.items():
        table.widen_column(column, kind)
    table.add_columns({"new": pa.list_(pa.int64())})
    table.append([{"b": 1 << 40, "i": 0.5, "f": 0.1, "d": dt.datetime(2020, 1, 1, 1), "new": [1]}])
    assert agree(table) == 2


@pytest.mark.parametrize("mode", ["name", "id"])
def test_column_mapping(lake: Lake, mode: str) -> None:
    inner = pa.struct([("a b", pa.int32()), ("list", pa.list_(pa.struct([("q", pa.string())])))])
    schema = pa.schema([("the id", pa.int64()), ("st", inner), ("m", pa.map_(pa.string(), inner)), ("d", pa.string())])
    table = lake.table("t").create(schema, partition_by=["d"], properties={"delta.columnMapping.mode": mode})
    value = {"a b": 1, "list": [{"q": "z"}, None]}
    rows = [{"the id": i, "st": value, "m": [("k", value)], "d": "x" if i % 2 else None} for i in range(4)]
    table.append(pa.Table.from_pylist(rows, schema))
    assert agree(table) == 4
    table.append(table.spark())
    table.rename_column("the id", "identity")
    table.rename_column("d", "day of it")
    table.drop_column("m")
    table.delete("identity = 1")
    assert agree(table) == 6


def test_a_root_full_of_signs(tmp_path: Path, spark: SparkSession) -> None:
    root = tmp_path / "we ird%20[x]{y}é#?*,日本"
    lake = hw.connect(root, spark=spark)
    table = lake.write("t", numbers(0, 10))
    table.append(table.spark())
    table.delete("id = 3")
    assert agree(table) == 18
    split = lake.write("u", table.spark(), partition_by=["s"])
    split.delete("id = 4")
    assert agree(split) == 16


def test_timestamps_in_96_bits(lake: Lake) -> None:
    """Spark's old way to write them; another writer may still have it."""
    moments = pa.array([dt.datetime(2020, 1, 1, 12, 0, 0, 7, dt.UTC), None], pa.timestamp("us", "UTC"))
    table = lake.write("t", pa.table({"id": [1, 2], "ts": moments}))
    (path,) = table.snapshot.files
    pq.write_table(table.to_arrow(), Path(table.location, path), use_deprecated_int96_timestamps=True)
    assert agree(table) == 2 and table.to_arrow()["ts"].to_pylist() == moments.to_pylist()


def test_a_column_that_spark_has_a_use_for(lake: Lake) -> None:
    table = lake.write("t", pa.table({"_metadata": ["a", "b", "c"], "id": [1, 2, 3]}))
    table.delete("id = 2")
    assert agree(table) == 2


def test_names_that_spark_would_pass_over(lake: Lake) -> None:
    table = lake.write("t", numbers(0, 10))
    _move(lake, "t", "_hidden.parquet")
    assert agree(table) == 10
    _move(lake, "t", "a:b.parquet")
    assert agree(table) == 10


def _move(lake: Lake, name: str, to: str) -> None:
    """Give the only data file another name, in the log as well."""
    table = lake.table(name)
    (path,) = table.snapshot.files
    folder, log = Path(table.location), Path(table.location, "_delta_log", f"{0:020d}.json")
    os.rename(folder / path, folder / to)
    log.write_text(log.read_text().replace(path, to))
    snapshot.forget(table.storage)


def test_a_missing_file(lake: Lake) -> None:
    table = lake.write("t", numbers(0, 10))
    (path,) = table.snapshot.files
    os.unlink(Path(table.location, path))
    with pytest.raises(hw.NotFoundError) as caught:
        table.spark()
    assert caught.value.code == "E1105"


def test_joins_do_not_take_a_table_for_small(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    """Read by tasks, a table must not look so small that Spark sends it to every executor."""
    table = lake.write("t", numbers(0, 20_000))
    files = list(table.snapshot.files.values())
    large = [replace(f, size=1 << 30) for f in files]
    frame = tasks.read(lake.spark, table.snapshot, large, table.snapshot.schema.names)
    assert difference(frame, table.to_arrow()).is_empty
    frame.join(lake.spark.range(1000), "id").explain("cost")
    assert "Join" in (plan := capsys.readouterr().out)
    assert "Statistics(sizeInBytes=8.0 B" not in plan and "MiB" in plan


def test_filters_reach_the_files(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    table = lake.write("t", numbers(0, 100))
    table.delete("id = 5")
    table.spark().where("id > 90").explain()
    assert "GreaterThan(id,90)" in capsys.readouterr().out

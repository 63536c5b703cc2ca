"""Files that belong to no table: what stands in them, and in the names of their folders."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import headwater as hw
from headwater.base.errors import InputError
from headwater.timeseries.running.here import run_here


def _read(folder: Path, source: Any, **options: Any) -> pa.Table:
    return run_here(hw.connect(folder / "lake").stream(source, **options).plan)


def test_texts_that_look_like_nothing_are_texts(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("s,n\nNA,1\nNULL,2\nnan,3\nn/a,4\n,5\n#N/A,\n")
    found = _read(tmp_path, tmp_path / "a.csv")
    assert found["s"].to_pylist() == ["NA", "NULL", "nan", "n/a", None, "#N/A"]
    assert found["n"].to_pylist() == [1, 2, 3, 4, 5, None]


def test_what_was_written_as_csv_is_read_again(spark: Any, tmp_path: Path) -> None:
    rows = pa.table({"f": [1.5, float("nan"), float("inf"), None], "s": ["NA", "", None, "a,b"], "n": [0, 1, 2, 3]})
    lake = hw.connect(tmp_path / "lake", spark=spark)
    lake.stream(rows).write_csv(str(tmp_path / "out"))
    found = lake.stream(tmp_path / "out", format="csv").collect().sort_by("n")
    assert str(found["f"].to_pylist()) == "[1.5, nan, inf, None]"
    assert found["s"].to_pylist() == ["NA", "", None, "a,b"]


@pytest.mark.parametrize("delimiter", [";;", "", 3, "ü"])
def test_a_delimiter_that_is_none(tmp_path: Path, delimiter: Any) -> None:
    (tmp_path / "a.csv").write_text("a\n1\n")
    with pytest.raises(InputError, match="`delimiter`"):
        _read(tmp_path, tmp_path / "a.csv", delimiter=delimiter)


def _partitioned(folder: Path, names: list[str], ending: str = "parquet") -> Path:
    for number, name in enumerate(names):
        (folder / "data" / name).mkdir(parents=True, exist_ok=True)
        if ending == "parquet":
            pq.write_table(pa.table({"v": [number]}), folder / "data" / name / f"{number}.parquet")
        else:
            (folder / "data" / name / f"{number}.csv").write_text(f"v\n{number}\n")
    return folder / "data"


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_folders_name_columns(tmp_path: Path, ending: str) -> None:
    names = ["d=2024-01-31/k=1/s=a%20b", "d=2024-02-01/k=02/s=7", "d=__HIVE_DEFAULT_PARTITION__/k=3/s=x"]
    folder = _partitioned(tmp_path, names, ending)
    found = _read(tmp_path, folder).sort_by("v")
    kinds = {"v": pa.int64(), "d": pa.date32(), "k": pa.int32(), "s": pa.string()}
    assert found.schema == pa.schema(kinds)
    assert found["d"].to_pylist() == [dt.date(2024, 1, 31), dt.date(2024, 2, 1), None]
    assert found["k"].to_pylist() == [1, 2, 3]
    assert found["s"].to_pylist() == ["a b", "7", "x"]
    stream = hw.connect(tmp_path / "lake").stream(folder, schema=pa.schema([("v", pa.int64()), ("k", pa.string())]))
    assert run_here(stream.select("k").plan)["k"].to_pylist() == ["1", "02", "3"]


def test_the_same_columns_as_sparks(spark: Any, tmp_path: Path) -> None:
    names = ["a=1/b=1.5/c=9999999999/d=true/e=2024-01-01 10:00:00/v=5", "a=-2/b=2/c=1/d=1/e=2024-01-02/v=6"]
    folder = _partitioned(tmp_path, names)
    lake = hw.connect(tmp_path / "lake", spark=spark)
    found = lake.stream(folder).collect().sort_by("a")
    wanted = spark.read.parquet(str(folder)).toArrow().cast(found.schema).sort_by("a")
    assert found.to_pylist() == wanted.to_pylist()
    assert found.schema.names == ["v", "a", "b", "c", "d", "e"]


def test_folders_that_do_not_agree(tmp_path: Path) -> None:
    folder = _partitioned(tmp_path, ["d=1", "e=1"])
    with pytest.raises(InputError, match="`source`"):
        _read(tmp_path, folder)

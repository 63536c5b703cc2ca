"""What a stream can be made of, and what may be said of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headwater as hw
from headwater.base.errors import InputError
from headwater.timeseries.running.here import run_here

ROWS = pa.table({"t": [1, 2, 3], "v": [10, 20, 30]})


def _table(folder: Path) -> Path:
    lake = hw.connect(folder / "other")
    lake.write("trades", pa.table({"t": [9], "v": [90]}))
    lake.write("trades", ROWS, mode="overwrite")
    lake.table("trades").delete("t = 2")
    return folder / "other" / "trades"


def _rows(stream: Any) -> list[int]:
    found: list[int] = run_here(stream.plan).sort_by("t")["t"].to_pylist()
    return found


def test_the_folder_of_a_delta_table_is_that_table(tmp_path: Path) -> None:
    folder = _table(tmp_path)
    lake = hw.connect(tmp_path / "lake")
    for source in (folder, str(folder), f"{folder}/", f"file://{folder}"):
        assert _rows(lake.stream(source)) == [1, 3]
        assert _rows(lake.stream(source, version=0)) == [9]
    with pytest.raises(InputError, match=r"\*\.parquet"):
        lake.stream(f"{folder}/*.parquet")
    with pytest.raises(InputError, match="`format` is 'parquet'"):
        lake.stream(folder, format="parquet")


def test_a_part_of_a_delta_table_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = hw.connect(tmp_path)
    lake.write("trades", ROWS.append_column("day", pa.array(["a", "a", "it's"])), partition_by=["day"])
    lake.table("trades").delete("t = 1")  # its row is still in a file of the folder
    table = tmp_path / "trades"
    part = table / "day=a"
    file = next(part.glob("*.parquet"))
    for source in (part, str(part), f"{part}/", f"file://{part}", f"{part}/*.parquet", file, f"{table}/day=*/"):
        with pytest.raises(InputError, match="`source`") as refused:
            lake.stream(source)
        assert (
            refused.value.hint is not None
            and f"the folder itself, {'file://' if '://' in str(source) else ''}{table}" in refused.value.hint
        )
    with pytest.raises(InputError) as refused:
        lake.stream(part)
    assert refused.value.hint is not None and """filter("`day` = 'a'")""" in refused.value.hint
    assert _rows(lake.stream(table).filter("`day` = 'a'")) == [2]
    monkeypatch.chdir(table)
    with pytest.raises(InputError, match="`source`"):
        lake.stream("./day=a")
    beside = tmp_path / "day=a"
    beside.mkdir()
    file.rename(beside / "x.parquet")
    assert _rows(lake.stream(beside)) == [1, 2]


def test_files_are_not_written_among_those_of_a_table(spark: Any, tmp_path: Path) -> None:
    folder = _table(tmp_path)
    there = sorted(p for p in folder.rglob("*"))
    stream = hw.connect(tmp_path / "lake", spark=spark).stream(ROWS)
    for mode in ("error", "append", "overwrite"):
        with pytest.raises(InputError, match="`location`") as refused:
            stream.write_parquet(str(folder), mode=mode)
        assert refused.value.hint is not None and "Delta table" in refused.value.hint
        with pytest.raises(InputError, match="`location`"):
            stream.write_csv(str(folder), mode=mode)
        with pytest.raises(InputError, match="`location`"):
            stream.write_parquet(str(folder / "day=a"), mode=mode)
    assert sorted(p for p in folder.rglob("*")) == there


@pytest.mark.parametrize(
    "said",
    [{"by": "v"}, {"tiebreak": ["v"]}, {"version": 1}, {"schema": ROWS.schema}, {"header": False}, {"format": "csv"}],
    ids=str,
)
def test_what_would_be_ignored_is_refused(tmp_path: Path, said: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=f"`{next(iter(said))}`"):
        hw.connect(tmp_path).stream(ROWS, **said)


def test_files_have_no_versions(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("t\n1\n")
    with pytest.raises(InputError, match="`version`"):
        hw.connect(tmp_path / "lake").stream(tmp_path / "a.csv", version=1)


def test_options_that_writing_does_not_know(tmp_path: Path, spark: Any) -> None:
    lake = hw.connect(tmp_path, spark=spark)
    for _ in range(2):  # a table that is not there yet, and one that is
        with pytest.raises(InputError, match="`shema_mode`"):
            lake.stream(ROWS).write("trades", shema_mode="merge")
        lake.write("trades", ROWS)

"""Reading a view: a stream of batches of one version, or everything at once as with a table."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pyarrow as pa

import headwater as hw
from headwater.incremental.views.view import View

ROWS = [{"id": 1, "x": "a"}, {"id": 2, "x": None}]


def view_of(folder: Path) -> tuple[hw.Lake, View]:
    lake = hw.connect(folder)
    lake.write("s", ROWS)
    view = lake.view("v", "SELECT id, x FROM s")
    view.refresh()
    return lake, view


def test_everything_at_once_as_with_a_table(tmp_path: Path) -> None:
    _, view = view_of(tmp_path)
    assert view.to_arrow().equals(view.table.to_arrow())
    assert view.to_pandas().equals(view.table.to_pandas())
    assert view.to_polars().equals(pl.DataFrame(view)) and view.to_polars().equals(view.table.to_polars())
    assert sorted(view.to_pylist(), key=lambda row: row["id"]) == ROWS
    assert pa.table(view).equals(view.to_arrow()), "through Arrow's stream interface"


def test_a_stream_keeps_to_its_version(tmp_path: Path) -> None:
    lake, view = view_of(tmp_path)
    stream = view.read()
    assert isinstance(stream, pa.RecordBatchReader)
    lake.table("s").append([{"id": 3, "x": "c"}])
    view.refresh()
    assert stream.read_all().num_rows == 2 and view.read().read_all().num_rows == 3


def test_a_recomputation_is_a_stream_with_the_columns_of_the_view(tmp_path: Path) -> None:
    lake, view = view_of(tmp_path)
    before = view.frontier
    lake.table("s").append([{"id": 3, "x": "c"}])
    stream = view.recompute(before)
    assert isinstance(stream, pa.RecordBatchReader) and stream.schema.names == view.schema.names
    assert stream.read_all().num_rows == 2

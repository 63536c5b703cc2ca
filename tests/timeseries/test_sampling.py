"""Samples see all of the files, so that a hot key is cut evenly however the rows lie in them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import headwater as hw
from headwater.base import settings
from headwater.timeseries.slices import hot_keys
from headwater.timeseries.sources.delta import DeltaSource
from headwater.timeseries.sources.files import FilesSource

ROWS = 800_000


@pytest.mark.long
@pytest.mark.parametrize("kind", ["Delta", "Parquet"])
@pytest.mark.parametrize("files", [1, 3, 40])
def test_slices_of_rows_in_the_order_of_time_are_even(tmp_path: Path, files: int, kind: str) -> None:
    rng = np.random.default_rng(7)
    # The hot key comes and goes, and time does not run evenly.
    hot = rng.random(ROWS) < np.linspace(0.1, 0.6, ROWS)
    times = np.cumsum(rng.integers(1, 5, ROWS) * np.where(np.arange(ROWS) < ROWS // 4, 100, 1))
    keys = np.where(hot, "hot", rng.integers(0, 50, ROWS).astype(str))
    rows = pa.table({"k": keys.astype(object), "t": times, "n": np.arange(ROWS)})
    lake, folder = hw.connect(tmp_path), tmp_path / "files"
    folder.mkdir()
    with settings.override(row_group_rows=100_000):
        for i in range(files):
            some = rows.slice(ROWS * i // files, ROWS * (i + 1) // files - ROWS * i // files)
            if kind == "Delta":
                lake.write("trades", some)
            else:
                pq.write_table(some, folder / f"{i:02d}.parquet", row_group_size=100_000)
    plan = lake.stream("trades" if kind == "Delta" else folder).plan
    assert isinstance(plan, DeltaSource | FilesSource)
    about = plan.rows_about()
    assert about is not None and abs(about - ROWS) <= ROWS // 20
    sample = plan.narrowed(["k", "t"]).sample(20_000)
    assert sample is not None and 5_000 < sample.num_rows < 60_000
    (found,) = hot_keys([(sample, ROWS / sample.num_rows)], [("k",)], ["t"], ROWS / 20)
    assert len(found.cuts) >= 5
    slices = np.bincount(np.searchsorted(found.cuts, times[hot], side="right"))
    assert slices.max() <= 3 * slices.min()


def test_rows_of_the_larger_side_weigh_more() -> None:
    few, many = pa.table({"k": ["a"] * 100, "t": range(100)}), pa.table({"k": ["a"] * 100, "t": range(900, 1_000)})
    (found,) = hot_keys([(few, 1.0), (many, 99.0)], [("k",), ("k",)], ["t", "t"], 5_000)
    assert found.cuts == (949,)

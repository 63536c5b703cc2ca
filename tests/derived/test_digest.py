"""Digests: hashes are equal where rows are, for every type; cells of floats are no wider than the tolerance."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base import rowkey
from headwater.derived.digest import Digest, RowHash
from headwater.derived.pairing import TOLERANCE
from headwater.kernels import digest as kernels
from headwater.kernels.arrays import Lanes, read_only
from headwater.testing import strategies


def plain(table: pa.Table) -> pa.Table:
    fields = [pa.field(f"c{i}", rowkey.plain_type(f.type)) for i, f in enumerate(table.schema)]
    columns = [c if c.type == f.type else c.cast(f.type) for c, f in zip(table.columns, fields, strict=True)]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def exact(hashed: RowHash, batch: pa.RecordBatch) -> Lanes:
    return hashed.exact_lanes(batch, hashed.plain_lanes(batch))


@given(st.data())
def test_rows_have_equal_hashes_where_they_are_equal(data: st.DataObject) -> None:
    rows = plain(data.draw(strategies.tables(max_rows=12)))
    if not rows.num_rows:
        return
    # Each row twice, so that there are equal ones; and in slices, so that arrays have offsets.
    both = rowkey.take_rows(rows, np.tile(np.arange(rows.num_rows), 2)).combine_chunks()
    hashed = RowHash(both.schema)
    (whole,) = both.to_batches()
    lanes = exact(hashed, whole)
    codes = rowkey.row_codes(both).ids
    same = (lanes[:, None, :] == lanes[None, :, :]).all(axis=2)
    assert (same == (codes[:, None] == codes[None, :])).all()
    for start in range(whole.num_rows):
        assert (exact(hashed, whole.slice(start, 2)) == lanes[start : start + 2]).all()


@pytest.mark.parametrize("lane", [0, 1])
def test_each_lane_alone_tells_rows_apart(lane: int) -> None:
    """Close numbers, swapped columns and shifted strings: a lane of 64 bits has no two equal hashes among 200,000 rows."""
    n = np.arange(200_000)
    table = pa.table({"a": n % 450, "b": n // 450, "s": pa.array(["x" * (i % 7) for i in n.tolist()])})
    (batch,) = table.combine_chunks().to_batches()
    lanes = exact(RowHash(table.schema), batch)
    assert len(np.unique(lanes[:, lane])) == len(n)
    swapped = pa.table({"a": n // 450, "b": n % 450, "s": table["s"]}).combine_chunks().to_batches()[0]
    other = exact(RowHash(table.schema, b"k" * 32), swapped)
    assert not np.isin(other[:, lane], lanes[:, lane]).any(), "another key gives other hashes"


def test_hashes_are_spread_evenly() -> None:
    table = pa.table({"n": range(1 << 18)})
    (batch,) = table.to_batches()
    counts = Digest(RowHash(table.schema), 8)
    counts.add(batch)
    assert counts.rows == 1 << 18 and abs(counts.counts - 1024).max() < 200  # six standard deviations
    lanes = exact(RowHash(table.schema), batch)
    bits = np.unpackbits(np.ascontiguousarray(lanes).view(np.uint8).reshape(len(lanes), -1), axis=1).mean(axis=0)
    assert abs(bits - 0.5).max() < 0.01, "each of the 128 bits is as often set as not"


def cells(values: np.ndarray[tuple[int], np.dtype[np.float64]], offset: int) -> Lanes:
    lanes, keys = np.zeros((len(values), 2), np.uint64), np.arange(1, 5).astype(np.uint64)
    kernels.fold_cells(read_only(values.view(np.uint64)), read_only(np.zeros(0, np.bool_)), lanes, keys, offset)
    return lanes


@pytest.mark.parametrize("offset", RowHash(pa.schema([("x", pa.float64())])).grids)
def test_numbers_of_one_cell_agree_within_the_tolerance(offset: int) -> None:
    rng = np.random.default_rng(3)
    borders = np.ldexp(1.0, np.arange(-1074, 1024))
    around = [np.ldexp(rng.random(20_000), rng.integers(-1080, 1025, 20_000)), borders, rng.random(2_000) + 1]
    with np.errstate(over="ignore"):
        base = np.concatenate([*around, *(-a for a in around)])
        near = [base * (1 + rng.uniform(-3, 3, len(base)) * 2.0**-30) for _ in range(20)]
    steps = [base, np.nextafter(base, np.inf), np.nextafter(base, -np.inf), *near]
    seen = 0
    for other in steps:
        one_cell = (cells(base, offset) == cells(np.ascontiguousarray(other), offset)).all(axis=1)
        with np.errstate(invalid="ignore"):
            gap = np.abs(base - other)
            close = (base == other) | (gap <= TOLERANCE * np.maximum(np.abs(base), np.abs(other)))
        assert not (one_cell & ~close).any(), "equal digests would hide a difference"
        seen += int((one_cell & (base != other)).sum())
    assert seen > 10_000, "cells hold more than one number"


def test_special_floats() -> None:
    values = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 5e-324, 1e-323, 1.7976931348623157e308])
    payload = np.array([0x7FF8000000000001], np.uint64).view(np.float64)
    for offset in RowHash(pa.schema([("x", pa.float64())])).grids:
        lanes = cells(values, offset)
        assert (lanes[0] == lanes[1]).all() and (cells(payload, offset)[0] == lanes[2]).all()
        assert len(np.unique(lanes[1:, 0])) == 7


def test_a_number_on_a_border_of_one_grid_is_not_on_one_of_the_other() -> None:
    border = np.array([1.0 + 2.0**-30])
    below = np.nextafter(border, 0)
    agree = [(cells(border, o) == cells(below, o)).all() for o in RowHash(pa.schema([("x", pa.float64())])).grids]
    assert agree == [False, True]

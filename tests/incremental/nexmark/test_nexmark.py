"""The stream of auctions is the same however it is cut, and what Nexmark's queries look for is in it."""

from __future__ import annotations

import itertools
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from headwater.testing.nexmark import SCHEMAS, batches, tables


@pytest.mark.long
@pytest.mark.parametrize("size", [1, 7, 50, 333])
def test_the_cut_into_batches_changes_nothing(size: int) -> None:
    whole = tables(999, seed=5)
    parts = list(itertools.islice(batches(5, batch_events=size), -(-999 // size)))
    for name, table in whole.items():
        joined = pa.Table.from_batches([p[name] for p in parts])
        assert joined.slice(0, table.num_rows).equals(table)


def test_it_begins_anywhere() -> None:
    later = next(batches(5, batch_events=100, first_event=400))
    assert pa.Table.from_batches([later["bid"]]).equals(tables(500, seed=5)["bid"].slice(46 * 8))


def test_another_seed_is_another_stream() -> None:
    first, second = (tables(500, seed=s)["bid"].column("price") for s in (1, 2))
    assert not first.equals(second)


def test_of_fifty_events_one_is_a_person_and_three_are_auctions() -> None:
    assert {n: t.num_rows for n, t in tables(5_000).items()} == {"person": 100, "auction": 300, "bid": 4_600}


def test_every_name_that_is_used_is_there_already() -> None:
    found = tables(5_000, seed=9)
    people = dict(zip(*(found["person"].column(c).to_pylist() for c in ("id", "date_time")), strict=True))
    auctions = dict(zip(*(found["auction"].column(c).to_pylist() for c in ("id", "date_time")), strict=True))
    for row in found["auction"].to_pylist():
        assert people[row["seller"]] < row["date_time"] < row["expires"]
    for row in found["bid"].to_pylist():
        assert auctions[row["auction"]] < row["date_time"] and people[row["bidder"]] < row["date_time"]


def test_times_are_unique_and_in_order() -> None:
    for table in tables(2_000, seed=4).values():
        times = table.column("date_time").cast(pa.int64()).to_pylist()
        assert times == sorted(set(times))


def test_some_auctions_are_hot() -> None:
    bids = tables(20_000, seed=1)["bid"]
    counts = sorted(pc.value_counts(bids.column("auction").combine_chunks()).field("counts").to_pylist())
    assert counts[-1] > 20 * counts[len(counts) // 2]


def test_the_schemas_are_those_of_the_rows() -> None:
    assert {n: t.schema for n, t in tables(100).items()} == SCHEMAS


def test_each_of_the_23_queries_says_what_it_asks() -> None:
    texts = [(Path(__file__).parent / f"q{n}.sql").read_text("utf-8") for n in range(23)]
    assert all(text.startswith("-- ") for text in texts)
    assert len(set(texts)) == 23

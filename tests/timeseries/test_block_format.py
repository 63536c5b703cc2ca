"""Blocks: what was put in comes out, also where keys are dictionaries and where too few of them repeat."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from headwater.spark.block_format import coded, decode, encode, plain
from headwater.spark.blocks import ByKeys, _ToBlocks
from headwater.spark.buckets import bucket_of


@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize("as_dictionary", [False, True])
def test_dictionaries_come_along(compress: bool, as_dictionary: bool) -> None:
    rows = pa.table({"k": ["a", None, "b", "a"] * 100, "v": list(range(400))})
    known = coded(rows.schema, ["k", "v"])
    sent = rows.cast(known) if as_dictionary else rows
    found = decode(encode(sent.slice(3, 50), compress=compress, described=True), known)
    assert found.schema.equals(known)
    assert plain(found, rows.schema).equals(rows.slice(3, 50))


@pytest.mark.parametrize("different", [3, 900])
def test_keys_travel_as_dictionaries_where_they_repeat(different: int) -> None:
    rng = np.random.default_rng(5)
    keys = [None if n == 0 else f"key {n}" for n in rng.integers(0, different, 1_000).tolist()]
    rows = pa.table({"k": keys, "v": rng.integers(0, 9, 1_000)})
    known = coded(rows.schema, ["k"])
    sink = _ToBlocks(ByKeys(("k",), 4), 0, False, ("k",))
    found: Counter[tuple[str | None, int]] = Counter()
    sizes = 0
    for batch in sink(iter([rows.slice(0, 600), rows.slice(600).cast(known).cast(rows.schema)])):
        from headwater.spark.blocks import _blocks_in

        ((_, block),) = _blocks_in(batch)
        sizes += block.data.size
        table = decode(block, known)
        assert table.schema.equals(known)
        values = plain(table, rows.schema)
        # Rows are where their values are put, however they are written.
        assert set(bucket_of(values, ["k"], 4).tolist()) == set(batch.column("bucket").to_pylist())
        found.update(zip(values["k"].to_pylist(), values["v"].to_pylist(), strict=True))
    assert found == Counter(zip(rows["k"].to_pylist(), rows["v"].to_pylist(), strict=True))
    # Four dictionaries of all keys would be larger than the keys.
    assert sizes < rows.nbytes + 4 * 1_500

"""Partial sums: fewer rows, whose counts and sums, limb by limb, are those of all."""

from __future__ import annotations

from collections import defaultdict
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from headwater.incremental.layout import Layout
from headwater.incremental.partial_sums import can_add, summed
from headwater.incremental.zset import ZSet

TYPES = [pa.int8(), pa.int32(), pa.int64(), pa.decimal128(7, 2), pa.decimal128(18, 0)]
LONG = "a text that is longer than what a row holds by itself "


def limbs(rows: ZSet, columns: list[str]) -> dict[object, list[int]]:
    """By the other columns and which are null: the number of rows, and the sums of the halves of each column."""
    found: dict[object, list[int]] = defaultdict(lambda: [0] * (1 + 2 * len(columns)))
    table = rows.to_arrow()
    for row in table.to_pylist():
        group = (row["k"], row["s"], *(row[c] is None for c in columns))
        sums = found[group]
        sums[0] += row["_weight"]
        for i, column in enumerate(columns):
            value = row[column]
            if value is None:
                continue
            whole = int(value.scaleb(table.schema.field(column).type.scale)) if isinstance(value, Decimal) else value
            sums[1 + 2 * i] += (whole >> 32) * row["_weight"]
            sums[2 + 2 * i] += (whole & 0xFFFFFFFF) * row["_weight"]
    return {group: sums for group, sums in found.items() if any(sums)}


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("seed", range(4))
def test_counts_and_sums_are_those_of_all_rows(dtype: pa.DataType, seed: int) -> None:
    rng = np.random.default_rng(seed)
    is_decimal = pa.types.is_decimal(dtype)
    most = 10**dtype.precision - 1 if is_decimal else (1 << (dtype.bit_width - 1)) - 1
    n = 3_000

    def values(low: int) -> pa.Array:
        edges, near = [low, -1, 0, 1, most], min(most, 1 << 33)
        drawn = [
            int(rng.choice(edges)) if rng.random() < 0.1 else int(rng.integers(max(low, -near), near)) for _ in range(n)
        ]
        given = [Decimal(v).scaleb(-dtype.scale) if is_decimal else v for v in drawn]
        return pa.array([None if rng.random() < 0.1 else v for v in given], dtype)

    keys = np.where(rng.random(n) < 0.5, 7, rng.integers(0, 10 if seed % 2 else 2_000, n))
    table = pa.table(
        {
            "k": pa.array(keys),
            "s": [LONG + str(k % 3) if seed > 1 else "s" for k in keys.tolist()],
            "v": values(-most - (not is_decimal)),
            "w": values(-min(most, 90)),
        }
    )
    rows = ZSet.packed(Layout(table.schema), table, rng.choice([-2, -1, 1, 1, 1, 3], n))
    few = summed(rows, ["k"], ["v", "w"])
    assert limbs(few, ["v", "w"]) == limbs(rows, ["v", "w"])
    assert len(few) < 0.8 * n, "half of the rows are of one key"


def test_rows_without_a_hot_key_stay_as_they_are() -> None:
    rows = ZSet.from_arrow(pa.table({"k": range(5_000), "v": range(5_000)}))
    assert summed(rows, ["k"], ["v"]) is rows


def test_without_columns_to_add_rows_are_counted() -> None:
    few = summed(ZSet.from_arrow(pa.table({"k": [1] * 900 + [2] * 100})), ["k"], [])
    assert sorted((r["k"], r["_weight"]) for r in few.to_arrow().to_pylist()) == [(1, 900), (2, 100)]


def test_only_whole_numbers_of_one_word_are_added() -> None:
    types = [
        pa.int16(),
        pa.decimal128(18, 2),
        pa.decimal128(19, 2),
        pa.float64(),
        pa.uint32(),
        pa.date32(),
        pa.string(),
    ]
    layout = Layout(pa.schema([(str(t), t) for t in types]))
    assert [can_add(layout, str(t)) for t in types] == [True, True, False, False, False, False, False]

"""A history that a seed decides: changes of two traces, step by step, and what they come to, by other means.

``orders`` has long and short strings, nulls and an order; ``sums`` is a linear aggregate with two weights. Every third step is large
enough for the spine; each step takes back some rows of the one before.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import polars as pl
import pyarrow as pa

from headwater.incremental.layout import Layout, Order
from headwater.incremental.trace import Trace
from headwater.incremental.zset import ZSet

ORDERS = Layout(
    pa.schema(
        [pa.field("id", pa.int64(), nullable=False), pa.field("amount", pa.int64()), pa.field("note", pa.string())]
    ),
    keys=1,
    order=[Order("amount", descending=True)],
)
SUMS = Layout(pa.schema([pa.field("shop", pa.string())]), keys=1, weights=2)
LAYOUTS = {"orders": ORDERS, "sums": SUMS}

LARGE = 33_000
SMALL = 300


def new_traces() -> dict[str, Trace]:
    return {name: Trace(layout) for name, layout in LAYOUTS.items()}


def _fresh(seed: int, step: int) -> pa.Table:
    random = np.random.default_rng([seed, step])
    n = LARGE if step % 3 == 0 else SMALL
    ids = random.integers(0, 1 << 20, n)
    amounts = pa.array(random.integers(0, 50, n), mask=random.random(n) < 0.1)
    notes = pa.array(
        [("a longer note on order " if i % 4 else "n") + str(i % 1000) if i % 9 else None for i in ids.tolist()]
    )
    return pa.table({"id": pa.array(ids), "amount": amounts, "note": notes}, schema=ORDERS.schema)


@cache
def orders_change(seed: int, step: int) -> tuple[pa.Table, np.ndarray]:
    """The rows and weights that a step adds to ``orders``."""
    rows = _fresh(seed, step)
    if step == 0:
        return rows, np.ones(len(rows), dtype=np.int64)
    back = _fresh(seed, step - 1)[::3]
    weights = np.concatenate([np.ones(len(rows), dtype=np.int64), -np.ones(len(back), dtype=np.int64)])
    return pa.concat_tables([rows, back]), weights


def apply(traces: dict[str, Trace], seed: int, step: int) -> None:
    """Add what a step adds."""
    rows, weights = orders_change(seed, step)
    traces["orders"].add(ZSet.packed(ORDERS, rows, weights))
    shops = pa.table(
        {"shop": pa.array([f"shop {i} of the whole town" for i in range(step % 50 + 1)])}, schema=SUMS.schema
    )
    change = ZSet.packed(SUMS, shops)
    change.rows[:, -2] = 1
    change.rows[:, -1] = np.arange(len(shops)) * step
    traces["sums"].add(change)


@cache
def expected(seed: int, step: int) -> Contents:
    """The contents of the traces after a step: computed by polars, and by hand."""
    frames = [pl.DataFrame(schema={"id": pl.Int64, "amount": pl.Int64, "note": pl.String, "w0": pl.Int64})]
    sums: dict[str, tuple[int, int]] = {}
    for i in range(step + 1):
        rows, weights = orders_change(seed, i)
        frames.append(pl.DataFrame(pl.from_arrow(rows)).with_columns(w0=pl.Series(weights)))
        for k in range(i % 50 + 1):
            n, s = sums.get(name := f"shop {k} of the whole town", (0, 0))
            sums[name] = (n + 1, s + k * i)
    orders = pl.concat(frames).group_by("id", "amount", "note").agg(pl.col("w0").sum()).filter(pl.col("w0") != 0)
    by_hand = pl.DataFrame(
        [(k, *v) for k, v in sums.items()],
        schema={"shop": pl.String, "w0": pl.Int64, "w1": pl.Int64},
        orient="row",
    )
    return Contents({"orders": orders, "sums": by_hand})


def contents(traces: dict[str, Trace]) -> Contents:
    """What traces hold, in the same form."""
    found = {}
    for name, trace in traces.items():
        z = trace.zset()
        frame = pl.DataFrame(pl.from_arrow(z.to_arrow())).drop("_weight")
        weights = [pl.Series(f"w{k}", z.rows[:, z.layout.payload + k].copy()) for k in range(z.layout.weights)]
        found[name] = frame.with_columns(weights)
    return Contents(found)


class Contents:
    """Rows with their weights, by trace; equal if they are the same whatever their order."""

    def __init__(self, frames: dict[str, pl.DataFrame]) -> None:
        self.frames = {name: frame.sort(frame.columns) for name, frame in frames.items()}

    def __eq__(self, other: object) -> bool:
        assert isinstance(other, Contents)
        return self.frames.keys() == other.frames.keys() and all(
            self.frames[name].equals(other.frames[name]) for name in self.frames
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Contents({ {name: frame.height for name, frame in self.frames.items()} })"

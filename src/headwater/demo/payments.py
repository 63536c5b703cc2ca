"""Card payments with chargebacks, made from a seed: the same rows on every machine, offline.

Customers pay merchants by card. Some payments reach the lake days late, some are corrected after the fact. The sums
are planted: `Truth` says what the lake must show after each act, computed here without the lake.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa

__all__ = ["Payments", "Truth", "make"]

SEED = 20_260_131
FIRST_DAY = datetime(2026, 1, 1, tzinfo=UTC)
DAYS = 30
COUNTRIES = ("DE", "ES", "FR", "IT", "PL")
MERCHANTS = ("Alpine Gear", "Bäckerei Huber", "Café Zoé", "Dvořák Knihy", "Éclair & Fils", "日本茶 Teehaus")


@dataclass(frozen=True, slots=True)
class Truth:
    """What the demo must show, known beforehand."""

    payments: int
    cents: int
    late: int
    late_cents: int
    corrections: int
    correction_cents: int


@dataclass(frozen=True, slots=True)
class Payments:
    """The rows of the story: what arrives first, and the change that arrives after."""

    customers: pa.Table
    transactions: pa.Table
    change: pa.Table
    forgotten: tuple[int, ...]
    truth: Truth


def make(size: int = 50_000, *, late: int = 1_000, corrections: int = 300) -> Payments:
    """The rows, from a fixed seed."""
    rng = np.random.default_rng(SEED)
    customers = pa.table(
        {
            "customer_id": pa.array(range(size // 10), pa.int64()),
            "country": pa.array(rng.choice(COUNTRIES, size // 10)),
            "since": pa.array((rng.integers(15_000, 20_000, size // 10)).astype("int32"), pa.date32()),
        }
    )
    everything = _transactions(rng, size + late, len(customers))
    order = rng.permutation(size + late)
    first = everything.take(pa.array(np.sort(order[:size])))
    latecomers = everything.take(pa.array(np.sort(order[size:])))
    corrected = first.take(pa.array(np.sort(rng.choice(size, corrections, replace=False))))
    before = corrected["cents"].to_numpy()
    after = np.maximum(1, before // 2)
    corrected = corrected.set_column(4, "cents", pa.array(after)).set_column(
        5, "status", pa.array(["corrected"] * corrections)
    )
    truth = Truth(
        size,
        int(first["cents"].to_numpy().sum()),
        late,
        int(latecomers["cents"].to_numpy().sum()),
        corrections,
        int((after - before).sum()),
    )
    forgotten = tuple(int(i) for i in rng.choice(len(customers), 3, replace=False))
    return Payments(customers, first, pa.concat_tables([corrected, latecomers]), forgotten, truth)


def _transactions(rng: np.random.Generator, count: int, customers: int) -> pa.Table:
    seconds = np.sort(rng.integers(0, DAYS * 86_400, count))
    times = pa.array((seconds + int(FIRST_DAY.timestamp())) * 1_000_000, pa.timestamp("us", tz="UTC"))
    return pa.table(
        {
            "transaction_id": pa.array(np.arange(count), pa.int64()),
            "customer_id": pa.array(rng.integers(0, customers, count)),
            "merchant": pa.array(rng.choice(MERCHANTS, count)),
            "paid_at": times,
            "cents": pa.array(rng.integers(100, 50_000, count)),
            "status": pa.array(["paid"] * count),
            "day": times.cast(pa.date32()),
        }
    )

"""A lake of payments by card, its cards, and six views of them; and changes of any size.

A change of a share of the payments inserts half as many new ones and deletes half as many old ones, as corrections and
forgotten customers do.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

import headwater as hw

__all__ = ["SHAPES", "World"]

SHAPES = {
    "filter": "SELECT id, card, amount FROM payments WHERE amount > 990",
    "group": "SELECT card, count(*) AS n, sum(amount) AS total FROM payments GROUP BY card",
    "join and group": (
        "SELECT c.shop, count(*) AS n, sum(p.amount) AS total, avg(p.amount) AS mean, min(p.amount) AS least, "
        "max(p.amount) AS most FROM payments p JOIN cards c ON p.card = c.card WHERE p.amount > 100 GROUP BY c.shop"
    ),
    "distinct": "SELECT DISTINCT card, amount DIV 100 AS hundreds FROM payments",
    "first three": (
        "SELECT id, card, amount FROM payments "
        "QUALIFY row_number() OVER (PARTITION BY card ORDER BY amount DESC, id) <= 3"
    ),
    "exists": (
        "SELECT day, count(*) AS n, sum(amount) AS total FROM payments p "
        "WHERE EXISTS (SELECT 1 FROM cards c WHERE c.card = p.card AND c.shop < 100) GROUP BY day"
    ),
}
_CARDS = 100_000
_SHOPS = 1_000
_DAYS = 365
_ROWS_A_FILE = 1_000_000


@dataclass
class World:
    """The lake, and the ids that payments have."""

    rows: int
    lake: hw.Lake = field(init=False)
    first: int = 0
    next: int = 0

    def __post_init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="headwater-bench-views-")
        self._random = np.random.default_rng(7)
        self.lake = hw.connect(self._folder.name)
        cards = max(100, min(_CARDS, self.rows // 20))
        self._cards = cards
        shops = np.arange(cards, dtype=np.int64) % max(10, min(_SHOPS, cards // 10))
        self.lake.write("cards", pa.table({"card": np.arange(cards, dtype=np.int64), "shop": shops}))
        while self.next < self.rows:
            self._insert(min(_ROWS_A_FILE, self.rows - self.next))

    def _insert(self, rows: int) -> None:
        random = self._random
        table = pa.table(
            {
                "id": np.arange(self.next, self.next + rows, dtype=np.int64),
                "card": random.integers(0, self._cards, rows),
                "amount": random.integers(0, 1_000, rows),
                "day": pa.array(random.integers(0, _DAYS, rows), pa.int32()).cast(pa.date32()),
            }
        )
        self.next += rows
        self.lake.write("payments", table, mode="append")

    def change(self, share: float) -> int:
        """Insert and delete so many of the rows; give how many rows that were."""
        each = max(1, round(self.rows * share / 2))
        self._insert(each)
        self.lake.table("payments").delete(f"id >= {self.first} AND id < {self.first + each}")
        self.first += each
        return 2 * each

    def close(self) -> None:
        self._folder.cleanup()

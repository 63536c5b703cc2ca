"""A small world for tests of feature tables: payments, rates and plans in a lake, which change at random, late rows among them."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

import headwater as hw
from headwater.base.frontier import Frontier
from headwater.lakehouse import Lake

__all__ = ["PAYMENTS", "RATES", "PaymentWorld"]

START = datetime(2026, 1, 1, tzinfo=UTC)
PAYMENTS = pa.schema(
    [
        ("id", pa.int64()),
        ("card", pa.string()),
        ("ts", pa.timestamp("us", "UTC")),
        ("amount", pa.int64()),
        ("shop", pa.int64()),
    ]
)
RATES = pa.schema([("card", pa.string()), ("ts", pa.timestamp("us", "UTC")), ("rate", pa.int64())])
_CARDS = ["a", "b", "c", "Zoë", None]


class PaymentWorld:
    """Two tables of events; the time of a payment is its number among all, so that no two of a card are at the same time."""

    def __init__(
        self, folder: Path | str, seed: int = 0, *, options: dict[str, str] | None = None, mapped: bool = False
    ) -> None:
        self.lake: Lake = hw.connect(folder, storage_options=options)
        self.payments, self.rates = self.lake.table("payments"), self.lake.table("rates")
        rng = random.Random(seed)
        self.free = list(range(4_000))
        rng.shuffle(self.free)
        if not self.payments.exists():
            properties = {"delta.enableChangeDataFeed": "true"} if seed % 2 else {}
            if mapped:
                properties["delta.columnMapping.mode"] = "name"
            self.payments.create(PAYMENTS, data=self._payments(rng, 25), properties=properties)
            self.rates.create(RATES, data=self._rates(rng, 8), properties=properties)

    def _payments(self, rng: random.Random, count: int) -> pa.Table:
        rows = []
        for _ in range(count):
            number = self.free.pop()
            hot = rng.random() < 0.4
            rows.append(
                {
                    "id": number,
                    "card": "hot" if hot else rng.choice(_CARDS),
                    "ts": START + timedelta(seconds=number),
                    "amount": rng.choice([None, rng.randint(-50, 50)]),
                    "shop": rng.randint(1, 3),
                }
            )
        return pa.Table.from_pylist(rows, PAYMENTS)

    def _rates(self, rng: random.Random, count: int) -> pa.Table:
        rows: list[dict[str, Any]] = []
        for _ in range(count):
            at = START + timedelta(seconds=self.free.pop())
            rows.append({"card": rng.choice(["hot", "a", "b"]), "ts": at, "rate": rng.randint(1, 9)})
        return pa.Table.from_pylist(rows, RATES)

    def commit(self, rng: random.Random) -> None:
        """One random commit to a source: late rows, corrections, deletions, a new card, or nothing."""
        kind = rng.choice(["append", "append", "correct", "move", "delete", "nothing", "rate", "rate delete", "card"])
        ids = rng.sample(self.payments.to_arrow()["id"].to_pylist() or [0], 1) * 2 + [rng.randrange(4_000)]
        some = ", ".join(map(str, ids))
        if kind == "append":
            self.payments.append(self._payments(rng, rng.randint(1, 4)))
        elif kind == "correct":
            self.payments.update({"amount": "coalesce(amount, 0) + 1"}, where=f"id IN ({some})")
        elif kind == "move":
            card = rng.choice(["'a'", "'new'", "NULL"])
            self.payments.update({"card": card}, where=f"id IN ({some})")
        elif kind == "delete":
            self.payments.delete(f"id IN ({some})")
        elif kind == "nothing":
            self.payments.delete("id = -1")
        elif kind == "rate":
            self.rates.append(self._rates(rng, rng.randint(1, 2)))
        elif kind == "rate delete":
            self.rates.delete(f"rate = {rng.randint(1, 9)}")
        else:
            self.payments.update({"card": f"'card {rng.randint(1, 9)}'"}, where=f"card = '{rng.choice(['a', 'hot'])}'")

    def rewrite(self) -> None:
        """Commits that change files and no rows."""
        for table in (self.payments, self.rates):
            table.optimize()
            table.set_properties({"note": "again"})

    def head(self, *names: str) -> Frontier:
        """The newest versions."""
        return Frontier({name: self.lake.table(name).version for name in names or ("payments", "rates")})

    def replace(self, how: str, rng: random.Random) -> None:
        """Let ``payments``, or its column ``amount``, stand for something else; see `headwater.testing.Subject`."""
        payments, versions, rows = self.payments, self.payments.version + 1, self.payments.to_arrow()
        if how == "recreate":
            self.lake.catalog.drop("payments")  # as somebody would who deletes the folder
            payments.create(PAYMENTS, data=self._payments(rng, 10))
            while payments.version < versions + 2:
                payments.append(self._payments(rng, 1))
        elif how == "repartition":
            payments.create(PAYMENTS, data=rows.slice(1), mode="replace", partition_by=["shop"])
        else:
            assert how == "column"
            payments.drop_column("amount")
            payments.add_columns({"amount": pa.int64()})
            payments.update({"amount": "id"}, where="id % 2 = 0")

"""A small world for tests of online tables: a table with one row per key, or many in an order, that changes at random."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

import headwater as hw
from headwater.base.frontier import Frontier
from headwater.lakehouse import Lake
from headwater.serving.online import Online

__all__ = ["STOCK", "Stock"]

STOCK = pa.schema(
    [
        ("id", pa.int64()),
        ("code", pa.string()),
        ("seq", pa.int64()),
        ("name", pa.string()),
        ("price", pa.decimal128(12, 2)),
        ("weight", pa.float64()),
        ("open", pa.bool_()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("vector", pa.list_(pa.float32())),
        ("note", pa.string()),
    ]
)
_NAMES = [None, "", "ann", "Zoë", "日本", "a rather long name that does not fit into a slot", "o'neil\n", "🙂" * 9]
_CODES = ["", "x", "Ünïcode", "a key that is much longer than what fits into a record of the table"]


class Stock:
    """A table in a lake; with ``ordered`` a key has many rows, and their ``seq`` says which one counts."""

    replacements = ("column", "recreate", "repartition")

    def __init__(
        self,
        folder: Path | str,
        seed: int = 0,
        *,
        ordered: bool = False,
        parts: int = 0,
        options: dict[str, str] | None = None,
    ) -> None:
        self.lake: Lake = hw.connect(folder, storage_options=options)
        self.ordered, self.parts = ordered, parts
        self.table = self.lake.table("stock")
        self._seq = 0
        if not self.table.exists():
            rng = random.Random(seed)
            feed = {"delta.enableChangeDataFeed": "true"} if seed % 2 else {}
            properties = {**feed, "delta.columnMapping.mode": "name"}
            self.table.create(STOCK, data=self._rows(rng, range(20)), properties=properties)

    # -- what the contract asks for --------------------------------------------------------------------------------

    def open(self, name: str) -> Online:
        if name in self.lake.artefacts():
            return self.lake.online(name)
        order = "seq" if self.ordered else None
        return self.lake.online(name, "stock", key=["id", "code"], order_by=order, parts=self.parts)

    def commit(self, rng: random.Random) -> None:
        kind = rng.choice(["append", "append", "update", "delete", "nothing", "merge", "overwrite"])
        some = rng.sample(range(60), 6)
        listed = ", ".join(map(str, some))
        if kind == "append":
            have = set() if self.ordered else set(self.table.to_arrow()["id"].to_pylist())
            self.table.append(self._rows(rng, [n for n in some if n not in have]))
        elif kind == "update":
            name = rng.choice(["name", "'Zoë'", "NULL"])
            self.table.update({"price": "price + 1", "name": name}, where=f"id IN ({listed})")
        elif kind == "delete":
            self.table.delete(f"id IN ({listed})" if rng.random() < 0.8 else "seq % 3 = 0")
        elif kind == "nothing":
            self.table.set_properties({"note": str(rng.random())})
        elif kind == "merge":
            self.lake.write("given", self._rows(rng, some), mode="overwrite")
            self.lake.sql(
                "MERGE INTO stock t USING given s ON t.id = s.id AND t.seq = s.seq "
                "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
                if self.ordered
                else "MERGE INTO stock t USING given s ON t.id = s.id "
                "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
            )
        else:
            self.table.overwrite(self._rows(rng, some), where=f"id IN ({listed})")

    def rewrite(self) -> None:
        self.table.optimize()
        self.table.set_properties({"note": "again"})

    def replace(self, how: str, rng: random.Random) -> None:
        versions, rows = self.table.version + 1, self.table.to_arrow()
        if how == "recreate":
            self.lake.catalog.drop("stock")
            self.table.create(STOCK, data=self._rows(rng, range(70, 80)))
            while self.table.version < versions + 2:
                self.table.append(self._rows(rng, [100 + self.table.version]))
        elif how == "repartition":
            self.table.create(STOCK, data=rows.slice(1), mode="replace", partition_by=["open"])
        else:
            assert how == "column"
            self.table.drop_column("weight")
            self.table.add_columns({"weight": pa.float64()})
            self.table.update({"weight": "id"}, where="id % 2 = 0")

    def head(self) -> Frontier:
        return Frontier(stock=self.table.version)

    # -- rows ------------------------------------------------------------------------------------------------------

    def _rows(self, rng: random.Random, ids: Any) -> pa.Table:
        return pa.Table.from_pylist([self._row(rng, n) for n in ids], STOCK)

    def _row(self, rng: random.Random, number: int) -> dict[str, Any]:
        self._seq += 1
        return {
            "id": number,
            "code": _CODES[number % len(_CODES)],
            "seq": self._seq,
            "name": rng.choice(_NAMES),
            "price": rng.choice([None, Decimal(rng.randint(-5000, 5000)) / 100]),
            "weight": rng.choice([None, 0.0, -0.0, float("inf"), rng.random()]),
            "open": rng.choice([None, True, False]),
            "day": rng.choice([None, date(2024, 1, rng.randint(1, 28))]),
            "at": rng.choice([None, datetime(2024, 1, 1, tzinfo=UTC) + timedelta(microseconds=rng.randint(0, 10**9))]),
            "vector": rng.choice([None, [], [1.5], [0.25, None, -3.0]]),
            "note": rng.choice([None] * 9 + ["seldom there"]),
        }

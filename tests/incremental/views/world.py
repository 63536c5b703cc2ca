"""A small world for tests of views: tables that change at random, and queries over them with the answers by other means."""

from __future__ import annotations

import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

import headwater as hw
from headwater.base.frontier import Frontier
from headwater.lakehouse import Lake

__all__ = ["ORDERS", "QUERIES", "SHOPS", "World"]

ORDERS = pa.schema(
    [
        ("id", pa.int64()),
        ("shop", pa.int64()),
        ("name", pa.string()),
        ("amount", pa.decimal128(12, 2)),
        ("open", pa.bool_()),
        ("day", pa.date32()),
        ("tags", pa.list_(pa.string())),
    ]
)
SHOPS = pa.schema([("shop", pa.int64()), ("city", pa.string())])
_NAMES = [None, "", "ann", "bob", "Zoë", "日本", "a rather long name that does not fit into a slot", "o'neil\n", "🙂"]

QUERIES = {
    "projection": "SELECT name, open, tags FROM orders",
    "filter": "SELECT * FROM orders WHERE amount > 20 OR name IS NULL",
    "groups": "SELECT name, count(*) AS n, sum(amount) AS total, max(day) AS last FROM orders GROUP BY name",
    "whole": "SELECT count(*) AS n, min(name) AS first, sum(amount) FROM orders",
    "join": "SELECT city, id, amount FROM orders JOIN shops ON orders.shop = shops.shop",
    "outer": "SELECT o.id, s.city FROM orders o LEFT JOIN shops s ON o.shop = s.shop",
    "distinct": "SELECT DISTINCT shop, open FROM orders",
    "pattern": (
        "SELECT * FROM orders MATCH_RECOGNIZE (PARTITION BY shop ORDER BY day MEASURES count(*) AS n, FIRST(id) AS first, "
        "sum(B.amount) AS total, LAST(B.name) AS last PATTERN (A B+) DEFINE B AS amount >= A.amount OR name < A.name)"
    ),
    "union": "SELECT shop, name AS text FROM orders UNION ALL SELECT shop, city FROM shops",
}


def order(rng: random.Random, number: int) -> dict[str, Any]:
    """A row with nulls, texts of all kinds, and a fair chance of being there already."""
    from datetime import date

    return {
        "id": number,
        "shop": rng.choice([None, 1, 2, 3]),
        "name": rng.choice(_NAMES),
        "amount": rng.choice([None, Decimal(rng.randint(0, 5000)) / 100]),
        "open": rng.choice([None, True, False]),
        "day": rng.choice([None, date(2024, 1, rng.randint(1, 28))]),
        "tags": rng.choice([None, [], ["a"], ["a", None, "Ü"]]),
    }


class World:
    """Two tables in a lake."""

    def __init__(
        self, folder: Path | str, seed: int = 0, *, options: dict[str, str] | None = None, mapped: bool = False
    ) -> None:
        self.lake: Lake = hw.connect(folder, storage_options=options)
        rng = random.Random(seed)
        self.orders = self.lake.table("orders")
        self.shops = self.lake.table("shops")
        if not self.orders.exists():
            feed = {"delta.enableChangeDataFeed": "true"} if seed % 2 else {}
            if mapped:
                feed = {**feed, "delta.columnMapping.mode": "name"}
            rows = [order(rng, n) for n in range(20)]
            self.orders.create(ORDERS, data=pa.Table.from_pylist(rows, ORDERS), properties=feed)
            cities = [{"shop": n, "city": c} for n, c in ((1, "Ulm"), (2, "Rom"), (2, "Zürich"), (None, "nowhere"))]
            self.shops.create(SHOPS, data=pa.Table.from_pylist(cities, SHOPS))

    def commit(self, rng: random.Random) -> None:
        """One random commit to a source."""
        kind = rng.choice(
            ["append", "append", "copy", "update", "delete", "nothing", "shop", "shop delete", "overwrite"]
        )
        ids = rng.sample(range(60), 5)
        some = ", ".join(map(str, ids))
        if kind == "append":
            rows = [order(rng, rng.randint(0, 60)) for _ in range(rng.randint(1, 8))]
            self.orders.append(pa.Table.from_pylist(rows, ORDERS))
        elif kind == "copy":
            self.orders.append(self.orders.to_arrow().slice(0, 3))
        elif kind == "update":
            self.orders.update(
                {"amount": "amount + 1", "name": rng.choice(["name", "'Zoë'", "NULL"])}, where=f"id IN ({some})"
            )
        elif kind == "delete":
            self.orders.delete(f"id IN ({some})")
        elif kind == "nothing":
            self.orders.delete("id = -1")
        elif kind == "shop":
            self.shops.append(pa.Table.from_pylist([{"shop": rng.randint(1, 4), "city": rng.choice(_NAMES)}], SHOPS))
        elif kind == "shop delete":
            self.shops.delete(f"shop = {rng.randint(1, 4)}")
        else:
            rows = [order(rng, n) for n in ids]
            self.orders.overwrite(pa.Table.from_pylist(rows, ORDERS), where=f"id IN ({some})")

    def rewrite(self) -> None:
        """Commits that change files and no rows."""
        for table in (self.orders, self.shops):
            table.append(table.to_arrow().slice(0, 0))
            table.optimize()

    def head(self, *names: str) -> Frontier:
        """The newest versions."""
        return Frontier({name: self.lake.table(name).version for name in names or ("orders", "shops")})

    def replace(self, how: str, rng: random.Random) -> None:
        """Let ``orders``, or its column ``amount``, stand for something else; see `headwater.testing.Subject`."""
        orders, versions = self.orders, self.orders.version + 1
        rows = orders.to_arrow()
        if how == "recreate":
            self.lake.catalog.drop("orders")  # as somebody would who deletes the folder
            made = [order(rng, n) for n in range(70, 80)]
            orders.create(ORDERS, data=pa.Table.from_pylist(made, ORDERS))
            while orders.version < versions + 2:
                orders.append(pa.Table.from_pylist([order(rng, 80 + orders.version)], ORDERS))
        elif how == "repartition":
            orders.create(ORDERS, data=rows.slice(1), mode="replace", partition_by=["shop"])
        else:
            assert how == "column"
            orders.drop_column("amount")
            orders.add_columns({"amount": ORDERS.field("amount").type})
            orders.update({"amount": "id"}, where="id % 2 = 0")

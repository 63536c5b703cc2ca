"""A small world for tests of search indexes: a table of notes with fields of every kind, that changes at random."""

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
from headwater.search.index import SearchIndex

__all__ = ["FIELDS", "NOTES", "Notes", "random_text"]

NOTES = pa.schema(
    [
        ("id", pa.int64()),
        ("seq", pa.int64()),
        ("part", pa.string()),
        ("body", pa.string()),
        ("title", pa.string()),
        ("author", pa.string()),
        ("amount", pa.int64()),
        ("price", pa.decimal128(12, 2)),
        ("weight", pa.float64()),
        ("open", pa.bool_()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("raw", pa.binary()),
        ("host", pa.string()),
        ("place", pa.struct([("city", pa.string()), ("floor", pa.int32())])),
        ("tags", pa.list_(pa.string())),
        ("counts", pa.map_(pa.string(), pa.int64())),
    ]
)
FIELDS: dict[str, Any] = {
    "text": {"body": {}, "title": {"positions": False}},
    "keyword": ["author"],
    "numeric": ["amount", "price", "weight", "open", "day", "at"],
    "binary": ["raw"],
    "ip": ["host"],
    "json": ["place", "tags", "counts"],
}
WORDS = (
    "card lost refund Zürich straße STRASSE İstanbul ΣΊΣΥΦΟΣ 日本語 データ café cafe\u0301 naïve 100% a_b c++ o'neil \\path *star* "
    "what? the of 🙂 data metadata Data DATABASE re-fund x 42 3.14 K ﬁ ǆ"
).split(" ")
LONG = "w" * 70_000
_AUTHORS = [None, "", "ann", "Ann", "Zoë", "日本", "a*b", "a?b", "a b", "A%", "_", "\\", "new\nline"]
_FLOATS = [None, 0.0, -0.0, float("nan"), -float("nan"), float("inf"), float("-inf"), 1e300, 5e-324, 0.1, -2.5]
_WHOLE = [None, 0, -1, 7, 41, 42, 43, 2**53, 2**53 + 1, 2**63 - 1, -(2**63)]
_DAYS = [None, date(1, 1, 1), date(1969, 12, 31), date(2024, 2, 29), date(9999, 12, 31)]
_TIME_0 = datetime(2024, 1, 1, tzinfo=UTC)
_TIMES = [None, _TIME_0, _TIME_0 + timedelta(microseconds=1), _TIME_0 - timedelta(microseconds=1), datetime(1, 1, 2, tzinfo=UTC)]


def random_text(rng: random.Random) -> str | None:
    """Words in many scripts with punctuation between them; sometimes nothing, or a word that is too long for a term."""
    kind = rng.random()
    if kind < 0.08:
        return None
    if kind < 0.12:
        return rng.choice(["", " ", "...", "\u00a0"])
    words = [rng.choice(WORDS) for _ in range(rng.randint(1, 9))]
    if kind < 0.13:
        words.append(LONG)
    return "".join(word + rng.choice([" ", " ", " ", ", ", "-", "/", "\n", "\u00a0"]) for word in words)


class Notes:
    """A table of notes in a lake, and indexes on it."""

    replacements = ("column", "recreate", "repartition")

    def __init__(
        self,
        folder: Path | str,
        seed: int = 0,
        *,
        target_rows: int = 1_000_000,
        mapped: bool = True,
        partitioned: bool = False,
        options: dict[str, str] | None = None,
    ) -> None:
        self.lake: Lake = hw.connect(folder, storage_options=options)
        self.target_rows = target_rows
        self._seq = 0
        self.table = self.lake.table("notes")
        if not self.table.exists():
            properties = {"delta.columnMapping.mode": "name"} if mapped else {}
            split_by = ["part"] if partitioned else []
            rows = self.rows(random.Random(seed), range(12))
            self.table.create(NOTES, data=rows, properties=properties, partition_by=split_by)

    # -- what the contract asks for --------------------------------------------------------------------------------

    def open(self, name: str) -> SearchIndex:
        if name in self.lake.artefacts():
            return self.lake.index(name)
        return self.lake.index(name, "notes", target_rows=self.target_rows, **FIELDS)

    def commit(self, rng: random.Random) -> None:
        kind = rng.choice(["append", "append", "update", "delete", "nothing", "merge", "overwrite"])
        some = rng.sample(range(40), 5)
        listed = ", ".join(map(str, some))
        if kind == "append":
            self.table.append(self.rows(rng, some))
        elif kind == "update":
            body = rng.choice(["upper(body)", "'card refund'", "NULL", "concat(title, ' data')"])
            self.table.update({"body": body, "amount": "id"}, where=f"id IN ({listed})")
        elif kind == "delete":
            self.table.delete(f"id IN ({listed})")
        elif kind == "nothing":
            self.table.set_properties({"note": str(rng.random())})
        elif kind == "merge":
            self.lake.write("given", self.rows(rng, some), mode="overwrite")
            names = NOTES.names
            self.lake.sql(
                "MERGE INTO notes t USING given s ON t.id = s.id "
                f"WHEN MATCHED THEN UPDATE SET {', '.join(f'{c} = s.{c}' for c in names)} "
                f"WHEN NOT MATCHED THEN INSERT ({', '.join(names)}) VALUES ({', '.join(f's.{c}' for c in names)})"
            )
        else:
            self.table.overwrite(self.rows(rng, some), where=f"id IN ({listed})")

    def rewrite(self) -> None:
        self.table.optimize()
        self.table.set_properties({"note": "again"})

    def replace(self, how: str, rng: random.Random) -> None:
        versions, rows = self.table.version + 1, self.table.to_arrow()
        if how == "recreate":
            self.lake.catalog.drop("notes")
            self.table.create(NOTES, data=self.rows(rng, range(70, 75)))
            while self.table.version < versions + 2:
                self.table.append(self.rows(rng, [100 + self.table.version]))
        elif how == "repartition":
            self.table.create(NOTES, data=rows.slice(1), mode="replace", partition_by=["open"])
        else:
            assert how == "column"
            self.table.drop_column("title")
            self.table.add_columns({"title": pa.string()})
            self.table.update({"title": "'card of another kind'"}, where="id % 2 = 0")

    def head(self) -> Frontier:
        return Frontier(notes=self.table.version)

    # -- rows ------------------------------------------------------------------------------------------------------

    def rows(self, rng: random.Random, ids: Any) -> pa.Table:
        """Random notes of these numbers."""
        return pa.Table.from_pylist([self._row(rng, number) for number in ids], NOTES)

    def _row(self, rng: random.Random, number: int) -> dict[str, Any]:
        self._seq += 1
        return {
            "id": number,
            "seq": self._seq,
            "part": rng.choice(["a", "é/=%", None]),
            "body": random_text(rng),
            "title": random_text(rng),
            "author": rng.choice(_AUTHORS) if rng.random() < 0.97 else LONG,
            "amount": rng.choice(_WHOLE),
            "price": rng.choice([None, Decimal(rng.randint(-500, 500)) / 100, Decimal("9999999999.99")]),
            "weight": rng.choice(_FLOATS),
            "open": rng.choice([None, True, False]),
            "day": rng.choice(_DAYS),
            "at": rng.choice(_TIMES),
            "raw": rng.choice([None, b"", b"\x00\xff", b"abc"]) if rng.random() < 0.97 else b"r" * 70_000,
            "host": rng.choice([None, "10.0.0.1", "::1", "10.0.0.255", "no address"]),
            "place": rng.choice([None, {"city": rng.choice(WORDS), "floor": rng.choice([None, 1, -3])}]),
            "tags": rng.choice([None, [], ["red", "blue"], [rng.choice(WORDS), None]]),
            "counts": rng.choice([None, [], [("apples", 3), ("pears", None)]]),
        }

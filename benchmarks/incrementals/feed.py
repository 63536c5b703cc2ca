"""What all competitors are fed with: events with deletions among them, a table to join them with, and the right answer.

An event inserts a row (k, v), or deletes one that was inserted before; about 8% delete. The circuit is the same everywhere::

    SELECT g, count(*) AS n, sum(v) AS s, avg(v) AS a, min(v) AS mn, max(v) AS mx
    FROM events JOIN groups USING (k) WHERE v > 100 GROUP BY g

As text a key is ``k`` and digits up to a length, a group ``group-0001``, and some keys, values and groups are null.

Competitors in other processes read two files of 64-bit integers, least byte first: ``events.bin`` with records of id, k, v and
weight, ``groups.bin`` with records of k and g; the least integer is null. They write the sum of their output's changes as
lines ``g n s mn mx a``, where a null group is ``null``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["Feed", "read_answer"]

Ints = npt.NDArray[np.int64]

NULL = np.iinfo(np.int64).min
KEYS = 100_000
GROUPS = 1_000
ANSWER = pa.schema(
    [
        ("g", pa.string()),
        ("n", pa.int64()),
        ("s", pa.int64()),
        ("mn", pa.int64()),
        ("mx", pa.int64()),
        ("a", pa.float64()),
    ]
)
_DELETED = 0.08
_NULLS = 0.02


def _deletions(rng: np.random.Generator, count: int, share: float) -> Ints:
    """For each event the position of the earlier one whose row it deletes, or -1 where it inserts one."""
    target = np.full(count, -1, dtype=np.int64)
    open_ = np.flatnonzero(rng.random(count) < share)
    inserts = np.ones(count, dtype=bool)
    inserts[open_] = False
    before = np.concatenate([[0], np.cumsum(inserts)])
    places = np.flatnonzero(inserts)
    open_ = open_[before[open_] > 0]
    for _ in range(6):  # two that chose the same row: the later one chooses again
        target[open_] = places[(rng.random(len(open_)) * before[open_]).astype(np.int64)]
        chosen = np.flatnonzero(target >= 0)
        first = np.unique(target[chosen], return_index=True)[1]
        again = np.ones(len(chosen), dtype=bool)
        again[first] = False
        open_ = chosen[again]
    target[open_] = -1
    return target


@dataclass(frozen=True)
class Feed:
    """Events and the table of groups; ``text`` is the length of keys as text, 0 if they are integers."""

    ids: Ints
    k: Ints
    v: Ints
    w: Ints
    groups: Ints
    text: int = 0

    @classmethod
    def make(cls, events: int, *, values: int = 1_000, text: int = 0, deleted: float = _DELETED, seed: int = 7) -> Feed:
        """``events`` of values below ``values``."""
        rng = np.random.default_rng(seed)
        k, v = rng.integers(0, KEYS, events), rng.integers(0, values, events)
        groups = np.arange(KEYS, dtype=np.int64) % GROUPS
        if text:
            k[rng.random(events) < _NULLS] = NULL
            v[rng.random(events) < _NULLS] = NULL
            groups[rng.random(KEYS) < _NULLS] = NULL
        target = _deletions(rng, events, deleted)
        gone = target >= 0
        ids = np.where(gone, target, np.arange(events))
        return cls(ids, k[ids], v[ids], np.where(gone, -1, 1), groups, text)

    def __len__(self) -> int:
        return len(self.k)

    @property
    def kind(self) -> str:
        return str(self.text) if self.text else "int"

    def write(self, folder: Path) -> tuple[Path, Path]:
        """The two files for other processes, in a folder for this feed alone."""
        folder.mkdir(parents=True, exist_ok=True)
        events, groups = folder / "events.bin", folder / "groups.bin"
        if not groups.exists():
            np.stack([self.ids, self.k, self.v, self.w], axis=1).astype("<i8").tofile(events)
            np.stack([np.arange(KEYS), self.groups], axis=1).astype("<i8").tofile(groups)
        return events, groups

    def head(self, events: int) -> Feed:
        """The same with the first events alone."""
        return replace(self, ids=self.ids[:events], k=self.k[:events], v=self.v[:events], w=self.w[:events])

    # -- Arrow -----------------------------------------------------------------------------------------------------

    @cached_property
    def _key_names(self) -> pa.Array:
        return pa.array([f"k{i:0{self.text - 1}d}" for i in range(KEYS)], pa.string())

    def _column(self, values: Ints, names: pa.Array | None) -> pa.Array:
        found = pa.array(values, pa.int64(), mask=values == NULL)
        return found if names is None else names.take(found)

    @property
    def schemas(self) -> tuple[pa.Schema, pa.Schema]:
        """Of events, and of groups."""
        if self.text:
            name = pa.string()
            return pa.schema([("k", name), ("v", pa.int64())]), pa.schema([("k", name), ("g", name)])
        whole = [pa.field(n, pa.int64(), nullable=False) for n in "kvg"]
        return pa.schema(whole[:2]), pa.schema([whole[0], whole[2]])

    def table(self) -> pa.Table:
        """The table of groups."""
        names = pa.array([f"group-{i:04d}" for i in range(GROUPS)]) if self.text else None
        keys = self._key_names if self.text else pa.array(np.arange(KEYS))
        return pa.Table.from_arrays([keys, self._column(self.groups, names)], schema=self.schemas[1])

    def events(self, start: int = 0, stop: int | None = None) -> pa.Table:
        """Events as rows with their weights, which are left out if nothing is ever deleted."""
        rows = slice(start, stop)
        k = self._column(self.k[rows], self._key_names if self.text else None)
        found = pa.Table.from_arrays([k, self._column(self.v[rows], None)], schema=self.schemas[0])
        if (self.w > 0).all():
            return found
        return found.append_column(pa.field("_weight", pa.int64(), nullable=False), pa.array(self.w[rows]))

    def batches(self, first: int, batch: int) -> list[pa.Table]:
        """The first events as one batch, which may be empty, and those after them in batches of a size."""
        rest = self.events(first)
        return [self.events(0, first), *(rest.slice(at, batch) for at in range(0, len(rest), batch))]

    # -- the answer ------------------------------------------------------------------------------------------------

    def answer(self) -> pa.Table:
        """What the sum of all changes has to be, by DuckDB from the sum of all events."""
        with duckdb.connect() as connection:
            events = self.events()
            if "_weight" not in events.schema.names:
                events = events.append_column("_weight", pa.array(self.w))
            connection.register("events", events)
            connection.register("groups", self.table())
            found = connection.sql(
                "WITH live AS (SELECT k, v, sum(_weight) AS w FROM events WHERE v > 100 GROUP BY ALL HAVING sum(_weight) <> 0) "
                "SELECT coalesce(g::VARCHAR, 'null') AS g, sum(w)::BIGINT AS n, sum(w * v)::BIGINT AS s, min(v) AS mn, "
                "max(v) AS mx, sum(w * v)::DOUBLE / sum(w)::DOUBLE AS a FROM live JOIN groups USING (k) GROUP BY g"
            ).to_arrow_table()
        return as_answer(found)


def as_answer(rows: pa.Table) -> pa.Table:
    """Rows of groups in one form: names as text, in their order."""
    g = pc.fill_null(rows["g"].cast(pa.string()), "null")
    rows = rows.set_column(rows.schema.get_field_index("g"), "g", g)
    return rows.select(ANSWER.names).cast(ANSWER).sort_by("g")


def read_answer(path: Path) -> pa.Table:
    """The answer that another process wrote."""
    columns: list[list[str]] = [[], [], [], [], [], []]
    for line in path.read_text().splitlines():
        for column, value in zip(columns, line.split(), strict=True):
            column.append(value)
    return as_answer(pa.table([pa.array(c, pa.string()) for c in columns], names=ANSWER.names))

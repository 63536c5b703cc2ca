"""Histories: a table whose definition changes at random, and a model that says what its rows are, were and became.

`History` moves a table and a brute-force model together. Besides rows, its steps change what the table is: it is
replaced with other columns, other partition columns or another column mapping; columns are added, dropped, renamed,
swapped and widened; and an older version is restored across all of that. The model keeps rows as values by column and
knows nothing of files. `rows_at` gives the rows of a version, and `difference` the exact change from one version to
another under the columns of the later one.

What a column is, the model decides as `headwater.lake.alignment` says: under column mapping by a token that a column
keeps for life, else by its name.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from headwater.base.change import ChangeBatch
from headwater.lake.table import Table

__all__ = ["Column", "History", "Version"]


def _wall_clock(text: str) -> datetime:
    return datetime.fromisoformat(text)


KEY = "k"
_NAMES = ["a", "b", "c", "x", "Y z"]
_TYPES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "int": (pa.int32(), [None, 0, 1, -7]),
    "long": (pa.int64(), [None, 0, 1, 2**40]),
    "float": (pa.float32(), [None, 0.5, -2.0]),
    "double": (pa.float64(), [None, 0.5, 1e300]),
    "string": (pa.string(), [None, "u", "é/=%", "v w"]),
    "date": (pa.date32(), [None, date(1969, 12, 31), date(2024, 2, 29)]),
    "time": (pa.timestamp("us"), [None, _wall_clock("2024-02-29"), _wall_clock("1969-12-31T23:59:59.000005")]),
    "decimal": (pa.decimal128(10, 2), [None, Decimal("1.50"), Decimal("-0.25")]),
    "wide": (pa.decimal128(14, 4), [None, Decimal("1.5000"), Decimal("0.1234")]),
    "struct": (pa.struct([("p", pa.int32()), ("q", pa.string())]), [None, {"p": 1, "q": "s"}, {"p": None, "q": None}]),
    "grown": (
        pa.struct([("q", pa.string()), ("p", pa.int32()), ("r", pa.int64())]),
        [None, {"p": 1, "q": "s", "r": 9}, {"p": 2, "q": None, "r": None}],
    ),
}
_WIDER = {"int": ["long", "double"], "float": ["double"], "date": ["time"], "decimal": ["wide"]}
_STEPS = [
    *["append"] * 4, *["delete", "update"] * 2, *["repartition"] * 3, "replace", "overwrite", "add", "drop",
    "drop and add",
    "rename", "swap", "widen", "restore", "restore", "optimize", "checkpoint",
]  # fmt: skip
Row = dict[str, Any]


@dataclass(frozen=True)
class Column:
    """A column of the model: its name, the token that it keeps for life under column mapping, and its type."""

    name: str
    token: str
    kind: str

    @property
    def type(self) -> pa.DataType:
        return _TYPES[self.kind][0]


@dataclass(frozen=True)
class Version:
    """What a table was at a version; rows hold their values by the names of that version's columns."""

    rows: tuple[Row, ...]
    columns: tuple[Column, ...]
    split_by: tuple[str, ...]
    mode: str

    @property
    def mapped(self) -> bool:
        return self.mode != "none"

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([(c.name, c.type) for c in self.columns])

    def was(self, column: Column, mapped: bool) -> Column | None:
        """The column here that a column of another version is."""
        if mapped:
            return next((c for c in self.columns if (c.token if self.mapped else c.name) == column.token), None)
        return next((c for c in self.columns if c.name.lower() == column.name.lower()), None)


class History:
    """A table, its model, and random steps for both.

    Parameters
    ----------
    table
        A table that does not exist yet.
    rng
        What the steps are drawn with.
    properties
        The table's properties, kept by every replacement.
    mode
        The column mapping to begin with: "none", "name" or "id".
    """

    def __init__(
        self, table: Table, rng: random.Random, *, properties: Mapping[str, str] | None = None, mode: str = "none"
    ) -> None:
        self.table, self.rng, self.properties = table, rng, dict(properties or {})
        self.versions: dict[int, Version] = {}
        self._tokens = 0
        columns = (Column(KEY, self._token(KEY, mode), "long"), *self._new_columns(2, mode, taken={KEY}))
        self._create(Version(self._rows(columns), columns, self._partitioning(columns), mode), mode_of_create="error")

    @property
    def now(self) -> Version:
        """What the table is."""
        return self.versions[max(self.versions)]

    # ------------------------------------------------------------------ steps

    def step(self, name: str | None = None) -> str:
        """One random step, or one of that name; gives its name."""
        name = name or self.rng.choice(_STEPS)
        getattr(self, "_" + name.replace(" ", "_"))()
        return name

    def _token(self, name: str, mode: str) -> str:
        self._tokens += 1
        return f"#{self._tokens}" if mode != "none" else name

    def _new_columns(self, count: int, mode: str, taken: set[str]) -> tuple[Column, ...]:
        names = [n for n in _NAMES if n not in taken and (mode != "none" or " " not in n)]
        chosen = self.rng.sample(names, min(count, len(names)))
        return tuple(Column(n, self._token(n, mode), self.rng.choice(sorted(_TYPES))) for n in chosen)

    def _partitioning(self, columns: Sequence[Column]) -> tuple[str, ...]:
        able = [c.name for c in columns if not pa.types.is_nested(c.type)]
        count = min(self.rng.choice([0, 0, 1, 1, 2]), len(columns) - 1)
        return tuple(self.rng.sample(able, min(count, len(able))))

    def _row(self, columns: Sequence[Column]) -> Row:
        drawn = {c.name: self.rng.choice(_TYPES[c.kind][1]) for c in columns}
        return {**drawn, KEY: self.rng.randint(0, 5)}

    def _rows(self, columns: Sequence[Column], most: int = 4) -> tuple[Row, ...]:
        return tuple(self._row(columns) for _ in range(self.rng.randint(0, most)))

    def _done(self, version: Version) -> None:
        now = self.table.version
        if now not in self.versions:  # some steps turn out to change nothing
            self.versions[now] = version

    def _create(self, wanted: Version, mode_of_create: str = "replace") -> None:
        mapping = {"delta.columnMapping.mode": wanted.mode} if wanted.mapped else {}
        self.table.create(
            wanted.schema,
            partition_by=wanted.split_by,
            properties={**self.properties, **mapping},
            mode=mode_of_create,  # type: ignore[arg-type]
            data=pa.Table.from_pylist(list(wanted.rows), wanted.schema),
        )
        self._done(wanted)

    def _append(self) -> None:
        new = self._rows(self.now.columns)
        self.table.append(pa.Table.from_pylist(list(new), self.now.schema))
        self._done(replace(self.now, rows=self.now.rows + new))

    def _delete(self) -> None:
        key = self.rng.randint(0, 5)
        self.table.delete(f"{KEY} = {key}")
        self._done(replace(self.now, rows=tuple(r for r in self.now.rows if r[KEY] != key)))

    def _update(self) -> None:
        key, now = self.rng.randint(0, 5), self.now
        self.table.update({KEY: f"{KEY} + 1"}, where=f"{KEY} = {key}")
        self._done(replace(now, rows=tuple({**r, KEY: key + 1} if r[KEY] == key else r for r in now.rows)))

    def _repartition(self) -> None:
        """The same rows, or others, partitioned otherwise."""
        now = self.now
        rows = now.rows if self.rng.random() < 0.5 else self._rows(now.columns)
        self._create(replace(now, rows=rows, split_by=self._partitioning(now.columns)))

    def _replace(self) -> None:
        now, mode = self.now, self.rng.choice(["none", "name", "id"])
        # Columns of the same name and type stay what they are, and others are new.
        named = tuple(
            c for c in now.columns if c.name == KEY or (self.rng.random() < 0.7 and not self._is_odd(c, mode))
        )
        kept = tuple(self._after_replace(c, now.mode, mode) for c in named)
        fresh = self._new_columns(2, mode, taken={c.name for c in kept})
        fresh = tuple(
            replace(c, token=self._after_replace(old, now.mode, mode).token)
            if (old := next((o for o in now.columns if o.name == c.name and o.kind == c.kind), None)) is not None
            else c
            for c in fresh
        )
        columns = kept + fresh
        self._create(Version(self._rows(columns), columns, self._partitioning(columns), mode))

    @staticmethod
    def _is_odd(column: Column, mode: str) -> bool:
        return mode == "none" and " " in column.name

    @staticmethod
    def _after_replace(column: Column, before: str, after: str) -> Column:
        """Without column mapping, before or after it, a column is its name."""
        return column if before != "none" and after != "none" else replace(column, token=column.name)

    def _overwrite(self) -> None:
        """Other rows with other columns, under the same partitioning and mapping."""
        now = self.now
        stay = tuple(c for c in now.columns if c.name in (KEY, *now.split_by) or self.rng.random() < 0.6)
        columns = stay + self._new_columns(1, now.mode, taken={c.name for c in now.columns})
        if len(columns) == len(now.split_by):
            return
        rows = self._rows(columns)
        data = pa.Table.from_pylist(list(rows), replace(now, columns=columns).schema)
        self.table.overwrite(data, schema_mode="replace")
        self._done(replace(now, rows=rows, columns=columns))

    def _add(self) -> None:
        now = self.now
        for column in self._new_columns(1, now.mode, taken={c.name for c in now.columns}):
            self.table.add_columns({column.name: column.type})
            rows = tuple({**r, column.name: None} for r in now.rows)
            self._done(replace(now, rows=rows, columns=(*now.columns, column)))

    def _free(self) -> list[Column]:
        """Columns that can be dropped."""
        now = self.now
        return [c for c in now.columns if now.mapped and c.name != KEY and c.name not in now.split_by]

    def _drop(self) -> Column | None:
        now, able = self.now, self._free()
        if not able or len(now.columns) - 1 <= len(now.split_by):
            return None
        gone = self.rng.choice(able)
        self.table.drop_column(gone.name)
        rows = tuple({n: v for n, v in r.items() if n != gone.name} for r in now.rows)
        self._done(replace(now, rows=rows, columns=tuple(c for c in now.columns if c is not gone)))
        return gone

    def _drop_and_add(self) -> None:
        gone = self._drop()
        if gone is not None:
            now, back = self.now, replace(gone, token=self._token(gone.name, self.now.mode))
            self.table.add_columns({back.name: back.type})
            rows = tuple({**r, back.name: None} for r in now.rows)
            self._done(replace(now, rows=rows, columns=(*now.columns, back)))

    def _renamed(self, old: str, new: str) -> None:
        now = self.now
        self.table.rename_column(old, new)
        columns = tuple(replace(c, name=new) if c.name == old else c for c in now.columns)
        rows = tuple({new if n == old else n: v for n, v in r.items()} for r in now.rows)
        self._done(Version(rows, columns, tuple(new if n == old else n for n in now.split_by), now.mode))

    def _rename(self) -> None:
        now = self.now
        able = [c.name for c in now.columns if now.mapped and c.name != KEY]
        free = [n for n in _NAMES if n not in able]
        if able and free:
            self._renamed(self.rng.choice(able), self.rng.choice(free))

    def _swap(self) -> None:
        """Two columns exchange their names."""
        able = [c.name for c in self.now.columns if self.now.mapped and c.name != KEY]
        if len(able) >= 2:
            first, second = self.rng.sample(able, 2)
            free = next(n for n in ("between", "beside") if n not in able)  # a restore may have brought one back
            self._renamed(first, free)
            self._renamed(second, first)
            self._renamed(free, second)

    def _widen(self) -> None:
        now = self.now
        able = [c for c in now.columns if c.kind in _WIDER and c.name not in now.split_by]
        if not able:
            return
        column = self.rng.choice(able)
        wider = replace(column, kind=self.rng.choice(_WIDER[column.kind]))
        self.table.widen_column(column.name, wider.type)
        rows = tuple({**r, column.name: _cast(r[column.name], column, wider)} for r in now.rows)
        self._done(replace(now, rows=rows, columns=tuple(wider if c is column else c for c in now.columns)))

    def _restore(self) -> None:
        version = self.rng.choice(sorted(self.versions))
        self.table.restore(version)
        self._done(self.versions[version])

    def _optimize(self) -> None:
        self.table.optimize()
        self._done(self.now)

    def _checkpoint(self) -> None:
        self.table.checkpoint()

    # ------------------------------------------------------------------ what must hold

    def rows_at(self, version: int) -> pa.Table:
        """The rows of a version."""
        then = self.versions[version]
        return pa.Table.from_pylist(list(then.rows), then.schema)

    def was(self, column: Column, until: int, after: int) -> Column | None:
        """The column of version ``after`` that a column of version ``until`` is, through changes of the mapping."""
        mapped = self.versions[until].mapped
        for version in range(until, after, -1) if mapped != self.versions[after].mapped else ():
            here, before = self.versions[version], self.versions[version - 1]
            if here.mapped == before.mapped:
                continue
            for one in (here, before):
                found = one.was(column, mapped)
                if found is None:
                    return None
                column, mapped = found, one.mapped
        return self.versions[after].was(column, mapped)

    def may_be_refused(self, after: int, until: int) -> bool:
        """Whether the change cannot be told under the columns of ``until``.

        A column had, on the way, a type whose values cannot all be read as the one it has then; or column mapping was
        given up; or a column that was dropped has been restored.
        """
        end = self.versions[until]
        if self.has_returned(after, until):
            return True
        for version in range(after, until):
            if self.versions[version].mapped and not self.versions[version + 1].mapped:
                return True
            for column in end.columns:
                was = self.was(column, until, version)
                if was is not None and was.kind != column.kind and column.kind not in _reachable(was.kind):
                    return True
        return False

    def has_returned(self, after: int, until: int) -> bool:
        """Whether a column of ``until`` that had been there before is missing at ``after`` or since."""
        for column in self.versions[until].columns:
            there = [self.was(column, until, version) is not None for version in range(until)]
            first = there.index(True) if True in there else until
            if not all(there[max(first, after) :]):
                return True
        return False

    def difference(self, after: int, until: int) -> ChangeBatch:
        """The change from one version to another, under the columns of the later one."""
        then, end = self.versions[after], self.versions[until]
        pairs = [(c, self.was(c, until, after)) for c in end.columns]
        old = [{c.name: None if w is None else _cast(r[w.name], w, c) for c, w in pairs} for r in then.rows]
        return ChangeBatch.diff(pa.Table.from_pylist(old, end.schema), self.rows_at(until))


def _reachable(kind: str) -> set[str]:
    found = set(_WIDER.get(kind, ()))
    return found | {k for f in found for k in _reachable(f)} | ({"grown"} if kind == "struct" else set())


def _cast(value: Any, was: Column, now: Column) -> Any:
    if value is None or was.kind == now.kind:
        return value
    if pa.types.is_struct(was.type):
        return {f.name: value.get(f.name) for f in now.type}
    return pa.scalar(value, was.type).cast(now.type).as_py()

"""Random histories of a table against a list of dicts: after each step every reader sees the model's rows.

The model is brute force and knows nothing of files. After each step the rows, the count and an older version are
compared, and the change since a random earlier version is applied to the rows of that version, which must give the rows
of now. Every few steps, and at the end, other implementations of Delta read the table too.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from hypothesis import Phase, given, note, settings
from hypothesis import strategies as st

import headwater as hw
from headwater.base.change import ChangeBatch
from headwater.lake.table import Table
from headwater.testing.oracles import assert_same_rows

Row = dict[str, Any]
Truth = bool | None

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("p", pa.string()),
        ("v", pa.float64()),
        ("s", pa.string()),
        ("d", pa.date32()),
        ("ts", pa.timestamp("us", "UTC")),
        ("n", pa.decimal128(20, 4)),
    ]
)
NOON = dt.datetime(2020, 2, 29, 12, tzinfo=dt.UTC)
POOLS: dict[str, list[Any]] = {
    "id": [None, 0, 1, 2, 3, 4, 5, 6, 7, -(2**63), 2**63 - 1],
    "p": [None, "a", "b c", "é/=%", "snow 雪"],
    "v": [None, 0.0, -0.0, 1.5, -2.5, float("nan"), float("inf"), 1e300, 5e-324],
    "s": [None, "", "x", "é", "e\u0301", "🜃", "long " * 12, "quote'd", "a\nb"],
    "d": [None, dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(2020, 2, 29), dt.date(9999, 12, 31)],
    "ts": [None, dt.datetime(1900, 1, 1, 0, 0, 0, 1, tzinfo=dt.UTC), NOON, NOON + dt.timedelta(microseconds=1)],
    "n": [None, Decimal("0.0000"), Decimal("1.5000"), Decimal("-9999999999999999.9999")],
}


def rows(*, max_size: int = 6) -> st.SearchStrategy[list[Row]]:
    return st.lists(st.fixed_dictionaries({k: st.sampled_from(v) for k, v in POOLS.items()}), max_size=max_size)


# ---- conditions: the SQL, and what it means ----------------------------------------------------------------


def _compare(column: str, test: Callable[[Any], bool]) -> Callable[[Row], Truth]:
    return lambda row: None if row[column] is None else test(row[column])


def _above(value: float, bound: float) -> bool:
    return value != value or value > bound  # NaN is greater than all numbers


CONDITIONS: dict[str, Callable[[Row], Truth]] = {
    "id > 3": _compare("id", lambda v: v > 3),
    "id = 2": _compare("id", lambda v: v == 2),
    "id IN (1, 5, 9223372036854775807)": _compare("id", lambda v: v in (1, 5, 2**63 - 1)),
    "id IS NULL": lambda r: r["id"] is None,
    "NOT (id > 3)": _compare("id", lambda v: not v > 3),
    "id % 2 = 0": _compare("id", lambda v: v % 2 == 0),
    "p = 'b c'": _compare("p", lambda v: v == "b c"),
    "p IS NULL": lambda r: r["p"] is None,
    "p >= 'b'": _compare("p", lambda v: v >= "b"),
    "v > 1": _compare("v", lambda v: _above(v, 1)),
    "v = 0": _compare("v", lambda v: v == 0),
    "v <= 1.5": _compare("v", lambda v: not _above(v, 1.5)),
    "s = 'é'": _compare("s", lambda v: v == "é"),
    "s LIKE 'long%'": _compare("s", lambda v: v.startswith("long")),
    "s > 'lon'": _compare("s", lambda v: v > "lon"),
    "d <= DATE '1970-01-01'": _compare("d", lambda v: v <= dt.date(1970, 1, 1)),
    "ts > TIMESTAMP '2020-02-29 12:00:00Z'": _compare("ts", lambda v: v > NOON),
    "n >= 1.5": _compare("n", lambda v: v >= Decimal("1.5")),
    "true": lambda r: True,
}


@st.composite
def conditions(draw: st.DrawFn) -> tuple[str, Callable[[Row], Truth]]:
    text = draw(st.sampled_from(sorted(CONDITIONS)))
    kind = draw(st.sampled_from(["", "", "AND", "OR"]))
    if not kind:
        return text, CONDITIONS[text]
    other = draw(st.sampled_from(sorted(CONDITIONS)))
    first, second = CONDITIONS[text], CONDITIONS[other]

    def both(row: Row) -> Truth:
        found = (first(row), second(row))
        decisive = kind == "OR"
        if decisive in found:
            return decisive
        return None if None in found else not decisive

    return f"({text}) {kind} ({other})", both


SETS: dict[str, tuple[dict[str, str], Callable[[Row], Row]]] = {
    "number": ({"v": "v + 1"}, lambda r: {"v": None if r["v"] is None else r["v"] + 1}),
    "id": (
        {"id": "CASE WHEN id > 0 THEN id - 1 ELSE id END"},
        lambda r: {"id": r["id"] - 1 if r["id"] is not None and r["id"] > 0 else r["id"]},
    ),
    "text": ({"s": "concat(s, '!')"}, lambda r: {"s": None if r["s"] is None else r["s"] + "!"}),
    "partition": ({"p": "'moved'"}, lambda r: {"p": "moved"}),
    "nulls": ({"n": "NULL", "d": "DATE '1969-12-31'"}, lambda r: {"n": None, "d": dt.date(1969, 12, 31)}),
}


# ---- the machine -------------------------------------------------------------------------------------------


class Machine:
    """A table and its model, moved together."""

    def __init__(self, table: Table, draw: Callable[[Any], Any], properties: dict[str, str]) -> None:
        self.table, self.draw, self.properties = table, draw, properties
        self.rows: list[Row] = []
        self.columns = list(SCHEMA.names)
        self.states: dict[int, tuple[list[Row], list[str]]] = {0: ([], self.columns)}

    def arrow(self, data: list[Row]) -> pa.Table:
        schema = self.table.schema
        return pa.Table.from_pylist([{n: r.get(n) for n in schema.names} for r in data], schema)

    # -- one method a step; each changes the table and the model

    def append(self) -> None:
        new = self.draw(rows())
        self.table.append(self.arrow(new))
        self.rows = self.rows + self.full(new)

    def full(self, data: list[Row]) -> list[Row]:
        return [{c: r.get(c) for c in self.columns} for r in data]

    def delete(self) -> None:
        text, meets = self.draw(conditions())
        self.table.delete(text)
        self.rows = [r for r in self.rows if not meets(r)]

    def update(self) -> None:
        text, meets = self.draw(conditions())
        assignments, change = SETS[self.draw(st.sampled_from(sorted(SETS)))]
        self.table.update(assignments, where=text)
        self.rows = [{**r, **change(r)} if meets(r) else r for r in self.rows]

    def overwrite(self) -> None:
        new = self.draw(rows())
        self.table.overwrite(self.arrow(new))
        self.rows = self.full(new)

    def overwrite_where(self) -> None:
        text, meets = self.draw(conditions())
        new = [r for r in self.draw(rows()) if meets(r)]
        self.table.overwrite(self.arrow(new), where=text)
        self.rows = [r for r in self.rows if not meets(r)] + self.full(new)

    def overwrite_dynamic(self) -> None:
        split_by = self.table.snapshot.partition_columns
        if not split_by:
            return
        new = self.draw(rows())
        self.table.overwrite(self.arrow(new), partitions="dynamic")
        touched = {tuple(r[c] for c in split_by) for r in new}
        self.rows = [r for r in self.rows if tuple(r[c] for c in split_by) not in touched] + self.full(new)

    def repartition(self) -> None:
        """The table is replaced by its own rows or others, partitioned otherwise."""
        new = self.rows if self.draw(st.booleans()) else self.full(self.draw(rows()))
        split_by = self.draw(st.sampled_from([[], ["p"], ["id"], ["d", "p"], ["ts"], ["n"]]))
        schema = self.table.schema
        self.table.create(
            schema, mode="replace", partition_by=split_by, properties=self.properties, data=self.arrow(new)
        )
        self.rows = new

    def merge(self) -> None:
        source = list({r["id"]: r for r in self.draw(rows())}.values())
        merge = self.table.merge(self.arrow(source), on="t.id = s.id")
        clauses: list[tuple[str, Callable[[Row, Row], Truth], Callable[[Row, Row], Row | None]]] = []

        def by_key(data: list[Row], key: Any) -> Row | None:
            return next((r for r in data if r["id"] == key and key is not None), None)

        kinds = st.sets(st.sampled_from(["update", "delete", "update all", "insert", "insert all", "gone", "stale"]))
        chosen = self.draw(kinds.filter(bool))
        if "delete" in chosen:
            merge.when_matched_delete(condition="s.v > 1")
            clauses.append(("matched", lambda t, s: CONDITIONS["v > 1"](s), lambda t, s: None))
        if "update" in chosen:
            merge.when_matched_update({"s": "concat(t.s, s.s)", "n": "s.n"}, condition="t.p = s.p")
            clauses.append(("matched", _same_p, lambda t, s: {**t, "s": _joined(t["s"], s["s"]), "n": s["n"]}))
        if "update all" in chosen:
            merge.when_matched_update_all()
            clauses.append(("matched", lambda t, s: True, lambda t, s: {**s}))
        if "insert" in chosen:
            merge.when_not_matched_insert({"id": "s.id", "p": "'in'", "v": "s.v"}, condition="s.s IS NOT NULL")
            clauses.append(
                ("new", lambda t, s: s["s"] is not None, lambda t, s: {"id": s["id"], "p": "in", "v": s["v"]})
            )
        if "insert all" in chosen:
            merge.when_not_matched_insert_all()
            clauses.append(("new", lambda t, s: True, lambda t, s: {**s}))
        if "gone" in chosen:
            merge.when_not_matched_by_source_delete(condition="t.v = 0")
            clauses.append(("old", lambda t, s: CONDITIONS["v = 0"](t), lambda t, s: None))
        if "stale" in chosen:
            merge.when_not_matched_by_source_update({"s": "'stale'"})
            clauses.append(("old", lambda t, s: True, lambda t, s: {**t, "s": "stale"}))
        merge.execute()

        def decide(kind: str, t: Row, s: Row, otherwise: Row | None) -> list[Row]:
            for when, meets, then in clauses:
                if when == kind and meets(t, s):
                    after = then(t, s)
                    return [] if after is None else [after]
            return [] if otherwise is None else [otherwise]

        after: list[Row] = []
        for row in self.rows:
            mate = by_key(source, row["id"])
            after += decide("old" if mate is None else "matched", row, mate or {}, row)
        for row in source:
            if by_key(self.rows, row["id"]) is None:
                after += decide("new", {}, row, None)
        self.rows = self.full(after)

    def optimize(self) -> None:
        before = self.table.version
        self.table.optimize()
        assert self.table.changes(after=before).is_empty

    def zorder(self) -> None:
        before = self.table.version
        self.table.optimize(zorder_by=self.draw(st.sampled_from([["id"], ["v", "s"], ["ts", "d", "n"]])))
        assert self.table.changes(after=before).is_empty

    def restore(self) -> None:
        version = self.draw(st.sampled_from(sorted(self.states)))
        self.table.restore(version)
        self.rows, self.columns = self.states[version]

    def add_column(self) -> None:
        name = f"x{len(self.states)}"
        self.table.add_columns({name: pa.int32()})
        self.columns = [*self.columns, name]
        self.rows = self.full(self.rows)

    def merge_schema(self) -> None:
        name = f"m{len(self.states)}"
        new = [{**r, name: 7} for r in self.draw(rows())]
        schema = self.table.schema.append(pa.field(name, pa.int16()))
        data = pa.Table.from_pylist([{n: r.get(n) for n in schema.names} for r in new], schema)
        self.table.append(data, schema_mode="merge")
        self.columns = [*self.columns, name]
        self.rows = self.full(self.rows) + self.full(new)

    def checkpoint(self) -> None:
        self.table.checkpoint()

    def vacuum(self) -> None:
        dead = set(self.table.vacuum(retention_hours=0, dry_run=True, enforce_retention=False).files)
        assert not dead & {f.path for f in self.table.snapshot.files.values()}

    STEPS = (
        ["append"] * 3 + ["delete", "update", "merge"] * 2 + ["overwrite", "overwrite_where", "overwrite_dynamic"]
        + ["repartition", "optimize", "zorder", "restore", "add_column", "merge_schema", "checkpoint", "vacuum"]
    )  # fmt: skip

    def step(self) -> str:
        name: str = self.draw(st.sampled_from(self.STEPS))
        note(name)
        getattr(self, name)()
        now = self.table.version
        if now not in self.states:
            self.states[now] = (self.rows, self.columns)
        return name

    # -- what must hold

    def check(self, name: str) -> None:
        table, now = self.table, self.table.version
        assert table.schema.names == self.columns
        assert_same_rows(table.to_arrow(), self.arrow(self.rows), where=f"after {name}")
        assert table.count() == len(self.rows)
        version = self.draw(st.sampled_from(sorted(self.states)))
        old, columns = self.states[version]
        then = table.at(version=version)
        there = pa.Table.from_pylist([{c: r.get(c) for c in columns} for r in old], then.schema)
        assert_same_rows(then.to_arrow(), there, where=f"version {version} after {name}")
        change = table.changes(after=version)
        assert change.consolidate().num_rows == change.num_rows
        assert_same_rows(change.apply_to(self.arrow(old)), self.arrow(self.rows), where=f"{version}->{now} by {name}")
        middle = self.draw(st.sampled_from([v for v in sorted(self.states) if v >= version]))
        if self.states[middle][1] == self.columns:
            assert table.changes(after=version, until=middle) + table.changes(after=middle) == change

    def check_others(self, *, mapped: bool) -> None:
        expected = self.arrow(self.rows)
        theirs = DeltaTable(self.table.location)
        engine = QueryBuilder().register("t", theirs)
        read = pa.RecordBatchReader.from_stream(engine.execute("SELECT * FROM t")).read_all()
        assert_same_rows(_as(read, expected.schema), expected, where="deltalake")
        # polars finds no vector for a file whose path has to be encoded, whoever wrote it.
        odd = any(
            f.deletion_vector and ("%" in f.path or not f.path.isascii()) for f in self.table.snapshot.files.values()
        )
        if not mapped and not odd:
            frame = pl.scan_delta(self.table.location).collect()
            assert_same_rows(_as(frame.to_arrow(), expected.schema), expected, where="polars")


def _same_p(target: Row, source: Row) -> Truth:
    return None if target["p"] is None or source["p"] is None else target["p"] == source["p"]


def _joined(first: str | None, second: str | None) -> str | None:
    return None if first is None or second is None else first + second


def _as(table: pa.Table, schema: pa.Schema) -> pa.Table:
    return table.select(schema.names).cast(pa.schema([f.with_nullable(True) for f in schema]))


VARIANTS = {
    "vectors": {},
    "vectors-feed": {"delta.enableChangeDataFeed": "true"},
    "rewrite": {"delta.enableDeletionVectors": "false"},
    "rewrite-feed": {"delta.enableDeletionVectors": "false", "delta.enableChangeDataFeed": "true"},
    "mapped": {"delta.columnMapping.mode": "name"},
    "mapped-feed": {"delta.columnMapping.mode": "name", "delta.enableChangeDataFeed": "true"},
    "ids": {"delta.columnMapping.mode": "id", "delta.enableChangeDataFeed": "true"},
}


# Shrinking a history takes minutes: only the long profile does it.
PHASES = tuple(Phase) if settings().max_examples > 100 else (Phase.explicit, Phase.generate)


@pytest.mark.interop
@pytest.mark.parametrize("split_by", [[], ["p"]], ids=["plain", "partitioned"])
@pytest.mark.parametrize("variant", VARIANTS)
@settings(max_examples=max(2, settings().max_examples // 8), phases=PHASES)
@given(data=st.data())
def test_a_table_is_its_model(
    tmp_path_factory: pytest.TempPathFactory, variant: str, split_by: list[str], data: st.DataObject
) -> None:
    folder: Path = tmp_path_factory.mktemp("lake")
    with hw.settings.override(fsync=False, checkpoint_interval=4, row_group_rows=3):
        table = hw.connect(folder).table("t").create(SCHEMA, partition_by=split_by, properties=VARIANTS[variant])
        machine = Machine(table, data.draw, VARIANTS[variant])
        steps = data.draw(st.integers(3, 9))
        for number in range(steps):
            name = machine.step()
            machine.check(name)
            if number % 4 == 3 or number == steps - 1:
                machine.check_others(mapped="columnMapping" in str(VARIANTS[variant]))
        assert isinstance(table.changes(after=0), ChangeBatch)

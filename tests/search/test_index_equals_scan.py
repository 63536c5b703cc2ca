"""An index says what a scan says, after every step of random histories, at every version, however far behind it is.

Each step changes the table or the index: rows come, change and go, files are rewritten and vacuumed, versions are
restored, columns come and go; the index is refreshed, merged, vacuumed, left behind, half refreshed, damaged and opened by
another process. Then random queries are held against a plain matcher over the rows (`matcher`), and conditions against the
table's own scan. `make soak` makes 50,000 steps of it: 500 histories, where every day there are ten.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.object_servers import ON_SERVER
from tests.search.conftest import Place
from tests.search.matcher import matches
from tests.search.notes import Notes
from tests.search.questions import random_condition, random_query

import headwater as hw
from headwater.base.errors import HeadwaterError
from headwater.lake.find import condition
from headwater.search import kept_index, split_store
from headwater.search import reader as reader_module
from headwater.search.index import SearchIndex
from headwater.search.language import parse
from headwater.sql.expressions import evaluate
from headwater.testing.faults import FaultPlan, SimulatedCrash
from headwater.testing.object_server import ObjectServer
from headwater.testing.s3_server import S3Server

pytestmark = pytest.mark.long

STEPS = 20 if ON_SERVER else 100
ON_CLOUD = 12
HISTORIES = int(os.environ["HEADWATER_TEST_SEEDS"]) * 25 if "HEADWATER_TEST_SEEDS" in os.environ else 10
_ACTIONS = [
    *["change"] * 9, *["refresh"] * 4, *["crash"] * 2, "empty", "optimize", "optimize", "zorder", "table_vacuum", "restore", "add_column",
    "drop_column", "full", "merge", "index_vacuum", "other_process", "damage", "evict", "until",
]  # fmt: skip


class History:
    """A table and an index on it, that change at random."""

    def __init__(self, place: Place, seed: int) -> None:
        self.rng = random.Random(seed)
        shapes: dict[str, Any] = {
            "mapped": seed % 2 == 0,
            "partitioned": seed % 3 == 0,
            "target_rows": (1_000_000, 8, 1)[seed % 3],
        }
        self.notes = Notes(place.url, seed, options=place.options, **shapes)
        self.table, self.oldest, self.extra = self.notes.table, 0, 0
        self.index = self.notes.open("it")
        self.index.refresh()

    def step(self) -> str:
        action = self.rng.choice(_ACTIONS)
        getattr(self, "_" + action)()
        return action

    # -- the table -------------------------------------------------------------------------------------------------

    def _change(self) -> None:
        self.notes.commit(self.rng)

    def _empty(self) -> None:
        self.table.overwrite(
            self.notes.rows(self.rng, self.rng.sample(range(40), 6)).select(self._indexed()), schema_mode="merge"
        )

    def _indexed(self) -> list[str]:
        return [f.name for f in self.table.schema if not f.name.startswith("extra")]

    def _optimize(self) -> None:
        self.table.optimize()

    def _zorder(self) -> None:
        self.table.optimize(zorder_by=["id", "amount"])

    def _table_vacuum(self) -> None:
        self.table.vacuum(retention_hours=0, enforce_retention=False)
        self.oldest = self.table.version

    def _restore(self) -> None:
        self.table.restore(self.rng.randint(self.oldest, self.table.version))

    def _add_column(self) -> None:
        self.extra += 1
        self.table.add_columns({f"extra{self.extra}": pa.int32()})

    def _drop_column(self) -> None:
        extra = [f.name for f in self.table.schema if f.name.startswith("extra")]
        if extra and self.table.snapshot.mapping_mode != "none":
            self.table.drop_column(extra[0])
        elif extra:
            self.table.update({extra[0]: "id"})

    # -- the index -------------------------------------------------------------------------------------------------

    def _refresh(self) -> None:
        self.index.refresh()

    def _full(self) -> None:
        self.index.refresh(full=True)

    def _until(self) -> None:
        self.index.refresh(self.notes.head())

    def _merge(self) -> None:
        self.index.merge()

    def _index_vacuum(self) -> None:
        self.index.vacuum(retention_hours=self.rng.choice([0, 168]))

    def _crash(self) -> None:
        choices: list[Callable[[], object]] = [
            self.index.refresh,
            self.index.merge,
            lambda: self.index.vacuum(retention_hours=0),
        ]
        done = self.rng.choice(choices)
        try:
            with FaultPlan().crash_at("*", nth=self.rng.randint(1, 12)):
                done()
        except SimulatedCrash:
            pass
        self._other_process()

    def _other_process(self) -> None:
        """What a process keeps in memory is gone."""
        kept_index._readers.clear()
        split_store._covers.clear()
        reader_module._transient.clear()
        reader_module._term_lists.clear()
        self.index = self.notes.open("it")

    def _damage(self) -> None:
        """A file of a split is cut off, or missing, and no copy of it is in the cache."""
        store = self.index.store
        files = sorted(entry.path for entry in store.root.list(f"{store.path}/"))
        if files:
            file = self.rng.choice(files)
            whole = store.root.get(file)
            store.root.delete(file)
            if self.rng.random() >= 0.5:
                store.root.put(file, whole[: self.rng.randint(0, max(0, len(whole) - 1))])
            split_store.forget(file.rpartition("/")[2].partition(".")[0])
        self._other_process()

    def _evict(self) -> None:
        split_store.evict(0)

    # -- what has to hold ------------------------------------------------------------------------------------------

    def check(self) -> None:
        index, table = self.index, self.table
        if self.rng.random() < 0.2:
            version = self.rng.randint(self.oldest, table.version)
            index, table = index.at(version=version), table.at(version=version)
        whole = table.to_arrow(columns=[f.name for f in table.schema if not f.name.startswith("extra")])
        rows = whole.to_pylist()
        _check_query(index, rows, random_query(self.rng))
        _check_condition(index, whole, random_condition(self.rng), self.rng)
        if self.rng.random() < 0.3:
            _check_order(index, rows, self.rng)


def _numbers(rows: Any) -> list[int]:
    return sorted(row["seq"] for row in rows)


def _check_query(index: SearchIndex, rows: list[dict[str, Any]], query: str) -> None:
    fields = {f.column: f for f in index.meant.fields}
    node = parse(query)
    wanted = _numbers(row for row in rows if matches(node, row, fields, ["body", "title"]))
    found = index.search(query, columns=["seq"], k=None)
    assert _numbers(found) == wanted, query[:300]
    assert index.count(query) == found.total == len(wanted), query[:300]


def _check_condition(index: SearchIndex, rows: pa.Table, where: str, rng: random.Random) -> None:
    wanted = condition(index.snapshot, where)
    assert wanted is not None
    try:
        met = evaluate(wanted, rows)
    except HeadwaterError as e:
        with pytest.raises(type(e)):
            index.filter(where, columns=["seq"]).read_all()
        return
    right = sorted(rows.filter(pc.fill_null(met, False))["seq"].to_pylist())
    found = sorted(index.filter(where, columns=["seq"]).read_all()["seq"].to_pylist())
    assert found == right, f"{where[:300]}: {index.explain_filter(where)}"
    if rng.random() < 0.3:
        assert _numbers(index.search("*", columns=["seq"], k=None, filter=where)) == right, where[:300]
        assert index.count(filter=where) == len(right), where[:300]


def _check_order(index: SearchIndex, rows: list[dict[str, Any]], rng: random.Random) -> None:
    column = rng.choice(["author", "amount", "price", "weight", "open", "day", "at"])
    descending, k, offset = rng.random() < 0.5, rng.choice([None, 3, 10**12]), rng.choice([0, 0, 2])

    def key(value: Any) -> Any:
        return (str(value), 0.0) if value != value else ("", value)

    some = sorted((key(row[column]) for row in rows if row[column] is not None), reverse=descending)
    every = [*some, *[None] * (len(rows) - len(some))]
    wanted = every[offset : None if k is None else offset + k]
    found = index.search("*", columns=[column], k=k, offset=offset, order_by=column, descending=descending).to_pylist()
    assert [None if row[column] is None else key(row[column]) for row in found] == wanted, (
        f"by {column}, {descending=} {k=} {offset=}"
    )


@pytest.fixture(autouse=True)
def _quickly() -> Iterator[None]:
    with hw.settings.override(fsync=False, checkpoint_interval=10):
        yield


def _live(history: History, seed: int, count: int) -> None:
    steps: list[str] = []
    try:
        for _ in range(count):
            steps.append(history.step())
            history.check()
    except AssertionError as e:
        raise AssertionError(f"seed {seed}, after {steps}: {e}") from e
    history.index.refresh()
    assert history.index.verify().equal
    assert history.index.coverage == 1.0


@pytest.mark.parametrize("seed", range(HISTORIES))
def test_index_equals_scan(seed: int, place: Place) -> None:
    _live(History(place, seed), seed, STEPS)


def test_index_equals_scan_on_each_cloud(cloud: ObjectServer) -> None:
    _live(History(Place(cloud.url("search"), cloud.options), 4), 4, ON_CLOUD)


@pytest.mark.s3
def test_index_equals_scan_on_s3(s3: S3Server) -> None:
    _live(History(Place(s3.url("search"), s3.options), 5), 5, ON_CLOUD)

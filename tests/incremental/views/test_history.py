"""Random histories: a view's table is what its query gives, in every reader; and its own changes are exact.

Rows come with nulls, duplicates, texts of all kinds and nested values; commits insert, update, delete, overwrite and do nothing; refreshes
take one commit or several; now and then the process forgets everything, the view is packed up by itself or by somebody else, or its
state has another number of shards. HEADWATER_TEST_STEPS makes it longer.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from tests.incremental.views.world import QUERIES, World

from headwater.base.change import ChangeBatch
from headwater.incremental.views import View
from headwater.incremental.views import live as lives
from headwater.testing.oracles import assert_same_rows

STEPS = int(os.environ.get("HEADWATER_TEST_STEPS", "6"))


def forget(view: View) -> None:
    """As if this process had just begun."""
    lives.forget(view._environment.root, view.name)


def by_delta_rs(view: View) -> pa.Table:
    table = DeltaTable(view.table.location)
    return pa.table(QueryBuilder().register("t", table).execute("SELECT * FROM t").read_all())


@pytest.mark.parametrize("shape", sorted(QUERIES))
def test_a_view_is_its_query_whatever_happens(shape: str, tmp_path: Path) -> None:
    seed = sorted(QUERIES).index(shape)
    rng = random.Random(seed)
    world = World(tmp_path, seed)
    view = world.lake.view("v", QUERIES[shape], shards=rng.choice([1, 1, 3]))
    view.refresh()
    seen = view.to_arrow()
    for step in range(STEPS):
        for _ in range(rng.randint(0, 3)):
            world.commit(rng)
        chance = rng.random()
        if chance < 0.15:
            forget(view)
        elif chance < 0.25:
            view.optimize()
        elif chance < 0.35:
            view.table.optimize()
        elif chance < 0.4:
            world.rewrite()
        before = view.table.version
        report = view.refresh()
        assert report.mode in ("incremental", "noop"), f"step {step}: {report}"
        expected = view.recompute(world.head(*view.sources)).read_all()
        assert view.frontier == world.head(*view.sources)
        assert_same_rows(view.to_arrow(), expected, where=f"{shape}, step {step}")
        change = view.table.changes(before)
        assert_same_rows(change.apply_to(seen), expected, where=f"{shape}, the view's own changes in step {step}")
        assert change == ChangeBatch.diff(seen, expected), "changes are no more than what changed"
        assert report.rows_out == int(abs(change.weights).sum()), "the report counts the rows that changed"
        seen = expected
    assert view.verify().equal


def test_other_readers_see_the_same_rows(tmp_path: Path) -> None:
    rng = random.Random(5)
    world = World(tmp_path, 5)
    view = world.lake.view("v", "SELECT id, name, amount, open, day FROM orders WHERE amount IS NOT NULL")
    for step in range(12):
        world.commit(rng)
        view.refresh()
        if step % 3:
            continue
        expected = view.to_arrow()
        theirs = by_delta_rs(view)
        assert_same_rows(theirs.cast(expected.schema), expected, where=f"delta-rs, step {step}")
    files = [os.path.join(view.table.location, path) for path in view.table.snapshot.files]
    assert any(f.deletion_vector for f in view.table.snapshot.files.values()), "the rows that went were marked"
    con = duckdb.connect()
    assert con.sql(f"SELECT count(*) FROM read_parquet({files})").fetchall()[0][0] >= view.table.count()
    assert_same_rows(
        world.lake.sql("SELECT * FROM v").to_arrow().cast(view.to_arrow().schema), view.to_arrow(), where="through SQL"
    )


def test_the_feed_of_a_view_is_exact_for_others(tmp_path: Path) -> None:
    rng = random.Random(8)
    world = World(tmp_path, 8)
    view = world.lake.view("v", "SELECT id, name, shop FROM orders")
    view.refresh()
    start, seen = view.table.version, view.to_arrow()
    for _ in range(10):
        world.commit(rng)
        view.refresh()
    rows = pa.table(DeltaTable(view.table.location).load_cdf(start + 1).read_all())
    signs = [1 if kind in ("insert", "update_postimage") else -1 for kind in rows["_change_type"].to_pylist()]
    plain = rows.select(["id", "name", "shop"]).cast(seen.schema)
    theirs = ChangeBatch.from_table(plain.append_column("_weight", pa.array(signs, pa.int64())))
    assert_same_rows(theirs.apply_to(seen), view.to_arrow(), where="by delta-rs's reading of the feed")


def test_views_on_views(tmp_path: Path) -> None:
    rng = random.Random(11)
    world = World(tmp_path, 11)
    lake = world.lake
    spend = lake.view("spend", "SELECT name, sum(amount) AS total, count(*) AS n FROM orders GROUP BY name")
    big = lake.view("big", "SELECT n, count(*) AS names FROM spend WHERE total > 10 GROUP BY n")
    for step in range(10):
        world.commit(rng)
        spend.refresh()
        report = big.refresh()
        assert report.mode != "full" or step == 0, report
        assert_same_rows(big.to_arrow(), big.recompute(big.frontier), where=f"step {step}")
        assert big.frontier == world.head("spend")
        if step == 5:
            spend.optimize()
            assert big.refresh().rows_in == 0, "packing a view up is no change of it"


def test_nothing_and_much_in_one_row(tmp_path: Path) -> None:
    """A row that is there ten thousand times is deleted as any other."""
    world = World(tmp_path)
    table = world.lake.write("t", pa.table({"x": [1] * 10_000, "y": list(range(10_000))}))
    view = world.lake.view("v", "SELECT x FROM t")
    view.refresh()
    table.delete("y IN (3, 77, 9999)")
    assert view.refresh().rows_out == 3
    table.append(pa.table({"x": [1, 1, 2], "y": [-1, -2, -3]}))
    assert view.refresh().rows_out == 3
    table.delete("y >= 0")
    assert view.refresh().rows_out == 9_997
    assert sorted(view.to_arrow()["x"].to_pylist()) == [1, 1, 2]
    table.delete()
    view.refresh()
    assert view.to_arrow().num_rows == 0 and view.verify().equal

"""What a view publishes, read by others: its rows and its change feed, after refreshes with vectors of both kinds, packing up and checkpoints.

The readers are deltalake, polars, DuckDB's own extension for Delta where it can be installed, and delta-spark, which has the last word. Each has to
see the rows that a recomputation gives, and the feed of each version has to be exactly what that refresh changed.
"""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from tests.incremental.views.world import QUERIES, World
from tests.interop_driver import Driver

import headwater as hw
from headwater.derived import upkeep
from headwater.incremental.views import View, packing_up
from headwater.testing.oracles import assert_same_rows

pytestmark = pytest.mark.interop

NAMES = ["filter", "groups", "join", "whole"]
MAPPED = "whole"
"""It has a column without a proper name, so its table has column mapping: polars, and deltalake for the feed, do not read that yet and say so."""


@pytest.fixture(scope="module")
def views(tmp_path_factory: pytest.TempPathFactory) -> dict[str, View]:
    """Views after a history of refreshes, some of whose vectors lie in files, with files put together in between; the last test changes one."""
    world, rng = World(tmp_path_factory.mktemp("views"), 3), random.Random(8)
    found = {name: world.lake.view(f"v_{name}", QUERIES[name]) for name in NAMES}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEADWATER_FSYNC", "false")
        patch.setenv("HEADWATER_PROGRESS", "off")
        patch.setattr(packing_up, "_FEW", 5)
        for number in range(14):
            world.commit(rng)
            world.orders.update({"amount": f"{number}"}, where=f"id % 5 = {number % 5}")
            with hw.settings.override(small_vector_bytes=0 if number % 2 else 1024):
                for view in found.values():
                    view.refresh()
            upkeep.wait()
    for view in found.values():
        assert view.verify().equal
    operations = [h.operation for view in found.values() for h in view.table.history()]
    assert "OPTIMIZE" in operations
    assert any(f.deletion_vector for view in found.values() for f in view.table.snapshot.files.values())
    return found


def loose(rows: pa.Table, like: pa.Table) -> pa.Table:
    return rows.select(like.column_names).cast(like.schema)


def test_deltalake_and_polars_see_the_rows(views: dict[str, View]) -> None:
    pl = pytest.importorskip("polars")
    deltalake = pytest.importorskip("deltalake")
    for name, view in views.items():
        mine, where = view.to_arrow(), view.table.location
        builder = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(where))
        rows = pa.table(builder.execute("SELECT * FROM t").read_all())
        assert_same_rows(loose(rows, mine), mine, where=f"deltalake, {name}")
        if name == MAPPED:
            continue
        assert_same_rows(loose(pl.scan_delta(where).collect().to_arrow(), mine), mine, where=f"polars, {name}")


def test_deltalake_sees_the_feed(views: dict[str, View]) -> None:
    deltalake = pytest.importorskip("deltalake")
    for name, view in views.items():
        if name == MAPPED:
            continue
        rows = pa.table(deltalake.DeltaTable(view.table.location).load_cdf(1).read_all())
        check_feed(view, rows)


def test_duckdb_sees_the_rows_with_its_own_extension(views: dict[str, View]) -> None:
    import duckdb

    with duckdb.connect() as con:
        try:
            con.execute("INSTALL delta; LOAD delta")
        except duckdb.Error as e:
            pytest.skip(f"DuckDB's extension for Delta cannot be installed here: {str(e)[:80]}")
        for name, view in views.items():
            mine = view.to_arrow()
            rows = con.sql(f"SELECT * FROM delta_scan('{view.table.location}')").to_arrow_table()
            assert_same_rows(loose(rows, mine), mine, where=f"duckdb, {name}")


@pytest.mark.spark
def test_delta_spark_sees_the_rows_and_the_feed(views: dict[str, View], jvm: Driver) -> None:
    for name, view in views.items():
        mine, table = view.to_arrow(), view.table
        assert_same_rows(loose(jvm.read(table.location), mine), mine, where=f"delta-spark, {name}")
        found = jvm.query(f"SELECT * FROM table_changes_by_path('{table.location}', 1, {table.version})")
        check_feed(view, found)


@pytest.mark.spark
def test_delta_spark_optimizes_a_view_and_it_goes_on(views: dict[str, View], jvm: Driver) -> None:
    view = views["groups"]
    jvm.run(f"OPTIMIZE delta.`{view.table.location}`")
    orders = view._environment.table("orders")
    orders.update({"amount": "amount + 1"}, where="id % 3 = 0")
    assert view.refresh().mode == "incremental"
    assert view.verify().equal
    mine = view.to_arrow()
    assert_same_rows(loose(jvm.read(view.table.location), mine), mine, where="delta-spark")


def check_feed(view: View, feed: pa.Table) -> None:
    """What others see as the change of each version is what the version changed, and nothing where files were put together."""
    table = view.table
    versions = feed["_commit_version"].to_pylist()
    kinds = feed["_change_type"].to_pylist()
    weights = pa.array([-1 if k in ("delete", "update_preimage") else 1 for k in kinds], pa.int64())
    schema = pa.schema([*table.changes(table.version).schema, pa.field("_weight", pa.int64())])
    rows = feed.select(table.schema.names).append_column("_weight", weights).cast(schema)
    seen = 0
    for version in range(1, table.version + 1):
        mine = table.changes(version - 1, version)
        here = rows.filter(pa.array([v == version for v in versions]))
        assert hw.ChangeBatch.from_table(here).consolidate() == mine, f"{table.name} version {version}"
        seen += here.num_rows
    assert seen

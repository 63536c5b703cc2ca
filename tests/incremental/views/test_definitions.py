"""Definitions: the same query opens a view, another one replaces it, in one commit; and what is kept survives the process."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from tests.incremental.views.world import World

from headwater.base.errors import ExpressionError, HeadwaterError, InputError, NotFoundError
from headwater.incremental.views import definition
from headwater.incremental.views import live as lives
from headwater.incremental.views.declaration import define
from headwater.testing.faults import FaultPlan, SimulatedCrash

SQL = "SELECT name, count(*) AS n FROM orders GROUP BY name"
MORE = "SELECT name, count(*) AS n FROM orders WHERE shop IS NOT NULL GROUP BY name"
OTHER = "SELECT city, name, amount FROM orders JOIN shops ON orders.shop = shops.shop"


def test_the_same_definition_opens_it(tmp_path: Path) -> None:
    world = World(tmp_path)
    view = world.lake.view("v", SQL)
    view.refresh()
    version = view.table.version
    again = world.lake.view("V", SQL)
    assert again.name == "v" and again.definition == SQL and again.table.version == version
    assert world.lake.views() == ["v"]
    assert world.lake.view("v").sources == ("orders",)


def test_another_definition_publishes_the_difference(tmp_path: Path) -> None:
    world = World(tmp_path)
    view = world.lake.view("v", SQL)
    view.refresh()
    world.orders.append(world.orders.to_arrow().slice(0, 4))
    at, version = view.frontier, view.table.version
    again = world.lake.view("v", MORE)
    assert again.definition == MORE and again.table.version == version + 1, "one commit"
    assert again.frontier == at, "at the same versions of the sources"
    assert again.verify().equal
    change = again.table.changes(version)
    assert change.num_rows < again.to_arrow().num_rows * 2, "what is the same stays"
    assert again.refresh().mode == "incremental"
    assert again.verify().equal


def test_another_definition_may_have_other_columns_and_sources(tmp_path: Path) -> None:
    world = World(tmp_path)
    view = world.lake.view("v", SQL)
    view.refresh()
    world.orders.append(world.orders.to_arrow().slice(0, 4))
    view = world.lake.view("v", OTHER)
    assert view.to_arrow().schema.names == ["city", "name", "amount"]
    assert str(view.frontier) == "orders@0 shops@0"
    assert view.verify().equal
    assert view.refresh().mode == "incremental"
    assert view.verify().equal
    odd = world.lake.view("v", "SELECT count(*), sum(amount) FROM orders")
    assert odd.to_arrow().schema.names == ["count(1)", "sum(amount)"]
    world.orders.delete("id = 1")
    odd.refresh()
    assert odd.verify().equal


def test_a_view_that_was_never_built_may_be_redefined(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.lake.view("v", SQL)
    view = world.lake.view("v", OTHER)
    assert not view.frontier and not view.built
    view.refresh()
    assert view.verify().equal


def test_a_crash_while_it_is_redefined_leaves_one_or_the_other(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.lake.view("v", SQL).refresh()
    with FaultPlan() as plan:
        world.lake.view("v", MORE)
    points, crashes = plan.reached, 0
    for number in range(0, len(points), 3):
        world.lake.view("v", SQL)
        crashing = FaultPlan().crash_at(points[number], nth=points[: number + 1].count(points[number]))
        with suppress(SimulatedCrash), crashing:
            world.lake.view("v", MORE)
        crashes += crashing.crashed_at is not None
        view = world.lake.view("v")
        assert view.definition in (SQL, MORE)
        assert view.verify().equal, points[number]
    assert crashes > 5


def test_state_is_found_again_with_other_shards(tmp_path: Path) -> None:
    world = World(tmp_path)
    view = world.lake.view("v", SQL, shards=1)
    view.refresh()
    for shards in (3, 2, 1):
        world.lake.view("v", SQL, shards=shards)
        lives.forget(view._environment.root, "v")
        world.orders.append(world.orders.to_arrow().slice(0, 3))
        assert view.refresh().mode == "incremental"
        assert view.verify().equal


def test_dropping(tmp_path: Path) -> None:
    world = World(tmp_path)
    view = world.lake.view("v", SQL)
    view.refresh()
    view.drop()
    assert world.lake.tables() == ["orders", "shops"] and not (tmp_path / "_headwater/views/v").exists()
    with pytest.raises(NotFoundError, match="no materialized view"):
        world.lake.view("v")
    again = world.lake.view("v", OTHER)
    again.refresh()
    assert again.verify().equal


def test_a_table_dropped_behind_its_back_and_made_again(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.lake.view("v", SQL).refresh()
    world.lake.catalog.drop("v")
    view = world.lake.view("v", SQL)
    assert not view.frontier
    view.refresh()
    world.orders.append(world.orders.to_arrow().slice(0, 3))
    assert view.refresh().mode == "incremental"
    assert view.verify().equal


def test_a_view_without_sources(tmp_path: Path) -> None:
    world = World(tmp_path)
    view = world.lake.view("v", "SELECT * FROM VALUES (1, 'a'), (2, NULL) AS t(n, s)")
    assert view.refresh().mode == "full"
    assert view.refresh().mode == "noop"
    assert view.to_arrow().num_rows == 2 and view.verify().equal


def test_what_cannot_be_maintained_is_refused_at_definition(tmp_path: Path) -> None:
    world = World(tmp_path)
    for sql in ("SELECT * FROM orders LIMIT 3", "SELECT id FROM orders VERSION AS OF 0", "SELECT nothing FROM orders"):
        with pytest.raises(HeadwaterError) as caught:
            world.lake.view("v", sql)
        assert caught.value.hint
        assert "v" not in world.lake
    view = world.lake.view("v", "SELECT * FROM orders LIMIT 3", policy="full")
    view.refresh()
    assert view.to_arrow().num_rows == 3 and view.verify().equal


def test_ties_are_broken_the_same_way_everywhere(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.orders.append(world.orders.to_arrow())
    view = world.lake.view("v", "SELECT shop, name, id FROM orders ORDER BY shop LIMIT 7")
    ranks = world.lake.view("r", "SELECT id, row_number() OVER (PARTITION BY shop ORDER BY open) AS place FROM orders")
    for number in range(3):
        view.refresh()
        ranks.refresh()
        assert view.verify().equal and ranks.verify().equal
        world.orders.delete(f"id = {number}")


def test_looking_at_it(tmp_path: Path) -> None:
    world = World(tmp_path)
    view = world.lake.view("v", SQL)
    assert "never built" in repr(view) and "aggregate" in view.explain() and "<svg" in view.graph().svg()
    assert view.schema == pa.schema([("name", pa.string()), ("n", pa.int64())])
    view.refresh()
    assert "orders@0" in repr(view) and view.policy == "auto"
    assert "policy full" in world.lake.view("f", SQL, policy="full").explain()


JOIN = "SELECT city, id, amount FROM orders JOIN shops ON orders.shop = shops.shop"


@pytest.mark.parametrize(
    ("old", "new", "read"),
    [
        (JOIN, JOIN.replace("city, id", "upper(city) AS city, id + 1 AS id"), "nothing"),
        (JOIN, f"{JOIN} WHERE amount > 20", "orders"),
        (
            JOIN,
            "SELECT city, sum(amount) AS total FROM orders JOIN shops ON orders.shop = shops.shop GROUP BY city",
            "",
        ),
        (f"{JOIN} WHERE city <> 'Rom'", JOIN, "something"),
        (JOIN, f"{JOIN} UNION ALL SELECT 'none', id, amount FROM orders WHERE shop IS NULL", "orders"),
        (JOIN, SQL, "orders"),
    ],
)
def test_unchanged_parts_keep_their_state(old: str, new: str, read: str, tmp_path: Path) -> None:
    world = World(tmp_path, 4)
    view = world.lake.view("v", old)
    view.refresh()
    world.orders.append(world.orders.to_arrow().slice(0, 4))
    view.refresh()
    lives.forget(view._environment.root, "v")
    report = view.redefine(new)
    assert report is not None and report.mode == "full"
    rows = {"nothing": 0, "orders": world.orders.count()}.get(read)
    assert rows is None or report.rows_in == rows, "only what is new is read"
    assert view.verify().equal
    for number in range(4):
        world.orders.update({"amount": f"{number} + 19", "shop": f"{number}"}, where=f"id = {number}")
        world.shops.append([{"shop": number, "city": "Rom"}])
        if number % 2:
            lives.forget(view._environment.root, "v")
        assert view.refresh().mode == "incremental"
        assert view.verify().equal


def test_the_same_text_is_opened_and_not_read_anew(tmp_path: Path) -> None:
    world = World(tmp_path)
    view = world.lake.view("v", "SELECT * FROM shops")
    view.refresh()
    world.shops.add_columns({"zip": pa.int32()})
    assert world.lake.view("v", "SELECT * FROM shops").schema.names == ["shop", "city"]
    world.lake.sql("CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT * FROM shops")
    assert world.lake.view("v").to_arrow().schema.names == ["shop", "city", "zip"]
    world.lake.sql("CREATE OR REPLACE TABLE shops AS SELECT 'x' AS shop, 'y' AS city, 3 AS zip")
    again = world.lake.view("v", "SELECT * FROM shops")
    again.refresh()
    assert again.to_pylist() == [{"shop": "x", "city": "y", "zip": 3}] and again.verify().equal


def test_where_our_reader_refuses_sparks_plan_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The plan that Spark made of a query is stored, and refreshing needs no Spark."""
    one = '{"class": "Literal", "num-children": 0, "value": "1", "dataType": "integer"}'
    alias = '{"class": "Alias", "num-children": 1, "name": "n", "exprId": 7}'
    project = f'{{"class": "Project", "num-children": 1, "projectList": [[{alias}, {one}]]}}'
    plan = f'{{"format": 1, "plan": [{project}, {{"class": "OneRowRelation", "num-children": 0}}]}}'
    world = World(tmp_path)

    def refuse(text: str, *_: object, **__: object) -> None:
        raise ExpressionError.refused(text, "such a query", "ask somebody else", 0)

    monkeypatch.setattr(definition, "parse_query", refuse)
    with pytest.raises(ExpressionError, match="such a query"):
        world.lake.view("v", "SELECT something strange")
    around = replace(world.lake.environment(), analyze=lambda _: plan)
    view = define("v", "SELECT something strange", around)
    assert define("v", "SELECT something strange", around).table.version == view.table.version
    again = world.lake.view("v")
    assert again.refresh().mode == "full" and again.to_pylist() == [{"n": 1}]
    assert again.verify().equal
    broken = replace(around, analyze=lambda _: "{}")
    with pytest.raises(ExpressionError, match="such a query"):
        define("w", "SELECT something strange", broken)


def test_nobody_changes_the_rows_of_a_view_by_hand(tmp_path: Path) -> None:
    world = World(tmp_path)
    view = world.lake.view("v", "SELECT shop, city FROM shops")
    view.refresh()
    table = world.lake.table("v")
    rows = view.to_arrow().slice(0, 1)
    schema = pa.schema([("shop", pa.int64())])
    attempts: list[Callable[[], object]] = [
        lambda: table.append(rows),
        lambda: table.overwrite(rows),
        lambda: table.write(rows),
        table.delete,
        lambda: table.update({"shop": "1"}),
        lambda: table.merge(rows, ["shop"]),
        lambda: table.restore(0),
        lambda: table.add_columns({"zip": pa.int32()}),
        lambda: table.create(schema, mode="replace"),
        lambda: world.lake.write("v", rows),
    ]
    before = table.version
    for attempt in attempts:
        with pytest.raises(InputError) as caught:
            attempt()
        assert caught.value.code == "E1603"
    assert table.version == before
    table.optimize()
    table.vacuum()
    assert view.verify().equal

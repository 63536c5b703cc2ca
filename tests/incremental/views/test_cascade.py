"""A refresh brings the views forward first that a view reads; what is left behind is said."""

from __future__ import annotations

import pickle
import random
from pathlib import Path
from typing import Any

import pytest

import headwater as hw
from headwater.base.frontier import Frontier
from headwater.derived.dependencies import dependants, upstream_first
from headwater.derived.reports import Behind
from headwater.lakehouse import Lake

ROWS = [{"id": 1, "k": 1}, {"id": 2, "k": 2}]


def diamond(folder: Path) -> tuple[Lake, Any]:
    """``top`` reads `left` and `right`, which read `t`."""
    lake = hw.connect(folder)
    t = lake.write("t", ROWS)
    lake.view("left", "SELECT id, k FROM t WHERE id > 0")
    lake.view("right", "SELECT k, count(*) AS n FROM t GROUP BY k")
    lake.view("top", "SELECT l.id, r.n FROM left l JOIN right r ON l.k = r.k")
    return lake, t


def names(report: Any) -> list[str]:
    return [one.name for one in report.upstream]


def test_upstream_views_are_built_and_refreshed_first(tmp_path: Path) -> None:
    lake, t = diamond(tmp_path)
    top = lake.view("top")
    first = top.refresh()
    assert first.mode == "full" and names(first) == ["left", "right"]
    t.append([{"id": 3, "k": 2}])
    then = top.refresh()
    assert (then.mode, names(then), {one.mode for one in then.upstream}) == (
        "incremental",
        ["left", "right"],
        {"incremental"},
    )
    assert sorted(top.to_arrow()["n"].to_pylist()) == [1, 2, 2]
    assert "first left: incremental: t@0 -> t@1" in str(then) and "first right: " in str(then)
    told: Any = then.as_dict()
    assert told["upstream"][0]["name"] == "left"
    again = top.refresh()
    assert (again.mode, names(again)) == ("noop", [])
    assert top.verify().equal and top.verify().behind == ()


def test_without_a_cascade_the_report_says_who_is_behind(tmp_path: Path) -> None:
    lake, t = diamond(tmp_path)
    top = lake.view("top")
    top.refresh()
    t.append(ROWS)
    t.append(ROWS)
    lake.view("right").refresh()
    report = top.refresh(cascade=False)
    assert report.mode == "incremental" and report.behind == (Behind("left", {"t": 2}),)
    idle = top.refresh(cascade=False)
    assert idle.mode == "noop" and "behind" in idle.reason and "`left` is 2 versions behind `t`" in str(idle)
    checked = top.verify()
    assert checked.equal and checked.behind == (Behind("left", {"t": 2}),)
    assert "upstream is behind: `left` is 2 versions behind `t`" in str(checked)
    alone = top.plan(cascade=False)
    assert alone.mode == "noop" and "`left` is 2 versions behind `t`" in str(alone)
    plan = top.plan()
    assert plan.mode == "incremental" and list(plan.upstream) == ["left"]
    assert plan.upstream["left"].changes == {"t": 4} and "first left: incremental: 4 rows" in str(plan)


def test_a_chain_is_planned_and_refreshed_to_its_end(tmp_path: Path) -> None:
    lake = hw.connect(tmp_path)
    t = lake.write("t", ROWS)
    source = "t"
    for name in ("a", "b", "c", "d"):
        lake.view(name, f"SELECT id FROM {source}")
        source = name
    d = lake.view("d")
    assert list(d.plan().upstream) == ["a", "b", "c"]
    assert names(d.refresh()) == ["a", "b", "c"]
    t.append(ROWS)
    assert list(d.plan().upstream) == ["a", "b", "c"]
    assert d.upstream_behind() == (Behind("a", {"t": 1}),)
    assert names(d.refresh()) == ["a", "b", "c"] and d.to_arrow().num_rows == 4


def test_commits_that_only_rewrite_files_leave_nobody_behind(tmp_path: Path) -> None:
    lake, t = diamond(tmp_path)
    lake.view("top").refresh()
    t.optimize()
    assert lake.view("top").upstream_behind() == () and lake.view("left").lag() == {}


def test_until_holds_for_every_view(tmp_path: Path) -> None:
    lake, t = diamond(tmp_path)
    top = lake.view("top")
    top.refresh()
    for number in range(3, 7):
        t.append([{"id": number, "k": 2}])
    report = top.refresh(Frontier(t=2))
    assert names(report) == ["left", "right"]
    assert {str(lake.view(name).frontier) for name in ("left", "right")} == {"t@2"}
    assert top.to_arrow().num_rows == 4
    # A view that is further already is read as it was then.
    lake.view("left").refresh()
    assert str(lake.view("left").frontier) == "t@4"
    assert names(top.refresh(Frontier(t=3))) == ["right"]
    assert top.frontier["left"] == 2, "version 2 of `left` reflects t@2, and version 3 reflects t@4"
    assert top.to_arrow().num_rows == 4 and set(top.to_arrow()["n"].to_pylist()) == {1, 4}
    # A view that is named is read at that version, and is not refreshed.
    assert names(top.refresh(Frontier(left=3))) == []
    assert top.frontier == Frontier(left=3, right=3) and str(lake.view("right").frontier) == "t@3"
    # What names nothing that is read changes nothing.
    assert top.refresh(Frontier(other=7)).mode == "noop" and top.refresh(Frontier()).mode == "noop"
    assert names(top.refresh()) == ["right"] and top.to_arrow().num_rows == 6


def test_until_through_several_views(tmp_path: Path) -> None:
    lake = hw.connect(tmp_path)
    t = lake.write("t", ROWS)
    lake.view("a", "SELECT id FROM t")
    lake.view("b", "SELECT id FROM a")
    c = lake.view("c", "SELECT count(*) AS n FROM b")
    c.refresh()
    for _ in range(3):
        t.append(ROWS)
        lake.view("b").refresh()
    # `b` reflects t@3 by way of `a`; its version that reflects t@2 is found by way of `a` as well.
    assert c.refresh(Frontier(t=2)).mode == "incremental"
    assert c.to_pylist() == [{"n": 6}] and c.frontier == Frontier(b=3)
    assert c.refresh(Frontier(t=1)).mode == "noop", "it does not go back"
    other = lake.view("other", "SELECT count(*) AS n FROM b")
    other.refresh(Frontier(t=0))
    assert other.to_pylist() == [{"n": 2}]


def test_a_diamond_sees_one_version_of_a_table(tmp_path: Path) -> None:
    """A commit that comes while the first branch is refreshed is seen by neither branch."""
    from headwater.testing.faults import FaultPlan

    lake, t = diamond(tmp_path)
    top = lake.view("top")
    top.refresh()
    t.append([{"id": 3, "k": 1}])
    done: list[str] = []

    def commit(_point: str, view: str) -> None:
        if view == "left" and not done:
            done.append(view)
            t.append([{"id": 4, "k": 1}])

    with FaultPlan().call_at("view.commit.after", commit):
        top.refresh()
    assert done and {str(lake.view(name).frontier) for name in ("left", "right")} == {"t@1"}
    assert {name: lake.view(name).lag() for name in ("left", "right", "top")} == {
        "left": {"t": 1},
        "right": {"t": 1},
        "top": {},
    }


def test_a_failure_upstream_names_both_and_what_was_done(tmp_path: Path) -> None:
    lake, t = diamond(tmp_path)
    lake.view("deep", "SELECT count(*) AS n FROM top")
    lake.view("deep").refresh()
    t.append([{"id": 0, "k": 9}, {"id": 9, "k": 3}])
    lake.view("right", "SELECT k, count(*) AS n FROM t WHERE 10 div id > 0 GROUP BY k")
    with pytest.raises(hw.UpstreamError) as caught:
        lake.view("deep").refresh()
    error = caught.value
    assert (error.code, error.failed, error.asked, error.refreshed) == ("E1613", "right", "deep", ("left",))
    assert all(f"`{name}`" in error.message for name in ("deep", "right", "left")), error.message
    assert isinstance(error.__cause__, hw.HeadwaterError) and "cascade=False" in str(error.hint)
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.failed, copy.asked, copy.refreshed, str(copy)) == ("right", "deep", ("left",), str(error))
    assert str(lake.view("left").frontier) == "t@1" and str(lake.view("right").frontier) == "t@0"
    t.delete("id = 0")
    assert names(lake.view("deep").refresh()) == ["left", "right", "top"]


def test_a_failure_of_the_view_itself_names_what_was_done(tmp_path: Path) -> None:
    lake = hw.connect(tmp_path)
    t = lake.write("t", ROWS)
    lake.view("a", "SELECT id FROM t")
    b = lake.view("b", "SELECT 10 div id AS x FROM a")
    b.refresh()
    t.append([{"id": 0, "k": 0}])
    with pytest.raises(hw.HeadwaterError) as caught:
        b.refresh()
    assert not isinstance(caught.value, hw.UpstreamError)
    assert "refreshed and committed before: `a`" in str(caught.value.hint)
    assert str(lake.view("a").frontier) == "t@1"


def test_a_view_whose_function_is_missing_is_no_obstacle_where_it_is_current(tmp_path: Path) -> None:
    lake = hw.connect(tmp_path)
    t = lake.write("t", ROWS)
    lake.function("twice", lambda n: n * 2, arguments=["bigint"], returns="bigint")
    lake.view("a", "SELECT twice(id) AS id FROM t")
    lake.view("b", "SELECT count(*) AS n FROM a", refresh=True)
    other = hw.connect(tmp_path)  # as a process that does not have it
    assert other.view("b").refresh().mode == "noop"
    t.append(ROWS)
    with pytest.raises(hw.UpstreamError) as caught:
        other.view("b").refresh()
    assert caught.value.failed == "a" and isinstance(caught.value.__cause__, hw.NotFoundError)
    assert other.view("b").refresh(cascade=False).behind == (Behind("a", {"t": 1}),)


def test_an_attached_view_of_another_lake_is_a_table(tmp_path: Path) -> None:
    far = hw.connect(tmp_path / "far")
    t = far.write("t", ROWS)
    far.view("v", "SELECT id FROM t", refresh=True)
    near = hw.connect(tmp_path / "near")
    near.attach("v", str(tmp_path / "far" / "v"))
    w = near.view("w", "SELECT count(*) AS n FROM v", refresh=True)
    t.append(ROWS)
    report = w.refresh()
    assert (report.mode, report.upstream, report.behind, w.upstream_behind()) == ("noop", (), (), ())
    assert near.tables() == ["v"] and near.views() == ["w"]


def test_sql_cascades_and_may_be_told_not_to(tmp_path: Path) -> None:
    lake, t = diamond(tmp_path)
    lake.sql("REFRESH MATERIALIZED VIEW top")
    t.append([{"id": 3, "k": 2}])
    alone = lake.sql("REFRESH MATERIALIZED VIEW top RESTRICT").to_pylist()
    assert [row["mode"] for row in alone] == ["noop"] and "`left` is 1 version behind `t`" in alone[0]["reason"]
    rows = lake.sql("REFRESH MATERIALIZED VIEW top").to_pylist()
    assert [row["view"] for row in rows] == ["top", "left", "right"]
    assert lake.sql("REFRESH MATERIALIZED VIEW top FULL CASCADE").to_pylist()[0]["mode"] == "full"


@pytest.mark.long
def test_random_graphs_of_views_equal_their_queries(tmp_path: Path) -> None:
    """Views over views, at random, refreshed at random: what the last refresh brought is what the queries give."""
    rng = random.Random(7)
    lake = hw.connect(tmp_path)
    tables = {name: lake.write(name, ROWS) for name in ("s", "t")}
    sql: dict[str, str] = {}
    for number in range(6):
        known = [*tables, *sql]
        one, other = rng.choice(known), rng.choice(known)
        queries = [
            f"SELECT id, k FROM {one} WHERE id > {number}",
            f"SELECT id, k FROM {one} UNION ALL SELECT id, k FROM {other}",
            f"SELECT max(id) AS id, k FROM {one} GROUP BY k",
        ]
        sql[f"v{number}"] = rng.choice(queries)
        lake.view(f"v{number}", sql[f"v{number}"])

    below = ", ".join(f"{name} AS ({query})" for name, query in sql.items())
    for step in range(8):
        rng.choice(list(tables.values())).append([{"id": 10 + step, "k": rng.randint(0, 3)}])
        name = rng.choice(list(sql))
        report = lake.view(name).refresh()
        order = [*names(report), name]
        assert len(set(order)) == len(order)
        got = sorted(lake.view(name).to_pylist(), key=str)
        want = sorted(lake.sql(f"WITH {below} SELECT * FROM {name}").to_pylist(), key=str)
        assert got == want, (step, name)


def test_orders_of_any_graph_are_right() -> None:
    rng = random.Random(3)
    for _ in range(200):
        size = rng.randint(1, 9)
        sources = {
            f"v{n}": sorted({rng.choice(["t", "s", *(f"v{m}" for m in range(n))]) for _ in range(rng.randint(0, 3))})
            for n in range(size)
        }
        asked = rng.sample(sorted(sources), rng.randint(1, size))
        order = upstream_first(asked, sources.get)
        assert len(order) == len(set(order)) and set(asked) <= set(order)
        for place, name in enumerate(order):
            assert {s for s in sources[name] if s in sources} <= set(order[:place])
        gone = dependants(["t"], sources)
        assert len(gone) == len(set(gone))
        left = {n: read for n, read in sources.items() if n not in gone}
        assert not any({"t", *gone} & set(read) for read in left.values())
        for place, name in enumerate(gone):
            assert not any(name in sources[later] for later in gone[place:])


def test_a_cycle_ends_the_walk() -> None:
    cycle = {"a": ["b"], "b": ["a", "t"]}
    assert sorted(upstream_first(["a"], cycle.get)) == ["a", "b"]
    assert sorted(dependants(["t"], cycle)) == ["a", "b"]


@pytest.mark.long
def test_a_long_chain_is_no_recursion() -> None:
    chain = {f"v{n}": [f"v{n - 1}"] for n in range(1, 5000)} | {"v0": ["t"]}
    assert len(upstream_first(["v4999"], chain.get)) == 5000 and len(dependants(["t"], chain)) == 5000


def test_progress_knows_how_much_there_is_to_read(tmp_path: Path) -> None:
    from headwater.base import events

    lake, t = diamond(tmp_path)
    seen: dict[str, list[tuple[int, int | None]]] = {}

    def note(event: events.Event) -> None:
        if event.kind == "end":
            seen.setdefault(event.task, []).append((event.done, event.total))

    with events.subscribe(note):
        lake.view("top").refresh()
        t.append([{"id": 3, "k": 2}])
        lake.view("top").refresh()
        lake.view("top").refresh()
    assert seen["refresh left"] == [(2, 2), (1, 1)] and seen["refresh right"] == [(2, 2), (1, 1)]
    assert seen["refresh top"] == [(4, 4), (3, 3)]

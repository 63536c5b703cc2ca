"""What views read is not dropped under them, and a source that is gone is named with the view that reads it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import headwater as hw
from headwater.lakehouse import Lake
from headwater.testing.faults import FaultPlan, SimulatedCrash

ROWS = [{"id": 1, "k": 1}, {"id": 2, "k": 2}]


def chain(folder: Path) -> Lake:
    """`c` reads `b`, which reads `a` and `t`; `a` reads `t`; `x` reads `s`."""
    lake = hw.connect(folder)
    lake.write("t", ROWS)
    lake.write("s", ROWS)
    lake.view("a", "SELECT id, k FROM t", refresh=True)
    lake.view("b", "SELECT a.id FROM a JOIN t ON a.id = t.id", refresh=True)
    lake.view("c", "SELECT count(*) AS n FROM b", refresh=True)
    lake.view("x", "SELECT count(*) AS n FROM s", refresh=True)
    return lake


def refused(lake: Lake, statement: str) -> hw.HeadwaterError:
    before = lake.catalog.names()
    with pytest.raises(hw.InputError) as caught:
        lake.sql(statement)
    assert lake.catalog.names() == before
    return caught.value


def test_what_is_read_is_not_dropped(tmp_path: Path) -> None:
    lake = chain(tmp_path)
    attempts: list[tuple[Callable[[], object], str]] = [
        (lambda: lake.drop("t"), "`a`, `b`, `c`"),
        (lambda: lake.drop_view("a"), "`b`, `c`"),
        (lambda: lake.view("b").drop(), "`c`"),
    ]
    for attempt, readers in attempts:
        with pytest.raises(hw.InputError) as caught:
            attempt()
        assert caught.value.code == "E1611" and readers in caught.value.message, caught.value.message
        assert "cascade=True" in str(caught.value.hint)
    error = refused(lake, "DROP TABLE t")
    assert error.code == "E1611" and "CASCADE" in str(error.hint) and error.position == 11
    assert refused(lake, "DROP MATERIALIZED VIEW IF EXISTS a RESTRICT").code == "E1611"
    assert lake.views() == ["a", "b", "c", "x"] and lake.tables() == ["s", "t"]
    assert lake.drop_view("c") == ["c"] and lake.drop_view("b") == ["b"]


def test_a_cascade_drops_readers_first(tmp_path: Path) -> None:
    lake = chain(tmp_path)
    assert lake.drop("t", cascade=True) == ["c", "b", "a", "t"]
    assert lake.views() == ["x"] and lake.tables() == ["s"]
    assert not (tmp_path / "_headwater" / "views" / "a").exists(), "its state goes with it"


def test_cascade_in_sql(tmp_path: Path) -> None:
    lake = chain(tmp_path)
    assert lake.sql("DROP MATERIALIZED VIEW b CASCADE").to_pylist() == [{"dropped": "c"}, {"dropped": "b"}]
    assert lake.sql("DROP TABLE IF EXISTS t CASCADE").to_pylist() == [{"dropped": "a"}, {"dropped": "t"}]
    assert lake.sql("DROP MATERIALIZED VIEW x CASCADE").to_pylist() == []
    assert lake.sql("DROP TABLE IF EXISTS t CASCADE").to_pylist() == []


def test_a_crash_in_a_cascade_leaves_views_with_their_sources(tmp_path: Path) -> None:
    lake = chain(tmp_path)
    crashes = 0
    while "t" in lake.tables():
        try:
            with FaultPlan().crash_at("lake.drop.before_delete", nth=4):
                hw.connect(tmp_path).drop("t", cascade=True)
        except SimulatedCrash:
            crashes += 1
        for name in lake.views():
            assert lake.view(name).refresh().mode == "noop"
    assert crashes > 2 and lake.views() == ["x"]


def test_detaching_what_is_read(tmp_path: Path) -> None:
    far = hw.connect(tmp_path / "far").write("t", ROWS)
    lake = hw.connect(tmp_path / "near")
    lake.attach("t", far.location)
    lake.view("v", "SELECT id FROM t", refresh=True)
    attempts: list[Callable[[], object]] = [lambda: lake.detach("t"), lambda: lake.drop("t")]
    for attempt in attempts:
        with pytest.raises(hw.InputError) as caught:
            attempt()
        assert caught.value.code == "E1611" and "`v`" in caught.value.message
    assert lake.detach("t", cascade=True) == ["v", "t"] and far.count() == 2
    with pytest.raises(hw.NotFoundError):
        lake.detach("t")


def test_a_missing_source_is_named_with_the_view(tmp_path: Path) -> None:
    lake = chain(tmp_path)
    lake.catalog.drop("s")  # as another tool would
    for attempt in (lake.view("x").refresh, lake.view("x").plan, lambda: lake.view("x").refresh(cascade=False)):
        with pytest.raises(hw.NotFoundError) as caught:
            attempt()
        assert caught.value.code == "E1612"
        assert "`x`" in caught.value.message and "`s`" in caught.value.message
    assert lake.view("x").lag() == {"s": None} and lake.view("x").to_pylist() == [{"n": 2}]
    lake.view("y", "SELECT n FROM x")
    with pytest.raises(hw.UpstreamError) as stopped:
        lake.view("y").refresh()
    assert (stopped.value.failed, stopped.value.asked) == ("x", "y") and "`s`" in stopped.value.message


def test_a_damaged_table_does_not_hinder_dropping(tmp_path: Path) -> None:
    lake = chain(tmp_path)
    lake.write("odd", ROWS)
    log = tmp_path / "odd" / "_delta_log"
    for path in log.iterdir():
        path.write_text("{")
    other = hw.connect(tmp_path)
    from headwater.lake import snapshot

    snapshot.forget(other.table("odd").storage)
    assert "odd" in other.tables()
    assert other.drop("odd") == ["odd"] and other.drop_view("c") == ["c"]

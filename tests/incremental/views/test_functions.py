"""Functions of the user's own in views: rows follow the sources, and only by the very function that the view was defined with."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.incremental.views.world import ORDERS, World

import headwater as hw
from headwater.base.errors import ExpressionError, HeadwaterError, InputError, NotFoundError
from headwater.incremental.views import live as lives
from headwater.incremental.views.record import ViewRecord
from headwater.lakehouse import Lake
from headwater.sql.functions import user

SQL = "SELECT initial(name) AS i, count(*) AS n, max(parity(id + 1)) AS p FROM orders WHERE parity(shop) IS NOT NULL GROUP BY 1"


def _initial(name: str | None) -> str | None:
    return None if name is None else name[:1].upper()


def _parity(numbers: pa.Array) -> pa.Array:
    return pc.subtract(numbers, pc.multiply(pc.divide(numbers, 2), 2))


def _register(lake: Lake) -> None:
    lake.function("initial", _initial, arguments=["string"], returns="string")
    lake.function("Parity", _parity, arguments=[pa.int64()], returns=pa.int64(), vectorised=True)


def _by_hand(rows: pa.Table) -> Counter[tuple[Any, ...]]:
    groups: dict[str | None, list[int]] = {}
    for row in rows.to_pylist():
        if row["shop"] is not None:
            groups.setdefault(_initial(row["name"]), []).append((row["id"] + 1) % 2)
    return Counter((i, len(odd), max(odd)) for i, odd in groups.items())


def _rows(view: Any) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(r.values()) for r in view.to_pylist())


def _restarted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """The lake, as another process finds it."""
    monkeypatch.setattr(user, "_known", {})
    lives.forget(hw.connect(folder).catalog.root, "v")
    return hw.connect(folder)


@pytest.mark.parametrize("shards", [1, 2])
def test_rows_follow_every_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shards: int) -> None:
    world = World(tmp_path, seed=shards)
    _register(world.lake)
    view = world.lake.view("v", SQL, policy="strict", shards=shards)
    assert view.refresh().mode == "full"
    rng, modes = random.Random(shards), Counter[str]()
    for step in range(12):
        world.commit(rng)
        if step == 6:
            world.lake = _restarted(tmp_path, monkeypatch)
            _register(world.lake)
            view = world.lake.view("V")
        modes[view.refresh().mode] += 1
        assert _rows(view) == _by_hand(world.orders.to_arrow())
    assert modes["full"] == 0 and modes["incremental"] > 5
    assert view.verify().equal


def test_a_function_that_fails_stops_the_refresh_and_changes_nothing(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.lake.function("fragile", lambda n: 10 // (n - 77), arguments=["bigint"], returns="bigint")
    view = world.lake.view("v", "SELECT id, fragile(id) AS x FROM orders")
    view.refresh()
    before, record = view.table.version, ViewRecord.of(view.table.snapshot)
    world.orders.append(pa.Table.from_pylist([{"id": 77}], ORDERS))
    for _ in range(2):
        with pytest.raises(HeadwaterError, match=r"fragile\(\) raised ZeroDivisionError for \(77\)"):
            view.refresh()
        assert (view.table.version, ViewRecord.of(view.table.snapshot)) == (before, record)
    world.orders.delete("id = 77")
    assert view.refresh().mode == "incremental"
    assert view.verify().equal and view.to_arrow().num_rows == world.orders.to_arrow().num_rows


def test_without_its_function_a_view_is_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(tmp_path)
    _register(world.lake)
    world.lake.view("v", SQL).refresh()
    lake = _restarted(tmp_path, monkeypatch)
    for attempt in (
        lambda: lake.view("v"),
        lambda: lake.view("v", SQL),
        lambda: lake.sql("REFRESH MATERIALIZED VIEW v"),
    ):
        with pytest.raises(NotFoundError, match=r"calls initial\(\)") as caught:
            attempt()
        assert caught.value.code == "E1606" and "lake.function('initial'" in str(caught.value.hint)
    assert lake.sql("SELECT count(*) FROM v").scalar() == lake.table("v").to_arrow().num_rows > 0
    _register(lake)
    assert lake.view("v").verify().equal


def test_another_function_is_not_taken_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(tmp_path)
    _register(world.lake)
    held = world.lake.view("v", SQL)
    held.refresh()
    rows = _rows(held)
    for lake in (world.lake, _restarted(tmp_path, monkeypatch)):
        _register(lake)
        lake.function("initial", lambda s: "?", arguments=["string"], returns="string")
        with pytest.raises(InputError, match=r"another function initial\(\)") as caught:
            lake.view("v")
        assert caught.value.code == "E1607"
        with pytest.raises(InputError, match="another function"):
            lake.sql("REFRESH MATERIALIZED VIEW v")
    asked: tuple[Callable[[], Any], ...] = (held.refresh, held.verify, held.plan, held.optimize, held.explain)
    for attempt in asked:
        with pytest.raises(InputError, match="another function"):
            attempt()
    assert held.definition == SQL and _rows_of(lake) == rows
    # Defining it again is how it gets the other function.
    view = lake.view("v", SQL)
    assert view.to_arrow().column("i").to_pylist() == ["?"] and view.verify().equal


def _rows_of(lake: Lake) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(r.values()) for r in lake.table("v").to_arrow().to_pylist())


def test_another_version_is_another_function(tmp_path: Path) -> None:
    lake = World(tmp_path).lake
    one = lake.function("f", _initial, arguments=["string"], returns="string")
    two = lake.function("f", _initial, arguments=["string"], returns="string", version="2")
    assert one.fingerprint != two.fingerprint


def test_two_lambdas_of_one_line_are_two_functions(tmp_path: Path) -> None:
    lake = World(tmp_path).lake
    pair = [(lambda x: x + 1), (lambda x: x - 1)]  # fmt: skip
    more = [lambda x: x + 1]
    one, two, same = (lake.function("f", f, arguments=["int"], returns="int").fingerprint for f in [*pair, *more])
    assert one != two and one == same


def test_it_can_be_dropped_without_its_function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(tmp_path)
    _register(world.lake)
    world.lake.view("v", SQL).refresh()
    world.lake.view("w", SQL)
    lake = _restarted(tmp_path, monkeypatch)
    lake.sql("DROP MATERIALIZED VIEW v")
    lake.drop_view("w")
    assert lake.views() == []
    lake.sql("DROP MATERIALIZED VIEW IF EXISTS v")
    with pytest.raises(NotFoundError):
        lake.drop_view("v")


def test_in_queries_and_statements(tmp_path: Path) -> None:
    world = World(tmp_path)
    lake = world.lake
    _register(lake)
    wanted = sorted(map(str, (_initial(n) for n in world.orders.to_arrow().column("name").to_pylist())))
    found = lake.sql("SELECT INITIAL(name) AS i FROM orders").to_pylist()
    assert sorted(str(r["i"]) for r in found) == wanted
    lake.sql("CREATE TABLE copied AS SELECT initial(name) AS i FROM orders")
    assert sorted(str(r["i"]) for r in lake.table("copied").to_arrow().to_pylist()) == wanted
    inner = "SELECT 1 FROM shops s WHERE initial(city) = 'U' AND s.shop = o.shop"
    lake.sql(f"CREATE MATERIALIZED VIEW v AS SELECT id FROM orders o WHERE EXISTS ({inner})")
    assert lake.view("v").verify().equal and lake.view("v")._stored.functions.keys() == {"initial"}


def test_other_engines_say_so(tmp_path: Path) -> None:
    lake = World(tmp_path).lake
    _register(lake)
    with pytest.raises(ExpressionError, match=r"initial\(\), a function in Python, on DataFusion") as caught:
        lake.sql("SELECT initial(name) FROM orders", engine="datafusion").to_pylist()
    assert 'engine="duckdb"' in str(caught.value.hint) and 'engine="spark"' not in str(caught.value.hint)


def test_one_that_throws_dice_is_refused_in_a_view(tmp_path: Path) -> None:
    lake = World(tmp_path).lake
    lake.function("dice", lambda: 4, arguments=[], returns="int", deterministic=False)
    assert lake.sql("SELECT dice()").scalar() == 4
    with pytest.raises(HeadwaterError, match=r"dice\(\) cannot be kept up to date"):
        lake.view("v", "SELECT id, dice() AS d FROM orders")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"name": "upper"}, "no function of Spark's"),
        ({"name": "session_window"}, "no function of Spark's"),
        ({"name": "a b"}, "letters"),
        ({"function": 3}, "a function"),
        ({"arguments": "string"}, "a list of types"),
        ({"arguments": [str]}, "types"),
        ({"arguments": ["strong"]}, "no type `strong`"),
        ({"returns": "string string"}, "a type ends before this"),
    ],
)
def test_what_is_no_function_is_refused(tmp_path: Path, changed: dict[str, Any], said: str) -> None:
    given: dict[str, Any] = {"name": "f", "function": _initial, "arguments": ["string"], "returns": "string", **changed}
    with pytest.raises(InputError, match=said):
        World(tmp_path).lake.function(given.pop("name"), given.pop("function"), **given)

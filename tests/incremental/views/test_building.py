"""State that is built behind rows which are published already: what plans say, what happens meanwhile, and processes that end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from tests.incremental.views.world import QUERIES, World
from tests.waiting import PATIENCE_S

import headwater as hw
from headwater.base import faults
from headwater.derived import upkeep
from headwater.incremental.views import View, building, costs
from headwater.incremental.views import live as lives
from headwater.incremental.views.record import ViewRecord
from headwater.testing import FaultPlan
from headwater.testing.oracles import assert_same_rows


@pytest.fixture(autouse=True)
def any_view_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(costs, "_BEHIND_ROWS", 1)
    monkeypatch.setattr(costs, "_BEHIND_SECONDS", -10.0)


@pytest.fixture
def nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is built in the background, as if the process ended right after each refresh."""
    monkeypatch.setattr(building, "soon", lambda *_: None)


class Gate:
    """Holds the background at a point until it is opened."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, point: str) -> None:
        self.reached, self.open = threading.Event(), threading.Event()
        tell = faults.point

        def held(name: str, detail: str = "") -> None:
            if name == point:
                self.reached.set()
                assert self.open.wait(PATIENCE_S)
            tell(name, detail)

        monkeypatch.setattr(faults, "point", held)

    def wait(self) -> None:
        assert self.reached.wait(PATIENCE_S)

    def release(self) -> None:
        self.open.set()
        assert upkeep.wait(PATIENCE_S)


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    """The builder has read the sources, and is not alone in the view yet."""
    gate = Gate(monkeypatch, "view.build.loaded")
    yield gate
    gate.open.set()
    upkeep.wait(PATIENCE_S)


def record_of(view: View) -> ViewRecord:
    return ViewRecord.of(view.table.snapshot)


def follows(world: World, view: View) -> None:
    """The view has state, from which changes are followed, and all of its rows can be deleted."""
    assert record_of(view).state is not None
    assert not record_of(view).owed
    world.orders.append([{"id": 1_000, "shop": 1, "name": "new"}])
    done = view.refresh()
    assert done.mode == "incremental", done
    assert view.verify().equal
    world.orders.delete("true")
    assert view.refresh().mode == "incremental"
    assert view.verify().equal


@pytest.mark.parametrize("name", [n for n in QUERIES if n not in ("projection", "filter", "union")])
def test_rows_come_first_and_state_behind_them(name: str, loaded: Gate, tmp_path: Path) -> None:
    world = World(tmp_path)
    view = world.lake.view("v", QUERIES[name])
    assert view.plan().way == "behind"
    done = view.refresh()
    assert done.mode == "full"
    loaded.wait()
    assert record_of(view).owed
    assert record_of(view).state is None
    assert view.verify().equal
    plan = view.plan()
    assert plan.mode == "noop" and "its state is being built" in plan.reason
    version = view.version
    loaded.release()
    assert view.version == version + 1
    assert view.plan().reason == "nothing has changed"
    follows(world, view)


@pytest.mark.parametrize("name", ["projection", "filter", "union"])
def test_a_view_without_state_does_not_read_its_sources_again(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path)
    view = world.lake.view("v", QUERIES[name])
    monkeypatch.setattr(building, "load_tables", None)
    view.refresh()
    assert upkeep.wait(PATIENCE_S)
    follows(world, view)


def test_a_view_without_state_that_has_floats_is_computed(loaded: Gate, tmp_path: Path) -> None:
    lake = hw.connect(tmp_path)
    table = lake.write("t", pa.table({"id": range(4), "v": [0.1, -0.0, float("nan"), None]}))
    view = lake.view("v", "SELECT id, v * 3 AS w, array(v) AS vs FROM t")
    view.refresh()
    loaded.wait()
    loaded.release()
    table.delete("id < 3")
    assert view.refresh().mode == "incremental"
    assert view.verify().equal


@pytest.mark.parametrize("policy", ["auto", "strict"])
def test_a_refresh_meanwhile_takes_a_query_and_state_catches_up(policy: str, loaded: Gate, tmp_path: Path) -> None:
    world = World(tmp_path)
    view = world.lake.view("v", QUERIES["groups"], policy=policy)  # type: ignore[arg-type]
    view.refresh()
    loaded.wait()
    world.orders.append([{"id": 500, "name": "ann", "amount": None}])
    world.orders.delete("name = 'bob'")
    plan = view.plan()
    assert plan.way == "behind" and "its state is being built: a query meanwhile" in plan.reason
    done = view.refresh()
    assert done.mode == "full" and "a query meanwhile" in done.reason
    assert view.verify().equal
    before = view.table.to_arrow()
    loaded.release()
    assert_same_rows(view.table.to_arrow(), before)
    follows(world, view)


@pytest.mark.usefixtures("nothing_behind")
def test_state_is_owed_until_it_is_built_though_nothing_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path)
    view = world.lake.view("v", QUERIES["join"])
    view.refresh()
    lives.forget(view._environment.root, view.name)  # as another process would find it
    assert record_of(view).owed
    monkeypatch.undo()
    assert view.refresh().mode == "noop"
    assert upkeep.wait(PATIENCE_S)
    follows(world, view)


@pytest.mark.parametrize("point", ["view.build.begin", "view.build.loaded", "view.build.saved", "view.commit.before"])
def test_a_build_that_fails_is_begun_again(point: str, tmp_path: Path) -> None:
    world = World(tmp_path)
    view = world.lake.view("v", QUERIES["groups"])
    gate = pytest.MonkeyPatch()
    gate.setattr(building, "soon", lambda *_: None)
    view.refresh()
    gate.undo()
    with FaultPlan() as plan:
        plan.raise_at(point)
        assert view.refresh().mode == "noop"
        assert upkeep.wait(PATIENCE_S)
    assert record_of(view).owed
    assert view.verify().equal
    assert view.refresh().mode == "noop"
    assert upkeep.wait(PATIENCE_S)
    follows(world, view)


def test_rows_that_differ_in_their_last_digits_are_those_of_the_circuit(loaded: Gate, tmp_path: Path) -> None:
    lake = hw.connect(tmp_path)
    values = [0.1, 1e16, -1e16, 0.2, 3e-5, 1e300, -1e300, float("nan")] * 3
    rows = pa.table({"k": [i % 4 for i in range(24)], "v": values, "id": range(24)})
    table = lake.write("t", rows)
    view = lake.view("v", "SELECT k, sum(v) AS s, avg(v) AS a FROM t GROUP BY k")
    view.refresh()
    loaded.wait()
    loaded.release()
    exact = hw.Circuit()
    exact.input("t", rows.schema).group_by("k").agg(s="sum(v)", a="avg(v)").output("v")
    expected = exact.step(t=rows)["v"].to_arrow().drop_columns("_weight").sort_by("k").to_pylist()
    assert repr(view.table.to_arrow().sort_by("k").to_pylist()) == repr(expected)
    table.delete("id < 20")
    assert view.refresh().mode == "incremental"
    table.delete("true")
    assert view.refresh().mode == "incremental"
    assert view.table.to_arrow().num_rows == 0


def test_a_view_is_dropped_meanwhile(loaded: Gate, tmp_path: Path) -> None:
    world = World(tmp_path)
    view = world.lake.view("v", QUERIES["groups"])
    view.refresh()
    loaded.wait()
    threading.Timer(0.05, loaded.open.set).start()
    view.drop()
    assert upkeep.wait(PATIENCE_S)
    assert not (tmp_path / "_headwater" / "views" / "v").exists()


def test_a_view_is_defined_anew_meanwhile(loaded: Gate, tmp_path: Path) -> None:
    world = World(tmp_path)
    view = world.lake.view("v", QUERIES["groups"])
    view.refresh()
    loaded.wait()
    view = world.lake.view("v", QUERIES["filter"])
    loaded.release()
    assert view.verify().equal
    follows(world, view)


def test_somebody_else_builds_it_first(loaded: Gate, tmp_path: Path) -> None:
    world = World(tmp_path)
    view = world.lake.view("v", QUERIES["groups"])
    view.refresh()
    loaded.wait()
    view.refresh(full=True)
    state, version = record_of(view).state, view.version
    assert state is not None
    loaded.release()
    assert (record_of(view).state, view.version) == (state, version)
    follows(world, view)


def test_files_of_the_state_are_swept_by_another_process(
    loaded: Gate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from headwater.incremental import partitions

    monkeypatch.setattr(partitions, "_FEW_ROWS", 4)
    monkeypatch.setattr(partitions, "is_narrowed", lambda _: False)
    world = World(tmp_path)
    view = world.lake.view("v2", QUERIES["join"])
    view.refresh()
    loaded.wait()
    swept = list((tmp_path / "_headwater" / "views" / "v2" / "runs").iterdir())
    assert swept
    for file in swept:
        file.unlink()
    loaded.release()
    follows(world, view)


_KILLED = """
import sys
import headwater as hw
from headwater.incremental.views import costs
from headwater.testing import FaultPlan
FaultPlan.from_env().__enter__()
costs._BEHIND_ROWS, costs._BEHIND_SECONDS = 1, -10.0
view = hw.connect(sys.argv[1]).view("v")
print(view.refresh().mode, flush=True)
"""


@pytest.mark.long
@pytest.mark.parametrize(
    "point", ["view.build.begin", "view.build.loaded", "view.build.saved", "view.commit.before:kill:2"]
)
def test_a_process_that_is_killed_leaves_rows_and_owes_state(point: str, tmp_path: Path) -> None:
    world = World(tmp_path)
    view = world.lake.view("v", QUERIES["groups"])
    plan = point if ":" in point else f"{point}:kill"
    done = subprocess.run(
        [sys.executable, "-c", _KILLED, str(tmp_path)],
        env={**os.environ, "HEADWATER_FAULTS": plan},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert record_of(view).owed
    assert view.verify().equal
    assert view.refresh().mode == "noop"
    assert upkeep.wait(PATIENCE_S)
    follows(world, view)

"""The profile of a refresh: rows, bytes, shuffle and state by stage and operator, held against files on the disk and against the other engine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.incremental.views.spark.conftest import on
from tests.incremental.views.world import QUERIES, World

import headwater as hw
from headwater.derived import upkeep
from headwater.incremental.circuit import durable
from headwater.incremental.dataflow.vertex import Figures
from headwater.incremental.manifest import Manifest
from headwater.incremental.views import View
from headwater.incremental.views import live as lives
from headwater.incremental.views.spark.places import here

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SPENT = "SELECT name, count(*) AS n, sum(amount) AS total FROM orders WHERE amount > 5 GROUP BY name"


def run_files(folder: Path) -> dict[str, int]:
    """The sizes of the run files of a view's state."""
    return {f.name: f.stat().st_size for f in (folder / "_headwater" / "views" / "v" / "runs").glob("*.run")}


def stages(view: View) -> list[dict[str, Any]]:
    return [one for one in view.profile().to_pylist() if one["operator"] is None]


def operators(view: View) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for one in view.profile().to_pylist():
        if one["operator"] is not None:
            key = f"{one['operator']} {one['detail']}"
            had = found.setdefault(key, dict.fromkeys(one, 0))
            found[key] = {k: had[k] + v if isinstance(v, int | float) else v for k, v in one.items()}
    return found


def forgotten(view: View) -> View:
    """The view as another process has it."""
    lives.forget(view._environment.root, view.name)
    return view


def total(works: list[dict[str, Any]], name: str) -> int:
    return sum(one[name] for one in works)


@pytest.mark.parametrize("shards", [1, 2])
@pytest.mark.parametrize("name", ["groups", "join", "outer"])
def test_state_that_tasks_read_and_write_is_that_on_the_disk(name: str, shards: int, tmp_path: Path) -> None:
    world = World(tmp_path)
    view = hw.connect(tmp_path).view("v", QUERIES[name])
    with here(), on("spark", 2):
        view.refresh()
        files = run_files(tmp_path)
        works = view.profile().to_pylist()
        assert total(stages(view), "state_bytes_written") == sum(files.values()) > 0
        assert total(stages(view), "state_bytes_read") == 0, "there was none"
        world.orders.delete("id < 9")
    with here(), on("spark", shards):
        view.refresh()
    read = total(stages(view), "state_bytes_read")
    assert 0 < read <= sum(files.values()) * len(stages(view))
    if len(stages(view)) == 1:
        assert read == sum(files.values()), "each file once, though two shards opened it"
    assert total(stages(view), "state_bytes_written") == sum(
        size for file, size in run_files(tmp_path).items() if file not in files
    )
    works = view.profile().to_pylist()
    whole = [one for one in works if one["operator"] is None]
    parts = [one for one in works if one["operator"] is not None]
    for column in ("bytes_in", "state_rows_read", "state_bytes_read", "state_rows_written", "state_bytes_written"):
        assert total(whole, column) == total(parts, column), column


def test_state_that_this_process_reads_and_writes_is_that_on_the_disk(tmp_path: Path) -> None:
    world = World(tmp_path)
    view = hw.connect(tmp_path).view("v", QUERIES["groups"])
    assert view.profile().num_rows == 0
    with on("local"):
        view.refresh()
        assert upkeep.wait(60)
        files = run_files(tmp_path)
        assert stages(view)[0]["state_bytes_written"] == sum(files.values()) > 0
        world.orders.delete("id < 9")
        forgotten(view).refresh()
        assert upkeep.wait(60)
        after = run_files(tmp_path)
        (whole,) = stages(view)
        assert whole["state_bytes_read"] == sum(files.values())
        assert whole["state_bytes_written"] == sum(size for file, size in after.items() if file not in files) > 0
        world.orders.delete("id < 11")
        view.refresh()
        assert stages(view)[0]["state_bytes_read"] == 0, "it is in memory"
    assert {one["engine"] for one in view.profile().to_pylist()} == {"local"}


@pytest.mark.parametrize("shards", [1, 3])
def test_both_engines_count_the_same_rows(shards: int, tmp_path: Path) -> None:
    world = World(tmp_path)
    view = hw.connect(tmp_path).view("v", SPENT)
    twin = hw.connect(tmp_path).view("twin", SPENT)
    for _ in range(2):
        with here(), on("spark", shards):
            view.refresh()
        with on("local"):
            twin.refresh()
        by_tasks, by_us = operators(view), operators(twin)
        assert {key for key in by_us if not key.startswith("publish")} <= set(by_tasks)
        for key, one in by_us.items():
            counted = [by_tasks[key][c] for c in ("rows_in", "rows_out", "bytes_in")]
            assert counted == [one[c] for c in ("rows_in", "rows_out", "bytes_in")], key
        world.orders.update({"amount": "amount + 1"}, where="id < 12")
    assert any(one["bytes_in"] > 0 for one in by_us.values())


def test_a_query_is_a_stage_without_operators(tmp_path: Path) -> None:
    World(tmp_path)
    view = hw.connect(tmp_path).view("v", QUERIES["groups"], policy="full")
    done = view.refresh()
    (one,) = view.profile().to_pylist()
    assert (one["stage"], one["operator"], one["rows_out"]) == ("in process", None, done.rows_out)
    assert one["bytes_out"] == sum(f.size for f in view.table.snapshot.files.values())


def test_figures_of_older_states_are_read() -> None:
    old = Manifest("m", 1, {}, {"figures": {"a": [1, 2, 3, 0.5]}})
    assert durable.figures_in(old) == {"a": Figures(1, 2, 3, 0.5)}
    done = {"a": Figures(1, 2, 3, 0.5, 7, 8), "b": Figures(2, 1, 1, 0.25), "idle": Figures()}
    new = Manifest("m", 1, {}, durable.facts_of(done))
    assert durable.figures_in(new) == {name: one for name, one in done.items() if name != "idle"}


@pytest.mark.long
def test_what_goes_through_the_shuffle_is_counted_and_drawn(tmp_path: Path, spark: SparkSession) -> None:
    world = World(tmp_path)
    lake = hw.connect(tmp_path, spark=spark)
    view = lake.view("v", QUERIES["join"])
    rows = 0
    for _ in range(2):
        with on("spark", 2):
            rows += view.refresh().rows_in
        works = view.profile().to_pylist()
        whole = [one for one in works if one["operator"] is None]
        assert [one["stage"] for one in whole] == view.jobs()["job"].to_pylist() == ["part 1 of 1", "publish"]
        for one in whole:
            parts = [p for p in works if p["stage"] == one["stage"] and p["operator"] is not None]
            assert one["shuffled_bytes"] == total(parts, "shuffled_bytes") > 0
        assert total(whole, "bytes_in") > 0
        world.orders.delete("id < 9")
    drawn = {node.label + " " + node.detail: node.metrics for node in forgotten(view).graph().nodes}
    orders, shops = drawn["source orders"], drawn["source shops"]
    assert orders is not None and shops is not None
    assert orders.rows_out + shops.rows_out == rows, "of both refreshes, from the saved state"
    assert orders.bytes_in > shops.bytes_in > 0
    assert sum(m.shuffled_bytes for m in drawn.values() if m is not None) > 0
    for heat, name in (("shuffle", "shuffled"), ("read", "read")):
        assert f">{name}<" in view.graph().svg(heat=heat)  # type: ignore[arg-type]
    assert view.jobs().num_rows == view.profile().num_rows == 0, "these are of another process"


def test_state_that_is_merged_beside_a_small_change_is_counted(tmp_path: Path) -> None:
    world = World(tmp_path)
    view = hw.connect(tmp_path).view("v", QUERIES["outer"], policy="strict")
    with here(), on("spark", 16):
        view.refresh()
    files = run_files(tmp_path)
    world.orders.delete("id < 9")
    with here(), on("spark", 1):
        view.refresh()
    whole, *parts = view.profile().to_pylist()
    assert (whole["stage"], view.jobs().num_rows) == ("whole circuit", 1)
    new = {file: size for file, size in run_files(tmp_path).items() if file not in files}
    assert any("-m" in file for file in new), "there were too many small ones"
    assert whole["state_bytes_written"] == total(parts, "state_bytes_written") == sum(new.values())
    assert whole["state_bytes_read"] == total(parts, "state_bytes_read") == sum(files.values()), "each file once"


def test_small_changes_are_one_job_each_and_leave_few_runs(tmp_path: Path) -> None:
    """What has to be merged is merged by the task of the next change, and by no job of its own."""
    world = World(tmp_path)
    view = hw.connect(tmp_path).view("v", QUERIES["join"], policy="strict")
    with here(), on("spark", 1):
        view.refresh()
        counts = []
        for number in range(20):
            world.orders.update({"amount": f"{number} + 0.5D"}, where="id < 5")
            view.refresh()
            assert [one["stage"] for one in stages(view)] == ["whole circuit"], number
            counts.append(len(run_files(tmp_path)))
    assert max(counts) < 2 * max(counts[:12]), "not a run more for each change"
    assert view.verify().equal

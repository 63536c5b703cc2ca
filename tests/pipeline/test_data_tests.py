"""Data tests of a project: what reads rows that break one keeps its last good rows, and catches up when they are mended."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.pipeline.test_project import CHAIN, project
from tests.waiting import PATIENCE_S

import headwater as hw
from headwater.cli import main
from headwater.pipeline.checks import Check, evaluate
from headwater.pipeline.run import Run
from headwater.testing.faults import FaultPlan, SimulatedCrash

Capture = pytest.CaptureFixture[str]
A = "-- tests:\n--   - unique: id\n--   - sql: {query: SELECT * FROM a WHERE x < 0, severity: warn, name: positive}\n"
TESTED = {**CHAIN, "views/a.sql": A + CHAIN["views/a.sql"], "views/e.sql": "SELECT count(*) AS n FROM t"}
BAD = {"id": 1, "k": "a", "x": 10.0}


def served(made: hw.Project) -> list[Any]:
    return made.lake.online("d").fetch(["a"]).to_pylist()


def modes(made: hw.Project) -> list[str]:
    return [one.mode for _, one in sorted(made.plan().items())]


def states(run: Run, names: str) -> list[str]:
    return [run[name].state for name in names]


@pytest.mark.long
def test_a_correction_breaks_a_test_and_heals(tmp_path: Path) -> None:
    made = project(tmp_path, TESTED)
    first = made.refresh()
    assert first.ok and set(first.checks) == {"unique_a_id", "positive"}
    assert made.plan().unmanaged == made.status().unmanaged == {}
    made.lake.table("t").append([BAD])

    run = made.refresh()
    assert not run.ok and run.failed == {}
    assert states(run, "abcde") == ["done", "blocked", "blocked", "blocked", "done"]
    assert run["d"].reason == "the test unique_a_id of a fails: {'id': 1, 'rows': 2}"
    assert run["b"].blocked_by == ("a",) and run.checks["unique_a_id"].mode == "incremental"
    assert served(made) == [{"s2": 3.0}]  # its last good rows
    assert "1 of 2 tests failed" in str(run)
    rows = [row for row in made.history("a").to_pylist() if row["kind"] == "test"]
    assert [(row["mode"], row["reason"]) for row in rows] == [("failed", "unique_a_id")]
    assert "[E1928]" in rows[0]["error"] and "'rows': 2" in rows[0]["error"]

    # Nothing has changed, and only some nodes are asked for: the rows are still bad.
    again = hw.Project.load(tmp_path).refresh("b")
    assert list(again) == ["b"] and again["b"].state == "blocked" and again.checks["unique_a_id"].mode == "noop"

    made.lake.table("t").delete("x = 10.0")
    made.lake.table("t").append([{**BAD, "id": 3}])
    healed = made.refresh()
    assert healed.ok and states(healed, "abcd") == ["done"] * 4
    assert served(made) == [{"s2": 23.0}]
    assert made.lake.verify().ok


def test_a_warning_is_only_reported(tmp_path: Path) -> None:
    made = project(tmp_path, TESTED)
    made.lake.table("t").append([{"id": 3, "k": "a", "x": -1.0}])
    run = made.refresh()
    assert run.ok and [one.check.name for one in run.broken] == ["positive"]
    assert served(made) == [{"s2": 1.0}]
    assert {row["mode"] for row in made.history("a").to_pylist() if row["kind"] == "test"} == {"warned"}


@pytest.mark.long
def test_a_test_of_a_source_and_of_two_nodes(tmp_path: Path) -> None:
    yaml = """\
name: shop
sources: {t: {}, other: {}}
tests:
  t: [{not_null: k}]
  a: [{relationships: {column: k, to: known, field: k, name: known_k}}]
  other: [{unique: id}]
"""
    hw.connect(tmp_path / "lake").write("other", [{"id": 1, "k": "a"}, {"id": 2, "k": "b"}])
    made = project(tmp_path, {**CHAIN, "headwater.yaml": yaml, "views/known.sql": "SELECT k FROM other"})
    t, other = made.lake.table("t"), made.lake.table("other")
    assert made.refresh().ok
    t.append([{"id": 3, "k": "c", "x": 1.0}])
    other.append([{"id": 3, "k": "c"}])
    assert made.refresh().ok  # the test of `a` waits for `known`, which `a` does not read
    t.append([{"id": 4, "k": "d", "x": 1.0}])
    run = made.refresh()
    assert [run[name].state for name in ("a", "b", "known")] == ["done", "blocked", "noop"]
    other.append([{"id": 4, "k": "d"}])
    assert made.refresh().ok
    t.append([{"id": 5, "k": None, "x": 1.0}])
    run = made.refresh()
    assert states(run, "abcd") == ["blocked"] * 4
    assert "not_null_t_k of t" in run["a"].reason
    other.append([{"id": 4, "k": "d"}])
    assert made.refresh()["known"].state == "blocked"


def test_a_process_dies_before_the_rest(tmp_path: Path) -> None:
    made = project(tmp_path, TESTED)
    assert made.refresh().ok
    made.lake.table("t").append([BAD])
    with FaultPlan() as plan:
        plan.crash_at("pipeline.check.evaluated", nth=1)
        with pytest.raises(SimulatedCrash):
            made.refresh(workers=1)
    again = hw.Project.load(tmp_path).refresh()
    assert states(again, "abcd") == ["noop", "blocked", "blocked", "blocked"]


def test_tests_are_applied_changed_and_left(tmp_path: Path) -> None:
    made = project(tmp_path, TESTED)
    made.apply()
    assert {"checks.unique_a_id", "checks.positive"} <= set(made.lake.artefacts())
    assert made.refresh().ok
    changed = project(tmp_path, {**TESTED, "views/a.sql": TESTED["views/a.sql"].replace("x < 0", "x < 2")})
    assert [one.violations for one in changed.refresh().broken] == [1]
    without = project(tmp_path, {**TESTED, **CHAIN})
    assert without.refresh().ok
    assert not {name for name in without.lake.artefacts() if name.startswith("checks.")}


def test_a_test_that_is_not_declared_any_more_is_dropped(tmp_path: Path, capsys: Capture) -> None:
    made = project(tmp_path, TESTED)
    assert made.refresh().ok
    evaluate(made.lake, [Check(kind="not_null", node="a", column="id")])  # somebody's own, of no project
    other = project(tmp_path / "other", {**CHAIN, "headwater.yaml": f"name: other\nlake: {tmp_path / 'lake'}\n"})
    without = project(tmp_path, {**TESTED, **CHAIN})
    left = ("checks.positive", "checks.unique_a_id")
    assert without.plan().left_tests == left and "a refresh drops it: checks.positive" in str(without.plan())
    assert other.plan().left_tests == () and other.refresh().dropped_tests == []  # another project's are not its own
    assert main(["plan", str(tmp_path)]) == 0 and "a refresh drops it: checks.positive" in capsys.readouterr().err

    without.lake.view("mine", "SELECT count(*) AS n FROM checks.positive")
    run = without.refresh("e")
    assert run.ok and run.dropped_tests == ["checks.unique_a_id"]
    assert without.plan().left_tests == ("checks.positive",)
    without.lake.drop_view("mine")
    run = without.refresh()
    assert run.dropped_tests == run.as_dict()["dropped_tests"] == ["checks.positive"]
    assert "dropped, the test is not declared any more: checks.positive" in str(run)
    assert without.status().unmanaged == {"checks.not_null_a_id": "view"} and without.plan().left_tests == ()

    again = project(tmp_path, TESTED)
    assert again.refresh().ok and set(again.refresh().checks) == {"unique_a_id", "positive"}


def test_plans_and_statuses_know_what_a_test_holds_back(tmp_path: Path) -> None:
    made = project(tmp_path, TESTED)
    assert made.refresh().ok and made.status().ok
    made.lake.table("t").append([BAD, {**BAD, "id": 2}])
    assert modes(made) == ["incremental"] * 5  # nothing has evaluated the test over these rows yet
    held = made.refresh()
    assert not held.ok

    plan, status = made.plan(), made.status()
    why = "the test unique_a_id of a fails: 2 rows at a@2"
    assert modes(made) == ["noop", "blocked", "blocked", "blocked", "noop"]
    assert plan["b"].reason == plan["d"].reason == why and plan.blocked == ["b", "c", "d"]
    assert plan.as_dict()["nodes"][1]["broken_tests"][0]["violations"] == 2
    assert {name: one.health for name, one in status.items()} == {
        **dict.fromkeys("ae", "fresh"),
        **dict.fromkeys("bcd", "blocked"),
    }
    assert not status.ok and status.stale == ["b", "c", "d"]
    assert status["b"].lag_text.startswith(f"{why}; 1 version behind a")
    assert status["d"].as_dict()["broken_tests"] == [
        {"name": "unique_a_id", "node": "a", "violations": 2, "frontier": {"a": 2}, "behind": False}
    ]
    assert why in str(made.why("d")) and main(["status", str(tmp_path)]) == 3 and main(["plan", str(tmp_path)]) == 1

    made.lake.table("t").delete("x = 10.0 AND id = 1")  # mended in part; the next refresh looks first
    assert made.plan()["b"].reason == f"{why} (evaluated again first)"
    assert [made.refresh()[name].state for name in "abcd"] == ["done", "blocked", "blocked", "blocked"]
    assert "1 row at a@3" in made.plan()["b"].reason
    made.lake.table("t").delete("x = 10.0")
    assert made.refresh().ok and made.status().ok and modes(made) == ["noop"] * 5


def test_a_test_fails_before_anything_is_built(tmp_path: Path) -> None:
    files = {**CHAIN, "headwater.yaml": "name: shop\ntests:\n  t: [{not_null: {column: x, name: has_x}}]\n"}
    files["headwater.yaml"] += "sources: {t: {}}\n"
    made = project(tmp_path, files)
    made.lake.table("t").append([{"id": 9, "k": "a", "x": None}])
    assert not made.refresh().ok
    assert modes(made) == ["blocked"] * 4
    status = made.status("a", "b", "c", "d")
    assert {one.health for one in status.values()} == {"blocked"}
    assert "the test has_x of t fails: 1 row at t@1" in status["d"].lag_text


def test_a_test_that_says_something_else_now_is_not_known(tmp_path: Path) -> None:
    made = project(tmp_path, TESTED)
    made.lake.table("t").append([BAD])
    assert not made.refresh().ok and made.plan().blocked == ["b", "c", "d"]
    changed = project(tmp_path, {**TESTED, "views/a.sql": TESTED["views/a.sql"].replace("unique: id", "not_null: id")})
    assert changed.plan().blocked == []
    eased = A.replace("unique: id", "unique: {column: id, where: x < 5, name: unique_a_id}")
    changed = project(tmp_path, {**TESTED, "views/a.sql": eased + CHAIN["views/a.sql"]})
    assert changed.plan().blocked == [] and changed.refresh().ok


def test_columns_of_a_tested_node_change(tmp_path: Path) -> None:
    made = project(tmp_path, TESTED)
    assert made.refresh().ok
    text = TESTED["views/a.sql"].replace("id, k, x FROM", "id, k, x, -x AS y FROM")
    made = project(tmp_path, {**TESTED, "views/a.sql": text})
    made.lake.table("t").append([{**BAD, "x": -5.0}])
    run = made.refresh()
    assert run.checks["positive"].rows == ({"id": 1, "k": "a", "x": -5.0, "y": 5.0},)


def test_a_watch_goes_on_when_rows_are_mended(tmp_path: Path) -> None:
    made = project(tmp_path, TESTED)
    stopped = threading.Event()
    runs: list[Run] = []

    def follow() -> None:
        for run in made.watch(stopped=stopped, interval_seconds=0.02):
            runs.append(run)
            if len(runs) == 1:
                made.lake.table("t").append([BAD])
            elif len(runs) == 2:
                made.lake.table("t").delete("x = 10.0")
            else:
                stopped.set()

    with ThreadPoolExecutor(1) as threads:
        try:
            threads.submit(follow).result(timeout=PATIENCE_S)
        finally:
            stopped.set()
    assert [run.ok for run in runs] == [True, False, True]


def test_the_command(tmp_path: Path, capsys: Capture) -> None:
    made = project(tmp_path, TESTED)
    made.refresh()
    test = ["test", str(tmp_path)]
    assert main([*test, "--json"]) == 0
    made.lake.table("t").append([BAD])
    assert main(test) == 0  # the node is what it was
    capsys.readouterr()
    assert main(["refresh", str(tmp_path), "--json"]) == 1
    said = json.loads(capsys.readouterr().out)
    assert not said["ok"] and {one["name"]: one["passed"] for one in said["tests"]}["unique_a_id"] is False
    assert main([*test, "a", "--json"]) == 1
    said = json.loads(capsys.readouterr().out)
    assert sorted(said["blocked"]) == ["b", "c", "d"] and said["tests"][0]["rows"] == [{"id": 1, "rows": 2}]
    assert main(test) == 1
    assert "the test unique_a_id of a fails: {'id': 1, 'rows': 2} (error)" in capsys.readouterr().err
    assert main([*test, "nope"]) == 1

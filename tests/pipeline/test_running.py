"""Refreshes that clash, fail for a while, are stopped, watched and measured."""

from __future__ import annotations

import io
import json
import logging
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.pipeline.test_project import CHAIN, project
from tests.waiting import PATIENCE_S

import headwater as hw
from headwater.base.errors import ConflictError, NotFoundError, StorageError
from headwater.base.storage import open_storage
from headwater.pipeline.logs import json_logs
from headwater.pipeline.metrics import ProjectMetrics, observe_run, serve_metrics
from headwater.pipeline.project_lock import _Lease, project_lock
from headwater.pipeline.retries import retried
from headwater.testing.faults import FaultPlan, SimulatedCrash


def test_two_refreshes_never_clash(tmp_path: Path) -> None:
    made = project(tmp_path, CHAIN)
    with ThreadPoolExecutor(1) as threads:
        with project_lock(made.lake.catalog.root, "shop"):
            with pytest.raises(ConflictError, match="is being refreshed already"):
                made.refresh()
            later = threads.submit(lambda: hw.Project.load(tmp_path).refresh(wait_seconds=PATIENCE_S))
            time.sleep(0.3)
            assert not later.done()
        assert later.result().ok
    assert made.refresh().changed == []


def test_a_lease_is_taken_over_when_it_has_run_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = open_storage(tmp_path)
    first = _Lease(root, "lease")
    with pytest.raises(ConflictError, match="pid"):
        _Lease(root, "lease")
    first.release()
    monkeypatch.setattr("headwater.pipeline.project_lock._LEASE_SECONDS", 0.2)
    lost = _Lease(root, "lease")
    lost._ended.set()  # its process has died: nobody keeps it
    lost._keeper.join()
    time.sleep(0.25)
    second = _Lease(root, "lease")
    second.release()
    assert len(list(root.list("lease/"))) <= 5


def test_what_may_pass_is_tried_again() -> None:
    tries: list[int] = []

    def step() -> str:
        tries.append(1)
        if len(tries) < 3:
            raise StorageError.failed("s3://b", "timeout")
        return "done"

    said: list[int] = []
    found = retried(
        step,
        retries=3,
        wait_seconds=0.001,
        stopped=threading.Event(),
        on_retry=lambda error, number, wait: said.append(number),
    )
    assert found == "done" and said == [1, 2]

    def lasting() -> str:
        tries.append(1)
        raise NotFoundError.table("t", [], "lake")

    tries.clear()
    with pytest.raises(NotFoundError):
        retried(lasting, retries=3, wait_seconds=0, stopped=threading.Event(), on_retry=lambda *_: None)
    assert len(tries) == 1


@pytest.mark.parametrize(
    "point", ["pipeline.node.published", "pipeline.ledger.before_append", "pipeline.ledger.after_append"]
)
def test_the_ledger_converges_after_a_crash(tmp_path: Path, point: str) -> None:
    made = project(tmp_path, CHAIN)
    with FaultPlan() as plan:
        plan.crash_at(point, nth=2)
        with pytest.raises(SimulatedCrash):
            made.refresh(workers=1)
    again = hw.Project.load(tmp_path)
    assert again.refresh().ok
    rows = again.history().to_pylist()
    assert sorted((row["node"], row["version"]) for row in rows) == [("a", 1), ("b", 1), ("c", 1), ("d", 2)]


def test_a_watch_follows_its_tables(tmp_path: Path) -> None:
    made = project(tmp_path, CHAIN)
    stopped, seen = threading.Event(), threading.Event()
    runs = []

    def follow() -> None:
        for run in made.watch(stopped=stopped, interval_seconds=0.02):
            runs.append(run)
            seen.set()

    with ThreadPoolExecutor(1) as threads:
        watching = threads.submit(follow)
        try:
            assert seen.wait(PATIENCE_S)
            lake = hw.connect(tmp_path / "lake")
            for number in range(3):
                lake.table("t").append([{"id": 10 + number, "k": "a", "x": 1.0}])
                end = time.monotonic() + PATIENCE_S
                while lake.online("d").fetch(["a"]).to_pylist() != [{"s2": 2 * (1.5 + number + 1)}]:
                    assert time.monotonic() < end and not watching.done()
                    time.sleep(0.01)
        finally:
            stopped.set()
        watching.result(PATIENCE_S)
    assert runs[0].changed == ["a", "b", "c", "d"] and all(run.ok for run in runs)
    rows = made.history("d").to_pylist()
    assert len(rows) == len({row["version"] for row in rows}) >= 2


def test_metrics(tmp_path: Path) -> None:
    made = project(tmp_path, CHAIN)
    with serve_metrics(made, "0") as url:
        made.refresh()
        with urllib.request.urlopen(url) as answer:
            text = answer.read().decode()
    assert 'headwater_freshness_seconds{node="d",project="shop"} 0.0' in text
    assert 'headwater_refresh_rows_total{mode="full",node="a",project="shop"} 2.0' in text
    assert 'headwater_runs_total{ok="true",project="shop"} 1.0' in text
    own = ProjectMetrics(made)
    made.lake.table("t").append([{"id": 9, "k": "a", "x": 1.0}])
    observe_run(made.refresh())  # nobody shows them any more
    assert "headwater_version_lag" in own.text()


def test_logs_are_lines_of_json(tmp_path: Path) -> None:
    out = io.StringIO()
    with json_logs(out):
        run = project(tmp_path, {**CHAIN, "views/bad.sql": "SELECT CAST(k AS int) AS n FROM t"}).refresh()
    found = [json.loads(line) for line in out.getvalue().splitlines()]
    assert {one["run"] for one in found} == {run.id}
    assert [one["level"] for one in found if one.get("node") == "bad" and one["state"] == "failed"] == ["warning"]
    assert logging.getLogger("headwater.pipeline").handlers == []

"""Storage that fails at any point of a checkpoint: the one before stays valid, and the process goes on."""

from __future__ import annotations

import errno
import gc
import os
from pathlib import Path

import pytest
from tests.incremental.state.history import LAYOUTS, apply, contents, expected, new_traces

from headwater.base import settings
from headwater.base.errors import StorageError
from headwater.incremental.store import Store
from headwater.incremental.trace import Trace
from headwater.testing.faults import FaultPlan, SimulatedCrash

SEED = 7

POINTS = [
    "state.run.before_write",
    "state.run.written",
    "state.run.before_flush",
    "state.run.before_publish",
    "state.run.after_publish",
    "state.checkpoint.before_manifest",
    "storage.put_if_absent.before_publish",
    "storage.put_if_absent.after_publish",
]


def prepared(store: Store) -> dict[str, Trace]:
    traces = new_traces()
    apply(traces, SEED, 0)
    store.checkpoint(0, traces, {"step": 0})
    apply(traces, SEED, 1)
    return traces


def restored(store: Store) -> tuple[int, dict[str, Trace]]:
    manifest = store.restore()
    store.verify(manifest)
    return manifest.extra["step"], {name: store.trace(manifest, name, layout) for name, layout in LAYOUTS.items()}


def test_a_checkpoint_reaches_all_these_points(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        traces = prepared(store)
        with FaultPlan() as plan:
            store.checkpoint(1, traces, {"step": 1})
        assert set(POINTS) == set(plan.reached)


# What is the first of its kind, and where there are several the second: the other two of each point are no other behaviour.
FAULTS = [
    pytest.param(point, number, nth, id=f"{point}-{name}-{nth}", marks=[] if usual else pytest.mark.slow)
    for point in POINTS
    for name, number in (("full", errno.ENOSPC), ("broken", errno.EIO))
    for nth in (1, 2)
    for usual in [nth == (2 if name == "broken" and point.startswith("state.run.") else 1)]
]


@pytest.mark.long
@pytest.mark.parametrize(("point", "number", "nth"), FAULTS)
def test_an_error_is_typed_and_the_process_goes_on(point: str, number: int, nth: int, tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        traces = prepared(store)
        failed = False
        with FaultPlan().raise_at(point, nth=nth, error=OSError(number, os.strerror(number))):
            try:
                store.checkpoint(1, traces, {"step": 1})
            except StorageError as e:
                failed = True
                assert e.code == ("E6002" if number == errno.ENOSPC else "E6003")
        assert failed or nth == 2
        step, back = restored(store)
        assert step == (1 if not failed or point.endswith("put_if_absent.after_publish") else 0)
        assert contents(back) == expected(SEED, step)
        assert not [name for name in os.listdir(tmp_path / "runs") if name.endswith(".tmp")]
        del back
        # The state in memory is what it was, and the next checkpoint is as good as any.
        apply(traces, SEED, 2)
        store.checkpoint(2, traces, {"step": 2})
        step, back = restored(store)
        assert step == 2
        assert contents(back) == contents(traces) == expected(SEED, 2)
        del back, traces
        gc.collect()  # the injected error holds its traceback, and that the runs
        store.sweep()
        assert set(os.listdir(tmp_path / "runs")) == store.restore().files


@pytest.mark.parametrize("point", POINTS)
def test_a_crash_leaves_one_of_the_two(point: str, tmp_path: Path) -> None:
    store = Store(tmp_path)
    traces = prepared(store)
    with FaultPlan().crash_at(point), pytest.raises(SimulatedCrash):
        store.checkpoint(1, traces, {"step": 1})
    store.close()
    del traces, store
    with Store(tmp_path) as store:
        step, back = restored(store)
        assert contents(back) == expected(SEED, step)
        del back
        store.sweep()
        assert set(os.listdir(tmp_path / "runs")) == store.restore().files


@pytest.mark.parametrize("point", ["state.merge.begin", "state.merge.merged", "state.spill.begin", "state.run.*"])
def test_errors_in_the_background_disturb_nobody(point: str, tmp_path: Path) -> None:
    with Store(tmp_path) as store, settings.override(state_memory_bytes=2 << 20):
        traces = prepared(store)
        hits = 0

        def fail(_name: str, _detail: str) -> None:
            nonlocal hits
            hits += 1
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        with FaultPlan().call_at(point, fail):
            for step in range(2, 8):
                apply(traces, SEED, step)
            for trace in traces.values():
                trace.spine.settle()
        assert hits
        assert contents(traces) == expected(SEED, 7)
        assert contents(restored(store)[1]) == expected(SEED, 0)
        apply(traces, SEED, 8)
        store.checkpoint(8, traces, {"step": 8})
        assert contents(restored(store)[1]) == expected(SEED, 8)


def test_a_folder_that_may_not_be_written_to(tmp_path: Path) -> None:
    denied = PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    with Store(tmp_path) as store:
        traces = prepared(store)
        with FaultPlan().raise_at("state.run.before_write", error=denied), pytest.raises(StorageError) as caught:
            store.checkpoint(1, traces)
        assert caught.value.code == "E6001"

"""State that is larger than memory: it lies in files, answers are the same, and memory stays within bounds."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from tests.incremental.state.history import ORDERS, apply, contents, expected, new_traces, orders_change
from tests.waiting import PATIENCE_S

from headwater.base import events, settings
from headwater.base.errors import CorruptionError
from headwater.incremental import run_narrow, spill
from headwater.incremental.run import Run
from headwater.incremental.store import Store
from headwater.incremental.trace import Trace
from headwater.incremental.zset import ZSet
from headwater.testing.faults import FaultPlan

SEED = 6
ROOT = Path(__file__).parents[3]


def settled(traces: dict[str, Trace]) -> dict[str, Trace]:
    for trace in traces.values():
        trace.spine.settle()
        trace.commit()
    return traces


def test_the_budget_is_a_setting() -> None:
    with settings.override(state_memory_bytes="8MiB"):
        assert spill.budget_bytes() == 8 << 20
    assert spill.budget_bytes() > 64 << 20


@pytest.mark.parametrize("stored", [False, True])
def test_answers_are_the_same_with_little_memory(stored: bool, tmp_path: Path) -> None:
    traces = new_traces()
    folder = tmp_path / "spilled"
    folder.mkdir()
    with settings.override(state_memory_bytes=1 << 20, spill_dir=folder):
        if stored:
            store = Store(tmp_path / "store")
            store.checkpoint(-1, traces)
        for step in range(10):
            apply(traces, SEED, step)
        assert contents(traces) == expected(SEED, 9)
        settled(traces)
    assert contents(traces) == expected(SEED, 9)
    assert all(run.mapped for run in traces["orders"].spine.runs)
    assert all((run.file is not None) == stored for run in traces["orders"].spine.runs)
    assert os.listdir(folder) == []  # files without a store have no name
    if stored:
        # What was merged away since has left no file.
        names = {run.file.name for trace in traces.values() for run in trace.runs if run.file}
        assert set(os.listdir(tmp_path / "store/runs")) == names
        store.checkpoint(9, traces)
        assert store.sweep() == ["000000000001.json"]
        store.close()


def test_what_was_spilled_without_a_store_can_be_checkpointed(tmp_path: Path) -> None:
    traces = new_traces()
    with settings.override(state_memory_bytes=1 << 20):
        for step in range(7):
            apply(traces, SEED, step)
        settled(traces)
    with Store(tmp_path) as store:
        store.checkpoint(6, traces)
        manifest = store.restore()
        store.verify(manifest)
        back = {name: store.trace(manifest, name, trace.layout) for name, trace in traces.items()}
        assert contents(back) == expected(SEED, 6)


def test_a_run_that_has_a_file_is_not_written_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_narrow, "_MOST", 1_000)  # what is narrow cannot be mapped
    traces = new_traces()
    with Store(tmp_path) as store:
        apply(traces, SEED, 0)
        store.checkpoint(0, traces)
        before = os.listdir(tmp_path / "runs")
        trace = traces["orders"]
        (run,) = trace.spine.runs
        trace.spine.spill(run)
        settled(traces)
        (mapped,) = trace.spine.runs
        assert mapped.mapped
        assert mapped.file is run.file
        assert os.listdir(tmp_path / "runs") == before


def test_a_full_disk_leaves_the_runs_in_memory_and_says_so() -> None:
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    traces = new_traces()
    said: list[str] = []
    spill._spines(os.getpid()).told = False
    stop = events.subscribe(lambda event: said.append(event.text))
    try:
        with settings.override(state_memory_bytes=1 << 20), FaultPlan() as plan:
            plan.call_at("state.merge.*", lambda *_: _raise(full)).call_at("state.spill.*", lambda *_: _raise(full))
            for step in range(5):
                apply(traces, SEED, step)
            for trace in traces.values():
                trace.spine.settle()
            assert contents(traces) == expected(SEED, 4)
            assert not any(run.mapped for run in traces["orders"].runs)
            assert {"state.merge.begin", "state.spill.begin"} <= set(plan.reached)
    finally:
        stop()
    assert len([text for text in said if "No space" in text]) == 1
    with settings.override(state_memory_bytes=1 << 20):
        apply(traces, SEED, 5)
        apply(traces, SEED, 6)
        settled(traces)
        assert all(run.mapped for run in traces["orders"].spine.runs)
    assert contents(traces) == expected(SEED, 6)


def _raise(error: OSError) -> None:
    raise error


def test_damage_that_the_background_meets_is_the_error_of_the_next_step(tmp_path: Path) -> None:
    rows, weights = orders_change(SEED, 0)
    with Store(tmp_path) as store:
        trace = Trace(ORDERS, [store.write(Run.of(ZSet.packed(ORDERS, rows, weights)))])
        (name,) = os.listdir(tmp_path / "runs")
        with open(tmp_path / "runs" / name, "r+b") as f:
            f.seek(4096 * 20)
            f.write(b"\xff" * 8)
        trace.add(ZSet.packed(ORDERS, rows, weights))  # the merge begins
        trace.spine.settle()
        before = len(trace)
        with pytest.raises(CorruptionError, match=name):
            trace.stage(ZSet.packed(ORDERS, rows[:5]))
        assert len(trace) == before
        trace.commit()


LARGE = """
import sys
import numpy as np, pyarrow as pa
from headwater.incremental.layout import Layout
from headwater.incremental.trace import Trace
from headwater.incremental.zset import ZSet

def anonymous():
    with open("/proc/self/smaps_rollup") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("Anonymous:")) / 1024

layout = Layout(pa.schema([pa.field(c, pa.int64(), nullable=False) for c in ("k", "a", "b")]), keys=1)
def batch(i, n=40_000):
    k = np.arange(i * n, i * n + n) * 7919 % (1 << 31)
    return ZSet.packed(layout, pa.table({"k": k, "a": k * 3, "b": k - i}, schema=layout.schema))

trace = Trace(layout)
for i in range(3):  # what the process itself needs is there before it is measured
    trace.add(batch(i))
trace.find(batch(0))
trace.spine.settle()
trace.commit()
before = anonymous()
most = 0.0
for i in range(3, 60):
    trace.add(batch(i))
    most = max(most, anonymous())
trace.spine.settle()
trace.commit()
most = max(most, anonymous())
right = all((trace.weights(batch(i)) == 1).all() for i in (0, 17, 59))
found = trace.find(batch(31)).rows
right = right and sorted(found.rows[:, 1]) == sorted(batch(31).rows[:, 1])
print(round(trace.nbytes / 2**20), round(most - before), right)
"""


@pytest.mark.long
@pytest.mark.skipif(not os.path.exists("/proc/self/smaps_rollup"), reason="needs Linux")
def test_memory_is_bounded_where_state_is_ten_times_the_budget() -> None:
    environ = {**os.environ, "HEADWATER_STATE_MEMORY_BYTES": "8MiB"}
    done = subprocess.run(
        [sys.executable, "-c", LARGE], env=environ, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    state, grown, right = done.stdout.split()
    assert int(state) > 80
    assert int(grown) < 32
    assert right == "True"


def test_probes_of_absent_keys_are_answered_by_the_filter(tmp_path: Path) -> None:
    rows, weights = orders_change(SEED, 0)
    run = Run.of(ZSet.packed(ORDERS, rows, weights))
    with Store(tmp_path) as store:
        mapped = store.write(run)
    assert mapped.line[7] > 0
    assert run.line[7] == 0
    ids = np.asarray(rows["id"])
    absent = rows.set_column(0, ORDERS.schema.field(0), [ids + (1 << 30)])
    keys = ZSet.packed(ORDERS, absent)
    assert not Trace(ORDERS, [mapped]).weights(keys).any()
    # A filter that lets nothing through hides everything: so it is asked.
    mapped.line[6] = np.zeros(int(mapped.line[7]) * 8, dtype=np.uint64).ctypes.data
    hidden = np.zeros(int(mapped.line[7]) * 8, dtype=np.uint64)
    mapped.line[6] = hidden.ctypes.data
    assert not Trace(ORDERS, [mapped]).weights(ZSet.packed(ORDERS, rows)).any()


def test_merges_wait_while_they_are_put_off_and_no_longer_than_somebody_needs_them() -> None:
    begun = threading.Event()
    run = Run.of(ZSet.packed(ORDERS, orders_change(1, 0)[0]))

    def merge() -> None:
        spill.merged_somewhere(run, run, None, None, None)
        begun.set()

    with spill.put_off():
        spill.background().submit(merge)
        assert not begun.wait(0.05)
        with spill.put_off():  # another view is refreshed at the same time
            pass
        assert not begun.wait(0.05)
    assert begun.wait(PATIENCE_S)
    begun.clear()
    with spill.put_off():
        spill.background().submit(merge)
        spill.hurry()
        assert begun.wait(PATIENCE_S)

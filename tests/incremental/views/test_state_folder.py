"""The folder of a view's state: one process at a time writes, and gives it away between refreshes."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pyarrow as pa
import pytest

from headwater.base.errors import ConflictError, InputError
from headwater.base.storage import LocalStorage
from headwater.derived.lock import Lock
from headwater.incremental.layout import Layout
from headwater.incremental.store import Store
from headwater.incremental.trace import Trace
from headwater.incremental.views.costs import Rates, ViewPlan
from headwater.incremental.views.state_folder import ViewFolder
from headwater.incremental.zset import ZSet

LAYOUT = Layout(pa.schema([pa.field("id", pa.int64(), nullable=False)]), keys=1)


def trace_of(*ids: int) -> Trace:
    trace = Trace(LAYOUT)
    trace.add(ZSet.packed(LAYOUT, pa.table({"id": list(ids)}, schema=LAYOUT.schema)))
    return trace


def test_a_lock_is_given_away_and_taken_again(tmp_path: Path) -> None:
    lock = Lock(str(tmp_path))
    with pytest.raises(ConflictError):
        Lock(str(tmp_path))
    lock.pause()
    held = lock.held
    assert not held
    other = Lock(str(tmp_path))
    with pytest.raises(ConflictError):
        lock.resume()
    other.release()
    lock.resume()
    assert lock.held
    lock.pause()
    (tmp_path / "lock").unlink()  # somebody put the file aside
    lock.resume()
    assert lock.held and (tmp_path / "lock").exists()
    with pytest.raises(ConflictError):
        Lock(str(tmp_path))


def test_a_store_without_its_lock_takes_no_checkpoint(tmp_path: Path) -> None:
    store, trace = Store(tmp_path), trace_of(1, 2)
    store.flush({"t": trace})
    assert len(os.listdir(tmp_path / "runs")) == 1 and store.manifests() == []
    first = store.checkpoint(1, {"t": trace})
    store.unlock()
    for forbidden in (lambda: store.checkpoint(2, {"t": trace}), store.sweep, lambda: store.flush({"t": trace})):
        with pytest.raises(InputError):
            forbidden()
    assert store.write(trace_of(3).runs[0]).rows is not None, "files of its own may be written"
    with Store(tmp_path) as other:
        second = other.adopt((tmp_path / "manifests" / first).read_bytes())
        assert other.restore(second).files == other.restore(first).files
    store.lock()
    assert store.sweep([second])
    store.close()
    with pytest.raises(InputError):
        store.write(trace_of(3).runs[0])


def test_others_wait(tmp_path: Path) -> None:
    one, two = (ViewFolder(LocalStorage(tmp_path), "v") for _ in range(2))
    order: list[str] = []

    def second() -> None:
        with two.held():
            order.append("two")

    with one.held():
        thread = threading.Thread(target=second)
        thread.start()
        time.sleep(0.05)
        order.append("one")
    thread.join()
    assert order == ["one", "two"]
    with one.held():
        assert one.opened == 1


def test_costs() -> None:
    rates = Rates().after_full(1_000_000, 2.0).after_changes(10_000, 0.1)
    assert rates.changes_per_second == 100_000 and rates.anew_seconds(2_000_000) == 4.0
    assert rates.after_query(1_000_000, 9.0).crossover(1_000_000) == 199_000
    assert rates.after_changes(10, 1.0).changes_per_second == 100_000, "a small refresh says nothing of the rate"
    assert rates.after_changes(10_000, 0.2).changes_per_second == 75_000
    assert Rates(**rates.to_json()) == rates
    text = str(ViewPlan(mode="full", reason="why", changes={"t": 5}, rows=7, full_seconds=1.5, crossover=9))
    assert text.startswith("full: why\n  t: 5 rows changed\n") and text.endswith("crossover: 9 changed rows")

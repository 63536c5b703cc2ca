"""Checkpoints: only what is new is written, one manifest decides, and what nobody needs is swept."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from tests.incremental.state.history import LAYOUTS, ORDERS, apply, contents, expected, new_traces, orders_change

from headwater.base import settings
from headwater.base.errors import CorruptionError, InputError, NotFoundError
from headwater.incremental.layout import Layout
from headwater.incremental.manifest import Manifest
from headwater.incremental.run import Run
from headwater.incremental.store import Store
from headwater.incremental.trace import Trace
from headwater.incremental.zset import ZSet

SEED = 5


def load(store: Store, name: str | None = None) -> tuple[Manifest, dict[str, Trace]]:
    manifest = store.restore(name)
    return manifest, {trace: store.trace(manifest, trace, layout) for trace, layout in LAYOUTS.items()}


def run_files(folder: Path) -> set[str]:
    return set(os.listdir(folder / "runs"))


def test_each_checkpoint_comes_back_as_it_was(tmp_path: Path) -> None:
    names = []
    with Store(tmp_path) as store:
        traces = new_traces()
        for step in range(8):
            apply(traces, SEED, step)
            names.append(store.checkpoint(step, traces, {"step": step}))
    with Store(tmp_path) as store:
        assert store.manifests() == names
        for step in (0, 3, 7):
            manifest, back = load(store, names[step])
            assert (manifest.epoch, manifest.extra, manifest.name) == (step, {"step": step}, names[step])
            assert contents(back) == expected(SEED, step)
            store.verify(manifest)
        manifest, back = load(store)
        assert manifest.epoch == 7
        # and it goes on from there
        apply(back, SEED, 8)
        assert contents(back) == expected(SEED, 8)


def test_only_new_runs_are_written(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        traces = new_traces()
        for step in range(4):
            apply(traces, SEED, step)
        traces["orders"].spine.settle()
        store.checkpoint(1, traces)
        before = run_files(tmp_path)
        store.checkpoint(2, traces)
        assert run_files(tmp_path) == before
        traces["orders"].add(ZSet.packed(ORDERS, orders_change(SEED, 5)[0][:100]))
        store.checkpoint(3, traces)
        (new,) = run_files(tmp_path) - before
        assert (tmp_path / "runs" / new).stat().st_size < 64_000
        # a run that was written stays in memory, and knows its file
        assert all(run.file is not None and not run.mapped for run in traces["orders"].runs)


def test_a_trace_restored_and_not_changed_writes_nothing(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        traces = new_traces()
        apply(traces, SEED, 0)
        store.checkpoint(0, traces)
    with Store(tmp_path) as store:
        _, back = load(store)
        before = run_files(tmp_path)
        store.checkpoint(1, back)
        assert run_files(tmp_path) == before


def test_the_bound_is_kept(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        traces = new_traces()
        apply(traces, SEED, 0)
        traces["orders"].forget((ORDERS.column("amount").word, 25))
        store.checkpoint(0, traces)
        _, back = load(store)
        assert back["orders"].bound == (ORDERS.column("amount").word, 25)
        assert back["sums"].bound is None


def test_a_trace_that_is_there_can_be_loaded_anew(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        traces = new_traces()
        apply(traces, SEED, 0)
        first = store.checkpoint(0, traces)
        apply(traces, SEED, 1)
        for name, trace in traces.items():
            store.load(store.restore(first), name, trace)
        assert contents(traces) == expected(SEED, 0)
        apply(traces, SEED, 1)
        assert contents(traces) == expected(SEED, 1)


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="there is no such folder"):
        Store(tmp_path / "none", read_only=True)
    with Store(tmp_path) as store:
        with pytest.raises(NotFoundError, match="no checkpoint"):
            store.restore()
        traces = new_traces()
        store.checkpoint(0, traces)
        with pytest.raises(NotFoundError) as caught:
            store.restore("000000000007.json")
        assert "000000000001.json" in str(caught.value)
        manifest = store.restore()
        with pytest.raises(NotFoundError) as caught:
            store.trace(manifest, "order", ORDERS)
        assert "did you mean `orders`?" in str(caught.value)
        with pytest.raises(CorruptionError, match="another layout"):
            store.trace(manifest, "orders", Layout(ORDERS.schema, keys=2))


def test_extra_is_anything_that_json_holds(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        for extra in (None, 3, "x", [1, {"a": None}], {"orders": 42, "text": "Grüße"}):
            assert store.restore(store.checkpoint(0, {}, extra)).extra == extra
        for bad in ({"x": object()}, float("nan"), {"x": b"y"}):
            with pytest.raises(InputError, match="extra"):
                store.checkpoint(0, {}, bad)


def test_a_damaged_newest_checkpoint_is_passed_over(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        traces = new_traces()
        apply(traces, SEED, 0)
        first = store.checkpoint(0, traces)
        kept = run_files(tmp_path)
        apply(traces, SEED, 1)
        second = store.checkpoint(1, traces)
        third = store.checkpoint(2, traces)
    (tmp_path / "manifests" / third).write_bytes((tmp_path / "manifests" / third).read_bytes()[:-40])
    with Store(tmp_path) as store:
        assert store.restore().name == second
        assert store.restore().passed_over == (third,)
    os.unlink(tmp_path / "runs" / min(run_files(tmp_path) - kept))
    with Store(tmp_path) as store:
        manifest, back = load(store)
        assert (manifest.name, manifest.passed_over) == (first, (third, second))
        assert contents(back) == expected(SEED, 0)
        for name in (second, third):
            with pytest.raises(CorruptionError):
                store.restore(name)
    (tmp_path / "manifests" / first).write_bytes(b"")
    with Store(tmp_path) as store:
        with pytest.raises(CorruptionError, match=third):
            store.restore()
        before = run_files(tmp_path)
        with pytest.raises(CorruptionError):
            store.sweep()
        assert run_files(tmp_path) == before


def test_sweep_deletes_what_no_kept_manifest_names(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        traces = new_traces()
        names = []
        for step in range(6):
            apply(traces, SEED, step)
            names.append(store.checkpoint(step, traces))
    (tmp_path / "runs" / ".x.run.tmp").write_bytes(b"half a file")
    (tmp_path / "manifests" / ".y.json.tmp").write_bytes(b"half")
    del traces
    with Store(tmp_path) as store:
        store.sweep(keep=[names[2], names[4]])
        assert store.manifests() == [names[2], names[4]]
        assert run_files(tmp_path) == store.restore(names[2]).files | store.restore(names[4]).files
        _, back = load(store, names[2])
        assert contents(back) == expected(SEED, 2)
        # runs that are in use are not taken away, whatever is kept
        store.sweep(keep=1)
        assert store.manifests() == [names[4]]
        assert {run.file.name for t in back.values() for run in t.runs if run.file} <= run_files(tmp_path)
        store.checkpoint(9, back)
        _, again = load(store)
        assert contents(again) == expected(SEED, 2)
        del back, again
        deleted = store.sweep(keep=1)
        assert run_files(tmp_path) == store.restore().files
        assert names[4] in deleted
        with pytest.raises(InputError):
            store.sweep(keep=0)
        assert store.sweep(keep=1) == []


def test_sweep_touches_nothing_where_a_later_version_wrote(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.checkpoint(0, {})
        (tmp_path / "manifests" / "000000000002.json").write_text('{"format": "headwater state", "version": 2}')
        (tmp_path / "runs" / "theirs.run").write_bytes(b"?")
        with pytest.raises(CorruptionError) as caught:
            store.sweep()
        assert caught.value.code == "E5010"
        assert run_files(tmp_path) == {"theirs.run"}


def test_a_fork_shares_files_and_goes_its_own_way(tmp_path: Path) -> None:
    with Store(tmp_path / "a") as store:
        traces = new_traces()
        apply(traces, SEED, 0)
        first = store.checkpoint(0, traces, {"step": 0})
        apply(traces, SEED, 1)
        store.checkpoint(1, traces)
        with store.fork(tmp_path / "b", first) as other:
            manifest, back = load(other)
            assert (manifest.epoch, manifest.extra) == (0, {"step": 0})
            for name in manifest.files:
                assert (tmp_path / "a/runs" / name).samefile(tmp_path / "b/runs" / name)
            apply(back, SEED, 2)
            other.checkpoint(2, back)
            assert contents(load(store)[1]) == expected(SEED, 1)
        with pytest.raises(InputError, match="without state"):
            store.fork(tmp_path / "b")
    with Store(tmp_path / "b") as other:
        assert other.manifests() == ["000000000001.json", "000000000002.json"]


def test_runs_of_one_store_can_be_checkpointed_in_another(tmp_path: Path) -> None:
    with Store(tmp_path / "a") as one, Store(tmp_path / "b") as two:
        traces = new_traces()
        apply(traces, SEED, 0)
        one.checkpoint(0, traces)
        two.checkpoint(0, traces)
        assert contents(load(two)[1]) == expected(SEED, 0)
        one.checkpoint(1, traces)
        assert contents(load(one)[1]) == expected(SEED, 0)


def test_a_store_that_is_read_only_or_closed_writes_nothing(tmp_path: Path) -> None:
    traces = new_traces()
    apply(traces, SEED, 0)
    with Store(tmp_path) as store:
        store.checkpoint(0, traces)
        reader = Store(tmp_path, read_only=True)
        assert contents(load(reader)[1]) == expected(SEED, 0)
        for call in (
            lambda: reader.checkpoint(1, traces),
            reader.sweep,
            lambda: reader.write(traces["orders"].runs[0]),
        ):
            with pytest.raises(InputError, match="opened to write"):
                call()
    with pytest.raises(InputError, match="opened to write"):
        store.checkpoint(1, traces)


def test_a_run_that_is_written_is_mapped(tmp_path: Path) -> None:
    traces = new_traces()
    apply(traces, SEED, 0)
    run: Run = traces["orders"].runs[0]
    with Store(tmp_path) as store:
        mapped = store.write(run)
        assert mapped.mapped
        assert not run.mapped
        assert mapped.memory_bytes == 0
        keys = run.zset()
        both = [Trace(ORDERS, [each]) for each in (run, mapped)]
        assert both[0].weights(keys).tolist() == both[1].weights(keys).tolist()
        found = [trace.find(keys) for trace in both]
        assert found[0].rows.consolidate().to_arrow() == found[1].rows.consolidate().to_arrow()


@hypothesis_settings(max_examples=10)
@given(st.lists(st.sampled_from(["small", "large", "checkpoint", "restore", "sweep", "spill"]), max_size=14))
def test_any_history_is_what_was_last_checkpointed(tmp_path_factory: Any, ops: list[str]) -> None:
    folder = tmp_path_factory.mktemp("store")
    traces, step, saved = new_traces(), -1, -1
    store = Store(folder)
    budget = 1 << 40
    for op in ops:
        with settings.override(state_memory_bytes=budget):
            if op in ("small", "large"):
                step += 1
                while (step % 3 == 0) != (op == "large"):  # the history decides which steps are large
                    apply(traces, SEED, step)
                    step += 1
                apply(traces, SEED, step)
            elif op == "checkpoint":
                store.checkpoint(step, traces, {"step": step})
                saved = step
            elif op == "restore" and store.manifests():
                store.close()
                del traces
                store = Store(folder)
                manifest, traces = load(store)
                assert manifest.extra == {"step": saved}
                step = saved
            elif op == "sweep":
                store.sweep()
            elif op == "spill":
                budget = 1 << 20
    assert contents(traces) == expected(SEED, step)
    if store.manifests():
        assert contents(load(store)[1]) == expected(SEED, saved)
    store.close()


def test_table_of_a_schema_without_rows(tmp_path: Path) -> None:
    layout = ORDERS
    with Store(tmp_path) as store:
        trace = Trace(layout)
        trace.add(ZSet.empty(layout))
        store.checkpoint(0, {"orders": trace})
        assert len(store.trace(store.restore(), "orders", layout)) == 0

"""A run that was made of partitions is that of a sort, byte for byte: in memory, in a file, and when memory is short."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base import settings
from headwater.base.errors import ConstraintError
from headwater.incremental import partitions
from headwater.incremental.layout import Layout, Order
from headwater.incremental.partitions import Partitions
from headwater.incremental.run import Run
from headwater.incremental.run_file import RunFile
from headwater.incremental.store import Store
from headwater.incremental.zset import ZSet, concatenate

_SCHEMA = pa.schema([("k", pa.int64()), ("s", pa.string()), ("v", pa.int64())])
_LAYOUTS = [
    Layout(_SCHEMA, keys=1),
    Layout(_SCHEMA, keys=2),
    Layout(_SCHEMA, keys=1, order=[Order("v")]),
    Layout(_SCHEMA, keys=3),
]


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partitions, "_FEW_ROWS", 64)
    monkeypatch.setattr(partitions, "is_narrowed", lambda _: False)


def same(one: Run, other: Run) -> bool:
    arrays = all(np.array_equal(getattr(one, n), getattr(other, n)) for n in ("hashes", "rows", "heap", "directory"))
    return arrays and (one.bits, one.most) == (other.bits, other.most)


def pieces_of(layout: Layout, rng: np.random.Generator, rows: int, keys: int, size: int) -> list[ZSet]:
    """Rows with nulls, duplicates, rows that cancel out, long strings and short ones."""
    texts = np.array([None, "", "short", "a text that does not fit a slot", "ünï ✓ ünï ✓", "x" * 300], dtype=object)
    k = np.where(rng.random(rows) < 0.4, 0, rng.integers(0, keys, rows))  # a hot key
    table = pa.table(
        [
            pa.array(k, pa.int64(), mask=rng.random(rows) < 0.05),
            pa.array(texts[rng.integers(0, len(texts), rows)], pa.string()),
            pa.array(rng.integers(-3, 3, rows)),
        ],
        schema=_SCHEMA,
    )
    weights = rng.choice([1, 1, 1, 2, -1], rows).astype(np.int64)
    return [ZSet.packed(layout, table.slice(a, size), weights[a : a + size]) for a in range(0, rows, size)]


def sorted_at_once(layout: Layout, pieces: list[ZSet]) -> Run:
    whole = concatenate(pieces, layout)
    return Run.of(ZSet(layout, whole.rows, whole.owners))


@given(
    which=st.integers(0, len(_LAYOUTS) - 1),
    rows=st.integers(0, 400),
    keys=st.sampled_from([1, 2, 40, 10_000]),
    size=st.sampled_from([1, 7, 64, 400]),
    expected=st.sampled_from([0, 100, 10_000_000]),
    threads=st.sampled_from([1, 2]),
    seed=st.integers(0, 2**32 - 1),
)
def test_it_is_the_run_of_all_rows(
    which: int, rows: int, keys: int, size: int, expected: int, threads: int, seed: int
) -> None:
    layout = _LAYOUTS[which]
    pieces = pieces_of(layout, np.random.default_rng(seed), rows, keys, size)
    with settings.override(threads=threads):
        found = Partitions(layout, expected)
        for piece in pieces:
            found.feed(piece)
        assert len(found) == rows
        assert same(found.finish(), sorted_at_once(layout, pieces))


@pytest.mark.parametrize("keys", [1, 500])
@pytest.mark.parametrize("layout", _LAYOUTS)
def test_its_file_is_that_of_the_run(layout: Layout, keys: int, tmp_path: Path) -> None:
    pieces = pieces_of(layout, np.random.default_rng(keys), 3_000, keys, 500)
    with Store(tmp_path) as store:
        found = Partitions(layout, 3_000)
        for piece in pieces:
            found.feed(piece)
        run = found.finish(store)
        expected = store.write(sorted_at_once(layout, pieces))
        assert isinstance(run.file, RunFile)
        assert expected.file is not None
        run.file.verify()
        assert Path(run.file.path).read_bytes() == Path(expected.file.path).read_bytes()


def test_a_run_that_a_checkpoint_narrows_is_made_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partitions, "is_narrowed", lambda rows: rows < 400)
    layout = _LAYOUTS[0]
    with Store(tmp_path) as store:
        found = Partitions(layout, 80)
        for piece in pieces_of(layout, np.random.default_rng(1), 80, 40, 20):
            found.feed(piece)
        assert found.finish(store).file is None
        pieces = pieces_of(layout, np.random.default_rng(1), 3_000, 8, 500)  # of which little is left
        found = Partitions(layout, 3_000)
        for piece in pieces:
            found.feed(piece)
        run = found.finish(store)
        assert len(run) < 400
        assert run.file is None
        assert same(run, sorted_at_once(layout, pieces))


def test_rows_beyond_the_budget_lie_in_a_file_without_a_name(tmp_path: Path) -> None:
    layout = _LAYOUTS[0]
    pieces = pieces_of(layout, np.random.default_rng(3), 4_000, 900, 1_000)
    with settings.override(state_memory_bytes=1, spill_dir=tmp_path):
        found = Partitions(layout, 4_000)
        for piece in pieces:
            found.feed(piece)
        assert list(tmp_path.iterdir()) == []
        assert same(found.finish(), sorted_at_once(layout, pieces))


@pytest.mark.parametrize("threads", [1, 2])
def test_weights_that_do_not_fit_are_refused(threads: int) -> None:
    layout = _LAYOUTS[0]
    table = pa.table({"k": [1] * 100, "s": ["a"] * 100, "v": [1] * 100}, schema=_SCHEMA)
    with settings.override(threads=threads):
        found = Partitions(layout, 100)
        found.feed(ZSet.packed(layout, table, 2**62))
        with pytest.raises(ConstraintError):
            found.finish()


def test_few_files_are_open_however_many_rows_lie_in_them(tmp_path: Path) -> None:
    layout = Layout(pa.schema([("k", pa.int64()), ("v", pa.int64())]), keys=1)
    rng = np.random.default_rng(5)
    before = len(list(Path("/proc/self/fd").iterdir())) if Path("/proc/self/fd").exists() else 0
    with settings.override(state_memory_bytes=1, spill_dir=tmp_path):
        found = Partitions(layout, 1_000_000)
        table = pa.table({"k": rng.integers(0, 10**6, 100_000), "v": np.arange(100_000)}, schema=layout.schema)
        for _ in range(8):  # 25 MB
            found.feed(ZSet.packed(layout, table))
        if before:
            assert len(list(Path("/proc/self/fd").iterdir())) - before <= 6
        run = found.finish()
    assert run.rows[:, -1].sum() == 800_000
    assert (np.diff(run.hashes.astype(object)) >= 0).all()

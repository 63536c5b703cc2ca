"""Every file that a refresh's commit names is on the disk, with its name, before the commit is there."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.incremental.views.world import World

import headwater as hw
from headwater.base.storage import flushing
from headwater.lake import log
from headwater.lake.partitions import decode_path


@pytest.mark.parametrize("vector_bytes", [0, 1024])
def test_what_a_commit_names_is_flushed_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, vector_bytes: int
) -> None:
    world = World(tmp_path, 2)
    view = world.lake.view("v", "SELECT id, name FROM orders")
    view.refresh()
    world.orders.delete("id < 3")
    world.orders.append([{"id": 100, "name": "x"}])
    place = Path(view.table.location)
    next_version = place / log.commit_path(view.table.version + 1)
    flushed: set[Path] = set()
    really = flushing._flush

    def watched(path: str) -> None:
        assert not next_version.exists(), "it was too early for the commit"
        really(path)
        flushed.add(Path(path))

    monkeypatch.setattr(flushing, "_flush", watched)
    monkeypatch.setenv("HEADWATER_FSYNC", "true")
    with hw.settings.override(small_vector_bytes=vector_bytes):
        assert view.refresh().mode == "incremental"
    commit = log.read_commit(view.table.storage, view.table.version)
    new = [f for f in commit.adds if f.deletion_vector is None]
    named = [decode_path(f.path) for f in new] + [decode_path(c["path"]) for c in commit.cdc]
    vectors = [f.deletion_vector for f in commit.adds if f.deletion_vector is not None]
    named += [v.relative_path() for v in vectors if not v.is_inline]
    assert len(named) == (3 if vector_bytes == 0 else 2)
    for path in named:
        assert place / path in flushed and (place / path).parent in flushed
    assert any(p.name.startswith(f".{next_version.name}") for p in flushed), "the commit itself, under its other name"

"""Who changed the rows of an artefact's table: the log says it, also after an erasure has deleted a part of it."""

from __future__ import annotations

from pathlib import Path

import pytest

import headwater as hw
from headwater.derived.foreign import changed_since
from headwater.lake import checkpoint, erasure, log
from headwater.lake.snapshot import Snapshot
from headwater.lake.table import Table


@pytest.fixture
def table(tmp_path: Path) -> Table:
    lake = hw.connect(tmp_path)
    lake.write("t", [{"a": 1}])
    found = lake.table("t")
    found.append([{"a": 2}])
    return found


def _erased(table: Table) -> Snapshot:
    """As an erasure leaves it: marked, and without an entry of the log before the mark."""
    erasure.mark(table.snapshot)
    base = table.snapshot
    checkpoint.write(base.storage, base.version)
    for version in range(base.version):
        base.storage.delete(log.commit_path(version))
    return table.snapshot


def test_the_log_says_it(table: Table) -> None:
    published = table.snapshot.version
    table.optimize()
    assert changed_since(table.snapshot, published) is None
    assert changed_since(table.snapshot, 0) is None, "it was never published"
    table.append([{"a": 3}])
    assert changed_since(table.snapshot, published) == f"version {published + 2} (WRITE) changed its rows"


def test_an_erasure_says_since_when_the_rows_are_the_same(table: Table) -> None:
    published = table.snapshot.version
    table.optimize()
    erasure.mark(table.snapshot)
    assert changed_since(_erased(table), published) is None
    table.append([{"a": 3}])
    assert "changed its rows" in str(changed_since(table.snapshot, published))


def test_a_change_before_an_erasure_is_not_forgiven(table: Table) -> None:
    published = table.snapshot.version
    table.append([{"a": 3}])
    table.optimize()
    assert "not known any more" in str(changed_since(_erased(table), published))

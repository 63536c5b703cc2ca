"""The log on its own: cleaning it up loses no version that can be read, and its times never run backwards."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import headwater as hw
from headwater.lake import checkpoint, log, snapshot
from headwater.lake.table import Table

ROWS = [{"id": 1}]


def with_expired_log(tmp_path: Path) -> Table:
    """Versions 0 to 6, checkpoints of 2, 4 and 6, and every entry past its retention."""
    t = hw.connect(tmp_path).write("t", ROWS, properties={"delta.checkpointInterval": "2"})
    for _ in range(6):
        t.append(ROWS)
    t.storage.put("_delta_log/kept.txt", b"not ours")
    return t


def expire(t: Table) -> int:
    state = log.load(t.storage)
    state.metadata.configuration["delta.logRetentionDuration"] = "interval 0 seconds"  # type: ignore[index]
    time.sleep(0.005)
    return checkpoint.clean_log(t.storage, state)


def test_what_is_left_can_be_read(tmp_path: Path) -> None:
    t = with_expired_log(tmp_path)
    assert expire(t) == 8, "versions 0 to 5, and the checkpoints of 2 and 4"
    snapshot.forget(t.storage)
    assert t.count() == 7 and t.at(6).count() == 7
    t.append(ROWS)
    assert t.count() == 8 and t.version == 7
    assert t.storage.exists("_delta_log/kept.txt")


def test_commits_stay_while_the_checkpoint_after_them_is_damaged(tmp_path: Path) -> None:
    t = with_expired_log(tmp_path)
    t.storage.put("_delta_log/00000000000000000006.checkpoint.parquet", b"PAR1 no PAR1")
    assert expire(t) == 0
    snapshot.forget(t.storage)
    assert t.count() == 7


def test_times_in_commits_survive_a_checkpoint(tmp_path: Path) -> None:
    t = hw.connect(tmp_path).write("t", ROWS, properties={"delta.enableInCommitTimestamps": "true"})
    t.append(ROWS)
    told = t.snapshot.timestamp_ms
    t.checkpoint()
    time.sleep(0.005)
    (Path(t.location) / log.commit_path(1)).touch()  # the file's own time means nothing
    snapshot.forget(t.storage)
    assert t.snapshot.timestamp_ms == told
    t.append(ROWS)
    assert t.snapshot.timestamp_ms > told


def test_a_vacuum_leaves_a_table_in_a_folder_below_alone(tmp_path: Path) -> None:
    outer = hw.connect(tmp_path).write("sales", ROWS)
    inner = hw.connect(Path(outer.location)).write("orders", ROWS)
    time.sleep(0.005)
    outer.vacuum(retention_hours=0, enforce_retention=False)
    assert inner.count() == 1 and inner.to_pylist() == ROWS


@pytest.mark.parametrize("hint", [b"", b"{", b"[]", b'{"version": "x"}', b'{"version": 99}', b'{"version": 0}'])
def test_a_wrong_hint_misleads_nobody(tmp_path: Path, hint: bytes) -> None:
    t = with_expired_log(tmp_path)
    t.storage.put("_delta_log/_last_checkpoint", hint)
    snapshot.forget(t.storage)
    assert t.count() == 7 and t.at(3).count() == 4
    t.append(ROWS)
    assert t.version == 7

"""State that was written in another boot of the machine is checked before it is used, and computed again if it is not whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import headwater as hw
from headwater.base import settings
from headwater.incremental.circuit import durable
from headwater.incremental.views import live, state_folder

_SQL = "SELECT k, sum(v) AS s FROM t GROUP BY k"


def _opened(path: Path) -> hw.Lake:
    """The lake as another process finds it."""
    live._views.clear()
    return hw.connect(path)


def _damage(path: Path) -> int:
    """Turn bytes of the rows of each run into zeros, as a page that was never flushed is."""
    damaged = 0
    for file in (path / "_headwater").rglob("*.run"):
        data = bytearray(file.read_bytes())
        middle = len(data) // 2
        data[middle : middle + 64] = bytes(64)
        file.write_bytes(bytes(data))
        damaged += 1
    return damaged


@pytest.fixture
def path(tmp_path: Path) -> Path:
    lake = hw.connect(tmp_path)
    lake.write("t", [{"k": i % 50, "v": i} for i in range(2_000)])
    lake.view("spend", _SQL).refresh()
    lake.write("t", [{"k": 1, "v": 5}], mode="append")
    return tmp_path


def test_in_the_same_boot_it_is_used_as_it_is(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headwater.incremental.store.Store.verify", lambda *_: pytest.fail("nothing is checked"))
    view = _opened(path).view("spend")
    assert view.refresh().mode == "incremental"
    assert view.verify().equal


def test_after_another_boot_it_is_used_if_it_is_whole(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_folder, "boot_id", lambda: "another")
    view = _opened(path).view("spend")
    assert view.refresh().mode == "incremental"
    assert view.verify().equal


def test_after_another_boot_it_is_computed_again_if_it_is_not(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_folder, "boot_id", lambda: "another")
    assert _damage(path)
    view = _opened(path).view("spend")
    report = view.refresh()
    assert report.mode == "full"
    assert "its state cannot be used" in report.reason
    assert view.verify().equal


@pytest.mark.parametrize("known", [True, False])
def test_where_the_boot_is_not_known_state_is_flushed(
    known: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = hw.connect(tmp_path)
    lake.write("t", [{"k": 1, "v": 1}])
    view = lake.view("spend", _SQL)
    flushes: list[bool] = []
    save = durable.checkpoint

    def watched(*given: Any, **named: Any) -> str:
        flushes.append(settings.current().fsync)
        return save(*given, **named)

    monkeypatch.setattr(durable, "checkpoint", watched)
    monkeypatch.setattr(state_folder, "boot_id", lambda: "this" if known else None)
    with settings.override(fsync=True):
        view.refresh()
    assert flushes == [not known]
    assert view.verify().equal

"""What comes after what, when an object is put: the flush of others, what its maker waits for, and then the object."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from headwater.base import settings
from headwater.base.storage import LocalStorage, flushing
from headwater.base.storage.interface import ObjectExistsError


@pytest.mark.parametrize("fsync", [True, False])
@pytest.mark.parametrize("after", [(), ("data/a",)])
def test_it_is_there_after_what_is_waited_for(tmp_path: Path, fsync: bool, after: tuple[str, ...]) -> None:
    storage = LocalStorage(tmp_path)
    storage.put("data/a", b"rows", flush=False)
    seen: list[bool] = []
    with settings.override(fsync=fsync):
        storage.put_if_absent("log/1", b"commit", after=after, ready=lambda: seen.append(storage.exists("log/1")))
    assert seen == [False]
    assert storage.get("log/1") == b"commit"
    with pytest.raises(ObjectExistsError), settings.override(fsync=fsync):
        storage.put_if_absent("log/1", b"another", after=after, ready=lambda: None)
    assert storage.get("log/1") == b"commit"


@pytest.mark.parametrize("fsync", [True, False])
def test_nothing_is_put_if_it_fails(tmp_path: Path, fsync: bool) -> None:
    storage = LocalStorage(tmp_path)
    storage.put("data/a", b"rows", flush=False)

    def ready() -> None:
        raise ValueError("the state was not saved")

    with settings.override(fsync=fsync), pytest.raises(ValueError, match="not saved"):
        storage.put_if_absent("log/1", b"commit", after=["data/a"], ready=ready)
    assert os.listdir(tmp_path / "log") == []


def test_the_flush_goes_on_meanwhile_and_its_error_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed: list[str] = []

    def failing(path: str) -> None:
        flushed.append(path)
        raise OSError("the disk is gone")

    monkeypatch.setattr(flushing, "_flush", failing)
    done: list[int] = []
    with pytest.raises(OSError, match="gone"):
        flushing.flush_together(["a", "b"], meanwhile=lambda: done.append(1))
    assert sorted(flushed) == ["a", "b"] and done == [1]

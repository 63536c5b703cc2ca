"""Tests of views write thousands of small files; that they are flushed is tested elsewhere."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.waiting import PATIENCE_S

from headwater.derived import upkeep


@pytest.fixture(autouse=True)
def _no_flushing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWATER_FSYNC", "false")
    monkeypatch.setenv("HEADWATER_PROGRESS", "off")


@pytest.fixture(autouse=True)
def _nothing_in_the_background(_no_flushing: None) -> Iterator[None]:
    """Folders go after a test, so what it left to be done has to be over."""
    yield
    assert upkeep.wait(PATIENCE_S)

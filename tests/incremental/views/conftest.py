"""Tests of views write thousands of small files; that they are flushed is tested elsewhere."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _no_flushing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWATER_FSYNC", "false")
    monkeypatch.setenv("HEADWATER_PROGRESS", "off")

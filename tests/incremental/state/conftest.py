from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _no_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWATER_FSYNC", "false")  # a killed process loses no page of the system's cache

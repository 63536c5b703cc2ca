"""What tests of forgetting share."""

from __future__ import annotations

import pytest

from headwater.incremental import trace


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Traces are swept when a dozen rows have come."""
    monkeypatch.setattr(trace, "_WORTH_SWEEPING", 12)

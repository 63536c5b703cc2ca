"""What the tests of SQL on a lake share."""

from __future__ import annotations

from pathlib import Path

import pytest

import headwater as hw
from headwater.lakehouse import Lake


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """An empty lake."""
    return hw.connect(tmp_path / "lake")

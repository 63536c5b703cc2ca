"""What the lake's tests share: an empty lake on local disk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import headwater as hw
from headwater.lakehouse import Lake


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    """An empty lake; files are not flushed to the disk, which tests need not survive."""
    with hw.settings.override(fsync=False):
        yield hw.connect(tmp_path / "lake")

"""What the tests of SQL on a lake share: an empty lake, on local disk, or on a real S3 server with HEADWATER_TEST_STORAGE=s3."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import headwater as hw
from headwater.lakehouse import Lake

ON_S3 = os.environ.get("HEADWATER_TEST_STORAGE") == "s3"


@pytest.fixture
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lake]:
    """An empty lake; files are not flushed to the disk, which tests need not survive."""
    if ON_S3:
        s3 = request.getfixturevalue("s3")
        yield hw.connect(s3.url("lake"), storage_options=s3.options)
        return
    with hw.settings.override(fsync=False):
        yield hw.connect(tmp_path / "lake")


@pytest.fixture
def on_disk() -> None:
    """For tests that look at a table's files."""
    if ON_S3:
        pytest.skip("looks at the disk")

"""A fresh lake for each test: a local folder, or a prefix of a real S3 server if HEADWATER_TEST_STORAGE=s3."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import headwater as hw
from headwater.lakehouse import Lake


@pytest.fixture
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    if os.environ.get("HEADWATER_TEST_STORAGE") == "s3":
        s3 = request.getfixturevalue("s3")
        return hw.connect(s3.url("lake"), storage_options=s3.options)
    return hw.connect(tmp_path / "lake")

"""A lake on a real S3 server, fresh for each test."""

from __future__ import annotations

import pytest

import headwater as hw
from headwater.lakehouse import Lake
from headwater.testing.s3_server import S3Server


@pytest.fixture
def lake(s3: S3Server) -> Lake:
    return hw.connect(s3.url("lake"), storage_options=s3.options)

"""A lake on a real S3 server, fresh for each test."""

from __future__ import annotations

import pytest

import headwater as hw
from headwater.lakehouse import Lake
from headwater.testing.object_server import ObjectServer


@pytest.fixture
def lake(server: ObjectServer) -> Lake:
    return hw.connect(server.url("lake"), storage_options=server.options)

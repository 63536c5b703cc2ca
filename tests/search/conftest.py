"""What the tests of search share: an empty lake, on local disk, or on a server with HEADWATER_TEST_STORAGE."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.object_servers import ON_SERVER

import headwater as hw
from headwater.lakehouse import Lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Place"]


@dataclass(frozen=True)
class Place:
    """Where the lake of a test lies."""

    url: str
    options: dict[str, str] | None = None

    def connect(self, spark: SparkSession | None = None) -> Lake:
        """The lake."""
        return hw.connect(self.url, storage_options=self.options, spark=spark)


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """Where a lake may lie; files are not flushed to the disk, which tests need not survive."""
    if ON_SERVER:
        server = request.getfixturevalue("server")
        yield Place(server.url("search"), server.options)
        return
    with hw.settings.override(fsync=False):
        yield Place(str(tmp_path / "lake"))


@pytest.fixture
def lake(place: Place) -> Lake:
    """An empty lake."""
    return place.connect()


@pytest.fixture
def on_disk() -> None:
    """For tests that look at files."""
    if ON_SERVER:
        pytest.skip("looks at the disk")

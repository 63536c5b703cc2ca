"""The laws of derived artefacts hold for search indexes, whatever the size of their splits; on object storage too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.search.notes import Notes

from headwater.testing.derived_contract import DerivedContract
from headwater.testing.s3_server import S3Server

pytestmark = pytest.mark.long


class TestOneSplit(DerivedContract):
    seeds = (1,)
    commits = 4
    most_crashes = 16

    def open_subject(self, folder: Path, seed: int) -> Notes:
        return Notes(folder, seed)


class TestManySplits(DerivedContract):
    seeds = (2,)
    commits = 4
    most_crashes = 16

    def open_subject(self, folder: Path, seed: int) -> Notes:
        return Notes(folder, seed, target_rows=8, partitioned=True)


class TestOnS3(DerivedContract):
    seeds = (3,)
    commits = 2
    most_crashes = 6

    @pytest.fixture(autouse=True)
    def _server(self, s3: S3Server, request: pytest.FixtureRequest) -> None:
        self.server: Any = s3
        self.place = request.node.name.replace("[", "_").replace("]", "")

    def open_subject(self, folder: Path, seed: int) -> Notes:
        return Notes(self.server.url(f"index_{self.place}"), seed, options=self.server.options)

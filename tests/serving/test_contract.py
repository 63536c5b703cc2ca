"""The laws of derived artefacts hold for online tables, with one row per key or many, in one file or several."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.serving.stock import Stock

from headwater.testing.derived_contract import DerivedContract

pytestmark = pytest.mark.long


class TestOneRowPerKey(DerivedContract):
    seeds = (1, 2)
    commits = 4

    def open_subject(self, folder: Path, seed: int) -> Stock:
        return Stock(folder, seed)


class TestLargestRowPerKey(DerivedContract):
    seeds = (3,)
    commits = 4

    def open_subject(self, folder: Path, seed: int) -> Stock:
        return Stock(folder, seed, ordered=True)


class TestSeveralParts(DerivedContract):
    seeds = (4,)
    commits = 3
    most_crashes = 16

    def open_subject(self, folder: Path, seed: int) -> Stock:
        return Stock(folder, seed, parts=3)

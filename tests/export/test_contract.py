"""The laws of derived artefacts hold for exports, of a whole table and of some of its rows."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from tests.incremental.views.world import World

from headwater.base.frontier import Frontier
from headwater.export import Export
from headwater.testing.derived_contract import DerivedContract

pytestmark = pytest.mark.long


class Exports:
    """Exports of one table of a world."""

    replacements = ("column", "recreate", "repartition")

    def __init__(self, folder: Path, seed: int, where: str | None, columns: list[str] | None) -> None:
        self.world = World(folder, seed, mapped=True)
        self.where, self.columns = where, columns

    def open(self, name: str) -> Export:
        lake = self.world.lake
        return lake.export(name) if name in lake.artefacts() else self.make(name)

    def make(self, name: str) -> Export:
        return self.world.lake.export(name, "orders", where=self.where, columns=self.columns)

    def commit(self, rng: random.Random) -> None:
        self.world.commit(rng)

    def rewrite(self) -> None:
        self.world.orders.optimize()
        self.world.orders.set_properties({"note": "again"})

    def replace(self, how: str, rng: random.Random) -> None:
        self.world.replace(how, rng)

    def head(self) -> Frontier:
        return self.world.head("orders")


class TestWhole(DerivedContract):
    seeds = (1, 2)
    commits = 4

    def open_subject(self, folder: Path, seed: int) -> Exports:
        return Exports(folder, seed, None, None)


class TestSome(DerivedContract):
    seeds = (3,)
    commits = 4

    def open_subject(self, folder: Path, seed: int) -> Exports:
        return Exports(folder, seed, "amount > 10 OR name IS NULL", ["id", "name", "tags"])

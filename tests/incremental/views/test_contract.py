"""The laws of derived artefacts hold for views, of several shapes of queries."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from tests.incremental.views.world import World

from headwater.base.frontier import Frontier
from headwater.incremental.views import View
from headwater.testing.derived_contract import DerivedContract

pytestmark = pytest.mark.long

SHAPES = {
    "groups": "SELECT name, count(*) AS n, sum(amount) AS total, max(day) AS last FROM orders GROUP BY name",
    "first three": "SELECT * FROM (SELECT name, amount, id, row_number() OVER (PARTITION BY name ORDER BY amount DESC, id) "
    "AS place FROM orders) WHERE place <= 3",
    "join": "SELECT city, name, amount FROM orders JOIN shops ON orders.shop = shops.shop",
}


class Views:
    """Views of one query over the tables of a world."""

    def __init__(self, folder: Path, seed: int, sql: str, policy: str) -> None:
        self.world = World(folder, seed, mapped=True)
        self.sql, self.policy = sql, policy

    def open(self, name: str) -> View:
        lake = self.world.lake
        if name in lake:
            return lake.view(name)
        return lake.view(name, self.sql, policy=self.policy)  # type: ignore[arg-type]

    def commit(self, rng: random.Random) -> None:
        self.world.commit(rng)

    def rewrite(self) -> None:
        for name in self.open("it").sources:
            self.world.lake.table(name).optimize()
            self.world.lake.table(name).set_properties({"note": "again"})

    replacements = ("column", "recreate", "repartition")

    def replace(self, how: str, rng: random.Random) -> None:
        self.world.replace(how, rng)

    def head(self) -> Frontier:
        return self.world.head(*(("orders", "shops") if "shops" in self.sql else ("orders",)))


class TestGroups(DerivedContract):
    seeds = (1,)
    commits = 4
    most_crashes = 20

    def open_subject(self, folder: Path, seed: int) -> Views:
        return Views(folder, seed, SHAPES["groups"], "auto")


class TestJoin(DerivedContract):
    seeds = (2,)
    commits = 3
    most_crashes = 12

    def open_subject(self, folder: Path, seed: int) -> Views:
        return Views(folder, seed, SHAPES["join"], "strict")


class TestFirstThree(DerivedContract):
    seeds = (4,)
    commits = 3
    most_crashes = 12

    def open_subject(self, folder: Path, seed: int) -> Views:
        return Views(folder, seed, SHAPES["first three"], "auto")


class TestAnew(DerivedContract):
    seeds = (3,)
    commits = 3
    most_crashes = 6

    def open_subject(self, folder: Path, seed: int) -> Views:
        return Views(folder, seed, SHAPES["groups"], "full")

    @pytest.mark.skip(reason="it always computes anew")
    def test_law_7_a_rewrite_changes_nothing(self, tmp_path: Path) -> None: ...

"""The laws hold on object storage too, for views of three shapes, for exports, online tables and feature tables."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from tests.incremental.views.test_contract import SHAPES
from tests.incremental.views.world import World
from tests.serving.stock import Stock
from tests.timeseries.features.feature_world import PaymentWorld
from tests.timeseries.features.test_contract import Features, rated

from headwater.base.frontier import Frontier
from headwater.derived.artefact import Artefact
from headwater.testing.derived_contract import DerivedContract
from headwater.testing.object_server import ObjectServer


class Bucket:
    """A world in a bucket; each name is a view of the shape, or an export."""

    replacements = ("column", "recreate", "repartition")

    def __init__(self, place: str, server: ObjectServer, seed: int, shape: str) -> None:
        self.world = World(server.url(place), seed, options=server.options, mapped=True)
        self.shape = shape

    def open(self, name: str) -> Artefact:
        lake = self.world.lake
        if self.shape == "export":
            there = name in lake.catalog.recorded()
            return lake.export(name) if there else lake.export(name, "orders", where="amount > 10")
        return lake.view(name) if name in lake else lake.view(name, SHAPES[self.shape])

    def commit(self, rng: random.Random) -> None:
        self.world.commit(rng)

    def rewrite(self) -> None:
        for name in self.head():
            self.world.lake.table(name).optimize()
            self.world.lake.table(name).set_properties({"note": "again"})

    def replace(self, how: str, rng: random.Random) -> None:
        self.world.replace(how, rng)

    def head(self) -> Frontier:
        return self.world.head(*(("orders", "shops") if self.shape == "join" else ("orders",)))


class OnS3(DerivedContract):
    seeds = (1,)
    commits = 2
    most_crashes = 6
    shape = ""

    @pytest.fixture(autouse=True)
    def _server(self, server: ObjectServer, request: pytest.FixtureRequest) -> None:
        self.server = server
        self.place = request.node.name.replace("[", "_").replace("]", "")

    def open_subject(self, folder: Path, seed: int) -> Bucket:
        return Bucket(f"{self.shape.replace(' ', '_')}_{self.place}", self.server, seed, self.shape)


class TestGroups(OnS3):
    shape = "groups"


class TestJoin(OnS3):
    shape = "join"


class TestFirstThree(OnS3):
    shape = "first three"


class TestExport(OnS3):
    shape = "export"


class TestOnline(OnS3):
    def open_subject(self, folder: Path, seed: int) -> Stock:  # type: ignore[override]
        return Stock(self.server.url(f"online_{self.place}"), seed, options=self.server.options)


class TestFeatures(OnS3):
    def open_subject(self, folder: Path, seed: int) -> Features:  # type: ignore[override]
        place = self.server.url(f"features_{self.place}")
        world = PaymentWorld(place, seed, options=self.server.options, mapped=True)
        return Features(world, rated, "payments", "rates")

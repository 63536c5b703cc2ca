"""The laws of derived artefacts hold for feature tables: bounded and unbounded ones, with one source and with two."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.timeseries.features.feature_world import PaymentWorld

from headwater.base.frontier import Frontier
from headwater.testing.derived_contract import DerivedContract
from headwater.timeseries.features import FeatureTable

pytestmark = pytest.mark.long


def velocity(lake: Any) -> Any:
    """Bounded in time."""
    payments = lake.stream("payments", time="ts", by="card")
    return payments.rolling("5m", n="count(*)", spent="sum(amount)").select("id", "card", "ts", "n", "spent", "amount")


def rated(lake: Any) -> Any:
    """Two sources, one of them without a bound."""
    payments, rates = lake.stream("payments", time="ts", by="card"), lake.stream("rates", time="ts", by="card")
    return payments.filter("shop < 3").join_asof(rates).shift("amount")


def some(lake: Any) -> Any:
    """Linear."""
    return lake.stream("payments").filter("amount > 0 OR amount IS NULL").select("card", "amount", twice="2 * amount")


class Features:
    """Feature tables over a world."""

    replacements = ("column", "recreate", "repartition")

    def __init__(self, world: PaymentWorld, build: Callable[[Any], Any], *names: str) -> None:
        self.world, self.build, self.names = world, build, names

    def open(self, name: str) -> FeatureTable:
        return self.world.lake.features(name, self.build)

    def commit(self, rng: random.Random) -> None:
        self.world.commit(rng)

    def rewrite(self) -> None:
        self.world.rewrite()

    def replace(self, how: str, rng: random.Random) -> None:
        self.world.replace(how, rng)

    def head(self) -> Frontier:
        return self.world.head(*self.names)


class TestVelocity(DerivedContract):
    seeds = (1,)
    commits = 4
    most_crashes = 24

    def open_subject(self, folder: Path, seed: int) -> Features:
        return Features(PaymentWorld(folder, seed, mapped=True), velocity, "payments")


class TestRated(DerivedContract):
    seeds = (2,)
    commits = 3
    most_crashes = 16

    def open_subject(self, folder: Path, seed: int) -> Features:
        return Features(PaymentWorld(folder, seed, mapped=True), rated, "payments", "rates")


class TestSome(DerivedContract):
    seeds = (3,)
    commits = 3
    most_crashes = 16

    def open_subject(self, folder: Path, seed: int) -> Features:
        return Features(PaymentWorld(folder, seed, mapped=True), some, "payments")

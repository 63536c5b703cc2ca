"""Following changes gives what computing from scratch gives, for every operator of streams; and each says which of both it does."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.amounts import everyday
from tests.timeseries.features.feature_world import PaymentWorld

import headwater as hw
from headwater.timeseries.features.refreshing import FeaturePlan

COMMITS = everyday(4, soak=60)
SEEDS = everyday(1, soak=20)


def pay(lake: Any) -> Any:
    return lake.stream("payments", time="ts", by="card")


def rates(lake: Any) -> Any:
    return lake.stream("rates", time="ts", by="card")


def first_two(rows: pa.Table) -> pa.Table:
    return rows.sort_by("ts").slice(0, 2).select(["card", "id"])


def both(left: pa.Table, right: pa.Table) -> pa.Table:
    return pa.table({"left": [left.num_rows], "right": [right.num_rows]})


class Counting:
    """Numbers the rows of a series."""

    def start(self, key: dict[str, Any]) -> dict[str, Any]:
        return {**key, "n": 0}

    def step(self, state: dict[str, Any], batch: pa.Table) -> None:
        state["n"] += batch.num_rows

    def finish(self, state: dict[str, Any]) -> pa.Table:
        return pa.table({"card": pa.array([state["card"]], pa.string()), "n": pa.array([state["n"]], pa.int64())})


PAIR = pa.schema([("card", pa.string()), ("id", pa.int64())])
CONSTANT = pa.table({"shop": [1, 2], "city": ["Ulm", "Rom"]})

# Every operator, by the reach that `plan` tells: what comes of the changed rows, a stretch, from the change on, whole keys.
FOLLOWED: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "filter": ("changed rows", lambda k: pay(k).filter("amount > 0")),
    "select": ("changed rows", lambda k: pay(k).select("card", "ts", twice="amount * 2")),
    "computed": ("changed rows", lambda k: pay(k).with_columns(more=(lambda t: pc.add(t["amount"], 1), pa.int64()))),
    "transform": ("changed rows", lambda k: pay(k).transform(lambda t: t.select(["id"]), schema={"id": pa.int64()})),
    "clip": ("changed rows", lambda k: pay(k).clip("amount", lower=-5, upper=5)),
    "union": ("changed rows", lambda k: pay(k).select("card", "ts").union(rates(k).select("card", "ts"))),
    "between": ("changed rows", lambda k: pay(k).between("2026-01-01 00:10", "2026-01-01 00:50")),
    "rolling": ("within reach", lambda k: pay(k).rolling("5m", n="count(*)", spent="sum(amount)")),
    "rolling ahead": ("within reach", lambda k: pay(k).rolling("3m", ahead="4m", top="max(amount)")),
    "rolling sql": ("within reach", lambda k: pay(k).rolling("5m", n="max(amount + shop)")),
    "range stats": ("within reach", lambda k: pay(k).range_stats("6m", columns="amount")),
    "sliding": ("within reach", lambda k: pay(k).window(hw.Sliding("4m")).agg(n="count(*)")),
    "tumbling": ("within reach", lambda k: pay(k).window(hw.Tumbling("10m")).agg(n="count(*)", s="sum(amount)")),
    "hopping": ("within reach", lambda k: pay(k).window(hw.Hopping("10m", every="3m")).agg(n="count(*)")),
    "grouped stats": ("within reach", lambda k: pay(k).grouped_stats("10m", columns="amount")),
    "running window": (
        "within reach",
        lambda k: pay(k).window(hw.Tumbling("10m"), trigger=hw.OnEvent()).agg(n="count(*)"),
    ),
    "resample": ("within reach", lambda k: pay(k).resample("10m", columns="amount")),
    "vwap windows": ("within reach", lambda k: pay(k).vwap("amount", "shop", every="10m")),
    "as of, tolerance": ("within reach", lambda k: pay(k).join_asof(rates(k), tolerance="10m")),
    "as of, nearest": ("within reach", lambda k: pay(k).join_asof(rates(k), direction="nearest", tolerance="9m")),
    "range join": ("within reach", lambda k: pay(k).join_range(rates(k), before="9m", after="2m")),
    "two of them": (
        "within reach",
        lambda k: pay(k).rolling("2m", n="count(*)").join_asof(rates(k), tolerance="10m").rolling("3m", m="sum(n)"),
    ),
    "with itself": ("within reach", lambda k: pay(k).join_range(pay(k), before="2m")),
    "events": (
        "within reach",
        lambda k: pay(k).match(
            events={"a": "amount > 10", "b": "amount < a.amount"}, within="8m", measures={"b": "b.id"}
        ),
    ),
    "z-score": ("within reach", lambda k: pay(k).zscore("amount", "8m")),
    "ema": ("from the change on", lambda k: pay(k).ema("amount", alpha=0.5)),
    "cumulative": ("from the change on", lambda k: pay(k).cumulative(total="sum(amount)")),
    "shift": ("from the change on", lambda k: pay(k).shift("amount", 2)),
    "shift ahead": ("as far as the change", lambda k: pay(k).shift("amount", -1)),
    "diff": ("from the change on", lambda k: pay(k).diff("amount")),
    "lookback": ("from the change on", lambda k: pay(k).lookback("amount", 2)),
    "rolling rows": ("from the change on", lambda k: pay(k).rolling(rows=3, spent="sum(amount)")),
    "row windows": ("from the change on", lambda k: pay(k).window(hw.Rows(3)).agg(n="sum(amount)")),
    "vwap": ("from the change on", lambda k: pay(k).vwap("amount", "shop")),
    "as of": ("from the change on", lambda k: pay(k).join_asof(rates(k))),
    "as of, forward": ("as far as the change", lambda k: pay(k).join_asof(rates(k), direction="forward")),
    "as of, skipping": ("from the change on", lambda k: pay(k).join_asof(rates(k), skip_nulls=True, how="inner")),
    "pattern": (
        "all rows of their card",
        lambda k: pay(k).match("a up+", {"up": "amount > PREV(amount)"}, measures={"n": "count(*)"}),
    ),
    "session": ("all rows of their card", lambda k: pay(k).window(hw.Session("3m")).agg(n="count(*)")),
    "interpolate": ("all rows of their card", lambda k: pay(k).interpolate("10m", columns="amount")),
    "states": ("all rows of their card", lambda k: pay(k).state_intervals("shop")),
    "latest": ("all rows of their card", lambda k: pay(k).latest(2)),
    "earliest": ("all rows of their card", lambda k: pay(k).earliest(1)),
    "series": ("all rows of their card", lambda k: pay(k).describe_series().select("card", "rows")),
    "fourier": ("all rows of their card", lambda k: pay(k).filter("amount IS NOT NULL").fourier("amount")),
    "groups": ("all rows of their card", lambda k: pay(k).group("card").agg(n="count(*)", s="sum(amount)")),
    "two keys": ("all rows of their card, shop", lambda k: pay(k).group("card", "shop").sum("amount")),
    "distinct": ("all rows of their card, shop", lambda k: pay(k).distinct("card", "shop")),
    "top of each": ("all rows of their card", lambda k: pay(k).top_k(2, by="ts", per="card")),
    "join": ("all rows of their card", lambda k: pay(k).join(rates(k).group("card").agg(r="max(rate)"), "card")),
    "full join": (
        "all rows of their card",
        lambda k: pay(k).join(rates(k).group("card").agg(r="max(rate)"), "card", how="full"),
    ),
    "constant": ("shop", lambda k: pay(k).join(k.stream(CONSTANT), "shop", how="left")),
    "time lost": ("all rows of their card", lambda k: pay(k).rolling("5m", n="count(*)").select("card", "n")),
}
WHOLE: dict[str, Callable[[Any], Any]] = {
    "total": lambda k: pay(k).agg(n="count(*)", s="sum(amount)"),
    "top": lambda k: pay(k).top_k(3, by="id"),
    "quantiles": lambda k: pay(k).quantiles("amount"),
    "describe": lambda k: pay(k).describe("amount"),
    "covariance": lambda k: pay(k).covariance(["amount", "shop"]),
    "apply": lambda k: pay(k).group("card").apply(first_two, schema=PAIR),
    "stateful": lambda k: pay(k).stateful_transform(Counting(), pa.schema([("card", pa.string()), ("n", pa.int64())])),
    "cogroup": lambda k: (
        pay(k).group("card").cogroup(rates(k).group("card"), both, schema={"left": pa.int64(), "right": pa.int64()})
    ),
    "key lost": lambda k: pay(k).rolling("5m", n="count(*)").select("n", "id").group("n").agg(m="count(*)"),
}


@pytest.mark.long
@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("part", range(3))
def test_changes_give_what_computing_from_scratch_gives(tmp_path: Path, seed: int, part: int) -> None:
    world, rng = PaymentWorld(tmp_path, seed), random.Random(seed)
    names = [name for at, name in enumerate(FOLLOWED) if at % 3 == part]
    tables = {name: world.lake.features(f"f{at}", FOLLOWED[name][1]) for at, name in enumerate(names)}
    for table in tables.values():
        assert table.refresh().mode == "full"
    for _ in range(COMMITS):
        for _ in range(rng.randint(1, 2)):
            world.commit(rng)
        for name, table in tables.items():
            planned = table.plan()
            report = table.refresh()
            assert report.mode == planned.mode
            assert report.mode in ("incremental", "noop"), f"{name}: {report.reason}"
            if planned.mode == "incremental":
                assert isinstance(planned, FeaturePlan)
                assert FOLLOWED[name][0] in planned.reach, f"{name}: {planned.reach}"
            checked = table.verify()
            assert checked.equal, f"{name}: {checked}"


@pytest.mark.long
def test_what_cannot_be_followed_is_computed_from_scratch_and_says_why(tmp_path: Path) -> None:
    world, rng = PaymentWorld(tmp_path, 3), random.Random(3)
    tables = {
        name: world.lake.features(f"w{at}", build, refresh=True) for at, (name, build) in enumerate(WHOLE.items())
    }
    for _ in range(2):
        world.payments.append(world._payments(rng, 2))
        for name, table in tables.items():
            planned = table.plan()
            assert planned.mode == "full", name
            assert "looks at all rows" in planned.reason or "may touch every row" in planned.reason, planned.reason
            report = table.refresh()
            assert report.mode == "full"
            assert table.verify().equal, name


def test_every_operator_is_in_one_of_the_lists(tmp_path: Path) -> None:
    """A new operator has to be put under the oracle."""
    from headwater.timeseries import operators

    folder = Path(str(operators.__file__)).parent
    world = PaymentWorld(tmp_path)
    seen: set[str] = set()

    def walk(node: Any) -> None:
        seen.add(type(node).__module__.rpartition(".")[2])
        for below in node.inputs:
            walk(below)

    from headwater.timeseries.features.source_lake import SourceLake

    environment = world.lake.environment()
    lake = SourceLake(environment, lambda name: environment.table(name).snapshot, {})
    for build in [*(one for _, one in FOLLOWED.values()), *WHOLE.values()]:
        walk(build(lake).plan)
    known = {path.stem for path in folder.glob("*.py")}
    parts = {"__init__", "functions", "rolling", "time_join", "computed", "zscore"}  # of others
    never = {
        "nearest",
        "nearest_sharded",
        "disjoint",
        "thinned",
        "known_asof",
    }  # vectors, intervals, pictures and training
    assert known - seen - parts - never == set()

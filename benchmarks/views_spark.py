"""A view that Spark builds and that both runtimes refresh, against Spark SQL computing its query each time: join, group, count, sum, max.

Three tables: the first build; refreshes of 0.01 to 50% of the rows by Spark's tasks, in process on the same state, and by Spark computing the query
again; and a refresh of a fixed size on states of several sizes. CPU seconds are those of the driver, the JVM and Python's workers together. Before a
figure is printed, the view is verified. ``make bench`` runs it, or::

    python benchmarks/views_spark.py --rows 1000000 --rounds 1
    python benchmarks/views_spark.py --shares 0.001 --sections build,curve
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil  # type: ignore[import-untyped]
import pyarrow as pa

import headwater as hw
from headwater.derived import upkeep
from headwater.incremental.views import View

QUERY = (
    "SELECT region, day, count(*) AS n, sum(amount) AS total, max(amount) AS top "
    "FROM orders JOIN customers ON customer = id GROUP BY region, day"
)
_SECTIONS = ("build", "curve", "state")
_CUSTOMERS = 50  # orders of each, on average


def several(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def cpu_seconds() -> float:
    """Of this process and of all that it has started, those that have ended with them."""
    me = psutil.Process()
    total = 0.0
    for process in [me, *me.children(recursive=True)]:
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total


def measured(work: Callable[[], Any]) -> tuple[float, float, Any]:
    cpu, start = cpu_seconds(), time.perf_counter()
    found = work()
    return cpu_seconds() - cpu, time.perf_counter() - start, found


class World:
    """Orders and customers in a lake with a session."""

    def __init__(self, rows: int, session: Any) -> None:
        self.folder = tempfile.mkdtemp(prefix="headwater-bench-")
        self.lake = hw.connect(self.folder, spark=session)
        self.rows = rows
        self.random = np.random.default_rng(7)
        self.customers = max(10, rows // _CUSTOMERS)
        names = [f"region {i % 200}" for i in range(self.customers)]
        self.lake.write("customers", pa.table({"id": pa.array(range(self.customers)), "region": names}))
        self.orders = self.lake.write("orders", self.made(rows))

    def made(self, rows: int) -> pa.Table:
        draw = self.random.integers
        return pa.table(
            {"customer": draw(0, self.customers, rows), "day": draw(0, 300, rows), "amount": draw(0, 10_000, rows)}
        )

    def change(self, rows: int) -> None:
        """New orders: half as many as are deleted and inserted together."""
        self.orders.append(self.made(max(1, rows)))

    def query(self) -> None:
        self.lake.sql(QUERY, engine="spark").to_arrow()

    def view(self, name: str) -> View:
        return self.lake.view(name, QUERY)

    def close(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


def refreshed(view: View, engine: Any) -> Callable[[], object]:
    def work() -> None:
        view.refresh(engine=engine)
        upkeep.wait()  # in process state may be built and saved behind the rows

    return work


def build(world: World, rounds: int) -> dict[str, Any]:
    spark, built, local = [], [], []
    world.query()
    world.view("warm").refresh(engine="spark")
    for number in range(rounds):
        spark.append(measured(world.query))
        view = world.view(f"b{number}")
        built.append(measured(refreshed(view, "spark")))
        other = world.view(f"l{number}")
        local.append(measured(refreshed(other, "local")))
        assert view.verify().equal
        view.drop()
        other.drop()
    figures = {
        name: _median(some) for name, some in (("spark sql", spark), ("built by spark", built), ("local", local))
    }
    print(f"\nfirst build of {world.rows:,} orders, state kept\n{'':<18}{'CPU s':>9}{'wall s':>9}{'CPU ratio':>11}")
    for name, (cpu, wall) in figures.items():
        print(f"{name:<18}{cpu:>9.2f}{wall:>9.2f}{cpu / figures['spark sql'][0]:>11.2f}")
    return figures


def curve(world: World, shares: list[float], rounds: int) -> dict[str, Any]:
    view = world.view("curve")
    view.refresh(engine="spark")
    twin = world.view("twin")
    twin.refresh(engine="spark")
    twin.refresh(engine="local")
    world.change(10)
    twin.refresh(engine="local")  # which maps the state
    view.refresh(engine="spark")
    found: dict[str, Any] = {}
    print(
        f"\nrefresh of {world.rows:,} orders, CPU s\n{'change':>9}{'query':>9}{'spark':>9}{'local':>9}{'query/spark':>13}{'query/local':>13}"
    )
    for share in shares:
        samples: dict[str, list[Any]] = {"query": [], "spark": [], "local": []}
        for _ in range(rounds):
            world.change(round(share * world.rows))
            samples["query"].append(measured(world.query))
            samples["spark"].append(measured(refreshed(view, "spark")))
            samples["local"].append(measured(refreshed(twin, "local")))
        assert view.verify().equal
        assert twin.verify().equal
        cpu = {name: max(0.01, _median(some)[0]) for name, some in samples.items()}
        found[f"{share}"] = {name: _median(some) for name, some in samples.items()}
        ratios = cpu["query"] / cpu["spark"], cpu["query"] / cpu["local"]
        print(
            f"{share:>9.2%}" + "".join(f"{v:>9.2f}" for v in cpu.values()) + "".join(f"{r:>13.1f}" for r in ratios),
            flush=True,
        )
    return found


def state(session: Any, sizes: list[int], change: int, rounds: int) -> dict[str, Any]:
    print(f"\nrefresh of {change:,} new orders by state, CPU s\n{'orders':>12}{'query':>9}{'spark':>9}{'local':>9}")
    found = {}
    for rows in sizes:
        world = World(rows, session)
        figures = curve_quietly(world, change, rounds)
        world.close()
        found[str(rows)] = figures
        print(f"{rows:>12,}" + "".join(f"{figures[n][0]:>9.2f}" for n in ("query", "spark", "local")), flush=True)
    return found


def curve_quietly(world: World, change: int, rounds: int) -> dict[str, Any]:
    view, twin = world.view("v"), world.view("t")
    for one in (view, twin):
        one.refresh(engine="spark")
    samples: dict[str, list[Any]] = {"query": [], "spark": [], "local": []}
    for number in range(rounds + 1):
        world.change(change)
        query = measured(world.query)
        spark, local = measured(refreshed(view, "spark")), measured(refreshed(twin, "local"))
        if number:
            for name, sample in (("query", query), ("spark", spark), ("local", local)):
                samples[name].append(sample)
    assert view.verify().equal
    assert twin.verify().equal
    return {name: _median(some) for name, some in samples.items()}


def _median(samples: list[Any]) -> tuple[float, float]:
    return statistics.median(s[0] for s in samples), statistics.median(s[1] for s in samples)


def options_of(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000, help="orders")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--shares", type=several, default=["0.0001", "0.001", "0.01", "0.1", "0.5"], help="of the rows")
    parser.add_argument("--sections", type=several, default=list(_SECTIONS), help=f"some of {', '.join(_SECTIONS)}")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    options = parser.parse_args(arguments)
    for name in options.sections:
        if name not in _SECTIONS:
            parser.error(f"there is no `{name}`; there are: {', '.join(_SECTIONS)}")
    options.shares = [float(s) for s in options.shares]
    return options


def main() -> None:
    options = options_of()
    os.environ.setdefault("HEADWATER_PROGRESS", "off")
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}", flush=True)
    session = hw.spark("local[2]")
    figures: dict[str, Any] = {}
    world = World(options.rows, session)
    if "build" in options.sections:
        figures["build"] = build(world, options.rounds)
    if "curve" in options.sections:
        figures["curve"] = curve(world, options.shares, options.rounds)
    world.close()
    if "state" in options.sections:
        sizes = [options.rows // 16, options.rows // 4, options.rows]
        figures["state"] = state(session, sizes, max(1, options.rows // 1_000), options.rounds)
    if options.json:
        options.json.write_text(json.dumps({"rows": options.rows, "sections": figures}, indent=1))


if __name__ == "__main__":
    main()

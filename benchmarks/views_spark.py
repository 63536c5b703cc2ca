"""A view that Spark builds and that both runtimes refresh, against Spark SQL computing its query each time: join, group, count, sum, max.

Three tables: the first build; refreshes of 0.01 to 50% of the rows by Spark's tasks, in process on the same state, and by Spark computing the query
again, with where these cross and what `auto` goes by; and a refresh of a fixed size on states of several sizes. Spark refreshes few rows in one task;
with ``--exchange`` the curve also has refreshes that always exchange their rows. CPU seconds are those of the driver, the JVM and Python's workers
together. Before a figure is printed, the view is verified. ``make bench`` runs it, or::

    python benchmarks/views_spark.py --rows 1000000 --rounds 1 --pictures build/curves
    python benchmarks/views_spark.py --shares 0.001 --sections build,curve

``--paper`` adds what a run on a hundred executors would cost, computed from what is measured of a row here (`spark_views.paper`).
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

from spark_views import curves
from spark_views.paper import Cluster, paper_of, table_of
from spark_views.per_row import per_row_of
from spark_views.world import World, measured, median, refreshed

import headwater as hw
from headwater.base import settings
from headwater.incremental.views.spark.choice import shard_count

_SECTIONS = ("build", "curve", "state")


def several(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


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
    figures = {name: median(some) for name, some in (("spark sql", spark), ("built by spark", built), ("local", local))}
    print(f"\nfirst build of {world.rows:,} orders, state kept\n{'':<18}{'CPU s':>9}{'wall s':>9}{'CPU ratio':>11}")
    for name, (cpu, wall) in figures.items():
        print(f"{name:<18}{cpu:>9.2f}{wall:>9.2f}{cpu / figures['spark sql'][0]:>11.2f}")
    return figures


def curve(world: World, shares: list[float], rounds: int, *, exchange: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """What refreshes cost, and what `auto` would have done. Views are strict, so that they follow the changes wherever the curve goes."""
    ways: dict[str, Any] = {"spark": "spark", **({"exchange": "spark"} if exchange else {}), "local": "local"}
    views = {name: world.view(f"curve_{name}", "strict") for name in ways}
    for one in views.values():
        one.refresh(engine="spark")
    views["local"].refresh(engine="local")
    world.change(10)
    for name, one in views.items():
        one.refresh(engine=ways[name])  # which maps the state, if it is in process
    tasks = max(2, int(str(world.lake.spark.conf.get("spark.sql.shuffle.partitions", "8"))))
    found: dict[str, Any] = {}
    auto: dict[str, Any] = {"view_spark_rows": settings.current().view_spark_rows, "engines": {}}
    columns = "".join(f"{name:>10}" for name in ("query", *ways))
    ratios = "".join(f"{f'query/{name}':>16}" for name in ways)
    print(f"\nrefresh of {world.rows:,} orders, CPU s\n{'change':>9}{columns}{ratios}{'auto takes':>12}")
    for share in shares:
        samples: dict[str, list[Any]] = {name: [] for name in ("query", *ways)}
        rows = round(share * world.rows)
        for _ in range(rounds):
            world.change(rows)
            plan = views["local"].plan()
            auto["engines"][f"{share}"], auto["crossover"] = plan.engine, plan.crossover
            samples["query"].append(measured(world.query))
            for name, engine in ways.items():
                shards = shard_count(rows, tasks, follows=False) if name == "exchange" else None
                samples[name].append(measured(refreshed(views[name], engine, shards=shards)))
        for one in views.values():
            assert one.verify().equal
        cpu = {name: max(0.01, median(some)[0]) for name, some in samples.items()}
        found[f"{share}"] = {name: median(some) for name, some in samples.items()}
        line = "".join(f"{seconds:>10.2f}" for seconds in cpu.values())
        times = "".join(f"{cpu['query'] / cpu[name]:>16.1f}" for name in ways)
        print(f"{share:>9.2%}{line}{times}{plan.engine:>12}", flush=True)
    return found, auto


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
    view, twin = world.view("v", "strict"), world.view("t", "strict")
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
    return {name: median(some) for name, some in samples.items()}


def options_of(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", "--orders", type=int, default=10_000_000, help="orders")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--shares", type=several, default=["0.0001", "0.001", "0.01", "0.1", "0.5"], help="of the rows")
    parser.add_argument("--sections", type=several, default=list(_SECTIONS), help=f"some of {', '.join(_SECTIONS)}")
    parser.add_argument("--exchange", action="store_true", help="refresh another view with its rows always exchanged")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    parser.add_argument("--pictures", type=Path, metavar="DIR", help="draw the curves there, as SVG")
    parser.add_argument(
        "--paper", action="store_true", help="what a run on 100 executors would cost, by what is measured of a row"
    )
    parser.add_argument(
        "--from", dest="known", type=Path, metavar="JSON", help="measure nothing: figures of an earlier run"
    )
    options = parser.parse_args(arguments)
    for name in options.sections:
        if name not in _SECTIONS:
            parser.error(f"there is no `{name}`; there are: {', '.join(_SECTIONS)}")
    options.shares = [float(s) for s in options.shares]
    return options


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """All figures that were asked for."""
    os.environ.setdefault("HEADWATER_PROGRESS", "off")
    machine = f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before"
    print(machine, flush=True)
    session = hw.spark("local[2]")
    change = max(1, options.rows // 1_000)
    found: dict[str, Any] = {"rows": options.rows, "change": change, "machine": machine, "sections": {}}
    sections = found["sections"]
    if {"build", "curve"} & set(options.sections):
        world = World(options.rows, session)
        if "build" in options.sections:
            sections["build"] = build(world, options.rounds)
        if "curve" in options.sections:
            sections["curve"], found["auto"] = curve(world, options.shares, options.rounds, exchange=options.exchange)
            print("\n" + "\n".join(curves.crossovers(found)), flush=True)
        world.close()
    if "state" in options.sections:
        sizes = [options.rows // 16, options.rows // 4, options.rows]
        sections["state"] = state(session, sizes, change, options.rounds)
    if options.paper:
        sections["paper"] = per_row_of(session, max(4_000, options.rows // 2), options.rounds)
    return found


def main() -> None:
    options = options_of()
    figures = json.loads(options.known.read_text()) if options.known else measure(options)
    if options.paper:
        if "paper" not in figures["sections"]:
            raise SystemExit(f"{options.known} was measured without --paper")
        print("\n" + table_of(paper_of(figures, Cluster())))
    if options.pictures:
        options.pictures.mkdir(parents=True, exist_ok=True)
        for name, chart in curves.charts(figures).items():
            (options.pictures / f"{name}.svg").write_text(chart.svg())
            print(f"{options.pictures / name}.svg")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()

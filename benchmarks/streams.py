"""Time series on Spark: joins in time, windows and features, against Spark's own forms, tempo, polars and DuckDB.

Everything that runs on Spark runs in one session, in turns; CPU is that of this process, its JVM and all workers. Answers are checked to be
equal before a number is printed. tempo is measured where it is installed (``pip install dbl-tempo ipython`` into a folder of
its own, ``--tempo FOLDER``). ``make bench`` runs it, or::

    python benchmarks/streams.py --only asof --quotes 5000000 --trades 1000000 --rounds 3
    python benchmarks/streams.py --only operators --rows 5000000
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from importlib.metadata import version
from pathlib import Path

from pyspark.sql import SparkSession
from queries.measuring import Report

import headwater as hw

SECTIONS = ("asof", "operators", "tpch")


def several(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def options_of(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", type=several, default=list(SECTIONS), help="with commas between them")
    parser.add_argument("--quotes", type=int, default=5_000_000)
    parser.add_argument("--trades", type=int, default=1_000_000)
    parser.add_argument("--rows", type=int, default=500_000, help="of the operators' table")
    parser.add_argument("--scale", type=float, default=1.0, help="TPC-H's scale factor")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--limit", type=float, default=60, help="seconds after which a peer of an operator is stopped")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--tempo", type=Path, help="the folder that tempo is installed in")
    parser.add_argument("--operators", type=several, default=[], help="only those whose names begin so")
    parser.add_argument("--queries", type=several, default=[], help="only these of TPC-H: q1,q6")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    options = parser.parse_args(arguments)
    for name in options.only:
        if name not in SECTIONS:
            parser.error(f"there is no `{name}`; there are: {', '.join(SECTIONS)}")
    return options


def main(arguments: list[str] | None = None) -> None:
    options = options_of(arguments)
    if options.tempo is not None:
        sys.path.append(str(options.tempo))
    load = os.getloadavg()[0]
    versions = {n: version(n) for n in ("pyspark", "polars", "duckdb", "pyarrow", "numpy")}
    print(f"{os.cpu_count()} cores, load {load:.1f}; " + ", ".join(f"{k} {v}" for k, v in versions.items()), flush=True)
    if load > (os.cpu_count() or 1) / 2:
        print("others are at work on this machine: walls are too long, and ratios of walls uncertain", flush=True)
    session = hw.spark(f"local[{options.cores}]", config={"spark.driver.memory": "6g"})
    body = {"load": load, "cores": options.cores, "versions": versions, "sections": {}}
    for name in options.only:
        report = _section(name, options, session)
        print(report.text(), flush=True)
        body["sections"][name] = report.as_dict()
    if options.json:
        options.json.write_text(json.dumps(body, indent=1, default=str) + "\n")
    session.stop()


def _section(name: str, options: argparse.Namespace, session: SparkSession) -> Report:
    if name == "tpch":
        from streaming import tpch

        return tpch.run(session, options.scale, options.rounds, only=options.queries)
    if name == "operators":
        from streaming import operators

        return operators.run(
            session,
            options.rows,
            options.rounds,
            limit_s=options.limit,
            tempo=options.tempo is not None,
            only=options.operators,
        )
    from streaming import asof
    from streaming.market import Market

    market = Market(session, options.quotes, options.trades)
    try:
        full = options.quotes >= 5_000_000
        return asof.run(market, options.rounds, full_size=full, tempo=options.tempo is not None)
    finally:
        market.close()


if __name__ == "__main__":
    main()

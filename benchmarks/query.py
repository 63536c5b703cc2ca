"""SQL on the lake against named peers, in four sections.

    tpch      the 22 queries of TPC-H on Delta, through ``lake.sql`` on each engine; peers: DuckDB on the bare list of files,
              delta-rs's QueryBuilder, polars' SQL, delta-fusion where it is installed
    point     one row by its id out of a table of 1,000 commits; peers: QueryBuilder, polars.scan_delta
    threads   8 threads with short and long queries at once, against the same one after the other
    vectors   a full aggregate with 1% of every file's rows deleted, against the same table after OPTIMIZE

Competitors take turns, answers are checked to be equal before a number is printed, and CPU seconds are those of the whole
process. ``make bench`` runs it, or::

    python benchmarks/query.py --scale 1 --rounds 3 --only tpch --engines duckdb --peers polars

``--data DIR`` keeps TPC-H's data there for the next time; else it is made in a temporary folder.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import tempfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from queries import point, suite, threads, vectors
from queries.measuring import Report
from queries.peers import ENGINES, PEERS, here

SECTIONS = ("tpch", "point", "threads", "vectors")


def several(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def options_of(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", type=several, default=list(SECTIONS), help="sections, with commas between them")
    parser.add_argument(
        "--scale", type=float, default=1.0, help="TPC-H's scale factor; the other tables shrink with it"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--engines", type=several, default=list(ENGINES), help="the first is the one compared with peers"
    )
    parser.add_argument("--peers", type=several, default=None, help="those that are installed, if not given")
    parser.add_argument("--data", type=Path, help="folder of TPC-H's data; filled if it is empty")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    options = parser.parse_args(arguments)
    options.peers = here() if options.peers is None else options.peers
    for given, known in ((options.only, SECTIONS), (options.engines, ENGINES), (options.peers, tuple(PEERS))):
        for name in given:
            if name not in known:
                parser.error(f"there is no `{name}`; there are: {', '.join(known)}")
    for name in options.peers:
        if importlib.util.find_spec(PEERS[name][0]) is None:
            parser.error(f"{name} is not installed")
    return options


def versions() -> dict[str, str]:
    found = {}
    for package in ("duckdb", "datafusion", "pyspark", "deltalake", "polars", "delta-fusion", "tpchgen-cli"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def main() -> None:
    options = options_of()
    reports: dict[str, Report] = {}
    load = os.getloadavg()[0]
    print(
        f"{os.cpu_count()} cores, load {load:.1f}; " + ", ".join(f"{k} {v}" for k, v in versions().items()), flush=True
    )
    if load > (os.cpu_count() or 1) / 2:
        print("others are at work on this machine: walls are too long, and ratios of walls uncertain", flush=True)
    with tempfile.TemporaryDirectory(prefix="headwater-bench-") as scratch:
        folder = Path(scratch)
        data = options.data or folder / "tpch"
        for section in options.only:
            if section == "tpch":
                report = suite.run(data, options.scale, options.rounds, options.engines, options.peers)
            elif section == "point":
                report = point.run(folder, options.scale, options.rounds, options.peers)
            elif section == "threads":
                report = threads.run(data, options.scale, options.rounds, options.engines)
            else:
                report = vectors.run(folder, options.scale, options.rounds, options.engines, options.peers)
            reports[section] = report
            print(report.text(), flush=True)
    if options.json:
        body = {"load": load, "cores": os.cpu_count(), "versions": versions(), "scale": options.scale}
        body["sections"] = {name: report.as_dict() for name, report in reports.items()}
        options.json.write_text(json.dumps(body, indent=1, default=str) + "\n")


if __name__ == "__main__":
    main()

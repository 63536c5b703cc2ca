"""Views that follow changes, against DuckDB computing their queries again: six shapes, changes of 0.01% to 50% of ten million rows.

Both read the same Delta table; a refresh is everything from reading the changes to the commit of the view's own table. ``make bench``
runs it, or::

    python benchmarks/views.py --scale 0.1 --rounds 3
    python benchmarks/views.py --shapes "join and group" --shares 0.001,0.01
"""

from __future__ import annotations

import argparse
import json
import os
from importlib.metadata import version
from pathlib import Path

from viewing import curve
from viewing.world import SHAPES

from headwater.incremental.operators.fused import compile_now


def several(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def options_of(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0, help="1 is ten million rows; 0.001 runs in seconds")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--shapes", type=several, default=list(SHAPES), help="with commas between them")
    parser.add_argument("--shares", type=several, default=[str(s) for s in curve.SHARES], help="of rows that change")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    options = parser.parse_args(arguments)
    for name in options.shapes:
        if name not in SHAPES:
            parser.error(f"there is no `{name}`; there are: {', '.join(SHAPES)}")
    options.shares = [float(s) for s in options.shares]
    return options


def main() -> None:
    options = options_of()
    load = os.getloadavg()[0]
    versions = {n: version(n) for n in ("duckdb", "numba", "pyarrow")}
    print(f"{os.cpu_count()} cores, load {load:.1f}; " + ", ".join(f"{k} {v}" for k, v in versions.items()), flush=True)
    if load > (os.cpu_count() or 1) / 2:
        print("others are at work on this machine: walls are too long, and ratios of walls uncertain", flush=True)
    if options.scale >= 1:
        compile_now()
    reports = curve.run(options.scale, options.rounds, options.shapes, options.shares)
    for report in reports:
        print(report.text(), flush=True)
    if options.json:
        body = {"load": load, "cores": os.cpu_count(), "versions": versions, "scale": options.scale}
        body["sections"] = {"curve": reports[0].as_dict()}
        options.json.write_text(json.dumps(body, indent=1, default=str) + "\n")


if __name__ == "__main__":
    main()

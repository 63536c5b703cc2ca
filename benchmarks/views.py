"""Views that follow changes, against DuckDB computing their queries again: six shapes, changes of 0.01% to 50% of ten million rows; what their first load and their state take.

Both read the same Delta table; a refresh is everything from reading the changes to the commit of the view's own table. ``make bench``
runs it, or::

    python benchmarks/views.py --scale 0.1 --rounds 3
    python benchmarks/views.py --shapes "join and group" --shares 0.001,0.01
    python benchmarks/views.py --sections state --scale 0.1
"""

from __future__ import annotations

import argparse
import json
import os
from importlib.metadata import version
from pathlib import Path

from viewing import curve, footprint, loading
from viewing.world import SHAPES

from headwater.incremental.operators.fused import compile_now

_SECTIONS = ("curve", "load", "state")
_CHANGES = 4
"""After how many changes state is measured again."""


def several(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def options_of(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0, help="1 is ten million rows; 0.001 runs in seconds")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--shapes", type=several, default=list(footprint.VIEWS), help="with commas between them")
    parser.add_argument("--shares", type=several, default=[str(s) for s in curve.SHARES], help="of rows that change")
    parser.add_argument("--sections", type=several, default=list(_SECTIONS), help=f"some of {', '.join(_SECTIONS)}")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    options = parser.parse_args(arguments)
    for given, known in ((options.shapes, footprint.VIEWS), (options.sections, _SECTIONS)):
        for name in given:
            if name not in known:
                parser.error(f"there is no `{name}`; there are: {', '.join(known)}")
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
    reports = {}
    shapes = [name for name in options.shapes if name in SHAPES]
    if "curve" in options.sections and shapes:
        reports["curve"] = curve.run(options.scale, options.rounds, shapes, options.shares)
        print(reports["curve"].text(), flush=True)
    if "load" in options.sections and shapes:
        reports["load"] = loading.run(curve.rows_of(options.scale), options.rounds, shapes)
        print(reports["load"].text(), flush=True)
    if "state" in options.sections:
        reports["state"] = footprint.run(curve.rows_of(options.scale), _CHANGES, options.shapes)
        print(reports["state"].text(), flush=True)
    if options.json:
        body = {"load": load, "cores": os.cpu_count(), "versions": versions, "scale": options.scale}
        body["sections"] = {name: report.as_dict() for name, report in reports.items()}
        options.json.write_text(json.dumps(body, indent=1, default=str) + "\n")


if __name__ == "__main__":
    main()

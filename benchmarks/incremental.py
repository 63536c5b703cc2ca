"""The incremental engine against named peers, through ``headwater.Circuit``, in five sections.

    circuit   filter, join with 100,000 rows, count, sum, avg, min and max of 1,000 groups, with deletions, in steps of 1 to
              100,000 rows; peers: DBSP itself (the Rust crate, one worker) and pathway
    strings   the same with keys of 12 and 40 bytes, names of groups, and nulls
    scale     a step of 100 rows with 100,000 rows, a million and ten millions of state
    merges    steps of 100 rows while state grows
    bulk      the first load, against DuckDB computing the query

Competitors take turns, answers are checked to be equal before a number is printed, and CPU seconds are those of a whole
process, merges in the background included. ``make bench`` runs it, or::

    python benchmarks/incremental.py --install dbsp,pathway     once: they are put into a folder outside of the tree
    python benchmarks/incremental.py --only circuit --rounds 3 --peers dbsp
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from importlib.metadata import version
from pathlib import Path

from incrementals import bulk, circuit, growth
from incrementals.circuit import EVENTS, Competitors
from incrementals.peers import Dbsp, Pathway
from queries.measuring import Report

from headwater.incremental.operators.fused import compile_now

SECTIONS = ("circuit", "strings", "scale", "merges", "bulk")
PEERS = ("dbsp", "pathway")
TEXTS = (12, 40)
STRING_SIZES = (100, 10_000)


def several(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def options_of(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", type=several, default=list(SECTIONS), help="sections, with commas between them")
    parser.add_argument("--scale", type=float, default=1.0, help="1 is full size; 0.01 runs in seconds")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sizes", type=several, default=[str(s) for s in EVENTS], help="rows a step of circuit")
    parser.add_argument("--peers", type=several, default=None, help="those that are installed, if not given")
    parser.add_argument("--peers-in", type=Path, default=Path.home() / ".cache" / "headwater-peers", metavar="DIR")
    parser.add_argument("--install", type=several, default=[], help="peers to install there, and nothing else")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    options = parser.parse_args(arguments)
    known: dict[str, Dbsp | Pathway] = {"dbsp": Dbsp(options.peers_in), "pathway": Pathway(options.peers_in)}
    chosen = options.peers if options.peers is not None else [n for n in PEERS if known[n].here]
    sizes = [str(s) for s in EVENTS]
    for given, names in ((options.only, SECTIONS), (chosen, PEERS), (options.install, PEERS), (options.sizes, sizes)):
        for name in given:
            if name not in names:
                parser.error(f"there is no `{name}`; there are: {', '.join(names)}")
    options.known = {n: known[n] for n in options.install or chosen}
    for name in chosen:
        if not known[name].here and not options.install:
            parser.error(f"{name} is not installed; --install {name} does it")
    return options


def sections(options: argparse.Namespace, competitors: Competitors, folder: Path) -> dict[str, Report]:
    """Run what was asked for, printing each table when it is there."""
    found: dict[str, Report] = {}
    for name in options.only:
        given = (folder, options.scale, options.rounds, competitors)
        if name == "circuit":
            reports = circuit.run(*given, texts=(0,), sizes=[int(s) for s in options.sizes])
        elif name == "strings":
            reports = circuit.run(*given, texts=TEXTS, sizes=STRING_SIZES)
        else:
            reports = [{"scale": growth.scale, "merges": growth.merges, "bulk": bulk.run}[name](*given)]
        for number, report in enumerate(reports):
            print(report.text(), flush=True)
            found[name if len(reports) == 1 else f"{name} of {TEXTS[number]} bytes"] = report
    return found


def main() -> None:
    options = options_of()
    if options.install:
        options.peers_in.mkdir(parents=True, exist_ok=True)
        for peer in options.known.values():
            peer.install()
        return
    competitors = Competitors(**options.known)
    load = os.getloadavg()[0]
    versions = {n: version(n) for n in ("numba", "pyarrow", "duckdb")}
    versions |= {n: p.version() for n, p in options.known.items()}
    print(f"{os.cpu_count()} cores, load {load:.1f}; " + ", ".join(f"{k} {v}" for k, v in versions.items()), flush=True)
    for name in PEERS:
        if name not in options.known:
            print(f"without {name}: `--install {name}` puts it into {options.peers_in}", flush=True)
    if load > (os.cpu_count() or 1) / 2:
        print("others are at work on this machine: walls are too long, and ratios of walls uncertain", flush=True)
    if options.scale >= 1:
        compile_now()
    with tempfile.TemporaryDirectory(prefix="headwater-bench-") as scratch:
        reports = sections(options, competitors, Path(scratch))
    if options.json:
        body = {"load": load, "cores": os.cpu_count(), "versions": versions, "scale": options.scale}
        body["sections"] = {name: report.as_dict() for name, report in reports.items()}
        options.json.write_text(json.dumps(body, indent=1, default=str) + "\n")


if __name__ == "__main__":
    main()

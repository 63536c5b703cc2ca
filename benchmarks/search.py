"""Full-text search against named peers, in three sections over the same documents, which are made from a seed.

    builds    builds alone, kept for the other sections (with --kept)
    queries   builds, sizes and questions (terms, AND, phrases, prefixes, ``*x*``, top 10, counts, all ids, aggregates);
              peers: polars, DuckDB and plain Spark scanning Parquet, SQLite's FTS5 by words and by trigrams, LanceDB, bm25s
    refresh   an index after a change of 0.1% of the table, as a share of building it
    spark     ``spark.read.format("headwater")`` against plain Spark

Competitors take turns, answers are checked to be equal before a number is printed, and CPU seconds stand beside the wall: those
of this process, and for Spark of its processes. ``make bench`` runs it, or::

    python benchmarks/search.py --docs 100000 --rounds 3 --only queries --peers polars,lancedb

With ``--kept FOLDER`` the documents and the indexes stay there, with what each build took, and what is there is used: builds
and questions can be measured at different times, and several builds by processes of their own (``--builds``). Headwater
remembers no answers here (``search_answers_bytes=0``), else the second question would cost nothing.

A peer that is not installed is left out, with a line that says so. LanceDB and bm25s are in the extra ``bench``; SQLite is
Python's own.
"""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import headwater as hw
from benchmarks.queries.measuring import Report
from benchmarks.searches import freshness, spark_path, suite
from benchmarks.searches.corpus import Corpus
from benchmarks.searches.engines import Bm25s, Lance, SqliteFts
from benchmarks.searches.ours import TABLE, Headwater, table_files, write_table
from benchmarks.searches.scans import DuckDBScan, PolarsScan, SparkScan
from headwater.base import settings

SECTIONS = ("queries", "refresh", "spark")
BUILDS = "builds"
FULL_SIZE = 1_000_000
# Each peer with the module that it needs.
PEERS = {
    suite.TRIGRAMS: "tantivy",
    "hw all columns": "tantivy",
    "polars": "polars",
    "duckdb": "duckdb",
    "spark": "pyspark",
    "sqlite": "sqlite3",
    "sqlite trigram": "sqlite3",
    "lancedb": "lancedb",
    "bm25s": "bm25s",
}
_WIDE_NAME = "hw all columns"
_INDEX, _TRIGRAMS, _WIDE = "docs_ix", "docs_trigrams", "docs_wide"


def several(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def options_of(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--docs", type=int, default=FULL_SIZE)
    parser.add_argument("--only", type=several, default=list(SECTIONS), help="sections, with commas between them")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peers", type=several, default=list(PEERS), help="polars always takes part, as the reference")
    parser.add_argument("--folder", help="where the lake and the peers' files are made")
    parser.add_argument("--shapes", type=several, help="only questions of these shapes: term, phrase, substring, …")
    parser.add_argument("--kept", type=Path, help="a folder whose lake and indexes are used, and where they stay")
    parser.add_argument("--builds", type=several, help="with --only builds: whose indexes to build")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    options = parser.parse_args(arguments)
    if BUILDS in options.only and options.kept is None:
        parser.error("--only builds needs --kept")
    for given, known in ((options.only, (*SECTIONS, BUILDS)), (options.peers, PEERS)):
        for name in given:
            if name not in known:
                parser.error(f"there is no `{name}`; there are: {', '.join(known)}")
    return options


def versions() -> dict[str, str]:
    found = {"sqlite": sqlite3.sqlite_version}
    for package in ("tantivy", "polars", "duckdb", "pyspark", "lancedb", "bm25s"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def competitors(lake: hw.Lake, folder: Path, names: list[str], session: Any | None) -> dict[str, Any]:
    """Everybody who takes part, ours first."""
    files = table_files(lake)

    def rows() -> Any:
        """The documents, read from the files, as everybody who builds an index reads them."""
        import pyarrow.parquet as pq

        return (pq.read_table(file, columns=["id", "body", "category", "views"]) for file in files)

    found: dict[str, Any] = {
        suite.OURS: Headwater(lake, _INDEX),
        suite.POLARS: PolarsScan(files),
    }
    made: dict[str, Any] = {
        suite.TRIGRAMS: lambda: Headwater(lake, _TRIGRAMS, trigrams=True),
        "duckdb": lambda: DuckDBScan(files, settings.current().worker_threads),
        "spark": lambda: SparkScan(files, session),
        "sqlite": lambda: SqliteFts(folder, rows, "unicode61"),
        "sqlite trigram": lambda: SqliteFts(folder, rows, "trigram"),
        "lancedb": lambda: Lance(folder, rows),
        "bm25s": lambda: Bm25s(folder, rows),
    }
    found.update((name, make()) for name, make in made.items() if name in names)
    return found


def wide(lake: hw.Lake) -> Headwater:
    """An index on all columns, which is built and not asked."""
    return Headwater(lake, _WIDE, every_column=True)


def built_by(name: str, one: Any, kept: Path | None) -> suite.Built:
    """What a build took: now, or when it was made and kept."""
    note = None if kept is None else kept / f"built {name}.json"
    if note is not None and note.exists():
        one.open()
        return suite.Built.from_json(note.read_text())
    built = suite.build(name, one)
    if note is not None:
        note.write_text(built.to_json())
    return built


@contextmanager
def place_of(options: argparse.Namespace) -> Iterator[Path]:
    """Where everything lies."""
    if options.kept is None:
        with tempfile.TemporaryDirectory(prefix="headwater-search-", dir=options.folder) as scratch:
            yield Path(scratch)
    else:
        options.kept.mkdir(parents=True, exist_ok=True)
        yield options.kept


def main() -> None:
    options = options_of()
    with settings.override(search_answers_bytes=0):
        _run(options)


def _run(options: argparse.Namespace) -> None:
    load = os.getloadavg()[0]
    print(
        f"{os.cpu_count()} cores, load {load:.1f}; " + ", ".join(f"{k} {v}" for k, v in versions().items()), flush=True
    )
    if load > (os.cpu_count() or 1) / 2:
        print("others are at work on this machine: walls are too long, and ratios of walls uncertain", flush=True)
    for name in (n for n in options.peers if find_spec(PEERS[n]) is None):
        print(f"{name} is not installed, and left out", flush=True)
    names = [n for n in options.peers if find_spec(PEERS[n]) is not None]
    full = options.docs >= FULL_SIZE
    reports: dict[str, Report] = {}
    with place_of(options) as folder:
        corpus = Corpus(options.docs)
        lake = hw.connect(str(folder / "lake"))
        if not lake.table(TABLE).exists():
            lake = write_table(folder / "lake", corpus)
        if BUILDS in options.only:
            everybody = {**competitors(lake, folder, [n for n in names if n != "spark"], None), _WIDE_NAME: wide(lake)}
            for name in options.builds or everybody:
                built_by(name, everybody[name], options.kept)
            return
        wants_spark = "spark" in names and ("queries" in options.only or "spark" in options.only)
        session = hw.spark(config={"spark.driver.memory": "4g"}) if wants_spark else None
        asked = names if "queries" in options.only else []
        there = competitors(lake, folder, asked, session)
        built = {name: built_by(name, one, options.kept) for name, one in there.items()}
        if "queries" in options.only:
            if _WIDE_NAME in names:
                built[_WIDE_NAME] = built_by(_WIDE_NAME, wide(lake), options.kept)
            reports["queries"] = suite.run(corpus, there, built, options.rounds, full_size=full, shapes=options.shapes)
            print(reports["queries"].text(), flush=True)
        if "spark" in options.only:
            if session is None:
                print("\nspark: left out, since it is not among the peers", flush=True)
            else:
                plain = SparkScan(table_files(lake), session)
                reports["spark"] = spark_path.run(lake, _INDEX, plain, options.rounds, full_size=full)
                print(reports["spark"].text(), flush=True)
        if "refresh" in options.only:  # last: it changes the table
            ours = there[suite.OURS]
            reports["refresh"] = freshness.run(lake, corpus, ours, built[suite.OURS], options.rounds, full_size=full)
            print(reports["refresh"].text(), flush=True)
        if session is not None:
            session.stop()
    if options.json:
        body = {"load": load, "cores": os.cpu_count(), "versions": versions(), "docs": options.docs}
        body["sections"] = {name: report.as_dict() for name, report in reports.items()}
        options.json.write_text(json.dumps(body, indent=1, default=str) + "\n")


if __name__ == "__main__":
    main()

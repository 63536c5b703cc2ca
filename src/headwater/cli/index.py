"""`headwater index`: how far search indexes cover their tables, and their upkeep."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any

from headwater.cli._lake import add_lake, open_lake
from headwater.cli._screen import Screen

SUMMARY = "status, refresh, merge or vacuum of search indexes"

_HEADINGS = ("index", "coverage", "splits", "rows", "dead", "bytes", "missing files", "missing rows", "frontier")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("status", "refresh", "merge", "vacuum"), help="what to do")
    add_lake(parser)
    parser.add_argument("names", metavar="NAME", nargs="*", help="an index (default: all of them)")
    parser.add_argument("--full", action="store_true", help="with refresh: index everything again")
    parser.add_argument(
        "--retention-hours", metavar="N", type=float, default=168.0, help="with vacuum: what older versions may need"
    )


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    from headwater.cli._verbs import Exit

    listed: list[dict[str, Any]] = []
    stale = False
    with open_lake(arguments) as lake:
        for name in arguments.names or lake.environment().names("index"):
            index = lake.index(name)
            done: dict[str, Any] = {}
            if arguments.action == "refresh":
                done["refresh"] = index.refresh(full=arguments.full).as_dict()
            elif arguments.action == "merge":
                done["splits"] = index.merge()
            elif arguments.action == "vacuum":
                done["splits"] = index.vacuum(retention_hours=arguments.retention_hours)
            status = index.details()
            stale = stale or bool(status.missing_files)
            listed.append({"name": name, "frontier": str(index.frontier), **asdict(status), **done})
            if not screen.as_json and status.damaged:
                screen.say(f"damaged splits of {name}, replaced by the next refresh: {', '.join(status.damaged)}")
    if screen.as_json:
        screen.document({"lake": lake.location, "indexes": listed})
    else:
        _print(screen, listed)
        if not listed:
            screen.say(f"there is no search index in {lake.location}")
    return Exit.STALE if stale and arguments.action == "status" else Exit.OK


def _print(screen: Screen, listed: list[dict[str, Any]]) -> None:
    from headwater.cli._listing import print_entries

    rows = [
        (
            one["name"],
            f"{one['coverage']:.0%}",
            f"{one['splits']:,}",
            f"{one['rows']:,}",
            f"{one['dead_rows']:,}",
            f"{one['bytes']:,}",
            f"{one['missing_files']:,}",
            f"{one['missing_rows']:,}",
            one["frontier"],
        )
        for one in listed
    ]
    print_entries(screen, _HEADINGS, rows, right=set(range(1, 8)), head=2)

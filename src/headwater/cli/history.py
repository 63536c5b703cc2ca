"""`headwater history`: what was done to a table, newest first."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from typing import Any

from headwater.cli._lake import add_lake, open_lake
from headwater.cli._screen import Screen

SUMMARY = "show what was committed to a table, newest first"

_HEADINGS = ("version", "timestamp", "operation", "parameters", "metrics")


def configure(parser: argparse.ArgumentParser) -> None:
    add_lake(parser)
    parser.add_argument("table", metavar="TABLE", help="the table's name")
    parser.add_argument("--limit", metavar="N", type=int, help="only the newest N versions")


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    from headwater.base.errors import InputError
    from headwater.cli._listing import print_entries, time_text
    from headwater.cli._verbs import Exit

    if arguments.limit is not None and arguments.limit < 1:
        raise InputError.bad_argument("--limit", arguments.limit, "a number of versions, 1 or more")
    lake = open_lake(arguments.lake)
    entries = lake.table(arguments.table).history(arguments.limit)
    if screen.as_json:
        screen.document({"table": arguments.table, "history": [entry.as_dict() for entry in entries]})
        return Exit.OK
    rows = [
        (
            str(entry.version),
            time_text(entry.timestamp.isoformat(timespec="milliseconds")),
            entry.operation,
            _short(entry.parameters),
            _short(entry.metrics),
        )
        for entry in entries
    ]
    print_entries(screen, _HEADINGS, rows, right=(0,), head=3)
    return Exit.OK


def _short(facts: Mapping[str, Any]) -> str:
    """The facts that say something, on one line: empty lists and zeros are left out."""
    said = {name: value for name, value in facts.items() if value not in (None, "", "[]", "{}", [], {}, 0, "0", 0.0)}
    return " ".join(
        f"{name}={value if isinstance(value, str | int | float) else json.dumps(value, ensure_ascii=False)}"
        for name, value in said.items()
    )

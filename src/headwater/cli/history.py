"""`headwater history`: what was done to a table, newest first."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from headwater.cli._lake import add_lake, open_lake, open_project
from headwater.cli._screen import Screen

if TYPE_CHECKING:
    from headwater.pipeline.project import Project

SUMMARY = "show what was committed to a table, or published by a project's nodes, newest first"

_HEADINGS = ("version", "timestamp", "operation", "parameters", "metrics")


def configure(parser: argparse.ArgumentParser) -> None:
    add_lake(parser)
    parser.add_argument(
        "table", metavar="TABLE", nargs="?", help="a table, or a node of a project (default: all of its nodes)"
    )
    parser.add_argument("--commits", action="store_true", help="of a node: the commits of its table, not its publishes")
    parser.add_argument("--limit", metavar="N", type=int, help="only the newest N versions")


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    from headwater.base.errors import InputError
    from headwater.cli._listing import print_entries, time_text
    from headwater.cli._verbs import Exit

    if arguments.limit is not None and arguments.limit < 1:
        raise InputError.bad_argument("--limit", arguments.limit, "a number of versions, 1 or more")
    project = open_project(arguments)
    if project is not None and not arguments.commits and _is_kept(project, arguments.table):
        from headwater.cli._project import show_history

        return show_history(project, arguments.table, arguments.limit, screen)
    if arguments.table is None:
        screen.error(InputError.bad_argument("TABLE", None, "the name of a table"))
        return Exit.USAGE
    lake = open_lake(arguments)
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


def _is_kept(project: Project, name: str | None) -> bool:
    """Whether a name stands for nodes that a project keeps."""
    return name is None or any(name.lower() == one.lower() for one in project.graph.kept)


def _short(facts: Mapping[str, Any]) -> str:
    """The facts that say something, on one line: empty lists and zeros are left out."""
    said = {name: value for name, value in facts.items() if value not in (None, "", "[]", "{}", [], {}, 0, "0", 0.0)}
    return " ".join(
        f"{name}={value if isinstance(value, str | int | float) else json.dumps(value, ensure_ascii=False)}"
        for name, value in said.items()
    )

"""`headwater diff`: the rows that differ between two versions of a table, or of anything derived."""

from __future__ import annotations

import argparse

from headwater.cli._lake import add_lake, open_lake
from headwater.cli._screen import Screen

SUMMARY = "show the rows that differ between two versions of a table, or of anything derived"


def configure(parser: argparse.ArgumentParser) -> None:
    add_lake(parser)
    parser.add_argument("name", metavar="NAME", help="a table, or anything derived")
    parser.add_argument("before", metavar="@BEFORE", nargs="?", help="a version (default: the one before the other)")
    parser.add_argument("after", metavar="@AFTER", nargs="?", help="a version (default: the newest)")
    parser.add_argument("--key", metavar="COLUMN,…", help="columns that identify a row: shows old and new values")
    parser.add_argument("--limit", metavar="N", type=int, default=100, help="how many rows are shown (default: 100)")


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    from headwater.cli._verbs import Exit

    key = None if arguments.key is None else [part.strip() for part in arguments.key.split(",")]
    with open_lake(arguments) as lake:
        found = lake.diff(arguments.name, arguments.before, arguments.after, key=key, limit=arguments.limit)
    if screen.as_json:
        screen.document({"lake": lake.location, **found.as_dict()})
    else:
        screen.data(str(found))
    return Exit.OK

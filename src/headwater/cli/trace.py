"""`headwater trace`: what became of one row, in everything that is derived from it."""

from __future__ import annotations

import argparse

from headwater.cli._lake import add_lake, open_lake
from headwater.cli._screen import Screen

SUMMARY = "follow one row of a table through everything that is derived from it"


def configure(parser: argparse.ArgumentParser) -> None:
    add_lake(parser)
    parser.add_argument("table", metavar="TABLE", help="the table that has the row")
    parser.add_argument("key", metavar="COLUMN=VALUE", nargs="+", help="which row, for example customer_id=1234")
    parser.add_argument("--versions", metavar="N", type=int, default=20, help="how many versions back (default: 20)")
    parser.add_argument("--all-versions", action="store_true", help="all versions that the log has")
    parser.add_argument("--after", metavar="V", type=int, help="only what was committed after this version")
    parser.add_argument("--until", metavar="V", type=int, help="only what was committed up to this version")
    parser.add_argument("--limit", metavar="N", type=int, default=20, help="rows shown for each step (default: 20)")
    parser.add_argument("--html", metavar="FILE", help="write it as a page")


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    from headwater.cli._verbs import Exit

    with open_lake(arguments) as lake:
        found = lake.trace(
            arguments.table,
            ", ".join(arguments.key),
            versions=None if arguments.all_versions else arguments.versions,
            after=arguments.after,
            until=arguments.until,
            limit=arguments.limit,
        )
    if arguments.html is not None:
        _write(arguments.html, found._repr_html_(), f"{found.table} {found.key}")
    if screen.as_json:
        screen.document({"lake": lake.location, **found.as_dict()})
    else:
        screen.data(str(found))
    return Exit.OK


def _write(path: str, body: str, title: str) -> None:
    from html import escape
    from pathlib import Path

    from headwater.base.errors import StorageError

    head = f"<head><meta charset='utf-8'><title>{escape(title)}</title></head>"
    page = f"<!doctype html><html>{head}<body>{body}</body></html>"
    try:
        Path(path).write_text(page, encoding="utf-8")
    except OSError as error:
        raise StorageError.failed(path, str(error)) from None

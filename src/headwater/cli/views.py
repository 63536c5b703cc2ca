"""`headwater views`: how fresh the views of a lake are."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from headwater.cli._lake import add_lake, open_lake
from headwater.cli._screen import Screen

if TYPE_CHECKING:
    from headwater.incremental.views.status import ViewStatus
    from headwater.lakehouse import Lake

SUMMARY = "list the materialized views of a lake: how fresh each is; exit code 3 if one is stale"

_HEADINGS = ("name", "frontier", "freshness", "rows", "last refresh", "mode", "seconds")


def configure(parser: argparse.ArgumentParser) -> None:
    add_lake(parser, optional=True)


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    from headwater.base.errors import HeadwaterError
    from headwater.cli._listing import print_entries
    from headwater.cli._verbs import Exit

    lake = open_lake(arguments.lake)
    found: list[ViewStatus] = []
    failed: dict[str, HeadwaterError] = {}
    for name in lake.views():
        try:
            found += lake.status(name)
        except HeadwaterError as error:  # one damaged view does not hide the others
            failed[name] = error
    if screen.as_json:
        views: list[dict[str, Any]] = [one.as_dict() for one in found]
        views += [{"name": name, "error": screen.worded(error, name).as_dict()} for name, error in failed.items()]
        views.sort(key=_name)
        screen.document({"lake": lake.location, "views": views})
    else:
        rows: list[tuple[str, ...]] = [_row(one) for one in found] + [
            (name, "", f"[{error.code}] {error.message}", "", "", "", "") for name, error in failed.items()
        ]
        print_entries(screen, _HEADINGS, sorted(rows), right=(3, 6), head=1)
        if not rows:
            screen.say(_none(lake))
    return Exit.FAILED if failed else Exit.STALE if any(one.stale for one in found) else Exit.OK


def _name(view: dict[str, Any]) -> str:
    return str(view["name"])


def _row(one: ViewStatus) -> tuple[str, ...]:
    last = one.last
    return (
        one.name,
        str(one.frontier),
        one.lag_text,
        "" if one.rows is None else f"{one.rows:,}",
        "" if last is None else f"{last.time:%Y-%m-%d %H:%M:%S}",
        "" if last is None else last.mode,
        "" if last is None else f"{last.seconds:.3f}",
    )


def _none(lake: Lake) -> str:
    return f"no materialized views in {lake.location}"

"""`headwater status`: how fresh everything derived in a lake is."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from headwater.cli._lake import add_lake, open_lake, open_project
from headwater.cli._screen import Screen

if TYPE_CHECKING:
    from headwater.derived.status import Status

SUMMARY = "list how fresh everything derived is, in a project or a lake; exit code 3 if something is stale"

_HEADINGS = ("name", "kind", "frontier", "freshness", "rows", "last refresh", "mode", "seconds")


def configure(parser: argparse.ArgumentParser) -> None:
    add_lake(parser, optional=True)
    parser.add_argument("names", metavar="NODE", nargs="*", help="of a project: node, +node, node+ or tag:name")


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    project = open_project(arguments)
    if project is not None:
        from headwater.cli._project import show_status

        return show_status(project, arguments.names, screen)
    return show(arguments, screen)


def show(arguments: argparse.Namespace, screen: Screen, kind: str | None = None) -> int:
    """List the artefacts of a lake, or those of one kind."""
    from headwater.base.errors import HeadwaterError
    from headwater.base.kinds import words_of
    from headwater.cli._listing import print_entries
    from headwater.cli._verbs import Exit

    lake = open_lake(arguments)
    found: list[Status] = []
    failed: dict[str, HeadwaterError] = {}
    asked = getattr(arguments, "names", None)
    for name in (asked or lake.artefacts()) if kind is None else lake.environment().names(kind):
        try:
            found += lake.status(name)
        except HeadwaterError as error:  # one damaged view does not hide the others
            failed[name] = error
    if screen.as_json:
        listed: list[dict[str, Any]] = [one.as_dict() for one in found]
        listed += [{"name": name, "error": screen.worded(error, name).as_dict()} for name, error in failed.items()]
        listed.sort(key=_name)
        screen.document({"lake": lake.location, "artefacts": listed})
    else:
        rows: list[tuple[str, ...]] = [_row(one) for one in found] + [
            (name, "", "", f"[{error.code}] {error.message}", "", "", "", "") for name, error in failed.items()
        ]
        print_entries(screen, _HEADINGS, sorted(rows), right=(4, 7), head=1)
        if not rows:
            screen.say(f"no {'derived artefacts' if kind is None else words_of(kind).plural} in {lake.location}")
    return Exit.FAILED if failed else Exit.STALE if any(one.stale for one in found) else Exit.OK


def _name(one: dict[str, Any]) -> str:
    return str(one["name"])


def _row(one: Status) -> tuple[str, ...]:
    last = one.last
    return (
        one.name,
        one.kind.name,
        str(one.frontier),
        one.lag_text,
        "" if one.rows is None else f"{one.rows:,}",
        "" if last is None else f"{last.time:%Y-%m-%d %H:%M:%S}",
        "" if last is None else last.mode,
        "" if last is None else f"{last.seconds:.3f}",
    )

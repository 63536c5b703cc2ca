"""`headwater verify`: recompute what is derived, and hold it against what it has."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from headwater.cli._lake import add_lake, open_lake
from headwater.cli._screen import Screen

if TYPE_CHECKING:
    from headwater.proof.verification import Verified

SUMMARY = "recompute what is derived at its frontier and compare; exit code 1 if something differs"

_HEADINGS = ("name", "kind", "state", "rows", "missing", "too many", "engine", "seconds", "frontier", "note")
_SHOWN = 10


def configure(parser: argparse.ArgumentParser) -> None:
    add_lake(parser)
    parser.add_argument("names", metavar="NAME", nargs="*", help="what is verified (default: everything derived)")
    parser.add_argument("--all", action="store_true", help="everything derived, also where names are given")
    parser.add_argument(
        "--engine",
        choices=("auto", "duckdb", "spark"),
        default="auto",
        help="who recomputes views; auto: duckdb, in this process",
    )


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    from headwater.cli._verbs import Exit

    with open_lake(arguments) as lake, screen.waiting("recomputing"):
        found = lake.verify(*([] if arguments.all else arguments.names), engine=arguments.engine)
    if screen.as_json:
        screen.document({"lake": lake.location, "ok": found.ok, "artefacts": [one.as_dict() for one in found]})
    else:
        from headwater.cli._listing import print_entries

        print_entries(screen, _HEADINGS, [_row(one) for one in found], right=(3, 4, 5, 7), head=3)
        for one in found:
            _explain(screen, one)
        if not len(found):
            screen.say(f"nothing is derived in {lake.location}")
    return Exit.OK if found.ok else Exit.FAILED


def _row(one: Verified) -> tuple[str, ...]:
    found = one.found
    if found is None:
        return (one.name, one.kind, one.state, "", "", "", one.engine, f"{one.seconds:.3f}", "", one.note)
    note = "; ".join([*([one.note] if one.note else []), *(f"upstream is behind: {b}" for b in found.behind)])
    counts = (f"{found.rows:,}", f"{found.missing_rows:,}", f"{found.extra_rows:,}")
    return (one.name, one.kind, one.state, *counts, one.engine, f"{one.seconds:.3f}", str(found.frontier), note)


def _explain(screen: Screen, one: Verified) -> None:
    """The first rows that differ, or why it could not be verified."""
    if one.error is not None:
        screen.say(f"{one.name} could not be verified:")
        screen.complain(screen.worded(one.error, one.name))
    elif one.found is not None and not one.found.equal:
        from headwater.proof.row_changes import paired

        # What is missing is what should be there: it reads as the new side.
        wrong = one.found.missing - one.found.extra
        screen.data(f"{one.name} differs from its recomputation (-: it has, +: it should have):")
        for row in paired(wrong, (), _SHOWN).rows:
            screen.data(f"  {row}")

"""`headwater test`: evaluate the data tests of a project, without refreshing its nodes."""

from __future__ import annotations

import argparse

from headwater.cli._lake import add_lake, open_project
from headwater.cli._screen import Screen

SUMMARY = "evaluate the data tests of the project as its nodes are now; exit code 1 if one of severity error fails"

_HEADINGS = ("test", "node", "severity", "state", "rows", "mode", "seconds")


def configure(parser: argparse.ArgumentParser) -> None:
    add_lake(parser)
    parser.add_argument("nodes", metavar="NODE", nargs="*", help="node, +node, node+ or tag:name (default: all)")


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    from headwater.base.errors import ProjectError
    from headwater.cli._listing import print_entries
    from headwater.cli._verbs import Exit

    project = open_project(arguments)
    if project is None:
        raise ProjectError.not_found(str(arguments.lake))
    with project, screen.waiting("testing"):
        found = project.test(*arguments.nodes)
    if screen.as_json:
        tests = [one.as_dict() for one in found]
        screen.document({"project": project.name, "ok": found.ok, "blocked": list(found.blocked), "tests": tests})
        return Exit.OK if found.ok else Exit.FAILED
    rows = [
        (
            one.check.name,
            one.check.node,
            one.check.severity,
            "passed" if one.passed else "failed",
            f"{one.violations:,}",
            one.mode,
            f"{one.seconds:.3f}",
        )
        for one in found
    ]
    print_entries(screen, _HEADINGS, rows, right=(4, 6), head=4)
    for one in found:
        if not one.passed:
            screen.say(f"{one.reason} ({one.check.severity})")
    if found.blocked:
        screen.say(f"held back: {', '.join(found.blocked)}")
    if not rows:
        screen.say("no data tests are declared")
    return Exit.OK if found.ok else Exit.FAILED

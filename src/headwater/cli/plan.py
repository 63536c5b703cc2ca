"""`headwater plan`: what a refresh of a project would do, and why."""

from __future__ import annotations

import argparse

from headwater.cli._lake import add_lake, open_project
from headwater.cli._screen import Screen

SUMMARY = "show what a refresh of the project would do to each node, why, and what it is expected to read"

_HEADINGS = ("name", "kind", "mode", "expected", "seconds", "engine", "why")


def configure(parser: argparse.ArgumentParser) -> None:
    add_lake(parser)
    parser.add_argument("nodes", metavar="NODE", nargs="*", help="node, +node, node+ or tag:name (default: all)")
    parser.add_argument("--full", action="store_true", help="as if all were computed from scratch")
    parser.add_argument("--strict", action="store_true", help="as for refresh: what would be computed again is blocked")
    parser.add_argument("--engine", choices=("auto", "local", "spark"), help="as for refresh")


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    from headwater.base.errors import ProjectError
    from headwater.cli._listing import print_entries
    from headwater.cli._verbs import Exit

    project = open_project(arguments)
    if project is None:
        raise ProjectError.not_found(str(arguments.lake))
    found = project.plan(*arguments.nodes, full=arguments.full, strict=arguments.strict, engine=arguments.engine)
    if screen.as_json:
        screen.document(found.as_dict())
    else:
        print_entries(screen, _HEADINGS, found.rows(), right=(3, 4), head=3)
        screen.say(found.summary())
        for view in found.left_tests:
            screen.say(f"the test is not declared any more, a refresh drops it: {view}")
        for name, kind in found.unmanaged.items():
            screen.say(f"not in the project, left alone: {name} ({kind})")
    return Exit.FAILED if found.blocked else Exit.OK

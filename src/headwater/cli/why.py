"""`headwater why`: why a node of a project is as it is."""

from __future__ import annotations

import argparse

from headwater.cli._lake import add_lake, open_project
from headwater.cli._screen import Screen

SUMMARY = "say why a node is stale, what its next refresh would be and why, and what the last ones were"


def configure(parser: argparse.ArgumentParser) -> None:
    add_lake(parser)
    parser.add_argument("node", metavar="NODE", help="a node of the project")


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    from headwater.base.errors import ProjectError
    from headwater.cli._verbs import Exit

    project = open_project(arguments)
    if project is None:
        raise ProjectError.not_found(str(arguments.lake))
    found = project.why(arguments.node)
    if screen.as_json:
        screen.document(found.as_dict())
    else:
        screen.data(str(found))
    return Exit.STALE if found.status.stale else Exit.OK

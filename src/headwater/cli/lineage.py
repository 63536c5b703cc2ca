"""`headwater lineage`: what a project's nodes are made of, down to the columns of tables."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headwater.cli._lake import add_lake, open_project
from headwater.cli._screen import Screen

if TYPE_CHECKING:
    from headwater.pipeline.project import Project

SUMMARY = "draw what the nodes of a project read, or name the columns of tables that a node's columns come from"


def configure(parser: argparse.ArgumentParser) -> None:
    add_lake(parser)
    parser.add_argument(
        "what", metavar="NODE[.COLUMN]", nargs="?", help="the columns of a node, or one of them (default: all nodes)"
    )
    parser.add_argument("--svg", metavar="FILE", help="write the picture of all nodes there")


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    from headwater.base.errors import ProjectError
    from headwater.cli._verbs import Exit

    project = open_project(arguments)
    if project is None:
        raise ProjectError.not_found(str(arguments.lake))
    if arguments.svg is not None:
        _write(arguments.svg, project.lineage().svg())
    if arguments.what is None:
        _nodes(project, screen)
    else:
        _columns(project, arguments.what, screen)
    return Exit.OK


def _nodes(project: Project, screen: Screen) -> None:
    if screen.as_json:
        nodes = [
            {"name": name, "kind": node.kind, "reads": list(project.graph.reads(name))}
            for name, node in project.nodes.items()
        ]
        screen.document({"project": project.name, "nodes": nodes})
    else:
        screen.data(str(project.lineage()))


def _columns(project: Project, what: str, screen: Screen) -> None:
    name, column = _split(project, what)
    columns = [column] if column is not None else project.columns(name)
    found = {one: project.column_lineage(name, one) for one in columns}
    if screen.as_json:
        listed: dict[str, Any] = {
            one: [{"node": node, "column": source} for node, source in sources] for one, sources in found.items()
        }
        screen.document({"project": project.name, "node": name, "columns": listed})
        return
    for one, sources in found.items():
        screen.data(f"{name}.{one}: {', '.join(f'{node}.{source}' for node, source in sources) or 'no column'}")


def _split(project: Project, what: str) -> tuple[str, str | None]:
    """The node and the column that are meant; names of nodes may have dots."""
    node, _, column = what.rpartition(".")
    for name in project.nodes:
        if name.lower() == what.lower():
            return name, None
    return next(((name, column) for name in project.nodes if name.lower() == node.lower()), (what, None))


def _write(path: str, picture: str) -> None:
    from headwater.base.errors import StorageError

    try:
        Path(path).write_text(picture, encoding="utf-8")
    except OSError as error:
        raise StorageError.failed(path, str(error)) from None

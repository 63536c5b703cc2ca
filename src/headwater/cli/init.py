"""`headwater init`: make a project."""

from __future__ import annotations

import argparse

from headwater.cli._screen import Screen

SUMMARY = "make a small project that works at once, or one from a dbt project"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="DIR", nargs="?", default=".", help="where (default: this folder)")
    parser.add_argument("--name", help="what the project is called (default: the folder's name)")
    parser.add_argument("--from-dbt", metavar="DIR", help="take the models and sources of a dbt project")


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    from headwater.cli._verbs import Exit

    if arguments.from_dbt is not None:
        return _from_dbt(arguments, screen)
    from headwater.pipeline.scaffold import init_project

    files = init_project(arguments.folder, name=arguments.name)
    if screen.as_json:
        screen.document({"folder": arguments.folder, "files": files})
        return Exit.OK
    for file in files:
        screen.data(file)
    _next(arguments.folder, screen)
    return Exit.OK


def _from_dbt(arguments: argparse.Namespace, screen: Screen) -> int:
    from headwater.cli._verbs import Exit
    from headwater.pipeline.dbt.migration import migrate

    report = migrate(arguments.from_dbt, arguments.folder, name=arguments.name)
    if screen.as_json:
        screen.document(report.as_dict())
        return Exit.OK
    for file in report.files:
        screen.data(file)
    for one in report.not_taken:
        screen.say(f"not taken: {one}")
    screen.say(report.summary())
    _next(arguments.folder, screen)
    return Exit.OK


def _next(folder: str, screen: Screen) -> None:
    here = "" if folder == "." else f"cd {folder} && "
    screen.say(f"next: {here}headwater plan && headwater refresh && headwater status")

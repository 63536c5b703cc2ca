"""`headwater refresh`: bring what is derived forward, each artefact after those that it reads."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from headwater.cli._lake import add_lake, open_lake, open_project
from headwater.cli._screen import Screen

if TYPE_CHECKING:
    from headwater.base.errors import HeadwaterError
    from headwater.derived.reports import Refresh

SUMMARY = "refresh everything derived in a project or a lake, or what is named, each after what it reads"

_HEADINGS = ("name", "mode", "rows in", "rows out", "seconds", "frontier", "why")


def configure(parser: argparse.ArgumentParser) -> None:
    add_lake(parser)
    parser.add_argument(
        "names",
        metavar="NAME",
        nargs="*",
        help="what to refresh; in a project also +node, node+ and tag:name (default: all)",
    )
    parser.add_argument("--full", action="store_true", help="compute those that are named from scratch")
    parser.add_argument(
        "--engine",
        choices=("auto", "local", "spark"),
        help="who computes views: this process, or Spark's tasks (default: auto, by the rows to be read)",
    )
    parser.add_argument(
        "--no-cascade",
        action="store_true",
        help="leave what they read as it is; exit code 3 if that is stale",
    )

    group = parser.add_argument_group("in a project")
    group.add_argument("--strict", action="store_true", help="fail a node rather than compute it from scratch again")
    group.add_argument("--watch", action="store_true", help="go on, and refresh whenever a table changes")
    group.add_argument(
        "--interval", metavar="SECONDS", type=float, default=0.2, help="how often --watch looks (default: 0.2)"
    )
    group.add_argument("--workers", metavar="N", type=int, help="how many nodes at a time")
    group.add_argument(
        "--wait", metavar="TIME", help="how long to wait for another refresh of the project, such as 10m"
    )
    group.add_argument("--metrics", metavar="[HOST:]PORT", help="serve Prometheus metrics there while it runs")
    group.add_argument("--log-json", action="store_true", help="log each event as a line of JSON on stderr")


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    from headwater.cli._verbs import Exit

    project = open_project(arguments)
    if project is not None:
        from headwater.cli._project import refresh_project

        return refresh_project(project, arguments, screen)

    with open_lake(arguments) as lake:
        engine = arguments.engine
        if engine == "spark":
            lake.spark  # noqa: B018  it starts a session, which views then have
        found = lake.refresh(*arguments.names, full=arguments.full, cascade=not arguments.no_cascade, engine=engine)
    done, failed, skipped = found.done, found.failed, found.skipped
    if screen.as_json:
        listed: list[dict[str, Any]] = [one.as_dict() for one in done]
        listed += [{"name": name, "error": screen.worded(error, name).as_dict()} for name, error in failed.items()]
        listed += [{"name": name, "skipped": list(because)} for name, because in skipped.items()]
        screen.document({"lake": lake.location, "artefacts": listed})
    else:
        _print(screen, done, skipped)
        if not (done or failed or skipped):
            screen.say(f"nothing is derived in {lake.location}")
        for name, error in failed.items():
            _complain(screen, name, error)
    if failed or skipped:
        return Exit.FAILED
    return Exit.STALE if any(one.behind for one in done) else Exit.OK


def _print(screen: Screen, done: list[Refresh], skipped: dict[str, tuple[str, ...]]) -> None:
    from headwater.cli._listing import print_entries

    rows: list[tuple[str, ...]] = [
        (
            one.name,
            one.mode,
            f"{one.rows_in:,}",
            f"{one.rows_out:,}",
            f"{one.seconds:.3f}",
            str(one.after),
            "; ".join([one.reason, *map(str, one.behind)]),
        )
        for one in done
    ]
    rows += [
        (name, "skipped", "", "", "", "", f"{', '.join(because)} could not be refreshed")
        for name, because in skipped.items()
    ]
    print_entries(screen, _HEADINGS, rows, right=(2, 3, 4), head=2)


def _complain(screen: Screen, name: str, error: HeadwaterError) -> None:
    screen.say(f"{name} was not refreshed:")
    screen.complain(screen.worded(error, name))

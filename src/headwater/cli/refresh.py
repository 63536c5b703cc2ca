"""`headwater refresh`: bring what is derived forward, each artefact after those that it reads."""

from __future__ import annotations

import argparse
import json
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headwater.cli._lake import add_lake, open_lake, open_project
from headwater.cli._screen import Screen

if TYPE_CHECKING:
    from headwater.base.errors import HeadwaterError
    from headwater.derived.refreshes import Refreshes
    from headwater.derived.reports import Refresh
    from headwater.lakehouse import Lake

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
    parser.add_argument("--watch", action="store_true", help="go on, and refresh whenever a table changes")
    parser.add_argument(
        "--interval", metavar="SECONDS", type=float, default=0.2, help="how often --watch looks (default: 0.2)"
    )

    group = parser.add_argument_group("in a project")
    group.add_argument("--strict", action="store_true", help="fail a node rather than compute it from scratch again")
    group.add_argument("--workers", metavar="N", type=int, help="how many nodes at a time")
    group.add_argument(
        "--wait", metavar="TIME", help="how long to wait for another refresh of the project, such as 10m"
    )
    group.add_argument("--metrics", metavar="[HOST:]PORT", help="serve Prometheus metrics there while it runs")
    group.add_argument("--log-json", action="store_true", help="log each event as a line of JSON on stderr")


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    project = open_project(arguments)
    if project is not None:
        from headwater.cli._project import refresh_project

        return refresh_project(project, arguments, screen)

    _refuse_project_options(arguments)
    with open_lake(arguments) as lake:
        if arguments.engine == "spark":
            lake.spark  # noqa: B018  it starts a session, which views then have
        if arguments.watch:
            return _watch(lake, arguments, screen)
        found = lake.refresh(
            *arguments.names, full=arguments.full, cascade=not arguments.no_cascade, engine=arguments.engine
        )
    if screen.as_json:
        screen.document(_as_dict(found, lake, screen))
    else:
        _print(screen, found.done, found.skipped)
        if not (found.done or found.failed or found.skipped):
            screen.say(f"nothing is derived in {lake.location}")
        for name, error in found.failed.items():
            _complain(screen, name, error)
    return _exit_code(found)


def _refuse_project_options(arguments: argparse.Namespace) -> None:
    """What a lake without a project would otherwise pass over in silence."""
    from headwater.cli._usage import UsageError

    given = {
        "--strict": arguments.strict,
        "--workers": arguments.workers is not None,
        "--wait": arguments.wait is not None,
        "--metrics": arguments.metrics is not None,
        "--log-json": arguments.log_json,
    }
    refused = [option for option, is_given in given.items() if is_given]
    if refused:
        raise UsageError.only_in_a_project(refused, str(arguments.lake))


def _watch(lake: Lake, arguments: argparse.Namespace, screen: Screen) -> int:
    """Refresh now, and whenever what is refreshed falls behind, until a signal comes; ``--full`` is for the first."""
    from headwater.cli._stopping import stop_signals
    from headwater.cli._verbs import Exit
    from headwater.derived.refreshes import refresh_several
    from headwater.derived.watch import watch
    from headwater.incremental.views.spark.choice import asked_for

    stopped, cascade, code = threading.Event(), not arguments.no_cascade, int(Exit.OK)
    full = [arguments.full]

    def refresh(names: Sequence[str]) -> Refreshes:
        with asked_for(arguments.engine):
            return refresh_several(
                names, lake.environment(), full=bool(full and full.pop()), cascade=cascade, stopped=stopped
            )

    with stop_signals(stopped):
        screen.say("watching; Ctrl-C ends it after the artefact that is being refreshed")
        options = {"stopped": stopped, "complain": screen.complain, "interval_seconds": arguments.interval}
        for found in watch(lake.environment(), refresh, arguments.names, cascade=cascade, **options):
            code = _show(found, lake, screen)
    return code


def _show(found: Refreshes, lake: Lake, screen: Screen) -> int:
    """One refresh of a watch: a line of JSON, or a line for each artefact that has moved."""
    if screen.as_json:
        screen.data(json.dumps(_as_dict(found, lake, screen), ensure_ascii=False, default=str))
    else:
        now = time.strftime("%H:%M:%S")
        for one in found.done:
            if one.mode != "noop":
                screen.data(f"{now} {one.name}: {one}")
        for name, because in found.skipped.items():
            screen.data(f"{now} {name}: skipped: {', '.join(because)} could not be refreshed")
        for name, error in found.failed.items():
            _complain(screen, name, error)
    return _exit_code(found)


def _as_dict(found: Refreshes, lake: Lake, screen: Screen) -> dict[str, Any]:
    listed: list[dict[str, Any]] = [one.as_dict() for one in found.done]
    listed += [{"name": name, "error": screen.worded(error, name).as_dict()} for name, error in found.failed.items()]
    listed += [{"name": name, "skipped": list(because)} for name, because in found.skipped.items()]
    return {"lake": lake.location, "artefacts": listed}


def _exit_code(found: Refreshes) -> int:
    from headwater.cli._verbs import Exit

    if not found.ok:
        return Exit.FAILED
    return Exit.STALE if any(one.behind for one in found.done) else Exit.OK


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

"""What verbs show of a project: its refresh while it goes on, its status, and its ledger."""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from headwater.base import settings
from headwater.cli._screen import Screen
from headwater.cli._stopping import stop_signals
from headwater.cli._verbs import Exit

if TYPE_CHECKING:
    from headwater.pipeline.project import Project
    from headwater.pipeline.run import NodeRun, Run

__all__ = ["refresh_project", "show_history", "show_status"]

_RUN = ("name", "kind", "mode", "touched", "seconds", "frontier", "why")
_STATUS = ("name", "kind", "health", "frontier", "lag", "target", "rows", "last refresh")
_LEDGER = ("at", "node", "version", "mode", "touched", "seconds", "frontier", "why")
_LINE_SECONDS = 10.0


def refresh_project(project: Project, arguments: argparse.Namespace, screen: Screen) -> int:
    """Refresh a project once, or whenever its tables change."""
    from headwater.base.spans import Months, length_of

    wait = length_of(arguments.wait, "--wait") if arguments.wait else None
    options: dict[str, Any] = {
        "full": arguments.full,
        "strict": arguments.strict,
        "engine": arguments.engine,
        "workers": arguments.workers,
        "wait_seconds": 0.0 if wait is None or isinstance(wait, Months) else wait.total_seconds(),
    }
    stopped = threading.Event()
    with stop_signals(stopped), project, ExitStack() as stack:
        if arguments.log_json:
            from headwater.pipeline.logs import json_logs

            stack.enter_context(json_logs(sys.stderr))
        if arguments.metrics is not None:
            from headwater.pipeline.metrics import serve_metrics

            screen.say(f"metrics: {stack.enter_context(serve_metrics(project, arguments.metrics))}")
        if arguments.watch:
            return _watch(project, arguments, screen, stopped, options)
        with _live(screen) as show:
            run = project.refresh(*arguments.names, stopped=stopped, on_change=show, **options)
    _print_run(run, screen)
    return Exit.OK if run.ok else Exit.FAILED


def _watch(
    project: Project, arguments: argparse.Namespace, screen: Screen, stopped: threading.Event, options: dict[str, Any]
) -> int:
    from headwater.pipeline.watch import watch

    ok = True
    screen.say("watching; Ctrl-C ends it after the nodes that are being refreshed")
    for run in watch(project, arguments.names, stopped=stopped, interval_seconds=arguments.interval, **options):
        ok = run.ok
        if screen.as_json:
            screen.data(json.dumps(run.as_dict(), ensure_ascii=False, default=str))
        else:
            screen.data(f"{time.strftime('%H:%M:%S')} {run.summary()}")
            for name, kind, mode, touched, seconds, after, why in run.rows():
                if run[name].state not in ("noop", "stopped"):
                    screen.data("  " + "  ".join(filter(None, [name, kind, mode, touched, f"{seconds} s", after, why])))
        for broken in run.broken:
            screen.say(f"{broken.reason} ({broken.check.severity})")
        for view in run.dropped_tests:
            screen.say(f"dropped, the test is not declared any more: {view}")
        for name, error in run.failed.items():
            screen.say(f"{name} was not refreshed:")
            screen.complain(screen.worded(error, name), debug=arguments.debug)
    return Exit.OK if ok else Exit.FAILED


@contextmanager
def _live(screen: Screen) -> Iterator[Any]:
    """Show nodes as they go: a table that changes on a terminal, else a line every ten seconds."""
    wanted = settings.current().progress
    if wanted == "off" or screen.as_json:
        yield lambda _: None
        return
    if sys.stderr.isatty() and wanted in ("auto", "bars"):
        with _table() as show:
            yield show
        return
    yield _Lines(screen)


class _Lines:
    """Plain lines: what is done and what is under way, every ten seconds."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._nodes: dict[str, NodeRun] = {}
        self._last = time.monotonic()
        self._guard = threading.Lock()

    def __call__(self, one: NodeRun) -> None:
        with self._guard:
            self._nodes[one.name] = one
            now = time.monotonic()
            if now - self._last < _LINE_SECONDS:
                return
            self._last = now
            running = [n.name for n in self._nodes.values() if n.state in ("running", "retrying")]
            ended = sum(n.state not in ("running", "retrying", "waiting") for n in self._nodes.values())
            self._screen.say(f"{ended} nodes done; at work on {', '.join(running) or 'nothing'}")


@contextmanager
def _table() -> Iterator[Any]:
    from rich.console import Console
    from rich.live import Live
    from rich.table import Table

    nodes: dict[str, NodeRun] = {}
    guard = threading.Lock()

    def drawn() -> Table:
        table = Table(box=None, pad_edge=False)
        for heading in ("node", "kind", "state", "rows", "seconds"):
            table.add_column(heading)
        with guard:
            for one in list(nodes.values())[-30:]:
                colour = {"failed": "red", "blocked": "yellow", "done": "green"}.get(one.state, "default")
                seconds = f"{one.seconds:.2f}" if one.seconds else ""
                table.add_row(one.name, one.kind, f"[{colour}]{one.state}[/]", one.touched, seconds)
        return table

    console = Console(file=sys.stderr, no_color=not settings.current().wants_color(sys.stderr))
    with (
        settings.override(progress="off"),
        Live(drawn(), console=console, refresh_per_second=8, transient=True, get_renderable=drawn),
    ):

        def show(one: NodeRun) -> None:
            with guard:
                nodes[one.name] = one

        yield show


def _print_run(run: Run, screen: Screen) -> None:
    from headwater.cli._listing import print_entries

    if screen.as_json:
        document = run.as_dict()
        for one, node in zip(document["nodes"], run.values(), strict=True):
            if node.error is not None:
                one["error"] = screen.worded(node.error, node.name).as_dict()
        screen.document(document)
        return
    print_entries(screen, _RUN, run.rows(), right=(4,), head=3)
    screen.say(run.summary())
    for broken in run.broken:
        screen.say(f"{broken.reason} ({broken.check.severity})")
    for view in run.dropped_tests:
        screen.say(f"dropped, the test is not declared any more: {view}")
    for name, error in run.failed.items():
        screen.say(f"{name} was not refreshed:")
        screen.complain(screen.worded(error, name))


def show_status(project: Project, names: list[str], screen: Screen) -> int:
    """How fresh the nodes of a project are."""
    from headwater.cli._listing import print_entries

    found = project.status(*names)
    if screen.as_json:
        screen.document(found.as_dict())
    else:
        print_entries(screen, _STATUS, found.rows(), right=(6,), head=3)
        screen.say(found.summary())
        for name, kind in found.unmanaged.items():
            screen.say(f"not in the project, left alone: {name} ({kind})")
    failed = any(one.health == "failed" for one in found.values())
    return Exit.FAILED if failed else Exit.OK if found.ok else Exit.STALE


def show_history(project: Project, node: str | None, limit: int | None, screen: Screen) -> int:
    """The publishes of a project's nodes, newest first."""
    from headwater.cli._listing import print_entries
    from headwater.pipeline.ledger import summaries

    rows = project.history(node, limit=limit).to_pylist()
    if screen.as_json:
        screen.document({"project": project.name, "node": node, "history": summaries(rows)})
        return Exit.OK
    listed = [
        (
            f"{row['at']:%Y-%m-%d %H:%M:%S}",
            row["node"],
            "" if row["version"] is None else str(row["version"]),
            row["mode"],
            "" if row["rows_touched"] is None else f"{row['rows_touched']:,} of {row['rows_total'] or '?'}",
            "" if row["seconds"] is None else f"{row['seconds']:.3f}",
            row["frontier_after"] or "",
            row["error"] or row["reason"] or "",
        )
        for row in rows
    ]
    print_entries(screen, _LEDGER, listed, right=(2, 5), head=4)
    if not listed:
        screen.say("nothing was published yet: headwater refresh")
    return Exit.OK

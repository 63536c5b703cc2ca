"""`headwater doctor`: what works on this machine, and how to mend what does not.

Each check is one function in `_checks` that gives one finding. They run in the order in which things build on
each other, and a check whose ground is missing is not tried, so that one cause gives one failure.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING

from headwater.cli._screen import Screen

if TYPE_CHECKING:
    from headwater.cli._checks import Finding

SUMMARY = "check this machine: Python, Java, memory, Spark, a lake, object storage"

_COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        *("--storage", "--s3"),
        dest="storage",
        metavar="URL",
        help="also try this location: s3://…, az://…, abfss://… or gs://…",
    )


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    from headwater.cli._checks import examine
    from headwater.cli._verbs import Exit

    findings = []
    with screen.waiting("checking, Spark takes a few seconds to start"):
        for finding in examine(storage=arguments.storage, debug=arguments.debug):
            findings.append(finding)
            if not screen.is_terminal and not screen.as_json:
                screen.data(_line(finding))
    failed = [finding for finding in findings if finding.status == "fail"]
    if screen.as_json:
        screen.document({"ok": not failed, "checks": [asdict(finding) for finding in findings]})
    elif screen.is_terminal:
        _print_table(findings, screen)
    if failed:
        screen.say(f"{len(failed)} of {len(findings)} checks failed: {', '.join(f.check for f in failed)}")
    return Exit.FAILED if failed else Exit.OK


def _line(finding: Finding) -> str:
    line = f"{finding.status:<4}  {finding.check:<8}  {finding.detail}"
    return f"{line}\n      hint: {finding.hint}" if finding.hint else line


def _print_table(findings: list[Finding], screen: Screen) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("", "check", "finding"):
        table.add_column(heading, overflow="fold")
    for finding in findings:
        detail = Text(finding.detail)
        if finding.hint:
            detail.append(f"\nhint: {finding.hint}", style="cyan")
        table.add_row(Text(finding.status, style=_COLOURS[finding.status]), finding.check, detail)
    screen.console().print(table)

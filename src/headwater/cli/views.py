"""`headwater views`: how fresh the materialized views of a lake are."""

from __future__ import annotations

import argparse

from headwater.cli import status
from headwater.cli._lake import add_lake
from headwater.cli._screen import Screen

SUMMARY = "list the materialized views of a lake: how fresh each is; exit code 3 if one is stale"


def configure(parser: argparse.ArgumentParser) -> None:
    add_lake(parser, optional=True)


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    return status.show(arguments, screen, "view")

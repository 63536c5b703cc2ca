"""`headwater demo`: the story, told on a small lake."""

from __future__ import annotations

import argparse

from headwater.cli._screen import Screen

SUMMARY = "tell the story on a small lake, offline, in under a minute"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", nargs="?", help="keep the lake in this folder (default: a temporary one)")


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    from headwater import demo

    return demo.main(arguments.path, json=screen.as_json)

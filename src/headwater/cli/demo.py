"""`headwater demo`: the story, told on a small lake."""

from __future__ import annotations

import argparse

from headwater.cli._screen import Screen

SUMMARY = "tell the story of a project and of each room, offline"
SIZES = ("S", "M", "L")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "path", nargs="?", help="keep the project and its lake in this folder (default: a temporary one)"
    )
    parser.add_argument("--size", choices=SIZES, default="S", help="50 thousand, 2 million or 20 million payments")
    parser.add_argument("--part", choices=("project", "rooms"), help="only the project, or only the tour of the rooms")


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    from headwater import demo

    return demo.main(arguments.path, json=screen.as_json, size=arguments.size, part=arguments.part)

"""Which lake is meant: a folder or an address, which must be there, because a typing error should not make a lake."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from headwater.base.errors import InputError, NotFoundError

if TYPE_CHECKING:
    from headwater.lakehouse import Lake

__all__ = ["add_lake", "open_lake"]


def add_lake(parser: argparse.ArgumentParser, *, optional: bool = False) -> None:
    """Declare the argument ``LAKE``."""
    if optional:
        parser.add_argument(
            "lake",
            metavar="LAKE",
            nargs="?",
            default=".",
            help="a folder or a URL like s3://bucket/prefix (default: this folder)",
        )
    else:
        parser.add_argument("lake", metavar="LAKE", help="a folder or a URL like s3://bucket/prefix")


def open_lake(location: str) -> Lake:
    """The lake at ``location``; credentials come from the environment."""
    if "://" not in location and not Path(location).is_dir():
        if " " in location.strip():
            raise InputError.bad_argument(
                "LAKE", location, "a folder or a URL like s3://bucket/prefix; SQL stands behind -c"
            )
        raise NotFoundError.folder(location)
    from headwater.lakehouse import connect

    return connect(location)

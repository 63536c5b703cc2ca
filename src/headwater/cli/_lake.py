"""Which lake, or project, is meant: a folder or an address, which must be there, because a typing error should not make
a lake.

Inside the folder of a project the argument ``LAKE`` may be left out of every verb, and the lake is that of the
project's profile. A folder with a ``headwater.yaml`` stands for its project, too.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from headwater.base.errors import InputError, NotFoundError

if TYPE_CHECKING:
    from headwater.lakehouse import Lake
    from headwater.pipeline.project import Project

__all__ = ["add_lake", "is_place", "open_lake", "open_project", "project_above", "project_at"]

_PROJECT_FILE = "headwater.yaml"


def add_lake(parser: argparse.ArgumentParser, *, optional: bool = False) -> None:
    """Declare the argument ``LAKE``."""
    what = "a folder or a URL like s3://bucket/prefix; inside a project's folder it may be left out"
    if optional:
        parser.add_argument("lake", metavar="LAKE", nargs="?", default=".", help=f"{what} (default: this folder)")
    else:
        parser.add_argument("lake", metavar="LAKE", help=what)
    parser.add_argument("--profile", metavar="NAME", help="of a project: where it runs (default: what its file says)")


def is_place(text: str) -> bool:
    """Whether a word, inside a project's folder, means a lake or a project: a URL, or the folder of one.

    A plain word that is a folder of the project itself, such as ``views``, does not.
    """
    if "://" in text or text == ".":
        return True
    folder = Path(text)
    marked = any((folder / name).exists() for name in (_PROJECT_FILE, "_headwater"))
    return folder.is_dir() and (marked or os.sep in text)


def project_above(folder: str | None = None) -> str | None:
    """The project that a folder is in, this one by default."""
    at = Path(folder or ".").resolve()
    return next((str(one) for one in (at, *at.parents) if (one / _PROJECT_FILE).is_file()), None)


def open_project(arguments: argparse.Namespace) -> Project | None:
    """The project that is meant; None where it is a lake without one."""
    return project_at(str(arguments.lake), getattr(arguments, "profile", None))


def project_at(location: str, profile: str | None) -> Project | None:
    """The project that a folder stands for; None where it stands for a lake."""
    if "://" in location:
        return None
    root = location if (Path(location) / _PROJECT_FILE).is_file() else None
    if root is None and location == ".":
        root = project_above()
    if root is None:
        return None
    from headwater.pipeline.project import Project

    return Project.load(root, profile=profile or os.environ.get("HEADWATER_PROFILE") or None)


def open_lake(arguments: argparse.Namespace) -> Lake:
    """The lake that is meant; credentials come from the environment, or from the project's profile."""
    location = str(arguments.lake)
    project = open_project(arguments)
    if project is not None:
        return project.lake
    if "://" not in location and not Path(location).is_dir():
        if " " in location.strip():
            raise InputError.bad_argument(
                "LAKE", location, "a folder or a URL like s3://bucket/prefix; SQL stands behind -c"
            )
        raise NotFoundError.folder(location)
    from headwater.lakehouse import connect

    return connect(location)

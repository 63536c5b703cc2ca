"""Nodes: what a project declares, each as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

__all__ = ["SOURCE", "Node"]

SOURCE = "source"
"""The kind of a table that is read and not made."""


@dataclass(frozen=True, kw_only=True)
class Node:
    """A table that a project reads, or an artefact that it keeps.

    Parameters
    ----------
    name, kind : str
        the name in the lake; "source", or a kind of derived artefact
    options : mapping
        what the kind is told (`Kind.define`)
    where : str
        the file and line that declare it
    path : Path, optional
        the file of its query or code
    first_line : int
        the line of the file that the query begins with
    freshness : timedelta, optional
        how old the newest change may be that it does not reflect
    tests : sequence
        data tests, as they are written
    tests_at : sequence of str
        the file and line of each of them
    """

    name: str
    kind: str
    where: str
    options: Mapping[str, Any] = field(default_factory=dict)
    path: Path | None = None
    first_line: int = 1
    description: str = ""
    freshness: timedelta | None = None
    tags: tuple[str, ...] = ()
    tests: Sequence[Any] = ()
    tests_at: Sequence[str] = ()

    @property
    def is_source(self) -> bool:
        """Whether it is read and not made."""
        return self.kind == SOURCE

    @property
    def sql(self) -> str | None:
        """Its query, where it has one."""
        return self.options.get("sql")

"""Narrowing: fewer rows for a scan, because something derived from the table knows which of them may count.

A query gives the conditions that rows of a scan have to meet. An artefact of the table (a search index) may know,
without reading them, which rows can meet the conditions. Whoever reads the scan reads just those, and all rows of files
that the artefact does not know; the query then computes its conditions as always.

Invariant: a row of the snapshot that is left out makes one of the conditions false or null.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from headwater.lake.scan import Positions
from headwater.lake.snapshot import Snapshot
from headwater.sql.nodes import Node

__all__ = ["Candidates", "Conditions", "Narrowed"]


@dataclass(frozen=True, slots=True)
class Conditions:
    """What the rows of a scan have to meet: conditions on the columns of a table, all of which have to be true."""

    table: str
    """The name, in whatever case it was written."""
    base: Snapshot
    conditions: tuple[Node, ...]
    scanned_bytes: int
    """The size of the files that have to be scanned otherwise."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """Rows that may meet conditions: by file, sorted positions; and files of which any row may."""

    rows: Mapping[str, Positions]
    unknown: Collection[str]


@dataclass(frozen=True, slots=True)
class Narrowed:
    """What a kind has to say about a scan: the rows to read, or None for all of them; and why,
    in one line for EXPLAIN.
    """

    candidates: Candidates | None
    note: str

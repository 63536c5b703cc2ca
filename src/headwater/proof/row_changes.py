"""Row changes: a Z-set as people read it, with the old and the new values of a row side by side.

A change of a table says that rows went and that rows came. Where columns are known that identify a row, one that went
and one that came with the same key are one row that was updated; several of one key are paired in the order in which
they are listed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from headwater.base import rowkey
from headwater.base.change import ChangeBatch

__all__ = ["Paired", "RowChange", "paired", "row_text"]

Positions = npt.NDArray[np.int64]
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class RowChange:
    """A row that was, and what it became: None where it was not there before, or is not there any more."""

    old: Row | None
    new: Row | None

    @property
    def sign(self) -> str:
        """``+``, ``-``, or ``~`` for an update."""
        return "+" if self.old is None else "-" if self.new is None else "~"

    def as_dict(self) -> dict[str, object]:
        """For ``--json``."""
        return {"old": self.old, "new": self.new}

    def __str__(self) -> str:
        """
        >>> print(RowChange({"id": 1, "n": 2}, {"id": 1, "n": 3}))
        ~ id=1 n=2 -> 3
        """
        if self.old is None or self.new is None:
            return f"{self.sign} {row_text(self.new or self.old or {})}"
        texts = (
            f"{name}={_text(old)}" if _same(old, self.new[name]) else f"{name}={_text(old)} -> {_text(self.new[name])}"
            for name, old in self.old.items()
        )
        return f"~ {' '.join(texts)}"


@dataclass(frozen=True, slots=True)
class Paired:
    """A change row by row: how many rows came, went and were updated, and the first of them."""

    inserted: int
    deleted: int
    updated: int
    rows: tuple[RowChange, ...]


def paired(change: ChangeBatch, key: Sequence[str], limit: int | None = None) -> Paired:
    """The rows of a change, those with the same key side by side; without a key, each by itself.

    >>> import pyarrow as pa
    >>> change = ChangeBatch.diff(pa.table({"id": [1, 2], "n": [5, 6]}), pa.table({"id": [1, 3], "n": [7, 8]}))
    >>> for row in paired(change, ["id"]).rows:
    ...     print(row)
    ~ id=1 n=5 -> 7
    - id=2 n=6
    + id=3 n=8
    """
    change = change.consolidate()
    weights = change.weights
    listed = np.repeat(np.arange(change.num_rows), np.abs(weights))
    went, came = listed[weights[listed] < 0], listed[weights[listed] > 0]
    pairs: list[tuple[int, int]] = []
    if key and len(went) and len(came):
        codes = rowkey.row_codes(change.rows.select(list(key))).ids
        _, of_went, of_came = np.intersect1d(
            *_numbered(codes[went], codes[came]), assume_unique=True, return_indices=True
        )
        pairs = list(zip(went[of_went].tolist(), came[of_came].tolist(), strict=True))
        went, came = np.delete(went, of_went), np.delete(came, of_came)
    places: list[tuple[int, int | None, int | None]] = [(min(old, new), old, new) for old, new in pairs]
    places += [(at, at, None) for at in went.tolist()]
    places += [(at, None, at) for at in came.tolist()]
    places.sort(key=lambda place: place[0])
    shown = tuple(_taken(change, places[:limit]))
    return Paired(len(came), len(went), len(pairs), shown)


def row_text(row: Row) -> str:
    """A row on one line."""
    return " ".join(f"{name}={_text(value)}" for name, value in row.items())


def _numbered(went: Positions, came: Positions) -> tuple[Positions, Positions]:
    """For each row of both sides a number that its partner has, too: of its key, and which of them it is."""
    numbered, most = [], 0
    for codes in (went, came):
        order = np.argsort(codes, kind="stable")
        ordered = codes[order]
        nth = np.empty(len(codes), dtype=np.int64)
        nth[order] = np.arange(len(codes)) - np.searchsorted(ordered, ordered)
        most = max(most, int(nth.max()) + 1)
        numbered.append((codes, nth))
    (first, nth_went), (second, nth_came) = numbered
    return first * most + nth_went, second * most + nth_came


def _taken(change: ChangeBatch, places: Sequence[tuple[int, int | None, int | None]]) -> Iterator[RowChange]:
    wanted = sorted({at for _, *sides in places for at in sides if at is not None})
    rows = dict(zip(wanted, rowkey.take_rows(change.rows, np.array(wanted, dtype=np.int64)).to_pylist(), strict=True))
    for _, old, new in places:
        yield RowChange(None if old is None else rows[old], None if new is None else rows[new])


def _text(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, dict):
        return "{" + row_text(value) + "}"
    return repr(value) if isinstance(value, str) and not value.isidentifier() else str(value)


def _same(one: object, other: object) -> bool:
    return one == other or (one != one and other != other)

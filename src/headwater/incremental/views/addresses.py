"""Addresses: where each row of a view lies, so that a row can be deleted at the price of finding it.

A deletion vector names rows by file and position, and a change of the view names them by their values. Two traces join the two. The
first maps the key of each copy of a row (`keys`) to its address: the number of its file, and its position in it, in one word. The second says
of rows that are there more than once how many copies there are beyond the first; for most views it is empty. The copies of a row have
the numbers from 0 up, without gaps: a new copy takes the next number, and the copy with the highest one goes first. So a
row that is there a million times is found as quickly as any other.

A change is taken over by the traces when somebody looks at them, or when there is time for it (`settle`).

Both traces belong to the state of the view, and are saved with it. Files are numbered from 1 as they come; `files` has the paths of those
that are there.

Invariants: the addresses are those of the live rows of the table at the version that they belong to, each once; a key has one address.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.base.errors import CorruptionError
from headwater.incremental.layout import Layout
from headwater.incremental.trace import Trace
from headwater.incremental.views.keys import Keys, copies_of, expanded, sorted_keys
from headwater.incremental.zset import ZSet

__all__ = ["Addresses", "Places", "Taken", "address", "split_address"]

Words = npt.NDArray[np.int64]
Places = Words
"""Addresses of rows, one word each."""

_POSITION_BITS = 36
_POSITION = (1 << _POSITION_BITS) - 1


def _key_fields() -> list[pa.Field]:
    return [pa.field(name, pa.int64(), nullable=False) for name in ("high", "low")]


_WHERE = Layout(pa.schema([*_key_fields(), pa.field("at", pa.int64(), nullable=False)]), keys=2)
_MORE = Layout(pa.schema(_key_fields()), keys=2)


def address(file: int | Words, position: Words) -> Places:
    """The word that stands for positions of a file.

    >>> [part.tolist() for part in split_address(address(3, np.array([0, 9])))]
    [[3, 3], [0, 9]]
    """
    return (np.int64(file) if isinstance(file, int) else file) << np.int64(_POSITION_BITS) | position


def split_address(places: Places) -> tuple[Words, Words]:
    """The numbers of the files, and the positions in them."""
    return places >> _POSITION_BITS, places & _POSITION


@dataclass(slots=True)
class Taken:
    """Copies of rows that a change deletes or inserts: their keys, which row each is of, and how `more` changes."""

    keys: Keys
    which: Words
    more: Words


class Addresses:
    """The places of a view's rows."""

    def __init__(self) -> None:
        self.where = Trace(_WHERE)
        self.more = Trace(_MORE)
        self.files: dict[int, str] = {}
        self.next_file = 1
        self._pending: list[tuple[Trace, ZSet]] = []

    def settle(self) -> None:
        """Let the traces take over what has changed."""
        pending, self._pending = self._pending, []
        for trace, change in pending:
            trace.add(change)

    @property
    def traces(self) -> Mapping[str, Trace]:
        """The state, by the names that it is saved under."""
        self.settle()
        return {"view/addresses": self.where, "view/copies": self.more}

    def to_json(self) -> Any:
        """What is saved beside the traces."""
        return {"next": self.next_file, "files": {str(number): path for number, path in self.files.items()}}

    def load(self, saved: Any) -> None:
        """Take back what `to_json` gave."""
        self.next_file = int(saved["next"])
        self.files = {int(number): str(path) for number, path in saved["files"].items()}

    # -- files -----------------------------------------------------------------------------------------------------

    def number(self, path: str) -> int:
        """Give a new file its number."""
        number, self.next_file = self.next_file, self.next_file + 1
        assert number < 1 << 62 - _POSITION_BITS, "the numbers of files have come to an end"
        self.files[number] = path
        return number

    def forget(self, paths: Iterable[str]) -> None:
        """Files are not there any more."""
        gone = set(paths)
        self.files = {number: path for number, path in self.files.items() if path not in gone}

    def by_file(self, places: Places) -> dict[str, Words]:
        """Addresses as positions, rising, in each file."""
        if not len(places):
            return {}
        files, positions = split_address(np.sort(places))
        starts = np.flatnonzero(np.diff(files, prepend=-1))
        return {
            self.files[int(files[start])]: part
            for start, part in zip(starts, np.split(positions, starts[1:]), strict=True)
        }

    # -- looking ---------------------------------------------------------------------------------------------------

    def beyond(self, keys: Keys) -> Words:
        """How many copies of each row there are beyond the first."""
        self.settle()
        if not len(self.more):
            return np.zeros(len(keys), dtype=np.int64)
        return self.more.weights(_rows(_MORE, keys))[:, 0]

    def find(self, keys: Keys) -> Places:
        """The address of each copy; -1 for one that is not there."""
        self.settle()
        found = np.full(len(keys), -1, dtype=np.int64)
        if not len(keys) or not len(self.where):
            return found
        matches = self.where.find(_rows(_WHERE, keys))
        at, weights = matches.rows.rows[:, 3], matches.rows.rows[:, -1]
        if (weights > 0).all():
            found[matches.which] = at
            return found
        order = np.lexsort((at, matches.which))
        which, at, weights = matches.which[order], at[order], weights[order]
        first = np.flatnonzero((np.diff(which, prepend=-1) != 0) | (np.diff(at, prepend=-1) != 0))
        sums = np.add.reduceat(weights, first)
        alive = first[sums > 0]
        found[which[alive]] = at[alive]
        return found

    # -- what a change needs ---------------------------------------------------------------------------------------

    def leaving(self, keys: Keys, count: Words, where: str) -> tuple[Taken, Places]:
        """The copies of rows that go, ``count`` of each, and where they lie."""
        beyond = self.beyond(keys)
        there = beyond + 1
        if (count > there).any():
            raise _lost(where)
        copies, which = expanded(keys, there - count, count)
        places = self.find(copies)
        if (places < 0).any():
            raise _lost(where)
        return Taken(copies, which, np.maximum(there - count - 1, 0) - beyond), places

    def coming(self, keys: Keys, count: Words) -> Taken:
        """The copies of rows that come, ``count`` of each."""
        beyond = self.beyond(keys)
        there = np.where(beyond > 0, beyond + 1, self.find(keys) >= 0).astype(np.int64)
        copies, which = expanded(keys, there, count)
        return Taken(copies, which, np.maximum(there + count - 1, 0) - beyond)

    # -- changing --------------------------------------------------------------------------------------------------

    def change(self, removed: Sequence[tuple[Keys, Places]], added: Sequence[tuple[Keys, Places]]) -> None:
        """Let copies have other addresses, or none."""
        pieces = [_rows(_WHERE, keys, places, -1).rows for keys, places in removed]
        pieces += [_rows(_WHERE, keys, places, 1).rows for keys, places in added]
        rows = np.concatenate(pieces) if pieces else np.zeros((0, _WHERE.width), dtype=np.int64)
        self._pending.append((self.where, ZSet(_WHERE, rows)))

    def count(self, keys: Keys, by: Words) -> None:
        """Change how many copies there are beyond the first."""
        moved = np.flatnonzero(by)
        if len(moved):
            self._pending.append((self.more, _rows(_MORE, keys[moved], weights=by[moved])))

    def build(self, keys: Keys, places: Places) -> None:
        """Have just these rows, listed once for each copy, in any order; the files are numbered already."""
        self.where, self.more, self._pending = Trace(_WHERE), Trace(_MORE), []
        order, new = sorted_keys(keys)
        keys, places = keys[order], places[order]
        first = np.flatnonzero(new)
        number = np.arange(len(keys), dtype=np.int64) - np.repeat(first, np.diff(first, append=len(keys)))
        self.change([], [(copies_of(keys, number), places)])
        self.count(keys[first], np.diff(first, append=len(keys)) - 1)


def _rows(layout: Layout, keys: Keys, places: Places | None = None, weights: int | Words = 1) -> ZSet:
    rows = np.zeros((len(keys), layout.width), dtype=np.int64)
    rows[:, 1:3] = keys.view(np.int64)
    if places is not None:
        rows[:, 3] = places
    rows[:, -1] = weights
    return ZSet(layout, rows)


def _lost(where: str) -> CorruptionError:
    return CorruptionError.derived_state("it does not know a row that the table has", where)

"""Addresses: where each row of a view lies, so that a row can be deleted at the price of finding it.

A deletion vector names rows by file and position, and a change of the view names them by their values. Two traces join
the two. The first maps the key of each copy of a row to its address: the number of its file, and its position in it, in
one word. The second says of rows that are there more than once how many copies there are beyond the first; for most
views it is empty. The copies of a row have the numbers from 0 up, without gaps: a new copy takes the next number, and
the copy with the highest one goes first. So a row that is there a million times is found as quickly as any other.

A change is taken over by the traces when somebody looks at them, or when there is time for it (`settle`).

Both traces belong to the state of the view, and are saved with it. Files are numbered from 1 as they come; `files` has
the paths of those that are there.

Invariants: the addresses are those of the live rows of the table at the version that they belong to, each once; a key
has one address.

**Keys.** A row is known by a key of 128 bits, two hashes of 64. They have to be independent: the first folds the words
of a row from the left, the second from the right; and since the hash of a string is one word of either, the second
takes each string with a byte put before it, which moves all of its words. Copies of a row are numbered from 0, and the
key of a copy is that of the row, moved by the number. With n rows the probability that any two keys agree is about
n²/2¹²⁹: 10⁻²³ for a hundred million rows. Format (a part of the state on disk): version 1, over
`headwater.kernels.hash.HASH_VERSION` 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headwater.base.errors import CorruptionError
from headwater.incremental.layout import Layout, Placed
from headwater.incremental.packing import pack, unpack_column
from headwater.incremental.trace import Trace
from headwater.incremental.zset import ZSet
from headwater.kernels.hash import hash_rows

__all__ = [
    "VERSION",
    "Addresses",
    "Keys",
    "Places",
    "Taken",
    "address",
    "copies_of",
    "expanded",
    "row_keys",
    "sorted_keys",
    "split_address",
]

VERSION = 1
Keys = npt.NDArray[np.uint64]
"""A matrix with a line of two words for each row."""

_STEP = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F], dtype=np.uint64)
_PREFIX = b"\x01"


def row_keys(zset: ZSet) -> Keys:
    """The key of each row, whatever its weight.

    >>> z = ZSet.from_arrow(pa.table({"id": [1, 2, 1], "name": ["a", None, "a"]}))
    >>> keys = row_keys(z)
    >>> bool((keys[0] == keys[2]).all()), bool((keys[0] == keys[1]).any())
    (True, False)
    """
    layout, rows = zset.layout, zset.rows
    out = np.empty((len(rows), 2), dtype=np.uint64)
    if not len(rows):
        return out
    parts, words, texts = _plan(layout)
    out[:, 0] = hash_rows(rows, parts)
    if not texts:
        out[:, 1] = hash_rows(rows, words)
        return out
    moved, owners = _moved(rows, texts, hash_rows(rows, words))
    out[:, 1] = hash_rows(moved, _all_parts(len(texts)))
    del owners  # the texts were needed until here
    return out


@lru_cache(maxsize=64)
def _plan(layout: Layout) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], list[Placed]]:
    """What is hashed from the left, what from the right, and the columns of texts."""
    nulls = [(w, 0, -1) for w in range(max(1, -(-len(layout.columns) // 64)))]
    parts = [part for column in layout.columns for part in column.parts] + nulls
    words = [part for column in layout.columns if not column.is_slot for part in column.parts] + nulls
    return _matrix(parts), _matrix(words[::-1]), [column for column in layout.columns if column.is_slot]


def _moved(
    rows: npt.NDArray[np.int64], texts: list[Placed], others: npt.NDArray[np.uint64]
) -> tuple[npt.NDArray[np.int64], tuple[object, ...]]:
    """The texts of rows, each with a byte before it, behind the hash of the other columns."""
    columns: list[pa.Array] = [pa.array(others.view(np.int64))]
    for column in texts:
        plain = Placed(
            column.name, pa.binary(), column.nullable, "slot", column.word, column.null_word, column.null_bit
        )
        array = unpack_column(plain, rows)
        columns.append(pc.binary_join_element_wise(pa.scalar(_PREFIX), array, pa.scalar(b"", pa.binary())))
    return pack(_text_layout(len(texts)), columns, len(rows))


def _text_layout(texts: int) -> Layout:
    fields = [pa.field("others", pa.int64(), nullable=False)]
    return Layout(pa.schema([*fields, *(pa.field(f"t{i}", pa.binary()) for i in range(texts))]))


def _all_parts(texts: int) -> npt.NDArray[np.int64]:
    return _matrix([part for column in _text_layout(texts).columns for part in column.parts])


def _matrix(parts: list[tuple[int, int, int]]) -> npt.NDArray[np.int64]:
    return np.array(parts, dtype=np.int64).reshape(len(parts), 3)


def expanded(
    keys: Keys, first: npt.NDArray[np.int64], count: npt.NDArray[np.int64]
) -> tuple[Keys, npt.NDArray[np.int64]]:
    """The keys of the copies ``first … first + count - 1`` of each row, and which row each of them is of."""
    if (count == 1).all():
        return copies_of(keys, first), np.arange(len(keys), dtype=np.int64)
    which = np.repeat(np.arange(len(keys), dtype=np.int64), count)
    starts = np.cumsum(count) - count
    number = np.arange(len(which), dtype=np.int64) - starts[which] + first[which]
    return copies_of(keys[which], number), which


def copies_of(keys: Keys, number: npt.NDArray[np.int64]) -> Keys:
    """The keys of one copy of each row.

    >>> keys = np.array([[5, 7]], dtype=np.uint64)
    >>> bool((copies_of(keys, np.array([0])) == keys).all()), bool((copies_of(keys, np.array([1])) == keys).any())
    (True, False)
    """
    if not number.any():
        return keys
    return keys + number.astype(np.uint64)[:, None] * _STEP


def sorted_keys(keys: Keys) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """An order in which equal keys come together, and where in it another key begins.

    >>> order, new = sorted_keys(np.array([[9, 1], [2, 5], [9, 1]], dtype=np.uint64))
    >>> order.tolist(), new.tolist()
    ([1, 0, 2], [True, True, False])
    """
    order = np.argsort(keys[:, 0], kind="stable")
    ordered = keys[order]
    high = ordered[1:, 0] != ordered[:-1, 0]
    differs = high | (ordered[1:, 1] != ordered[:-1, 1])
    if (differs & ~high).any():  # two rows share one hash of the two, which hardly ever happens
        order = np.lexsort((keys[:, 1], keys[:, 0]))
        ordered = keys[order]
        differs = (ordered[1:] != ordered[:-1]).any(axis=1)
    return order.astype(np.int64, copy=False), np.concatenate([np.ones(min(1, len(keys)), dtype=bool), differs])


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
        self.fill(keys, places)

    def fill(self, keys: Keys, places: Places) -> None:
        """The same, where there are none yet."""
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

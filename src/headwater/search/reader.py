"""Readers: an index over the rows that are alive at one version of the table.

A reader joins three things: a snapshot of the table, which alone says which files and rows there are; the splits of a
record; and the rows of files that no split covers, which are indexed on the spot and kept on this machine for the next
question. It gives rows as addresses, (file, position). It is immutable: another version has another reader.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from headwater.base import events
from headwater.base.errors import CorruptionError, NotFoundError, SearchQueryError
from headwater.base.frontier import Frontier
from headwater.base.scratch import own_folder
from headwater.derived.sources import identity_of
from headwater.lake import deletion_vectors
from headwater.lake.actions import AddFile
from headwater.lake.scan import live_vector
from headwater.lake.snapshot import Snapshot
from headwater.search.assembled import Bits, Segment, assemble
from headwater.search.cover import Cover
from headwater.search.definition import Definition
from headwater.search.fields import BUILD, DOCUMENT
from headwater.search.native import guarded
from headwater.search.patterns import TermList
from headwater.search.split_builder import build_splits
from headwater.search.split_file import terms_of
from headwater.search.split_store import SplitStore, forget, forget_corrupt, keep, lend

__all__ = ["Hits", "Part", "Reader", "open_reader"]

Integers = np.ndarray[Any, np.dtype[np.int64]]
_MOST_TRANSIENT = 4_096


@dataclass(frozen=True)
class Hits:
    """Rows by their addresses: numbers of files (in ``Reader.paths``) and positions,
    with scores or values they are ordered by.
    """

    files: Integers
    positions: Integers
    scores: Sequence[Any]
    total: int | None = None
    segments: Integers | None = None
    documents: Integers | None = None

    def part(self, wanted: Any) -> Hits:
        """Some of them, by their numbers or by a mask."""
        scores = np.asarray(self.scores, object)[wanted].tolist() if len(self.scores) else self.scores
        rest = (None if one is None else one[wanted] for one in (self.segments, self.documents))
        return Hits(self.files[wanted], self.positions[wanted], scores, self.total, *rest)

    def __len__(self) -> int:
        return len(self.files)


@dataclass(frozen=True)
class Part:
    """A split in use: its name, a folder with links to its files, and its cover."""

    name: str
    folder: str
    cover: Cover


class Reader:
    """An index at one version of its table."""

    def __init__(
        self,
        meant: Definition,
        base: Snapshot,
        parts: Sequence[Part],
        covered: int,
        home: str,
        uncovered: Collection[str] = (),
    ) -> None:
        """``home`` is a folder that the reader owns: the parts lie in it, and it is deleted with the reader."""
        self.meant, self.base = meant, base
        self.lent = {part.name: part.folder for part in parts}
        weakref.finalize(self, shutil.rmtree, home, ignore_errors=True)
        self.uncovered = frozenset(uncovered)
        """Files of the snapshot whose rows it does not find."""
        self.covered_rows = covered
        self.key = (base.where, base.table_id, base.version, meant.stamp_of(base), tuple(self.lent))
        """What decides its answers: which rows there are, and in which order the splits name them."""
        self.paths: list[str] = list(base.files)
        self._numbers = {path: n for n, path in enumerate(self.paths)}
        taken: set[str] = set()
        chosen: list[tuple[Part, int]] = []
        segments: list[Segment] = []
        self._files: dict[str, Integers] = {}
        for part in parts:
            cover = part.cover
            here = [p for p in cover.files if p in self._numbers and p not in taken]
            if not here:
                continue
            self._files[part.name] = np.array([self._numbers.get(p, -1) for p in cover.files], np.int64)
            for number, alive in enumerate(self._alive(cover, taken)):
                id_, count = cover.segments[number]
                if alive is None or alive.any():
                    chosen.append((part, number))
                    segments.append(Segment(part.folder, id_, count, alive))
            taken.update(here)
        self._segments = chosen
        self.compiled: OrderedDict[Hashable, Any] = OrderedDict()
        """The library's queries for the last questions: see `compile_query`."""
        self.extents: dict[str, Any] = {}
        """Between which values all rows of a column lie: see `extents_of_all`."""
        self._open(segments, home)

    def _alive(self, cover: Cover, taken: set[str]) -> list[Bits | None]:
        """Which documents of each segment are alive in the snapshot; None: all of them."""
        dead: list[list[Any]] = [[] for _ in cover.segments]
        for file, path in enumerate(cover.files):
            add = self.base.files.get(path)
            if add is None or path in taken:
                for segment, document, count in cover.spans(file):
                    dead[segment].append(slice(document, document + count))
            elif (vector := live_vector(self.base, add)) is not None:
                for segment, documents in cover.documents(file, deletion_vectors.positions(vector)):
                    dead[segment].append(documents)
        found: list[Bits | None] = []
        for (_, count), gone in zip(cover.segments, dead, strict=True):
            alive = None
            if gone:
                alive = np.ones(count, np.bool_)
                for documents in gone:
                    alive[documents] = False
            found.append(alive)
        return found

    def _open(self, segments: Sequence[Segment], home: str) -> None:
        import tantivy

        with guarded("opening an index"):
            if not segments:
                self.index = tantivy.Index(self.meant.fields.schema())
            else:
                folder = tempfile.mkdtemp(dir=home)
                assemble(segments, folder)
                self.index = tantivy.Index.open(folder)
                self.index.config_reader(reload_policy="manual")
                self.index.reload()
            self.meant.fields.register(self.index)
            self.schema = self.index.schema
            self.searcher = self.index.searcher()
            self._check_order()

    def _check_order(self) -> None:
        """The library has the segments in our order: the build and number of the first document of each say so."""
        import tantivy

        firsts = [tantivy.DocAddress(n, 0) for n in range(len(self._segments))]
        if not firsts:
            return
        builds = self.searcher.fast_field_values(BUILD, firsts)
        numbers = self.searcher.fast_field_values(DOCUMENT, firsts)
        for (part, segment), build, number in zip(self._segments, builds, numbers, strict=True):
            first = next(run for run in part.cover.runs if run.segment == segment)
            if (build, number) != (first.build, first.number):
                raise CorruptionError.state_file(part.name, "its documents are not those of its cover", "the cache")

    # -- questions -------------------------------------------------------------------------------------------------

    def count(self, query: Any) -> int:
        """How many rows match."""
        with guarded("counting"):
            found: Any = self.searcher.search(query, limit=1, count=True)
        return int(found.count or 0)

    def top(self, query: Any, k: int, offset: int = 0, *, count: bool = False) -> Hits:
        """The rows with the best scores, best first."""
        return self._searched(query, k, offset, count)

    def ordered(
        self, query: Any, field: str, k: int, offset: int = 0, *, descending: bool, count: bool = False
    ) -> Hits:
        """The rows with the smallest or largest values of a field that is not text; nulls come last."""
        import tantivy

        order = tantivy.Order.Desc if descending else tantivy.Order.Asc
        return self._searched(query, k, offset, count, order_by_field=field, order=order)

    def every(self, query: Any) -> Hits:
        """All rows that match, in the order of files and positions, without scores."""
        import tantivy

        total = self.count(query)
        if not total:
            return Hits(np.empty(0, np.int64), np.empty(0, np.int64), (), 0)
        hits = self._searched(tantivy.Query.const_score_query(query, 1.0), total, 0, False)
        order = np.lexsort((hits.positions, hits.files))
        return replace(hits.part(order), scores=(), total=total)

    def _searched(self, query: Any, k: int, offset: int, count: bool, **options: Any) -> Hits:
        k = min(k, int(self.searcher.num_docs) - offset)  # the library makes room for so many rows at once
        if not self._segments or k <= 0:
            return Hits(np.empty(0, np.int64), np.empty(0, np.int64), (), self.count(query) if count else None)
        with guarded("searching"):
            found: Any = self.searcher.search(query, limit=k, count=count, offset=offset, **options)
            hits = found.hits
        documents = np.array([address.doc for _, address in hits], np.int64)
        if len(self._segments) == 1:
            segments = np.zeros(len(hits), np.int64)
        else:
            segments = np.array([address.segment_ord for _, address in hits], np.int64)
        files, positions = self.addresses(segments, documents)
        return Hits(
            files, positions, [score for score, _ in hits], int(found.count) if count else None, segments, documents
        )

    def addresses(self, segments: Integers, documents: Integers) -> tuple[Integers, Integers]:
        """The files and positions of documents."""
        files, positions = np.empty_like(documents), np.empty_like(documents)
        for number in np.unique(segments):
            mine = segments == number
            part, segment = self._segments[number]
            own, at = part.cover.addresses(segment, documents[mine])
            files[mine], positions[mine] = self._files[part.name][own], at
        assert not len(files) or files.min() >= 0, "a document that is alive belongs to a file of the snapshot"
        return files, positions

    def place(self, number: int) -> tuple[str, int]:
        """The folder of the split that a segment belongs to, and how many documents of it come before the segment."""
        part, segment = self._segments[number]
        return part.folder, sum(count for _, count in part.cover.segments[:segment])

    def document(self, path: str, position: int) -> Any | None:
        """The document of a row, for the library; None if the row is not alive."""
        import tantivy

        number = self._numbers.get(path)
        for at, (part, segment) in enumerate(self._segments):
            for file in np.flatnonzero(self._files[part.name] == number):
                for found, documents in part.cover.documents(int(file), np.array([position], np.int64)):
                    if found == segment:
                        return tantivy.DocAddress(at, int(documents[0]))
        return None

    def aggregate(self, query: Any, wanted: Mapping[str, Any]) -> dict[str, Any]:
        """The library's aggregation over the rows that match."""
        with guarded("aggregating"):
            found: dict[str, Any] = self.searcher.aggregate(query, dict(wanted))
        return found

    @cached_property
    def frontier(self) -> Frontier:
        """The version of the table that it answers from."""
        source, base = self.meant.source, self.base
        return Frontier({source: base.version}).identified({source: identity_of(base, self.meant.columns)})

    @cached_property
    def terms(self) -> Mapping[str, list[TermList]]:
        """The sorted terms of each text field, by split; some may be of rows that are not alive."""
        found: dict[str, list[TermList]] = {}
        for part in {part.name: part for part, _ in self._segments}.values():
            for field, listed in _terms(part):
                found.setdefault(field, []).append(listed)
        return found

    @property
    def folders(self) -> list[str]:
        return list(dict.fromkeys(part.folder for part, _ in self._segments))


_term_lists: OrderedDict[str, list[tuple[str, TermList]]] = OrderedDict()
_guard = threading.Lock()


def _terms(part: Part) -> list[tuple[str, TermList]]:
    with _guard:
        if part.name in _term_lists:
            _term_lists.move_to_end(part.name)
            return _term_lists[part.name]
    with guarded("reading the terms"):
        found = [(field, TermList(terms)) for field, terms in terms_of(part.folder)]
    with _guard:
        _term_lists[part.name] = found
        while len(_term_lists) > 256:
            _term_lists.popitem(last=False)
    return found


# -- files that no split covers --------------------------------------------------------------------------------------

_transient: OrderedDict[tuple[str, str, str], tuple[str, str, Cover]] = OrderedDict()
"""Splits that were built for a question: by table, stamp and file, their names, where they lie and what they cover."""

_Report = Callable[[str, Exception], object]


def open_reader(
    meant: Definition,
    base: Snapshot,
    store: SplitStore,
    names: Sequence[str],
    *,
    report: _Report,
    whole: bool = True,
) -> Reader:
    """A reader of a snapshot: by the splits that cover its files, and by indexing what is left, if it has to be
    ``whole``.

    A split that is missing or corrupt is given to ``report``, and not used. If the library cannot open what is there,
    copies in the cache that are corrupt are fetched again, and a split that it cannot open even so counts as corrupt.
    """
    left, reopened = list(names), False
    while True:
        home = tempfile.mkdtemp(prefix="headwater-reader-", dir=own_folder())
        parts: list[Part] = []
        try:
            covered, uncovered = _lent(meant, base, store, left, home, parts, report, whole=whole)
            return Reader(meant, base, parts, covered, home, uncovered)
        except (CorruptionError, SearchQueryError, OSError, ValueError, KeyError, AssertionError) as e:
            try:
                corrupt = forget_corrupt({part.name: part.folder for part in parts})
                if corrupt and not reopened:
                    reopened = True
                    continue
                bad = _unusable(meant, base, parts)
                if not bad:
                    raise
                for part in bad:
                    report(part.name, e)
                    _forget_transient(part.name)
                left = [name for name in left if all(name != part.name for part in bad)]
            finally:
                shutil.rmtree(home, ignore_errors=True)
        except BaseException:
            shutil.rmtree(home, ignore_errors=True)
            raise


def _unusable(meant: Definition, base: Snapshot, parts: Sequence[Part]) -> list[Part]:
    """Those of some splits that the library cannot open by themselves."""
    found = []
    for part in parts:
        try:
            Reader(meant, base, [part], 0, tempfile.mkdtemp(prefix="headwater-reader-", dir=own_folder()))
        except (CorruptionError, SearchQueryError, OSError, ValueError, KeyError, AssertionError):
            found.append(part)
    return found


def _lent(
    meant: Definition,
    base: Snapshot,
    store: SplitStore,
    names: Sequence[str],
    home: str,
    parts: list[Part],
    report: _Report,
    *,
    whole: bool,
) -> tuple[int, tuple[str, ...]]:
    """Lend the splits that a snapshot needs to a folder.

    Gives the number of rows that splits of the index cover, and the files that are left out.
    """
    stamp = meant.stamp_of(base)
    covered: set[str] = set()

    def wanted(name: str) -> bool:
        cover = store.cover(name)
        return cover.stamp == stamp and any(path in base.files for path in cover.files)

    store.fetch(wanted, names)
    for name in names:
        try:
            cover = store.cover(name)
            if cover.stamp != stamp or not any(p in base.files and p not in covered for p in cover.files):
                continue
            folder = os.path.join(home, name)
            store.lend(name, folder)
        except (NotFoundError, CorruptionError) as e:
            report(name, e)
            continue
        parts.append(Part(name, folder, cover))
        covered.update(cover.files)
    missing = [f for path, f in base.files.items() if path not in covered and f.num_records != 0]
    if whole:
        _lend_for_now(meant, base, missing, stamp, home, parts)
    rows = sum((f.num_records or 0) - f.num_deleted for path, f in base.files.items() if path in covered)
    return rows, () if whole else tuple(f.path for f in missing)


def _lend_for_now(
    meant: Definition, base: Snapshot, files: Sequence[AddFile], stamp: str, home: str, parts: list[Part]
) -> None:
    """Lend splits of files that no split of the index covers, made if they are not there."""
    keys = {f.path: (base.where, stamp, f.path) for f in files}
    with _guard:
        known = {
            name: (folder, cover)
            for key in keys.values()
            if key in _transient
            for name, folder, cover in [_transient[key]]
        }
    there: set[str] = set()
    for name, (folder, cover) in known.items():
        if lend(folder, to := os.path.join(home, name)):
            parts.append(Part(name, to, cover))
            there.update(cover.files)
    left = [f for f in files if f.path not in there]
    if not left:
        return
    rows = sum(f.num_records or 0 for f in left)
    with events.task(
        f"index {len(left)} file{'' if len(left) == 1 else 's'} of {meant.source} for a search", unit="rows"
    ) as task:
        task.expect(rows or None)
        for built in build_splits(meant, base, left, advance=task.advance):
            to = os.path.join(home, built.name)
            lent = lend(built.folder, to)
            assert lent, "a folder that nobody knows yet is not evicted"
            folder = keep(built)
            parts.append(Part(built.name, to, built.cover))
            with _guard:
                for path in built.cover.files:
                    _transient[keys[path]] = (built.name, folder, built.cover)
                while len(_transient) > _MOST_TRANSIENT:
                    _transient.popitem(last=False)


def _forget_transient(name: str) -> None:
    forget(name)
    with _guard:
        for key in [key for key, (one, _, _) in _transient.items() if one == name]:
            del _transient[key]

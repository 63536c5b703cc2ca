"""Building splits: from the rows of data files to files that can be searched.

One writer, one thread: the library then keeps documents in the order in which they came, and that order is all that
says which row a document is (`cover`). Its buffer is bounded, so a large split may have several segments; each holds
consecutive documents, and the number in the field ``_d`` of its first one says which.

A builder takes whole data files until it has the rows that a split should have, and then begins another split.
"""

from __future__ import annotations

import bisect
import itertools
import os
import secrets
import shutil
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from headwater.lake.actions import AddFile
from headwater.lake.scan import read_file
from headwater.lake.snapshot import Snapshot
from headwater.search.cover import Cover, Run
from headwater.search.definition import Definition
from headwater.search.documents import documents
from headwater.search.fields import DOCUMENT, Fields
from headwater.search.native import guarded
from headwater.search.scratch import scratch_folder
from headwater.search.split_file import HOT, pack, read_meta, write_terms

__all__ = ["BuiltSplit", "all_terms", "build_splits", "new_name", "packed"]

_HEAP_BYTES = 384 << 20
_SMALL_HEAP_BYTES = 24 << 20
_SMALL_ROWS = 20_000
_TEXT_BYTES = 1 << 30
"""Text that one split takes at most: it stays well below the number of segments that the library merges by itself."""


@dataclass(frozen=True, slots=True)
class BuiltSplit:
    """A split that was built: its name, its cover, and the folder that it lies in, unpacked."""

    name: str
    cover: Cover
    folder: str


def new_name() -> str:
    """A name that no split has."""
    return uuid.uuid4().hex


def build_splits(
    meant: Definition,
    base: Snapshot,
    files: Sequence[AddFile],
    *,
    advance: Callable[[int], object],
) -> Iterator[BuiltSplit]:
    """Splits of all rows of some files. Their folders are temporary: whoever takes one moves it or deletes it."""
    stamp = meant.stamp_of(base)
    waiting = [f for f in files if f.num_records != 0]
    while waiting:
        building = _Building(meant, stamp, _rows_of(waiting))
        try:
            while waiting and building.takes(waiting[0]):
                building.add(base, waiting.pop(0), advance)
            built = building.finish()
        except BaseException:
            building.discard()
            raise
        if built is not None:
            yield built


def _rows_of(files: Sequence[AddFile]) -> int | None:
    counts = [f.num_records for f in files]
    return None if any(n is None for n in counts) else sum(n for n in counts if n is not None)


@dataclass
class _Building:
    """A split that is being built."""

    meant: Definition
    stamp: str
    expected: int | None
    build: int = field(default_factory=lambda: secrets.randbits(31))
    rows: int = 0
    text_bytes: int = 0
    files: list[tuple[str, int]] = field(default_factory=list)
    hot: list[pa.RecordBatch] = field(default_factory=list)

    def __post_init__(self) -> None:
        import tantivy

        few = self.expected is not None and self.expected <= _SMALL_ROWS
        self.folder = scratch_folder("split", small=few)
        with guarded("building a split"):
            self.index = tantivy.Index(self.meant.fields.schema(), path=self.folder)
            self.meant.fields.register(self.index)
            self.writer = self.index.writer(heap_size=_SMALL_HEAP_BYTES if few else _HEAP_BYTES, num_threads=1)

    def takes(self, file: AddFile) -> bool:
        """Whether a file belongs into this split."""
        if not self.rows:
            return True
        return self.rows + (file.num_records or 0) <= self.meant.target_rows and self.text_bytes < _TEXT_BYTES

    def add(self, base: Snapshot, file: AddFile, advance: Callable[[int], object]) -> None:
        """Index all rows of a file."""
        fields = self.meant.fields
        columns = [base.schema.field(c).name for c in self.meant.columns]
        begin = self.rows
        with guarded("indexing"):
            for batch in read_file(base, file, columns, with_deleted=True):
                for document in documents(fields, batch, self.build, self.rows):
                    self.writer.add_document(document)
                self.rows += batch.num_rows
                self.text_bytes += batch.nbytes
                if self.meant.hot:
                    chosen = [base.schema.field(c).name for c in self.meant.hot]
                    self.hot.append(pa.record_batch([batch.column(c) for c in chosen], names=list(self.meant.hot)))
                advance(batch.num_rows)
        if self.rows > begin:
            self.files.append((file.path, self.rows - begin))

    def finish(self) -> BuiltSplit | None:
        """Close it; None if there were no rows."""
        with guarded("building a split"):
            self.writer.commit()
            self.writer.wait_merging_threads()
            if not self.rows:
                self.discard()
                return None
            self.index.reload()
            searcher = self.index.searcher()
            cover = self._cover(searcher)
            write_terms(self.folder, all_terms(self.meant.fields, searcher))
        if self.hot:
            place = os.path.join(self.folder, HOT)
            with pa.OSFile(place, "wb") as sink, pa.ipc.new_file(sink, self.hot[0].schema) as to:
                for batch in pa.Table.from_batches(self.hot).combine_chunks().to_batches():
                    to.write_batch(batch)
        name = new_name()
        return BuiltSplit(name, cover, self.folder)

    def discard(self) -> None:
        """Leave nothing behind."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _cover(self, searcher: Any) -> Cover:
        import tantivy

        segments = [(one["segment_id"], int(one["max_doc"])) for one in read_meta(self.folder)["segments"]]
        firsts = [tantivy.DocAddress(n, 0) for n in range(len(segments))]
        lasts = [tantivy.DocAddress(n, count - 1) for n, (_, count) in enumerate(segments)]
        begins = searcher.fast_field_values(DOCUMENT, firsts)
        ends = searcher.fast_field_values(DOCUMENT, lasts)
        spans = sorted(zip(begins, ends, strict=True))
        whole = all(b[0] == a[1] + 1 for a, b in itertools.pairwise(spans))
        assert whole and spans[0][0] == 0 and spans[-1][1] == self.rows - 1, "segments hold consecutive documents"
        return Cover(
            self.stamp,
            0,
            tuple(path for path, _ in self.files),
            tuple(count for _, count in self.files),
            tuple(segments),
            tuple(_runs([count for _, count in self.files], list(zip(begins, segments, strict=True)), self.build)),
        )


def _runs(files: list[int], segments: list[tuple[int, tuple[str, int]]], build: int) -> Iterator[Run]:
    """The runs of segments, each of which begins at a document number, over files that lie one after the other."""
    ends = list(itertools.accumulate(files))
    for number, (begin, (_, count)) in enumerate(segments):
        low, end = begin, begin + count
        file = bisect.bisect_right(ends, begin)
        while low < end:
            high = min(end, ends[file])
            yield Run(number, low - begin, file, low - (ends[file] - files[file]), high - low, build, low)
            low, file = high, file + 1


def all_terms(fields: Fields, searcher: Any) -> dict[str, list[str]]:
    """The terms of each text field."""
    return {
        fields.name(n): [term for term, _ in searcher.terms_with_prefix(fields.name(n), "")]
        for n, f in enumerate(fields)
        if f.is_text
    }


def packed(built: BuiltSplit, to: str) -> Cover:
    """Write a split to a file, and give its cover with the size."""
    return replace(built.cover, size=pack(built.folder, to))

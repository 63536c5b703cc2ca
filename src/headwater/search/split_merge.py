"""Merging splits: several into one, without reading the table again.

The library merges the segments of an index by itself, when a commit finds enough of similar size. So the segments of
the splits are laid into one folder (`assembled`), an empty commit is made, and what comes out is one segment. To have
it merge just these, whatever their sizes, ``meta.json`` claims that every segment is tiny, and where there are too few,
copies of an empty one are added.

The library chooses the order of the segments. The fields ``_s`` and ``_d`` of a document say which run it begins, so
the new order is read off, run by run. Documents of files that no version needs any more are left out on the way. It
takes about a fifteenth of the time of indexing the rows again.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.search.assembled import Segment, assemble
from headwater.search.cover import Cover, Run, renumbered
from headwater.search.definition import Definition
from headwater.search.fields import BUILD, DOCUMENT, Fields
from headwater.search.native import guarded
from headwater.search.scratch import scratch_folder
from headwater.search.split_builder import BuiltSplit, all_terms, new_name
from headwater.search.split_file import HOT, read_meta, write_terms

__all__ = ["Unmergeable", "merge_splits"]

_ENOUGH = 8
"""The library merges so many segments of similar size, or more."""
_SMALL_HEAP_BYTES = 16 << 20
_SMALL_ROWS = 100_000


class Unmergeable(Exception):
    """These splits cannot be merged in this way; they have to be built again."""


@dataclass(frozen=True, slots=True)
class _Input:
    folder: str
    cover: Cover


def merge_splits(
    meant: Definition, splits: Sequence[tuple[str, Cover]], gone: Collection[str] = ()
) -> BuiltSplit | None:
    """One split of several, given by their folders, without the files that are gone; None if nothing is left."""
    inputs = [_Input(folder, cover) for folder, cover in splits]
    stamp = inputs[0].cover.stamp
    assert all(one.cover.stamp == stamp for one in inputs), "only splits of one stamp are merged"
    kept = _kept_runs(inputs, gone)
    if not kept:
        return None
    small = sum(run.count for _, run in kept.values()) <= _SMALL_ROWS
    folder = scratch_folder("merge", small=small)
    try:
        with guarded("merging splits"):
            _lay_out(meant.fields, inputs, gone, folder)
            searcher, segment_id = _merged(meant.fields, folder)
            order = _order(searcher, kept, folder)
            cover = renumbered([one.cover for one in inputs], order, segment_id, stamp)
            write_terms(folder, all_terms(meant.fields, searcher))
        if meant.hot:
            _merge_hot(inputs, order, folder)
        return BuiltSplit(new_name(), cover, folder)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _kept_runs(inputs: Sequence[_Input], gone: Collection[str]) -> dict[tuple[int, int], tuple[int, Run]]:
    """The runs that stay, by what the fields of their first document hold."""
    kept: dict[tuple[int, int], tuple[int, Run]] = {}
    for split, one in enumerate(inputs):
        for run in one.cover.runs:
            if one.cover.files[run.file] in gone:
                continue
            if (run.build, run.number) in kept:
                raise Unmergeable("two builds have the same number, by chance")
            kept[run.build, run.number] = split, run
    return kept


def _lay_out(fields: Fields, inputs: Sequence[_Input], gone: Collection[str], folder: str) -> None:
    """Lay all segments into a folder so that the library will merge them."""
    segments = []
    for one in inputs:
        for number, (id_, count) in enumerate(one.cover.segments):
            alive = np.ones(count, np.bool_)
            for run in one.cover.runs:
                if run.segment == number and one.cover.files[run.file] in gone:
                    alive[run.document : run.document + run.count] = False
            if alive.any():
                segments.append(Segment(one.folder, id_, count, alive, claimed=1))
    pads = scratch_folder("padding", small=True)
    try:
        segments += _padding(fields, pads, max(0, _ENOUGH - len(segments)))
        assemble(segments, folder)
    finally:
        shutil.rmtree(pads, ignore_errors=True)


def _padding(fields: Fields, folder: str, count: int) -> list[Segment]:
    """Segments of two documents that are dead; with one that is claimed to be alive, the library merges them."""
    import tantivy

    if not count:
        return []
    index = tantivy.Index(fields.schema(), path=folder)
    fields.register(index)
    writer = index.writer(heap_size=_SMALL_HEAP_BYTES, num_threads=1)
    for _ in range(2):
        writer.add_document(tantivy.Document())
    writer.commit()
    writer.wait_merging_threads()
    first = str(read_meta(folder)["segments"][0]["segment_id"])
    ids = [first]
    for _ in range(count - 1):
        other = str(uuid.uuid4())
        for name in os.listdir(folder):
            if name.startswith(first.replace("-", "")):
                shutil.copyfile(os.path.join(folder, name), os.path.join(folder, other.replace("-", "") + name[32:]))
        ids.append(other)
    return [Segment(folder, id_, 2, np.zeros(2, np.bool_), claimed=1) for id_ in ids]


def _merged(fields: Fields, folder: str) -> tuple[Any, str]:
    """Let the library merge what lies in a folder."""
    import tantivy

    index = tantivy.Index.open(folder)
    fields.register(index)
    writer = index.writer(heap_size=_SMALL_HEAP_BYTES, num_threads=1)
    writer.commit()
    writer.wait_merging_threads()
    segments = read_meta(folder)["segments"]
    if len(segments) != 1 or segments[0]["deletes"] is not None:
        raise Unmergeable("the library did not merge the segments into one")
    index = tantivy.Index.open(folder)
    fields.register(index)
    return index.searcher(), str(segments[0]["segment_id"])


def _order(searcher: Any, kept: dict[tuple[int, int], tuple[int, Run]], folder: str) -> list[tuple[int, Run]]:
    """The runs in the order in which their documents lie in the merged segment."""
    import tantivy

    found, at = [], 0
    documents = int(read_meta(folder)["segments"][0]["max_doc"])
    while at < documents:
        address = [tantivy.DocAddress(0, at)]
        key = searcher.fast_field_values(BUILD, address)[0], searcher.fast_field_values(DOCUMENT, address)[0]
        run = kept.pop(key, None)
        if run is None:
            raise Unmergeable("the merged segment has documents in an order that is not known")
        found.append(run)
        at += run[1].count
    if kept or at != documents:
        raise Unmergeable("the merged segment lacks documents")
    return found


def _merge_hot(inputs: Sequence[_Input], order: Sequence[tuple[int, Run]], folder: str) -> None:
    """The hot columns in the new order."""
    tables = []
    for one in inputs:
        with pa.memory_map(os.path.join(one.folder, HOT)) as source:
            tables.append(pa.ipc.open_file(source).read_all())
    firsts = [np.cumsum([0, *(count for _, count in one.cover.segments)]) for one in inputs]
    pieces = [tables[n].slice(int(firsts[n][run.segment]) + run.document, run.count) for n, run in order]
    whole = pa.concat_tables(pieces)
    with pa.OSFile(os.path.join(folder, HOT), "wb") as sink, pa.ipc.new_file(sink, whole.schema) as to:
        for batch in whole.combine_chunks().to_batches():
            to.write_batch(batch)

"""Postings: what an index knows, as rows, to be held against the table.

Each row is a term of a field, the number of rows that have it, and a digest of those rows: the sum, modulo 2**64, of a
hash of their indexed values. The index side finds the rows of each term by searching, and their values by their
addresses; the other side reads the table and takes its text apart. So the two are equal only if every term leads to the
right rows.

Text and keywords are compared term by term, numbers, dates and booleans value by value. Of binary, IP and JSON fields
the index can not be asked for its terms; compared is which rows have a value.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.lake.scan import scan
from headwater.lake.snapshot import Snapshot
from headwater.search.definition import Definition
from headwater.search.documents import values
from headwater.search.fields import MAX_TERM_BYTES, NULLS, Field
from headwater.search.native import guarded
from headwater.search.reader import Reader
from headwater.search.rows import fetch_rows

__all__ = ["POSTINGS", "indexed_postings", "scanned_postings"]

POSTINGS = pa.schema([("field", pa.string()), ("term", pa.string()), ("rows", pa.int64()), ("digest", pa.int64())])
_BATCH = 50_000
_ADDRESSES = 100_000
_WORD = 1 << 64
_Key = tuple[str, str]


def scanned_postings(meant: Definition, base: Snapshot) -> pa.RecordBatchReader:
    """What an index of a snapshot has to know, from the table alone."""

    def batches() -> Iterator[pa.RecordBatch]:
        found: dict[_Key, list[int]] = {}
        for batch in scan(base, [base.schema.field(c).name for c in meant.fields.columns]):
            listed = [values(f, batch.column(n)) for n, f in enumerate(meant.fields)]
            for digest, row in zip(_digests(listed, batch.num_rows), zip(*listed, strict=True), strict=True):
                for f, value in zip(meant.fields, row, strict=True):
                    for term in _terms(f, value):
                        entry = found.setdefault((f.column, term), [0, 0])
                        entry[0] += 1
                        entry[1] += digest
        yield from _batches((key, count, total) for key, (count, total) in sorted(found.items()))

    return pa.RecordBatchReader.from_batches(POSTINGS, batches())


def _terms(f: Field, value: Any) -> set[str]:
    if value is None:
        return set()
    if f.is_numeric:
        return {repr(value)}
    if not f.is_text:
        return {"a value"}
    return {term for term in f.analysis.terms(value) if len(term.encode()) <= MAX_TERM_BYTES}


def _digests(listed: Sequence[list[Any]], rows: int) -> list[int]:
    """A hash of the values of each row."""
    shown = zip(*listed, strict=True) if listed else ((),) * rows
    return [int.from_bytes(hashlib.blake2b(repr(row).encode(), digest_size=8).digest()) for row in shown]


def indexed_postings(reader: Reader) -> pa.RecordBatchReader:
    """What an index knows, by asking it for every term."""
    import tantivy

    meant = reader.meant
    digests = _digests_by_document(reader)

    def rows_of(query: Any) -> tuple[int, int]:
        total = reader.count(query)
        if not total:
            return 0, 0
        hits = reader.every(query)
        assert hits.segments is not None and hits.documents is not None
        chosen = [digests[s][d] for s, d in zip(hits.segments.tolist(), hits.documents.tolist(), strict=True)]
        return total, sum(chosen)

    def found() -> Iterator[tuple[_Key, int, int]]:
        for number, f in enumerate(meant.fields):
            name = meant.fields.name(number)
            if f.is_text:
                terms = {t for listed in reader.terms.get(name, ()) for t in listed.to_pylist()}
                for term in sorted(terms):
                    count, total = rows_of(tantivy.Query.term_query(reader.schema, name, term, "basic"))
                    if count:
                        yield (f.column, term), count, total
            elif f.is_numeric:
                yield from _by_value(reader, f, name, digests)
            else:
                null = tantivy.Query.term_query(reader.schema, NULLS, str(number), "basic")
                occur = tantivy.Occur
                query = tantivy.Query.boolean_query([(occur.Must, tantivy.Query.all_query()), (occur.MustNot, null)])
                count, total = rows_of(query)
                if count:
                    yield (f.column, "a value"), count, total

    return pa.RecordBatchReader.from_batches(POSTINGS, _batches(found()))


def _digests_by_document(reader: Reader) -> dict[int, dict[int, int]]:
    """The hash of each document that is alive, from the row that its address leads to."""
    import tantivy

    hits = reader.every(tantivy.Query.all_query())
    found: dict[int, dict[int, int]] = {}
    for begin in range(0, len(hits), _ADDRESSES):
        some = hits.part(slice(begin, begin + _ADDRESSES))
        assert some.segments is not None and some.documents is not None
        table = fetch_rows(reader, some, reader.meant.fields.columns)
        listed = [values(f, table.column(n).combine_chunks()) for n, f in enumerate(reader.meant.fields)]
        digests = _digests(listed, table.num_rows)
        for segment, document, digest in zip(some.segments.tolist(), some.documents.tolist(), digests, strict=True):
            found.setdefault(segment, {})[document] = digest
    return found


def _by_value(
    reader: Reader, f: Field, name: str, digests: dict[int, dict[int, int]]
) -> Iterator[tuple[_Key, int, int]]:
    import tantivy

    sums: dict[str, list[int]] = {}
    for segment, documents in digests.items():
        addresses = [tantivy.DocAddress(segment, document) for document in documents]
        with guarded("reading values"):
            listed = reader.searcher.fast_field_values(name, addresses)
        for value, digest in zip(listed, documents.values(), strict=True):
            if value is not None:
                entry = sums.setdefault(repr(value), [0, 0])
                entry[0] += 1
                entry[1] += digest
    for term, (count, total) in sorted(sums.items()):
        yield (f.column, term), count, total


def _batches(found: Iterator[tuple[_Key, int, int]]) -> Iterator[pa.RecordBatch]:
    rows: list[tuple[_Key, int, int]] = []

    def batch() -> pa.RecordBatch:
        digests = np.array([total % _WORD for _, _, total in rows], np.uint64).view(np.int64)
        columns = [[k[0] for k, _, _ in rows], [k[1] for k, _, _ in rows], [n for _, n, _ in rows], pa.array(digests)]
        return pa.record_batch(
            [pa.array(c, f.type) if not isinstance(c, pa.Array) else c for c, f in zip(columns, POSTINGS, strict=True)],
            schema=POSTINGS,
        )

    for one in found:
        rows.append(one)
        if len(rows) == _BATCH:
            yield batch()
            rows.clear()
    if rows:
        yield batch()

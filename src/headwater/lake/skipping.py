"""Skipping: which files may hold a row that meets a condition, without opening any.

A condition comes as conjuncts, each on one column. For each file the log gives the partition values (exact) and
statistics (bounds; see `stats`). A file is skipped only if some conjunct cannot be true for any of its rows.

The one invariant: **a file that holds a matching row is never skipped**. What makes that delicate, and the answer:

    no or damaged statistics    nothing is known, the file stays
    rows hidden by a vector     bounds only get looser, which they may; null counts count as known at 0 and at all
    cut strings                 a maximum of 32 bytes or more is taken as a prefix
    cut timestamps              writers may cut the maximum to a millisecond, so one millisecond is added
    NaN                         is larger than all numbers, and many writers leave it out of their maximum: for
                                floats a maximum counts only if another conjunct rules NaN out
    numbers of unlike types     an engine may round one to the other's type: the literal becomes a narrow span
    dates, clocks and instants  without a common zone a literal means an instant within a day of itself
    any other unlike types      the conjunct is not used

Statistics are JSON texts, one per file. Only the columns in question are parsed, all texts in one pass by Arrow's
reader; texts it refuses (say a maximum of ``"NaN"``) are read one by one in Python. A `FileIndex` keeps what it has
parsed, so hold on to it as long as the snapshot.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json as pj

from headwater.base.errors import InputError
from headwater.lake import partitions
from headwater.lake.skipping_domains import Domain, domain_of
from headwater.sql.conjuncts import Conjunct

__all__ = ["FileIndex", "may_match"]

Mask = npt.NDArray[np.bool_]
Path = tuple[str, ...]

_GROUP = 1024  # texts that are parsed together where parsing all of them fails
_BLOCK_BYTES = 1 << 22
_FEW = 16  # values of an IN list that are looked at one by one


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known of one column, file by file; a null bound is an unknown one."""

    low: pa.Array | None
    high: pa.Array | None
    no_nulls: Mask
    only_nulls: Mask
    exact: bool  # partition values: the bounds are the value, and NaN does not hide


class FileIndex:
    """The files of a snapshot, as far as the log knows them.

    Parameters
    ----------
    stats
        The statistics text of each file, or None.
    partition_values
        The ``partitionValues`` of each file; may be left out for tables without partitions.
    schema
        The table's columns by physical name, partition columns with them.
    partition_columns
        Which of them are partition columns.

    >>> texts = ['{"numRecords":1,"minValues":{"n":1},"maxValues":{"n":5}}', None]
    >>> files = FileIndex(texts, schema=pa.schema([("n", pa.int64())]))
    >>> files.may_match([Conjunct("n", ">", (7,))])
    array([False,  True])
    """

    def __init__(
        self,
        stats: Sequence[str | None],
        partition_values: Sequence[Mapping[str, str | None]] | None = None,
        *,
        schema: pa.Schema,
        partition_columns: Collection[str] = (),
    ) -> None:
        assert partition_values is None or len(partition_values) == len(stats)
        self._stats = stats
        self._partition_values = partition_values
        self._schema = schema
        self._partition_columns = partition_columns
        self._known: dict[str, _Known | None] = {}

    def __len__(self) -> int:
        return len(self._stats)

    def may_match(self, conjuncts: Sequence[Conjunct]) -> Mask:
        """True for each file that may hold a row for which all conjuncts are true."""
        keep = np.ones(len(self._stats), dtype=np.bool_)
        by_column: dict[str, list[Conjunct]] = {}
        for conjunct in conjuncts:
            by_column.setdefault(conjunct.column, []).append(conjunct)
        self._load([c for c in by_column if c not in self._known])
        for column, several in by_column.items():
            known, found = self._known[column], self._resolve(column)
            if known is None or found is None:
                continue
            domain = domain_of(found[1])
            nan_ruled_out = known.exact or not pa.types.is_floating(found[1]) or _rules_out_nan(several, domain)
            for conjunct in several:
                keep &= ~_skipped(known, conjunct, domain, nan_ruled_out)
        return keep

    def _resolve(self, column: str) -> tuple[Path, pa.DataType] | None:
        if column in self._schema.names:
            return (column,), self._schema.field(column).type
        head, *rest = path = column.split(".")
        if head not in self._schema.names:
            return None
        kind = self._schema.field(head).type
        for name in rest:
            if not pa.types.is_struct(kind) or kind.get_field_index(name) < 0:
                return None
            kind = kind.field(name).type
        return tuple(path), kind

    def _load(self, columns: Iterable[str]) -> None:
        wanted: dict[str, tuple[Path, pa.DataType]] = {}
        for column in columns:
            found = self._resolve(column)
            if found is None or pa.types.is_nested(found[1]):
                self._known[column] = None
            elif column in self._partition_columns:
                self._known[column] = self._of_partition(column, found[1])
            else:
                wanted[column] = found
        if wanted:
            self._known |= zip(wanted, _of_stats(self._stats, list(wanted.values())), strict=True)

    def _of_partition(self, column: str, kind: pa.DataType) -> _Known | None:
        if self._partition_values is None:
            return None
        domain = domain_of(kind)
        texts = [values.get(column, _ABSENT) for values in self._partition_values]
        point: dict[Any, Any] = {}
        for text in set(texts) - {_ABSENT, None, ""}:
            try:
                value = partitions.parse(text, kind).as_py()
            except InputError:
                texts = [_ABSENT if t == text else t for t in texts]
            else:
                point[text] = domain.point(value) if domain else None
        only_nulls = np.fromiter((t is None or t == "" for t in texts), np.bool_, len(texts))
        absent = np.fromiter((t is _ABSENT for t in texts), np.bool_, len(texts))
        bound = pa.array([point.get(t) for t in texts], domain.arrow) if domain else None
        return _Known(bound, bound, ~only_nulls & ~absent, only_nulls, exact=True)


_ABSENT: Any = object()


def may_match(
    stats: Sequence[str | None],
    conjuncts: Sequence[Conjunct],
    *,
    schema: pa.Schema,
    partition_values: Sequence[Mapping[str, str | None]] | None = None,
    partition_columns: Collection[str] = (),
) -> Mask:
    """`FileIndex.may_match` for a single question.

    >>> schema = pa.schema([("day", pa.date32())])
    >>> days = [{"day": "2020-01-01"}, {"day": None}]
    >>> null_days = [Conjunct("day", "is null")]
    >>> may_match([None] * 2, null_days, schema=schema, partition_values=days, partition_columns=["day"])
    array([False,  True])
    """
    files = FileIndex(stats, partition_values, schema=schema, partition_columns=partition_columns)
    return files.may_match(conjuncts)


# ---- one conjunct ----------------------------------------------------------------------------------------


def _rules_out_nan(conjuncts: Sequence[Conjunct], domain: Domain | None) -> bool:
    return domain is not None and any(
        c.op in ("=", "in", "<", "<=") and c.values and all(domain.span(v) is not None for v in c.values)
        for c in conjuncts
    )


def _skipped(known: _Known, conjunct: Conjunct, domain: Domain | None, nan_ruled_out: bool) -> Mask:
    """True for the files none of whose rows can meet the conjunct."""
    op = conjunct.op
    if op == "is null":
        return known.no_nulls
    if op == "is not null" or domain is None or known.low is None or known.high is None or not conjunct.values:
        return known.only_nulls
    spans = [domain.span(value) for value in conjunct.values]
    whole = [span for span in spans if span is not None]
    if len(whole) < len(spans):
        return known.only_nulls
    low, high = known.low, known.high
    if op in ("=", "in"):
        outside = _outside_few(low, high, whole, domain) if len(whole) <= _FEW else _outside_many(low, high, whole)
        return outside | known.only_nulls
    first, last = (pa.scalar(end, domain.arrow) for end in whole[0])
    if op == "<":
        outside = _true(pc.greater_equal(low, last))
    elif op == "<=":
        outside = _true(pc.greater(low, last))
    elif not nan_ruled_out:
        return known.only_nulls
    elif op == ">":
        outside = _true(pc.less_equal(high, first))
    elif op == ">=":
        outside = _true(pc.less(high, first))
    else:  # !=
        outside = _true(pc.and_(pc.equal(low, first), pc.equal(high, first))) & (whole[0][0] == whole[0][1])
    return outside | known.only_nulls


def _true(answer: pa.Array) -> Mask:
    found: Mask = answer.fill_null(False).to_numpy(zero_copy_only=False)
    return found


def _outside_few(low: pa.Array, high: pa.Array, spans: Sequence[tuple[Any, Any]], domain: Domain) -> Mask:
    outside = np.ones(len(low), dtype=np.bool_)
    for first, last in spans:
        above = _true(pc.greater(low, pa.scalar(last, domain.arrow)))
        outside &= above | _true(pc.less(high, pa.scalar(first, domain.arrow)))
    return outside


def _outside_many(low: pa.Array, high: pa.Array, spans: Sequence[tuple[Any, Any]]) -> Mask:
    """The same by binary search: is the first span that does not end below the file already above it?"""
    ordered = sorted(spans)
    dtype = None if isinstance(ordered[0][0], int | float) else object
    firsts = np.array([s[0] for s in ordered], dtype=dtype)
    lasts = np.maximum.accumulate(np.array([s[1] for s in ordered], dtype=dtype))
    known_low, known_high = (_true(bound.is_valid()) for bound in (low, high))
    lows, highs = (bound.fill_null(ordered[0][0]).to_numpy(zero_copy_only=False) for bound in (low, high))
    at = np.where(known_low, np.searchsorted(lasts, lows), 0)
    past = at == len(ordered)
    above = np.asarray(firsts[np.minimum(at, len(ordered) - 1)] > highs, dtype=np.bool_) & known_high
    return np.asarray(past | above, dtype=np.bool_)


# ---- statistics ------------------------------------------------------------------------------------------


def _of_stats(texts: Sequence[str | None], columns: Sequence[tuple[Path, pa.DataType]]) -> list[_Known]:
    """What the statistics say of some columns, in one pass over the texts."""
    docs = [text.strip() or "{}" if text else "{}" for text in texts]
    domains = [domain_of(kind) for _, kind in columns]
    reading = _Reading([path for path, _ in columns], domains)
    parsed = reading.fast(docs)
    if parsed is None:
        groups = [docs[i : i + _GROUP] for i in range(0, max(len(docs), 1), _GROUP)]
        parts = [reading.fast(group) or reading.slow(group) for group in groups]
        parsed = [pa.concat_arrays(pieces) for pieces in zip(*parts, strict=True)]
    rows, *rest = parsed
    known = []
    for domain in domains:
        nulls, low, high = rest[0], rest[1], rest[2]
        rest = rest[3:]
        none, full = _true(pc.equal(nulls, 0)), _true(pc.equal(nulls, rows))
        if domain is None or domain.json is None:
            known.append(_Known(None, None, none, full, exact=False))
        else:
            first, last = domain.widen(low, high)
            known.append(_Known(first, last, none, full, exact=False))
    return known


class _Reading:
    """Turns texts into arrays: numRecords, then nullCount, minValues and maxValues for each column."""

    def __init__(self, paths: Sequence[Path], domains: Sequence[Domain | None]) -> None:
        self.paths = paths
        self.domains = [d if d is not None and d.json is not None else None for d in domains]
        trees: dict[str, Any] = {"nullCount": {}, "minValues": {}, "maxValues": {}}
        for path, domain in zip(paths, self.domains, strict=True):
            _plant(trees["nullCount"], path, pa.int64())
            if domain is not None:
                _plant(trees["minValues"], path, domain.json)
                _plant(trees["maxValues"], path, domain.json)
        self.json_schema = pa.schema([("numRecords", pa.int64()), *_fields({k: t for k, t in trees.items() if t})])

    def fast(self, docs: Sequence[str]) -> list[pa.Array] | None:
        """By Arrow's reader; None if it cannot read some text."""
        if not docs:
            return None
        try:
            blob = "\n".join(docs).encode()
            table = pj.read_json(
                pa.BufferReader(blob),
                # An object must fit in a block, and blocks in the processor's cache.
                read_options=pj.ReadOptions(block_size=max(_BLOCK_BYTES, max(map(len, docs)) * 4)),
                parse_options=pj.ParseOptions(
                    explicit_schema=self.json_schema,
                    # Looking for them is dear, and JSON over several lines is rare: left to the second try.
                    newlines_in_values=len(docs) <= _GROUP,
                    unexpected_field_behavior="ignore",
                ),
            )
            if table.num_rows != len(docs):
                return None
            found = [_whole(table["numRecords"])]
            for path, domain in zip(self.paths, self.domains, strict=True):
                found.append(_whole(pc.struct_field(table["nullCount"], list(path))))
                for name in ("minValues", "maxValues"):
                    if domain is None:
                        found.append(pa.nulls(len(docs)))
                    else:
                        found.append(domain.from_json(_whole(pc.struct_field(table[name], list(path)))))
        except (pa.ArrowException, UnicodeEncodeError, OverflowError):
            return None
        return found

    def slow(self, docs: Sequence[str]) -> list[pa.Array]:
        """One by one; what is not as it should be is unknown."""
        columns: list[list[Any]] = [[] for _ in range(1 + 3 * len(self.paths))]
        for doc in docs:
            try:
                body = json.loads(doc, parse_float=Decimal)
            except (ValueError, RecursionError):
                body = None
            columns[0].append(_count(_pick(body, ("numRecords",))))
            for i, (path, domain) in enumerate(zip(self.paths, self.domains, strict=True)):
                columns[3 * i + 1].append(_count(_pick(body, ("nullCount", *path))))
                for j, name in enumerate(("minValues", "maxValues")):
                    raw = None if domain is None else _pick(body, (name, *path))
                    columns[3 * i + 2 + j].append(None if domain is None else domain.from_python(raw, upper=bool(j)))
        bounds = [d.arrow if d is not None else pa.null() for d in self.domains]
        kinds = [pa.int64(), *(kind for bound in bounds for kind in (pa.int64(), bound, bound))]
        return [pa.array(values, kind) for values, kind in zip(columns, kinds, strict=True)]


def _plant(tree: dict[str, Any], path: Path, kind: pa.DataType) -> None:
    for name in path[:-1]:
        tree = tree.setdefault(name, {})
    tree[path[-1]] = kind


def _fields(tree: Mapping[str, Any]) -> list[pa.Field[Any]]:
    return [pa.field(k, pa.struct(_fields(v)) if isinstance(v, dict) else v) for k, v in tree.items()]


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)


def _pick(body: Any, path: Path) -> Any:
    for name in path:
        body = body.get(name) if isinstance(body, dict) else None
    return body


def _count(raw: Any) -> int | None:
    return raw if isinstance(raw, int) and not isinstance(raw, bool) and 0 <= raw < 1 << 63 else None

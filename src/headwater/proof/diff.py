"""Diff: which rows differ between two versions of a table, or of anything derived?

The answer is the exact Z-set between the two, at the price of the change. Of a table, and so of a view, it is read from
the log (`lake.changes`). An artefact without a table of its own has numbered commits that say what they reflect; where
it is a function of each row by itself, as an export is, the change of its source between the two frontiers goes through
that function, and else it is recomputed at both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.base import markup
from headwater.base.change import WEIGHT, ChangeBatch
from headwater.base.errors import InputError, NotFoundError
from headwater.base.frontier import Frontier
from headwater.derived.difference import difference_of
from headwater.lake.changes import stream_changes
from headwater.lake.consolidation import consolidate_stream
from headwater.proof.nodes import Node, node
from headwater.proof.row_changes import Paired, RowChange, paired

if TYPE_CHECKING:
    from headwater.derived.artefact import Artefact
    from headwater.derived.port import DerivingLake

__all__ = ["Diff", "changes_of_artefact", "diff", "parse_version"]

_PAIRED_ROWS = 1_000_000
"""Rows of more changes than this are not put side by side: they would all have to be held."""


@dataclass(frozen=True, kw_only=True)
class Diff:
    """The rows that differ between two versions.

    Parameters
    ----------
    name, kind : str
        of the table or artefact
    before, after : int
        the versions
    frontiers : tuple of Frontier
        what an artefact reflected at each of them
    key : tuple of str
        the columns by which rows are put side by side
    inserted, deleted, updated : int
        how many rows came, went, and have other values
    rows : tuple of RowChange
        the first of them
    note : str
        what a reader has to know
    """

    name: str
    kind: str
    before: int
    after: int
    frontiers: tuple[Frontier, Frontier] | None
    key: tuple[str, ...]
    inserted: int
    deleted: int
    updated: int
    rows: tuple[RowChange, ...]
    note: str = ""

    @property
    def equal(self) -> bool:
        """Whether no row differs."""
        return not (self.inserted or self.deleted or self.updated)

    @property
    def total(self) -> int:
        """How many row changes there are."""
        return self.inserted + self.deleted + self.updated

    def __str__(self) -> str:
        head = f"{self.name} @{self.before} -> @{self.after}: {self._counts()}"
        more = self.total - len(self.rows)
        lines = [head, *(f"  {row}" for row in self.rows)]
        lines += [f"  … {more:,} more"] if more else []
        return "\n".join([*lines, *([f"  {self.note}"] if self.note else [])])

    def _counts(self) -> str:
        if self.equal:
            return "no row differs"
        counted = ((self.inserted, "inserted"), (self.deleted, "deleted"), (self.updated, "updated"))
        return ", ".join(f"{count:,} {word}" for count, word in counted if count)

    def _repr_html_(self) -> str:
        title = f"{self.name} @{self.before} → @{self.after}: {self._counts()}"
        return markup.listing(title, ("", "row"), [(r.sign, str(r)[2:]) for r in self.rows], self.note)

    def as_dict(self) -> dict[str, object]:
        """The same facts for ``--json``."""
        return {
            "name": self.name,
            "kind": self.kind,
            "before": self.before,
            "after": self.after,
            "frontiers": None if self.frontiers is None else [dict(one) for one in self.frontiers],
            "key": list(self.key),
            "inserted": self.inserted,
            "deleted": self.deleted,
            "updated": self.updated,
            "rows": [row.as_dict() for row in self.rows],
            "note": self.note,
        }


def diff(
    lake: DerivingLake,
    name: str,
    before: int | str | None = None,
    after: int | str | None = None,
    *,
    key: str | Sequence[str] | None = None,
    limit: int = 100,
) -> Diff:
    """The rows of a table or artefact that differ between two of its versions.

    Parameters
    ----------
    before, after
        versions of the table, or numbers of the commits of an artefact without one (41, or "@41"); by default the
        newest, and the one before it. The first may be the newer one.
    key
        the columns that identify a row; by default those that are known to (the key of an online table, what a view
        groups by)
    limit
        how many of the rows are given; the counts are of all

    >>> import headwater as hw, tempfile
    >>> lake = hw.connect(tempfile.mkdtemp())
    >>> orders = lake.write("orders", [{"id": 1, "amount": 10}, {"id": 2, "amount": 20}])
    >>> _ = orders.update({"amount": "11"}, where="id = 1")
    >>> print(diff(lake, "orders", key="id"))
    orders @0 -> @1: 1 updated
      ~ id=1 amount=10 -> 11
    """
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 0:
        raise InputError.bad_argument("limit", limit, "a number of rows, from 0 on")
    found = node(lake, name)
    first, second, newest, frontiers = _versions(found, before, after)
    stream = _changes(found, first, second, frontiers)
    columns = _key(found, key, stream.schema)
    shown, note = _shown(stream, columns, limit)
    assert second <= newest, "versions were checked"
    return Diff(
        name=found.name, kind=found.kind, before=first, after=second, frontiers=frontiers, key=columns,
        inserted=shown.inserted, deleted=shown.deleted, updated=shown.updated, rows=shown.rows, note=note,
    )  # fmt: skip


def parse_version(given: int | str, name: str) -> int:
    """A version as people write it.

    >>> parse_version("@41", "before"), parse_version(7, "after")
    (41, 7)
    """
    text = given.removeprefix("@") if isinstance(given, str) else given
    if isinstance(text, str) and text.isdecimal():
        return int(text)
    if isinstance(text, int) and not isinstance(text, bool) and text >= 0:
        return text
    raise InputError.bad_argument(name, given, "a version, such as 41 or @41")


def _versions(
    found: Node, before: int | str | None, after: int | str | None
) -> tuple[int, int, int, tuple[Frontier, Frontier] | None]:
    """Both versions, the newest one, and what an artefact reflected at both."""
    publishes = [] if found.artefact is None else found.artefact.publishes()
    if found.table is not None:
        newest = found.base.version
    else:
        assert found.artefact is not None, "a name without a table is derived"
        newest = publishes[-1].version if publishes else 0
    second = newest if after is None else parse_version(after, "after")
    if before is None:
        older = [p.version for p in publishes if p.version < second] if found.table is None else [second - 1]
        first = max(older, default=0)
    else:
        first = parse_version(before, "before")
    if before is None and first < 0 <= second:
        raise NotFoundError.no_earlier_version(second, found.name)
    for version in (first, second):
        if version > newest or version < 0:
            raise NotFoundError.version(version, newest, found.name)
    if found.artefact is None:
        return first, second, newest, None
    reflected = {p.version: p.frontier for p in publishes}
    if found.table is None:
        for version in (first, second):
            if version and version not in reflected:
                assert found.artefact is not None, "a name without a table is derived"
                raise NotFoundError.commit_gone(
                    version, min(reflected, default=0), newest, found.name, found.artefact.kind
                )
        return first, second, newest, (reflected.get(first, Frontier()), reflected.get(second, Frontier()))
    at = [max((v for v in reflected if v <= version), default=None) for version in (first, second)]
    one, other = (Frontier() if v is None else reflected[v] for v in at)
    return first, second, newest, (one, other)


def _changes(found: Node, first: int, second: int, frontiers: tuple[Frontier, Frontier] | None) -> pa.RecordBatchReader:
    """The rows that differ, each with its weight, as a stream."""
    low, high = min(first, second), max(first, second)
    if found.table is not None:
        until = found.base if found.base.version == high else found.table.at(version=high).snapshot
        stream = stream_changes(until, low)
    else:
        assert found.artefact is not None and frontiers is not None, "a name without a table is derived"
        older, newer = frontiers if first <= second else frontiers[::-1]
        stream = changes_of_artefact(found.artefact, older, newer)
    return stream if first <= second else _negated(stream)


def changes_of_artefact(artefact: Artefact, before: Frontier, after: Frontier) -> pa.RecordBatchReader:
    """The rows of an artefact that differ between two frontiers, from its sources alone."""
    followed = _followed(artefact, before, after)
    if followed is not None:
        return followed
    new = artefact.recompute(after)
    old = artefact.recompute(before) if before else new.schema.empty_table().to_reader()
    return difference_of(old, new)


def _followed(artefact: Artefact, before: Frontier, after: Frontier) -> pa.RecordBatchReader | None:
    """The change of the only source, where the artefact is a function of each of its rows."""
    if len(artefact.reads) != 1:
        return None
    (source,) = artefact.reads
    table = artefact.environment.table(source)
    until = table.at(version=after[source]).snapshot
    probe = artefact.of_rows(until.arrow_schema.empty_table())
    if probe is None or before.replaced_in(after):
        return None
    stream = stream_changes(until, before.get(source, -1))
    schema = pa.schema([*(f.with_nullable(True) for f in probe.schema), pa.field(WEIGHT, pa.int64(), nullable=False)])

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in stream:
            for sign in (1, -1):
                yield from _mapped(artefact, batch, sign, schema)

    return consolidate_stream(pa.RecordBatchReader.from_batches(schema, batches()))


def _mapped(artefact: Artefact, batch: pa.RecordBatch, sign: int, schema: pa.Schema) -> list[pa.RecordBatch]:
    """What an artefact has of the rows that came, or of those that went."""
    change = ChangeBatch.from_table(pa.Table.from_batches([batch]))
    rows = change.inserted() if sign > 0 else change.deleted()
    if not rows.num_rows:
        return []
    kept = artefact.of_rows(rows)
    assert kept is not None, "it is a function of each row"
    weights = pa.repeat(pa.scalar(sign, pa.int64()), kept.num_rows)
    columns = [c.cast(f.type) for c, f in zip(kept.columns, schema, strict=False)]
    batches: list[pa.RecordBatch] = pa.Table.from_arrays([*columns, weights], schema=schema).to_batches()
    return batches


def _negated(stream: pa.RecordBatchReader) -> pa.RecordBatchReader:
    batches = (ChangeBatch(pa.Table.from_batches([b])).negate().table.to_batches() for b in stream)
    return pa.RecordBatchReader.from_batches(stream.schema, (one for several in batches for one in several))


def _key(found: Node, key: str | Sequence[str] | None, schema: pa.Schema) -> tuple[str, ...]:
    if key is None:
        known = () if found.artefact is None else found.artefact.identity
        return known if set(known) <= set(schema.names) else ()
    asked = [key] if isinstance(key, str) else list(key)
    there = {name.lower(): name for name in schema.names if name != WEIGHT}
    for name in asked:
        if not isinstance(name, str) or name.lower() not in there:
            raise InputError.bad_argument("key", name, f"columns of `{found.name}`: {', '.join(there.values())}")
    return tuple(there[name.lower()] for name in asked)


def _shown(stream: pa.RecordBatchReader, key: Sequence[str], limit: int) -> tuple[Paired, str]:
    """The counts, and the first rows; with a key, rows that are side by side."""
    held: list[pa.RecordBatch] = []
    rows = inserted = deleted = 0
    pairing = bool(key)
    for batch in stream:
        weights = batch.column(batch.num_columns - 1).to_numpy()
        inserted += int(weights[weights > 0].sum())
        deleted -= int(weights[weights < 0].sum())
        if pairing or rows < limit:
            held.append(batch)
            rows += batch.num_rows
        if pairing and rows > _PAIRED_ROWS:
            pairing, held = (
                False,
                [pa.Table.from_batches(held).slice(0, limit).combine_chunks().to_batches()[0]] if limit else [],
            )
    change = ChangeBatch(pa.Table.from_batches(held, stream.schema))
    if pairing:
        return paired(change, key, limit), ""
    listed = ChangeBatch(change.table.slice(0, limit), consolidated=True)
    note = f"more than {_PAIRED_ROWS:,} rows changed: they are not put side by side" if key else ""
    return Paired(inserted, deleted, 0, paired(listed, (), limit).rows), note

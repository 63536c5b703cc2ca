"""Matching: which target rows meet which source rows, found by reading as little of the target as can be.

An equality in the condition (``t.id = s.id``) is worth everything: the range of the source's keys rules out files and
row groups, and a hash set of them rules out rows, batch by batch, while only the key columns are in memory. The rows
that survive are joined on the whole condition by DuckDB. Without an equality every target row is a candidate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.lake import find
from headwater.lake.actions import AddFile
from headwater.lake.joined import join
from headwater.lake.scan import POSITION, map_files, read_file
from headwater.lake.snapshot import Snapshot
from headwater.sql.conjuncts import Conjunct
from headwater.sql.expressions import Expression

__all__ = ["FILE", "SOURCE_ROW", "Matches", "match_rows"]

FILE = "__file"
SOURCE_ROW = "__source_row"
_LOW_BITS = 1 << 18


@dataclass(slots=True)
class Matches:
    """Pairs of a target address and a source row."""

    base: Snapshot
    addresses: pa.Table  # FILE and POSITION of each pair, beside source_rows
    source_rows: np.ndarray[Any, Any]
    candidates: pa.Table
    conjuncts: Sequence[Conjunct]  # what a target row must meet to be a candidate

    @property
    def num_pairs(self) -> int:
        return len(self.source_rows)

    def unmatched_addresses(self) -> pa.Table:
        """The candidates that no source row met."""
        every = self.candidates.select([FILE, POSITION])
        met = self.addresses.append_column("met", pa.repeat(pa.scalar(True), self.addresses.num_rows))
        joined = every.join(
            met.group_by([FILE, POSITION]).aggregate([("met", "any")]), [FILE, POSITION], join_type="left anti"
        )
        return joined.select([FILE, POSITION])

    def fetch_pairs(self, columns: Sequence[str]) -> pa.Table:
        return self.fetch(self.addresses, columns)

    def fetch(self, addresses: pa.Table, columns: Sequence[str]) -> pa.Table:
        """The columns of the target rows at ``addresses``, in their order."""
        if not columns or not addresses.num_rows:
            schema = pa.schema([self.base.schema.field(c).arrow.with_nullable(True) for c in columns])
            marker = pa.table({"__row": np.arange(addresses.num_rows)})
            return schema.empty_table() if columns else marker
        files = addresses[FILE].combine_chunks().dictionary_encode()
        codes, positions = files.indices.to_numpy(), addresses[POSITION].to_numpy()
        order = np.lexsort((positions, codes))
        wanted: dict[str, Any] = {}
        # Each (file, position) is read once, however many pairs it is in.
        address, inverse = np.unique(np.stack([codes[order], positions[order]]), axis=1, return_inverse=True)
        for code, path in enumerate(files.dictionary.to_pylist()):
            wanted[path] = address[1][address[0] == code]
        rows = find.fetch(self.base, wanted, columns)
        assert rows.num_rows == address.shape[1], "every address is a live row"
        back = np.empty(len(order), np.int64)
        back[order] = np.ravel(inverse)
        return rows.take(pa.array(back))


def match_rows(base: Snapshot, source: pa.Table, on: Expression, merge: Any, *, whole_target: bool) -> Matches:
    """All pairs that meet ``on``; with ``whole_target`` every target row is a candidate."""
    target_alias, source_alias = merge.target_alias, merge.source_alias
    equalities = [] if whole_target else on.equalities(target_alias, source_alias)
    keys = [_KeySet(base, t, source[s]) for t, s in equalities]
    keys = [k for k in keys if k.usable]
    columns = sorted({name for alias, name in on.columns if alias == target_alias})
    conjuncts = [c for k in keys for c in k.conjuncts]
    files = [] if any(k.is_empty for k in keys) else find.candidate_files(base, conjuncts)

    def search(add: AddFile) -> list[pa.RecordBatch]:
        found = []
        for batch in read_file(base, add, columns, positions=True, conjuncts=conjuncts):
            kept = batch
            for key in keys:
                kept = kept.take(key.candidates(kept.column(key.column)))
                kept = kept.filter(key.contains(kept.column(key.column)))
            if kept.num_rows:
                found.append(kept.append_column(FILE, pa.repeat(pa.scalar(add.path), kept.num_rows)))
        return found

    batches = [b for part in map_files(files, search) for b in part]
    schema = pa.schema([base.schema.field(c).arrow.with_nullable(True) for c in columns])
    schema = schema.append(pa.field(POSITION, pa.int64(), False)).append(pa.field(FILE, pa.string()))
    candidates = pa.Table.from_batches([b.cast(schema) for b in batches], schema)
    pairs = join(
        on,
        {target_alias: candidates, source_alias: source},
        output=[(target_alias, FILE), (target_alias, POSITION), (source_alias, SOURCE_ROW)],
    )
    return Matches(base, pairs.select([FILE, POSITION]), pairs[SOURCE_ROW].to_numpy(), candidates, conjuncts)


class _KeySet:
    """The source's values of one key column."""

    def __init__(self, base: Snapshot, column: str, values: pa.ChunkedArray) -> None:
        f = base.schema.field(column)
        self.column = f.name
        # Only where both sides have one type is set membership the same as SQL's `=`; floats have NaN and -0.0.
        self.usable = values.type == f.arrow.type and not pa.types.is_floating(values.type)
        self.usable = self.usable and not pa.types.is_nested(values.type)
        self._values: Any = _one(pc.unique(values).drop_null()) if self.usable else pa.nulls(0)

    @property
    def is_empty(self) -> bool:
        return len(self._values) == 0

    def candidates(self, values: pa.Array) -> pa.Array:
        """The rows that may be in the set: a look at the low bits of whole numbers, ten times cheaper than a hash."""
        low_bits = self._low_bits
        if low_bits is None:
            return pa.array(np.arange(len(values)))
        width = values.type.bit_width // 8
        raw = np.frombuffer(values.buffers()[1], f"<u{width}")[values.offset : values.offset + len(values)]
        return pa.array(np.flatnonzero(low_bits.take(raw & raw.dtype.type(_LOW_BITS - 1))))

    @cached_property
    def _low_bits(self) -> np.ndarray[Any, Any] | None:
        t = pa.types
        kind = self._values.type
        whole = t.is_integer(kind) or t.is_date32(kind) or t.is_timestamp(kind)
        # With more values than a tenth of the table hardly a row would be ruled out.
        if not whole or kind.bit_width < 32 or len(self._values) > _LOW_BITS // 10:
            return None
        raw = np.frombuffer(self._values.buffers()[1], f"<u{kind.bit_width // 8}")
        raw = raw[self._values.offset : self._values.offset + len(self._values)]
        table = np.zeros(_LOW_BITS, bool)
        table[raw & raw.dtype.type(_LOW_BITS - 1)] = True
        return table

    def contains(self, values: pa.Array) -> pa.Array:
        return pc.is_in(values, value_set=self._values)

    @property
    def conjuncts(self) -> list[Conjunct]:
        if self.is_empty:
            return []
        if len(self._values) <= 64:
            return [Conjunct(self.column, "in", tuple(self._values.to_pylist()))]
        extremes = pc.min_max(self._values).as_py()
        return [Conjunct(self.column, ">=", (extremes["min"],)), Conjunct(self.column, "<=", (extremes["max"],))]


def _one(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values

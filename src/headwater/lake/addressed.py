"""Addressed rows: a table whose rows say where they lie, so that a query can find the rows to change.

A condition with a subquery looks at other rows than the one it decides on, so an engine has to answer it. The engine sees the table
with two more columns, the file and the position in it, and gives them back for the rows that are meant: these are the
addresses that edits work with.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.base.errors import InputError
from headwater.lake import find
from headwater.lake.matching import FILE
from headwater.lake.scan import POSITION, Positions, read_file
from headwater.lake.snapshot import Snapshot
from headwater.sql.conjuncts import Conjunct

__all__ = ["FILE", "POSITION", "Addressed", "Located"]


@dataclass(frozen=True)
class Addressed:
    """A snapshot as a `Relation` with the columns `FILE` and `POSITION` behind its own."""

    base: Snapshot

    @property
    def schema(self) -> pa.Schema:
        own = [f for f in self.base.arrow_schema if f.name.lower() not in (FILE, POSITION)]
        if len(own) != len(self.base.arrow_schema):
            raise InputError.bad_argument(
                "column", FILE, f"another name: {FILE} and {POSITION} are needed for addresses"
            )
        return pa.schema([*own, pa.field(FILE, pa.string(), False), pa.field(POSITION, pa.int64(), False)])

    def read(self, columns: Sequence[str], conjuncts: Sequence[Conjunct]) -> pa.RecordBatchReader:
        schema = pa.schema([self.schema.field(c).with_nullable(True) for c in columns])
        stored = [c for c in columns if c not in (FILE, POSITION)]
        mine = [c for c in conjuncts if c.column in self.base.schema]

        def batches() -> Iterator[pa.RecordBatch]:
            for add in find.candidate_files(self.base, mine):
                for batch in read_file(self.base, add, stored, positions=True, conjuncts=mine):
                    path = pa.DictionaryArray.from_arrays(pa.array(np.zeros(batch.num_rows, np.int32)), [add.path])
                    given = {
                        **dict(zip(batch.schema.names, batch.columns, strict=True)),
                        FILE: pc.cast(path, pa.string()),
                    }
                    yield pa.RecordBatch.from_arrays([given[c] for c in columns], schema=schema)

        return pa.RecordBatchReader.from_batches(schema, batches())


@dataclass(frozen=True)
class Located:
    """Rows of a snapshot by address, each once, with the values they are to get: columns beside `FILE` and `POSITION`."""

    rows: pa.Table

    @cached_property
    def _ordered(self) -> pa.Table:
        """By file in order of first appearance, then by position: the order in which `find.fetch` reads."""
        codes = self.rows[FILE].combine_chunks().dictionary_encode().indices.to_numpy()
        order = np.lexsort((self.rows[POSITION].to_numpy(), codes))
        ordered = self.rows.take(pa.array(order))
        assert len(order) == len(np.unique(np.stack([codes, self.rows[POSITION].to_numpy()]), axis=1).T), (
            "each row once"
        )
        return ordered

    def positions(self) -> dict[str, Positions]:
        """The positions in each file, ascending."""
        if not self.rows.num_rows:
            return {}
        files = self._ordered[FILE].combine_chunks().dictionary_encode()
        codes, at = files.indices.to_numpy(), self._ordered[POSITION].to_numpy()
        return {path: at[codes == code] for code, path in enumerate(files.dictionary.to_pylist())}

    def values(self) -> list[pa.ChunkedArray]:
        """The other columns, in the order of `positions`."""
        return [self._ordered[i] for i, name in enumerate(self._ordered.schema.names) if name not in (FILE, POSITION)]

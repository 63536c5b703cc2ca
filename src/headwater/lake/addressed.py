"""Addressed rows: a table whose rows say where they lie, so that a query can find the rows to change.

A condition with a subquery looks at other rows than the one it decides on, so an engine has to answer it. The engine
sees the table with two more columns, the file (by its number: a path for each row would cost more than the row) and the
position in it, and gives them back for the rows that are meant: these are the addresses that edits work with.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

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

    @cached_property
    def paths(self) -> list[str]:
        """The files; a row's `FILE` is a place in this list."""
        return list(self.base.files)

    @property
    def schema(self) -> pa.Schema:
        own = [f for f in self.base.arrow_schema if f.name.lower() not in (FILE, POSITION)]
        if len(own) != len(self.base.arrow_schema):
            hint = f"another name: {FILE} and {POSITION} are needed for addresses"
            raise InputError.bad_argument("column", FILE, hint)
        return pa.schema([*own, pa.field(FILE, pa.int32(), False), pa.field(POSITION, pa.int64(), False)])

    def read(self, columns: Sequence[str], conjuncts: Sequence[Conjunct]) -> pa.RecordBatchReader:
        schema = pa.schema([self.schema.field(c).with_nullable(True) for c in columns])
        stored = [c for c in columns if c not in (FILE, POSITION)]
        mine = [c for c in conjuncts if c.column in self.base.schema]
        numbers = {path: number for number, path in enumerate(self.paths)}

        def batches() -> Iterator[pa.RecordBatch]:
            for add in find.candidate_files(self.base, mine):
                number = pa.scalar(numbers[add.path], pa.int32())
                for batch in read_file(self.base, add, stored, positions=True, conjuncts=mine):
                    given = dict(zip(batch.schema.names, batch.columns, strict=True))
                    given[FILE] = pa.repeat(number, batch.num_rows)
                    yield pa.RecordBatch.from_arrays([given[c] for c in columns], schema=schema)

        return pa.RecordBatchReader.from_batches(schema, batches())


@dataclass(frozen=True)
class Located:
    """Rows of a snapshot by address, each once, with the values they are to get:
    columns beside `FILE` and `POSITION`.
    """

    rows: pa.Table
    paths: Sequence[str]

    @cached_property
    def _ordered(self) -> pa.Table:
        """By file, then by position: the order in which `find.fetch` reads the rows of `positions`."""
        ordered = self.rows.sort_by([(FILE, "ascending"), (POSITION, "ascending")])
        files, at = ordered[FILE].to_numpy(), ordered[POSITION].to_numpy()
        assert not np.any((np.diff(files) == 0) & (np.diff(at) == 0)), "each row once"
        return ordered

    def positions(self) -> dict[str, Positions]:
        """The positions in each file, ascending."""
        files, at = self._ordered[FILE].to_numpy(), self._ordered[POSITION].to_numpy()
        numbers, starts = np.unique(files, return_index=True)
        parts = np.split(at, starts[1:]) if len(numbers) else []
        return {self.paths[number]: part for number, part in zip(numbers, parts, strict=True)}

    def values(self) -> list[pa.ChunkedArray]:
        """The other columns, in the order of `positions`."""
        return [self._ordered[i] for i, name in enumerate(self._ordered.schema.names) if name not in (FILE, POSITION)]

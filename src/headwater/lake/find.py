"""Finding rows: which rows of a table meet a condition, and where they lie.

The condition's simple parts rule out files by partition values and statistics, then row groups by their footers;
what is left is read with just the columns the condition needs. The answer is a map from file to positions, the
address that edits work with. A condition on partition columns alone is answered from the log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.base.errors import InputError
from headwater.lake import partitions
from headwater.lake.actions import AddFile
from headwater.lake.scan import POSITION, Positions, map_files, read_file
from headwater.lake.snapshot import Snapshot
from headwater.sql import expressions
from headwater.sql.conjuncts import Conjunct
from headwater.sql.expressions import Expression
from headwater.sql.fragment import Fragment

__all__ = ["candidate_files", "condition", "fetch", "find_rows", "partition_of"]


class WithColumns(Protocol):
    """Whatever has columns: a snapshot of a table, or one that may come to be."""

    @property
    def arrow_schema(self) -> pa.Schema:
        """The columns, as Arrow has them."""


def condition(snapshot: WithColumns, text: str | Fragment | None, alias: str | None = None) -> Expression | None:
    """A condition on the table's columns, checked to be a boolean; None means every row.

    With an ``alias`` it may call the columns ``alias.column`` too.
    """
    if text is None:
        return None
    if not isinstance(text, str | Fragment):
        raise InputError.bad_argument("where", text, 'SQL text, such as "amount > 3"')
    schema = snapshot.arrow_schema
    return expressions.parse_condition(text, schema=schema if alias is None else {alias: schema})


def candidate_files(
    snapshot: Snapshot, conjuncts: Sequence[Conjunct], files: Sequence[AddFile] | None = None
) -> list[AddFile]:
    """The files that may hold rows meeting ``conjuncts``."""
    index = snapshot.file_index if files is None else snapshot.index_of(files)
    chosen = list(snapshot.files.values()) if files is None else list(files)
    if not conjuncts or not chosen:
        return chosen
    mapped = snapshot.mapping_mode != "none"
    asked = []
    for c in conjuncts:
        f = snapshot.schema.field(c.column)
        asked.append(Conjunct(f.physical_name if mapped else f.name, c.op, c.values))
    return [f for f, keep in zip(chosen, index.may_match(asked), strict=True) if keep]


def _partition_row(snapshot: Snapshot, add: AddFile, columns: Sequence[str]) -> pa.Table:
    fields = [snapshot.schema.field(c) for c in columns]
    arrays = {}
    for f in fields:
        text = add.partition_values.get(f.physical_name, add.partition_values.get(f.name))
        arrays[f.name] = pa.repeat(partitions.parse(text, f.arrow.type), 1)
    return pa.table(arrays)


def partition_of(snapshot: Snapshot, add: AddFile) -> tuple[str | None, ...]:
    """The file's partition values, alike however a writer spelled them."""
    row = _partition_row(snapshot, add, snapshot.partition_columns)
    return tuple(partitions.serialize(row[c][0].as_py(), row[c].type) for c in snapshot.partition_columns)


def find_rows(snapshot: Snapshot, wanted: Expression | None) -> dict[str, Positions | None]:
    """The positions of the live rows that meet ``wanted``, by file; None stands for all rows of a file."""
    if wanted is None:
        return dict.fromkeys(snapshot.files)
    columns = sorted({name for _, name in wanted.columns})
    conjuncts = wanted.conjuncts()
    files = candidate_files(snapshot, conjuncts)
    if columns and set(columns) <= set(snapshot.partition_columns):
        whole = [f for f in files if _is_true(wanted, _partition_row(snapshot, f, columns))]
        return {f.path: None for f in whole}

    def search(add: AddFile) -> tuple[str, Positions]:
        found = []
        for batch in read_file(snapshot, add, columns, positions=True, conjuncts=conjuncts):
            met = pc.fill_null(expressions.evaluate(wanted, pa.Table.from_batches([batch])), False)
            found.append(batch.column(POSITION).filter(_one_chunk(met)).to_numpy())
        return add.path, np.concatenate(found) if found else np.empty(0, np.int64)

    return {path: rows for path, rows in map_files(files, search) if len(rows)}


def _one_chunk(values: pa.ChunkedArray | pa.Array) -> pa.Array:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def _is_true(wanted: Expression, row: pa.Table) -> bool:
    return bool(expressions.evaluate(wanted, row)[0].as_py())


def fetch(snapshot: Snapshot, rows: Mapping[str, Positions | None], columns: Sequence[str] | None = None) -> pa.Table:
    """The live rows at these addresses, file by file in the order given, positions ascending."""
    names = list(columns if columns is not None else snapshot.schema.names)
    schema = pa.schema([snapshot.schema.field(n).arrow.with_nullable(True) for n in names])

    def read(item: tuple[str, Positions | None]) -> list[pa.RecordBatch]:
        path, positions = item
        return list(read_file(snapshot, snapshot.files[path], names, only=positions))

    batches = [b for part in map_files(list(rows.items()), read) for b in part]
    return pa.Table.from_batches(batches, schema)

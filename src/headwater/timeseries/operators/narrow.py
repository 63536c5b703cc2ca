"""Row by row: what can be said in one SELECT of its input's rows, filter, select, drop, rename, with_columns.

The text is Spark's in both forms: tasks compute it over their tables, and Spark over its frame. `columns` are
expressions by the names they get; the others say which rows stay. A task computes what has to be computed, over the
columns that are read: the rest stays as it is in Arrow, whatever its type.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.base.errors import InputError
from headwater.timeseries.node import Node, RowKernel, RowWise
from headwater.timeseries.querying import quoted
from headwater.timeseries.reading import RowsText, of_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["Filter", "Project"]

_KEEP = "__hw_keep"


@dataclass(frozen=True)
class Filter(RowWise):
    """The rows for which a condition is true.

    >>> from headwater.timeseries.operators.values import Values
    >>> kept = Filter(Values(pa.table({"v": [1, None, 3]})), "v > 1")
    >>> kept.kernel()(pa.table({"v": [1, None, 3]})).to_pylist()
    [{'v': 3}]
    """

    input: Node
    condition: str

    @property
    def schema(self) -> pa.Schema:
        return self.input.schema

    @cached_property
    def text(self) -> RowsText:
        found = of_rows({_KEEP: self.condition}, self.input.schema, self.condition)
        kind = found.query.schema.field(0).type
        if not pa.types.is_boolean(kind) and not pa.types.is_null(kind):
            raise InputError.bad_argument("condition", self.condition, f"a condition, true or false; this is {kind}")
        return found

    @property
    def frame_first(self) -> bool:
        return True

    def needs(self, wanted: frozenset[str]) -> tuple[frozenset[str] | None, ...]:
        return (wanted | set(self.text.reads),)

    def line(self) -> str:
        return f"filter {self.condition}"

    def kernel(self) -> RowKernel:
        return _Keep(self.text)

    def frame(self, *frames: DataFrame) -> DataFrame:
        return frames[0].where(self.condition)


@dataclass(frozen=True)
class Project(RowWise):
    """Columns by expressions: some of the input's, renamed or computed."""

    input: Node
    columns: Mapping[str, str]
    """Expressions by the names they get, in order; a column of the input by its quoted name."""
    shown: str = field(default="", compare=False)

    @cached_property
    def schema(self) -> pa.Schema:
        made = pa.schema([]) if self.text is None else self.text.query.schema
        taken, known = self.taken(), self.input.schema
        fields = [
            known.field(taken[name]).with_name(name) if name in taken else made.field(name) for name in self.columns
        ]
        return pa.schema(fields)

    def taken(self) -> dict[str, str]:
        """The columns that are the input's, by their new names."""
        names = {quoted(name): name for name in self.input.schema.names}
        return {new: names[text] for new, text in self.columns.items() if text in names}

    @cached_property
    def text(self) -> RowsText | None:
        """What has to be computed."""
        taken = self.taken()
        computed = {name: text for name, text in self.columns.items() if name not in taken}
        return of_rows(computed, self.input.schema, self.shown or None) if computed else None

    @property
    def frame_first(self) -> bool:
        return True

    def only(self, wanted: frozenset[str]) -> Project:
        """The same without columns that are only handed on and that nobody asks for."""
        taken = self.taken()
        return replace(self, columns={n: t for n, t in self.columns.items() if n in wanted or n not in taken})

    def needs(self, wanted: frozenset[str]) -> tuple[frozenset[str] | None, ...]:
        read = () if self.text is None else self.text.reads
        return (frozenset(old for new, old in self.taken().items() if new in wanted) | set(read),)

    def line(self) -> str:
        return self.shown or f"select {', '.join(self.columns)}"

    def kept(self, name: str) -> str | None:
        wanted = quoted(name)
        return next((new for new, text in self.columns.items() if text == wanted), None)

    def kernel(self) -> RowKernel:
        return _Columns(self.schema, tuple(self.taken().items()), self.text)

    def frame(self, *frames: DataFrame) -> DataFrame:
        return frames[0].selectExpr(*[f"({text}) AS {quoted(name)}" for name, text in self.columns.items()])


@dataclass(frozen=True, slots=True)
class _Keep:
    text: RowsText

    def __call__(self, rows: pa.Table) -> pa.Table:
        # A row stays where the condition is true: not where it is false, nor where it is null.
        return rows.filter(self.text.run(rows).column(0).cast(pa.bool_()))


@dataclass(frozen=True, slots=True)
class _Columns:
    schema: pa.Schema
    taken: tuple[tuple[str, str], ...]
    text: RowsText | None

    def __call__(self, rows: pa.Table) -> pa.Table:
        found = {new: rows.column(old) for new, old in self.taken}
        if self.text is not None:
            made = self.text.run(rows)
            found |= dict(zip(made.schema.names, made.columns, strict=True))
        return pa.Table.from_arrays([found[name] for name in self.schema.names], schema=self.schema)

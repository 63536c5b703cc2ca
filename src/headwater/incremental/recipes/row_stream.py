"""Streams, as far as an operator looks at one row at a time: filters, columns, sums, and the different rows.

A stream stands for the changes of a table of some schema at one place of a dataflow. This half needs nothing but
operators; the recipes beside it are written on it, and `headwater.incremental.circuit.stream` adds them as methods.
Every method gives a stream of the class that it was called on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Self, TypeVar

import pyarrow as pa

from headwater.base.errors import InputError, NotFoundError, SchemaError
from headwater.base.schema import normalize_type
from headwater.incremental.dataflow import arguments
from headwater.sql.expressions import parse, parse_condition
from headwater.sql.vectorised import Program, compile_expression

if TYPE_CHECKING:
    from headwater.incremental.dataflow.dataflow import Dataflow
    from headwater.incremental.dataflow.vertex import Vertex

__all__ = ["Length", "On", "RowStream", "S", "a_stream"]

Length = str | int | timedelta
On = str | Sequence[str | tuple[str, str]]
S = TypeVar("S", bound="RowStream")


class RowStream:
    """Changes of rows of one schema, at one place of a dataflow."""

    __slots__ = ("circuit", "vertex")

    def __init__(self, circuit: Dataflow, vertex: Vertex) -> None:
        self.circuit = circuit
        self.vertex = vertex

    def at(self, vertex: Vertex) -> Self:
        """The stream of another vertex of the same circuit."""
        return type(self)(self.circuit, vertex)

    @property
    def schema(self) -> pa.Schema:
        """The columns of the rows."""
        return self.vertex.layout.schema

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self.schema.names)

    # -- one row at a time (lift) ----------------------------------------------------------------------------------

    def filter(self, condition: str) -> Self:
        """The rows for which a condition is true."""
        from headwater.incremental.operators.filter import Filter

        arguments.texts("condition", condition)

        program = compile_expression(parse_condition(condition, schema=self.schema), self.schema)
        vertex = self.circuit.add(lambda s: Filter(s, program, detail=condition), [self.vertex])
        vertex.placed_by = self.vertex.placed_by
        vertex.marks = self.vertex.marks
        return self.at(vertex)

    def select(self, *columns: str, **computed: str) -> Self:
        """These columns, and ``name="expression"`` ones after them."""
        arguments.texts("columns", *columns)
        for name in columns:
            self._known(name)
        return self._project([(c, c) for c in columns], computed, "select")

    def with_columns(self, **computed: str) -> Self:
        """All columns, and others computed of them; a name that is there already is replaced."""
        return self._project([(c, c) for c in self.columns], computed, "with columns")

    def drop(self, *columns: str) -> Self:
        """All columns but these."""
        for name in columns:
            self._known(name)
        return self.select(*[c for c in self.columns if c not in columns])

    def rename(self, **names: str) -> Self:
        """The same columns under other names: ``rename(old="new")``."""
        for name in names:
            self._known(name)
        return self._project([(names.get(c, c), c) for c in self.columns], {}, "rename")

    def _project(self, kept: Sequence[tuple[str, str]], computed: Mapping[str, str], label: str) -> Self:
        arguments.texts(label, *computed.values())
        columns: dict[str, str | Program] = dict(kept)
        if len(columns) != len(kept):
            raise SchemaError.duplicate_columns([n for n, _ in kept])
        for name, text in computed.items():
            columns[name] = (
                text if text in self.columns else compile_expression(parse(text, schema=self.schema), self.schema)
            )
        if not columns:
            raise InputError.bad_argument(label, "nothing", "at least one column")
        shown = [n if n == c else f"{c} as {n}" for n, c in kept if n not in computed]
        shown += [f"{t} as {n}" for n, t in computed.items()]
        return self.projected(list(columns.items()), label=label, detail=", ".join(shown))

    def projected(self, columns: Sequence[tuple[str, str | Program]], *, label: str, detail: str = "") -> Self:
        """Rows of the columns (name, column of this stream or program over them)."""
        from headwater.incremental.operators.project import Project

        vertex = self.circuit.add(lambda s: Project(s, columns, label=label, detail=detail), [self.vertex])
        marks = self.vertex.marks
        vertex.marks = {n: marks[how] for n, how in columns if isinstance(how, str) and how in marks}
        kept = {how: n for n, how in reversed(columns) if isinstance(how, str)}
        placed = self.vertex.placed_by
        if placed is not None and all(name in kept for name in placed):
            vertex.placed_by = tuple(kept[name] for name in placed)
        return self.at(vertex)

    def map(self, function: Callable[[pa.Table], pa.Table], schema: pa.Schema) -> Self:
        """One row for each row, by a Python function of Arrow tables that looks at each row by itself."""
        from headwater.incremental.operators.map_batches import MapBatches

        wanted = _normal(schema)
        return self._lifted(lambda s: MapBatches(s, function, wanted))

    def flat_map(self, function: Callable[[pa.Table], tuple[pa.Table, Sequence[int]]], schema: pa.Schema) -> Self:
        """Any number of rows for each row: the function gives rows,
        and for each the position of the row it came from.
        """
        from headwater.incremental.operators.map_batches import FlatMap

        wanted = _normal(schema)
        return self._lifted(lambda s: FlatMap(s, function, wanted))

    def plus(self, *others: Self) -> Self:
        """The rows of this stream and of others: UNION ALL."""
        return self._sum(others)

    def _sum(self, others: Sequence[Self], *, by: Sequence[str] | None = None) -> Self:
        """`plus`; with ``by`` the rows of all are placed by these columns."""
        from headwater.incremental.dataflow.vertex import marks_of_all
        from headwater.incremental.operators.plus import Plus

        aligned = [self, *(self._aligned(o) for o in others)]
        vertex = self.circuit.add(
            lambda *s: Plus(s), [a.vertex for a in aligned], by=None if by is None else [by] * len(aligned)
        )
        placed = {a.vertex.placed_by for a in aligned}
        vertex.placed_by = tuple(by) if by is not None else placed.pop() if len(placed) == 1 else None
        vertex.marks = marks_of_all([a.vertex for a in aligned])
        return self.at(vertex)

    def minus(self, other: Self) -> Self:
        """The rows of this stream with those of another taken away, weight by weight; weights may become negative."""
        return self.plus(other.negate())

    def negate(self) -> Self:
        """The same rows with opposite weights."""
        from headwater.incremental.operators.plus import Negate

        negated = self._lifted(Negate)
        negated.vertex.marks = self.vertex.marks
        negated.vertex.placed_by = self.vertex.placed_by
        negated.vertex.signed = True
        return negated

    def _lifted(self, build: Callable[[Any], Any]) -> Self:
        return self.at(self.circuit.add(build, [self.vertex]))

    def _aligned(self, other: Self) -> Self:
        """The other stream with this one's columns, in this one's order and nullability."""
        a_stream("other", other, self.circuit)
        if other.schema.equals(self.schema):
            return other
        if len(other.schema) != len(self.schema):
            raise SchemaError.type_clash("columns", str(len(other.schema)), str(len(self.schema)), where="plus")
        for mine, theirs in zip(self.schema, other.schema, strict=True):
            if mine.type != theirs.type:
                raise SchemaError.type_clash(theirs.name, str(theirs.type), str(mine.type), where="plus")
        return other._relabelled(self.schema)

    def _relabelled(self, schema: pa.Schema) -> Self:
        """The same rows, whose columns have other names or nullability."""
        from headwater.incremental.operators.relabel import Relabel

        found = self._lifted(lambda s: Relabel(s, schema))
        if self.vertex.placed_by is not None:
            found.vertex.placed_by = tuple(schema.names[self.columns.index(c)] for c in self.vertex.placed_by)
        return found

    # -- rows that are equal ---------------------------------------------------------------------------------------

    def distinct(self) -> Self:
        """Each row once, as long as it is there at all."""
        from headwater.incremental.operators.distinct import Distinct

        vertex = self.circuit.add(Distinct, [self.vertex], by=[self.columns])
        vertex.marks = dict(self.vertex.marks)
        vertex.placed_by = self.circuit.placement(self.vertex, self.columns)
        return self.at(self.circuit.forgetting(vertex))

    def exchange(self, *keys: str) -> Self:
        """The same rows, placed by some columns: rows equal in them are on one shard from here on."""
        from headwater.incremental.dataflow.vertex import Exchange

        for key in keys:
            self._known(key)
        vertex = self.circuit.add(lambda s: Exchange(s, keys), [self.vertex])
        vertex.placed_by = keys
        return self.at(vertex)

    def _known(self, name: str) -> None:
        if name not in self.columns:
            raise NotFoundError.column(name, self.columns, where="the stream")


def a_stream(where: str, given: object, dataflow: Dataflow) -> None:
    """Refuse what is not a stream of this circuit."""
    if not isinstance(given, RowStream) or given.circuit is not dataflow:
        raise InputError.bad_argument(where, given, "a stream of the same circuit")


def _normal(schema: pa.Schema) -> pa.Schema:
    return pa.schema([f.with_type(normalize_type(f.type)) for f in schema])

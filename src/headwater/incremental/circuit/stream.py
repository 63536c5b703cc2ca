"""Streams: what operators are written on.

A `Stream` stands for the changes of a table of some schema at one place of a circuit. Its methods put operators behind it and give the
stream that comes out. Conditions and values are Spark SQL over the stream's columns; a column's name alone is the column.

This is a facade: each operator has its own file in `headwater.incremental.operators`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from headwater.base.errors import InputError, NotFoundError, SchemaError
from headwater.base.schema import normalize_type
from headwater.incremental.dataflow import arguments
from headwater.incremental.layout import Order
from headwater.sql.expressions import parse, parse_condition
from headwater.sql.vectorised import Program, compile_expression

if TYPE_CHECKING:
    from headwater.incremental.circuit.grouped import Grouped
    from headwater.incremental.circuit.ordered import Ordered
    from headwater.incremental.dataflow.dataflow import Dataflow
    from headwater.incremental.dataflow.vertex import Vertex

__all__ = ["Stream", "a_stream", "orders"]

Names = str | Sequence[str]
Length = str | int | timedelta
On = str | Sequence[str | tuple[str, str]]
_WAY = re.compile(r"\s*(?:`([^`]+)`|(\S+))\s*(?:\s(asc|desc))?\s*(?:\snulls\s+(first|last))?\s*", re.IGNORECASE)


class Stream:
    """Changes of rows of one schema, at one place of a circuit."""

    __slots__ = ("circuit", "vertex")

    def __init__(self, circuit: Dataflow, vertex: Vertex) -> None:
        self.circuit = circuit
        self.vertex = vertex

    @property
    def schema(self) -> pa.Schema:
        """The columns of the rows."""
        return self.vertex.layout.schema

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self.schema.names)

    # -- one row at a time (lift) ----------------------------------------------------------------------------------

    def filter(self, condition: str) -> Stream:
        """The rows for which a condition is true."""
        from headwater.incremental.operators.filter import Filter

        arguments.texts("condition", condition)

        program = compile_expression(parse_condition(condition, schema=self.schema), self.schema)
        vertex = self.circuit.add(lambda s: Filter(s, program, detail=condition), [self.vertex])
        vertex.placed_by = self.vertex.placed_by
        vertex.marks = self.vertex.marks
        return Stream(self.circuit, vertex)

    def select(self, *columns: str, **computed: str) -> Stream:
        """These columns, and ``name="expression"`` ones after them."""
        arguments.texts("columns", *columns)
        for name in columns:
            self._known(name)
        return self._project([(c, c) for c in columns], computed, "select")

    def with_columns(self, **computed: str) -> Stream:
        """All columns, and others computed of them; a name that is there already is replaced."""
        return self._project([(c, c) for c in self.columns], computed, "with columns")

    def drop(self, *columns: str) -> Stream:
        """All columns but these."""
        for name in columns:
            self._known(name)
        return self.select(*[c for c in self.columns if c not in columns])

    def rename(self, **names: str) -> Stream:
        """The same columns under other names: ``rename(old="new")``."""
        for name in names:
            self._known(name)
        return self._project([(names.get(c, c), c) for c in self.columns], {}, "rename")

    def _project(self, kept: Sequence[tuple[str, str]], computed: Mapping[str, str], label: str) -> Stream:
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

    def projected(self, columns: Sequence[tuple[str, str | Program]], *, label: str, detail: str = "") -> Stream:
        """Rows of the columns (name, column of this stream or program over them)."""
        from headwater.incremental.operators.project import Project

        vertex = self.circuit.add(lambda s: Project(s, columns, label=label, detail=detail), [self.vertex])
        marks = self.vertex.marks
        vertex.marks = {n: marks[how] for n, how in columns if isinstance(how, str) and how in marks}
        return Stream(self.circuit, vertex)

    def map(self, function: Callable[[pa.Table], pa.Table], schema: pa.Schema) -> Stream:
        """One row for each row, by a Python function of Arrow tables that looks at each row by itself."""
        from headwater.incremental.operators.map_batches import MapBatches

        wanted = _normal(schema)
        return self._lifted(lambda s: MapBatches(s, function, wanted))

    def flat_map(self, function: Callable[[pa.Table], tuple[pa.Table, Sequence[int]]], schema: pa.Schema) -> Stream:
        """Any number of rows for each row: the function gives rows, and for each the position of the row it came from."""
        from headwater.incremental.operators.map_batches import FlatMap

        wanted = _normal(schema)
        return self._lifted(lambda s: FlatMap(s, function, wanted))

    def plus(self, *others: Stream) -> Stream:
        """The rows of this stream and of others: UNION ALL."""
        from headwater.incremental.dataflow.vertex import marks_of_all
        from headwater.incremental.operators.plus import Plus

        aligned = [self, *(self._aligned(o) for o in others)]
        vertex = self.circuit.add(lambda *s: Plus(s), [a.vertex for a in aligned])
        vertex.marks = marks_of_all([a.vertex for a in aligned])
        return Stream(self.circuit, vertex)

    def minus(self, other: Stream) -> Stream:
        """The rows of this stream with those of another taken away, weight by weight; weights may become negative."""
        return self.plus(other.negate())

    def negate(self) -> Stream:
        """The same rows with opposite weights."""
        from headwater.incremental.operators.plus import Negate

        negated = self._lifted(Negate)
        negated.vertex.marks = self.vertex.marks
        negated.vertex.signed = True
        return negated

    def _lifted(self, build: Callable[[Any], Any]) -> Stream:
        return Stream(self.circuit, self.circuit.add(build, [self.vertex]))

    def _aligned(self, other: Stream) -> Stream:
        """The other stream with this one's columns, in this one's order and nullability."""
        a_stream("other", other, self.circuit)
        if other.schema.equals(self.schema):
            return other
        if len(other.schema) != len(self.schema):
            raise SchemaError.type_clash("columns", str(len(other.schema)), str(len(self.schema)), where="plus")
        for mine, theirs in zip(self.schema, other.schema, strict=True):
            if mine.type != theirs.type:
                raise SchemaError.type_clash(theirs.name, str(theirs.type), str(mine.type), where="plus")
        from headwater.incremental.operators.relabel import Relabel

        return other._lifted(lambda s: Relabel(s, self.schema))

    # -- sets ------------------------------------------------------------------------------------------------------

    def distinct(self) -> Stream:
        """Each row once, as long as it is there at all."""
        from headwater.incremental.operators.distinct import Distinct

        vertex = self.circuit.add(Distinct, [self.vertex], by=[self.columns])
        vertex.marks = dict(self.vertex.marks)
        return Stream(self.circuit, self.circuit.forgetting(vertex))

    def intersect(self, other: Stream, *, all: bool = False) -> Stream:  # noqa: A002
        """The rows that both streams have; with ``all``, as often as the one that has them less often."""
        from headwater.incremental.recipes.set_operations import intersection

        return intersection(self, self._aligned(other), all=all)

    def except_(self, other: Stream, *, all: bool = False) -> Stream:  # noqa: A002
        """The rows that the other stream does not have; with ``all``, as often as this one has them more often."""
        from headwater.incremental.recipes.set_operations import difference

        return difference(self, self._aligned(other), all=all)

    # -- keys ------------------------------------------------------------------------------------------------------

    def group_by(self, *keys: str) -> Grouped:
        """The rows by the values of some columns, for ``.agg(...)``; by none, all of them are one group."""
        from headwater.incremental.circuit.grouped import Grouped

        arguments.texts("keys", *keys)
        for key in keys:
            self._known(key)
        return Grouped(self, keys)

    def join(
        self, other: Stream, on: On = (), *, how: str = "inner", where: str | None = None, suffix: str = "_right"
    ) -> Stream:
        """Pairs of rows with equal keys.

        Parameters
        ----------
        other
            the other side, of the same circuit
        on
            names of columns, or pairs (mine, theirs); none for a cross join
        how
            ``inner``, ``left``, ``right``, ``full``, ``semi``, ``anti``
        where
            a further condition on the pair, over the columns of the result
        suffix
            for columns of the other side whose names are taken
        """
        from headwater.incremental.recipes.joins import joined

        a_stream("other", other, self.circuit)
        return joined(self, other, arguments.pairs("on", on), how=how, where=where, suffix=suffix)

    def star_join(self, others: Sequence[Stream], on: Names, *, suffix: str = "_right") -> Stream:
        """This stream and several others on columns they all have, without state for what lies between."""
        from headwater.incremental.recipes.joins import star_joined

        if isinstance(others, Stream):
            raise InputError.bad_argument("others", others, "a list of streams")
        for other in others:
            a_stream("others", other, self.circuit)
        return star_joined(self, others, arguments.names("on", on), suffix)

    def join_asof(
        self,
        other: Stream,
        on: str | tuple[str, str],
        *,
        by: On = (),
        direction: Literal["backward", "forward", "nearest"] = "backward",
        tolerance: Length | None = None,
        strict: bool = False,
        how: Literal["inner", "left"] = "left",
        ties: Names | Order | Sequence[Order] = (),
        suffix: str = "_right",
    ) -> Stream:
        """Each row with the row of the other stream that was the last before it in time, or the next, or the nearest.

        Behind watermarks of both streams, what can be matched no more is let go; the newest row of each key stays.

        Parameters
        ----------
        on
            the time, or the pair of times (mine, theirs)
        by
            columns that have to be equal
        tolerance
            how far away the match may be: ``"10 seconds"``
        strict
            does a match at the very time not count?
        ties
            which of several rows of the other stream with one time is meant: the last in this order, and then of all columns
        """
        from headwater.incremental.recipes.time_joins import asof_joined

        a_stream("other", other, self.circuit)
        keys = arguments.pairs("by", by)
        return asof_joined(
            self,
            other,
            on,
            by=keys,
            direction=direction,
            tolerance=tolerance,
            strict=strict,
            how=how,
            ties=orders(ties),
            suffix=suffix,
        )

    def join_range(
        self,
        other: Stream,
        on: str | tuple[str, str],
        *,
        below: Length | None = 0,
        above: Length | None = 0,
        by: On = (),
        suffix: str = "_right",
    ) -> Stream:
        """Pairs whose times are near: theirs from ``below`` before mine to ``above`` after it; None is without end."""
        from headwater.incremental.recipes.time_joins import range_joined

        a_stream("other", other, self.circuit)
        keys = arguments.pairs("by", by)
        return range_joined(self, other, on, by=keys, below=below, above=above, suffix=suffix)

    def join_between(
        self, other: Stream, between: tuple[str, str], time: str, *, by: On = (), suffix: str = "_right"
    ) -> Stream:
        """Pairs in which a time of the other stream lies between two columns of this one, ends included."""
        from headwater.incremental.recipes.time_joins import interval_joined

        a_stream("other", other, self.circuit)
        keys = arguments.pairs("by", by)
        return interval_joined(self, other, between, time, by=keys, suffix=suffix)

    def over(self, *keys: str, order: Names | Order | Sequence[Order] = ()) -> Ordered:
        """The rows by some columns and in an order (``"ts desc"``), for ranks, lag, frames and the first rows of each key."""
        from headwater.incremental.circuit.ordered import Ordered

        return Ordered(self, keys, orders(order))

    def exchange(self, *keys: str) -> Stream:
        """The same rows, placed by some columns: rows equal in them are on one shard from here on."""
        from headwater.incremental.dataflow.vertex import Exchange

        for key in keys:
            self._known(key)
        vertex = self.circuit.add(lambda s: Exchange(s, keys), [self.vertex])
        vertex.placed_by = keys
        return Stream(self.circuit, vertex)

    # -- windows of time -------------------------------------------------------------------------------------------

    def window(self, time: str, size: Length, *, every: Length | None = None, offset: Length = 0) -> Stream:
        """Each row once for every window that it falls into, with ``window_start`` and ``window_end``.

        Tumbling windows of ``size``; with ``every``, hopping ones. As Spark's ``window``.
        """
        from headwater.incremental.recipes.windows import windowed

        return windowed(self, time, size, every, offset)

    def session(self, time: str, gap: Length, *, by: Names = ()) -> Stream:
        """Each row with the session it belongs to, ``session_start`` and ``session_end``: rows of a key that follow within ``gap``.

        Behind a watermark of the time, sessions that nothing can follow are let go.
        """
        from headwater.incremental.recipes.windows import sessions

        return sessions(self, time, gap, arguments.names("by", by))

    # -- time ------------------------------------------------------------------------------------------------------

    def delay(self) -> Stream:
        """What came in the step before."""
        from headwater.incremental.operators.delay import Delay

        return self._lifted(Delay)

    def integrate(self) -> Stream:
        """The sum of all changes so far, in each step anew."""
        from headwater.incremental.operators.delay import Integrate

        return self._lifted(Integrate)

    def differentiate(self) -> Stream:
        """What came in this step less what came in the step before."""
        from headwater.incremental.operators.delay import Differentiate

        found = self._lifted(Differentiate)
        found.vertex.signed = True
        return found

    def watermark(self, column: str, lateness: str | int | timedelta = 0) -> Stream:
        """Keep rows out that come too late: whose time is more than ``lateness`` before the greatest seen in earlier steps.

        ``lateness`` is ``"10 minutes"``, a timedelta, or a number in the units of the column. `late` has what was kept out; state
        behind the watermark is let go.
        """
        from headwater.base.spans import span
        from headwater.incremental.operators.watermark import Clock, Mark, Watermark

        self._known(column)
        clock = Clock(span(lateness, self.schema.field(column)))
        if clock.lateness < 0:
            raise InputError.bad_argument("lateness", lateness, "zero or more")
        first = iter([True])
        vertex = self.circuit.add(
            lambda s: Watermark(s, column, clock, detail=f"{column}, {lateness} late", holds_clock=next(first, False)),
            [self.vertex],
        )
        vertex.placed_by = self.vertex.placed_by
        vertex.marks = {**self.vertex.marks, column: Mark.of(clock)}
        return Stream(self.circuit, vertex)

    def late(self) -> Stream:
        """The rows that this watermark kept out, in the step in which they came."""
        from headwater.incremental.operators.watermark import Late, Watermark

        if not isinstance(self.vertex.node, Watermark):
            raise InputError.bad_argument("stream", repr(self), "what watermark() gave")
        found = self._lifted(Late)
        found.vertex.signed = True
        return found

    # -- out -------------------------------------------------------------------------------------------------------

    def output(self, name: str) -> None:
        """Give the changes from `Circuit.step`, under a name."""
        self.circuit.publish(name, self.vertex)

    def _known(self, name: str) -> None:
        if name not in self.columns:
            raise NotFoundError.column(name, self.columns, where="the stream")

    def __repr__(self) -> str:
        return f"Stream({', '.join(f'{f.name} {f.type}' for f in self.schema)})"


def a_stream(where: str, given: object, dataflow: Dataflow) -> None:
    """Refuse what is not a stream of this circuit."""
    if not isinstance(given, Stream) or given.circuit is not dataflow:
        raise InputError.bad_argument(where, given, "a stream of the same circuit")


def _normal(schema: pa.Schema) -> pa.Schema:
    return pa.schema([f.with_type(normalize_type(f.type)) for f in schema])


def orders(columns: Names | Order | Sequence[Order]) -> list[Order]:
    """An ORDER BY as names, ``"ts desc nulls last"`` or `Order`."""
    given: list[str | Order] = [columns] if isinstance(columns, str | Order) else list(columns)
    found = []
    for one in given:
        if isinstance(one, Order):
            found.append(one)
            continue
        way = _WAY.fullmatch(one) if isinstance(one, str) else None
        if way is None:
            raise InputError.bad_argument("order", one, "a column, with asc or desc, and nulls first or last")
        descending, nulls = (way[3] or "").lower() == "desc", (way[4] or "").lower()
        found.append(Order(way[1] or way[2], descending=descending, nulls_first=nulls == "first" if nulls else None))
    return found

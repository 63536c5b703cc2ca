"""Streams: what operators are written on.

A `Stream` stands for the changes of a table of some schema at one place of a circuit. Its methods put operators behind
it and give the stream that comes out. Conditions and values are Spark SQL over the stream's columns; a column's name
alone is the column.

This is a facade: each operator has its own file in `headwater.incremental.operators`, and what is made of several has
one in `headwater.incremental.recipes`. What looks at one row at a time is inherited.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Literal

from headwater.base.errors import InputError
from headwater.incremental.dataflow import arguments
from headwater.incremental.layout import Order
from headwater.incremental.recipes.row_stream import Length, On, RowStream, a_stream

if TYPE_CHECKING:
    from headwater.incremental.circuit.grouped import Grouped
    from headwater.incremental.circuit.ordered import Ordered

__all__ = ["Stream", "orders"]

Names = str | Sequence[str]
_WAY = re.compile(r"\s*(?:`([^`]+)`|(\S+))\s*(?:\s(asc|desc))?\s*(?:\snulls\s+(first|last))?\s*", re.IGNORECASE)


class Stream(RowStream):
    """Changes of rows of one schema, at one place of a circuit."""

    __slots__ = ()

    # -- sets ------------------------------------------------------------------------------------------------------

    def intersect(self, other: Stream, *, all: bool = False) -> Stream:  # noqa: A002
        """The rows that both streams have; with ``all``, as often as the one that has them less often."""
        from headwater.incremental.recipes.set_operations import intersection

        return intersection(self, self._aligned(other), all=all)

    def except_(self, other: Stream, *, all: bool = False) -> Stream:  # noqa: A002
        """The rows that the other stream does not have; with ``all``, as often as this one has them more often."""
        from headwater.incremental.recipes.set_operations import difference

        return difference(self, self._aligned(other), all=all)

    # -- keys ------------------------------------------------------------------------------------------------------

    def group_by(self, *keys: str) -> Grouped[Stream]:
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
            which of several rows of the other stream with one time is meant: the last in this order, and then of all
            columns
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

    def over(self, *keys: str, order: Names | Order | Sequence[Order] = ()) -> Ordered[Stream]:
        """The rows by some columns and in an order (``"ts desc"``), for ranks, lag,
        frames and the first rows of each key.
        """
        from headwater.incremental.circuit.ordered import Ordered

        return Ordered(self, keys, orders(order))

    # -- windows of time -------------------------------------------------------------------------------------------

    def window(self, time: str, size: Length, *, every: Length | None = None, offset: Length = 0) -> Stream:
        """Each row once for every window that it falls into, with ``window_start`` and ``window_end``.

        Tumbling windows of ``size``; with ``every``, hopping ones. As Spark's ``window``.
        """
        from headwater.incremental.recipes.windows import windowed

        return windowed(self, time, size, every, offset)

    def session(self, time: str, gap: Length, *, by: Names = ()) -> Stream:
        """Each row with the session it belongs to, ``session_start`` and ``session_end``: rows of a key that follow
        within ``gap``.

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
        """Keep rows out that come too late: whose time is more than ``lateness`` before the greatest seen in earlier
        steps.

        ``lateness`` is ``"10 minutes"``, a timedelta, or a number in the units of the column. `late` has what was kept
        out; state behind the watermark is let go.
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
        return self.at(vertex)

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

    def __repr__(self) -> str:
        return f"Stream({', '.join(f'{f.name} {f.type}' for f in self.schema)})"


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

"""Joins in time: as-of and range joins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Literal, Self

import pyarrow as pa

from headwater.base.change import as_table
from headwater.base.errors import InputError
from headwater.base.schema import Schema
from headwater.base.spans import span
from headwater.timeseries.aligning import check_alike
from headwater.timeseries.known import Direction
from headwater.timeseries.methods.base import Methods, names_of
from headwater.timeseries.node import Ordering
from headwater.timeseries.operators.asof import AsOf
from headwater.timeseries.operators.range_join import RangeJoin
from headwater.timeseries.operators.values import Values

__all__ = ["JoinMethods"]


class JoinMethods(Methods):
    """What was known at a row's time, and what lies around it."""

    def join_asof(
        self,
        other: Any,
        *,
        direction: Direction = "backward",
        tolerance: str | int | timedelta | None = None,
        strict: bool = False,
        skip_nulls: bool = False,
        by: str | Sequence[str] | Mapping[str, str] | None = None,
        on: str | tuple[str, str] | None = None,
        how: Literal["left", "inner"] = "left",
        suffix: str = "_right",
    ) -> Self:
        """To each row the row of another stream that was known at its time.

        Parameters
        ----------
        other
            The stream that is looked into. Its own time, and its tiebreak for rows of one time. Rows that are at hand
            (Arrow, pandas, polars) have their time in a column of the same name as this stream's.
        direction
            "backward": the last row at or before; "forward": the first at or after; "nearest": the closer of the two,
            the earlier if they are equally far.
        tolerance
            How far away it may be, at most.
        strict
            Leave out rows of exactly the same time.
        skip_nulls
            For each column of the other stream take the nearest row that has a value in it, by the same direction,
            tolerance and strictness, instead of the nearest row: ``bid`` and ``ask`` may then come of different rows.
            The other stream's time is that of the nearest row, whatever it has.
        by
            The columns that have to agree: those of this stream by default, some of them, or a mapping to the other's
            names.
        on
            The time columns, if they are not the streams' own: one name, or one for each side.
        how
            "left" keeps rows that met nobody, with nulls.
        suffix
            For columns of the other stream whose names are taken.

        >>> import pyarrow as pa
        >>> from headwater.timeseries.running.here import run_here
        >>> trades = JoinMethods(Values(pa.table({"t": [5]})), Ordering("t"))
        >>> quotes = JoinMethods(Values(pa.table({"t": [1, 4], "bid": [9, None], "ask": [None, 11]})), Ordering("t"))
        >>> run_here(trades.join_asof(quotes).plan).to_pylist()
        [{'t': 5, 't_right': 4, 'bid': None, 'ask': 11}]
        >>> run_here(trades.join_asof(quotes, skip_nulls=True).plan).to_pylist()
        [{'t': 5, 't_right': 4, 'bid': 9, 'ask': 11}]
        """
        if direction not in ("backward", "forward", "nearest"):
            raise InputError.bad_argument("direction", direction, "backward, forward or nearest")
        if how not in ("left", "inner"):
            raise InputError.bad_argument("how", how, "left or inner")
        for name, flag in (("strict", strict), ("skip_nulls", skip_nulls)):
            if not isinstance(flag, bool):
                raise InputError.bad_argument(name, flag, "True or False")
        other = self._other(other)
        left_by, right_by = self._pairs(other, by)
        left_time, right_time = self._times(other, on, "join_asof")
        reach = None if tolerance is None else span(tolerance, self.schema.field(left_time), "tolerance")
        if reach is not None and reach < 0:
            raise InputError.bad_argument("tolerance", tolerance, "0 or more")
        tiebreak = other.ordering.tiebreak if other.ordering is not None else ()
        node = AsOf(
            self.plan,
            other.plan,
            left_time,
            right_time,
            left_by,
            right_by,
            tiebreak,
            direction,
            reach,
            strict,
            how,
            skip_nulls,
            suffix=suffix,
        )
        return self._with(node)

    def join_range(
        self,
        other: Any,
        *,
        before: str | int | timedelta = 0,
        after: str | int | timedelta = 0,
        by: str | Sequence[str] | Mapping[str, str] | None = None,
        on: str | tuple[str, str] | None = None,
        how: Literal["left", "inner"] = "inner",
        suffix: str = "_right",
    ) -> Self:
        """To each row all rows of another stream around its time, a row for each pair.

        Parameters
        ----------
        before, after
            How much earlier and later than this row's time the other's may be; both ends are included.
        by, on, suffix
            As in `join_asof`.
        how
            "left" keeps rows that met nobody, with nulls.

        >>> import pyarrow as pa
        >>> from headwater.timeseries.running.here import run_here
        >>> from headwater.timeseries.node import Ordering
        >>> from headwater.timeseries.operators.values import Values
        >>> alarms = JoinMethods(Values(pa.table({"t": [10]})), Ordering("t"))
        >>> events = JoinMethods(Values(pa.table({"t": [4, 8, 10, 11], "e": ["a", "b", "c", "d"]})), Ordering("t"))
        >>> run_here(alarms.join_range(events, before=5).plan)["e"].to_pylist()
        ['b', 'c']
        """
        if how not in ("left", "inner"):
            raise InputError.bad_argument("how", how, "left or inner")
        other = self._other(other)
        left_by, right_by = self._pairs(other, by)
        left_time, right_time = self._times(other, on, "join_range")
        field = self.schema.field(left_time)
        reach = span(before, field, "before"), span(after, field, "after")
        if reach[0] + reach[1] < 0:
            raise InputError.bad_argument("after", after, "no earlier than `before`")
        if min(reach) < 0:
            raise InputError.bad_argument("before" if reach[0] < 0 else "after", min(reach), "0 or more")
        node = RangeJoin(self.plan, other.plan, left_time, right_time, left_by, right_by, *reach, how, suffix=suffix)
        return self._with(node)

    def _other(self, other: Any) -> Methods:
        if isinstance(other, Methods):
            return other
        table = as_table(other)
        kinds = [f.with_nullable(True).remove_metadata() for f in Schema.from_arrow(table.schema).arrow]
        rows = Values(table.cast(pa.schema(kinds)))
        time = None if self.ordering is None else self.ordering.time
        return Methods(rows, Ordering(time) if time is not None and time in table.schema.names else None)

    def _pairs(
        self, other: Methods, by: str | Sequence[str] | Mapping[str, str] | None
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        if by is None:
            names = self.ordering.by if self.ordering is not None else ()
            pairs = {name: name for name in names}
            if (
                other.ordering is not None
                and len(other.ordering.by) == len(names)
                and set(other.ordering.by) != set(names)
            ):
                pairs = dict(zip(names, other.ordering.by, strict=True))
        else:
            pairs = dict(by) if isinstance(by, Mapping) else {name: name for name in names_of(by)}
        left = tuple(self._column(name) for name in pairs)
        right = tuple(other._column(name) for name in pairs.values())
        check_alike(self.schema, other.schema, list(zip(left, right, strict=True)))
        return left, right

    def _times(self, other: Methods, on: str | tuple[str, str] | None, what: str) -> tuple[str, str]:
        if on is None:
            left, right = self._ordered(what).time, other._ordered(what).time
        else:
            names = (on, on) if isinstance(on, str) else on
            left, right = self._column(names[0]), other._column(names[1])
        kinds = self.schema.field(left).type, other.schema.field(right).type
        if not _is_time(kinds[0]) or kinds[0] != kinds[1]:
            expected = "timestamps, dates or whole numbers of one type"
            raise InputError.bad_argument("on", f"{kinds[0]} and {kinds[1]}", expected)
        return left, right


def _is_time(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date32(kind) or pa.types.is_signed_integer(kind))

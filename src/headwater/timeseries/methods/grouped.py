"""A stream by keys: what can be asked of its groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import pyarrow as pa

from headwater.base.errors import InputError
from headwater.timeseries.methods.base import Methods, flat_names
from headwater.timeseries.methods.checking import checked, plan_of, schema_of
from headwater.timeseries.methods.texts import sql_text, texts_of
from headwater.timeseries.operators.aggregate import Aggregated
from headwater.timeseries.operators.apply import Apply
from headwater.timeseries.operators.cogroup import Cogroup
from headwater.timeseries.operators.functions import Function, check_batch, check_function
from headwater.timeseries.querying import quoted

if TYPE_CHECKING:
    from headwater.timeseries.methods.texts import Expression, Named

__all__ = ["Grouped"]

S = TypeVar("S", bound=Methods)


class Grouped(Generic[S]):
    """The groups of a stream: rows that agree in the keys. Null is a key, and so is NaN.

    >>> from headwater.timeseries.methods.relational import RelationalMethods
    >>> from headwater.timeseries.operators.values import Values
    >>> from headwater.timeseries.running.here import run_here
    >>> trades = RelationalMethods(Values(pa.table({"s": ["a", "b", "a"], "v": [1, 2, 3]})))
    >>> run_here(trades.group("s").agg(total="sum(v)", n="count(*)").plan).sort_by("s").to_pylist()
    [{'s': 'a', 'total': 4, 'n': 2}, {'s': 'b', 'total': 2, 'n': 1}]
    """

    def __init__(self, stream: S, keys: tuple[str, ...]) -> None:
        self.stream = stream
        self.keys = keys

    def agg(self, *columns: Named | None, **named: Expression) -> S:
        """A row for each group: its keys, and aggregates by the names they get.

        Parameters
        ----------
        columns, named
            expressions over aggregates, like ``sum(price * size) / sum(size)``; or Columns of PySpark, by themselves if
            they have an alias
        """
        texts = texts_of(columns, named, self.keys)
        if not texts:
            raise InputError.bad_argument("columns", {}, "at least one aggregate, like total='sum(v)'")
        texts = {name: sql_text(name, text) for name, text in texts.items()}
        return self.stream._with(checked(Aggregated(self.stream.plan, self.keys, texts)))

    def count(self, name: str = "count") -> S:
        """How many rows each group has."""
        return self.agg({name: "count(*)"})

    def sum(self, *columns: str | Sequence[str]) -> S:
        """The sum of each of these columns, under its name."""
        return self._each("sum", columns)

    def min(self, *columns: str | Sequence[str]) -> S:
        """The smallest value of each of these columns, under its name."""
        return self._each("min", columns)

    def max(self, *columns: str | Sequence[str]) -> S:
        """The largest value of each of these columns, under its name."""
        return self._each("max", columns)

    def mean(self, *columns: str | Sequence[str]) -> S:
        """The mean of each of these columns, under its name."""
        return self._each("avg", columns)

    def apply(self, function: Function, *, schema: pa.Schema | Mapping[str, pa.DataType], batch: str = "arrow") -> S:
        """What a function makes of the rows of each group.

        Parameters
        ----------
        function
            takes the rows of a group, or its keys (a tuple) and its rows, and returns rows: Arrow, polars, pandas or a
            dict. Where the stream has an ordering, they come by time; without one the function must not depend on their
            order.
        schema
            names and types of what it returns
        batch
            what it takes: ``arrow``, ``polars`` or ``pandas``

        >>> from headwater.timeseries.methods.relational import RelationalMethods
        >>> from headwater.timeseries.operators.values import Values
        >>> from headwater.timeseries.running.here import run_here
        >>> trades = RelationalMethods(Values(pa.table({"s": ["a", "b", "a"], "v": [1, 2, 3]})))
        >>> spread = lambda key, rows: {"s": [key[0]], "n": [rows.num_rows]}
        >>> run_here(trades.group("s").apply(spread, schema={"s": pa.string(), "n": pa.int64()}).plan).to_pylist()
        [{'s': 'a', 'n': 2}, {'s': 'b', 'n': 1}]
        """
        check_batch(batch)
        check_function(function)
        order = _order(self.stream)
        return self.stream._with(
            checked(Apply(self.stream.plan, self.keys, function, schema_of(schema), order, batch=batch))
        )

    def cogroup(
        self,
        other: Grouped[Any],
        function: Function,
        *,
        schema: pa.Schema | Mapping[str, pa.DataType],
        batch: str = "arrow",
    ) -> S:
        """What a function makes of each key's rows in this stream and in another.

        Parameters
        ----------
        other
            another stream by as many keys: ``quotes.group("symbol")``
        function
            takes the rows of both, of which one may be empty, or the keys and then these
        schema, batch
            as in `apply`
        """
        check_batch(batch)
        check_function(function)
        if not isinstance(other, Grouped) or len(other.keys) != len(self.keys) or not self.keys:
            raise InputError.bad_argument("other", other, f"a stream grouped by {len(self.keys)} keys: other.group(…)")
        on = tuple(zip(self.keys, other.keys, strict=True))
        orders = _order(self.stream), _order(other.stream)
        node = Cogroup(self.stream.plan, plan_of(other.stream), on, function, schema_of(schema), orders, batch=batch)
        return self.stream._with(checked(node))

    def _each(self, function: str, columns: tuple[str | Sequence[str], ...]) -> S:
        names = [self.stream._column(name) for name in flat_names(columns)]
        if not names:
            raise InputError.bad_argument("columns", (), "the columns to aggregate")
        return self.agg({name: f"{function}({quoted(name)})" for name in names})


def _order(stream: Methods) -> tuple[str, ...]:
    found = stream.ordering
    return () if found is None else (found.time, *found.tiebreak)

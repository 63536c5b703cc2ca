"""Relational methods of a stream: rows and columns chosen, computed, joined, grouped and counted.

Texts are Spark SQL. None of these methods looks at the order of rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from headwater.base.errors import InputError
from headwater.spark.columns import is_column
from headwater.timeseries.methods.base import Methods, flat_names, names_of
from headwater.timeseries.methods.checking import checked, plan_of, schema_of
from headwater.timeseries.methods.grouped import Grouped
from headwater.timeseries.methods.texts import SQL_TEXT, named_column, sql_text, texts_of
from headwater.timeseries.node import Ordering
from headwater.timeseries.operators.aggregate import Aggregated
from headwater.timeseries.operators.clip import Clip, bound_of
from headwater.timeseries.operators.computed import Computed, type_of
from headwater.timeseries.operators.functions import Function, check_batch, check_function
from headwater.timeseries.operators.join import HOW, Join
from headwater.timeseries.operators.narrow import Filter, Project
from headwater.timeseries.operators.top_k import TopK, TopKOfEach
from headwater.timeseries.operators.transform import Transform
from headwater.timeseries.operators.union import Union
from headwater.timeseries.querying import quoted
from headwater.timeseries.reading import new_names

if TYPE_CHECKING:
    from pyspark.sql import Column

    from headwater.timeseries.methods.texts import Expression, Named

__all__ = ["RelationalMethods"]


class RelationalMethods(Methods):
    """What can be done with rows and columns.

    >>> from headwater.timeseries.operators.values import Values
    >>> from headwater.timeseries.running.here import run_here
    >>> trades = RelationalMethods(Values(pa.table({"s": ["a", "b"], "price": [1.5, 2.0], "size": [2, 3]})))
    >>> run_here(trades.filter("price < 2").with_columns(value="price * size").plan).to_pylist()
    [{'s': 'a', 'price': 1.5, 'size': 2, 'value': 3.0}]
    """

    def filter(self, condition: Expression) -> Self:
        """The rows for which a condition, in Spark SQL or as a Column of PySpark, is true."""
        return self._with(checked(Filter(self.plan, sql_text("condition", condition))))

    def select(self, *columns: str | Column | Sequence[str | Column], **named: Expression) -> Self:
        """Some columns, and expressions by the names they get, in this order;
        a Column of PySpark has its alias for a name.
        """
        flat: list[Any] = []
        one: Any
        for one in columns:
            flat += [one] if is_column(one) else names_of(one)
        given = [named_column(one) if is_column(one) else (self._column(one), None) for one in flat]
        names = [name for name, _ in given]
        if len(names) + len(named) == 0 or len(names) != len(set(names)):
            raise InputError.bad_argument("columns", columns, "columns, each of them once")
        chosen = {name: quoted(name) if text is None else text for name, text in given}
        texts = texts_of([chosen], {name: sql_text(name, text) for name, text in named.items()})
        return self._with(checked(Project(self.plan, texts, f"select {', '.join(texts)}")))

    def drop(self, *columns: str | Sequence[str]) -> Self:
        """All columns but these."""
        gone = {self._column(name) for name in flat_names(columns)}
        kept = {name: quoted(name) for name in self.columns if name not in gone}
        if not kept:
            raise InputError.bad_argument("columns", columns, "fewer: at least one column has to be left")
        return self._with(checked(Project(self.plan, kept, f"drop {', '.join(sorted(gone))}")))

    def rename(self, columns: Mapping[str, str] | None = None, /, **named: str) -> Self:
        """Columns under other names: old names with new ones."""
        new = {self._column(old): name for old, name in {**(columns or {}), **named}.items()}
        names = {name: new.get(name, name) for name in self.columns}
        new_names(names.values(), (), "columns")
        ordering = self.ordering
        if ordering is not None:
            by, tiebreak = (tuple(names.get(n, n) for n in part) for part in (ordering.by, ordering.tiebreak))
            ordering = Ordering(names.get(ordering.time, ordering.time), by, tiebreak)
        shown = ", ".join(f"{old} to {name}" for old, name in new.items())
        texts = {name: quoted(old) for old, name in names.items()}
        return self._with(checked(Project(self.plan, texts, f"rename {shown}")), ordering)

    def with_columns(self, *columns: Mapping[str, Any] | Column | None, batch: str = "arrow", **named: Any) -> Self:
        """The rows with more columns; one of a name that is there takes its place.

        Parameters
        ----------
        columns, named
            by name either an expression, which is Spark SQL or a Column of PySpark (by itself, if it has an alias), or
            a Python function which takes a batch of rows and returns a value for each of them; the function alone, or
            with its type: ``(function, pa.float64())``. All of a call are one or the other.
        batch
            what functions take: ``arrow``, ``polars`` or ``pandas``

        >>> import pyarrow.compute as pc
        >>> from headwater.timeseries.operators.values import Values
        >>> from headwater.timeseries.running.here import run_here
        >>> rows = RelationalMethods(Values(pa.table({"v": [1, 2]})))
        >>> run_here(rows.with_columns(twice=lambda t: pc.multiply(t["v"], 2)).plan).to_pylist()
        [{'v': 1, 'twice': 2}, {'v': 2, 'twice': 4}]
        """
        check_batch(batch)
        given = texts_of(columns, named)
        spelled = {name.lower(): name for name in self.columns}
        given = {spelled.get(name.lower(), name): what for name, what in given.items()}
        if given and all(isinstance(what, str) for what in given.values()):
            texts = {name: quoted(name) for name in self.columns} | given
            shown = ", ".join(f"{name} = {text}" for name, text in given.items())
            return self._with(checked(Project(self.plan, texts, f"with_columns {shown}")))
        functions: dict[str, tuple[Function, pa.DataType]] = {}
        for name, what in given.items():
            match what:
                case (function, pa.DataType() as kind) if callable(function):
                    functions[name] = (function, kind)
                case function if callable(function):
                    functions[name] = (function, type_of(function, self.schema, batch))
                case _:
                    expected = f"{SQL_TEXT}; or a function with or without its type, and not both kinds in one call"
                    raise InputError.bad_argument(name, what if isinstance(what, str) else type(what), expected)
        if not functions:
            raise InputError.bad_argument("columns", {}, "at least one column")
        return self._with(checked(Computed(self.plan, functions, batch)))

    def transform(
        self,
        function: Function,
        *,
        schema: pa.Schema | Mapping[str, pa.DataType],
        columns: str | Sequence[str] | None = None,
        batch: str = "arrow",
    ) -> Self:
        """What a function makes of each batch of rows.

        Parameters
        ----------
        function
            takes a batch of rows and returns rows: Arrow, polars, pandas or a dict. It is called for whatever rows lie
            together, so it has to look at each row by itself.
        schema
            names and types of what it returns
        columns
            what it needs of the rows; None for all of them
        batch
            what it takes: ``arrow``, ``polars`` or ``pandas``
        """
        check_batch(batch)
        check_function(function)
        needed = self.columns if columns is None else [self._column(name) for name in names_of(columns)]
        return self._with(checked(Transform(self.plan, function, schema_of(schema), tuple(needed), batch)))

    def clip(self, columns: str | Sequence[str], *, lower: Any = None, upper: Any = None) -> Self:
        """The rows with these columns held between two bounds; null and NaN stay.

        Parameters
        ----------
        columns
            numbers, dates or timestamps
        lower, upper
            a value for all of them, or values by column; None for no bound

        >>> from headwater.timeseries.operators.values import Values
        >>> from headwater.timeseries.running.here import run_here
        >>> rows = RelationalMethods(Values(pa.table({"v": [1, None, 9]})))
        >>> run_here(rows.clip("v", lower=2, upper=5).plan)["v"].to_pylist()
        [2, None, 5]
        """
        if lower is None and upper is None:
            raise InputError.bad_argument("lower", None, "a bound, here or as upper=")
        names = [self._column(name) for name in names_of(columns)]
        bounds = {}
        for name in names:
            field = self.schema.field(name)
            low = lower.get(name) if isinstance(lower, Mapping) else lower
            high = upper.get(name) if isinstance(upper, Mapping) else upper
            found = bound_of(low, field, "lower"), bound_of(high, field, "upper")
            if found[0] is not None and found[1] is not None and found[0].as_py() > found[1].as_py():
                raise InputError.bad_argument("lower", low, f"a bound that is not above upper={high!r}")
            bounds[name] = found
        return self._with(checked(Clip(self.plan, bounds)))

    def union(self, *others: Any) -> Self:
        """The rows of this stream and of others, matched by the names of columns; equal rows stay several."""
        return self._with(checked(Union((self.plan, *map(plan_of, others)))))

    def join(
        self,
        other: Any,
        on: str | Sequence[str] | Mapping[str, str],
        *,
        how: str = "inner",
        suffix: str = "_right",
        broadcast: bool | None = None,
    ) -> Self:
        """Pairs of rows with equal keys. The keys come once, under this stream's names.

        Parameters
        ----------
        other
            another stream, or rows that are at hand
        on
            columns that both have, or this stream's columns with the other's
        how
            ``inner``, ``left``, ``right``, ``full``, ``semi`` (rows with a partner) or ``anti`` (rows without one)
        suffix
            for columns of the other stream whose names are taken
        broadcast
            whether the other stream goes to every task as a whole; None lets Spark decide

        >>> from headwater.timeseries.operators.values import Values
        >>> from headwater.timeseries.running.here import run_here
        >>> rows = RelationalMethods(Values(pa.table({"k": [1, 2], "v": [5, 6]})))
        >>> run_here(rows.join({"id": [2], "name": ["b"]}, {"k": "id"}, how="left").plan).sort_by("k").to_pylist()
        [{'k': 1, 'v': 5, 'name': None}, {'k': 2, 'v': 6, 'name': 'b'}]
        """
        if how not in HOW:
            raise InputError.bad_argument("how", how, f"one of {', '.join(HOW)}")
        right = other if isinstance(other, Methods) else Methods(plan_of(other))
        named = on if isinstance(on, Mapping) else {name: name for name in names_of(on)}
        pairs = tuple((self._column(mine), right._column(theirs)) for mine, theirs in named.items())
        if not pairs:
            raise InputError.bad_argument("on", on, "at least one column")
        return self._with(checked(Join(self.plan, right.plan, pairs, how, suffix, broadcast)))

    def group(self, *keys: str | Sequence[str]) -> Grouped[Self]:
        """The groups of rows that agree in these columns: ``.agg(…)``, ``.apply(…)``, ``.cogroup(…)``."""
        return Grouped(self, tuple(dict.fromkeys(self._column(name) for name in flat_names(keys))))

    def agg(self, *columns: Named | None, **named: Expression) -> Self:
        """One row of aggregates over all rows, in Spark SQL or as Columns of PySpark, by the names they get."""
        return self.group().agg(*columns, **named)

    def sum(self, *columns: str | Sequence[str]) -> Self:
        """The sum of each of these columns, under its name."""
        return self.group().sum(*columns)

    def min(self, *columns: str | Sequence[str]) -> Self:
        """The smallest value of each of these columns, under its name."""
        return self.group().min(*columns)

    def max(self, *columns: str | Sequence[str]) -> Self:
        """The largest value of each of these columns, under its name."""
        return self.group().max(*columns)

    def mean(self, *columns: str | Sequence[str]) -> Self:
        """The mean of each of these columns, under its name."""
        return self.group().mean(*columns)

    def distinct(self, *keys: str | Sequence[str]) -> Self:
        """The different values of these columns, or of all columns."""
        names = tuple(dict.fromkeys(self._column(name) for name in flat_names(keys))) or tuple(self.columns)
        return self._with(checked(Aggregated(self.plan, names, {})))

    def count_distinct(self, *columns: str | Sequence[str], name: str = "count") -> Self:
        """How many different values of these columns there are, exactly, without those that have a null."""
        if not columns:
            raise InputError.bad_argument("columns", (), "the columns whose values are counted")
        found = self.distinct(*columns)
        there = " AND ".join(f"{quoted(c)} IS NOT NULL" for c in found.columns)
        return found.filter(there).group().count(name)

    def top_k(
        self,
        k: int,
        *,
        by: str | Sequence[str],
        descending: bool | Sequence[bool] = True,
        per: str | Sequence[str] = (),
    ) -> Self:
        """The k first rows by some columns, of all rows or of each key.

        Parameters
        ----------
        k
            how many
        by
            the columns that decide; where rows tie for the last place the other columns do, in their order, ascending
        descending
            for all of them, or for each: descending has NaN first and null last
        per
            the columns of the key

        >>> from headwater.timeseries.operators.values import Values
        >>> from headwater.timeseries.running.here import run_here
        >>> rows = RelationalMethods(Values(pa.table({"s": ["a", "b", "a"], "v": [1, 2, 3]})))
        >>> run_here(rows.top_k(1, by="v", per="s").plan).to_pylist()
        [{'s': 'a', 'v': 3}, {'s': 'b', 'v': 2}]
        """
        if isinstance(k, bool) or not isinstance(k, int) or k < 1:
            raise InputError.bad_argument("k", k, "a whole number from 1")
        names = [self._column(name) for name in names_of(by)]
        falls = [descending] * len(names) if isinstance(descending, bool) else list(descending)
        if not names or len(falls) != len(names):
            raise InputError.bad_argument("by", by, "at least one column, with one value of descending= for each")
        for name in names:
            if pa.types.is_nested(self.schema.field(name).type):
                raise InputError.bad_argument("by", name, "columns that have an order, and are not nested")
        order = tuple(zip(names, falls, strict=True))
        keys = tuple(self._column(name) for name in names_of(per))
        return self._with(checked(TopKOfEach(self.plan, keys, k, order) if keys else TopK(self.plan, k, order)))

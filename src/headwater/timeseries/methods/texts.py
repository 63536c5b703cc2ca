"""Expressions as arguments: SQL text, or a Column of PySpark, which is read as the text that says the same.

A text is all that a plan holds: it can be shown, cut at its aggregates and handed to either engine. Other libraries'
expressions are refused, because what they mean by theirs Spark SQL need not mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from headwater.base.errors import InputError
from headwater.spark.columns import column_names, column_text, is_column
from headwater.timeseries.reading import new_names

if TYPE_CHECKING:
    from pyspark.sql import Column

    Expression: TypeAlias = str | Column
    Named: TypeAlias = Mapping[str, Expression] | Column

__all__ = ["SQL_TEXT", "named_column", "named_texts", "sql_text", "texts_of", "without_columns"]

SQL_TEXT = 'Spark SQL as text, like "price > 10 AND size IS NOT NULL", or a Column of PySpark, like F.col("price") > 10'


def sql_text(argument: str, given: Any) -> str:
    """An expression as text.

    >>> sql_text("condition", "v > 1")
    'v > 1'
    >>> sql_text("condition", 3)  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    headwater.base.errors.InputError: error[E1001]: `condition` is 3
    """
    if is_column(given):
        return column_text(given)
    if not isinstance(given, str) or not given.strip():
        plain = isinstance(given, str | bool | int | float | None)
        shown = given if plain else f"a {type(given).__module__}.{type(given).__name__}"
        raise InputError.bad_argument(argument, shown, SQL_TEXT)
    return given


def named_column(column: Any) -> tuple[str, str]:
    """The name that a Column gives itself, and its text."""
    names = column_names(column)
    if len(names) != 1:
        raise InputError.bad_argument("columns", str(column), 'a name for it: .alias("name"), or name=column')
    return names[0], column_text(column)


def without_columns(given: Mapping[str, Any]) -> dict[str, Any]:
    """The same with Columns as their texts, and everything else as it is."""
    return {name: column_text(what) if is_column(what) else what for name, what in given.items()}


def texts_of(
    columns: Iterable[Mapping[str, Any] | Any], named: Mapping[str, Any], keys: Iterable[str] = ()
) -> dict[str, Any]:
    """What a call is given by name: as mappings, as Columns with an alias, as keywords, or all of them.

    >>> texts_of([{"a": "sum(x)"}], {"n": "count(*)"})
    {'a': 'sum(x)', 'n': 'count(*)'}
    """
    found: dict[str, Any] = {}
    for given in (*columns, named):
        if given is None:
            continue
        if is_column(given):
            more = dict([named_column(given)])
        elif isinstance(given, Mapping):
            more = without_columns(given)
        else:
            expected = 'expressions by the names they get: name="…", {"name": "…"} or F.expr("…").alias("name")'
            raise InputError.bad_argument("columns", given, expected)
        new_names(more, found, "columns")
        found |= more
    new_names(found, keys, "columns")
    return found


def named_texts(columns: Iterable[Mapping[str, Any] | Any], named: Mapping[str, Any]) -> dict[str, str]:
    """Aggregates by the names they get, at least one.

    >>> named_texts([{"a b": "sum(x)"}], {"n": "count(*)"})
    {'a b': 'sum(x)', 'n': 'count(*)'}
    """
    found = {name: sql_text(name, text) for name, text in texts_of(columns, named).items()}
    if not found:
        raise InputError.bad_argument("columns", {}, "at least one aggregate by its name: total='sum(size)'")
    return found

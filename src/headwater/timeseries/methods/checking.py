"""What method classes of relations share: other streams as arguments, and mistakes told where they are made.

A node reads its texts when it is asked for its schema or its kernel. A method asks at once, so that an error comes from the line that
has the mistake in it, and not from a task.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from headwater.base.change import as_table
from headwater.base.errors import InputError
from headwater.timeseries.methods.base import Methods
from headwater.timeseries.node import Gathered, Keyed, Node, RowWise, Stacked
from headwater.timeseries.operators.values import Values
from headwater.timeseries.reading import new_names

__all__ = ["SQL_TEXT", "at_hand", "checked", "plan_of", "schema_of", "sql_text", "texts_of"]

SQL_TEXT = 'Spark SQL as text, like "price > 10 AND size IS NOT NULL"'


def checked(node: Node) -> Node:
    """The node, after everything in it was read.

    >>> from headwater.timeseries.operators.narrow import Filter
    >>> checked(Filter(Values(pa.table({"v": [1]})), "w > 1"))  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    headwater.base.errors.NotFoundError: error[E1002]: no column `w`
    """
    assert node.schema is not None
    if isinstance(node, RowWise | Keyed):
        node.kernel()
    elif isinstance(node, Gathered | Stacked):
        node.kernels()
    return node


def plan_of(other: Any) -> Node:
    """The plan of another stream, or of rows that are at hand."""
    return other.plan if isinstance(other, Methods) else Values(as_table(other))


def at_hand(other: Any) -> pa.Table | None:
    """The rows of an argument that are at hand; None if it is a stream that has to be computed.

    >>> at_hand({"v": [1]}).num_rows
    1
    """
    plan = plan_of(other)
    return plan.table if isinstance(plan, Values) else None


def sql_text(argument: str, text: Any) -> None:
    """Refuse an expression that is not text: what other libraries mean by theirs, Spark SQL need not mean.

    >>> sql_text("condition", 3)  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    headwater.base.errors.InputError: error[E1001]: `condition` is 3
    """
    if not isinstance(text, str):
        shown = (
            text if isinstance(text, bool | int | float | None) else f"a {type(text).__module__}.{type(text).__name__}"
        )
        raise InputError.bad_argument(argument, shown, SQL_TEXT)


def texts_of(columns: Mapping[str, Any] | None, named: Mapping[str, Any], keys: Iterable[str] = ()) -> dict[str, Any]:
    """Columns that are given as a mapping, by name, or both."""
    found = dict(columns or {})
    new_names(named, found, "columns")
    found |= named
    new_names(found, keys, "columns")
    return found


def schema_of(schema: pa.Schema | Mapping[str, pa.DataType]) -> pa.Schema:
    """A schema, or names with their types.

    >>> schema_of({"v": pa.int64()}).names
    ['v']
    """
    if isinstance(schema, pa.Schema):
        return schema
    if not isinstance(schema, Mapping) or not all(isinstance(kind, pa.DataType) for kind in schema.values()):
        raise InputError.bad_argument("schema", schema, "a pyarrow schema, or a dict of names and pyarrow types")
    return pa.schema(list(schema.items()))

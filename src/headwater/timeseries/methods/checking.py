"""What method classes of relations share: other streams as arguments, and mistakes told where they are made.

A node reads its texts when it is asked for its schema or its kernel. A method asks at once, so that an error comes from
the line that has the mistake in it, and not from a task.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from headwater.base.change import as_table
from headwater.base.errors import InputError
from headwater.timeseries.methods.base import Methods
from headwater.timeseries.node import Gathered, Keyed, Node, RowWise, Stacked
from headwater.timeseries.operators.values import Values

__all__ = ["at_hand", "checked", "plan_of", "schema_of"]


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

"""The order of collected rows: the one that people expect, put on the driver.

Tasks finish in any order, so rows reach the driver in none. What comes there is sorted there: by the order that the
last operator gives its rows (`Node.result_order`: top_k by rank, groups by key), else by the stream's own: its ``by``
columns, its time and its tiebreak, ascending, nulls first and NaN last. Rows that agree in all of these, and rows of
a stream without a time, stay as they come. Columns of nested types have no order and end the comparison.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.timeseries.node import Node, Ordering, ResultOrder
from headwater.timeseries.rows import comparable, sort_indices

__all__ = ["in_order", "order_of"]


def order_of(plan: Node, ordering: Ordering | None) -> ResultOrder:
    """The columns by which the rows of a plan are shown, each with whether it descends; none: as they come.

    >>> from headwater.timeseries.operators.values import Values
    >>> order_of(Values(pa.table({"s": ["a"], "t": [1]})), Ordering("t", ("s",)))
    (('s', False), ('t', False))
    """
    found = plan.result_order()
    if found is None:
        found = () if ordering is None else tuple((name, False) for name in ordering.columns)
    sortable: list[tuple[str, bool]] = []
    for name, descends in found:
        if pa.types.is_nested(plan.schema.field(name).type):
            break
        sortable.append((name, descends))
    return tuple(sortable)


def in_order(rows: pa.Table, order: ResultOrder) -> pa.Table:
    """The rows in this order; those that it does not decide stay as they are.

    >>> in_order(pa.table({"v": [1, None, 3, 2]}), (("v", True),))["v"].to_pylist()
    [3, 2, 1, None]
    """
    if rows.num_rows < 2 or not order:
        return rows
    if not any(descends for _, descends in order):
        places = sort_indices([rows.column(name) for name, _ in order])
        return rows if places is None else rows.take(pa.array(places))
    words = [word for name, descends in order for word in _words(rows.column(name), descends)]
    return rows.take(pa.array(np.lexsort(words[::-1])))


def _words(column: pa.ChunkedArray, descends: bool) -> list[npt.NDArray[Any]]:
    words = comparable(column)
    return [-w if w.dtype.kind == "f" else ~w for w in words] if descends else words

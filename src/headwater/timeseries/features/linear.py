"""The change of a linear plan: what row-wise operators make of the changed rows is the change.

Rows that go are made of the rows of negative weight, rows that come of those of positive weight; what both sides have
is none.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from headwater.lake.changes import WEIGHT
from headwater.timeseries.features.following import with_leaves
from headwater.timeseries.features.row_difference import difference
from headwater.timeseries.node import Node
from headwater.timeseries.operators.values import Values
from headwater.timeseries.running.here import run_here
from headwater.timeseries.sources.delta import DeltaSource

__all__ = ["linear_change"]


def linear_change(plan: Node, changes: Mapping[str, pa.Table], schema: pa.Schema) -> tuple[pa.Table, pa.Table]:
    """The rows of the result that go, and those that come."""
    gone, come = (_made(plan, changes, sign).cast(schema) for sign in (-1, 1))
    which_gone, which_come = difference(gone, come)
    return gone.take(pa.array(which_gone)), come.take(pa.array(which_come))


def _made(plan: Node, changes: Mapping[str, pa.Table], sign: int) -> pa.Table:
    """What the plan makes of the changed rows of one sign, each as often as its weight says."""

    def changed(_: int, node: Node) -> Node:
        if not isinstance(node, DeltaSource):
            return Values(node.schema.empty_table())
        rows = changes[node.table.name]
        weights = sign * rows.column(WEIGHT).to_numpy()
        which = np.repeat(np.arange(rows.num_rows), np.maximum(weights, 0))
        return Values(rows.take(pa.array(which)).select(node.schema.names).cast(node.schema))

    return run_here(with_leaves(plan, changed))

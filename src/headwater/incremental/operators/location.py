"""The place of an error: which operator failed, and on which row or key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from headwater.base.change import WEIGHT
from headwater.base.errors import ExpressionError

if TYPE_CHECKING:
    from headwater.incremental.operators.node import Node
    from headwater.incremental.zset import ZSet

__all__ = ["located"]


def located(error: ExpressionError, node: Node, deltas: Sequence[ZSet]) -> ExpressionError:
    """The error with the operator and the row that it is about."""
    where = f"{node.label} {node.detail}".strip()
    row = error.row
    if error.key:
        where += f", {error.key}"
    elif row is not None and deltas and row < len(deltas[0]):
        values = deltas[0].filtered(np.array([row])).to_arrow().to_pylist()[0]
        values.pop(WEIGHT)
        where += f", row {values}"
    error.where = where
    return error

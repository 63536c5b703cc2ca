"""greatest and least: nulls do not count, NaN is greater than all, and of equal values the first stays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.sql.nodes import Call
from headwater.sql.types import family
from headwater.sql.vectorised.comparison import comparing
from headwater.sql.vectorised.frame import Frame, Kernel
from headwater.sql.vectorised.vector import Constant, Operand, Vector, dense, validity

__all__ = ["OPERATORS"]


def _numbers(dtype: pa.DataType, op: str) -> Kernel | None:
    better = comparing(">" if op == "greatest" else "<", dtype)
    if better is None:
        return None
    compare = better

    def kernel(frame: Frame, *args: Operand) -> Operand:
        given = [a for a in args if not (isinstance(a, Constant) and a.values is None)]
        if not given:
            return Constant(dtype, None)
        best: Any = dense(given[0], frame.rows).values
        valid = validity(given[0])
        for other in given[1:]:
            wins, other_valid = compare(other.values, best), validity(other)
            if other_valid is not None:
                wins = wins & other_valid
            if valid is not None:
                wins = wins | (~valid if other_valid is None else ~valid & other_valid)
                valid = None if other_valid is None else valid | other_valid
            best = np.where(wins, other.values, best)
        return Vector(dtype, best, valid)

    return kernel


def _texts(dtype: pa.DataType, op: str) -> Kernel:
    function = pc.get_function("max_element_wise" if op == "greatest" else "min_element_wise")
    options = pc.ElementWiseAggregateOptions(skip_nulls=True)

    def kernel(_: Frame, *args: Operand) -> Operand:
        values = [pa.scalar(None, dtype) if a.values is None else a.values for a in args]
        return Vector(dtype, function.call(values, options))

    return kernel


def _build(node: Call) -> Kernel | None:
    if family(node.dtype) in ("string", "binary"):
        return _texts(node.dtype, node.op)
    return _numbers(node.dtype, node.op) if family(node.dtype) not in ("nested", "null") else None


OPERATORS = {"greatest": _build, "least": _build}

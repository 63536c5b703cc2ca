"""IS NULL, IS NOT NULL, NOT and isnan."""

from __future__ import annotations

import numpy as np

from headwater.sql.nodes import Call
from headwater.sql.types import BOOLEAN, family
from headwater.sql.vectorised.frame import Frame, Kernel
from headwater.sql.vectorised.vector import Constant, Operand, Vector, validity

__all__ = ["OPERATORS"]


def _is_null(frame: Frame, a: Operand) -> Operand:
    if isinstance(a, Constant):
        return Constant(BOOLEAN, a.values is None)
    valid = validity(a)
    return Vector(BOOLEAN, np.zeros(frame.rows, np.bool_) if valid is None else ~valid)


def _is_not_null(frame: Frame, a: Operand) -> Operand:
    if isinstance(a, Constant):
        return Constant(BOOLEAN, a.values is not None)
    valid = validity(a)
    return Vector(BOOLEAN, np.ones(frame.rows, np.bool_) if valid is None else valid)


def _not(_: Frame, a: Operand) -> Operand:
    return Vector(BOOLEAN, ~a.values, a.valid)


def _is_nan(_: Frame, a: Operand) -> Operand:
    found = np.isnan(a.values)
    return Vector(BOOLEAN, found if a.valid is None else found & a.valid)


def _nan(node: Call) -> Kernel | None:
    return _is_nan if family(node.args[0].dtype) == "float" else None


def _zero_sign(_: Frame, a: Operand) -> Operand:
    return Vector(BOOLEAN, (a.values == 0) & np.signbit(a.values), a.valid)


OPERATORS = {
    "is null": lambda _: _is_null,
    "is not null": lambda _: _is_not_null,
    "not": lambda _: _not,
    "isnan": _nan,
    "zero sign": lambda _: _zero_sign,
}

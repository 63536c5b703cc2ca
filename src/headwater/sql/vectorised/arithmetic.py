"""``+ - * / % div``, minus and abs, by the family of their type: `integers`, `floats` or `decimals`."""

from __future__ import annotations

from headwater.sql.nodes import Call
from headwater.sql.types import family
from headwater.sql.vectorised.decimals import decimal_kernel
from headwater.sql.vectorised.floats import float_kernel
from headwater.sql.vectorised.frame import Kernel
from headwater.sql.vectorised.integers import integer_kernel

__all__ = ["OPERATORS"]


def _build(node: Call) -> Kernel | None:
    kind = family(node.dtype)
    if kind == "integer":
        return integer_kernel(node)
    if kind == "float":
        return float_kernel(node)
    return decimal_kernel(node) if kind == "decimal" else None


OPERATORS = dict.fromkeys(("+", "-", "*", "/", "%", "div", "minus", "abs", "pmod", "try +", "try -", "try *"), _build)

"""Vectors in arrays of floats: products, distances and norms.

Sums are of floats, eight products at a time, as in Spark 4.2 (later versions add doubles, so that the last digit may be
another there). An element that is null makes the answer null, vectors of different lengths are an error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.sql.casts import cast
from headwater.sql.functions.function import Function
from headwater.sql.nodes import Literal, Node, Refused, call
from headwater.sql.types import family, name_of
from headwater.sql.udfs import Failed, define

__all__ = ["FUNCTIONS"]

_FLOAT = pa.float32()
_NOTE = "sums of floats, as in Spark 4.2"
_VECTOR = pa.list_(pa.field("element", _FLOAT))
_Values = list[float | None]


def _total(products: np.ndarray) -> Any:
    """The sum of floats, in Spark's order: of each eight first, and the rest one by one."""
    with np.errstate(all="ignore"):
        found = np.float32(0)
        whole = len(products) // 8 * 8
        for at in range(0, whole, 8):
            eight = products[at]
            for more in products[at + 1 : at + 8]:
                eight = eight + more
            found = found + eight
        for one in products[whole:]:
            found = found + one
    return found


def _floats(values: _Values) -> np.ndarray:
    return np.array(values, np.float32)


def _product(left: np.ndarray, right: np.ndarray) -> Any:
    with np.errstate(all="ignore"):
        return _total(left * right)


def _of_two(name: str, measure: Callable[[np.ndarray, np.ndarray], Any]) -> Callable[[_Values, _Values], Any]:
    def body(left: _Values, right: _Values) -> float | None:
        if len(left) != len(right):
            raise Failed(f"{name}() of vectors of {len(left)} and {len(right)} elements")
        if None in left or None in right:
            return None
        found = measure(_floats(left), _floats(right))
        return None if found is None else float(found)

    return body


def _root(value: np.float32) -> np.float32:
    return np.float32(math.sqrt(value)) if value >= 0 else np.float32(math.nan)


def _cosine(left: np.ndarray, right: np.ndarray) -> float | None:
    with np.errstate(all="ignore"):
        size = _root(_product(left, left) * _product(right, right))
        return None if size == 0 else float(_product(left, right) / size)


def _distance(left: np.ndarray, right: np.ndarray) -> float:
    with np.errstate(all="ignore"):
        apart = left - right
    return float(_root(_product(apart, apart)))


def _norm(values: _Values, degree: float) -> float | None:
    if None in values:
        return None
    found = np.abs(_floats(values))
    if degree == 1.0:
        return float(_total(found))
    if degree == 2.0:
        return float(_root(_product(found, found)))
    return float(np.fmax.reduce(found, initial=np.float32(0)))


def _normalized(values: _Values, degree: float) -> _Values | None:
    size = _norm(values, degree)
    if not values:
        return values
    if size is None or size == 0:
        return None
    with np.errstate(all="ignore"):
        return [float(v) for v in _floats(values) / np.float32(size)]


_TWO = {
    "vector_inner_product": _product,
    "vector_cosine_similarity": _cosine,
    "vector_l2_distance": _distance,
}
_CLASSES = {
    "vector_inner_product": "VectorInnerProduct",
    "vector_cosine_similarity": "VectorCosineSimilarity",
    "vector_l2_distance": "VectorL2Distance",
    "vector_norm": "VectorNorm",
    "vector_normalize": "VectorNormalize",
}
_ONE: dict[str, tuple[pa.DataType, Callable[[_Values, float], Any]]] = {
    "vector_norm": (_FLOAT, _norm),
    "vector_normalize": (_VECTOR, _normalized),
}


def _vector(node: Node, name: str) -> Node:
    if not pa.types.is_list(node.dtype) or node.dtype.value_type != _FLOAT:
        raise Refused(f"{name}() of {name_of(node.dtype)}", "cast it: CAST(x AS ARRAY<FLOAT>)")
    return node


def _measured(name: str) -> Function:
    udf = define(name, "FLOAT[] FLOAT[]", _FLOAT, _of_two(name, _TWO[name]))

    def build(args: Sequence[Node]) -> Node:
        return call(name, tuple(_vector(a, name) for a in args), _FLOAT, fallible=True)

    return Function(name, "vector", build, 2, 2, {name: f"{udf}({{0}}, {{1}})"}, note=_NOTE, spark=(_CLASSES[name],))


def _sized(name: str) -> Function:
    dtype, body = _ONE[name]
    udf = define(name, "FLOAT[] FLOAT", dtype, body)

    def build(args: Sequence[Node]) -> Node:
        degree = args[1] if len(args) == 2 else Literal(2.0, _FLOAT)
        if not isinstance(degree, Literal) or family(degree.dtype) != "float" or degree.value not in (1, 2, math.inf):
            raise Refused(f"{name}() of another degree than 1, 2 and infinity", f"write {name}(x, 2.0F)")
        return call(name, (_vector(args[0], name), cast(degree, _FLOAT)), dtype)

    return Function(name, "vector", build, 1, 2, {name: f"{udf}({{0}}, {{1}})"}, note=_NOTE, spark=(_CLASSES[name],))


FUNCTIONS = (*map(_measured, _TWO), *map(_sized, _ONE))

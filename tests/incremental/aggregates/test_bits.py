"""bit_and, bit_or and bit_xor."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import and_, or_, xor
from typing import Any

import pytest
from hypothesis import given

from headwater.incremental.aggregates.registry import aggregation

from .histories import SCHEMA, Row, check, histories, rows, values


def _oracle(how: Callable[[int, int], int], column: str) -> Callable[[list[Row]], int | None]:
    return lambda x: reduce(how, values(x, column)) if values(x, column) else None


CASES = {
    f"{name}_{c}": (aggregation(f"bit_{name}", c, schema=SCHEMA, name=f"{name}_{c}"), _oracle(how, c))
    for name, how in (("and", and_), ("or", or_), ("xor", xor))
    for c in ("v", "i")
}


@pytest.mark.parametrize("keys", [("g",), ()])
@given(histories(rows()))
def test_histories(keys: tuple[str, ...], history: list[list[Any]]) -> None:
    check(history, CASES, keys)

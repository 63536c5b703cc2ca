"""mode: the most frequent value, of several the least."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given

from headwater.incremental.aggregates.registry import aggregation

from .histories import SCHEMA, Row, check, histories, rows, values


def _mode(column: str, where: str | None = None) -> Callable[[list[Row]], Any]:
    def oracle(some: list[Row]) -> Any:
        counts = Counter(values([r for r in some if where is None or r[where]], column))
        if not counts:
            return None
        most = max(counts.values())
        return min((v for v, n in counts.items() if n == most), key=lambda v: v.encode() if isinstance(v, str) else v)

    return oracle


CASES: dict[str, Any] = {
    f"mode_{c}": (aggregation("mode", c, schema=SCHEMA, name=f"mode_{c}"), _mode(c))
    for c in ("v", "n", "s", "b", "p", "e")
}
CASES["w"] = (aggregation("mode", "n", schema=SCHEMA, name="mw", where="w"), _mode("n", "w"))


@pytest.mark.parametrize("keys", [("g",), ()])
@given(histories(rows()))
def test_histories(keys: tuple[str, ...], history: list[list[Any]]) -> None:
    check(history, CASES, keys)

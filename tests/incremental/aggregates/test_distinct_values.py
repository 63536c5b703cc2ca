"""Aggregates of DISTINCT values."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.incremental.aggregates.registry import aggregation

from .histories import SCHEMA, SPECIAL_DOUBLES, check, comparable, fsum, histories, rows, values
from .test_moments import oracle as moment


def _one(x: Any) -> Any:
    """A value with one zero and one NaN."""
    return comparable(x + 0.0 if isinstance(x, float) else x)


def _distinct(some: list[Any]) -> list[Any]:
    return list({_one(x): x for x in some}.values())


def of(function: str, *columns: str, name: str, **more: Any) -> Any:
    return aggregation(function, columns, schema=SCHEMA, name=name, distinct=True, **more)


def _sum(column: str) -> Any:
    return lambda x: sum(set(values(x, column))) if values(x, column) else None


CASES: dict[str, Any] = {
    "cv": (of("count", "v", name="cv"), lambda x: len(set(values(x, "v")))),
    "cs": (of("count", "s", name="cs"), lambda x: len(set(values(x, "s")))),
    "cd": (of("count", "d", name="cd"), lambda x: len(_distinct(values(x, "d")))),
    "cvs": (
        of("count", "n", "s", name="cvs"),
        lambda x: len({(r["n"], r["s"]) for r in x if r["s"] is not None}),
    ),
    "cg": (of("count", "g", name="cg"), lambda x: len(set(values(x, "g")))),
    "cw": (of("count", "n", name="cw", where="w"), lambda x: len({r["n"] for r in x if r["w"]})),
    "approx": (
        aggregation("approx_count_distinct", "v", schema=SCHEMA, name="approx"),
        lambda x: len(set(values(x, "v"))),
    ),
    "sn": (of("sum", "n", name="sn"), _sum("n")),
    "an": (of("avg", "n", name="an"), lambda x: sum(s := set(values(x, "n"))) / len(s) if x else None),
    "sd": (
        of("sum", "d", name="sd"),
        lambda x: fsum(_distinct(values(x, "d"))) if values(x, "d") else None,
    ),
    "var": (of("var_pop", "n", name="var"), lambda x: moment("var_pop", "n")([{"n": v} for v in set(values(x, "n"))])),
    "all": (aggregation("sum", "n", schema=SCHEMA, name="all"), lambda x: sum(values(x, "n")) if x else None),
    "min": (of("min", "s", name="min"), lambda x: min(values(x, "s"), key=str.encode, default=None)),
}


@pytest.mark.parametrize("keys", [("g",), (), ("k",)])
@given(histories(rows(d=st.one_of(st.none(), SPECIAL_DOUBLES, st.just(math.nan))), steps=5))
def test_histories(keys: tuple[str, ...], history: list[list[Any]]) -> None:
    check(history, CASES, keys)

"""collect_list, collect_set, listagg, and functions of one's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given

from headwater.base.errors import ExpressionError
from headwater.incremental.aggregates.general import UserGeneral
from headwater.incremental.aggregates.registry import aggregation
from headwater.incremental.aggregates.user import UserLinear
from headwater.incremental.layout import Order

from .histories import SCHEMA, Checked, Row, check, fsum, histories, rows, values
from .test_extremes import Backwards, rank


def _listed(
    column: str, by: tuple[Order, ...] = (), distinct: bool = False, where: str | None = None
) -> Callable[[list[Row]], list[Any]]:
    def key(r: Row) -> Any:
        found = []
        for o in by:
            null = (r[o.column] is not None) if o.nulls_first else (r[o.column] is None)
            x = rank(r[o.column])[1:]
            found.append((null, Backwards(x) if o.descending else x))
        return (*found, rank(r[column]))

    def oracle(some: list[Row]) -> list[Any]:
        kept = sorted((r for r in some if r[column] is not None and (where is None or r[where])), key=key)
        found = [r[column] for r in kept]
        return list(dict.fromkeys(found)) if distinct else found

    return oracle


def _joined(made: Callable[[list[Row]], list[Any]], separator: str) -> Callable[[list[Row]], str | None]:
    return lambda x: separator.join(made(x)) if made(x) else None


_T = (Order("t", descending=True),)
CASES: dict[str, Any] = {
    "ln": (aggregation("collect_list", "n", schema=SCHEMA, name="ln"), _listed("n")),
    "lv": (aggregation("array_agg", "v", schema=SCHEMA, name="lv", order=_T), _listed("v", _T)),
    "ls": (aggregation("array_agg", "s", schema=SCHEMA, name="ls", where="w"), _listed("s", where="w")),
    "lp": (aggregation("array_agg", "p", schema=SCHEMA, name="lp"), _listed("p")),
    "sn": (aggregation("collect_set", "n", schema=SCHEMA, name="sn"), _listed("n", distinct=True)),
    "ss": (aggregation("collect_set", "s", schema=SCHEMA, name="ss"), _listed("s", distinct=True)),
    "j": (aggregation("listagg", "s", schema=SCHEMA, name="j", separator="|"), _joined(_listed("s"), "|")),
    "jt": (
        aggregation("string_agg", "s", schema=SCHEMA, name="jt", separator=", ", order=_T),
        _joined(_listed("s", _T), ", "),
    ),
    "jd": (
        aggregation("listagg", "s", schema=SCHEMA, name="jd", separator="-", distinct=True),
        _joined(_listed("s", distinct=True), "-"),
    ),
    "pp": (
        aggregation("percentile", "n", schema=SCHEMA, name="pp", share=[0.0, 1.0]),
        lambda x: [float(min(values(x, "n"))), float(max(values(x, "n")))] if x else None,
    ),
}


@pytest.mark.parametrize("keys", [("g",), (), ("h", "k")])
@given(histories(rows(), steps=5))
def test_histories(keys: tuple[str, ...], history: list[list[Any]]) -> None:
    check(history, CASES, keys)


def _range(table: pa.Table) -> str:
    column = table["n"]
    return f"{pc.min(column)}..{pc.max(column)} of {table.num_rows}: {table['s'].null_count}"


def _sizes(table: pa.Table, offsets: np.ndarray[Any, Any]) -> pa.Array:
    assert table.column_names == ["n", "s"]
    return pa.array(np.diff(offsets))


def _weighted(table: pa.Table) -> list[pa.Array]:
    n = table["n"].combine_chunks()
    halves = pc.multiply(n.cast(pa.float64()), 0.1)
    return [pc.multiply(n, 2).cast(pa.int64()), halves]


OWN: dict[str, Any] = {
    "range": (
        UserGeneral("range", ("n", "s"), pa.string(), _range),
        lambda x: (
            f"{min(r['n'] for r in x)}..{max(r['n'] for r in x)} of {len(x)}: {len(x) - len(values(x, 's'))}"
            if x
            else None
        ),
    ),
    "sizes": (UserGeneral("sizes", ("n", "s"), pa.int64(), _sizes, vectorised=True), len),
    "distinct": (
        UserGeneral("distinct", ("n", "s"), pa.int64(), _sizes, vectorised=True, distinct=True),
        lambda x: len({(r["n"], r["s"]) for r in x}),
    ),
    "linear": (
        UserLinear(
            "linear",
            ("n",),
            (pa.int64(), pa.float64()),
            pa.float64(),
            _weighted,
            lambda sums, count: pa.array(sums[0] + sums[1] + count, pa.float64()),
        ),
        lambda x: float(sum(2 * r["n"] for r in x)) + fsum([r["n"] * 0.1 for r in x]) + len(x),
    ),
    "text": (
        UserLinear(
            "text",
            ("n",),
            (pa.int64(),),
            pa.string(),
            lambda t: [t["n"].combine_chunks().cast(pa.int64())],
            lambda sums, count: pa.array([f"the sum of the numbers is {s}" for s in sums[0].tolist()]),
            where="w",
        ),
        lambda x: f"the sum of the numbers is {sum(r['n'] for r in x if r['w'])}",
    ),
}


@pytest.mark.parametrize("keys", [("g",), ()])
@given(histories(rows(), steps=5))
def test_functions_of_ones_own(keys: tuple[str, ...], history: list[list[Any]]) -> None:
    check(history, OWN, keys)


def _failing(table: pa.Table) -> int:
    raise ValueError("no such luck")


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (UserGeneral("x", ("n",), pa.int64(), _failing), "no such luck"),
        (UserGeneral("x", ("n",), pa.int64(), lambda t, o: pa.array([1.5]), vectorised=True), "has to give"),
        (
            UserLinear("x", ("n",), (pa.int64(),), pa.int64(), lambda t: [], lambda s, c: pa.array(c)),
            "its map has to give 1 arrays",
        ),
        (
            UserLinear(
                "x", ("v",), (pa.int64(),), pa.int64(), lambda t: [t["v"].combine_chunks()], lambda s, c: pa.array(c)
            ),
            "gives nulls",
        ),
        (
            UserLinear("x", ("n",), (pa.int64(),), pa.int64(), lambda t: [t["n"].combine_chunks()], lambda s, c: None),
            "has to give",
        ),
    ],
)
def test_a_function_that_fails_stops_the_step(made: Any, why: str) -> None:
    checked = Checked(["g"], [made], {})
    with pytest.raises(ExpressionError, match=why) as caught:
        checked.step([("insert", {**dict.fromkeys(SCHEMA.names), "n": 1}, 1)])
    assert caught.value.code == "E1303"
    checked.node.rollback()

"""count, sum and avg of whole numbers and of truth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given

from headwater.base.errors import ExpressionError, HeadwaterError
from headwater.incremental.aggregates.registry import aggregation

from .histories import SCHEMA, Checked, Row, apply_changes, check, histories, rows, values, zset_of

Case = tuple[Any, Callable[[list[Row]], Any]]


def average(some: list[Any]) -> float | None:
    return float(sum(some)) / len(some) if some else None


def of(function: str, *columns: str, **more: Any) -> Any:
    return aggregation(function, columns, schema=SCHEMA, name=more.pop("name", function), **more)


CASES: dict[str, Case] = {
    "n": (of("count", name="n_"), len),
    "nv": (of("count", "v", name="nv"), lambda x: len(values(x, "v"))),
    "nvs": (of("count", "v", "s", name="nvs"), lambda x: sum(r["v"] is not None and r["s"] is not None for r in x)),
    "s": (of("sum", "v", name="s"), lambda x: sum(values(x, "v")) if values(x, "v") else None),
    "si": (of("sum", "i", name="si"), lambda x: sum(values(x, "i")) if values(x, "i") else None),
    "sn": (of("sum", "n", name="sn"), lambda x: sum(values(x, "n")) if x else None),
    "a": (of("avg", "v", name="a"), lambda x: average(values(x, "v"))),
    "an": (of("mean", "n", name="an"), lambda x: average(values(x, "n"))),
    "ci": (of("count_if", "b", name="ci"), lambda x: sum(r["b"] is True for r in x)),
    "every": (of("every", "b", name="every"), lambda x: all(values(x, "b")) if values(x, "b") else None),
    "some": (of("some", "b", name="some"), lambda x: any(values(x, "b")) if values(x, "b") else None),
    "nw": (of("count", name="nw", where="w"), lambda x: sum(r["w"] is True for r in x)),
    "sw": (
        of("sum", "n", name="sw", where="w"),
        lambda x: sum(r["n"] for r in x if r["w"]) if any(r["w"] for r in x) else None,
    ),
    "cw": (of("count_if", "b", name="cw", where="w"), lambda x: sum(r["b"] is True and r["w"] is True for r in x)),
}


@given(histories(rows()))
@pytest.mark.parametrize("keys", [("g",), (), ("h",), ("g", "h", "k")])
def test_histories(keys: tuple[str, ...], history: list[list[Any]]) -> None:
    check(history, CASES, keys)


def _fits(x: list[Row]) -> int | None:
    found = sum(values(x, "v"))
    return found if values(x, "v") and -(1 << 63) <= found < 1 << 63 else None


def test_try_sum_gives_null_where_it_does_not_fit() -> None:
    big = {"g": 1, "v": (1 << 62) + 1, "n": 0}
    checked = check([], {"t": (of("try_sum", "v"), _fits)})
    for changes in ([("insert", big, 1)], [("insert", big, 1)], [("insert", big, 2)], [("delete", 0)] * 3):
        checked.step(changes)


def test_a_sum_that_does_not_fit_stops_the_step_and_leaves_the_state() -> None:
    checked = Checked(["g"], [CASES["s"][0]], {"s": CASES["s"][1]})
    big = {**dict.fromkeys(SCHEMA.names), "g": 1, "v": (1 << 62) + 1, "n": 0}
    checked.step([("insert", big, 1)])
    live = list(checked.live)
    delta = apply_changes(checked.live, [("insert", big, 1)], ["g"])
    with pytest.raises(ExpressionError, match=r"sum\(v\)") as caught:
        checked.node.step([zset_of(checked.source.layout, delta)])
    assert caught.value.code == "E1303"
    checked.node.rollback()
    checked.live = live
    checked.step([("insert", {**big, "v": -5}, 1)])
    checked.step([("insert", {**big, "v": (1 << 62) - 1}, 1), ("delete", 0)])


def test_a_sum_may_be_too_large_in_between() -> None:
    big = {**dict.fromkeys(SCHEMA.names), "g": 1, "v": (1 << 62) + 1, "n": 0}
    check([[("insert", big, 3), ("insert", {**big, "v": -(1 << 62)}, 2)]], {"s": CASES["s"]})


def test_weights_that_are_too_large_are_refused() -> None:
    checked = Checked(["g"], [CASES["s"][0]], {"s": CASES["s"][1]})
    row = {**dict.fromkeys(SCHEMA.names), "g": 1, "v": 1, "n": 0}
    with pytest.raises(HeadwaterError, match="weight"):
        checked.node.step([zset_of(checked.source.layout, [(row, 1 << 40)])])
    checked.node.rollback()
    checked.step([("insert", row, 1)])


def test_without_keys_there_is_a_row_of_no_rows() -> None:
    checked = Checked([], [CASES["n"][0], CASES["s"][0]], {"n": len, "s": CASES["s"][1]})
    restless = [checked.node.restless]
    checked.step([])
    assert [*restless, checked.node.restless] == [True, False]
    row = {**dict.fromkeys(SCHEMA.names), "v": 3, "n": 0}
    checked.step([("insert", row, 2)])
    checked.step([("clear", 0)])
    checked.step([])
    assert list(checked.out) == [(0, None)]


def test_more_columns_than_a_word_has_bits() -> None:
    many = {f"m{k}": (of("sum", "v", name=f"m{k}"), CASES["s"][1]) for k in range(70)}
    row = {**dict.fromkeys(SCHEMA.names), "g": 7, "h": "a text of more than 12", "v": 3, "n": 0}
    history: list[list[Any]] = [
        [("insert", row, 2), ("insert", {**row, "g": None, "v": None}, 1)],
        [("delete", 0)],
        [("clear", 0)],
    ]
    check(history, many, ("g", "h"))


def test_what_an_aggregate_says_of_itself() -> None:
    made = [
        of("count", name="count(*)"),
        of("avg", "v", name="a", where="w"),
        of("count", "v", name="c", distinct=True),
        of("max", "v", name="max(v)"),
        of("every", "b", name="e"),
    ]
    assert [a.detail for a in made] == [
        "count(*)",
        "avg(v) FILTER (WHERE w) AS a",
        "count(DISTINCT v) AS c",
        "max(v)",
        "bool_and(b) AS e",
    ]

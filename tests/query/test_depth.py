"""A query nests as deep as programs write them; what is nested deeper is refused with a code, in queries and in views."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import headwater as hw
from headwater.base.errors import ExpressionError

SHAPES = {
    "calls": lambda n: "SELECT " + "upper(" * n + "s" + ")" * n + " AS x FROM t",
    "cases": lambda n: "SELECT " + "CASE WHEN i = 1 THEN " * n + "'A'" + " END" * n + " AS x FROM t",
    "parentheses": lambda n: "SELECT " + "(" * n + "upper(s)" + ")" * n + " AS x FROM t",
    "subqueries": lambda n: "SELECT upper(s) AS x FROM (" + "SELECT * FROM (" * n + "SELECT * FROM t" + ")" * n + ")",
}


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> hw.Lake:
    lake = hw.connect(str(tmp_path_factory.mktemp("deep")))
    lake.write("t", [{"s": "a", "i": 1}])
    return lake


@pytest.mark.parametrize("shape", SHAPES)
def test_a_hundred_levels_are_read(lake: hw.Lake, shape: str) -> None:
    text = SHAPES[shape](100)
    assert lake.sql(text).to_pylist() == [{"x": "A"}]
    view = lake.view(f"of_{shape}", text, refresh=True)
    assert view.to_pylist() == [{"x": "A"}]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("levels", [500, 3_000])
def test_what_is_deeper_is_refused(lake: hw.Lake, shape: str, levels: int) -> None:
    text = SHAPES[shape](levels)
    for ask in (lambda: lake.sql(text).to_arrow(), lambda: lake.view("deeper", text)):
        try:
            ask()
        except ExpressionError as error:
            assert error.code == "E1305" and "nested this deep" in str(error)
        else:
            assert levels == 500, "no thread's stack has room for it"


def test_a_view_of_a_long_sum_is_defined_at_once(lake: hw.Lake, tmp_path: Path) -> None:
    """Its text is written once a level: twice would be 2^60 times at the bottom."""
    begin = time.process_time()
    view = lake.view("long_sum", "SELECT " + "i + " * 60 + "i AS x FROM t", refresh=True)
    assert view.to_pylist() == [{"x": 61}]
    assert time.process_time() - begin < 30

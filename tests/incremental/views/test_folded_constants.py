"""What is constant is judged when a view is defined, whether it is one literal or several put together.

The calls are those that hold the catalogue against Spark, of every function. Each text and whole number that is an argument of a call is written as a
call of constants: the function then has to be read as with the literal itself, or be refused. Both happen before a row is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest
from tests.sql import conftest

from headwater.base.errors import HeadwaterError
from headwater.sql.expressions import parse
from headwater.sql.functions.catalogue import AGGREGATES, FUNCTIONS
from headwater.sql.query import parse_query
from headwater.sql.tokens import tokenize

from .selections import merged, select
from .test_every_function import _FAMILIES, _QUERIES, _TABLES, _family

extremes = conftest.extremes


def _folded(text: str) -> Iterator[tuple[str, str]]:
    """The text with one constant argument of a function written as a call, and the name of the function."""
    tokens = list(tokenize(text))
    calls: list[str] = []
    for i, token in enumerate(tokens):
        if token.text == "(":
            before = tokens[i - 1].text.lower() if i else ""
            calls.append(before if before in FUNCTIONS or before in AGGREGATES else "")
        elif token.text == ")":
            calls.pop()
        elif calls and calls[-1] and tokens[i - 1].text in "(," and tokens[i + 1].text in "),":
            if token.text[0] == "'":
                yield calls[-1], f"{text[: token.start]}concat({token.text}, ''){text[token.end :]}"
            elif token.text.isdigit():
                yield calls[-1], f"{text[: token.start]}greatest({token.text}, 0){text[token.end :]}"


def _judged(read: Callable[[str], object], lines: list[str]) -> tuple[list[str], set[str]]:
    """The lines that are read otherwise than with a literal, and the functions that were asked about."""
    wrong, names = [], set()
    for line in dict.fromkeys(lines):
        for name, varied in _folded(line):
            names.add(name)
            try:
                found = read(varied)
            except HeadwaterError:
                continue
            if found != read(line):
                wrong.append(varied)
    return wrong, names


@pytest.mark.long
@pytest.mark.parametrize("name", [f for f in _FAMILIES if f != "extremes"])
def test_scalar_functions(name: str, extremes: pa.Table) -> None:
    table, lines = _family(name, extremes)
    wrong, names = _judged(lambda text: parse(text, schema=table.schema).node, lines)
    assert wrong == []
    assert names or name in ("intervals", "patterns")


@pytest.mark.long
def test_aggregates_and_windows() -> None:
    schemas = {n: t.schema for n, t in _TABLES["of many rows"].items()}
    lines = [select([item], rest) for (_, rest), items in merged(_QUERIES["of many rows"])[0].items() for item in items]
    wrong, names = _judged(lambda text: parse_query(text, lambda name, *_: schemas[name]).dump(), lines)
    assert wrong == []
    assert {"percentile", "nth_value", "ntile", "lag", "listagg", "approx_percentile"} <= names

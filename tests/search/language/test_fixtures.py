"""Queries become the trees they should, and bad ones say what is wrong, where, and what to write instead.

``fixtures/queries.txt`` has queries with their trees, ``bad_queries.txt`` bad ones with what is said of them;
``HEADWATER_UPDATE_GOLDEN=1 pytest tests/search/language/test_fixtures.py`` rewrites what stands below each query.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Literal

import pytest
from tests.search.language.sexpr import shown

from headwater.base.errors import SearchQueryError
from headwater.search.language import leaves, parse, parse_leniently, render

FIXTURES = Path(__file__).parent / "fixtures"
UPDATE = os.environ.get("HEADWATER_UPDATE_GOLDEN") == "1"
INDENT = "    "


def _lines(name: str) -> list[str]:
    return (FIXTURES / name).read_text(encoding="utf-8").removesuffix("\n").split("\n")


def _queries(name: str) -> list[str]:
    return [line for line in _lines(name) if line and not line.startswith(("#", INDENT))]


def _split(line: str) -> tuple[str, Literal["and", "or"]]:
    return (line.removeprefix("and: "), "and") if line.startswith("and: ") else (line, "or")


def _explained(query: str) -> list[str]:
    with pytest.raises(SearchQueryError) as caught:
        parse(query)
    error = caught.value
    node, ignored = parse_leniently(query)
    assert ignored and error.hint and error.code == "E1801"
    left_out = [f"ignored {one.text!r} at {one.at}" for one in ignored]
    return [*str(error).split("\n"), f"leniently: {render(node)}", *left_out]


def _check(name: str, below: dict[str, list[str]]) -> None:
    lines: list[str] = []
    for line in _lines(name):
        if not line.startswith(INDENT):
            lines.append(line)
            lines += [INDENT + one for one in below.get(line, [])]
    text = "\n".join(lines) + "\n"
    path = FIXTURES / name
    if UPDATE:
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text


def _tree(line: str) -> str:
    query, default = _split(line)
    return shown(parse(query, default=default))


def test_queries_become_trees() -> None:
    _check("queries.txt", {line: [_tree(line)] for line in _queries("queries.txt")})


def test_bad_queries_are_explained() -> None:
    _check("bad_queries.txt", {line: _explained(line) for line in _queries("bad_queries.txt")})


@pytest.mark.parametrize("line", _queries("queries.txt"))
def test_a_query_is_read_the_same_leniently_and_after_rendering(line: str) -> None:
    query, default = _split(line)
    node = parse(query, default=default)
    assert parse_leniently(query, default=default) == (node, ())
    assert parse(render(node)) == node
    assert parse(render(node, default="and"), default="and") == node


@pytest.mark.parametrize("line", _queries("queries.txt"))
def test_leaves_begin_where_they_say(line: str) -> None:
    query, default = _split(line)
    places = [leaf.at for leaf in leaves(parse(query, default=default))]
    assert len(set(places)) == len(places)
    for at in places:
        # A leaf begins a clause: before it stands the beginning, a blank, a parenthesis, a mark, or the end of another.
        assert at == 0 or re.match(r'[\s()+\-!"&|:]', query[at - 1]), query[at:]
        assert not query[at].isspace()


@pytest.mark.parametrize("line", _queries("bad_queries.txt"))
def test_hints_show_what_can_be_read(line: str) -> None:
    with pytest.raises(SearchQueryError) as caught:
        parse(line)
    assert caught.value.hint is not None
    examples = re.findall(r"`([^`]+)`", caught.value.hint)
    for example in examples:
        if example not in ("[", "{", "(", ")", "~", "*", "^"):  # a character that is spoken of
            parse(example)

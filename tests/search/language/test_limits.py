"""A query may be long, deep and wide up to limits, which are typed errors; and reading takes linear time up to them."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable

import pytest

from headwater.base.errors import InputError, SearchQueryError
from headwater.search.language import (
    MAX_CLAUSES,
    MAX_DEPTH,
    MAX_LENGTH,
    Ignored,
    Node,
    Not,
    Or,
    Term,
    leaves,
    parse,
    parse_leniently,
    render,
)
from headwater.search.language.tree import children


def _height(node: Node) -> int:
    height, level = 0, [node]
    while level:
        height, level = height + 1, [child for one in level for child in children(one)]
    return height


def _refused(text: str, code: str) -> SearchQueryError:
    with pytest.raises(SearchQueryError) as caught:
        parse(text)
    assert caught.value.code == code and caught.value.hint
    return caught.value


def test_length() -> None:
    longest = "a" * MAX_LENGTH
    assert parse(longest) == Term(None, longest)
    _refused(longest + "b", "E1802")
    node, (left_out,) = parse_leniently(longest + "bc")
    assert node == Term(None, longest)
    assert (left_out.at, left_out.text) == (MAX_LENGTH, "bc")


def test_clauses() -> None:
    most = "a " * MAX_CLAUSES
    assert len(list(leaves(parse(most)))) == MAX_CLAUSES
    error = _refused(f"{most}(b c)", "E1804")
    assert error.position == len(most) + 1
    node, ignored = parse_leniently(f"{most}b c")
    assert node == parse(most)
    assert [one.text for one in ignored] == ["b c"]


def test_values_of_a_list_are_not_clauses() -> None:
    (leaf,) = leaves(parse(f"f: IN [{'a ' * 30_000}]"))
    assert len(leaf.values) == 30_000  # type: ignore[union-attr]


NESTINGS: list[Callable[[int], str]] = [
    lambda n: "NOT " * n + "a",
    lambda n: "(x OR " * n + "a" + ")" * n,
    lambda n: "-(" * n + "a" + ")" * n,
    lambda n: "(" * n + "a" + ")^2" * n,
    lambda n: "f:(+x " * n + "a" + ")" * n,
    lambda n: "x AND (" * n + "a" + ")" * n,
    lambda n: "x OR y AND -(" * n + "a" + ")^2" * n,
]


@pytest.mark.parametrize("nested", NESTINGS)
def test_depth(nested: Callable[[int], str]) -> None:
    one, two = (_height(parse(nested(n))) for n in (1, 2))
    deepest = 1 + (MAX_DEPTH - one) // (two - one)
    assert _height(parse(nested(deepest))) == one + (deepest - 1) * (two - one)
    _refused(nested(deepest + 1), "E1803")
    _refused(nested(3_000), "E1803")
    node, ignored = parse_leniently(nested(3_000))
    assert _height(node) <= MAX_DEPTH
    assert any(str(MAX_DEPTH) in one.reason for one in ignored)
    assert parse(render(node)) == node


def test_parentheses_that_change_nothing_are_not_depth() -> None:
    assert parse("(" * 20_000 + "a" + ")" * 20_000) == Term(None, "a")


def test_no_query_exhausts_the_stack() -> None:
    # In a thread whose stack is almost used up, as deep inside an application.
    answers: list[Node] = []

    def descend(frames: int) -> None:
        if frames:
            descend(frames - 1)
        else:
            answers.append(parse("(x OR " * 49 + "a" + ")" * 49))
            answers.append(parse("NOT " * 99 + "a"))

    thread = threading.Thread(target=descend, args=(sys.getrecursionlimit() - 80,))
    thread.start()
    thread.join()
    assert len(answers) == 2


ADVERSARIES = [
    "a",
    "a ",
    '"',
    '"a ',
    "'a ",
    "'",
    "/a ",
    "/",
    "a`b ",
    "`",
    "x` ",
    "`a``",
    "a`(`` ",
    "\\",
    "a\\ ",
    '\\" "',
    "(",
    ")",
    "()",
    "(a",
    "a)",
    "f:(",
    "-(",
    "NOT ",
    "AND ",
    "a AND ",
    "a OR NOT ",
    "+a OR ",
    "&&",
    "&|",
    "[",
    "[a ",
    "[a TO ",
    '["a',
    "[a TO b",
    "]",
    "f:[",
    "IN [",
    "IN [a ",
    "IN ['",
    'IN ["a ',
    ",",
    "f:",
    "f:a:",
    ":",
    "::",
    "a:b:(",
    "*",
    "*a",
    "?*",
    "*:",
    "~",
    "a~1",
    'a~\\"',
    "~1*^2",
    "^",
    "a^2",
    "^1",
    "-",
    "- ",
    "+-!",
    "f:-",
    ">",
    "f:>",
    "f:> ",
    "_exists_:",
    "_exists_:`",
    " ",
    "\n",
    "\u3000",
    "\ud800",
    "\0",
    "9",
]


FRAMED = [
    *(("", piece) for piece in ADVERSARIES),
    *(("f:", piece) for piece in ("(", "a:", "-", ">", "[", '"', "'", "/a ", "`")),
    *((head, piece) for head in ("a^", "a~", '"a"~', "(a)") for piece in ("9", "^1", "~1", "*", "a~")),
]


@pytest.mark.long
@pytest.mark.parametrize(("head", "piece"), FRAMED)
def test_reading_takes_linear_time(head: str, piece: str) -> None:
    text = (head + piece * MAX_LENGTH)[:MAX_LENGTH]
    before = time.process_time()
    node, ignored = parse_leniently(text)
    with contextlib.suppress(SearchQueryError):
        parse(text)
    rendered = render(node)
    # The slowest of them takes about 0.5 s of CPU time; quadratic ones took 17 s and more.
    assert time.process_time() - before < 5
    assert len(rendered) <= 8 * MAX_LENGTH
    assert sum(len(one.text) for one in ignored) <= MAX_LENGTH


def test_arguments_are_checked() -> None:
    with pytest.raises(InputError, match="default"):
        parse("a", default="xor")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="query"):
        parse_leniently(None)  # type: ignore[arg-type]


def test_an_empty_query_is_refused_and_leniently_finds_nothing() -> None:
    for text in ("", "  \n"):
        _refused(text, "E1801")
        assert render(parse_leniently(text)[0]) == "NOT *"
    assert parse_leniently("()") == (parse("NOT *"), (Ignored(0, "()", "the parentheses are empty"),))


def test_trees_state_their_invariants() -> None:
    for broken in (
        lambda: Or((Term(None, "a"),)),
        lambda: Term(None, ""),
        lambda: Term("a\\", "b"),
        lambda: Term("", "b"),
    ):
        with pytest.raises(AssertionError):
            broken()
    assert Not(Term(None, "a", at=3)) == Not(Term(None, "a", at=4)), "where a leaf began is no part of what it asks"

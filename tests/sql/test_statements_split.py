"""Cutting a script: never inside quotes, backticks or comments, and nothing is lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.errors import ExpressionError
from headwater.sql.statements import split
from headwater.sql.tokens import tokenize, without_comments
from headwater.testing import HOSTILE_TEXTS

_ANY = st.one_of(st.sampled_from([t for t in HOSTILE_TEXTS if len(t) < 100]), st.text(max_size=12))


def _single(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _doubled(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def _double(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _raw(text: str) -> str:
    return "r'" + text.replace("'", "").replace("\\", "/") + "'"


def _name(text: str) -> str:
    return "`" + text.replace("`", "``") + "`"


def _line_comment(text: str) -> str:
    return "--" + text.replace("\n", " ") + "\n"


def _block_comment(text: str) -> str:
    return "/*" + text.replace("/", "").replace("*", "") + "*/"


_QUOTED = st.builds(lambda quote, text: quote(text), st.sampled_from([_single, _doubled, _double, _raw, _name]), _ANY)
_COMMENTS = st.builds(lambda mark, text: mark(text), st.sampled_from([_line_comment, _block_comment]), _ANY)
_WORDS = st.sampled_from(["SELECT", "a", "1.5", ":p", "?", "(", ")", "x", "-", "/", "<=", "END", "struct", "ä"])
_GAPS = st.lists(st.one_of(_COMMENTS, st.sampled_from([" ", "\n", "\t", "  "])), max_size=3).map("".join)


@st.composite
def _statements(draw: st.DrawFn) -> str:
    """Something with quotes and comments inside that begins and ends with a word."""
    atoms = draw(st.lists(st.one_of(_QUOTED, _WORDS), min_size=1, max_size=6))
    text = atoms[0]
    for atom in atoms[1:]:
        text += " " + draw(_GAPS) + " " + atom
    return text


@given(st.lists(_statements(), max_size=5), st.data())
def test_a_script_is_cut_where_it_was_joined(statements: list[str], data: st.DataObject) -> None:
    script, places = data.draw(_GAPS), []
    for statement in statements:
        places.append(len(script))
        script += statement + " " + data.draw(_GAPS) + ";" + data.draw(_GAPS)
    assert split(script) == list(zip(statements, places, strict=True))


@given(st.text(alphabet="ab'\"`;-/*\\ \n:?(.", max_size=40))
def test_the_parts_and_what_lies_between_them_are_the_script(script: str) -> None:
    try:
        parts = split(script)
    except ExpressionError as error:
        assert error.code == "E1306" and error.position is not None
        return
    at = 0
    for text, offset in parts:
        assert script[offset : offset + len(text)] == text
        assert set(without_comments(script[at:offset])) <= set(" \n;")
        assert text == text.strip() and text
        at = offset + len(text)
    assert set(without_comments(script[at:])) <= set(" \n;")


@given(st.text(alphabet="ab1'\"`;-/*\\ \n:?(.<>rX", max_size=40))
def test_tokens_are_in_order_and_keep_their_text(text: str) -> None:
    try:
        tokens = list(tokenize(text))
    except ExpressionError:
        return
    at = 0
    for token in tokens:
        assert at <= token.start < token.end
        at = token.end
    plain = without_comments(text)
    assert len(plain) == len(text)
    assert [(t.kind, t.start, t.text) for t in tokenize(plain)] == [(t.kind, t.start, t.text) for t in tokens]


@pytest.mark.parametrize("text", HOSTILE_TEXTS)
def test_a_quoted_text_is_one_token_and_means_itself(text: str) -> None:
    for quote in (_single, _doubled, _double):
        (token,) = tokenize(quote(text))
        assert (token.kind, token.value) == ("text", text)
    (token,) = tokenize(_name(text))
    assert (token.kind, token.value) == ("name", text)

"""Fragments: positions lead back into the whole, and parameters are constants, however hostile."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.errors import ExpressionError, NotFoundError
from headwater.sql.expressions import evaluate, parse, parse_condition
from headwater.sql.fragment import Fragment, joined, spelled
from headwater.testing import HOSTILE_TEXTS

_SCHEMA = pa.schema([("a", pa.int32()), ("s", pa.string())])
_WHOLE = "DELETE FROM t\nWHERE a = 1 AND b > 2"


def _piece(text: str) -> Fragment:
    return Fragment(text, whole=_WHOLE, offset=_WHOLE.index(text))


@pytest.mark.parametrize(
    ("text", "kind", "line"),
    [
        ("b > 2", NotFoundError, "line 2: WHERE a = 1 AND b > 2\n" + " " * (9 + 8 + 16) + "^"),
        ("a = 1 AND b > 2", NotFoundError, "line 2: WHERE a = 1 AND b > 2\n" + " " * (9 + 8 + 16) + "^"),
        ("1", ExpressionError, "line 2: WHERE a = 1 AND b > 2\n" + " " * (9 + 8 + 10) + "^"),
    ],
)
def test_errors_point_into_the_whole(text: str, kind: type[Exception], line: str) -> None:
    with pytest.raises(kind) as caught:
        parse_condition(_piece(text), schema=_SCHEMA)
    assert caught.value.where == line  # type: ignore[attr-defined]


@given(st.lists(st.tuples(st.text("xyz", max_size=5), st.integers(0, 4), st.integers(0, 6)), max_size=5))
def test_every_character_of_a_joined_text_knows_its_place(pieces: list[tuple[str, int, int]]) -> None:
    whole = "0123456789abcdef"
    parts: list[str | Fragment] = []
    expected: list[tuple[int, str]] = []
    at = 0
    for glue, start, length in pieces:
        own = whole[start : start + length]
        parts += [glue, Fragment(own, whole=whole, offset=start)]
        expected += [(at + len(glue) + i, c) for i, c in enumerate(own)]
        at += len(glue) + len(own)
    made = joined(*parts)
    for position, character in expected:
        assert whole[made.place(position)] == character
    # One that was joined before is a piece like any other.
    again = joined("((", made, "))")
    for position, character in expected:
        assert whole[again.place(position + 2)] == character


def test_joined_pieces_bring_their_parameters_in_order() -> None:
    made = joined("SELECT ", Fragment("?", [1]), ", ", Fragment("? + ?", [2, 3]))
    assert (made.text, list(made.parameters)) == ("SELECT ?, ? + ?", [1, 2, 3])
    named = joined(Fragment(":a", {"a": 1}), Fragment(":b + :a", {"a": 1, "b": 2}))
    assert named.parameters == {"a": 1, "b": 2}


_VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.decimals(min_value=-(10**15), max_value=10**15, places=4),
    st.text(),
    st.sampled_from(HOSTILE_TEXTS),
    st.binary(max_size=20),
    st.dates(min_value=date(1, 1, 1)),
    st.datetimes(min_value=datetime(1, 1, 1), timezones=st.just(UTC)),
)


@given(_VALUES)
def test_a_parameter_is_the_constant_it_is_given(value: object) -> None:
    one = pa.table({"a": pa.array([1], pa.int32())})
    found = evaluate(parse(Fragment(":v", {"v": value}), schema=one.schema), one)[0].as_py()
    again = evaluate(parse(Fragment("?", [value]), schema=one.schema), one)[0].as_py()
    assert found == value == again
    assert type(found) is type(value) or isinstance(value, datetime)


@given(st.one_of(st.none(), st.booleans(), st.integers(-(2**31), 2**31 - 1), st.text(), st.sampled_from(HOSTILE_TEXTS)))
def test_what_a_history_says_means_the_same(value: object) -> None:
    """Spelled out, a parameter is the constant it was: no text can end its own quotes."""
    piece = Fragment("coalesce(:v, :v)", {"v": value})
    one = pa.table({"a": pa.array([1], pa.int32())})
    written = parse(piece.spelled(), schema=one.schema)
    assert evaluate(written, one)[0].as_py() == value


def test_what_a_history_says() -> None:
    at = datetime(2024, 1, 31, 12, tzinfo=UTC)
    values = {"t": "it's", "n": None, "b": True, "f": 0.5, "d": Decimal("1.50"), "x": b"\x00", "y": at, "z": at.date()}
    text = " ".join(f":{k}" for k in values)
    assert Fragment(text, values).spelled() == (
        "'it\\'s' NULL TRUE CAST('0.5' AS DOUBLE) 1.50 X'00' TIMESTAMP'2024-01-31 12:00:00+00:00' DATE'2024-01-31'"
    )
    assert spelled(Fragment("':t' = `:t` -- :t\n AND a = :t", {"t": 1})) == "':t' = `:t` -- :t\n AND a = 1"


def test_a_parameter_without_a_value_is_refused() -> None:
    for text in (":v", "?"):
        with pytest.raises(ExpressionError):
            parse(text, schema=_SCHEMA)

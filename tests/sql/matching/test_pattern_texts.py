"""The text of a row pattern, and what is wrong with one."""

from __future__ import annotations

import pyarrow as pa
import pytest

from headwater.base.errors import ExpressionError, HeadwaterError
from headwater.sql.query import parse_query
from headwater.sql.row_patterns import parse_pattern, spelled
from headwater.sql.row_patterns.automaton import LONGEST, automaton_of

SCHEMA = pa.schema([("g", pa.string()), ("ts", pa.timestamp("us", "UTC")), ("x", pa.int32()), ("s", pa.string())])


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("A", "A"),
        ("A  B", "A B"),
        ("(A B) C", "A B C"),
        ("(A | B) | C", "A | B | C"),
        ("(A|B) C", "(A | B) C"),
        ("A* B+ C? D*? E+? F??", "A* B+ C? D*? E+? F??"),
        ("A{2} B{2,} C{,3} D{2,3}?", "A{2} B{2,} C{0,3} D{2,3}?"),
        ("(A B)+", "(A B)+"),
        ("((A)*)*", "(A*)*"),
        ("^ A $", "^ A $"),
        ("()", "()"),
        ("A | ()", "A | ()"),
        ("{- A B -}+ C", "{- A B -}+ C"),
        ("permute(A, B C)", "PERMUTE(A, B C)"),
        ("`a b` `PERMUTE`", "`a b` `PERMUTE`"),
        ("a A", "a a"),
        ("größe ü1", "größe ü1"),
    ],
)
def test_what_is_written_is_what_is_read(text: str, shown: str) -> None:
    assert spelled(parse_pattern(text)) == shown
    assert parse_pattern(shown) == parse_pattern(text)


CLAUSE = "SELECT * FROM t MATCH_RECOGNIZE ({})"
WRONG = [
    ("ORDER BY ts MEASURES A.x AS x PATTERN (A B{3,2})", "B@{3,2}", "allows no number of rows"),
    ("ORDER BY ts MEASURES A.x AS x PATTERN (A B{0})", "B@{0}", "allows no number of rows"),
    ("ORDER BY ts MEASURES A.x AS x PATTERN (A**)", "A*@*", "has one quantifier"),
    ("ORDER BY ts MEASURES A.x AS x PATTERN (A | )", "A | @)", "is missing"),
    ("ORDER BY ts MEASURES A.x AS x PATTERN (A {- B)", "{- B@)", "`-}` is expected"),
    ("ORDER BY ts MEASURES A.x AS x PATTERN (A{99999})", "A{@99999", "goes up to 10,000"),
    ("ORDER BY ts MEASURES A.x AS x PATTERN (A % B)", "A @% B", "not expected"),
    ("ORDER BY ts MEASURES A.x AS x PATTERN (A) DEFINE B AS x > 1", "DEFINE @B", "no variable of the pattern"),
    ("ORDER BY ts MEASURES A.x AS x PATTERN (A) DEFINE A AS x > 1, a AS x > 2", ", @a AS", "defined twice"),
    ("ORDER BY ts MEASURES A.x AS x PATTERN (A) DEFINE A AS FINAL LAST(x) > 1", "@FINAL LAST", "FINAL cannot stand"),
    ("ORDER BY ts MEASURES A.x AS x PATTERN (A) DEFINE A AS x", "@x)", "is no condition"),
    (
        "ORDER BY ts MEASURES A.x AS x PATTERN (A B) DEFINE A AS FIRST(A.x + B.x) > 1",
        "@FIRST(A.x",
        "different variables",
    ),
    ("ORDER BY ts MEASURES A.x AS x PATTERN (A) DEFINE A AS PREV(x, -1) > 1", "@-1) > 1", "counts rows"),
    ("ORDER BY ts MEASURES A.x AS x PATTERN (A) DEFINE A AS PREV(1) > 1", "@PREV(1)", "needs a column"),
    ("ORDER BY ts MEASURES A.x AS x PATTERN (A) DEFINE A AS PREV(sum(x)) > 1", "@sum(x)", "cannot stand inside"),
    ("ORDER BY ts MEASURES A.x AS x PATTERN (A) DEFINE A AS sum(x) OVER () > 1", "@sum(x) OVER", "window function"),
    ("ORDER BY ts MEASURES A.x AS x PATTERN (A) DEFINE A AS x IN (SELECT 1)", "@x IN", "a subquery"),
    ("ORDER BY ts MEASURES Q.x AS x PATTERN (A)", "@Q.x", "no column `Q.x`"),
    ("ORDER BY ts MEASURES A.x AS x, B.x AS X PATTERN (A B)", "@B.x AS X", "two measures"),
    ("ORDER BY ts MEASURES A.x AS x AFTER MATCH SKIP TO Z PATTERN (A)", "TO @Z", "no variable"),
    ("ORDER BY ts MEASURES A.x AS x PATTERN (A) SUBSET U = (A, Z)", "(A, @Z)", "no variable"),
    ("ORDER BY ts MEASURES A.x AS x PATTERN (A) SUBSET A = (A)", "", "defined twice"),
    ("ORDER BY s MEASURES A.x AS x PATTERN (A) WITHIN 3", "WITHIN @3", "cannot measure"),
    ("ORDER BY ts MEASURES A.x AS x PATTERN (A) WITHIN 3", "WITHIN @3", "takes an interval"),
    ("ORDER BY ts DESC MEASURES A.x AS x PATTERN (A) WITHIN INTERVAL 1 DAY", "", "rising order"),
    (
        "ORDER BY ts MEASURES A.x AS x ALL ROWS PER MATCH WITH UNMATCHED ROWS PATTERN (A {- B -})",
        "",
        "cannot stand together",
    ),
    ("MEASURES A.x AS x PATTERN (A)", "", "needs an ORDER BY"),
    ("ORDER BY ts PATTERN (A)", "", "has no columns"),
    ("ORDER BY ts MEASURES A.x PATTERN (A)", "", "needs a name"),
    ("ORDER BY ts MEASURES A.x AS x PATTERN A", "", "in parentheses is expected"),
    ("ORDER BY ts MEASURES A.x AS x DEFINE A AS x > 1", "", "PATTERN is expected"),
    ("ORDER BY ts MEASURES A.x AS x PATTERN (A) SEEK", "", "not expected"),
    ("ORDER BY ts MEASURES A.x AS x SEEK PATTERN (A)", "@SEEK", "INITIAL and SEEK"),
    ("ORDER BY ts MEASURES A.x AS x AFTER MATCH SKIP LAST PATTERN (A)", "", "SKIP PAST LAST ROW"),
    ("ORDER BY ts MEASURES row_number() AS x PATTERN (A)", "", "window function"),
    ("ORDER BY ts MEASURES FINAL upper(s) AS x PATTERN (A)", "@FINAL upper", "stands before FIRST, LAST"),
]


@pytest.mark.parametrize(("clause", "place", "said"), WRONG)
def test_what_is_wrong_is_said_where_it_stands(clause: str, place: str, said: str) -> None:
    text = CLAUSE.format(clause)
    with pytest.raises(HeadwaterError) as raised:
        parse_query(text, lambda *_: SCHEMA)
    error = raised.value
    assert said in str(error)
    if place:
        before, _, after = place.partition("@")
        assert error.position == text.index(before + after) + len(before), str(error)


def test_patterns_that_explode_are_refused() -> None:
    with pytest.raises(ExpressionError, match="more than 20,000 steps"):
        parse_query(CLAUSE.format("ORDER BY ts MEASURES A.x AS x PATTERN (((A{100}){100}){100})"), lambda *_: SCHEMA)
    assert len(automaton_of(parse_pattern("A{9000}"), ["A"]).instructions) < LONGEST


def test_names_and_questions_in_a_pattern_are_no_parameters() -> None:
    text = "SELECT * FROM t MATCH_RECOGNIZE (ORDER BY ts MEASURES A.x AS x PATTERN (A B?? C{2,}?) DEFINE A AS x > ?) WHERE x < ?"
    plan = parse_query(text, lambda *_: SCHEMA, [3, 9])
    assert "A B?? C{2,}?" in plan.dump() and "(x#3 > 3)" in plan.dump() and "< 9)" in plan.dump()


def test_match_recognize_is_still_a_name() -> None:
    plan = parse_query("SELECT match_recognize.x AS pattern FROM t AS match_recognize", lambda *_: SCHEMA)
    assert plan.schema.names == ["pattern"]

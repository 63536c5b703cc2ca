"""Reading statements: every kind becomes the data it should, and bad ones say what is wrong, where, and how to write it.

The good statements of ``fixtures/statements.sql`` are shown as data in ``statements.txt``, the messages about the bad ones of
``bad_statements.sql`` in ``bad_statements.txt``; ``HEADWATER_UPDATE_GOLDEN=1 pytest tests/sql/test_statements.py`` writes both anew.
"""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.errors import ExpressionError, HeadwaterError, InputError
from headwater.base.errors.action import composed, parts_of
from headwater.base.schema import Field
from headwater.sql.fragment import Fragment
from headwater.sql.statements import (
    AlterTable,
    CreateTable,
    Delete,
    Insert,
    Merge,
    Query,
    Statement,
    Update,
    leads,
    read,
    read_script,
    reader,
)
from headwater.sql.statements.cursor import Cursor
from headwater.sql.statements.elsewhere import ELSEWHERE
from headwater.sql.statements.types import data_type
from headwater.sql.tokens import tokenize

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FIXTURES = Path(__file__).parent / "fixtures"
UPDATE = os.environ.get("HEADWATER_UPDATE_GOLDEN") == "1"


def _lines(name: str) -> list[str]:
    return (FIXTURES / name).read_text(encoding="utf-8").removesuffix("\n").split("\n")


def _shown(value: object, depth: int = 1) -> str:
    """Data as text: fields that say nothing are left out, and a fragment is checked to lie where it says."""
    if isinstance(value, Fragment):
        assert value.whole is not None
        for start, end, source in value.spans or ((0, len(value.text), value.offset),):
            piece = value.whole[source : source + end - start]
            assert piece == value.text[start:end] or "/*" in piece, "a piece is what stands there, but for comments"
        return f"«{value.text}»"
    if isinstance(value, Field):
        return f"{value.to_json()}"
    if dataclasses.is_dataclass(value):
        pad = "  " * depth
        lines = [type(value).__name__]
        for f in dataclasses.fields(value):
            inner = getattr(value, f.name)
            if f.name not in ("text", "offset", "parameters") and inner not in (None, False, (), {}):
                lines.append(f"{pad}{f.name}: {_shown(inner, depth + 1)}".replace(": \n", ":\n"))
        return "\n".join(lines)
    if isinstance(value, tuple) and value and not isinstance(value[0], str):
        pad = "  " * depth
        return "".join(f"\n{pad}- {_shown(v, depth + 1)}" for v in value)
    if isinstance(value, dict):
        return ", ".join(f"{k} = {_shown(v)}" for k, v in value.items())
    return repr(value)


def _golden(name: str, sections: list[str]) -> None:
    path = FIXTURES / name
    text = "\n".join(sections)
    if UPDATE:
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text


def test_every_kind_is_read() -> None:
    texts = _lines("statements.sql")
    _golden("statements.txt", [f"{text}\n=> {_shown(read(text))}\n" for text in texts])


def test_every_lead_has_a_statement() -> None:
    words = {" ".join(text.upper().lstrip("(").split()[:5]) for text in _lines("statements.sql")}
    # REPLACE TABLE is an older spelling of CREATE OR REPLACE TABLE; DESC and DESCRIBE are the same.
    rare = {"REPLACE TABLE", "DESC DETAIL", "DESC QUERY"}
    missing = [lead for lead in leads() if lead not in rare and not any(f"{w} ".startswith(f"{lead} ") for w in words)]
    assert missing == []


def test_bad_statements_are_explained() -> None:
    sections = []
    for text in _lines("bad_statements.sql"):
        with pytest.raises(ExpressionError) as caught:
            read(text)
        error = caught.value
        assert error.code == "E1306" and error.hint
        sections.append(f"{error}\n")
    assert len(sections) > 60
    _golden("bad_statements.txt", sections)


def test_parts_of_an_update() -> None:
    made = read("UPDATE t AS x SET x.a = x.b + :n WHERE x.c = :m", {"n": 1, "m": 2})
    assert isinstance(made, Update)
    assert (made.table, made.alias) == ("t", "x")
    assert made.where is not None and made.where.parameters == {"m": 2}
    assert made.assignments["a"].parameters == {"n": 1}
    assert made.text[made.where.offset :] == "x.c = :m"


def test_question_marks_are_numbered_across_the_statement() -> None:
    made = read("UPDATE t SET a = ?, b = concat(?, '?') WHERE `?` = ? AND c = ?", [1, 2, 3, 4])
    assert isinstance(made, Update) and made.where is not None
    assert [list(made.assignments[c].parameters) for c in "ab"] == [[1], [2]]
    assert list(made.where.parameters) == [3, 4]


def test_a_colon_in_a_type_is_no_parameter() -> None:
    made = read("INSERT INTO t SELECT CAST(:x AS STRUCT<a:INT, b:ARRAY<STRUCT<c:INT>>>), :y", {"x": 1, "y": 2})
    assert isinstance(made, Insert) and made.query.parameters == {"x": 1, "y": 2}


@pytest.mark.parametrize(
    ("text", "parameters", "why"),
    [
        ("SELECT :a, :b", {"a": 1}, ":b has no value"),
        ("SELECT ?, ?", [1], "the second `?` has no value"),
        ("SELECT ?", {"a": 1}, "the first `?` has no value"),
        ("SELECT :a", [1], ":a has no value"),
    ],
)
def test_missing_parameters(text: str, parameters: Any, why: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        read(text, parameters)
    assert why in caught.value.message
    assert caught.value.position is not None and text[caught.value.position] in ":?"


@pytest.mark.parametrize(
    ("text", "parameters", "why"),
    [
        ("SELECT 1", {"a": 1}, "a value is given for :a"),
        ("SELECT ':a', :b", {"b": 1, "a": 1}, "a value is given for :a"),
        ("SELECT ?", [1, 2], "2 values for 1 `?`"),
        ("SELECT 1", [7], "1 value for no `?`"),
        ("SELECT 1", "a", "`parameters` is 'a'"),
        ("SELECT 1", 3, "`parameters` is 3"),
    ],
)
def test_parameters_that_nobody_names(text: str, parameters: Any, why: str) -> None:
    for reads in (read, read_script):
        with pytest.raises(InputError) as caught:
            reads(text, parameters)
        assert why in caught.value.message and caught.value.hint


@pytest.mark.parametrize("words", sorted(ELSEWHERE))
def test_statements_of_spark_that_are_not_here(words: tuple[str, ...]) -> None:
    why, hint = ELSEWHERE[words]
    with pytest.raises(ExpressionError) as caught:
        read(f"{' '.join(words).lower()} x")
    assert (caught.value.code, caught.value.hint, caught.value.position) == (
        "E1306",
        composed(parts_of(hint), "sql"),
        0,
    )
    assert why in caught.value.message
    assert not [lead for lead in leads() if lead == " ".join(words)], "it is here by now"


def test_a_script_shares_its_parameters() -> None:
    script = "DELETE FROM t WHERE a = :a;\nDELETE FROM t WHERE b = :b OR a = :a"
    first, second = read_script(script, {"a": 1, "b": 2})
    assert isinstance(first, Delete) and first.where is not None and first.where.parameters == {"a": 1}
    assert isinstance(second, Delete) and second.where is not None and second.where.parameters == {"a": 1, "b": 2}
    assert script[second.offset :] == second.text
    with pytest.raises(InputError):
        read_script(script, {"a": 1, "b": 2, "c": 3})


def test_a_script_numbers_its_question_marks() -> None:
    first, second = read_script("SELECT ?; SELECT ?, ?", [1, 2, 3])
    assert isinstance(first, Query) and list(first.query.parameters) == [1]
    assert isinstance(second, Query) and list(second.query.parameters) == [2, 3]
    with pytest.raises(InputError):
        read_script("SELECT ?", [1, 2])


def test_a_keyword_inside_a_name_a_text_or_a_case_ends_nothing() -> None:
    made = read("UPDATE t SET a = t.where, b = 'WHERE', c = `where` + CASE WHEN x THEN 1 END WHERE t.set = 1")
    assert isinstance(made, Update) and made.where is not None
    assert [v.text for v in made.assignments.values()] == ["t.where", "'WHERE'", "`where` + CASE WHEN x THEN 1 END"]
    assert made.where.text == "t.set = 1"


def test_the_source_of_a_merge_is_a_query() -> None:
    made = read("MERGE INTO t USING u VERSION AS OF 3 AS v ON t.a = v.a WHEN MATCHED THEN DELETE")
    assert isinstance(made, Merge)
    assert made.source.text == "SELECT * FROM u VERSION AS OF 3 AS v"
    assert made.source_alias == "v"
    assert made.text[made.source.place(len("SELECT * FROM ")) :].startswith("u VERSION")


def test_types_are_read_as_delta_keeps_them() -> None:
    made = read("CREATE TABLE t (s STRUCT<a: INT NOT NULL COMMENT 'it''s', b: MAP<STRING, ARRAY<DECIMAL(5)>>>)")
    assert isinstance(made, CreateTable)
    inner = {"type": "array", "elementType": "decimal(5,0)", "containsNull": True}
    assert made.fields[0].type == {
        "type": "struct",
        "fields": [
            {"name": "a", "type": "integer", "nullable": False, "metadata": {"comment": "it's"}},
            {
                "name": "b",
                "type": {"type": "map", "keyType": "string", "valueType": inner, "valueContainsNull": True},
                "nullable": True,
                "metadata": {},
            },
        ],
    }


@pytest.mark.parametrize(
    ("name", "stored"),
    [
        ("INT", "integer"),
        ("integer", "integer"),
        ("BIGINT", "long"),
        ("long", "long"),
        ("smallint", "short"),
        ("STRING", "string"),
        ("TIMESTAMP_LTZ", "timestamp"),
        ("Real", "float"),
        ("decimal", "decimal(10,0)"),
        ("NUMERIC(3,1)", "decimal(3,1)"),
    ],
)
def test_names_of_types(name: str, stored: str) -> None:
    assert data_type(Cursor(name)) == stored


def test_constraints_keep_no_parameters() -> None:
    with pytest.raises(ExpressionError) as caught:
        read("ALTER TABLE t ADD CONSTRAINT c CHECK (a > :n)", {"n": 1})
    assert "cannot have parameters" in caught.value.message


def test_a_constant_may_be_a_parameter() -> None:
    made = read("ALTER TABLE t SET TBLPROPERTIES ('a' = :v)", {"v": "it's; DROP"})
    assert isinstance(made, AlterTable) and made.change.properties == {"a": "it's; DROP"}  # type: ignore[union-attr]


def test_rooms_add_statements_of_their_own() -> None:
    @dataclasses.dataclass(frozen=True)
    class Frob(Statement):
        name: str

    @reader("FROB", "THE", form="FROB THE name")
    def read_frob(cursor: Cursor) -> Frob:
        return Frob(cursor.identifier("a name"))

    try:
        made = read("frob the `table` ; ")
        assert isinstance(made, Frob) and made.name == "table"
        with pytest.raises(ExpressionError) as caught:
            read("frob thee table")
        assert "did you mean FROB THE" in str(caught.value)
        with pytest.raises(ExpressionError, match="nothing more is expected"):
            read("frob the table now")
    finally:
        from headwater.sql.statements.registry import _READERS

        del _READERS["FROB", "THE"]


_DELTA = ("OPTIMIZE", "VACUUM", "RESTORE", "DESC HISTORY", "DESCRIBE HISTORY", "DESCRIBE DETAIL")
# Where we read more than Spark: a MERGE of an older version or of a change feed, plans with what was counted, exports, online and feature tables, and materialized
# views, of which Spark itself knows the making only; with them, tables that are dropped with what reads them.
_MORE = (
    *(
        "VERSION AS OF 3 AS old ON",
        "USING table_changes(",
        "EXPLAIN ANALYZE",
        "MATERIALIZED VIEW",
        " EXPORT",
        " ONLINE TABLE",
        " FEATURE TABLE",
        " SEARCH INDEX",
    ),
    *("orders CASCADE", "orders RESTRICT"),
)
# What Spark's grammar takes, and we refuse by name: other kinds of tables and columns, and what Delta itself refuses later.
_REFUSED = """
SELECT :a|SELECT ?|CREATE VIEW v|CREATE TABLE t|DELETE FROM t WHERE|DESCRIBE HISTORY|EXPLAIN DELETE|VARCHAR|STRUCT<>|DEFAULT|PRIMARY KEY
IDENTITY|USING PARQUET|days(id)|(id INT) PARTITIONED BY (id INT)|CLUSTER BY|LOCATION|LIKE u|delta.`|`a.b`|``|A = 2|s.a|(a, A)
RENAME TO|NOT NULL|AFTER b|CREATE SCHEMA|USE sales|SHOW PARTITIONS|BEGIN TRANSACTION|SET spark|REFRESH TABLE|ANALYZE TABLE|MATERIALIZED VIEW v
"""


def test_spark_reads_the_same_statements(spark: SparkSession) -> None:
    """The grammar is Spark's: what we read it reads, and what we do not, it does not, but for the lists above."""
    parser = spark._jsparkSession.sessionState().sqlParser()

    def reads(text: str) -> bool:
        try:
            parser.parsePlan(text.rstrip("; "))
        except Exception:  # noqa: BLE001  whatever Spark raises, it did not read it
            return False
        return True

    ours = [t for t in _lines("statements.sql") if not t.startswith(_DELTA) and not any(m in t for m in _MORE)]
    assert [t for t in ours if not reads(t)] == []
    known = [part for line in _REFUSED.strip().split("\n") for part in line.split("|")]
    strange = [t for t in _lines("bad_statements.sql") if reads(t)]
    assert [
        t
        for t in strange
        if not any(t == k or (k in t and k not in ("CREATE TABLE t", "DELETE FROM t WHERE")) for k in known)
    ] == []


@st.composite
def _broken(draw: st.DrawFn) -> str:
    """A statement with some of its words gone, doubled, or in the place of others."""
    text = draw(st.sampled_from(_lines("statements.sql")))
    words = [t.text for t in tokenize(text)]
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, max(len(words) - 1, 0)))
        other = draw(
            st.sampled_from([*words, "'", "`", "(", ")", ";", "--", "/*", ":x", "?", "SELECT", "AS", "1", "\0", "<"])
        )
        words[at : at + draw(st.integers(0, 1))] = draw(st.sampled_from([[], [other], [other, other]]))
    return draw(st.sampled_from([" ", "\n", "  "])).join(words)


@given(_broken())
def test_whatever_is_written_is_read_or_explained(text: str) -> None:
    try:
        made = read(text)
    except HeadwaterError as error:
        assert error.hint and (error.position is None or 0 <= error.position <= len(text))
    else:
        assert isinstance(made, Statement) and made.text in text

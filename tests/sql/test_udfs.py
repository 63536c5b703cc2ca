"""Python functions inside DuckDB: found by name, registered once, gone at exit, and their failures in plain words."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import duckdb
import pyarrow as pa
import pytest

from headwater.base.errors import ExpressionError
from headwater.sql.expressions import evaluate, failure, parse
from headwater.sql.udfs import UDFS, Failed, define, install, used

_TABLE = pa.table({"s": ["ab", None, "cde"]})


@pytest.fixture
def twice() -> Iterator[str]:
    yield define("test_twice", "INTEGER", pa.int32(), _twice)
    del UDFS["hw_test_twice"]


def _twice(x: int) -> int:
    if x == 13:
        raise Failed("thirteen")
    return 2 * x


def test_only_what_a_query_names_is_registered(twice: str) -> None:
    sql = f"SELECT {twice}(x) FROM (VALUES (1), (NULL), (3)) t(x)"
    assert [u.name for u in used(sql)] == [twice]
    assert used("SELECT hw_no_such_thing(1)") == []
    with duckdb.connect(":memory:") as con:
        install(con, sql)
        install(con, sql)
        assert con.cursor().sql(sql).fetchall() == [(2,), (None,), (6,)]
        with pytest.raises(duckdb.CatalogException):
            con.sql("SELECT hw_levenshtein('a', 'b')")


def test_all_of_them_can_be_registered() -> None:
    with duckdb.connect(":memory:") as con:
        install(con)
        assert con.sql("SELECT hw_levenshtein('ab', 'b')").fetchall() == [(1,)]


def test_a_second_connection_to_the_database_finds_them(twice: str) -> None:
    with duckdb.connect(":memory:") as con:
        install(con, f"{twice}(1)")
        other = con.cursor()
        install(other, f"{twice}(1)")
        assert other.sql(f"SELECT {twice}(4)").fetchall() == [(8,)]


def test_a_failure_says_why(twice: str) -> None:
    with duckdb.connect(":memory:") as con:
        install(con, f"{twice}(1)")
        with pytest.raises(duckdb.Error) as caught:
            con.sql(f"SELECT {twice}(13)").fetchall()
    assert failure("x", caught.value).message == "the evaluation failed: thirteen"


def test_an_expression_brings_its_functions_along() -> None:
    found = evaluate(parse("levenshtein(s, 'abc')", schema=_TABLE.schema), _TABLE)
    assert found.to_pylist() == [1, None, 3]
    with pytest.raises(ExpressionError, match="a text cannot be cast to date"):
        evaluate(parse("CAST(s AS date)", schema=_TABLE.schema), _TABLE)


_LEFT_OPEN = """
import duckdb, pyarrow as pa
from headwater.sql.expressions import evaluate, parse
from headwater.sql.udfs import install
table = pa.table({"s": ["a"]})
assert evaluate(parse("levenshtein(s, 'b')", schema=table.schema), table).to_pylist() == [1]
open_one = duckdb.connect(":memory:")
install(open_one, "hw_soundex(")
assert open_one.sql("SELECT hw_soundex('a')").fetchall() == [("A000",)]
closed = duckdb.connect(":memory:")
install(closed, "hw_soundex(")
closed.close()
"""


@pytest.mark.long
def test_nothing_is_said_at_exit() -> None:
    done = subprocess.run([sys.executable, "-c", _LEFT_OPEN], capture_output=True, text=True, check=False, timeout=600)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")

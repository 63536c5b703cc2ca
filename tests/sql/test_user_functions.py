"""Functions of the user's own: the same values from DuckDB and from circuits' programs, and errors that name them."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from headwater.base.errors import ExpressionError, InputError
from headwater.sql.duckdb_query import to_duckdb
from headwater.sql.expressions import failure
from headwater.sql.functions.user import UserFunction, user_function
from headwater.sql.nodes import Call, Column, Node, rewrite
from headwater.sql.plan import Project
from headwater.sql.query import parse_query
from headwater.sql.udfs import install
from headwater.sql.vectorised.program import Program
from headwater.sql.vectorised.vector import vector_of

_ROWS = pa.table(
    {
        "a": pa.array([3, 9, None, -4, 0], pa.int32()),
        "s": pa.array(["x", "yy", None, "", "ß"]),
        "d": pa.array([1.5, None, 0.0, -2.0, 3.0]),
    }
)


def third(x: int | None) -> int | None:
    return None if x is None else x // 3


def louder(s: pa.Array, n: pa.Array) -> pa.Array:
    return pc.if_else(pc.greater(n, 0), pc.utf8_upper(s), s)


def _function(call: Any, *types: pa.DataType, name: str = "f", **options: Any) -> UserFunction:
    return UserFunction(name, call, types[:-1], types[-1], **options)


_FUNCTIONS = [
    _function(third, pa.int64(), pa.int64(), name="third"),
    _function(louder, pa.string(), pa.int32(), pa.string(), name="louder", vectorised=True),
    _function(lambda: 7, pa.int32(), name="seven"),
    _function(lambda x: [x, x], pa.float64(), pa.list_(pa.float64()), name="twice"),
]


def _programs(text: str, functions: list[UserFunction]) -> list[list[object]]:
    """The columns of a projection over the table, as circuits compute them."""
    plan = parse_query(text, lambda *_: _ROWS.schema, user_functions=functions)
    assert isinstance(plan, Project)
    names = {a.key: a.name for a in plan.child.output}

    def stored(node: Node) -> Node | None:
        return Column(None, (names[node.path[0]],), node.dtype) if isinstance(node, Column) else None

    out = []
    for item in plan.items:
        program = Program(rewrite(item.node, stored), _ROWS.schema)
        out.append(program.run([vector_of(c) for c in _ROWS.columns], _ROWS.num_rows).to_arrow().to_pylist())
    return out


def _duckdb(text: str, functions: list[UserFunction]) -> list[list[object]]:
    sql = to_duckdb(parse_query(text, lambda *_: _ROWS.schema, user_functions=functions))
    with duckdb.connect(":memory:") as con:
        con.register("t", _ROWS)
        install(con, sql)
        try:
            found = con.sql(sql).to_arrow_table()
        except duckdb.Error as error:
            raise failure(text, error) from None
    return [c.to_pylist() for c in found.columns]


@pytest.mark.parametrize("run", [_duckdb, _programs])
def test_values(run: Any) -> None:
    text = """
        SELECT third(a), THIRD(a) + 1, louder(s, a), seven() + a, CASE WHEN a > 2 THEN third(a) ELSE -1 END, twice(d)
        FROM t
    """
    assert run(text, _FUNCTIONS) == [
        [1, 3, None, -2, 0],
        [2, 4, None, -1, 1],
        ["X", "YY", None, "", "ß"],
        [10, 16, None, 3, 7],
        [1, 3, -1, -1, -1],
        [[1.5, 1.5], [None, None], [0.0, 0.0], [-2.0, -2.0], [3.0, 3.0]],
    ]


def test_both_engines_agree() -> None:
    text = "SELECT louder(s, a), louder(upper(s), a % 2), third(length(s)) FROM t"
    assert _duckdb(text, _FUNCTIONS) == _programs(text, _FUNCTIONS)


@pytest.mark.parametrize("run", [_duckdb, _programs])
def test_only_rows_that_are_asked_for(run: Any) -> None:
    seen: list[object] = []

    def watch(x: object) -> int:
        seen.append(x)
        return 1

    watched = _function(watch, pa.int32(), pa.int32())
    run("SELECT CASE WHEN a > 2 THEN f(a) END FROM t", [watched])
    assert set(seen) <= {3, 9}


def _wrong_length(x: pa.Array) -> pa.Array:
    return x.slice(1)


def _fails_at_nine(x: pa.Array) -> pa.Array:
    if 9 in x.to_pylist():
        raise ValueError("no nines")
    return x


@pytest.mark.parametrize("run", [_duckdb, _programs])
@pytest.mark.parametrize(
    ("function", "said"),
    [
        (_function(lambda x: 1 // (x - 9), pa.int32(), pa.int32()), r"f\(\) raised ZeroDivisionError for \(9\)"),
        (_function(lambda x: "text", pa.int32(), pa.int32()), r"f\(\) gave 'text', which is no int"),
        (_function(_wrong_length, pa.int32(), pa.int32(), vectorised=True), r"f\(\) gave \d values for \d rows"),
        (_function(lambda x: [1], pa.int32(), pa.int32(), vectorised=True), r"f\(\) gave list, not an Arrow array"),
        (_function(lambda x: x, pa.int32(), pa.int64(), vectorised=True), r"f\(\) gave values of type int32"),
        (_function(_fails_at_nine, pa.int32(), pa.int32(), vectorised=True), r"ValueError for \(9\): no nines"),
    ],
)
def test_errors_name_the_function(run: Any, function: UserFunction, said: str) -> None:
    with pytest.raises(ExpressionError, match=said):
        run("SELECT f(coalesce(a, 1)) FROM t", [function])


def test_what_a_query_cannot_give() -> None:
    f = _function(third, pa.int64(), pa.int64())
    for text, said in (("SELECT f() FROM t", "takes 1 argument"), ("SELECT f(s) FROM t", "cannot take string")):
        with pytest.raises(InputError, match=said):
            parse_query(text, lambda *_: _ROWS.schema, user_functions=[f])


def test_names_of_sparks_functions_are_taken() -> None:
    for name in ("upper", "SUM", "no name"):
        with pytest.raises(InputError):
            _function(third, pa.int64(), pa.int64(), name=name)
    with pytest.raises(InputError, match="one function of each name"):
        parse_query("SELECT 1", lambda *_: _ROWS.schema, user_functions=[_FUNCTIONS[0], _FUNCTIONS[0]])


def test_the_fingerprint_is_of_what_the_function_means() -> None:
    first = _function(third, pa.int64(), pa.int64())
    assert first.fingerprint == _function(third, pa.int64(), pa.int64()).fingerprint
    others = [
        _function(third, pa.int32(), pa.int64()),
        _function(third, pa.int64(), pa.int64(), version="2"),
        _function(louder, pa.int64(), pa.int64()),
        _function(np.sqrt, pa.int64(), pa.int64()),
    ]
    assert len({first.fingerprint, *(o.fingerprint for o in others)}) == 5


def test_an_operator_leads_to_its_function() -> None:
    plan = parse_query("SELECT third(a) AS x FROM t", lambda *_: _ROWS.schema, user_functions=_FUNCTIONS)
    (node,) = plan.expressions
    assert isinstance(node, Call)
    assert user_function(node.op) is _FUNCTIONS[0]

"""Every function of the catalogue, called with constants and with NULL in each place: Spark's answer, or a refusal by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

import duckdb
import pyarrow as pa
import pytest

from headwater.base.errors import ExpressionError, HeadwaterError
from headwater.sql.expressions import evaluate, parse
from headwater.sql.nodes import Column, Literal
from headwater.sql.vectorised import compile_expression

from .catalogue_calls import calls
from .datafusion_here import answer
from .oracle import answer_of, plan_of

Differences = Callable[[pa.Table, Sequence[str]], list[str]]
ROW = pa.table({"row": pa.array([1], pa.int32())})
WRITTEN = {
    "s": "'abc'",
    "i": "2",
    "l": "3L",
    "d": "1.5D",
    "f": "CAST(2.5 AS FLOAT)",
    "m": "12.34",
    "b": "true",
    "t": "DATE'2024-02-29'",
    "z": "TIMESTAMP'2024-02-29 12:34:56'",
    "w": "TIMESTAMP_NTZ'2024-02-29 12:34:56'",
    "x": "X'6162'",
    "xs": "array(1, 2)",
    "ss": "array('a', 'b')",
    "es": "array(struct('a' AS key, 1 AS value))",
    "xxs": "array(array(1, 2))",
    "kv": "map('a', 1)",
}
TYPES = {
    "s": "STRING",
    "i": "INT",
    "l": "BIGINT",
    "d": "DOUBLE",
    "f": "FLOAT",
    "m": "DECIMAL(10, 2)",
    "b": "BOOLEAN",
    "t": "DATE",
    "z": "TIMESTAMP",
    "w": "TIMESTAMP_NTZ",
    "x": "BINARY",
    "xs": "ARRAY<INT>",
    "ss": "ARRAY<STRING>",
    "es": "ARRAY<STRUCT<key: STRING, value: INT>>",
    "xxs": "ARRAY<ARRAY<INT>>",
    "kv": "MAP<STRING, INT>",
}


def _texts() -> Iterator[str]:
    """One call for each function and number of arguments, and the same with a NULL in each place, typed and untyped."""
    seen = set()
    for name, args, _ in calls():
        if (name, len(args)) in seen or not re.fullmatch(r"\w+", name):
            continue
        if not all(isinstance(a, Column | Literal) for a in args):
            continue
        seen.add((name, len(args)))
        names = [a.path[0] if isinstance(a, Column) else "" for a in args]
        plain = [WRITTEN[n] if n else _constant(a) for n, a in zip(names, args, strict=True)]
        yield f"{name}({', '.join(plain)})"
        for place, column in enumerate(names):
            nulls = ["NULL", f"CAST(NULL AS {TYPES[column]})"] if column else ["NULL"]
            for null in nulls:
                yield f"{name}({', '.join([*plain[:place], null, *plain[place + 1 :]])})"


def _constant(node: object) -> str:
    assert isinstance(node, Literal)
    return repr(node.value) if isinstance(node.value, int | str) else f"DATE'{node.value}'"


def _taken() -> list[str]:
    found = []
    for text in _texts():
        try:
            parse(text, schema=ROW.schema)
        except ExpressionError as error:
            assert error.code.startswith("E13"), (text, str(error))
            continue
        found.append(text)
    return found


@pytest.mark.long
def test_each_is_taken_or_refused_by_name() -> None:
    """Never a raw error: not while it is read, not while it is computed, on no engine."""
    wrong = []
    taken = _taken()
    assert len(taken) > 600, len(taken)
    for text in taken:
        expression = parse(text, schema=ROW.schema)
        for run in (_evaluated, _compiled, _on_duckdb, _on_datafusion):
            try:
                run(text, expression)
            except HeadwaterError as error:
                if "the engine refused it" in str(error):
                    wrong.append(f"{text} {run.__name__}: {error}")
            except Exception as error:  # noqa: BLE001 (which is what is looked for)
                # DuckDB's own errors, which the engine puts in plain words, come through the oracle as they are.
                plain = ("headwater!", "overflow", "out of range", "Map keys", "Conversion Error")
                if not isinstance(error, duckdb.Error) or not any(p in str(error) for p in plain):
                    wrong.append(f"{text} {run.__name__}: {type(error).__name__} {str(error)[:200]}")
    assert not wrong, f"{len(wrong)}\n" + "\n".join(wrong)


def _evaluated(_: str, expression: object) -> None:
    evaluate(expression, ROW)  # type: ignore[arg-type]


def _compiled(_: str, expression: object) -> None:
    compile_expression(expression, ROW.schema).run([], 1)  # type: ignore[arg-type]


def _on_duckdb(text: str, _: object) -> None:
    answer_of(plan_of(f"SELECT {text} AS r FROM one", {"one": ROW}), {"one": ROW})


def _on_datafusion(text: str, _: object) -> None:
    answer(f"SELECT {text} AS r FROM one", {"one": ROW})


@pytest.mark.spark
def test_each_gives_sparks_answer(differences: Differences) -> None:
    found = differences(ROW, _taken())
    assert not found, f"{len(found)}\n" + "\n".join(found)


def test_sums_that_cannot_fail() -> None:
    query = "SELECT try_add(1, 2), try_subtract(2, 1), try_multiply(2, 3), try_divide(1, 0), try_mod(7, 2)"
    for found in (answer_of(plan_of(query, {}), {}), answer(query, {})):
        assert list(found.to_pylist()[0].values()) == [3, 1, 6, None, 1]
    large = "SELECT try_add(2147483647, 1)"
    assert answer_of(plan_of(large, {}), {}).column(0).to_pylist() == [None]


VOID: dict[str, list[object]] = {
    "SELECT NULL": [None],
    "SELECT array()": [[]],
    "SELECT map()": [[]],
    "SELECT array(array())": [[[]]],
    "VALUES (NULL)": [None],
    "SELECT CASE WHEN true THEN NULL END": [None],
    "SELECT NULL UNION ALL SELECT NULL": [None, None],
    "SELECT NULL UNION ALL SELECT 1": [None, 1],
    "SELECT NULL UNION ALL SELECT array()": [None, []],
    "SELECT a FROM (SELECT array() AS a) UNION ALL SELECT array(1)": [[], [1]],
    "SELECT x FROM (SELECT NULL AS x, 1 AS y) WHERE y = 1": [None],
    "SELECT coalesce(x, 'a') FROM (SELECT NULL AS x)": ["a"],
    "SELECT CAST(x AS STRUCT<a: INT>) FROM (SELECT NULL AS x)": [None],
    "VALUES (1), (2.5), (NULL)": ["1.0", "2.5", None],
    "VALUES (array()), (array(1)), (NULL)": [[], [1], None],
    "VALUES (map()), (map('a', 1))": [[], [("a", 1)]],
}


@pytest.mark.parametrize("query", VOID)
def test_what_has_no_type(query: str) -> None:
    from headwater.query.engines.duckdb import DuckDBEngine

    running = DuckDBEngine().run(plan_of(query, {}), {}, query)
    try:
        rows = running.reader.read_all().column(0).to_pylist()
    finally:
        running.close()
    shown = [str(r) if isinstance(w, str) else r for r, w in zip(rows, VOID[query], strict=True)]
    assert sorted(map(repr, shown)) == sorted(map(repr, VOID[query]))
    try:
        found = answer(query, {}).column(0).to_pylist()
    except ExpressionError as error:
        assert error.code == "E1305"
    else:
        assert sorted(map(repr, found)) == sorted(map(repr, rows))

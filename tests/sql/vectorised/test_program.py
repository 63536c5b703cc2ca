"""What a program says of itself, and the shapes of rows it takes: none, one, all null, many; deep trees; constants."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest
from tests.sql.conftest import _answers, fixture_lines

import headwater.sql.vectorised as vectorised
from headwater.sql.expressions import evaluate, parse
from headwater.sql.nodes import Column, Literal, Node, call
from headwater.sql.vectorised import Program, Vector, compile_expression, vector_of

from .agreement import columns_of, difference, run

_SCHEMA = pa.schema(
    [
        ("a", pa.int32()),
        ("s", pa.string()),
        ("x", pa.float64()),
        ("b", pa.bool_()),
        ("st", pa.struct([("k", pa.decimal128(20, 2))])),
    ]
)
_TABLE = pa.table(
    [[1, None, 3], ["x1", "y", None], [0.5, None, -0.0], [True, None, False], [{"k": 1}, {"k": None}, None]],
    schema=_SCHEMA,
)


def _program(text: str, schema: pa.Schema = _SCHEMA) -> Program:
    return compile_expression(parse(text, schema=schema), schema)


def test_what_it_says_of_itself() -> None:
    program = _program("CASE WHEN x > 1 THEN a + 1 ELSE length(s) END")
    assert program.columns == (0, 1, 2)
    assert program.dtype == pa.int32() and program.fallible and program.native
    assert not _program("a > 1").fallible
    asked = _program("a > 1 AND format_number(x, 2) = '1' AND sort_array(array(a, 2))[0] = 1")
    assert not asked.native
    assert [line for line in asked.explain().split("\n") if "[duckdb]" in line]
    assert "[duckdb]" not in program.explain()


def test_only_the_columns_it_reads_are_asked_for() -> None:
    asked: list[int] = []

    def read(index: int) -> Vector:
        asked.append(index)
        return vector_of(_TABLE.column(index))

    assert _program("a * a + a").run(read, 3).to_arrow().to_pylist() == [2, None, 12]
    assert asked == [0]


def test_filter_gives_positions() -> None:
    columns = columns_of(_TABLE)
    found = _program("a > 1").filter(columns, 3)
    assert found is not None and found.dtype == np.int64 and found.tolist() == [2]
    assert _program("a IS NULL OR a > 0").filter(columns, 3) is None
    none = _program("b AND NOT b").filter(columns, 3)
    assert none is not None and none.tolist() == []
    nothing = _program("a > 1").filter([vector_of(c) for c in _TABLE.slice(0, 0).columns], 0)
    assert nothing is None or nothing.tolist() == []


@pytest.mark.parametrize(
    "text",
    [
        "1 = 1",
        "'a' || 'b'",
        "CAST(NULL AS int)",
        "NULL",
        "1.5 + 2",
        "abs(-3)",
        "upper('ß')",
        "date'2024-02-29'",
        "1e300D * 1e300D",
        "-0.0D",
    ],
)
def test_constants_need_no_column(text: str) -> None:
    program = _program(text)
    assert program.columns == ()
    assert _answers(pa.chunked_array([run(program, _TABLE)])) == _answers(evaluate(parse(text, schema=_SCHEMA), _TABLE))


@pytest.mark.long
def test_no_rows_and_nothing_but_nulls(extremes: pa.Table) -> None:
    nothing = pa.table([pa.nulls(3, f.type) for f in extremes.schema], schema=extremes.schema)
    for text in fixture_lines("agrees.sql"):
        expression = parse(text, schema=extremes.schema)
        program = compile_expression(expression, extremes.schema)
        empty = program.run([vector_of(c) for c in extremes.slice(0, 0).columns], 0).to_arrow()
        assert len(empty) == 0 and empty.type == expression.dtype, text
        if program.native:
            found = difference(text, nothing, expression)
            assert found is None, found


def test_sixty_four_levels() -> None:
    node: Node = Column(None, ("a",), pa.int32())
    expected: list[int | None] = [1, None, 3]
    for level in range(64):
        number = Literal(level, pa.int32())
        node = call(
            "coalesce", (call("+", (node, Literal(1, pa.int32())), pa.int32(), fallible=True), number), pa.int32()
        )
        expected = [level if v is None else v + 1 for v in expected]
        if level % 5 == 0:
            node = call(
                "case",
                (call("<", (node, number), pa.bool_()), node, call("minus", (node,), pa.int32(), fallible=True)),
                pa.int32(),
            )
            expected = [v if v is not None and v < level else -(v or 0) for v in expected]
    assert run(compile_expression(node, _SCHEMA), _TABLE).to_pylist() == expected
    assert difference(" + ".join(["a"] * 65), _TABLE) is None
    assert difference(" AND ".join(f"a <> {n}" for n in range(10, 300)), _TABLE) is None


def test_equal_parts_are_computed_once() -> None:
    calls: list[int] = []
    program = _program("a * 3 > 1 AND a * 3 < 100 OR a * 3 = 7 OR CASE WHEN b THEN a * 3 ELSE 0 END = 3")
    step = program._step

    class Counting:
        """An array that notes each multiplication."""

        def __init__(self, values: np.ndarray) -> None:
            self.values = values

        def __mul__(self, other: object) -> np.ndarray:
            calls.append(1)
            return self.values * other  # type: ignore[no-any-return]

    assert step is not None
    columns: list[Vector] = columns_of(_TABLE)
    columns[0] = Vector(pa.int32(), Counting(columns[0].values), columns[0].valid)
    program.run(columns, 3)
    assert len(calls) == 1


def test_zeros_of_both_signs_are_two_constants() -> None:
    texts = [call("cast", (Literal(z, pa.float64()),), pa.string(), fallible=True) for z in (0.0, -0.0)]
    program = compile_expression(call("||", tuple(texts), pa.string(), fallible=True), _SCHEMA)
    assert run(program, _TABLE).to_pylist() == ["0.0-0.0"] * 3


def test_fields_of_structs() -> None:
    assert difference("st.k", _TABLE) is None
    assert difference("st.k + 1 > 1 OR st.k IS NULL", _TABLE) is None
    assert difference("named_struct('a', a, 'k', st.k).k", _TABLE) is None
    assert difference("st", _TABLE) is None


def test_a_tree_without_text() -> None:
    node = call("+", (Column(None, ("a",), pa.int32()), Column(None, ("a",), pa.int32())), pa.int32(), fallible=True)
    program = compile_expression(node, _SCHEMA)
    assert program.text == "+(a, a)" and run(program, _TABLE).to_pylist() == [2, None, 6]


def test_programs_are_shared_by_threads() -> None:
    program = _program("CASE WHEN a > 1 THEN a * 2 ELSE length(s) END + sort_array(array(a, 2))[0]")
    assert not program.native
    columns = columns_of(_TABLE)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: program.run(columns, 3).to_arrow().to_pylist(), range(40)))
    assert all(f == found[0] for f in found)


def test_exports_are_exact() -> None:
    assert sorted(vectorised.__all__) == vectorised.__all__
    assert all(hasattr(vectorised, name) for name in vectorised.__all__)

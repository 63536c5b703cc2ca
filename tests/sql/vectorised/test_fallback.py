"""What has no kernel goes to DuckDB: in one query for the parts that are reached together, for no other rows, and with its errors."""

from __future__ import annotations

import pyarrow as pa
import pytest

from headwater.base.errors import ExpressionError
from headwater.sql.expressions import parse
from headwater.sql.vectorised import compile_expression
from headwater.sql.vectorised.fallback import Group

from .agreement import columns_of, difference, run

_TABLE = pa.table(
    {
        "a": pa.array([1, 2, None, 4], pa.int32()),
        "s": pa.array(["1", "2.5", None, "x"]),
        "xs": pa.array([[1, 2], [], None, [3]], pa.list_(pa.int32())),
    }
)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows each query was asked for."""
    rows: list[int] = []
    real = Group._run

    def counting(self: Group, table: pa.Table) -> list[pa.ChunkedArray]:
        rows.append(table.num_rows)
        return real(self, table)

    monkeypatch.setattr(Group, "_run", counting)
    return rows


@pytest.mark.parametrize(
    ("text", "queries"),
    [
        ("size(xs) + array_max(xs)", [4]),
        ("size(xs) > 1 OR a > 1", [4]),
        ("size(xs) + size(array(a, a * 2)) > size(xs)", [4]),
        ("CASE WHEN a > 1 THEN size(xs) ELSE array_max(xs) END", [2, 2]),
        ("CASE WHEN a > 100 THEN size(xs) ELSE 0 END", []),
        ("a > 1 AND size(xs) = 0 AND size(array(a)) = 1", [3, 2]),
        ("size(array(size(xs) + 1, a))", [4, 4]),
        ("coalesce(a, size(xs))", [1]),
        ("transform(xs, x -> x + a * 2)", [4]),
        ("size(xs) = 1 OR (a > 1 AND size(xs) = 0)", [4]),
        ("(a > 1 AND size(xs) = 0) OR size(xs) = 1", [3, 3]),
    ],
)
def test_how_often_and_for_how_many_rows(text: str, queries: list[int], asked: list[int]) -> None:
    program = compile_expression(parse(text, schema=_TABLE.schema), _TABLE.schema)
    assert not program.native
    run(program, _TABLE)
    assert asked == queries
    found = difference(text, _TABLE)
    assert found is None, found


def test_what_has_a_kernel_is_handed_over_as_a_column() -> None:
    program = compile_expression(parse("size(array(a * 2, length(upper(s))))", schema=_TABLE.schema), _TABLE.schema)
    (group,) = program._compiler.groups.values()
    assert "upper" not in group.sql and "*" not in group.sql and group.names == ["c0", "c1"]


def test_an_error_names_the_row_and_the_whole_text() -> None:
    text = "a + 1 > 0 AND CAST(s AS decimal(5,1)) > 1"
    program = compile_expression(parse(text, schema=_TABLE.schema), _TABLE.schema)
    assert not program.native
    with pytest.raises(ExpressionError) as caught:
        program.run(columns_of(_TABLE), 4)
    assert caught.value.row == 3 and text in str(caught.value)

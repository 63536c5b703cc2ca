"""Constraints: what every row of a table must meet, checked before anything is written.

NOT NULL columns, CHECK constraints and generated columns are promises the table makes to all its readers. Delta
leaves them to its writers, so every path that writes rows here goes through `enforce`.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from headwater.base.errors import ConstraintError
from headwater.base.schema import DeltaType, Field, Schema
from headwater.lake.conform import Rows
from headwater.sql import expressions

__all__ = ["enforce"]


def enforce(rows: Rows, schema: Schema, checks: dict[str, str], where: str) -> Rows:
    """``rows`` with generated columns filled in, and an error at the first batch that breaks a rule."""
    names = [f.name for f in rows.schema]
    absent = [f for f in schema.fields if f.name not in names]
    assert all(f.generation for f in absent), "only generated columns may be left out"
    if not checks and not any(f.generation or not f.nullable or _requires(f.type) for f in schema.fields):
        return rows
    # Of a generated column the expression may use all others, so they are parsed against the whole schema.
    parsed = {name: expressions.parse_condition(text, schema=schema.arrow) for name, text in checks.items()}
    generated = {f.name: expressions.parse(f.generation, schema=schema.arrow) for f in schema.fields if f.generation}
    target = pa.schema([f.arrow.with_nullable(True) for f in schema.fields])

    def checked() -> Iterator[pa.RecordBatch]:
        for batch in rows.batches:
            table = pa.Table.from_batches([batch])
            for f in absent:
                values = expressions.evaluate(generated[f.name], table)
                table = table.append_column(f.name, pc.cast(values, f.arrow.type))
            table = table.select(schema.names).cast(target)
            for name, expression in generated.items():
                if name in names:
                    _check_generated(table, name, expression, where)
            _check_nulls(table, schema, where)
            for name, expression in parsed.items():
                _check(table, name, expression, where)
            yield from table.combine_chunks().to_batches()

    return Rows(target, checked())


def _check_nulls(table: pa.Table, schema: Schema, where: str) -> None:
    for f in schema.fields:
        if not f.nullable and table[f.name].null_count:
            raise ConstraintError.not_null(f.name, table[f.name].null_count, where)
        if _requires(f.type):
            for chunk in table[f.name].chunks:
                _check_inside(chunk, f.type, f.name, where)


def _requires(dtype: DeltaType) -> bool:
    """Whether something inside a nested type is NOT NULL."""
    return any(not f.nullable or _requires(f.type) for f in _inside(dtype))


def _inside(dtype: DeltaType) -> list[Field]:
    """The parts of a nested type, an array's elements and a map's values among them."""
    if isinstance(dtype, str):
        return []
    if dtype["type"] == "struct":
        return [Field.from_json(f) for f in dtype["fields"]]
    if dtype["type"] == "array":
        return [Field("element", dtype["elementType"], dtype.get("containsNull", True))]
    return [Field("key", dtype["keyType"]), Field("value", dtype["valueType"], dtype.get("valueContainsNull", True))]


def _check_inside(array: pa.Array, dtype: DeltaType, path: str, where: str) -> None:
    present = array.take(pc.indices_nonzero(array.is_valid()))
    if pa.types.is_struct(array.type):
        parts = present.flatten()
    elif pa.types.is_list(array.type):
        parts = [present.flatten()]
    else:
        parts = [present.keys, present.items]
    for f, values in zip(_inside(dtype), parts, strict=True):
        if not f.nullable and values.null_count:
            raise ConstraintError.not_null(f"{path}.{f.name}", values.null_count, where)
        if _requires(f.type):
            _check_inside(values, f.type, f"{path}.{f.name}", where)


def _check(table: pa.Table, name: str, expression: expressions.Expression, where: str) -> None:
    # A CHECK holds unless it is false; unknown passes, as in SQL. Delta's own rule is stricter: only true passes.
    met = pc.fill_null(expressions.evaluate(expression, table), False)
    broken = table.num_rows - (pc.sum(met).as_py() or 0)
    if broken:
        raise ConstraintError.check(name, expression.text, broken, where)


def _check_generated(table: pa.Table, name: str, expression: expressions.Expression, where: str) -> None:
    expected = pc.cast(expressions.evaluate(expression, table), table[name].type)
    both_null = pc.and_(pc.is_null(expected), pc.is_null(table[name]))
    same = pc.or_(pc.fill_null(pc.equal(expected, table[name]), False), both_null)
    broken = table.num_rows - (pc.sum(same).as_py() or 0)
    if broken:
        raise ConstraintError.generated(name, expression.text, broken, where)

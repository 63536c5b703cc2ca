"""Where rows come from: the tables of the query, rows written in it, and range()."""

from __future__ import annotations

from headwater.sql.analyzed.reading import Reading, Rows, Scope, plan
from headwater.sql.analyzed.tree import Tree
from headwater.sql.casts import cast
from headwater.sql.nodes import Literal, Node, Refused, call
from headwater.sql.plan import Generate, Limit, Plan, Scan, Values
from headwater.sql.types import LONG, array_of

__all__: list[str] = []

_MOST = 1_000_000


@plan("Relation")
def _relation(reading: Reading, tree: Tree, _: Scope | None) -> Rows:
    columns, ids = reading.declared(tree.trees("output"))
    return Rows(Scan(str(tree.fields["name"]), None, None, columns), ids)


@plan("OneRowRelation")
def _one_row(_: Reading, __: Tree, ___: Scope | None) -> Rows:
    return Rows(Values(((),), ()), ())


@plan("LocalRelation")
def _values(reading: Reading, tree: Tree, around: Scope | None) -> Rows:
    columns, ids = reading.declared(tree.trees("output"))
    reader = reading.expressions(Rows(Values(((),), ()), ()), around)
    rows: list[tuple[Node, ...]] = []
    for row in tree.trees("rows"):
        value = row.children[0] if row.kind == "Alias" else row
        # A row of several columns is a struct: names and values in turn.
        parts = value.children[1::2] if len(columns) != 1 else (value,)
        rows.append(tuple(cast(reader.read(p), c.dtype) for p, c in zip(parts, columns, strict=True)))
    if not rows:
        raise Refused("VALUES without rows", "write a query with WHERE false")
    return Rows(Values(tuple(rows), columns), ids)


@plan("Range")
def _range(reading: Reading, tree: Tree, _: Scope | None) -> Rows:
    start, end, step = (int(tree.fields[k]) for k in ("start", "end", "step"))
    numbers = range(start, end, step)
    if len(numbers) > _MOST:
        raise Refused(f"a range() of {len(numbers)} numbers", f"ask for at most {_MOST}")
    last = numbers[-1] if numbers else start
    bounds = (Literal(start, LONG), Literal(last, LONG), Literal(step if numbers else 1, LONG))
    (column,), ids = reading.declared(tree.trees("output"))
    made: Plan = Generate(Values(((),), ()), call("sequence", bounds, array_of(LONG)), False, None, (column,))
    return Rows(made if numbers else Limit(made, 0, 0), ids)

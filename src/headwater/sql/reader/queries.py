"""What stands around a SELECT: WITH, UNION, INTERSECT and EXCEPT, VALUES, parentheses, and their ORDER BY and LIMIT."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from headwater.sql.casts import cast
from headwater.sql.nodes import Refused, Wrong
from headwater.sql.plan import Distinct, Named, Plan, Project, Reference, SetOperation, Sort, With
from headwater.sql.reader.clauses import ORDERINGS, check_args, name_of_kind, ordering_clause
from headwater.sql.reader.context import Context
from headwater.sql.reader.expressions import QueryReader
from headwater.sql.reader.recursion import LEVELS, read_recursion, reads_itself
from headwater.sql.reader.relations import read_values
from headwater.sql.reader.scopes import Entry, RowScope
from headwater.sql.reader.select import limited, read_select
from headwater.sql.types import is_key, name_of, wider

__all__ = ["read_query"]

_SETS: dict[type[exp.Expr], str] = {exp.Union: "union", exp.Intersect: "intersect", exp.Except: "except"}


def read_query(context: Context, node: exp.Expr, around: RowScope | None) -> Plan:
    """The plan of any query."""
    try:
        clause = node.args.get("with_")
        if clause is None:
            return _body(context, node, around)
        outer = dict(context.tables)
        try:
            definitions = _definitions(context, clause, around)
            return With(definitions, _body(context, node, around))
        finally:
            context.tables = outer
    except Refused as refused:
        if refused.position is None:
            refused.position = context.position_of(refused, node)
        raise


def _definitions(context: Context, clause: exp.Expr, around: RowScope | None) -> tuple[tuple[str, Plan], ...]:
    check_args(clause, "expressions", "recursive")
    found: list[tuple[str, Plan]] = []
    for cte in clause.expressions:
        check_args(cte, "this", "alias")
        alias = cte.args["alias"]
        check_args(alias, "this", "columns", "levels")
        name = context.name_of(alias.this)
        names = [context.name_of(c) for c in alias.args.get("columns") or ()]
        if clause.args.get("recursive") and reads_itself(cte.this, name):
            recursion = read_recursion(context, cte.this, name, names, around, _levels(alias))
            found.append((recursion.name, recursion))
            continue
        plan = read_query(context, cte.this, around)
        columns = plan.output
        if names:
            if len(names) != len(columns):
                raise Wrong(f"{len(names)} column names are given for {len(columns)} columns", f"give {len(columns)}")
            columns = tuple(replace(a, name=n) for a, n in zip(columns, names, strict=True))
        unique = context.table_name(name)
        context.tables[name.lower()] = Reference(unique, tuple(a.key for a in columns), columns)
        found.append((unique, plan))
    return tuple(found)


def _levels(alias: exp.Expr) -> int:
    """MAX RECURSION LEVEL, where it is given."""
    given = alias.args.get("levels")
    return LEVELS if given is None else int(given.this)


def _body(context: Context, node: exp.Expr, around: RowScope | None) -> Plan:
    if isinstance(node, exp.Select):
        return read_select(context, node, around)
    if isinstance(node, exp.Subquery):
        check_args(node, "this", *ORDERINGS, "limit", "offset", "with_")
        return _ordered(context, node, read_query(context, node.this, around))
    if isinstance(node, exp.Values):
        check_args(node, "expressions", *ORDERINGS, "limit", "offset", "with_")
        return _ordered(context, node, read_values(context, node, around))
    if isinstance(node, exp.Table):
        raise Refused("a table in the place of a query", "write SELECT * FROM it")
    kind = _SETS.get(type(node))
    if kind is None:
        raise Wrong(f"{name_of_kind(node)} is no query", "write a SELECT")
    return _set_operation(context, node, kind, around)


def _set_operation(context: Context, node: exp.Expr, kind: str, around: RowScope | None) -> Plan:
    check_args(node, "this", "expression", "distinct", *ORDERINGS, "limit", "offset", "with_")
    left = read_query(context, node.this, around)
    right = read_query(context, node.expression, around)
    if len(left.output) != len(right.output):
        what = f"{kind.upper()} of {len(left.output)} and {len(right.output)} columns does not go"
        raise Wrong(what, "give both sides the same number of columns", part=node.expression)
    types = []
    for a, b in zip(left.output, right.output, strict=True):
        meet = wider(a.dtype, b.dtype, promote_text=False)
        if meet is None:
            what = f"{kind.upper()} of {name_of(a.dtype)} and {name_of(b.dtype)} in column `{a.name}`"
            raise Refused(what, "cast one side so that both have one type", part=node.expression)
        if not is_key(meet) and not (kind == "union" and node.args.get("distinct") is False):
            raise Refused(f"{kind.upper()} of {name_of(meet)}", "compare its fields")
        types.append(meet)
    left, right = (_cast_to(context, plan, types) for plan in (left, right))
    loose = [a.nullable or b.nullable for a, b in zip(left.output, right.output, strict=True)]
    columns = tuple(context.attribute(a.name, t, nullable=n) for a, t, n in zip(left.output, types, loose, strict=True))
    every = node.args.get("distinct") is False
    plan: Plan = SetOperation(kind, every or kind == "union", left, right, columns)
    if kind == "union" and not every:
        plan = Distinct(plan)
    return _ordered(context, node, plan)


def _cast_to(context: Context, plan: Plan, types: list[object]) -> Plan:
    if [a.dtype for a in plan.output] == types:
        return plan
    items = []
    for attribute, dtype in zip(plan.output, types, strict=True):
        if attribute.dtype == dtype:
            items.append(Named(attribute, attribute.column))
        else:
            items.append(context.named(attribute.name, cast(attribute.column, dtype)))
    return Project(plan, tuple(items))


def _ordered(context: Context, node: exp.Expr, plan: Plan) -> Plan:
    """ORDER BY and LIMIT of a set operation or of a query in parentheses: only its own columns can be named."""
    clause = ordering_clause(node)
    if clause is not None:
        check_args(clause, "expressions")
        scope = RowScope(tuple(Entry((), a) for a in plan.output))
        reader = QueryReader(context, scope, place="ORDER BY")
        keys = []
        for part in clause.expressions:
            key = part.this
            if isinstance(key, exp.Var) and key.name.upper() == "ALL":
                keys += [reader.ordering(part, a.column) for a in plan.output]
                continue
            if isinstance(key, exp.Literal) and not key.is_string:
                if not key.this.isdecimal() or not 1 <= int(key.this) <= len(plan.output):
                    raise Wrong(f"ORDER BY {key.this} names no column", f"there are {len(plan.output)}", part=key)
                keys.append(reader.ordering(part, plan.output[int(key.this) - 1].column))
                continue
            keys.append(reader.ordering(part, reader.read(key)))
        plan = Sort(plan, tuple(keys))
    return limited(context, node, plan)

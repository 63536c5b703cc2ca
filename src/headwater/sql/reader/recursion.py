"""WITH RECURSIVE: a definition that reads itself, as Spark takes it.

It is ``base UNION ALL step``: the base does not read the definition, the step does, and its rows have the base's types.
UNION without ALL stops at rows that are known already; Spark does not have it yet, and engines that do agree on it.
Where a step may read its own rows is Spark's list: not where a row less below could mean a row more above, and not in
aggregates, windows and sorts.
"""

from __future__ import annotations

from sqlglot import exp

from headwater.sql.casts import cast
from headwater.sql.nodes import Refused, Wrong
from headwater.sql.plan import (
    Aggregate,
    Join,
    Limit,
    Named,
    Plan,
    Project,
    Recursion,
    Reference,
    SetOperation,
    Sort,
    Window,
)
from headwater.sql.reader.clauses import check_args
from headwater.sql.reader.context import Context
from headwater.sql.reader.scopes import RowScope
from headwater.sql.types import is_key, name_of, wider

__all__ = ["LEVELS", "read_recursion", "reads_itself"]

# Spark stops a recursion of more levels, unless MAX RECURSION LEVEL says otherwise.
LEVELS = 100
_FORM = "write base UNION ALL step, with the definition's own name in the step only"


def reads_itself(node: exp.Expr, name: str) -> bool:
    """Does a definition's text name the definition?"""
    return any(_is_named(t, name) for t in node.find_all(exp.Table))


def _is_named(table: exp.Expr, name: str) -> bool:
    return not table.args.get("db") and isinstance(table.this, exp.Identifier) and table.name.lower() == name.lower()


def read_recursion(
    context: Context, node: exp.Expr, name: str, names: list[str], around: RowScope | None, levels: int | None
) -> Recursion:
    """The plan of ``base UNION [ALL] step``; the definition is known under its name from then on."""
    while isinstance(node, exp.Subquery) and not any(v for k, v in node.args.items() if k != "this"):
        node = node.this
    if not isinstance(node, exp.Union) or reads_itself(node.this, name):
        raise Wrong(f"the definition `{name}` reads itself in another form than WITH RECURSIVE has", _FORM)
    check_args(node, "this", "expression", "distinct", "order", "limit", "offset")
    if any(node.args.get(k) for k in ("order", "limit", "offset")):
        raise Wrong("a recursion cannot have ORDER BY or LIMIT of its own", "put them into the query that reads it")
    every = node.args.get("distinct") is False
    base = context.read_query(context, node.this, around)
    given = names or [a.name for a in base.output]
    if len(given) != len(base.output):
        raise Wrong(f"{len(given)} column names are given for {len(base.output)} columns", f"give {len(base.output)}")
    pairs = zip(base.output, given, strict=True)
    # A step may give a null where the base has none.
    columns = tuple(context.attribute(n, a.dtype) for a, n in pairs)
    if not every and not all(is_key(a.dtype) for a in columns):
        raise Refused("a recursion by UNION of columns that cannot be compared", "use UNION ALL")
    unique = context.table_name(name)
    context.tables[name.lower()] = Reference(unique, tuple(a.key for a in columns), columns)
    step = context.read_query(context, node.expression, around)
    if len(step.output) != len(columns):
        what = f"the step of a recursion gives {len(step.output)} columns, its base {len(columns)}"
        raise Wrong(what, "give both the same number of columns")
    _check_places(step, unique)
    return Recursion(unique, columns, base, _of_types(context, step, columns), every, levels)


def _of_types(context: Context, step: Plan, columns: tuple[object, ...]) -> Plan:
    items = []
    for attribute, column in zip(step.output, columns, strict=True):
        dtype = column.dtype  # type: ignore[attr-defined]
        if attribute.dtype == dtype:
            items.append(Named(attribute, attribute.column))
            continue
        if wider(attribute.dtype, dtype, promote_text=False) != dtype:
            what = (
                f"column `{attribute.name}` of a recursion is {name_of(dtype)} in the base and "
                f"{name_of(attribute.dtype)} in the step"
            )
            raise Wrong(what, f"cast it in the base to {name_of(attribute.dtype)}, or in the step to {name_of(dtype)}")
        items.append(context.named(attribute.name, cast(attribute.column, dtype)))
    changed = any(i.attribute != a for i, a in zip(items, step.output, strict=True))
    return Project(step, tuple(items)) if changed else step


def _reads(plan: Plan, name: str) -> bool:
    return any(isinstance(p, Reference) and p.name == name for p in plan.walk())


def _check_places(plan: Plan, name: str) -> None:
    """Refuse the recursion's own rows where fewer of them could mean more above."""
    if not _reads(plan, name):
        return
    bad: tuple[Plan, ...] = ()
    if isinstance(plan, Aggregate | Window | Sort | Limit):
        bad = plan.children
    elif isinstance(plan, Join):
        sides = {"left": (plan.right,), "semi": (plan.right,), "anti": (plan.right,), "right": (plan.left,)}
        bad = plan.children if plan.kind == "full" else sides.get(plan.kind, ())
    elif isinstance(plan, SetOperation) and plan.kind == "except":
        bad = (plan.right,)
    if any(_reads(p, name) for p in bad):
        where = "in an aggregate, a window function, ORDER BY, LIMIT, EXCEPT, or on the optional side of a join"
        raise Wrong(f"a recursion cannot read its own rows {where}", "join with them, or filter them")
    for child in plan.children:
        _check_places(child, name)

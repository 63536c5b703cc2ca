"""FROM: tables, subqueries, rows written out, joins and lateral views, and what their columns are called."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

import pyarrow as pa
from sqlglot import exp

from headwater.base.errors import NotFoundError
from headwater.sql.casts import cast
from headwater.sql.match_grammar import RowPatternTable
from headwater.sql.nodes import Call, Literal, Named, Node, Refused, Wrong, call
from headwater.sql.operators import compare, logic, united
from headwater.sql.plan import Attribute, Join, Plan, Project, Scan, Values
from headwater.sql.reader.clauses import check_args, name_of_kind
from headwater.sql.reader.context import Context
from headwater.sql.reader.expressions import QueryReader
from headwater.sql.reader.generators import generated, is_generator
from headwater.sql.reader.matches import read_match
from headwater.sql.reader.pivot import pivoted
from headwater.sql.reader.ranges import read_range
from headwater.sql.reader.scopes import Entry, RowScope
from headwater.sql.types import BOOLEAN, TIMESTAMP, column_type

__all__ = ["Source", "check_args", "read_from", "read_values"]

_KINDS = {
    ("", ""): "inner",
    ("", "INNER"): "inner",
    ("", "CROSS"): "cross",
    ("LEFT", ""): "left",
    ("LEFT", "OUTER"): "left",
    ("RIGHT", ""): "right",
    ("RIGHT", "OUTER"): "right",
    ("FULL", ""): "full",
    ("FULL", "OUTER"): "full",
    ("LEFT", "SEMI"): "semi",
    ("", "SEMI"): "semi",
    ("LEFT", "ANTI"): "anti",
    ("", "ANTI"): "anti",
}


class Source:
    """A plan and the names of its columns."""

    def __init__(self, plan: Plan, entries: tuple[Entry, ...]) -> None:
        self.plan = plan
        self.entries = entries


def read_from(context: Context, select: exp.Expr, around: RowScope | None) -> Source:
    """The FROM clause of a SELECT, its joins and lateral views; without one, a single row without columns."""
    clause = select.args.get("from_")
    if clause is None:
        source = Source(Values(((),), ()), ())
    else:
        check_args(clause, "this")
        source = _relation(context, clause.this, around)
    for join in select.args.get("joins") or ():
        source = _join(context, source, join, around)
    for lateral in select.args.get("laterals") or ():
        source = _lateral_view(context, source, lateral, around)
    return source


def _relation(context: Context, node: exp.Expr, around: RowScope | None) -> Source:
    try:
        if isinstance(node, exp.Table):
            source = _table(context, node)
        elif isinstance(node, exp.Subquery) and isinstance(node.this, exp.Table):
            check_args(node, "this")
            source = _relation(context, node.this, around)
        elif isinstance(node, exp.Subquery):
            check_args(node, "this", "alias", "joins", "pivots")
            source = _derived(context, node, around)
        elif isinstance(node, exp.Values):
            check_args(node, "expressions", "alias", "pivots", "joins")
            source = _aliased(context, read_values(context, node, around), node.args.get("alias"), ())
        elif isinstance(node, RowPatternTable):
            below = _relation(context, node.this, None)
            source = _aliased(context, read_match(context, below.plan, below.entries, node), node.args.get("alias"), ())
        else:
            raise Refused(f"{name_of_kind(node)} in FROM", "name a table, or write a subquery")
        for pivot in node.args.get("pivots") or ():
            plan, entries = pivoted(context, source.plan, source.entries, pivot)
            source = Source(plan, entries)
            if pivot.args.get("alias") is not None:
                check_args(pivot.args["alias"], "this")
                source = _aliased(context, source.plan, pivot.args["alias"], ())
    except Refused as refused:
        if refused.position is None:
            refused.position = context.position_of(refused, node)
        raise
    for join in node.args.get("joins") or ():
        source = _join(context, source, join, around)
    return source


def _derived(context: Context, node: exp.Expr, around: RowScope | None) -> Source:
    # A subquery in FROM does not see its neighbours, only what is around the whole query.
    plan = context.read_query(context, node.this, around)
    return _aliased(context, plan, node.args.get("alias"), ())


def _aliased(context: Context, plan: Plan, alias: exp.Expr | None, name: tuple[str, ...]) -> Source:
    qualifier, columns = name, plan.output
    if alias is not None:
        check_args(alias, "this", "columns")
        if alias.this is not None:
            qualifier = (context.name_of(alias.this),)
        renamed = [context.name_of(c) for c in alias.args.get("columns") or ()]
        if renamed and len(renamed) != len(columns):
            hint = f"give {len(columns)}"
            raise Wrong(f"{len(renamed)} column names are given for {len(columns)} columns", hint)
        if renamed:
            columns = tuple(replace(a, name=n) for a, n in zip(columns, renamed, strict=True))
    return Source(plan, tuple(Entry(qualifier, a) for a in columns))


def _table(context: Context, node: exp.Expr) -> Source:
    check_args(node, "this", "db", "catalog", "alias", "version", "joins", "pivots")
    called = node.this if isinstance(node.this, exp.Anonymous) else None
    if called is not None and called.name.lower() == "identifier" and len(called.expressions) == 1:
        reader = QueryReader(context, RowScope(()), place="IDENTIFIER")
        parts = context.identifier(reader.read(called.expressions[0]))
    elif not isinstance(node.this, exp.Identifier):
        return _table_function(context, node)
    else:
        parts = tuple(context.name_of(p) for p in node.parts)  # type: ignore[attr-defined]
    known = context.tables.get(parts[0].lower()) if len(parts) == 1 else None
    version = node.args.get("version")
    if known is not None and version is None:
        return _aliased(context, context.copied(known), node.args.get("alias"), parts)
    number, moment = _travel(context, version)
    name = ".".join(parts)
    try:
        schema = context.schema_of(name, number, moment)
    except NotFoundError as error:
        raise error.placed_at(context.text, context.position(node)) from None
    columns = tuple(_column(context, f) for f in schema)
    return _aliased(context, Scan(name, number, moment, columns), node.args.get("alias"), parts)


def _table_function(context: Context, node: exp.Expr) -> Source:
    if isinstance(node.this, exp.Anonymous) and node.this.name.lower() == "range":
        plan = read_range(context, node.this)
        return _aliased(context, plan, node.args.get("alias"), ())
    if isinstance(node.this, exp.Anonymous) and is_generator(node.this.name):
        plan = generated(context, Values(((),), ()), (), node.this, (), outer=False, around=None)
        return _aliased(context, plan, node.args.get("alias"), ())
    if not isinstance(node.this, exp.Anonymous) or context.functions is None:
        raise Refused("a table function", "name a table, or write LATERAL VIEW explode(…)")
    reader = QueryReader(context, RowScope(()), place="the arguments of a table function")
    arguments = []
    for given in node.this.expressions:
        named = isinstance(given, exp.Kwarg)
        value = reader.read(given.expression if named else given)
        if not isinstance(value, Literal):
            raise Refused("an argument of a table function that is no constant", "write a number or a text")
        arguments.append((str(given.this.name).lower() if named else None, value.value))
    name = str(node.this.name).lower()
    schema = context.functions(name, tuple(arguments))
    columns = tuple(_column(context, f) for f in schema)
    return _aliased(context, Scan(name, None, None, columns, tuple(arguments)), node.args.get("alias"), (name,))


def _column(context: Context, field: pa.Field) -> Attribute:
    # A column of a type that Spark does not have may be there, as long as nobody reads it.
    dtype = column_type(field.type) or field.type
    return context.attribute(field.name, dtype, nullable=field.nullable)


def _travel(context: Context, node: exp.Expr | None) -> tuple[int | None, datetime | None]:
    if node is None:
        return None, None
    check_args(node, "this", "expression", "kind")
    value = QueryReader(context, RowScope(()), place="VERSION AS OF").read(node.expression)
    if node.args.get("kind") != "AS OF" or not isinstance(value, Literal):
        raise Wrong("this is no form of time travel", "write VERSION AS OF 3 or TIMESTAMP AS OF '2024-01-31'")
    if str(node.this).upper() == "VERSION":
        if not isinstance(node.expression, exp.Literal | exp.Placeholder | exp.Neg):
            raise Wrong("a version is a whole number, from 0 up", "write VERSION AS OF 3")
        text = value.value
        number = int(text) if isinstance(text, str) and text.isdecimal() else text
        if not isinstance(number, int) or isinstance(number, bool) or number < 0:
            raise Wrong("a version is a whole number, from 0 up", "write VERSION AS OF 3")
        return number, None
    moment = cast(value, TIMESTAMP)
    if not isinstance(moment, Literal) or not isinstance(moment.value, datetime):
        raise Wrong("the timestamp of a time travel is a constant", "write TIMESTAMP AS OF '2024-01-31 12:00:00'")
    return None, moment.value.astimezone(UTC)


def read_values(context: Context, node: exp.Expr, around: RowScope | None) -> Plan:
    """``VALUES (1, 'a'), (2, 'b')``: columns col1, col2, … of the types that all rows meet in."""
    reader = QueryReader(context, RowScope((), around=around), place="VALUES")
    rows = [
        [reader.read(e) for e in (row.expressions if isinstance(row, exp.Tuple) else [row])] for row in node.expressions
    ]
    if len({len(r) for r in rows}) != 1:
        raise Wrong("the rows of VALUES have different lengths", "give each row the same number of values")
    columns = [united(column, "a column of VALUES", promote_text=False) for column in zip(*rows, strict=True)]
    names = tuple(context.named(f"col{i + 1}", c[0]).attribute for i, c in enumerate(columns))
    names = tuple(replace(a, nullable=True) for a in names)
    return Values(tuple(zip(*columns, strict=True)), names)


def _join(context: Context, left: Source, node: exp.Expr, around: RowScope | None) -> Source:
    check_args(node, "this", "side", "kind", "on", "using", "method")
    kind = _KINDS.get((str(node.args.get("side") or "").upper(), str(node.args.get("kind") or "").upper()))
    method = str(node.args.get("method") or "").upper()
    if kind is None or method not in ("", "NATURAL"):
        raise Wrong("there is no join of this kind", "use INNER, LEFT, RIGHT, FULL, LEFT SEMI, LEFT ANTI or CROSS JOIN")
    if isinstance(node.this, exp.Lateral):
        if kind not in ("inner", "cross", "left") or method or node.args.get("using"):
            raise Wrong("LATERAL stands behind a comma, JOIN, CROSS JOIN or LEFT JOIN only", "use one of these")
        if isinstance(node.this.this, exp.Anonymous):
            return _lateral_function(context, left, node, kind, around)
        right = _lateral(context, left, node.this, around)
    else:
        right = _relation(context, node.this, around)
    if method == "NATURAL" and (node.args.get("on") or node.args.get("using")):
        part = node.args.get("on") or node.args["using"][0]
        raise Wrong("a NATURAL JOIN has no condition", "leave out NATURAL, or the condition", part=part)
    on, using = node.args.get("on"), [context.name_of(u) for u in node.args.get("using") or ()]
    if method == "NATURAL":
        theirs = {e.attribute.name.lower() for e in right.entries if not e.hidden}
        using = [e.attribute.name for e in left.entries if not e.hidden and e.attribute.name.lower() in theirs]
        if not using and kind in ("inner", "cross"):
            kind = "cross"
    if using:
        places = {context.name_of(u): u for u in node.args.get("using") or ()}
        return _using(context, kind, left, right, using, places)
    if on is None:
        if kind not in ("inner", "cross"):
            condition: Node | None = Literal(True, BOOLEAN)
        else:
            kind, condition = "cross", None
    else:
        if kind == "cross":
            kind = "inner"
        scope = RowScope(left.entries + right.entries, around=around)
        condition = QueryReader(context, scope, place="a join condition").condition(on, "a join condition")
    plan = Join(kind, left.plan, right.plan, condition)
    entries = left.entries if kind in ("semi", "anti") else left.entries + right.entries
    return Source(plan, _refreshed(entries, plan))


def _refreshed(entries: tuple[Entry, ...], plan: Plan) -> tuple[Entry, ...]:
    """The entries with the nullability that the join gave to their columns."""
    loose = {a.key: a.nullable for a in plan.output}
    return tuple(replace(e, attribute=replace(e.attribute, nullable=loose[e.attribute.key])) for e in entries)


def _using(
    context: Context, kind: str, left: Source, right: Source, using: list[str], written: Mapping[str, exp.Expr]
) -> Source:
    keys: list[tuple[Entry, Entry]] = []
    for name in using:
        sides = []
        for source in (left, right):
            found = [e for e in source.entries if not e.hidden and e.attribute.name.lower() == name.lower()]
            if len(found) != 1:
                what = f"USING ({name}) fits {len(found)} columns of one side, not one"
                raise Wrong(what, "join with ON", part=written.get(name))
            sides.append(found[0])
        keys.append((sides[0], sides[1]))
    pairs = [compare("=", a.attribute.column, b.attribute.column) for a, b in keys]
    condition: Node = pairs[0] if len(pairs) == 1 else logic("and", pairs)
    plan: Plan = Join("inner" if kind == "cross" else kind, left.plan, right.plan, condition)
    if kind in ("semi", "anti"):
        return Source(plan, left.entries)
    entries = _refreshed(left.entries + right.entries, plan)
    by_key = {e.attribute.key: e for e in entries}
    mine = {a.attribute.key for a, _ in keys}
    theirs = {b.attribute.key for _, b in keys}
    merged: list[Entry] = []
    if kind == "full":
        items = [Named(e.attribute, e.attribute.column) for e in entries]
        for a, b in keys:
            both = united([a.attribute.column, b.attribute.column], "USING")
            whole: Call = call("coalesce", both, both[0].dtype)
            named = context.named(a.attribute.name, whole)
            items.append(named)
            merged.append(Entry((), named.attribute))
        plan = Project(plan, tuple(items))
        hidden = mine | theirs
    else:
        side, hidden = (1, mine) if kind == "right" else (0, theirs)
        merged = [by_key[pair[side].attribute.key] for pair in keys]
        hidden = mine | theirs
    kept = {e.attribute.key for e in merged}
    others = [e for e in entries if e.attribute.key not in hidden]
    aside = [replace(e, hidden=True) for e in entries if e.attribute.key in hidden and e.attribute.key not in kept]
    return Source(plan, (*merged, *others, *aside))


def _lateral(context: Context, left: Source, node: exp.Expr, around: RowScope | None) -> Source:
    """``LATERAL (SELECT …)``: a subquery that reads the columns to its left."""
    check_args(node, "this", "alias")
    if not isinstance(node.this, exp.Subquery):
        raise Refused("this LATERAL", "write LATERAL (SELECT …), or LATERAL explode(xs)")
    check_args(node.this, "this", "alias")
    plan = context.read_query(context, node.this.this, RowScope(left.entries, around=around))
    theirs = {a.key for a in left.plan.output}
    if any(a.key in theirs for a in plan.output):
        # A column of the left side that is handed on is another column here.
        again = [context.attribute(a.name, a.dtype, nullable=a.nullable) for a in plan.output]
        plan = Project(plan, tuple(Named(b, a.column) for a, b in zip(plan.output, again, strict=True)))
    return _aliased(context, plan, node.args.get("alias") or node.this.args.get("alias"), ())


def _lateral_function(context: Context, left: Source, node: exp.Expr, kind: str, around: RowScope | None) -> Source:
    """``LATERAL explode(xs)``: the elements beside each row, as LATERAL VIEW has them."""
    lateral, on = node.this, node.args.get("on")
    check_args(lateral, "this", "alias")
    if on is not None and not (isinstance(on, exp.Boolean) and on.this):
        raise Refused("LATERAL of a function with a condition", "put the condition into WHERE")
    alias = lateral.args.get("alias")
    names = [] if alias is None else [context.name_of(c) for c in alias.args.get("columns") or ()]
    plan = generated(context, left.plan, left.entries, lateral.this, names, outer=kind == "left", around=around)
    qualifier = (context.name_of(alias.this),) if alias is not None and alias.this is not None else ()
    added = plan.output[len(left.plan.output) :]
    return Source(plan, (*left.entries, *(Entry(qualifier, a) for a in added)))


def _lateral_view(context: Context, source: Source, node: exp.Expr, around: RowScope | None) -> Source:
    check_args(node, "this", "view", "outer", "alias")
    alias = node.args.get("alias")
    if not node.args.get("view") or alias is None or not isinstance(node.this, exp.Anonymous):
        raise Refused("this LATERAL", "write LATERAL VIEW explode(xs) t AS x")
    names = [context.name_of(c) for c in alias.args.get("columns") or ()]
    outer = bool(node.args.get("outer"))
    plan = generated(context, source.plan, source.entries, node.this, names, outer=outer, around=around)
    qualifier = (context.name_of(alias.this),) if alias.this is not None else ()
    added = plan.output[len(source.plan.output) :]
    return Source(plan, (*source.entries, *(Entry(qualifier, a) for a in added)))

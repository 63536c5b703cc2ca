"""PIVOT and UNPIVOT in FROM, rewritten to plans that are there already.

PIVOT groups by every column that neither its aggregates nor its FOR names, and gives one column for each value of its
list and each aggregate. Spark does that in two ways, which differ, so both are here. Where all aggregates are numbers
or booleans it aggregates by group and value first and then spreads the answers: a value that a group does not have is
null, even under count(*). Otherwise it aggregates once, over ``if(column <=> value, x, null)``: there count(*) of
nothing is 0, and first() skips nulls.

UNPIVOT makes a row of each column in its list: an array of structs (name, values) that is exploded, without the rows
whose values are all null unless INCLUDE NULLS is said.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal

from sqlglot import exp

from headwater.sql.calls import apply_function
from headwater.sql.casts import cast
from headwater.sql.functions.struct import field_of
from headwater.sql.literals import text_literal
from headwater.sql.nodes import AggregateCall, Column, Literal, Node, Refused, rewrite, walk
from headwater.sql.operators import cases, compare, is_null, logic, negate, united
from headwater.sql.plan import Aggregate, Filter, Generate, Named, Plan, Project
from headwater.sql.reader.column_names import column_name
from headwater.sql.reader.constant_names import constant_name
from headwater.sql.reader.context import Context
from headwater.sql.reader.expressions import QueryReader
from headwater.sql.reader.scopes import Entry, RowScope
from headwater.sql.types import INT, LONG, NULL, family, is_key, name_of

__all__ = ["pivoted"]

_Relation = tuple[Plan, tuple[Entry, ...]]
_SPREAD = {"integer", "float", "decimal", "boolean"}
_ONCE = {"sum", "count", "avg", "min", "max", "first", "last", "first ignore nulls", "last ignore nulls"}
# sqlglot notes here what it would call the columns.
_PARSER_NOTES = {"columns", "identify_pivot_strings", "prefixed_pivot_columns", "pivot_column_naming"}
_KNOWN = {"this", "expressions", "fields", "unpivot", "include_nulls", "alias", "value_columns_first"} | _PARSER_NOTES
_FORM = "write PIVOT (sum(x) FOR c IN (1, 2))"
_UNFORM = "write UNPIVOT (value FOR name IN (a, b))"


def pivoted(context: Context, plan: Plan, entries: tuple[Entry, ...], node: exp.Expr) -> _Relation:
    """The relation that a PIVOT or UNPIVOT makes of one; its alias is the caller's to give."""
    strange = [k for k, v in node.args.items() if v and k not in _KNOWN]
    fields = node.args.get("fields") or []
    if strange or len(fields) != 1 or not isinstance(fields[0], exp.In) or fields[0].args.get("query"):
        raise Refused("this form of PIVOT", _UNFORM if node.args.get("unpivot") else _FORM)
    if any(e.hidden for e in entries):
        raise Refused("PIVOT of a join with USING", "pivot a subquery")
    if node.args.get("unpivot"):
        return _unpivot(context, plan, entries, node, fields[0])
    return _pivot(context, plan, entries, node, fields[0])


def _parts(node: exp.Expr) -> list[exp.Expr]:
    while isinstance(node, exp.Paren):
        node = node.this
    return list(node.expressions) if isinstance(node, exp.Tuple) else [node]


def _unaliased(context: Context, node: exp.Expr) -> tuple[exp.Expr, str | None]:
    if isinstance(node, exp.PivotAlias | exp.Alias):
        return node.this, context.name_of(node.args["alias"])
    return node, None


def _pivot(context: Context, plan: Plan, entries: tuple[Entry, ...], node: exp.Expr, of: exp.Expr) -> _Relation:
    scope = RowScope(entries)
    reader = QueryReader(context, scope)
    outputs: list[tuple[str, Node]] = []
    for given in node.expressions:
        inner, alias = _unaliased(context, given)
        outputs.append((alias if alias is not None else column_name(context, scope, inner, {}), reader.read(inner)))
    columns = [QueryReader(context, scope, place="PIVOT").read(c) for c in _parts(of.this)]
    named = _read_keys([*columns, *(n for _, n in outputs)])
    for _, output in outputs:
        if not any(isinstance(n, AggregateCall) for n in walk(output)):
            raise Refused("a PIVOT without an aggregate", _FORM)
    for column in columns:
        if not isinstance(column, Column) or family(column.dtype) in ("float", "nested"):
            raise Refused(f"PIVOT by {name_of(column.dtype)}", "pivot by a column of texts, whole numbers or dates")
    kept = [e for e in entries if e.attribute.key not in named]
    for entry in kept:
        if not is_key(entry.attribute.dtype):
            raise Refused(f"a PIVOT that groups by {name_of(entry.attribute.dtype)}", "leave the column out first")
    spreads = all(family(n.dtype) in _SPREAD for _, n in outputs)
    aggregates: dict[AggregateCall, Named] = {}
    items: list[Named] = [Named(e.attribute, e.attribute.column) for e in kept]
    seen: set[object] = set()
    for given in of.expressions:
        title, match = _value(context, given, columns, seen)
        for name, output in outputs:
            label = title if len(outputs) == 1 else f"{title}_{name}"
            items.append(context.named(label, _answer(context, output, match, aggregates, spreads=spreads)))
    below = tuple(Named(e.attribute, e.attribute.column) for e in kept)
    made = Project(Aggregate(plan, below, tuple(aggregates.values())), tuple(items))
    new = tuple(Entry((), i.attribute) for i in items[len(kept) :])
    return made, (*kept, *new)


def _read_keys(nodes: Sequence[Node]) -> set[str]:
    return {n.path[0] for node in nodes for n in walk(node) if isinstance(n, Column)}


def _value(context: Context, given: exp.Expr, columns: Sequence[Node], seen: set[object]) -> tuple[str, Node]:
    """What a value of the list is called, and when a row has it."""
    written, alias = _unaliased(context, given)
    reader = QueryReader(context, RowScope(()), place="the values of PIVOT")
    values = [reader.read(v) for v in _parts(written)]
    if len(values) != len(columns):
        raise Refused(f"{len(values)} values for {len(columns)} columns of PIVOT", "give one value a column")
    texts, matches, known = [], [], []
    for value, column in zip(values, columns, strict=True):
        same = value if value.dtype in (column.dtype, NULL) else cast(value, column.dtype)
        if same.dtype == NULL:
            same = Literal(None, column.dtype)
        text = _text(value)
        if not isinstance(same, Literal) or (alias is None and text is None):
            raise Refused(
                "a value of PIVOT that is no plain constant", "write constants, with AS where they need a name"
            )
        known.append(same.value)
        texts.append(text or "")
        matches.append(compare("<=>", column, same))
    if tuple(known) in seen:
        raise Refused("a value of PIVOT that is there twice", "name each value once")
    seen.add(tuple(known))
    title = texts[0] if len(texts) == 1 else "{" + ", ".join(texts) + "}"
    return title if alias is None else alias, matches[0] if len(matches) == 1 else logic("and", matches)


def _text(value: Node) -> str | None:
    """A constant as a text, or None if its text is not known."""
    if not isinstance(value, Literal):
        return None
    if value.value is None:
        return "null"
    if isinstance(value.value, str | date) and not isinstance(value.value, datetime):
        return str(value.value)
    return constant_name(value) if isinstance(value.value, bool | int | Decimal) else None


def _answer(
    context: Context, output: Node, match: Node, aggregates: dict[AggregateCall, Named], *, spreads: bool
) -> Node:
    def taken(call: AggregateCall) -> Node:
        if call not in aggregates:
            aggregates[call] = context.named(call.op, call)
        return aggregates[call].attribute.column

    def change(node: Node) -> Node | None:
        if isinstance(node, AggregateCall):
            if not spreads and node.op not in _ONCE:
                raise Refused(f"{node.op}() in a PIVOT of texts or dates", "aggregate with CASE WHEN … END instead")
            skips = not spreads and node.op in ("first", "last")
            where = match if node.where is None else logic("and", [match, node.where])
            return taken(replace(node, op=f"{node.op} ignore nulls" if skips else node.op, where=where))
        if isinstance(node, Column):
            raise Refused("a column outside an aggregate in PIVOT", _FORM)
        return None

    found = rewrite(output, change)
    if not spreads:
        return found
    rows = taken(AggregateCall("count", (), LONG, where=match))
    return cases([(compare(">", rows, Literal(0, INT)), found)], None)


def _unpivot(context: Context, plan: Plan, entries: tuple[Entry, ...], node: exp.Expr, of: exp.Expr) -> _Relation:
    if len(node.expressions) != 1 or not isinstance(of.this, exp.Identifier):
        raise Refused("this form of UNPIVOT", _UNFORM)
    names = [context.name_of(n) for n in _parts(node.expressions[0])]
    reader = QueryReader(context, RowScope(entries), place="UNPIVOT")
    labels: list[str] = []
    rows: list[list[Node]] = []
    for given in of.expressions:
        written, alias = _unaliased(context, given)
        row = [reader.read(c) for c in _parts(written)]
        if len(row) != len(names):
            raise Refused(f"{len(row)} columns for {len(names)} values of UNPIVOT", _UNFORM)
        if not all(isinstance(c, Column) and len(c.path) == 1 for c in row):
            raise Refused("UNPIVOT of something else than columns", "compute it in a subquery first")
        titles = [a.attribute.name for c in row for a in entries if a.attribute.column == c]
        labels.append("_".join(titles) if alias is None else alias)
        rows.append(row)
    named = _read_keys([c for row in rows for c in row])
    kept = [e for e in entries if e.attribute.key not in named]
    columns = [united(c, "a value of UNPIVOT", promote_text=False) for c in zip(*rows, strict=True)]
    fields = [f"f{i}" for i in range(len(columns) + 1)]
    structs = []
    for label, *values in zip(labels, *columns, strict=True):
        parts = zip(fields, [text_literal(label), *values], strict=True)
        structs.append(apply_function("named_struct", [p for n, v in parts for p in (text_literal(n), v)]))
    array = apply_function("array", structs)
    whole = context.attribute("element", array.dtype.value_type)
    made: Plan = Generate(plan, array, False, None, (whole,))
    items = [Named(e.attribute, e.attribute.column) for e in kept]
    for name, field in zip([context.name_of(of.this), *names], fields, strict=True):
        items.append(context.named(name, field_of(whole.column, field)))
    made = Project(made, tuple(items))
    if not node.args.get("include_nulls"):
        values = [negate(is_null(i.attribute.column)) for i in items[len(kept) + 1 :]]
        made = Filter(made, values[0] if len(values) == 1 else logic("or", values))
    return made, (*kept, *(Entry((), i.attribute) for i in items[len(kept) :]))

"""The typed tree in DataFusion's SQL: one table of forms a family, and nothing that is not in one of them.

What may fail is written inside `opaque`, so that the optimiser cannot reason it away. Subqueries under IN are told
apart by where they stand: as a condition of its own, IN and an uncorrelated NOT IN know nulls; anywhere else DataFusion
gives FALSE where Spark gives NULL, which only AND and OR forgive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from headwater.base.errors import Action
from headwater.sql.binding import (
    LET,
    WASTE,
    Binder,
    Marks,
    Weights,
    has_many_rows,
    hoisted,
    is_plain,
    is_small,
    naming,
    parts_of_let,
)
from headwater.sql.datafusion import (
    aggregate_forms,
    array_forms,
    moment_forms,
    number_forms,
    operators,
    text_forms,
)
from headwater.sql.datafusion.spelling import literal, opaque, refusal, type_name, zero_free
from headwater.sql.functions.function import Form
from headwater.sql.functions.user import is_user, user_function
from headwater.sql.guarding import guarded
from headwater.sql.nodes import (
    AggregateCall,
    Call,
    Column,
    Frame,
    Literal,
    Node,
    Offset,
    Ordering,
    Refused,
    SubqueryCall,
    WindowCall,
    walk,
)
from headwater.sql.nullability import nullable
from headwater.sql.plan import Plan
from headwater.sql.quoting import quote_identifier
from headwater.sql.types import family

__all__ = ["FORMS", "Expressions"]

_FAMILIES = (operators, text_forms, number_forms, moment_forms, array_forms)
FORMS: dict[str, Form] = {op: form for family_ in _FAMILIES for op, form in family_.FORMS.items()}
_MOST_CHARACTERS = 50_000_000
# The optimiser writes their operands twice.
_DOUBLED = {"substring_index"}
# These hand on what their operands raise, and raise nothing themselves.
_HANDING_ON = {"and", "or", "||", "not", "in", "=", "!=", "<", "<=", ">", ">=", "<=>"}


def _bind_several(parts: Sequence[tuple[str, str]], name: str, body: str) -> str:
    held = ", ".join(f"'{part}', {sql}" for part, sql in parts)
    return f"array_element(array_transform(make_array(named_struct({held})), {name} -> {body}), 1)"


BINDER = Binder(
    lambda sql, name, body: f"array_element(array_transform(make_array({sql}), {name} -> {body}), 1)",
    _bind_several,
    lambda name, part: f"get_field({name}, '{part}')",
)


class Expressions:
    """Writes the expressions of one query; ``whole`` gives the SQL of a subquery's plan."""

    def __init__(self, whole: Callable[[Plan], str]) -> None:
        self.whole = whole
        self.binds = 0
        self._inlined: dict[str, str] = {}
        self._forgiven: set[int] = set()
        self.weights = Weights()
        self._variables: dict[Node, str] = {}

    @contextmanager
    def inlining(self, columns: dict[str, str]) -> Iterator[None]:
        """Meanwhile these columns are written as their expressions."""
        before, self._inlined = self._inlined, {**self._inlined, **columns}
        yield
        self._inlined = before

    def render(self, node: Node) -> str:
        """DataFusion's SQL of a tree."""
        with naming(node):
            return self._written(node)

    def _written(self, node: Node) -> str:
        if isinstance(node, Literal):
            return literal(node.value, node.dtype)
        if isinstance(node, Column):
            sql = self._inlined.get(node.path[0]) or quote_identifier(node.path[0])
            for name in node.path[1:]:
                sql = array_forms.field_of(sql, name)
            return sql
        if isinstance(node, AggregateCall | WindowCall):
            return self._aggregate(node)
        if isinstance(node, SubqueryCall):
            return self._subquery(node)
        if node.op == LET:
            return self._let(node)
        if node.op == "variable" and node in self._variables:
            return self._variables[node]
        if node.op in operators.STOPS and node.fallible:
            return self._in_order(node)
        if node.op == "coalesce":
            return self._coalesce(node)
        marks = Marks()
        for arg in node.args:
            plain = is_plain(arg) and not self._is_inlined(arg)
            marks.add(self._written(arg), plain=plain, weight=self.weights.of(arg))
        doubled = node.op in _DOUBLED and not all(map(is_small, node.args))
        sql = self._filled(marks, self._form(node, marks.texts), always=doubled)
        if len(sql) > _MOST_CHARACTERS:
            raise Refused("an expression nested this deep", "split it into several columns")
        return sql

    def _form(self, node: Call, args: list[str]) -> str:
        form = FORMS.get(node.op)
        if form is None and is_user(node.op):
            what = f"{user_function(node.op).name}(), a function in Python, on DataFusion"
            raise Refused(what, Action("run_on_duckdb"))
        if form is None:
            raise refusal(f"`{node.op}`")
        sql = form(node, args) if callable(form) else form.format(*args, type=_type_of(node, form))
        return opaque(sql) if node.fallible and node.op not in _HANDING_ON else sql

    def _is_inlined(self, node: Node) -> bool:
        return isinstance(node, Column) and node.path[0] in self._inlined

    def _filled(self, marks: Marks, sql: str, *, always: bool = False) -> str:
        self.binds += always or marks.wasteful(sql)
        return marks.filled(sql, BINDER, always=always)

    def _let(self, node: Call) -> str:
        """A value that the body names more than once."""
        values, names, body = parts_of_let(node)
        outside = any(map(has_many_rows, values))
        if outside and has_many_rows(body):
            return self._written(hoisted(node))
        marks, before = Marks(), self._variables
        self._variables = {**before, **{n: marks.add(self._written(v)) for n, v in zip(names, values, strict=True)}}
        sql = self._written(body)
        self._variables = before
        if marks.wasteful(sql) and has_many_rows(body):
            return self._written(hoisted(node))
        return self._filled(marks, sql, always=outside)

    def _in_order(self, node: Call) -> str:
        """AND and OR with parts that may fail: each is tried only where those before it leave the answer open."""
        parts = [self._written(a) for a in node.args]
        if any(len(p) > WASTE for p in parts[:-1]) and any(map(has_many_rows, node.args[1:])):
            return self._written(hoisted(node))
        sql = parts[-1]
        for part in reversed(parts[:-1]):
            marks = Marks()
            sql = self._filled(marks, operators.logic_form(node.op, marks.add(part), sql))
        return sql

    def _coalesce(self, node: Call) -> str:
        """The first that is there; DataFusion makes a CASE of it, with each value but the last one twice."""
        parts = [self._written(a) for a in node.args]
        large = [not is_small(a) or self.weights.of(a) > WASTE for a in node.args[:-1]]
        if not any(large):
            return self._form(node, parts)
        if any(map(has_many_rows, node.args[1:])):
            return self._written(hoisted(node))
        sql = parts[-1]
        for part, bound in zip(reversed(parts[:-1]), reversed(large), strict=True):
            marks = Marks()
            sql = self._filled(marks, self._form(node, [marks.add(part), sql]), always=bound)
        return sql

    def condition(self, node: Node) -> str:
        """A condition of its own: a part of a WHERE, where NULL and FALSE are the same."""
        self._forgiven |= {id(n) for n in _monotone(node)}
        if isinstance(node, Call) and node.op == "not":
            (bare,) = node.args
            if isinstance(bare, SubqueryCall) and not _correlated(bare.plan):
                self._forgiven.add(id(bare))
        return self.render(node)

    def _subquery(self, node: SubqueryCall) -> str:
        inner = self.whole(node.plan)
        if node.kind == "exists":
            return f"EXISTS ({inner})"
        if node.kind == "in":
            if len(node.args) > 1:
                raise refusal("IN (SELECT …) with several columns")
            null = nullable(node.args[0]) or node.plan.output[0].nullable
            if null and id(node) not in self._forgiven:
                raise refusal("IN (SELECT …) of values that may be null, other than as a condition of its own,")
            return f"({self.render(node.args[0])} IN ({inner}))"
        return f"({inner})"

    def _aggregate(self, node: AggregateCall | WindowCall) -> str:
        over = f" OVER ({self._window(node)})" if isinstance(node, WindowCall) else ""
        skip = " IGNORE NULLS" if isinstance(node, WindowCall) and node.ignore_nulls else ""

        def apply(function: str, *args: str, only: str = "") -> str:
            conditions = [only] if only else []
            if node.where is not None:
                conditions.append(self.render(node.where))
            where = f" FILTER (WHERE {' AND '.join(conditions)})" if conditions else ""
            distinct = "DISTINCT " if node.distinct else ""
            return f"{function}({distinct}{', '.join(args)}){skip}{where}{over}"

        form = aggregate_forms.FORMS.get(node.op)
        if form is None:
            raise refusal(f"{node.op}()")
        if node.within:
            raise refusal(f"{node.op}() in an order")
        if isinstance(node, WindowCall) and node.distinct:
            raise refusal(f"{node.op}(DISTINCT …) over a window")
        given = [self.render(guarded(a, node.where)) for a in node.args]
        args = [zero_free(g, a.dtype) if node.distinct else g for g, a in zip(given, node.args, strict=True)]
        return form(node, args, apply)

    def _window(self, node: WindowCall) -> str:
        parts = []
        if node.partition:
            parts.append("PARTITION BY " + ", ".join(zero_free(self.render(p), p.dtype) for p in node.partition))
        if node.order:
            parts.append("ORDER BY " + ", ".join(map(self.ordering, node.order)))
        if node.frame is not None:
            parts.append(_frame(node.frame))
        return " ".join(parts)

    def ordering(self, order: Ordering) -> str:
        """One key of an ORDER BY; -0.0 and 0.0 are one value."""
        if family(order.node.dtype) == "nested":
            raise refusal("the order of arrays and structs")
        direction = "DESC" if order.descending else "ASC"
        key = zero_free(self.render(order.node), order.node.dtype)
        return f"{key} {direction} NULLS {'FIRST' if order.nulls_first else 'LAST'}"


def _type_of(node: Call, form: str) -> str:
    return type_name(node.dtype) if "{type}" in form else ""


def _correlated(plan: Plan) -> bool:
    """Whether a subquery reads columns of the query around it."""
    made = {a.key for p in plan.walk() for a in p.output}
    read = {n.path[0] for p in plan.walk() for e in p.expressions for n in walk(e) if isinstance(n, Column)}
    return not read <= made


def _monotone(node: Node) -> Iterator[Node]:
    """The parts of a condition that nothing but AND and OR stands above."""
    if isinstance(node, Call) and node.op in ("and", "or"):
        for part in node.args:
            yield from _monotone(part)
    else:
        yield node


def _frame(frame: Frame) -> str:
    def bound(value: int | Offset | None, unbounded: str) -> str:
        if isinstance(value, Offset):
            raise refusal("RANGE with an offset over this order")
        if value is None:
            return f"UNBOUNDED {unbounded}"
        return "CURRENT ROW" if value == 0 else f"{abs(value)} {'PRECEDING' if value < 0 else 'FOLLOWING'}"

    return f"{frame.unit.upper()} BETWEEN {bound(frame.start, 'PRECEDING')} AND {bound(frame.end, 'FOLLOWING')}"

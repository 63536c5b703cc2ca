"""A plan without subqueries in its expressions: each becomes a join with the rows that it reads.

The rule works from the inside out. A subquery that is a condition of a filter by itself (EXISTS, IN, and their NOT) is
a semi or an anti join. In any other place its value is put beside the rows, as a column that the expression reads
instead. Conditions that cannot fail and have no subquery are tried first, as they stand in the query; those that may
fail last, over the fewest rows.
"""

from __future__ import annotations

from dataclasses import replace

from headwater.sql.nodes import Call, Node, Refused, SubqueryCall, rewrite, walk
from headwater.sql.plan import Filter, Join, Named, Plan, Project, SetOperation, Values
from headwater.sql.plan.rebuilding import with_children, with_expressions
from headwater.sql.rewriting.conditions import all_of, conjuncts, filtered
from headwater.sql.rewriting.keys import Keys, free, made, reads
from headwater.sql.rewriting.lateral import is_lateral, without_lateral
from headwater.sql.rewriting.membership import kept, left_out, mark, mark_of_absence
from headwater.sql.rewriting.negation import is_absence, negation_inside
from headwater.sql.rewriting.scalars import Beside, scalar

__all__ = ["decorrelated"]


def decorrelated(plan: Plan) -> Plan:
    """The same rows without a `SubqueryCall` anywhere; raises `Refused` for what no join can say.

    >>> import pyarrow as pa
    >>> from headwater.sql.query import parse_query
    >>> text = "SELECT a FROM t WHERE a > 1 AND EXISTS (SELECT * FROM t AS u WHERE u.a = t.b)"
    >>> plan = parse_query(text, lambda *_: pa.schema([("a", pa.int32()), ("b", pa.int32())]))
    >>> print(decorrelated(plan).dump(), end="")
    project a#1
      semi join on (b#2 = a#3)
        filter (a#1 > 1)
          scan t [a#1, b#2]
        scan t [a#3, b#4]
    """
    return _Decorrelation(Keys.above(plan)).plan(plan)


class _Decorrelation:
    def __init__(self, keys: Keys) -> None:
        self.keys = keys
        self.seen: set[str] = set()

    def plan(self, plan: Plan) -> Plan:
        plan = with_children(plan, tuple(map(self.plan, plan.children)))
        if isinstance(plan, Join) and is_lateral(plan):
            return self._lateral(plan)
        if not any(_has_subquery(e) for e in plan.expressions):
            return plan
        plan = with_expressions(plan, self._inside_out)
        if isinstance(plan, Filter):
            return self._filter(plan)
        if isinstance(plan, Join):
            return self._join(plan)
        if isinstance(plan, Values):
            return self._values(plan)
        below, known = self._beside(plan.children[0], plan.expressions)
        changed = with_children(plan, (below,))
        changed = with_expressions(changed, lambda n: _replaced(n, known))
        wanted = plan.output
        if {a.key for a in changed.output} == {a.key for a in wanted}:
            return changed
        return Project(changed, tuple(Named(a, a.column) for a in wanted))

    def _inside_out(self, node: Node) -> Node:
        """The expression with the plans of its subqueries free of subqueries, and NOT in front of IN."""

        def change(part: Node) -> Node | None:
            if isinstance(part, SubqueryCall):
                args = tuple(rewrite(a, change) for a in part.args)
                return replace(part, args=args, plan=self._named(self._once(self.plan(part.plan))))
            return None

        return negation_inside(rewrite(node, change))

    def _once(self, plan: Plan) -> Plan:
        """The plan, with new keys where a text was read twice and its plan is known already."""
        keys = made(plan)
        if keys & self.seen:
            plan, _ = self.keys.copied(plan)
            keys = made(plan)
        self.seen |= keys
        return plan

    def _named(self, plan: Plan) -> Plan:
        """The plan under keys of its own, where it hands on columns of the query around it."""
        theirs = {c.path[0] for c in free(plan)}
        if not any(a.key in theirs for a in plan.output):
            return plan
        return Project(plan, tuple(Named(self.keys.renewed(a), a.column) for a in plan.output))

    def _filter(self, plan: Filter) -> Plan:
        parts = conjuncts(plan.condition)
        first = [p for p in parts if not _has_subquery(p) and not p.fallible]
        rows = filtered(plan.child, first)
        later: list[Node] = []
        for part in parts:
            if part in first:
                continue
            positive, call_ = _condition(part)
            if call_ is None or any(map(_has_subquery, call_.args)):
                later.append(part)
            elif positive:
                rows = kept(call_, rows, self.keys)
            else:
                rows = left_out(call_, rows, self.keys)
        if not later:
            return rows
        below, known = self._beside(rows, later)
        whole = filtered(below, [_replaced(p, known) for p in later])
        return Project(whole, tuple(Named(a, a.column) for a in plan.output)) if known else whole

    def _join(self, plan: Join) -> Plan:
        parts = conjuncts(plan.condition)
        if plan.kind in ("inner", "cross"):
            plain = [p for p in parts if not _has_subquery(p)]
            below = Join("inner", plan.left, plan.right, all_of(plain)) if plain else None
            rest = [p for p in parts if _has_subquery(p)]
            return self._filter(Filter(below or Join("cross", plan.left, plan.right, None), all_of(rest)))
        sides = [plan.left, plan.right]
        known: dict[Node, Node] = {}
        for call_ in _calls(parts):
            places = [i for i, side in enumerate(sides) if reads(call_) & {a.key for a in side.output}]
            if len(places) > 1:
                what = "a subquery in the condition of an outer join that reads both sides"
                raise Refused(what, "compute it in a column of one side first")
            at = places[0] if places else 0
            sides[at], more = self._beside(sides[at], [call_])
            known.update(more)
        condition = None if plan.condition is None else _replaced(plan.condition, known)
        changed = Join(plan.kind, sides[0], sides[1], condition)
        return Project(changed, tuple(Named(a, a.column) for a in plan.output))

    def _lateral(self, plan: Join) -> Plan:
        if plan.condition is None or not _has_subquery(plan.condition):
            return without_lateral(plan, self.keys)
        if plan.kind == "left":
            raise Refused("a subquery in the condition of a LEFT JOIN LATERAL", "put it into the LATERAL's own WHERE")
        inner = without_lateral(Join("cross", plan.left, plan.right, None), self.keys)
        return self.plan(Filter(inner, plan.condition))

    def _values(self, plan: Values) -> Plan:
        whole: Plan | None = None
        for row in plan.rows:
            below, known = self._beside(Values(((),), ()), row)
            columns = plan.columns if len(plan.rows) == 1 else tuple(map(self.keys.renewed, plan.columns))
            items = (Named(a, _replaced(n, known)) for a, n in zip(columns, row, strict=True))
            side = Project(below, tuple(items))
            if whole is None:
                whole = side
                continue
            columns = plan.columns if row is plan.rows[-1] else tuple(map(self.keys.renewed, plan.columns))
            whole = SetOperation("union", True, whole, side, columns)
        assert whole is not None
        return whole

    def _beside(self, rows: Plan, nodes: list[Node] | tuple[Node, ...]) -> tuple[Plan, dict[Node, Node]]:
        """The rows with the values of all subqueries beside them, and what each subquery is called there."""
        known: dict[Node, Node] = {}
        for node in _calls(nodes):
            absent = isinstance(node, Call)
            subquery = node.args[0] if isinstance(node, Call) else node
            assert isinstance(subquery, SubqueryCall)
            # The value that is looked for may hold subqueries itself.
            subquery = replace(subquery, args=tuple(_replaced(a, known) for a in subquery.args))
            found = self._one(subquery, rows, absent=absent)
            rows, known[node] = found.rows, found.value
        return rows, known

    def _one(self, subquery: SubqueryCall, rows: Plan, *, absent: bool) -> Beside:
        if subquery.kind == "scalar":
            return scalar(subquery, rows, self.keys)
        return (mark_of_absence if absent else mark)(subquery, rows, self.keys)


def _has_subquery(node: Node) -> bool:
    return any(isinstance(n, SubqueryCall) for n in walk(node))


def _condition(node: Node) -> tuple[bool, SubqueryCall | None]:
    """A conjunct that is EXISTS or IN, or a NOT of one."""
    positive = True
    if isinstance(node, Call) and node.op == "not":
        positive, node = False, node.args[0]
    found = isinstance(node, SubqueryCall) and node.kind != "scalar"
    return positive, node if found else None  # type: ignore[return-value]


def _calls(nodes: list[Node] | tuple[Node, ...]) -> list[Node]:
    """The subqueries of some expressions, each once, those inside of others first; NOT IN is one of its own."""
    found: dict[Node, None] = {}

    def visit(node: Node) -> None:
        inner = node.args[0] if is_absence(node) and isinstance(node, Call) else node
        if isinstance(inner, SubqueryCall):
            for a in inner.args:
                visit_all(a)
            found.setdefault(node)

    def visit_all(node: Node) -> None:
        def look(part: Node) -> Node | None:
            if is_absence(part) or isinstance(part, SubqueryCall):
                visit(part)
                return part
            return None

        rewrite(node, look)

    for node in nodes:
        visit_all(node)
    return list(found)


def _replaced(node: Node, known: dict[Node, Node]) -> Node:
    def change(part: Node) -> Node | None:
        return known.get(part) if is_absence(part) or isinstance(part, SubqueryCall) else None

    return rewrite(node, change) if known else node

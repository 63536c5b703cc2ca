"""Readers of operators: comparisons, logic, arithmetic on bits, IN, LIKE, CASE.

`operator_grammar` has grouped them as Spark does. What is left to refuse is NOT inside an operator that binds tighter:
Spark's parser does not take it without parentheses either.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from sqlglot import exp

from headwater.base.errors import Action
from headwater.sql import operators
from headwater.sql.binding import shared
from headwater.sql.calls import apply_function
from headwater.sql.folding import folded
from headwater.sql.literals import number_literal
from headwater.sql.nodes import Literal, Node, Refused, Wrong
from headwater.sql.operator_grammar import UnsignedRightShift
from headwater.sql.reader.clauses import name_of_kind
from headwater.sql.types import BOOLEAN, NULL, name_of

__all__ = ["ARITHMETIC", "BITS", "COMPARISONS", "OperatorReaders"]

COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "!=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
}
ARITHMETIC: dict[type[exp.Expr], str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%"}
BITS: dict[type[exp.Expr], str] = {
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseXor: "^",
    exp.BitwiseLeftShift: "shiftleft",
    exp.BitwiseRightShift: "shiftright",
    UnsignedRightShift: "shiftrightunsigned",
}


class OperatorReaders:
    """The part of a reader that knows operators; `read` and the texts come from the reader itself."""

    def read(self, node: exp.Expr) -> Node:
        raise NotImplementedError

    def boolean(self, node: exp.Expr) -> Node:
        raise NotImplementedError

    def _is_suffixed(self, node: exp.Expr) -> bool:
        raise NotImplementedError

    def _suffixed(self, node: exp.Expr, *, negative: bool) -> Node:
        raise NotImplementedError

    def _args(self, node: exp.Expr, *known: str) -> None:
        strange = [k for k, v in node.args.items() if v and k not in known]
        if strange:
            raise Refused(f"this form of `{name_of_kind(node)}`", "write the plain form")

    def _operand(self, node: exp.Expr | None) -> Node:
        if node is None:
            raise Refused("a missing operand", "complete the expression")
        if isinstance(node, exp.Not):
            raise Wrong("NOT stands inside another operator without parentheses", "add parentheses", part=node)
        return self.read(node)

    def _sides(self, node: exp.Expr) -> tuple[Node, Node]:
        self._args(node, "this", "expression", "typed", "safe")
        return self._operand(node.args.get("this")), self._operand(node.args.get("expression"))

    def minus(self, node: exp.Expr) -> Node:
        self._args(node, "this")
        inner = node.this
        if isinstance(inner, exp.Literal) and not inner.is_string:
            return number_literal(inner.this, negative=True)
        if self._is_suffixed(inner):
            return self._suffixed(inner, negative=True)
        if (found := self._cast_of_negative(inner)) is not None:
            return self.read(found)
        return operators.minus(self._operand(inner))

    def _cast_of_negative(self, node: exp.Expr) -> exp.Expr | None:
        """``-1::int`` is the cast of -1: a minus belongs to the number behind it."""
        if not node.meta.get("colons"):
            return None
        inner = node.this
        number = isinstance(inner, exp.Literal) and not inner.is_string
        negative = exp.Neg(this=inner.copy()) if number or self._is_suffixed(inner) else self._cast_of_negative(inner)
        if negative is None:
            return None
        found: exp.Expr = node.copy()
        found.meta.update(node.meta)
        found.set("this", negative)
        return found

    def logic(self, node: exp.Expr) -> Node:
        kind, op = type(node), "and" if isinstance(node, exp.And) else "or"
        parts: list[exp.Expr] = []
        current = node
        while type(current) is kind:  # left-deep, so that a thousand parts are a loop and not a recursion
            self._args(current, "this", "expression")
            parts.append(current.expression)
            current = current.this
        parts.append(current)
        return operators.logic(op, [self.read(p) for p in reversed(parts)])

    def negation(self, node: exp.Expr) -> Node:
        self._args(node, "this")
        return operators.negate(self.read(node.this))

    def is_(self, node: exp.Expr) -> Node:
        self._args(node, "this", "expression")
        value = self._operand(node.this)
        if isinstance(node.expression, exp.Null):
            return operators.is_null(value)
        if isinstance(node.expression, exp.Boolean):
            return operators.compare("<=>", value, self.boolean(node.expression))
        raise Wrong(f"`IS {node.expression.sql()}` is not Spark SQL", "use IS NULL, IS TRUE or IS FALSE")

    def distinct_from(self, node: exp.Expr) -> Node:
        return operators.negate(operators.compare("<=>", *self._sides(node)))

    def contains(self, node: exp.Expr) -> Node:
        if node.args.get("query"):
            raise Refused("`subquery`", Action("query_instead"))
        self._args(node, "this", "expressions")
        items = [self._operand(i) for i in node.expressions]
        for written, item in zip(node.expressions, items, strict=True):
            if isinstance(written, exp.Placeholder) and pa.types.is_list(item.dtype):
                name = f":{written.name}" if written.args.get("this") else "?"
                raise Wrong(f"{name} is a list, and IN takes single values", f"write array_contains({name}, x)")
        if not items:
            raise Wrong("IN needs values", "list at least one value")
        return operators.contains(self._operand(node.this), items)

    def between(self, node: exp.Expr) -> Node:
        self._args(node, "this", "low", "high")
        bounds = (node.this, node.args["low"], node.args["high"])
        return operators.between(*(self._operand(n) for n in bounds))

    def like(self, node: exp.Expr) -> Node:
        """LIKE and ILIKE, with one pattern or with ANY or ALL of several; ILIKE compares in lower case,
        as Spark does.
        """
        escape = "\\"
        if isinstance(node, exp.Escape):
            self._args(node, "this", "expression")
            mark = self.read(node.expression)
            assert isinstance(mark, Literal) and isinstance(mark.value, str), "the grammar takes nothing else"
            node, escape = node.this, mark.value
        self._args(node, "this", "expression", "negate")
        value, patterns = self._operand(node.this), [node.expression]
        several = node.expression if isinstance(node.expression, exp.Any | exp.All) else None
        if several is not None:
            patterns = several.this.expressions
            if any(isinstance(p, exp.Query) for p in patterns):
                raise Wrong("LIKE ANY and LIKE ALL take a list of patterns", "write LIKE ANY ('a%', 'b%')")
        wanted, negated = [self._operand(p) for p in patterns], bool(node.args.get("negate"))

        def matches(text: Node) -> Node:
            parts = [operators.like(*self._lowered(node, text, p), escape) for p in wanted]
            # NOT belongs to each pattern: NOT LIKE ANY is true if one of them does not match.
            parts = [operators.negate(p) for p in parts] if negated else parts
            if len(parts) == 1:
                return parts[0]
            return operators.logic("or" if isinstance(several, exp.Any) else "and", parts)

        return matches(value) if len(wanted) == 1 else shared(value, matches)

    def _lowered(self, node: exp.Expr, value: Node, pattern: Node) -> tuple[Node, Node]:
        pattern = folded(pattern)
        if not isinstance(node, exp.ILike):
            return value, pattern
        if isinstance(pattern, Literal) and isinstance(pattern.value, str):
            pattern = Literal(pattern.value.lower(), pattern.dtype)
        return apply_function("lower", [value]), pattern

    def joined(self, node: exp.Expr) -> Node:
        parts = self._sides(node)
        return apply_function("concat", parts)

    def case(self, node: exp.Expr) -> Node:
        self._args(node, "this", "ifs", "default")
        subject = self.read(node.this) if node.this else None
        branches = [(self.read(b.this), self.read(b.args["true"])) for b in node.args["ifs"]]
        default = self.read(node.args["default"]) if node.args.get("default") is not None else None
        if subject is None:
            self._check_conditions([b.this for b in node.args["ifs"]], [c for c, _ in branches])
            return operators.cases(branches, default)

        def chosen(value: Node) -> Node:
            return operators.cases(
                [(operators.compare("=", value, wanted), then) for wanted, then in branches], default
            )

        return shared(subject, chosen)

    def _check_conditions(self, written: Sequence[exp.Expr], conditions: Sequence[Node]) -> None:
        for part, condition in zip(written, conditions, strict=True):
            if condition.dtype not in (BOOLEAN, NULL):
                what = f"a condition of type {name_of(condition.dtype)} is no boolean"
                raise Wrong(what, "compare it with something", part=part)

    def if_(self, node: exp.Expr) -> Node:
        self._args(node, "this", "true", "false")
        parts = [p for k in ("this", "true", "false") if (p := node.args.get(k)) is not None]
        values = [self.read(p) for p in parts]
        self._check_conditions(parts[:1], values[:1])
        return apply_function("if", values)

    def matches(self, node: exp.Expr) -> Node:
        self._args(node, "this", "expression")
        return apply_function("rlike", [self._operand(n) for n in (node.this, node.expression)])

    def whole_quotient(self, node: exp.Expr) -> Node:
        return operators.whole_quotient(*self._sides(node))

    def bits(self, node: exp.Expr) -> Node:
        return apply_function(BITS[type(node)], self._sides(node))

    def inverted(self, node: exp.Expr) -> Node:
        self._args(node, "this")
        return apply_function("~", [self._operand(node.this)])

"""Readers of operators: comparisons, logic, arithmetic on bits, IN, LIKE, CASE.

sqlglot's precedence is not quite Spark's (``||`` binds weaker than ``+``, chains of comparisons nest in another way), so wherever the
two could group a text differently, parentheses are demanded instead of guessed.
"""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from headwater.sql import operators
from headwater.sql.binding import shared
from headwater.sql.functions.catalogue import apply_function
from headwater.sql.literals import number_literal
from headwater.sql.nodes import Literal, Node, Refused, Wrong
from headwater.sql.reader.clauses import name_of_kind

__all__ = ["ARITHMETIC", "BITS", "COMPARISONS", "LOGIC", "PREDICATES", "OperatorReaders"]

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
PREDICATES = (*COMPARISONS, exp.NullSafeNEQ, exp.Is, exp.In, exp.Between, exp.Like, exp.ILike, exp.Escape)
LOGIC = (exp.And, exp.Or, exp.Not)
BITS: dict[type[exp.Expr], str] = {exp.BitwiseAnd: "&", exp.BitwiseOr: "|", exp.BitwiseXor: "^"}
_TERMS = (exp.Add, exp.Sub)


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

    def _operand(self, node: exp.Expr | None, barred: tuple[type[exp.Expr], ...]) -> Node:
        if node is None:
            raise Refused("a missing operand", "complete the expression")
        if isinstance(node, barred):
            raise Refused(f"`{name_of_kind(node)}` inside another operator without parentheses", "add parentheses")
        return self.read(node)

    def _sides(self, node: exp.Expr, barred: tuple[type[exp.Expr], ...]) -> tuple[Node, Node]:
        self._args(node, "this", "expression", "typed", "safe")
        return self._operand(node.args.get("this"), barred), self._operand(node.args.get("expression"), barred)

    def minus(self, node: exp.Expr) -> Node:
        self._args(node, "this")
        inner = node.this
        if isinstance(inner, exp.Literal) and not inner.is_string:
            return number_literal(inner.this, negative=True)
        if self._is_suffixed(inner):
            return self._suffixed(inner, negative=True)
        if (found := self._cast_of_negative(inner)) is not None:
            return self.read(found)
        return operators.minus(self._operand(inner, (exp.Binary, *PREDICATES, *LOGIC)))

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
        return operators.negate(self._operand(node.this, (exp.And, exp.Or)))

    def is_(self, node: exp.Expr) -> Node:
        self._args(node, "this", "expression")
        value = self._operand(node.this, PREDICATES + LOGIC)
        if isinstance(node.expression, exp.Null):
            return operators.is_null(value)
        if isinstance(node.expression, exp.Boolean):
            return operators.compare("<=>", value, self.boolean(node.expression))
        raise Wrong(f"`IS {node.expression.sql()}` is not Spark SQL", "use IS NULL, IS TRUE or IS FALSE")

    def distinct_from(self, node: exp.Expr) -> Node:
        return operators.negate(operators.compare("<=>", *self._sides(node, PREDICATES + LOGIC)))

    def contains(self, node: exp.Expr) -> Node:
        if node.args.get("query"):
            raise Refused("`subquery`", "an expression sees one row at a time: join first, or use lake.sql")
        self._args(node, "this", "expressions")
        items = [self._operand(i, (exp.Tuple,)) for i in node.expressions]
        for written, item in zip(node.expressions, items, strict=True):
            if isinstance(written, exp.Placeholder) and pa.types.is_list(item.dtype):
                name = f":{written.name}" if written.args.get("this") else "?"
                raise Wrong(f"{name} is a list, and IN takes single values", f"write array_contains({name}, x)")
        if not items:
            raise Wrong("IN needs values", "list at least one value")
        return operators.contains(self._operand(node.this, PREDICATES + LOGIC), items)

    def between(self, node: exp.Expr) -> Node:
        self._args(node, "this", "low", "high")
        bounds = (node.this, node.args["low"], node.args["high"])
        return operators.between(*(self._operand(n, PREDICATES + LOGIC) for n in bounds))

    def like(self, node: exp.Expr) -> Node:
        escape = "\\"
        if isinstance(node, exp.Escape):
            self._args(node, "this", "expression")
            mark = self.read(node.expression)
            if not isinstance(node.this, exp.Like) or not isinstance(mark, Literal) or not isinstance(mark.value, str):
                raise Refused("this ESCAPE", "write LIKE 'pattern' ESCAPE '/'")
            node, escape = node.this, mark.value
        self._args(node, "this", "expression", "negate")
        value, patterns = self._operand(node.this, PREDICATES + LOGIC), [node.expression]
        several = node.expression if isinstance(node.expression, exp.Any | exp.All) else None
        if several is not None:
            listed = several.this.unnest() if isinstance(several.this, exp.Paren) else several.this
            patterns = listed.expressions if isinstance(listed, exp.Tuple) else [listed]
            if any(isinstance(p, exp.Query) for p in patterns):
                raise Wrong("LIKE ANY and LIKE ALL take a list of patterns", "write LIKE ANY ('a%', 'b%')")
        wanted = [self._operand(p, PREDICATES + LOGIC) for p in patterns]

        def matches(text: Node) -> Node:
            parts = [operators.like(text, p, escape) for p in wanted]
            # NOT belongs to each pattern: NOT LIKE ANY is true if one of them does not match.
            parts = [operators.negate(p) for p in parts] if node.args.get("negate") else parts
            if len(parts) == 1:
                return parts[0]
            return operators.logic("or" if isinstance(several, exp.Any) else "and", parts)

        return matches(value) if len(wanted) == 1 else shared(value, matches)

    def ilike(self, node: exp.Expr) -> Node:
        """ILIKE compares in lower case, as Spark does."""
        self._args(node, "this", "expression", "negate")
        value, pattern = (self._operand(n, PREDICATES + LOGIC) for n in (node.this, node.expression))
        if isinstance(pattern, Literal) and isinstance(pattern.value, str):
            pattern = Literal(pattern.value.lower(), pattern.dtype)
        found = operators.like(apply_function("lower", [value]), pattern)
        return operators.negate(found) if node.args.get("negate") else found

    def joined(self, node: exp.Expr) -> Node:
        parts = self._sides(node, (*PREDICATES, *LOGIC, *_TERMS))
        return apply_function("concat", parts)

    def case(self, node: exp.Expr) -> Node:
        self._args(node, "this", "ifs", "default")
        subject = self.read(node.this) if node.this else None
        branches = [(self.read(b.this), self.read(b.args["true"])) for b in node.args["ifs"]]
        default = self.read(node.args["default"]) if node.args.get("default") is not None else None
        if subject is None:
            return operators.cases(branches, default)

        def chosen(value: Node) -> Node:
            return operators.cases(
                [(operators.compare("=", value, wanted), then) for wanted, then in branches], default
            )

        return shared(subject, chosen)

    def if_(self, node: exp.Expr) -> Node:
        self._args(node, "this", "true", "false")
        parts = [node.args.get(k) for k in ("this", "true", "false")]
        return apply_function("if", [self.read(p) for p in parts if p is not None])

    def matches(self, node: exp.Expr) -> Node:
        self._args(node, "this", "expression")
        return apply_function("rlike", [self._operand(n, PREDICATES + LOGIC) for n in (node.this, node.expression)])

    def whole_quotient(self, node: exp.Expr) -> Node:
        return operators.whole_quotient(*self._sides(node, (*PREDICATES, *LOGIC, exp.DPipe, *BITS)))

    def bits(self, node: exp.Expr) -> Node:
        # Spark's precedence of & ^ | is not sqlglot's, so each operand stands alone.
        sides = self._sides(node, (*PREDICATES, *LOGIC, exp.DPipe, exp.Binary))
        return apply_function(BITS[type(node)], sides)

    def inverted(self, node: exp.Expr) -> Node:
        self._args(node, "this")
        return apply_function("~", [self._operand(node.this, (exp.Binary, *PREDICATES, *LOGIC))])

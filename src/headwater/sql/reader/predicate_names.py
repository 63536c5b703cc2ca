"""Names of columns that are a LIKE, an IN or a row in parentheses."""

from __future__ import annotations

from typing import Protocol

from sqlglot import exp

__all__ = ["like_name", "membership_name", "row_name"]


class _Namer(Protocol):
    def name(self, node: exp.Expr) -> str: ...

    def names(self, nodes: list[exp.Expr]) -> str: ...

    def outer_columns(self, node: exp.Expr) -> str: ...


def row_name(namer: _Namer, node: exp.Expr, quote: str = "") -> str:
    """``(a, 1)`` is ``named_struct(a, a, col2, 1)``."""
    parts = []
    for at, item in enumerate(node.expressions, 1):
        label, inner = f"col{at}", item
        if isinstance(item, exp.Alias):
            label = item.args["alias"].name
        elif isinstance(item, exp.Column | exp.Identifier):
            label = item.name
        elif isinstance(item, exp.Dot):
            label = item.expression.name
        parts += [f"{quote}{label}{quote}", namer.name(inner)]
    return f"named_struct({', '.join(parts)})"


def membership_name(namer: _Namer, node: exp.Expr) -> str:
    """``(a IN (1, 2))``."""
    if not node.args.get("query"):
        return f"({namer.name(node.this)} IN ({namer.names(node.expressions)}))"
    value = row_name(namer, node.this, "'") if isinstance(node.this, exp.Tuple) else namer.name(node.this)
    return f"({value} IN (listquery({namer.outer_columns(node)})))"


def like_name(namer: _Namer, node: exp.Expr) -> str:
    """LIKE and ILIKE, with an ESCAPE, and with ANY or ALL of a list: one function where all patterns are constants."""
    escape = None
    if isinstance(node, exp.Escape):
        node, escape = node.this, namer.name(node.expression)
    negated = bool(node.args.get("negate"))
    several = node.expression if isinstance(node.expression, exp.Any | exp.All) else None
    if several is None:
        return _one(namer, node, node.expression, escape, negated=negated)
    patterns = several.this.expressions
    every = isinstance(several, exp.All)
    if all(isinstance(p, exp.Literal) and p.is_string for p in patterns):
        value = namer.name(node.this)
        value = f"lower({value})" if isinstance(node, exp.ILike) else value
        return f"{'not' if negated else ''}like{'all' if every else 'any'}({value})"
    name = _one(namer, node, patterns[0], None, negated=negated)
    for pattern in patterns[1:]:
        name = f"({name} {'AND' if every else 'OR'} {_one(namer, node, pattern, None, negated=negated)})"
    return name


def _one(namer: _Namer, node: exp.Expr, pattern: exp.Expr, escape: str | None, *, negated: bool) -> str:
    if isinstance(node, exp.ILike):
        text = f"ilike({namer.name(node.this)}, {namer.name(pattern)})"
    else:
        text = f"{namer.name(node.this)} LIKE {namer.name(pattern)}"
        text = text if escape is None else f"{text} ESCAPE '{escape}'"
    return f"(NOT {text})" if negated else text

"""What sqlglot took and Spark would not, as far as the parsed tree shows it: clauses in another order,
parentheses that are missing or too many.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from headwater.sql.strict_parser import CLAUSES

__all__ = ["misplaced"]


def misplaced(tree: exp.Expr) -> Iterator[tuple[str, int | None]]:
    """What sqlglot took and Spark would not, as far as the tree shows it: why, and where in the text."""
    for node in tree.walk():
        if isinstance(node, exp.Query):
            yield from _misplaced_clauses(node)
        if isinstance(node, exp.Select) and node.args.get("kind"):
            yield f"AS {node.args['kind']} is not expected here", None
        if isinstance(node, exp.SetOperation):
            for side in (node.this, node.args.get("expression")):
                tail = [
                    side.args[k]
                    for k in ("order", "cluster", "distribute", "sort", "limit", "offset")
                    if side is not None and side.args.get(k)
                ]
                if tail and not isinstance(side, exp.Subquery):
                    yield "put the query with its ORDER BY or LIMIT into parentheses", tail[0].meta.get("clause")
        if isinstance(node, exp.Group):
            every = node.args.get("all")
            if every is False or (every and node.expressions):
                yield "write GROUP BY ALL, or GROUP BY a, b", node.meta.get("clause")
        if isinstance(node, exp.Values) and any(
            isinstance(r, exp.Tuple) and not r.expressions for r in node.expressions
        ):
            yield "a row of VALUES has at least one value", None


def _misplaced_clauses(node: exp.Expr) -> Iterator[tuple[str, int | None]]:
    last = -1
    for key in CLAUSES:
        clause = node.args.get(key)
        start = clause.meta.get("clause") if isinstance(clause, exp.Expr) else None
        if start is None:
            continue
        if start < last:
            yield "this clause stands before another one that comes after it", start
        last = max(last, start)

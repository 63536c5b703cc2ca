"""Operators: comparisons, logic, arithmetic, IN, LIKE, CASE. Operands come coerced;
what they mean is in `headwater.sql.operators`.
"""

from __future__ import annotations

from headwater.sql import operators
from headwater.sql.analyzed.reading import Expressions, expression
from headwater.sql.analyzed.tree import Tree
from headwater.sql.calls import apply_function
from headwater.sql.folding import folded
from headwater.sql.literals import text_literal
from headwater.sql.nodes import Call, Literal, Node, Refused
from headwater.sql.types import LONG

__all__: list[str] = []

_COMPARISONS = {
    "EqualTo": "=",
    "EqualNullSafe": "<=>",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
}
_ARITHMETIC = {"Add": "+", "Subtract": "-", "Multiply": "*", "Divide": "/", "Remainder": "%"}
_TRIED = {"+": "try_add", "-": "try_subtract", "*": "try_multiply", "/": "try_divide", "%": "try_mod"}
_BITS = {"BitwiseAnd": "&", "BitwiseOr": "|", "BitwiseXor": "^", "BitwiseNot": "~"}


@expression(*_COMPARISONS)
def _compare(reader: Expressions, tree: Tree) -> Node:
    left, right = reader.children(tree)
    return operators.compare(_COMPARISONS[tree.kind], left, right)


@expression("And", "Or")
def _logic(reader: Expressions, tree: Tree) -> Node:
    # Spark balances long chains; here a chain is one node.
    parts: list[Node] = []
    pending = [tree]
    while pending:
        current = pending.pop()
        if current.kind == tree.kind:
            pending += reversed(current.children)
        else:
            parts.append(reader.read(current))
    return operators.logic(tree.kind.lower(), parts)


@expression("Not")
def _not(reader: Expressions, tree: Tree) -> Node:
    return operators.negate(reader.read(tree.children[0]))


@expression("IsNull")
def _is_null(reader: Expressions, tree: Tree) -> Node:
    return operators.is_null(reader.read(tree.children[0]))


@expression("IsNotNull")
def _is_not_null(reader: Expressions, tree: Tree) -> Node:
    return operators.negate(operators.is_null(reader.read(tree.children[0])))


def mode_of(tree: Tree) -> str:
    """ANSI or TRY: does it raise, or give null? A mode from before ANSI is refused."""
    mode = str(tree.fields.get("evalMode"))
    if mode not in ("ANSI", "TRY"):
        raise Refused(f"Spark's {tree.kind} outside ANSI mode", "set spark.sql.ansi.enabled to true")
    return mode


@expression(*_ARITHMETIC)
def _arithmetic(reader: Expressions, tree: Tree) -> Node:
    op = _ARITHMETIC[tree.kind]
    left, right = reader.children(tree)
    if mode_of(tree) == "TRY":
        return apply_function(_TRIED[op], [left, right])
    if op in "+-" and isinstance(right, Literal) and right.value == 0 and left.dtype == right.dtype == LONG:
        return left  # window() subtracts its offset, which is mostly none
    return operators.arithmetic(op, left, right)


@expression("IntegralDivide")
def _whole(reader: Expressions, tree: Tree) -> Node:
    left, right = reader.children(tree)
    if mode_of(tree) == "TRY":
        raise Refused("a DIV that gives null", "use try_divide()")
    return operators.whole_quotient(left, right)


@expression("Pmod")
def _pmod(reader: Expressions, tree: Tree) -> Node:
    if mode_of(tree) == "TRY":
        raise Refused("a pmod() that gives null", "use try_mod()")
    return apply_function("pmod", reader.children(tree))


@expression("UnaryMinus")
def _minus(reader: Expressions, tree: Tree) -> Node:
    node = reader.read(tree.children[0])
    if not tree.fields.get("failOnError", True):
        raise Refused("a minus outside ANSI mode", "set spark.sql.ansi.enabled to true")
    return operators.minus(node)


@expression(*_BITS)
def _bits(reader: Expressions, tree: Tree) -> Node:
    return apply_function(_BITS[tree.kind], reader.children(tree))


@expression("In")
def _in(reader: Expressions, tree: Tree) -> Node:
    value, *items = reader.children(tree)
    return operators.contains(value, items)


@expression("Like", "ILike")
def _like(reader: Expressions, tree: Tree) -> Node:
    value, pattern = reader.children(tree)
    pattern = folded(pattern)
    if tree.kind == "ILike":
        value = apply_function("lower", [value])
        if isinstance(pattern, Literal) and isinstance(pattern.value, str):
            pattern = Literal(pattern.value.lower(), pattern.dtype)
    return operators.like(value, pattern, str(tree.fields["escapeChar"]))


@expression("LikeAll", "LikeAny", "NotLikeAll", "NotLikeAny")
def _like_several(reader: Expressions, tree: Tree) -> Node:
    value = reader.read(tree.children[0])
    parts = [operators.like(value, text_literal(str(pattern))) for pattern in tree.fields["patterns"]]
    parts = [operators.negate(p) for p in parts] if tree.kind.startswith("Not") else parts
    return parts[0] if len(parts) == 1 else operators.logic("or" if tree.kind.endswith("Any") else "and", parts)


@expression("CaseWhen")
def _case(reader: Expressions, tree: Tree) -> Node:
    parts = reader.children(tree)
    if (found := _positive_remainder(parts)) is not None:
        return found
    default = parts.pop() if len(parts) % 2 else None
    return operators.cases(list(zip(parts[::2], parts[1::2], strict=True)), default)


def _positive_remainder(parts: list[Node]) -> Node | None:
    """What window() writes for pmod(x, n): CASE WHEN x % n < 0 THEN x % n + n ELSE x % n END."""
    if len(parts) != 3 or not isinstance(parts[2], Call) or parts[2].op != "%" or parts[2].dtype != LONG:
        return None
    rest = parts[2]
    below = operators.compare("<", rest, Literal(0, LONG))
    if parts[0] != below or parts[1] != operators.arithmetic("+", rest, rest.args[1]):
        return None
    return apply_function("pmod", list(rest.args))


@expression("NullIfResult")
def _null_if(reader: Expressions, tree: Tree) -> Node:
    """What nullif() is made of since Spark 4.3: a value, or null where the condition holds."""
    condition, value = reader.children(tree)
    return operators.cases([(condition, Literal(None, value.dtype))], value)


@expression("If")
def _if(reader: Expressions, tree: Tree) -> Node:
    return apply_function("if", reader.children(tree))

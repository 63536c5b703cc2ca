"""The text of a Column of a classic session: a tree of Spark's ``ColumnNode`` in its JVM, asked part by part.

Next to `analyzer` this is the place that speaks to private classes of Spark's: those of
``org.apache.spark.sql.internal`` which its Column is made of. Spark 4.2 and 4.3 have them alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

from headwater.spark import column_text as text

__all__ = ["names_of", "text_of"]


def names_of(column: Any) -> tuple[str, ...]:
    """The names that a Column gives itself: of its alias, or of the column that it is."""
    found = column._jc.node()
    match _class(found):
        case "Alias":
            return tuple(_each(found.name()))
        case "UnresolvedAttribute":
            return tuple(_each(found.nameParts()))[-1:]
    return ()


def text_of(column: Any) -> str:
    """The text of a Column, without its alias."""
    found = column._jc.node()
    return _text(found.child() if _class(found) == "Alias" else found)


def _text(found: Any) -> str:
    kind = _class(found)
    spell = _SPELLED.get(kind)
    if spell is None:
        raise text.refused(kind, "it has no form in SQL text")
    return spell(found)


def _attribute(found: Any) -> str:
    parts = list(_each(found.nameParts()))
    if found.planId().isDefined():
        raise text.of_a_frame(".".join(parts))
    return text.name(parts)


def _call(found: Any) -> str:
    arguments = [_text(a) for a in _each(found.arguments())]
    return text.call(found.functionName(), arguments, distinct=found.isDistinct())


def _case(found: Any) -> str:
    pairs = [(_text(pair._1()), _text(pair._2())) for pair in _each(found.branches())]
    otherwise = found.otherwise()
    return text.case(pairs, _text(otherwise.get()) if otherwise.isDefined() else None)


def _cast(found: Any) -> str:
    mode = found.evalMode()
    how = _class(mode.get()).lower() if mode.isDefined() else None
    return text.cast(_text(found.child()), found.dataType().sql(), how)


def _star(found: Any) -> str:
    if found.unparsedTarget().isDefined() or found.planId().isDefined():
        raise text.refused("a star of something", "it stands for several columns")
    return "*"


def _windowed(_: Any) -> str:
    raise text.windowed()


def _function(_: Any) -> str:
    raise text.function_of("a function of one's own")


def _resolved(node: Any) -> str:
    """What PySpark puts into a Column as an expression of Spark's inside."""
    found = node.expression()
    kind = _class(found)
    if kind.startswith("Python"):
        raise text.function_of(f"{found.name()}()")
    if kind == "AttributeReference":
        raise text.of_a_frame(str(found.name()))
    raise text.refused(kind, "it has no form in SQL text")


def _constant(found: Any) -> str:
    value, kind = found.value(), found.dataType()
    named = kind.get().sql().lower() if kind.isDefined() else None
    if isinstance(value, int) and not isinstance(value, bool) and named is None:
        # An int and a long are the same in Python; Spark's own text tells them apart.
        return text.constant(value, "bigint" if str(found.sql()).endswith("L") else None)
    if not hasattr(value, "getClass"):
        return text.constant(value, named)
    match str(value.getClass().getName()):
        case "java.sql.Timestamp":
            return f"TIMESTAMP '{_moment(value.toInstant())}'"
        case "java.time.Instant":
            return f"TIMESTAMP '{_moment(value)}'"
        case "java.time.LocalDateTime":
            return f"TIMESTAMP_NTZ '{str(value.toString()).replace('T', ' ')}'"
        case "java.sql.Date" | "java.time.LocalDate":
            return f"DATE '{value.toString()}'"
        case "java.time.Duration":
            nanos = int(value.getSeconds()) * 1_000_000_000 + int(value.getNano())
            return text.duration(timedelta(microseconds=nanos // 1000))
    raise text.refused(f"a constant of {value.getClass().getSimpleName()}", "it has no form in SQL text")


def _moment(instant: Any) -> str:
    return str(instant.toString()).replace("T", " ")


def _class(found: Any) -> str:
    return str(found.getClass().getName()).rstrip("$").rsplit(".", 1)[-1].rsplit("$", 1)[-1]


def _each(sequence: Any) -> Iterator[Any]:
    walk = sequence.iterator()
    while walk.hasNext():
        yield walk.next()


_SPELLED: dict[str, Callable[[Any], str]] = {
    "Alias": lambda found: text.aliased(_text(found.child()), list(_each(found.name()))),
    "CaseWhenOtherwise": _case,
    "Cast": _cast,
    "ExpressionColumnNode": _resolved,
    "InvokeInlineUserDefinedFunction": _function,
    "LambdaFunction": lambda found: text.lambda_of(
        [a.name() for a in _each(found.arguments())], _text(found.function())
    ),
    "Literal": _constant,
    "SqlExpression": lambda found: text.given(found.expression()),
    "UnresolvedAttribute": _attribute,
    "UnresolvedExtractValue": lambda found: text.element(_text(found.child()), _text(found.extraction())),
    "UnresolvedFunction": _call,
    "UnresolvedNamedLambdaVariable": lambda found: text.name([found.name()]),
    "UnresolvedStar": _star,
    "Window": _windowed,
}

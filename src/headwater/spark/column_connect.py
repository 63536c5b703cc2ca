"""The text of a Column of Spark Connect: a tree of Python objects, read without a server."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from headwater.spark import column_text as text

__all__ = ["names_of", "text_of"]


def names_of(column: Any) -> tuple[str, ...]:
    """The names that a Column gives itself: of its alias, or of the column that it is."""
    found = column._expr
    match type(found).__name__:
        case "ColumnAlias":
            return tuple(found._alias)
        case "ColumnReference":
            return tuple(_parts(found._unparsed_identifier)[-1:])
    return ()


def text_of(column: Any) -> str:
    """The text of a Column, without its alias."""
    found = column._expr
    return _text(found._child if type(found).__name__ == "ColumnAlias" else found)


def _text(found: Any) -> str:
    kind = type(found).__name__
    spell = _SPELLED.get(kind)
    if spell is None:
        raise text.refused(kind, "it has no form in SQL text")
    return spell(found)


def _texts(found: Iterable[Any]) -> list[str]:
    return [_text(one) for one in found]


def _reference(found: Any) -> str:
    if found._plan_id is not None:
        raise text.of_a_frame(found._unparsed_identifier)
    return text.name(_parts(found._unparsed_identifier))


def _case(found: Any) -> str:
    otherwise = None if found._else_value is None else _text(found._else_value)
    return text.case([(_text(c), _text(v)) for c, v in found._branches], otherwise)


def _cast(found: Any) -> str:
    kind = found._data_type if isinstance(found._data_type, str) else found._data_type.simpleString()
    return text.cast(_text(found._expr), kind, found._eval_mode)


def _star(found: Any) -> str:
    if found._unparsed_target is not None or found._plan_id is not None:
        raise text.refused("a star of something", "it stands for several columns")
    return "*"


def _windowed(_: Any) -> str:
    raise text.windowed()


def _function(found: Any) -> str:
    raise text.function_of(f"{found._function_name}()")


_SPELLED: dict[str, Callable[[Any], str]] = {
    "CallFunction": lambda found: text.call(found._name, _texts(found._args)),
    "CaseWhen": _case,
    "CastExpression": _cast,
    "ColumnAlias": lambda found: text.aliased(_text(found._child), found._alias),
    "ColumnReference": _reference,
    "CommonInlineUserDefinedFunction": _function,
    "LambdaFunction": lambda found: text.lambda_of(
        [a._name_parts[0] for a in found._arguments], _text(found._function)
    ),
    "LiteralExpression": lambda found: _constant(found._value, found._dataType),
    "SQLExpression": lambda found: text.given(found._expr),
    "UnresolvedExtractValue": lambda found: text.element(_text(found._child), _text(found._extraction)),
    "UnresolvedFunction": lambda found: text.call(found._name, _texts(found._args), distinct=found._is_distinct),
    "UnresolvedNamedLambdaVariable": lambda found: text.name(found._name_parts),
    "UnresolvedStar": _star,
    "WindowExpression": _windowed,
}


def _parts(identifier: str) -> list[str]:
    """A name as the server would cut it: at its dots, but for those in backticks."""
    parts = re.findall(r"`((?:[^`]|``)*)`|([^.`]+)", identifier)
    return [quoted.replace("``", "`") or plain for quoted, plain in parts]


def _constant(value: Any, kind: Any) -> str:
    name = kind.simpleString()
    if value is None:
        return text.constant(None, name)
    match type(kind).__name__:
        case "DateType":
            return f"DATE '{date(1970, 1, 1) + timedelta(days=value)}'"
        case "TimestampType":
            return f"TIMESTAMP '{datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=value)}'"
        case "TimestampNTZType":
            moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=value)
            return f"TIMESTAMP_NTZ '{moment.replace(tzinfo=None)}'"
        case "DayTimeIntervalType":
            return text.duration(timedelta(microseconds=value))
        case "ArrayType":
            return text.call("array", [_constant(one, kind.elementType) for one in value])
        case "DecimalType":
            return text.constant(value, _decimal(value, kind))
        case "TimeType":
            raise text.refused("a constant of time", "a time of day has no type here")
    return text.constant(value, name)


def _decimal(value: Decimal, kind: Any) -> str:
    # The server takes what the type says, and more where the value needs it.
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int), "Spark has no NaN among decimals"
    scale = max(kind.scale, -exponent, 0)
    precision = max(kind.precision, len(digits) + max(exponent, 0), scale)
    return f"decimal({precision},{scale})"

"""Constants: Spark's literals by their types, intervals among them."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal

from headwater.sql.analyzed.datatypes import INTERVAL, dtype_of
from headwater.sql.analyzed.reading import Expressions, expression
from headwater.sql.analyzed.tree import Tree
from headwater.sql.datetime_text import Unreadable, micros_of
from headwater.sql.interval_types import IntervalType, is_interval
from headwater.sql.intervals.constants import Interval, constant_interval, interval_text
from headwater.sql.nodes import Literal, Node, Refused
from headwater.sql.types import STRING, family, name_of

__all__ = ["interval_of", "literal"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@expression("Literal")
def literal(_: Expressions, tree: Tree) -> Node:
    """A constant; an interval of several kinds of units holds an `Interval`,
    others the number of their microseconds or months.
    """
    value, given = tree.fields.get("value"), tree.fields["dataType"]
    dtype = dtype_of(given)
    if value is None:
        return Literal(None, dtype)
    if dtype == INTERVAL:
        return Literal(interval_text(str(value)), dtype)
    if is_interval(dtype):
        return Literal(int(value), dtype)
    return Literal(_value(str(value), tree, family(dtype)), dtype)


def _value(text: str, tree: Tree, kind: str) -> object:
    try:
        if kind == "string":
            return text
        if kind == "integer":
            return int(text)
        if kind == "boolean":
            return text == "true"
        if kind == "float":
            return float(text.replace("Infinity", "inf"))
        if kind == "decimal":
            scale = Decimal(1).scaleb(-dtype_of(tree.fields["dataType"]).scale)
            return Decimal(text).quantize(scale, context=Context(prec=80))
        if kind == "binary":
            return bytes.fromhex(text.removeprefix("X'").removesuffix("'"))
        if kind == "date":
            return date.fromisoformat(text)
        if kind == "timestamp":
            micros = micros_of(text, zoned=True)
            return None if micros is None else _EPOCH + timedelta(microseconds=micros)
        if kind == "timestamp_ntz":
            return _EPOCH.replace(tzinfo=None) + timedelta(microseconds=int(text))
    except (ValueError, OverflowError, Unreadable):
        pass
    raise Refused(
        f"the constant {text} of type {name_of(dtype_of(tree.fields['dataType']))}", "compute it by a function"
    )


def interval_of(reader: Expressions, tree: Tree) -> Interval:
    """An expression that is a constant interval."""
    if tree.kind == "UnaryMinus":
        return -interval_of(reader, tree.children[0])
    if tree.kind in ("KnownNullable", "Alias") or (
        tree.kind == "Cast" and dtype_of(tree.fields["dataType"]) == INTERVAL
    ):
        inner = tree.children[0]
        found = reader.read(inner) if inner.kind == "Literal" else None
        if isinstance(found, Literal) and isinstance(found.value, str):
            return interval_text(found.value)
        return interval_of(reader, inner)
    found = reader.read(tree)
    if isinstance(found, Literal) and isinstance(found.value, Interval):
        return found.value
    if isinstance(found, Literal) and isinstance(found.value, int) and isinstance(found.dtype, IntervalType):
        return constant_interval(found.value, found.dtype)
    raise Refused("an interval that is no constant", "write INTERVAL '3' DAY, or use timestampadd()")


@expression("CurrentTimeZone")
def _zone(_: Expressions, __: Tree) -> Node:
    return Literal("UTC", STRING)


@expression("Pi", "EulerNumber")
def _number(_: Expressions, tree: Tree) -> Node:
    from headwater.sql.calls import apply_function

    return apply_function("pi" if tree.kind == "Pi" else "e", [])

"""Constants as Spark prints them in the name of a column: without quotes, with the digits of their type."""

from __future__ import annotations

from datetime import date, datetime, time
from decimal import Decimal

from headwater.sql.java_numbers import java_text, newest_text
from headwater.sql.nodes import Literal, Node

__all__ = ["constant_name"]


def constant_name(node: Node) -> str:
    """A constant as Spark prints it in a column's name."""
    assert isinstance(node, Literal) or hasattr(node, "args")
    if not isinstance(node, Literal):
        return "?"
    value = node.value
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, bytes):
        return f"X'{value.hex().upper()}'"
    if isinstance(value, datetime):
        text = value.replace(tzinfo=None).isoformat(" ")
        text = text.rstrip("0") if value.microsecond else text
        return f"TIMESTAMP{'_NTZ' if value.tzinfo is None else ''} '{text}'"
    if isinstance(value, time):
        text = value.isoformat()
        return f"TIME '{text.rstrip('0') if value.microsecond else text}'"
    if isinstance(value, date):
        return f"DATE '{value}'"
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, float):
        return java_text(value) or newest_text(value)
    return str(value)

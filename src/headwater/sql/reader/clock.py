"""The clock of a query: current_date() and the like are constants, read once when the query is read, as in Spark."""

from __future__ import annotations

from datetime import datetime

from sqlglot import exp

from headwater.sql.nodes import Literal
from headwater.sql.types import DATE, STRING, TIMESTAMP, TIMESTAMP_NTZ

__all__ = ["CLOCKS", "at", "is_clock_word"]

CLOCKS = frozenset({"curdate", "current_date", "current_timestamp", "current_timezone", "localtimestamp", "now"})
# Those that are called without parentheses too.
_WORDS = frozenset({"current_date", "current_timestamp"})


def at(name: str, now: datetime) -> Literal:
    """What a function of the clock gives at an instant of UTC.

    >>> from datetime import UTC
    >>> at("current_date", datetime(2024, 1, 31, 12, tzinfo=UTC)).value
    datetime.date(2024, 1, 31)
    """
    if name.lower() in ("curdate", "current_date"):
        return Literal(now.date(), DATE)
    if name.lower() == "current_timezone":
        return Literal("UTC", STRING)
    local = name.lower() == "localtimestamp"
    return Literal(now.replace(tzinfo=None) if local else now, TIMESTAMP_NTZ if local else TIMESTAMP)


def is_clock_word(node: exp.Expr) -> bool:
    """Is this a bare word that reads the clock, where no column has its name?"""
    bare = isinstance(node, exp.Column) and len(node.parts) == 1 and isinstance(node.this, exp.Identifier)
    return bare and not node.this.args.get("quoted") and node.name.lower() in _WORDS
